// The one number of the outputs that passes are compared by, as `Target` of vit_viz/analyses/targets.py has it.

import { shown } from '../outputs.js';
import { dot } from './eigen.js';
import { describedTarget, hasClasses, kindOf, targetOf } from './targets.js';
/** @import { Context } from './form.js' */

/** @typedef {{of: (outputs: Float32Array) => number, words: string, range: [number, number]}} Followed of: one number of all outputs */

/**
 * The logit of a class, the difference of two, or the size along the image's own embedding.
 * @param {Context} context @param {string | null} target @returns {Followed}
 */
export function scoreOf(context, target) {
  const range = /** @type {[number, number]} */ ([-Infinity, Infinity]);
  if (!hasClasses(context)) {
    const own = embeddingOf(context, target);
    const size = Math.sqrt(dot(own, own));
    return {
      of: (outputs) => dot(outputs, own) / size,
      words: describedTarget(context, { index: 0, other: null }),
      range,
    };
  }
  const { index, other } = targetOf(context, target);
  const words = describedTarget(context, { index, other });
  if (other === null) return { of: (outputs) => outputs[index], words, range };
  return { of: (outputs) => outputs[index] - outputs[other], words, range };
}

/**
 * What deletion and insertion follow: the probability of the class, the value, the lead over another, or the similarity to the image's own
 * embedding. @param {Context} context @param {string | null} target @returns {Followed}
 */
export function followedOf(context, target) {
  if (!hasClasses(context)) {
    const own = embeddingOf(context, target);
    const of = (/** @type {Float32Array} */ outputs) =>
      dot(outputs, own) / Math.sqrt(dot(outputs, outputs) * dot(own, own));
    return { of, words: 'cosine similarity to an embedding', range: [-1, 1] };
  }
  const { index, other } = targetOf(context, target);
  const kind = kindOf(context);
  if (other !== null || kind === 'value') return scoreOf(context, target);
  const what = kind === 'sigmoid' ? 'sigmoid' : 'probability';
  return {
    of: (outputs) => shown(outputs, kind)[index],
    words: `${what} of class ${numbered(context, index)}`,
    range: [0, 1],
  };
}

/** @param {Context} context @param {string | null} target */
function embeddingOf({ traced }, target) {
  if (target !== null)
    throw new Error(
      'This model has no classes: explain its similarity to an embedding, or pass no target for its own embedding.',
    );
  return traced.logits;
}

/** A class with its name beside it. @param {Context} context @param {number} index */
function numbered({ engine }, index) {
  const name = engine.labels?.[index];
  return name === undefined ? String(index) : `${index} (${name})`;
}
