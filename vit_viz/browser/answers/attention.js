// What a token looks at in one layer, or in every head of every layer: vit_viz/analyses/attention.py.

import { Attention, Places } from '../attend.js';
import { numbers } from './form.js';
import { cropBox, described, layoutOf, outputQuery, queryWeights } from './layout.js';
import { isEven } from './words.js';
/** @import { Context } from './form.js' */

/**
 * The attention of the heads of a layer, [queries, keys], one after the other; the numbers are good until the next head.
 * @param {Context} context @param {number} layer @param {(attention: Float32Array, head: number, at: number) => void} see
 * @param {number} [only] the head; else all
 */
export function eachHead({ engine, traced }, layer, see, only) {
  const { machine, parameters } = engine.model;
  const { tokens, grid, layers } = traced;
  machine.within(() => {
    const places = new Places(parameters, grid);
    const attention = new Attention(parameters, `blocks.${layer}.attn`, places, tokens);
    const seen = (/** @type {number} */ at, /** @type {number} */ h) =>
      see(machine.view(at, tokens ** 2), h, at);
    attention.eachHead(layers[layer], engine.editsOf(traced).get(layer), seen, only);
  });
}

export const DIRECTION = /** @type {const} */ (['row', 'column']);
const FUSIONS = ['mean', 'max', 'min'];

/** One head of one layer, or how heads are fused. */
export const ONE_HEAD = {
  layer: { usual: -1, low: -999, high: 999, isWhole: true, isLayer: true },
  head: {
    usual: 'mean',
    pattern: /^(\d{1,3}|mean|max|min)$/,
    sentence: 'One head, counted from 0, or how heads are fused: mean, max, min.',
  },
};

/** Whether the layer is there; of the head, its number, undefined for all of them. @param {Context} context @param {number} layer @param {string} head */
export function checkedHead({ traced }, layer, head) {
  const { layers, heads } = traced;
  if (layer < 0 || layer >= layers.length)
    throw new Error(`Layer ${layer} does not exist: this model has layers 0-${layers.length - 1}.`);
  if (FUSIONS.includes(head)) return undefined;
  if (Number(head) >= heads)
    throw new Error(`Head ${Number(head)} does not exist: this model has heads 0-${heads - 1}.`);
  return Number(head);
}

/** Heads to one, [tokens]. @param {Float64Array[]} parts of each head @param {string} fusion */
export function fused(parts, fusion) {
  return parts[0].map((_, i) => {
    const values = parts.map((one) => one[i]);
    if (fusion === 'max') return Math.max(...values);
    if (fusion === 'min') return Math.min(...values);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  });
}

/**
 * A head, or all of a layer fused, [queries, keys].
 * @param {Context} context @param {number} layer @param {string} fusion
 * @param {{only?: number, norms?: Float32Array | null}} [of] norms: by which each weight is multiplied, [heads, keys]
 */
export function fusedRows(context, layer, fusion, { only, norms = null } = {}) {
  const { tokens, heads } = context.traced;
  const whole = new Float64Array(tokens * tokens).fill(fusion === 'min' ? Infinity : 0);
  const [isMost, isLeast] = [fusion === 'max', fusion === 'min'];
  const share = only === undefined ? 1 / heads : 1;
  eachHead(
    context,
    layer,
    (attention, h) => {
      for (let i = 0; i < whole.length; i++) {
        const weight = norms ? attention[i] * norms[h * tokens + (i % tokens)] : attention[i];
        if (isMost) whole[i] = Math.max(whole[i], weight);
        else if (isLeast) whole[i] = Math.min(whole[i], weight);
        else whole[i] += weight * share;
      }
    },
    only,
  );
  return whole;
}

/**
 * Rows or columns of a query per head, each [tokens]: sum_i w_i A[i, :] or sum_j w_j A[:, j].
 * @param {Context} context @param {number} layer @param {Float64Array} weights of the query @param {'row' | 'column'} direction
 * @param {number} [head] that alone @param {boolean} [isWeighted] by how much each value moves
 */
