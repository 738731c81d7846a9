// Maps that are blind to the class, as a row carried through the layers: vit_viz/analyses/rollout.py and chains.py.

import { fusedRows, look, mapWords, patchMap, unknownNorms } from './attention.js';
import { described, layoutOf, outputQuery, queryWeights } from './layout.js';
import { targetOf } from './targets.js';
/** @import { Context } from './form.js' */
/** @import { About } from './index.js' */

/**
 * What each layer contributes: its fused attention F as a F + (1 - a) I, with rows renormalised.
 * @typedef {{isOfValues: boolean, share: number, fusion: string, discard: number}} Chain isOfValues: weights count by how much they move
 */

/** One layer back: the row times its matrix. @param {Context} context @param {number} layer @param {Chain} chain @param {Float64Array} row */
function carried(context, layer, { isOfValues, share, fusion, discard }, row) {
  const { first, patches } = layoutOf(context);
  const size = row.length;
  const { norms } = context.traced.layers[layer].layer;
  if (isOfValues && !norms) throw new Error(unknownNorms(layer));
  const attention = fusedRows(context, layer, fusion, { norms: isOfValues ? norms : null });
  const dropped = Math.floor(discard * patches + 1e-9); // 0.29 * 100 is 28.999999999999996
  const result = new Float64Array(size);
  for (let query = 0; query < size; query++) {
    if (!row[query]) continue;
    const weights = attention.subarray(query * size, (query + 1) * size);
    if (isOfValues) {
      const whole = weights.reduce((sum, value) => sum + value, 0) || 1;
      for (let key = 0; key < size; key++) weights[key] /= whole;
    }
    if (dropped) {
      const order = Array.from({ length: patches }, (_, i) => first + i).sort(
        (a, b) => weights[a] - weights[b] || a - b,
      );
      for (const key of order.slice(0, dropped)) weights[key] = 0;
    }
    const norm = share * weights.reduce((sum, value) => sum + value, 0) + 1 - share;
    if (norm === 0) {
      result[query] += row[query]; // nothing is left in the row: the token keeps what it has
      continue;
    }
    const scaled = row[query] / norm;
    for (let key = 0; key < size; key++) result[key] += share * scaled * weights[key];
    result[query] += (1 - share) * scaled;
  }
  return result;
}

/** What the answer reads beside the tokens of a query that stands for it, in a sentence; '' for nothing. @param {Context} context @param {string} query */
function leftOut(context, query) {
  const { pool_concat: joins } = context.engine.model.config;
  return joins && query === 'class'
    ? 'The answer also reads the mean of the patches, which this map leaves out.'
    : '';
}

/**
 * What a chain carries from the query to each patch. Of a pool that itself lies on patches the change is drawn.
 * @param {Context} context @param {Chain} chain @param {[number, number]} layers the first, and behind the last one @param {string} name
 * @param {About} about
 */
async function chainMap(context, chain, [from, end], name, about) {
  const query = about.query ?? outputQuery(context);
  const { first } = layoutOf(context);
  const start = queryWeights(context, query);
  let row = start;
  for (let layer = end - 1; layer >= from; layer--) {
    row = carried(context, layer, chain, row);
    await context.step((end - layer) / (end - from));
  }
  const isChange = query === 'pool' && start.subarray(first).some((weight) => weight);
  const map = patchMap(context, isChange ? row.map((value, i) => value - start[i]) : row, {
    unit: 'share of the query',
    range: [isChange ? -1 : 0, 1],
    method: name,
    classBlind: true,
    signed: isChange,
    caption: `${name} through layers ${from}-${end - 1}: ${described(context, query)} draws on`,
    note: [
      isChange ? "Drawn is the change against the pool's own weights, which lie on the patches." : '',
      leftOut(context, query),
    ]
      .filter(Boolean)
      .join(' '),
  });
  return { ...map, prefix: Object.fromEntries(Object.keys(map.prefix).map((token, i) => [token, row[i]])) };
}

/** @param {Context} context @param {{attention_share: number, discard: number, head_fusion: string, first: number, last: number}} options @param {About} about */
function rollout(context, { attention_share: share, discard, head_fusion: fusion, first, last }, about) {
  const depth = context.traced.layers.length;
  const [low, high] = [first, last].map((i) => (i < 0 ? Math.max(0, i + depth) : Math.min(i, depth - 1)));
  const chain = { isOfValues: false, share, fusion, discard };
  return chainMap(context, chain, [Math.min(low, high), high + 1], 'rollout', about);
}

/** @param {Context} context @param {{attention_share: number}} options @param {About} about */
function valueRollout(context, { attention_share: share }, about) {
  const chain = { isOfValues: true, share, fusion: 'mean', discard: 0 };
  return chainMap(context, chain, [0, context.traced.layers.length], 'value-aware rollout', about);
}

/** @param {Context} context @param {{}} _options @param {About} about */
function lastLayerAttention(context, _options, about) {
  targetOf(context, about.target);
  const layer = context.traced.layers.length - 1;
  const query = about.query ?? outputQuery(context);
  const map = look(context, { layer, head: 'mean', direction: 'row', norm: false }, { query });
  return { ...map, note: leftOut(context, query) };
}

const SHARE = { usual: 0.5, low: 0, high: 1 };
const LAYER = { low: -4095, high: 4095, isWhole: true };

/** @type {import('./index.js').Table} */
export const ROLLOUT = {
  rollout: {
    needs: 'pass',
    takesQuery: true,
    options: {
      attention_share: SHARE,
      discard: { usual: 0, low: 0, high: 0.95 },
      head_fusion: ['mean', 'max', 'min'],
      first: { usual: 0, ...LAYER },
      last: { usual: -1, ...LAYER },
    },
    answer: rollout,
    says: mapWords,
  },
  value_rollout: {
    needs: 'pass',
    takesQuery: true,
    options: { attention_share: SHARE },
    answer: valueRollout,
    says: mapWords,
  },
  attention: {
    needs: 'pass',
    takesQuery: true,
    takesTarget: true,
    answer: lastLayerAttention,
    says: mapWords,
  },
};
