// Maps of what the last attention reads of the patches, and of the gradient there: vit_viz/analyses/cams.py and grad_eclip.py.

import { mapWords, patchMap } from './attention.js';
import { gradientsOf, roundedWords } from './gradients.js';
import { described, layoutOf, outputQuery, queryWeights } from './layout.js';
import { startOf } from './relevance.js';
import { leftOut } from './rollout.js';
import { cosines } from './tokens.js';
import { tokenStates } from './vectors.js';
/** @import { Context } from './form.js' */
/** @import { Gradients } from './gradients.js' */
/** @import { About, Question } from './index.js' */

/**
 * From a and g, each [patches, dim], to one number of each patch.
 * @typedef {(a: Float32Array, g: Float32Array, dim: number) => Float64Array} Combine
 */

/** One weight of each channel. @param {Float32Array} a @param {Float64Array} weights */
function weighted(a, weights) {
  const dim = weights.length;
  return Float64Array.from({ length: a.length / dim }, (_, patch) =>
    weights.reduce((sum, weight, c) => sum + weight * a[patch * dim + c], 0),
  );
}

/** Sums over the patches, [dim]. @param {ArrayLike<number>} values @param {number} dim */
function sumsOf(values, dim) {
  const sums = new Float64Array(dim);
  for (let i = 0; i < values.length; i++) sums[i % dim] += values[i];
  return sums;
}

/** Each patch by itself. @param {(a: number, g: number) => number} part @returns {Combine} */
function each(part) {
  return (a, g, dim) => {
    const sums = new Float64Array(a.length / dim);
    a.forEach((value, i) => (sums[Math.floor(i / dim)] += part(value, g[i])));
    return sums;
  };
}

/** @type {Record<string, [name: string, Combine]>} */
const KINDS = {
  gradcam: [
    'Grad-CAM',
    (a, g, dim) =>
      weighted(
        a,
        sumsOf(g, dim).map((sum) => (sum * dim) / g.length),
      ),
  ],
  hirescam: ['HiResCAM', each((a, g) => a * g)],
  layercam: ['LayerCAM', each((a, g) => a * Math.max(0, g))],
  xgradcam: [
    'XGrad-CAM',
    (a, g, dim) => {
      const along = sumsOf(
        Float64Array.from(a, (value, i) => value * g[i]),
        dim,
      );
      return weighted(
        a,
        sumsOf(a, dim).map((sum, c) => (sum ? along[c] / sum : 0)),
      );
    },
  ],
};

/** @param {string} name @param {Combine} combine @returns {Question} */
function cam(name, combine) {
  /** @param {Context} context @param {{}} _options @param {About} about */
  const answer = async (context, _options, { target }) => {
    const { read, words } = await gradientsOf(context, target);
    const dim = read.g.length / context.traced.tokens;
    const [a, g] = [read.values, read.g].map((one) => one.subarray(layoutOf(context).first * dim));
    return above0(context, combine(a, g, dim), {
      ...{ unit: 'activation towards the target', method: `token ${name}`, note: roundedWords(context) },
      caption: `${name} on the tokens that enter the last attention, towards the ${words}`,
    });
  };
  return { needs: 'pass', takesTarget: true, answer, says: mapWords };
}

/** A map of what lies above 0. @param {Context} context @param {Float64Array} values [patches] @param {{unit: string, method: string, note: string, caption: string}} words */
function above0(context, values, words) {
  const all = new Float64Array(context.traced.tokens);
  all.set(
    values.map((value) => Math.max(0, value)),
    layoutOf(context).first,
  );
  return { ...patchMap(context, all, { ...words, range: [0, Infinity], classBlind: false }), prefix: {} };
}

/** @param {Context} context @param {{}} _options @param {About} about */
async function gradEclip(context, _options, about) {
  const gradients = await gradientsOf(context, about.target);
  const query = about.query ?? outputQuery(context);
  const { first, patches } = layoutOf(context);
  const values = new Float64Array(patches);
  for (const [gathered, fit] of askingOf(context, gradients, query)) {
    const shown = fit.slice(first, first + patches);
    const [low, high] = [Math.min(...shown), Math.max(...shown)];
    shown.forEach((cosine, i) => {
      values[i] += (high > low ? (cosine - low) / (high - low) : 1) * gathered[first + i];
    });
  }
  return above0(context, values, {
    ...{ unit: 'part of the target, weighted', method: 'Grad-ECLIP' },
    caption: `Grad-ECLIP from the ${described(context, query)}, towards the ${gradients.words}`,
    note: [leftOut(context, query), roundedWords(context)].filter(Boolean).join(' '),
  });
}

/**
 * Of each token of a query, or of the pool's own: what the gradient says of each token's values over all heads, and the cosines of its query with the keys, all heads as one vector.
 * @param {Context} context @param {Gradients} gradients @param {string} query
 */
function askingOf(context, gradients, query) {
  const { tokens, layers } = context.traced;
  const { pool } = gradients;
  if (query === 'pool' && pool)
    return [[sumsOf(pool.slopes, tokens), cosines(pool.keys, pool.query, tokens)]];
  const weights = queryWeights(context, query);
  const asking = [...weights.keys()].filter((token) => weights[token]);
  if (asking.length > 1 && asking.some((token) => token >= layoutOf(context).first))
    throw new Error(
      `Grad-ECLIP needs a query of the output, and this one is read from the ${described(context, query)}: ` +
        'relevance and LeGrad need none.',
    );
  startOf(context, gradients, query); // which refuses a token that the target is not read from
  const last = layers.length - 1;
  const { g, v } = gradients.layers[last];
  const [queries, keys] = [tokenStates(context, 'queries')[last], tokenStates(context, 'keys')[last]];
  return asking.map((token) => {
    const [slopes, asked] = [g, queries].map((of) => rowOf(of, token, tokens));
    return [weighted(v, Float64Array.from(slopes)), cosines(keys, asked, tokens)];
  });
}

/** The numbers of one token. @param {Float32Array} values [tokens, dim] @param {number} token @param {number} tokens */
function rowOf(values, token, tokens) {
  const dim = values.length / tokens;
  return values.subarray(token * dim, (token + 1) * dim);
}

/** @type {import('./index.js').Table} */
export const CAMS = {
  ...Object.fromEntries(
    Object.entries(KINDS).map(([question, [name, combine]]) => [question, cam(name, combine)]),
  ),
  grad_eclip: { needs: 'pass', takesQuery: true, takesTarget: true, answer: gradEclip, says: mapWords },
};
