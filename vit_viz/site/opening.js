// What a first look should show, as vit_viz/analyses/opening.py finds it.

import { round } from '../browser/preprocess.js';
import { attentionInto } from '../explorer/attention.js';
/** @import { Trace } from '../explorer/geometry.js' */
/** @import { Source } from '../explorer/source.js' */
/** @import { View } from '../explorer/state.js' */

const TENTH = 10;
const STOPS = 3; // patches that a tour visits
const MOST_ROWS = 256; // patches that a tour chooses from

/** @typedef {Pick<Trace, 'layers' | 'heads' | 'tokens' | 'grid' | 'prefix' | 'suffix' | 'pooling' | 'default_query'>} Shape */

/**
 * Where a first look begins: the head of the last third of the layers whose map of the output's query says most at a glance, and
 * patches that are worth a visit.
 * @param {Shape} shape @param {Source} source
 */
export async function opening(shape, source) {
  const { layers, heads, default_query: query } = shape;
  const trace = /** @type {Trace} */ (shape);
  const view = /** @type {View} */ ({ query, direction: 'row' });
  const never = new AbortController().signal;
  let best = { layer: 0, head: 0, score: -1 };
  for (let layer = firstOfLastThird(layers); layer < layers; layer++) {
    const rows = await source.rows(trace, layer, view, never);
    for (let head = 0; head < heads; head++) {
      const found = score(patchesOf(rows, head, shape), shape.grid[1]);
      if (found > best.score) best = { layer, head, score: found };
    }
  }
  const layer = await source.layer(trace, best.layer, never);
  return { ...best, tour: tourOf(layer, best.head, shape) };
}

/** The layer with which the last third begins. */
function firstOfLastThird(/** @type {number} */ layers) {
  return Math.min(layers - 1, Math.floor((2 * layers + 1) / 3));
}

/** The weights over the patches in one head of rows [heads, tokens]. */
function patchesOf(
  /** @type {Float32Array} */ rows,
  /** @type {number} */ head,
  /** @type {Shape} */ { tokens, prefix, grid },
) {
  const first = head * tokens + prefix.length;
  return rows.subarray(first, first + grid[0] * grid[1]);
}

/**
 * How much a map says at a glance: the share of its mass on the brightest tenth of its patches, times the share of that tenth that
 * hangs together in its largest piece.
 * @param {Float32Array} values [rows * cols] @param {number} cols
 */
export function score(values, cols) {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (!(total > 0) || values.every((value) => value === values[0])) return 0;
  const count = Math.max(1, round(values.length / TENTH));
  const least = values.slice().sort()[values.length - count];
  /** @type {Set<number>} */
  const brightest = new Set();
  const take = (/** @type {(value: number) => boolean} */ isOne) =>
    values.forEach((value, patch) => brightest.size < count && isOne(value) && brightest.add(patch));
  take((value) => value > least);
  take((value) => value === least); // of equals the first
  const share = [...brightest].reduce((sum, patch) => sum + values[patch], 0) / total;
  return (share * largestPiece(brightest, cols)) / count;
}

/** Of how many patches the largest piece consists whose patches share sides. */
function largestPiece(/** @type {Set<number>} */ left, /** @type {number} */ cols) {
  let largest = 0;
  for (const start of left) {
    left.delete(start);
    const reached = [start];
    for (const patch of reached) {
      const across = [
        ...(patch % cols > 0 ? [patch - 1] : []),
        ...(patch % cols < cols - 1 ? [patch + 1] : []),
      ];
      reached.push(...[...across, patch - cols, patch + cols].filter((beside) => left.delete(beside)));
    }
    largest = Math.max(largest, reached.length);
  }
  return largest;
}

/** Patches whose own rows in a head score highest, each at least a third of the grid's longer side away from those before it. */
function tourOf(
  /** @type {import('../explorer/attention.js').Layer} */ layer,
  /** @type {number} */ head,
  /** @type {Shape} */ shape,
) {
  const { tokens, prefix, grid } = shape;
  const [rows, cols] = grid;
  const row = new Float32Array(tokens);
  const step = Math.ceil((rows * cols) / MOST_ROWS);
  const found = [];
  for (let patch = 0; patch < rows * cols; patch += step) {
    attentionInto(row, layer, head, prefix.length + patch, 'row');
    found.push({ patch, score: score(patchesOf(row, 0, shape), cols) });
  }
  found.sort((a, b) => b.score - a.score || a.patch - b.patch);
  /** @type {number[]} */
  const stops = [];
  const isNear = (/** @type {number} */ a, /** @type {number} */ b) =>
    Math.hypot(Math.floor(a / cols) - Math.floor(b / cols), (a % cols) - (b % cols)) <
    Math.max(rows, cols) / 3;
  for (const { patch, score: most } of found) {
    if (most > 0 && stops.length < STOPS && !stops.some((stop) => isNear(stop, patch))) stops.push(patch);
  }
  return stops;
}
