// All heads at a glance, one number per head and layer: vit_viz/analyses/heads.py and head_statistics.py.

import { unknownNorms } from './attention.js';
import { numbers } from './form.js';
import { cosinesOf, layerSums, offsetCounts } from './head_sums.js';
import { layoutOf, outputQuery, queryWeights } from './layout.js';
import { normsOf, OUTLIER_FACTOR } from './tokens.js';
/** @import { Traced } from '../engine.js' */
/** @import { Context, Floats } from './form.js' */
/** @import { Cosines, Sums } from './head_sums.js' */

const NOTHING = 1e-6; // a variance below it is the rounding of fp32
const SHARE = 'share of the attention';

/**
 * @typedef {{context: Context, grid: number[], counts: Float64Array, patches: number, tokens: number, layer: number, cosines: Cosines,
 *     heads: Sums[]}} Layer the sums of all heads of a layer
 * @typedef {{unit: string, low: number, high: number, overPatches?: boolean, of: (sums: Sums, layer: Layer, head: number) => number}} Statistic
 *
 * @typedef {{values: Floats, unit: string, value_range: number[], signed: boolean, method: string, note: string}} HeadTable
 */

/** @param {number} value @param {number} low @param {number} high */
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** @param {(sums: Sums, layer: Layer, head: number) => number} of @returns {Statistic} */
const share = (of) => ({ unit: SHARE, low: 0, high: 1, overPatches: true, of });

/** What falls on the patch beside, of the patches that have one. @param {number} down @param {number} right */
const beside = (down, right) =>
  share(({ offsets }, { grid: [rows, cols], counts }) => {
    const [row, col, wide] = [rows - 1 + down, cols - 1 + right, 2 * cols - 1];
    const isThere = row >= 0 && row < 2 * rows - 1 && col >= 0 && col < wide;
    return isThere ? offsets[row * wide + col] / Math.max(1, counts[row * wide + col]) : 0;
  });

/** Attention of patches on some tokens. @param {(names: string[]) => number[]} tokens */
const received = (tokens) =>
  share(
    ({ ofPatches }, { context, patches }) =>
      tokens(context.traced.prefix).reduce((sum, token) => sum + ofPatches[token], 0) / patches,
  );

/** Of the weights between patches: the variance of their means at each offset, and their own. @param {Sums} sums @param {Layer} layer */
function variances({ offsets, squares }, { counts, patches }) {
  let [sum, between] = [0, 0];
  offsets.forEach((value, i) => {
    sum += value;
    between += (value * value) / counts[i];
  });
  const common = (sum * sum) / patches ** 2;
  return { between: between - common, total: squares - common };
}

/** @type {Record<string, Statistic>} */
const STATISTICS = {
  distance: {
    unit: 'pixels of the model input',
    low: 0,
    high: Infinity,
    overPatches: true,
    of: ({ distance }, { patches }) => distance / patches,
  },
  entropy: {
    unit: 'share of the largest entropy, ln N nats',
    low: 0,
    high: 1,
    of: ({ entropy }, { tokens }) => clamp(-entropy / tokens / (Math.log(tokens) || 1), 0, 1),
  },
  prefix_mass: received((prefix) => [...prefix.keys()]),
  class_mass: received((prefix) => [...prefix.keys()].filter((token) => prefix[token] === 'class')),
  suffix_mass: received(() => []),
  diagonal_mass: share(({ diagonal }, { patches }) => diagonal / patches),
  left_neighbour: beside(0, -1),
  right_neighbour: beside(0, 1),
  upper_neighbour: beside(-1, 0),
  lower_neighbour: beside(1, 0),
  strongest_offset: share(({ offsets }, { counts, patches }) => {
    const middle = (counts.length - 1) / 2;
    return offsets.reduce(
      (most, sum, i) => (2 * counts[i] >= patches && i !== middle ? Math.max(most, sum / counts[i]) : most),
      0,
    );
  }),
  positional_share: {
    ...share((sums, layer) => {
      const { between, total } = variances(sums, layer);
      return total > NOTHING ? clamp(between / total, 0, 1) : 0;
    }),
    unit: 'share of the variance',
  },
  content_correlation: {
    unit: 'correlation',
    low: -1,
    high: 1,
    overPatches: true,
    of: (sums, layer) => {
      const { between, total } = variances(sums, layer);
      const { cosines, counts } = layer;
      let [covariance, left] = [sums.alike, cosines.squares];
      counts.forEach((count, i) => {
        covariance -= (sums.offsets[i] * cosines.offsets[i]) / count;
        left -= cosines.offsets[i] ** 2 / count;
      });
      const product = Math.max(0, left) * Math.max(0, total - between);
      return product > NOTHING ? clamp(covariance / Math.sqrt(product), -1, 1) : 0;
    },
  },
  sink_share: {
    unit: SHARE,
    low: 0,
    high: 1,
    of: ({ all }, { context, layer, tokens }) => {
      const { norms, threshold } = normsOf(context, layer, OUTLIER_FACTOR.usual);
      return norms.reduce((sum, norm, token) => sum + (norm > threshold ? all[token] : 0), 0) / tokens;
    },
  },
  norm: {
    unit: 'attention weight x value norm',
    low: 0,
    high: Infinity,
    of: ({ all }, { context, layer, tokens }, head) => {
      const norms = /** @type {Float32Array} */ (context.traced.layers[layer].layer.norms);
      return all.reduce((sum, value, token) => sum + value * norms[head * tokens + token], 0) / tokens;
    },
  },
  rollout_share: {
    unit: 'share of the layer',
    low: 0,
    high: 1,
    of: (sums, { heads, context }) => {
      const { first } = layoutOf(context);
      const mass = (/** @type {Sums} */ { ofRow }) =>
        ofRow.subarray(first).reduce((sum, value) => sum + value, 0);
      return mass(sums) / heads.reduce((sum, one) => sum + mass(one), 0);
    },
  },
};
const MEASURES = Object.keys(STATISTICS);

