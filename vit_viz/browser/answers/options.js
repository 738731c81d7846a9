// The body of a question: its options, each as vit_viz/analyses/options.py declares and reads it, its query and its target.

/**
 * What is possible: a list of words, the first of which is the usual one; true or false; a number within its range; or a text of a pattern.
 * @typedef {readonly string[] | boolean | {usual: number, low: number, high: number, isWhole?: boolean, isLayer?: boolean} |
 *     {usual: string, pattern: RegExp, sentence: string}} Option
 * @typedef {Record<string, Option>} Options
 */

/** What is said of the picture: how it becomes the model's input, and what is changed inside the model. */
const OF_PICTURE = ['mode', 'size', 'part', 'edits', 'sentences', 'templates'];

/**
 * Reads the body of a question: the value of each option, and what it is about. Throws a sentence where something is not possible.
 * @param {string} name @param {import('./index.js').Question} question @param {Record<string, any>} body
 * @param {number} layers of the model
 * @returns {{options: Record<string, any>, about: import('./index.js').About}}
 */
export function readBody(name, { needs, options = {}, takesQuery, takesTarget, takesOptions }, body, layers) {
  const isOfPicture = needs === 'pass';
  const allowed = [
    ...(isOfPicture ? OF_PICTURE : []),
    ...Object.entries({ query: takesQuery, target: takesTarget, options: takesOptions }).flatMap(
      ([key, isTaken]) => (isTaken ? [key] : []),
    ),
    ...Object.keys(options),
  ];
  checkNames(name, body, isOfPicture, allowed);
  const read = Object.entries(options).map(([key, option]) => {
    if (!(key in body)) return [key, usualOf(option, layers)];
    return [key, valueOf(`The ${spelled(`${name}'s ${key}`)}`, option, body[key], layers)];
  });
  const [query, target] = [body.query ?? '', body.target ?? ''].map(asText);
  return {
    options: Object.fromEntries(read),
    about: {
      query: query || null,
      target: target || null,
      options: body.options ?? {},
      model: body.model || 'This model',
    },
  };
}

/**
 * Throws where a body says what the question does not take, or is asked of a model with sentences, which no model of a page reads.
 * @param {string} name @param {Record<string, any>} body @param {boolean} isOfPicture @param {string[]} allowed
 */
function checkNames(name, body, isOfPicture, allowed) {
  if (!isOfPicture && body.image) throw new Error(`'${name}' is about a model. It takes no image.`);
  for (const key of Object.keys(body)) {
    if (['model', 'figure', ...(isOfPicture ? ['image'] : []), ...allowed].includes(key)) continue;
    throw new Error(`'${name}' takes no '${key.slice(0, 40)}'; it takes: ${allowed.join(', ')}.`);
  }
  if (body.sentences?.length)
    throw new Error(
      `'${body.model || 'This model'}' has no text tower here, so it reads no sentences: ask in the app.`,
    );
}

/** As links write it: [3, 4] is "3,4", and [[3, 4], [3, 5]] is "3,4;3,5". @param {any} value @returns {string} */
function asText(value) {
  return Array.isArray(value) ? value.map(asText).join(value.some(Array.isArray) ? ';' : ',') : String(value);
}

/** @param {Option} option @param {number} layers */
function usualOf(option, layers) {
  if (Array.isArray(option)) return option[0];
  return typeof option === 'object' ? fromLast(option, /** @type {any} */ (option).usual, layers) : option;
}

/** A layer counted from the first one: -1 is the last. @param {any} option @param {any} value @param {number} layers */
function fromLast({ isLayer }, value, layers) {
  return isLayer && value < 0 && value >= -layers ? value + layers : value;
}

/** @param {string} called how sentences begin @param {Option} option @param {unknown} value @param {number} layers */
function valueOf(called, option, value, layers) {
  const text = String(value);
  const not = `not '${text.slice(0, 40)}'.`;
  if (Array.isArray(option)) {
    const chosen = option.find((one) => one === text || spelled(one) === text);
    if (chosen === undefined)
      throw new Error(`${called} is one of ${option.map(spelled).join(', ')}, ${not}`);
    return chosen;
  }
  if (typeof option === 'boolean') {
    if (!/^(1|0|true|false)$/i.test(text)) throw new Error(`${called} is 1 or 0, ${not}`);
    return /^(1|true)$/i.test(text);
  }
  if ('pattern' in option) {
    if (!option.pattern.test(text))
      throw new Error(`${called} cannot be '${text.slice(0, 40)}'. ${option.sentence}`);
    return text;
  }
  const { low, high, isWhole } = /** @type {{low: number, high: number, isWhole?: boolean}} */ (option);
  const number = text.trim() === '' ? NaN : Number(text);
  if (!(low <= number && number <= high) || (isWhole && !Number.isInteger(number)))
    throw new Error(`${called} is a ${isWhole ? 'whole number' : 'number'} from ${low} to ${high}, ${not}`);
  return isWhole ? fromLast(option, number, layers) : Math.round(number * 1e4) / 1e4;
}

function spelled(/** @type {string} */ name) {
  return name.replaceAll('_', ' ');
}
