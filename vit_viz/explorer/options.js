// What can be chosen: an option as Python declares it, in a view and in links. It imports nothing: the address bar needs it.

/**
 * @typedef {object} Option
 * @property {string} name in a view
 * @property {string} link in links
 * @property {string | number | boolean} default
 * @property {string[]} [choices] of a text
 * @property {string} [pattern] of all that a text without choices may be
 * @property {number} [low] of a number
 * @property {number} [high] of a number
 * @property {number} [step] of a number that is no whole one
 */

/** Every option at its default. @param {Option[]} options */
export function defaultsOf(options) {
  return Object.fromEntries(options.map((option) => [option.name, option.default]));
}

/** Whether an option can have this value. @param {Option} option @param {unknown} value */
export function isPossible(option, value) {
  if (typeof value !== typeof option.default) return false;
  if (option.choices) return option.choices.includes(/** @type {string} */ (value));
  if (option.pattern) return new RegExp(`^(?:${option.pattern})$`).test(/** @type {string} */ (value));
  if (typeof value !== 'number') return true;
  if (option.step === undefined && !Number.isInteger(value)) return false;
  return value >= (option.low ?? -Infinity) && value <= (option.high ?? Infinity);
}

/** The value that a link means. @param {Option} option @param {string} text @returns {unknown} */
export function readOption(option, text) {
  if (typeof option.default === 'boolean') return text === '1';
  return typeof option.default === 'number' ? Number(text) : text;
}

/** A value as a link says it; null where it is the default, which is left out. @param {Option} option @param {unknown} value */
export function writeOption(option, value) {
  if (value === option.default) return null;
  return typeof value === 'boolean' ? String(Number(value)) : String(value);
}
