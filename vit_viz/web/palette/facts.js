// An answer in pairs of words: what it says beside its figure, then each array with its shape and its ends.

const MOST = 40; // facts
const MOST_OF_LIST = 12;

/** Of the facts: said by the figure, or of no use to those who look at it. */
const UNTOLD = ['provenance', 'crop_box', 'value_range', 'signed', 'class_blind', 'method'];

/** @param {{facts: any, arrays: Record<string, {shape: number[], data: any}>}} answer @returns {[string, string][]} */
export function factsOf({ facts, arrays }) {
  const told = leavesOf(facts, '');
  for (const [name, { shape, data }] of Object.entries(arrays)) {
    const known = Array.from(data).filter((value) => typeof value === 'bigint' || Number.isFinite(value));
    const ends = [known.reduce(least, known[0]), known.reduce(most, known[0])].map(wordOf);
    const size = shape.join(' x ') || 'one number';
    told.push([
      name.replace(/[_.]/g, ' ') || 'values',
      known.length ? `${size}, ${ends.join(' to ')}` : size,
    ]);
  }
  return told.slice(0, MOST);
}

const least = (/** @type {any} */ one, /** @type {any} */ other) => (other < one ? other : one);
const most = (/** @type {any} */ one, /** @type {any} */ other) => (other > one ? other : one);

/** What is worth telling, each behind the names that lead to it. @param {any} value @param {string} name @returns {[string, string][]} */
function leavesOf(value, name) {
  if (!value || value.length === 0) return [];
  if (typeof (Array.isArray(value) ? value[0] : value) === 'object')
    return Object.entries(value)
      .filter(([inner]) => !UNTOLD.includes(inner))
      .flatMap(([inner, part]) => leavesOf(part, `${name} ${inner}`.trim()));
  return [[name.replaceAll('_', ' ') || 'answer', Array.isArray(value) ? listed(value) : wordOf(value)]];
}

/** @param {any[]} values */
function listed(values) {
  const words = values.slice(0, MOST_OF_LIST).map(wordOf).join(', ');
  return values.length > MOST_OF_LIST ? `${words}, … (${values.length} in all)` : words;
}

/** @param {any} value */
function wordOf(value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(4)));
}
