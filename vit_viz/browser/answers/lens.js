// What each patch would say if the output were read from it: vit_viz/analyses/lens.py.

import { poolMlp } from '../config.js';
import { shown } from '../outputs.js';
import { indices, numbers } from './form.js';
import { layoutOf, tokenMaps } from './layout.js';
import { hasClasses, kindOf, outputName, targetOf } from './targets.js';
import { stateNames } from './tokens.js';
/** @import { Model } from '../model.js' */
/** @import { Context } from './form.js' */

const PROBE =
  'A probe: the head was trained on the pooled output after the last layer only; what it says of one patch, or of an earlier layer, ' +
  'is an extrapolation.';

export const UNITS = { softmax: 'probability', sigmoid: 'probability (sigmoid)', value: 'value' };

/**
 * The model's outputs if each of these tokens were all that they are read from.
 * @param {Model} model @param {Float32Array} tokens [tokens, dim] @param {number} count @returns {Float32Array[]} of each token
 */
export function readAlone(model, tokens, count) {
  const { machine, config, parameters } = model;
  const { run } = machine;
  const dim = config.embed_dim;
  return machine.within(() => {
    let x = machine.place(tokens);
    if (config.final_norm) x = parameters.norm('norm', x, count, dim);
    if (config.pooling === 'attention') {
      const kv = parameters.linear('attn_pool.kv', x, count); // a pool over one token has weight 1
      const values = machine.room(count * dim);
      run.copy(kv + 4 * dim, 2 * dim, values, dim, count, dim);
      x = parameters.linear('attn_pool.proj', values, count);
      const normed = parameters.norm('attn_pool.norm', x, count, dim);
      run.add(x, parameters.mlp('attn_pool.mlp', normed, count, poolMlp(config)), 0, count, dim);
    }
    let width = dim;
    if (config.pool_concat) {
      width = 2 * dim;
      const both = machine.room(count * width);
      for (const side of [0, 4 * dim]) run.copy(x, dim, both + side, width, count, dim);
      x = both;
    }
    if (config.fc_norm) x = parameters.norm('fc_norm', x, count, dim);
    if (!config.num_classes) return rowsOf(machine.read(x, count * width), width);
    const heads = config.dist_head ? ['head', 'head_dist'] : ['head'];
    const [own, other] = heads.map((name) =>
      machine.read(parameters.linear(name, x, count), count * config.num_classes),
    );
    return rowsOf(other ? own.map((value, i) => (value + other[i]) / 2) : own, config.num_classes);
  });
}

/** @param {Float32Array} values @param {number} width */
function rowsOf(values, width) {
  return Array.from({ length: values.length / width }, (_, i) => values.subarray(i * width, (i + 1) * width));
}

/** @param {Context} context @param {{}} _options @param {import('./index.js').About} about */
async function logitLens(context, _options, { target }) {
  const { engine, traced } = context;
  const { residual, tokens, logits } = traced;
  const [names, states] = [stateNames(context), residual.length];
  const said = async (/** @type {number} */ state) => {
    await context.step(state / states);
    return readAlone(engine.model, residual[state], tokens);
  };
  const about = { method: 'logit lens', note: PROBE };
  const none = { top: null, top_probability: null, words: {} };
  if (!hasClasses(context)) {
    const values = [];
    for (let state = 0; state < states; state++)
      values.push((await said(state)).map((one) => cosine(one, logits)));
    const unit = "cosine with the image's own embedding";
    return {
      maps: tokenMaps(context, values, names, { ...about, unit, range: [-1, 1], signed: true }),
      ...none,
    };
  }
  const { index, other } = targetOf(context, target);
  if (other !== null) throw new Error('The lens shows one class: pass its index or its name.');
  const kind = kindOf(context);
  const { first, patches, grid } = layoutOf(context);
  const [chosen, best, sure] = [
    /** @type {number[][]} */ ([]),
    /** @type {number[]} */ ([]),
    /** @type {number[]} */ ([]),
  ];
  for (let state = 0; state < states; state++) {
    const scores = (await said(state)).map((one) => shown(one, kind));
    chosen.push(scores.map((one) => one[index]));
    for (const one of scores.slice(first, first + patches)) {
      const top = one.reduce((most, value, i) => (value > one[most] ? i : most), 0);
      best.push(top);
      sure.push(one[top]);
    }
  }
  const isValue = kind === 'value';
  const range = /** @type {[number, number]} */ (isValue ? [-Infinity, Infinity] : [0, 1]);
  const maps = tokenMaps(context, chosen, names, { ...about, unit: UNITS[kind], range, signed: isValue });
  if (isValue) return { maps, ...none };
  return {
    maps,
    top: indices([states, ...grid], best),
    top_probability: numbers([states, ...grid], sure),
    words: Object.fromEntries([...new Set(best)].map((one) => [one, outputName(context, one)])),
  };
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function cosine(a, b) {
  let [dot, own, other] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    own += a[i] * a[i];
    other += b[i] * b[i];
  }
  return dot / Math.max(1e-8, Math.sqrt(own)) / Math.max(1e-8, Math.sqrt(other));
}

/** @type {import('./index.js').Table} */
export const LENS = { logit_lens: { needs: 'pass', takesTarget: true, answer: logitLens } };