export function gathered(context, layer, weights, direction, head, isWeighted = false) {
  const { tokens, layers } = context.traced;
  const { norms } = layers[layer].layer;
  if (isWeighted && !norms) throw new Error(unknownNorms(layer));
  const support = [...weights.keys()].filter((token) => weights[token]);
  const parts = /** @type {Float64Array[]} */ ([]);
  eachHead(
    context,
    layer,
    (attention, h) => {
      const sum = new Float64Array(tokens);
      const sizeOf = (/** @type {number} */ key) => (isWeighted && norms ? norms[h * tokens + key] : 1);
      for (const token of support) {
        const weight = weights[token] * (direction === 'row' ? 1 : sizeOf(token));
        const [start, step] = direction === 'row' ? [token * tokens, 1] : [token, tokens];
        for (let i = 0, at = start; i < tokens; i++, at += step) sum[i] += weight * attention[at];
      }
      parts.push(direction === 'row' ? sum.map((value, key) => value * sizeOf(key)) : sum);
    },
    head,
  );
  return parts;
}

/** @param {number} layer */
export function unknownNorms(layer) {
  return `The output projection of layer ${layer} is not known: no linear layer reads the attention's output directly.`;
}

/** A head or a fusion in words. @param {string} head */
export function headWords(head) {
  return FUSIONS.includes(head) ? `${head} over heads` : `head ${Number(head)}`;
}

/**
 * A number of each token as a map: on the patches, and on the tokens before them.
 * @param {Context} context @param {ArrayLike<number>} values [tokens]
 * @param {{unit: string, range: [number, number], method: string, classBlind: boolean, caption: string, note?: string,
 *     signed?: boolean}} about
 */
export function patchMap(
  context,
  values,
  { unit, range, method, classBlind, caption, note = '', signed = false },
) {
  const { grid, prefix, first, patches } = layoutOf(context);
  return {
    values: numbers(grid, Array.prototype.slice.call(values, first, first + patches)),
    unit,
    value_range: range,
    signed,
    method,
    class_blind: classBlind,
    prefix: Object.fromEntries(prefix.map((name, i) => [name, values[i]])),
    crop_box: cropBox(context.traced),
    caption,
    note,
    suffix: {},
    stability: null,
  };
}

/** On how few patches half of a map lies, and which has most. @param {{values: import('./form.js').Floats, signed: boolean}} map */
export function mapWords({ values: { data: values, shape }, signed }) {
  const most = values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
  if (isEven(values)) return 'The map is the same everywhere: it has no peak.';
  const above = Float64Array.from(values, (value) => Math.max(0, value))
    .sort()
    .reverse();
  const whole = above.reduce((sum, value) => sum + value, 0);
  if (!whole) return '';
  let [sum, half] = [0, 0];
  while (sum < whole / 2) sum += above[half++];
  const place = `(${Math.floor(most / shape[1])}, ${most % shape[1]})`;
  const what = signed ? 'what is above 0' : 'the map';
  return `Half of ${what} lies on ${half} of ${values.length} patches; most on patch ${place}.`;
}

/**
 * @param {Context} context @param {{layer: number, head: string, direction: 'row' | 'column', norm: boolean}} options
 * @param {{query: string | null}} about
 */
export function look(context, { layer, head, direction, norm }, about) {
  const only = checkedHead(context, layer, head);
  const query = about.query ?? outputQuery(context);
  const parts = gathered(context, layer, queryWeights(context, query), direction, only, norm);
  const unit = norm ? 'attention weight x size of the value' : 'attention weight';
  const words = direction === 'row' ? 'looks at' : 'is looked at by';
  return patchMap(context, fused(parts, only === undefined ? head : 'mean'), {
    unit,
    range: [0, norm ? Infinity : 1],
    method: `${norm ? unit : 'attention'} (${direction})`,
    classBlind: true,
    caption: `layer ${layer}, ${headWords(head)}: ${described(context, query)} ${words}`,
  });
}

/** @param {Context} context @param {{direction: 'row' | 'column'}} options @param {{query: string | null}} about */
async function mosaic(context, { direction }, { query }) {
  const { grid, first, patches } = layoutOf(context);
  const { layers, heads } = context.traced;
  const weights = queryWeights(context, query ?? outputQuery(context));
  const values = new Float32Array(layers.length * heads * patches);
  for (let layer = 0, at = 0; layer < layers.length; layer++) {
    for (const part of gathered(context, layer, weights, direction)) {
      values.set(part.subarray(first, first + patches), at);
      at += patches;
    }
    await context.step((layer + 1) / layers.length);
  }
  return { values: numbers([layers.length, heads, ...grid], values) };
}

/** @type {import('./index.js').Table} */
export const ATTENTION = {
  look: {
    needs: 'pass',
    takesQuery: true,
    options: { direction: DIRECTION, norm: false, ...ONE_HEAD },
    answer: look,
    says: mapWords,
  },
  mosaic: { needs: 'pass', takesQuery: true, options: { direction: DIRECTION }, answer: mosaic },
};
