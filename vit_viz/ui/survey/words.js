// What the Survey tab says: numbers of photos, filters that a brush writes, and names of columns.

import { percent, short } from '../tokens/vectors.js';

/** Corners of a lasso that a filter holds at most. */
export const MOST_CORNERS = 40;

/** A column as it is read: "mean_entropy" is "mean entropy". */
export function columnWords(/** @type {string} */ name) {
  return name.replaceAll('_', ' ');
}

/** How many photos pass, and how many of those are right. */
export function countWords(
  /** @type {{count: number, labelled: number, accuracy: number | null}} */ { count, labelled, accuracy },
  /** @type {number} */ total,
) {
  const photos =
    count === total
      ? `All ${total.toLocaleString('en')} photos`
      : `${count.toLocaleString('en')} of ${total.toLocaleString('en')} photos`;
  if (accuracy === null) return `${photos}; of none is it known whether the answer is right.`;
  const labels = labelled === count ? '' : ` of the ${labelled.toLocaleString('en')} with a label`;
  return `${photos}; ${(100 * accuracy).toFixed(1)}%${labels} are right.`;
}

/** A number as a filter holds it. */
function written(/** @type {number} */ value) {
  return String(Number(value.toPrecision(5)));
}

/**
 * The expression of a box.
 * @param {string} across
 * @param {string} up
 * @param {{x: number[], y: number[]}} range
 */
export function boxFilter(across, up, { x, y }) {
  const between = (/** @type {string} */ name, /** @type {number[]} */ ends) => {
    const [low, high] = [Math.min(...ends), Math.max(...ends)].map(written);
    return `${name} BETWEEN ${low} AND ${high}`;
  };
  return `(${between(across, x)} AND ${between(up, y)})`;
}

/**
 * The expression of a lasso, with every k-th corner where there are more than a filter holds.
 * @param {string} across
 * @param {string} up
 * @param {{x: number[], y: number[]}} points
 */
export function lassoFilter(across, up, { x, y }) {
  const every = Math.max(1, Math.ceil(x.length / MOST_CORNERS));
  const corners = x
    .map((value, at) => `${written(value)} ${written(y[at])}`)
    .filter((_corner, at) => at % every === 0);
  return `inside(${across}, ${up}, '${corners.join(', ')}')`;
}

/** What was written and what was brushed, as one filter. */
export function joined(/** @type {string} */ typed, /** @type {string} */ brushed) {
  if (!typed || !brushed) return typed || brushed;
  return `(${typed}) AND ${brushed}`;
}

/**
 * A head in one line: mean, spread, name.
 * @param {{layer: number, head: number}} place
 * @param {{mean: (number | null)[][], spread: (number | null)[][], unit: string, photos: number}} atlas
 */
export function headLine({ layer, head }, { mean, spread, unit, photos }) {
  const [middle, around] = [mean[layer]?.[head], spread[layer]?.[head]];
  const begins = `Layer ${layer}, head ${head}`;
  if (middle === null || middle === undefined) return `${begins}: not known of these photos.`;
  return `${begins}: ${short(middle)} ± ${short(around ?? 0)} ${unit}, over ${photos.toLocaleString('en')} photos.`;
}

/**
 * A name with its evidence.
 * @param {{name: string, sentence: string, evidence: number | null, thin: boolean} | undefined} named
 */
export function nameLine(named) {
  if (!named) return '';
  const share =
    named.evidence === null ? '' : ` It holds in ${percent(named.evidence)} of these photos alone.`;
  return `${named.name}: ${named.sentence}${share}${named.thin ? ' The evidence is thin.' : ''}`;
}

/** A mean with its interval. */
export function intervalWords(/** @type {{mean: number, low: number, high: number} | undefined} */ one) {
  return one ? `${one.mean.toFixed(2)} (${one.low.toFixed(2)} to ${one.high.toFixed(2)})` : '';
}

/** The photos that pass, from one bit each. @returns {Uint8Array} 1 where a photo passes */
export function readBits(/** @type {string} */ text, /** @type {number} */ count) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const passes = new Uint8Array(count);
  for (let row = 0; row < count; row++) passes[row] = (bytes[row >> 3] >> (row & 7)) & 1;
  return passes;
}

/**
 * The dots of the three traces: right, wrong, no label. A photo of which a number is not known has no dot.
 * @param {Float32Array} points [3, photos]: across, up, and 1 for right, 0 for wrong
 */
export function traceRows(points) {
  const count = points.length / 3;
  /** @type {number[][]} */
  const rows = [[], [], []];
  for (let row = 0; row < count; row++) {
    if (Number.isNaN(points[row]) || Number.isNaN(points[count + row])) continue;
    const right = points[2 * count + row];
    rows[right === 1 ? 0 : right === 0 ? 1 : 2].push(row);
  }
  return rows;
}

/** Smallest and largest mean with its spread. @param {(number | null)[][]} mean @param {(number | null)[][]} spread @returns {[number, number]} */
export function endsOf(mean, spread) {
  const known = mean.flatMap((row, layer) =>
    row.flatMap((value, head) =>
      value === null ? [] : [value - (spread[layer][head] ?? 0), value + (spread[layer][head] ?? 0)],
    ),
  );
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

/** What the numbers of the method table are. @param {{lines: Record<string, object>, resamples: number}} methods */
export function methodWords({ lines, resamples }) {
  const scores = Object.values(lines).flatMap((line) => Object.keys(line));
  if (!scores.length) return '';
  const chance = scores.some((score) => score === 'insertion' || score === 'deletion')
    ? '; in insertion and deletion 0 is chance'
    : '';
  return `Means with 95% intervals from ${resamples} bootstrap samples of the photos; higher is better${chance}.`;
}
