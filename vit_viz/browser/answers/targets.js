// What a question is about: an output of the model, by its number or its name; vit_viz/analyses/targets.py.

import { classNamed } from '../labels.js';
import { outputKind } from '../outputs.js';
import { dot } from './eigen.js';
/** @import { Context } from './form.js' */

/** @import { Output } from '../outputs.js' */

/** Whether outputs are scores of classes, and not an embedding. */
export function hasClasses(/** @type {Context} */ { engine }) {
  return engine.model.config.num_classes > 0;
}

/** What each output is. @param {Context} context @returns {Output} */
export function kindOf({ engine, traced }) {
  return outputKind(engine.output, traced.logits.length);
}

/** The name of an output; its number where names are not known. @param {Context} context @param {number} index */
export function outputName(context, index) {
  return context.engine.labels?.[index] ?? `${kindOf(context) === 'value' ? 'output' : 'class'} ${index}`;
}

/** The outputs that a target names, by their numbers. @param {Context} context @param {string} target @returns {number[]} */
export function outputsIn({ engine }, target) {
  const pair = /^(\d+)[-,](\d+)$/.exec(target);
  return (pair ? pair.slice(1) : [target]).map((one) =>
    /^\d+$/.test(one) ? Number(one) : classNamed(engine.labels, one),
  );
}

/**
 * The output that is explained, and the one that it is set against; without one the first choice. Throws a sentence where there is none.
 * @param {Context} context @param {string | null} target @returns {{index: number, other: number | null}}
 */
export function targetOf(context, target) {
  const { logits } = context.traced;
  if (target === null) return { index: logits.indexOf(Math.max(...logits)), other: null };
  const [index, other = null] = outputsIn(context, target);
  if (index === other) throw new Error(`A difference needs two classes, not class ${index} twice.`);
  if (!hasClasses(context))
    throw new Error(
      'This model has no classes: explain its similarity to an embedding, or pass no target for its own embedding.',
    );
  const [noun, nouns] = kindOf(context) === 'value' ? ['Output', 'outputs'] : ['Class', 'classes'];
  for (const one of [index, other])
    if (one !== null && one >= logits.length)
      throw new Error(`${noun} ${one} does not exist: this model has ${nouns} 0-${logits.length - 1}.`);
  return { index, other };
}

/** The target as weights of the outputs. @param {Context} context @param {ReturnType<typeof targetOf>} target */
export function weightsOf(context, { index, other }) {
  const { logits } = context.traced;
  if (!hasClasses(context)) {
    const size = Math.sqrt(dot(logits, logits)) || 1;
    return Float64Array.from(logits, (value) => value / size);
  }
  const weights = new Float64Array(logits.length);
  weights[index] = 1;
  if (other !== null) weights[other] -= 1;
  return weights;
}

/** A target in words: "logit of class 291 (lion)" where names are known. @param {Context} context @param {ReturnType<typeof targetOf>} target */
export function describedTarget(context, { index, other }) {
  if (!hasClasses(context)) return "size along the image's own embedding";
  const isValue = kindOf(context) === 'value';
  const name = (/** @type {number} */ one) => {
    const label = context.engine.labels?.[one];
    return `${isValue ? 'output' : 'logit of class'} ${one}${label === undefined ? '' : ` (${label})`}`;
  };
  return other === null ? name(index) : `${name(index)} minus ${name(other)}`;
}
