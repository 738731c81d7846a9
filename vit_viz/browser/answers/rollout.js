// Maps that are blind to the class, as a row carried through the layers: vit_viz/analyses/rollout.py and chains.py.

import { fusedRows, look, mapWords, patchMap, unknownNorms } from './attention.js';
import { described, layoutOf, outputQuery, queryWeights } from './layout.js';
import { targetOf } from './targets.js';
/** @import { Context } from './form.js' */
/** @import { About } from './index.js' */

/**
 * What each layer contributes, of one matrix F of all its heads, [queries, keys]: a F + (1 - a) I with rows renormalised, or F + I where there
 * is no share a. Of each row of F a part of the patches may be dropped, the lowest.
 * @typedef {{fused: (layer: number) => Float64Array, share: number | null, discard?: number}} Chain
 */

/** One layer back: the row times its matrix. @param {Context} context @param {number} layer @param {Chain} chain @param {Float64Array} row */
function carried(context, layer, { fused, share, discard = 0 }, row) {
  const { first, patches } = layoutOf(context);
  const size = row.length;
  const attention = fused(layer);
  const dropped = Math.floor(discard * patches + 1e-9); // 0.29 * 100 is 28.999999999999996
  const result = new Float64Array(size);
  for (let query = 0; query < size; query++) {
    if (!row[query]) continue;
    const weights = attention.subarray(query * size, (query + 1) * size);
    if (dropped) {
      const order = Array.from({ length: patches }, (_, i) => first + i).sort(
        (a, b) => weights[a] - weights[b] || a - b,
      );
      for (const key of order.slice(0, dropped)) weights[key] = 0;
    }
    if (share === null) {
      for (let key = 0; key < size; key++) result[key] += row[query] * weights[key];
      result[query] += row[query];
      continue;
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
export function leftOut(context, query) {
  const { pool_concat: joins } = context.engine.model.config;
  return joins && query === 'class'
    ? 'The answer also reads the mean of the patches, which this map leaves out.'
    : '';
}

/**
 * What a chain carries from the query to each patch. Of a pool that itself lies on patches the change is drawn.
 * @param {Context} context @param {Chain} chain @param {[number, number]} layers the first, and behind the last one @param {About} about
 * @param {{name: string, start?: Float64Array, towards?: string}} method start: where the row starts, where that is not the query alone;
 *     towards: what is explained, in words, where the map is not the same for every class
 */
export async function chainMap(context, chain, [from, end], about, { name, start: own, towards }) {
  const query = about.query ?? outputQuery(context);
  const { first } = layoutOf(context);
  const start = own ?? queryWeights(context, query);
  let row = start;
  for (let layer = end - 1; layer >= from; layer--) {
    row = carried(context, layer, chain, row);
    await context.step((end - layer) / (end - from));
  }
  const isChange = query === 'pool' && start.subarray(first).some((weight) => weight);
  const isShare = chain.share !== null; // else what is added to the row, which is never less than 0
  const values = isChange ? row.map((value, i) => value - start[i]) : row;
  const isUsual = [null, 'pool'].includes(about.query);
  const words = towards
    ? `${isUsual ? '' : `, from ${described(context, query)}`}, towards the ${towards}`
    : `: ${described(context, query)} draws on`;
  const map = patchMap(context, isShare ? values : values.map((value) => Math.max(0, value)), {
    unit: isShare ? 'share of the query' : 'relevance',
    range: [isShare && isChange ? -1 : 0, isShare ? 1 : Infinity],
    method: name,
    classBlind: !towards,
    signed: isShare && isChange,
    caption: `${name} through layers ${from}-${end - 1}${words}`,
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
  const chain = {
    fused: (/** @type {number} */ layer) => fusedRows(context, layer, fusion),
    ...{ share, discard },
  };
  return chainMap(context, chain, [Math.min(low, high), high + 1], about, { name: 'rollout' });
}

/** @param {Context} context @param {{attention_share: number}} options @param {About} about */
function valueRollout(context, { attention_share: share }, about) {
  const { layers, tokens } = context.traced;
  /** By how much weights move, each row divided by its sum. */
  const fused = (/** @type {number} */ layer) => {
    const { norms } = layers[layer].layer;
    if (!norms) throw new Error(unknownNorms(layer));
    const rows = fusedRows(context, layer, 'mean', { norms });
    for (let start = 0; start < rows.length; start += tokens) {
      const row = rows.subarray(start, start + tokens);
      const whole = row.reduce((sum, value) => sum + value, 0) || 1;
      row.forEach((value, key) => (row[key] = value / whole));
    }
    return rows;
  };
  return chainMap(context, { fused, share }, [0, layers.length], about, { name: 'value-aware rollout' });
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
