// Numbers of heads in words.

import { percent } from '../../explorer/labels.js';
import { fixed, short } from '../../ui/kit/numbers.js';

/**
 * A head of the model.
 * @typedef {{layer: number, head: number}} Place
 *
 * One number per head; null where it is not known.
 * @typedef {{values: (number | null)[][], unit: string, signed: boolean}} Table values: [layers][heads]
 */

/** A head in words. */
export function headWords(/** @type {Place} */ { layer, head }) {
  return `layer ${layer}, head ${head}`;
}

/** A head as edits and links name it: "3.1". */
export function keyOf(/** @type {Place} */ { layer, head }) {
  return `${layer}.${head}`;
}

/** @param {Place | null} one @param {Place | null} other */
export function isSame(one, other) {
  return one?.layer === other?.layer && one?.head === other?.head;
}

/** The head that an element of the grid or of the plot stands for. @returns {Place | null} */
export function placeOf(/** @type {unknown} */ node) {
  const cell = node instanceof Element ? node.closest('[data-head]') : null;
  if (!(cell instanceof HTMLElement)) return null;
  return { layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) };
}

/**
 * An array of an answer as a table of heads; null where there is no number.
 * @param {{shape: number[], data: ArrayLike<number>}} array [layers, heads] @param {{unit: string, signed: boolean}} facts
 * @param {ArrayLike<number>} [known] which heads are there; all where it is left out
 * @returns {Table}
 */
export function tableOf({ shape: [layers, heads], data }, { unit, signed }, known) {
  const value = (/** @type {number} */ at) =>
    (known && !known[at]) || !Number.isFinite(data[at]) ? null : Number(data[at].toPrecision(5));
  return { values: everyHead(layers, heads, ({ layer, head }) => value(layer * heads + head)), unit, signed };
}

/** Something of each head: [layers][heads]. @template Value @param {number} layers @param {number} heads @param {(place: Place) => Value} of */
export function everyHead(layers, heads, of) {
  return Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: heads }, (__, head) => of({ layer, head })),
  );
}

/** A text that begins with a capital letter. */
export function capital(/** @type {string} */ text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A number as its unit is written: shares in percent. */
export function amountOf(/** @type {number} */ value, /** @type {string} */ unit) {
  return isShare(unit) ? percent(value) : short(value);
}

/** What stands behind an amount: of a share what it is of. */
export function unitWords(/** @type {string} */ unit) {
  return unit.replace(/^share /, '');
}

export function isShare(/** @type {string} */ unit) {
  return unit.startsWith('share of ');
}

/** A number with its unit; shares in percent. */
export function valueWords(/** @type {number | null} */ value, unit = '') {
  return value === null ? 'not computed yet' : `${amountOf(value, unit)} ${unitWords(unit)}`.trim();
}

/** What a head lights on the photo, in numbers. @param {{most: number, lit: number, sum: number}} map */
export function scaleWords({ most, lit, sum }) {
  const full =
    lit < most
      ? `Fully lit from ${percent(lit, 3)} of its attention on, at most ${percent(most, 3)}`
      : `Brightest: ${percent(most, 3)} of its attention`;
  return `${full}, this head's own scale; ${percent(sum)} falls on patches.`;
}

/** A number in the few letters that a cell has room for: "114", "7.2", ".23", "−.05", and of a share "71%", "0.6%". */
export function cellText(/** @type {number | null} */ value, unit = '') {
  if (value === null) return '';
  const size = Math.abs(value);
  if (isShare(unit)) return `${(100 * value).toFixed(size < 0.0995 ? 1 : 0)}%`;
  const digits = size >= 9.95 ? 0 : size >= 0.995 ? 1 : 2;
  const text = size.toFixed(digits).replace(/^0\./, '.');
  return value < 0 && /[1-9]/.test(text) ? `\u2212${text}` : text;
}

/**
 * The ends of the colours: of a signed table as far from zero on both sides, else its smallest and its largest value.
 * @param {Table} table @returns {[number, number]}
 */
export function endsOf({ values, signed }) {
  const known = values.flat().filter((value) => value !== null);
  if (!known.length) return signed ? [-1, 1] : [0, 1];
  const low = Math.min(...known);
  const high = Math.max(...known);
  if (!signed) return [low, high];
  const most = Math.max(-low, high) || 1;
  return [-most, most];
}

/** What is large of a measure: a change in either direction, of other numbers the number. @param {Table} table @param {Place} place */
export function sizeOf({ values, unit }, { layer, head }) {
  const value = values[layer][head];
  if (value === null) return -Infinity;
  return unit.startsWith('change of ') ? Math.abs(value) : value;
}

/**
 * Which heads stand in each row of the grid.
 * @param {Table} table
 * @param {string} order 'head', where a row is a layer, or 'value': of all heads the largest first, and what is not known last
 */
export function orderOf(table, order) {
  const { values } = table;
  const rows = everyHead(values.length, values[0].length, (place) => place);
  if (order !== 'value') return rows;
  const all = rows.flat().sort((a, b) => sizeOf(table, b) - sizeOf(table, a) || 0); // NaN: neither is known
  return rows.map(({ length }, row) => all.slice(row * length, (row + 1) * length));
}

/** The mean of each layer over the heads that are known; null without any. */
export function layerMeans(/** @type {Table} */ { values }) {
  return values.map((row) => {
    const known = row.filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  });
}

/**
 * How far the causal map is and how well the estimate foretold it.
 * @param {{done: number, correlation: number}} causal @param {number} heads
 */
export function agreementWords({ done, correlation: rank }, heads) {
  if (done < 3) return '';
  const which = done < heads ? `the ${done} of ${heads} heads so far` : `all ${heads} heads`;
  return `Estimate and truth have a rank correlation of ${fixed(rank, 2)} over ${which}.`;
}

/** How alike two rows of numbers are: their correlation; 0 where one is constant. @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function correlation(a, b) {
  const mean = (/** @type {ArrayLike<number>} */ x) => {
    let sum = 0;
    for (let i = 0; i < x.length; i++) sum += x[i];
    return sum / x.length;
  };
  const [ma, mb] = [mean(a), mean(b)];
  let [both, one, two] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    both += (a[i] - ma) * (b[i] - mb);
    one += (a[i] - ma) ** 2;
    two += (b[i] - mb) ** 2;
  }
  return one && two ? both / Math.sqrt(one * two) : 0;
}
