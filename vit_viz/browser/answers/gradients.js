// The gradient of what is explained by the attention of every layer: one reverse pass, which all methods that read it share.

import { Backward, slopesOf } from '../backward.js';
import { eachHead } from './attention.js';
import { describedTarget, targetOf, weightsOf } from './targets.js';
/** @import { Slopes } from '../backward.js' */
/** @import { Traced } from '../engine.js' */
/** @import { Context } from './form.js' */

/**
 * layers: of each; read: what the last attention reads of each token, and the gradient by it; pool: see `Backward.outputs`; words: of the
 * target.
 * @typedef {{layers: Slopes[], read: {values: Float32Array, g: Float32Array}, pool: ReturnType<Backward['outputs']>['pool'],
 *     words: string}} Gradients
 */

const MOST = 2; // targets of a pass whose gradients are kept: a class, and another one that it is compared with
const SHARE = 0.75; // of the progress of a map
/** By the words of the target. @type {WeakMap<Traced, Map<string, Gradients>>} */
const KEPT = new WeakMap();

const ROUNDED =
  "The weights in this page are rounded to int8, so this map differs slightly from the app's (for mini, by up to 4% of its largest value).";

/** What a map of a gradient says where the model's weights are rounded. @param {Context} context */
export function roundedWords({ engine }) {
  return engine.isRounded ? ROUNDED : '';
}

/** @param {Context} context @param {string | null} target @returns {Promise<Gradients>} */
export async function gradientsOf(context, target) {
  const { engine, traced } = context;
  const chosen = targetOf(context, target);
  const words = describedTarget(context, chosen);
  const kept = KEPT.get(traced) ?? new Map();
  KEPT.set(traced, kept);
  const known = kept.get(words) ?? (await computed());
  kept.delete(words);
  kept.set(words, known);
  for (const oldest of kept.keys()) if (kept.size > MOST) kept.delete(oldest);
  return known;

  async function computed() {
    const { depth } = engine.model.config;
    const backward = new Backward(engine.model, traced, engine.editsOf(traced));
    const { g: last, pool } = backward.outputs(traced.residual[depth], weightsOf(context, chosen));
    const [other] = kept.values();
    const layers = new Array(depth);
    let read;
    for (let layer = depth - 1, g = last; layer >= 0; layer--) {
      await context.step((SHARE * (depth - 1 - layer)) / depth);
      const one = backward.block(layer, g, layer < depth - 1);
      layers[layer] = { g: one.slopes.g, v: other?.layers[layer].v ?? one.slopes.v };
      read ??= one.read;
      g = one.before;
    }
    return { layers, read, pool, words };
  }
}

/** What follows the gradients in the progress of a map. @param {Context} context @returns {Context} */
export function behindGradients({ engine, traced, step }) {
  return { engine, traced, step: (share) => step(SHARE + (1 - SHARE) * share) };
}

/** How much the target depends on each weight of attention by its size, E_h[(dA * A)+], [queries, keys]. @param {Context} context @param {number} layer @param {Slopes} slopes */
export function influence(context, layer, slopes) {
  const { tokens, heads } = context.traced;
  const { machine } = context.engine.model;
  const whole = new Float64Array(tokens ** 2);
  eachSlope(context, layer, slopes, (ofHead, weights) => {
    const attention = machine.view(weights, whole.length);
    for (let i = 0; i < whole.length; i++) {
      const part = attention[i] * ofHead[i];
      if (part > 0) whole[i] += part / heads;
    }
  });
  return whole;
}

/**
 * The gradient by the attention of each head, [queries, keys], with the address of that attention.
 * @param {Context} context @param {number} layer @param {Slopes} slopes @param {(ofHead: Float32Array, weights: number) => void} see
 */
function eachSlope(context, layer, { g, v }, see) {
  const { model } = context.engine;
  const { machine, config } = model;
  const { tokens } = context.traced;
  machine.within(() => {
    const [gAt, vAt] = [g, v].map((one) => machine.place(one));
    eachHead(context, layer, (_, h, weights) => {
      const at = slopesOf(model, tokens, h, gAt, vAt, config.embed_dim);
      see(machine.view(at, tokens ** 2), weights);
    });
  });
}
