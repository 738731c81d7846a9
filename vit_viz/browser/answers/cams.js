// Class activation maps on what the last attention reads of the patches, and the gradient by it: vit_viz/analyses/cams.py.

import { mapWords, patchMap } from './attention.js';
import { gradientsOf, roundedWords } from './gradients.js';
import { layoutOf } from './layout.js';
/** @import { Context } from './form.js' */
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
    const { first } = layoutOf(context);
    const { tokens } = context.traced;
    const dim = read.g.length / tokens;
    const [a, g] = [read.values, read.g].map((one) => one.subarray(first * dim));
    const values = new Float64Array(tokens);
    values.set(
      combine(a, g, dim).map((value) => Math.max(0, value)),
      first,
    );
    const map = patchMap(context, values, {
      ...{ unit: 'activation towards the target', range: [0, Infinity], method: `token ${name}` },
      ...{ classBlind: false, note: roundedWords(context) },
      caption: `${name} on the tokens that enter the last attention, towards the ${words}`,
    });
    return { ...map, prefix: {} };
  };
  return { needs: 'pass', takesTarget: true, answer, says: mapWords };
}

/** @type {import('./index.js').Table} */
export const CAMS = Object.fromEntries(
  Object.entries(KINDS).map(([question, [name, combine]]) => [question, cam(name, combine)]),
);