/** Of the last passes. @type {WeakMap<Traced, Promise<Record<string, HeadTable>>>} */
const tables = new WeakMap();

/** Every measure that this pass can give, from one pass over its attention. @param {Context} context */
export function headTables(context) {
  const { traced } = context;
  const found = tables.get(traced) ?? measured(context);
  tables.set(traced, found);
  found.catch(() => tables.delete(traced));
  return found;
}

/** @param {Context} context @returns {Promise<Record<string, HeadTable>>} */
async function measured(context) {
  const { traced } = context;
  const { grid, patches } = layoutOf(context);
  const counts = offsetCounts(grid);
  const size = traced.crop.input.map((side, i) => side / grid[i]);
  const wide = 2 * grid[1] - 1;
  const lengths = Float32Array.from(counts, (_, i) =>
    Math.hypot((Math.floor(i / wide) - grid[0] + 1) * size[0], ((i % wide) - grid[1] + 1) * size[1]),
  );
  const { tokens, heads } = traced;
  const depth = traced.layers.length;
  const hasNorms = traced.layers.every(({ layer }) => layer.norms);
  const measures = MEASURES.filter((measure) => measure !== 'norm' || hasNorms);
  const values = Object.fromEntries(measures.map((measure) => [measure, new Float32Array(depth * heads)]));
  let row = queryWeights(context, outputQuery(context));
  for (let layer = depth - 1; layer >= 0; layer--) {
    const cosines = cosinesOf(context, layer);
    const sums = layerSums(context, layer, row, cosines, lengths);
    const whole = { context, grid, counts, patches, tokens, layer, cosines, heads: sums };
    for (const measure of measures)
      sums.forEach(
        (one, head) => (values[measure][layer * heads + head] = STATISTICS[measure].of(one, whole, head)),
      );
    // before the layer: half through its attention, half through the skip connection
    row = row.map(
      (kept, token) => kept / 2 + sums.reduce((sum, { ofRow }) => sum + ofRow[token], 0) / heads / 2,
    );
    await context.step((depth - layer) / depth);
  }
  const farthest = Math.hypot(size[0] * (grid[0] - 1), size[1] * (grid[1] - 1)) || 1;
  return Object.fromEntries(
    measures.map((measure) => {
      const { unit, low, high, overPatches } = STATISTICS[measure];
      const table = {
        values: numbers([depth, heads], values[measure]),
        unit,
        value_range: [low, measure === 'distance' ? farthest : high],
        signed: low < 0,
        method: measure,
        note: overPatches ? 'Mean over patch queries.' : '',
      };
      return [measure, table];
    }),
  );
}

/** A copy, whose numbers may move to the page. @param {HeadTable} table @returns {HeadTable} */
function copied(table) {
  return { ...table, values: { ...table.values, data: table.values.data.slice() } };
}

/** @param {Context} context @param {{measure: string}} options */
async function oneMeasure(context, { measure }) {
  const found = await headTables(context);
  if (!found[measure]) throw new Error(unknownNorms(0));
  return copied(found[measure]);
}

/** @param {Context} context */
async function allMeasures(context) {
  const found = Object.entries(await headTables(context));
  return { tables: Object.fromEntries(found.map(([measure, table]) => [measure, copied(table)])), note: '' };
}

/** @type {import('./index.js').Table} */
export const HEADS = {
  heads: { needs: 'pass', options: { measure: MEASURES }, answer: oneMeasure },
  head_tables: { needs: 'pass', answer: allMeasures },
};
