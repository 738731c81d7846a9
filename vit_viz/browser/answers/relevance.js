// Attention through the layers towards a class: relevance and gradient rollout, as row chains, and LeGrad; vit_viz/analyses/relevance.py.

import { Backward, slopesOf } from '../backward.js';
import { mapWords, patchMap } from './attention.js';
import { behindGradients, gradientsOf, influence, roundedWords } from './gradients.js';
import { described, layoutOf, outputQuery, queryWeights, tokenName } from './layout.js';
import { chainMap } from './rollout.js';
import { describedTarget, targetOf, weightsOf } from './targets.js';
/** @import { Context } from './form.js' */
/** @import { Gradients } from './gradients.js' */
/** @import { About } from './index.js' */

const FEW = 2; // a class token and a distillation token; more are a pool over patches

/** @param {Context} context @param {{}} _options @param {About} about */
async function relevance(context, _options, about) {
  const gradients = await gradientsOf(context, about.target);
  const start = startOf(context, gradients, about.query ?? outputQuery(context));
  return towards(context, gradients, null, about, { name: 'relevance', start });
}

/** @param {Context} context @param {{}} _options @param {About} about */
async function gradientRollout(context, _options, about) {
  const gradients = await gradientsOf(context, about.target);
  return towards(context, gradients, 0.5, about, { name: 'gradient rollout' });
}

/** @param {Context} context @param {Gradients} gradients @param {number | null} share of the attention @param {About} about @param {{name: string, start?: Float64Array}} method */
async function towards(context, { layers, words }, share, about, method) {
  const fused = (/** @type {number} */ layer) => influence(context, layer, layers[layer]);
  const named = { ...method, towards: words };
  const map = await chainMap(behindGradients(context), { fused, share }, [0, layers.length], about, named);
  return { ...map, note: [map.note, roundedWords(context)].filter(Boolean).join(' ') };
}

/** Where relevance starts: of a learned pool its influence, else the query, whose tokens the target has to be read from. @param {Context} context @param {Gradients} gradients @param {string} query */
export function startOf(context, { layers, pool }, query) {
  const { tokens, heads } = context.traced;
  if (query === 'pool' && pool) {
    const start = new Float64Array(tokens);
    pool.slopes.forEach((slope, i) => (start[i % tokens] += Math.max(0, slope * pool.weights[i]) / heads));
    return start;
  }
  const start = queryWeights(context, query);
  const { g } = layers[layers.length - 1];
  const dim = g.length / tokens;
  const isRead = (/** @type {number} */ token) =>
    g.subarray(token * dim, (token + 1) * dim).some((value) => value);
  const own = [...start.keys()].filter((token) => start[token]);
  const first = [...start.keys()].findIndex(isRead);
  if (own.length > FEW || own.some(isRead) || first < 0) return start;
  const { first: patches, grid } = layoutOf(context);
  const patch = first - patches;
  const other = patch < 0 ? tokenName(context, first) : `${Math.floor(patch / grid[1])},${patch % grid[1]}`;
  throw new Error(
    `The target is not read from ${described(context, query)}: it does not change with that token after the last layer. ` +
      `Ask for a token that it is read from, such as query="${other}".`,
  );
}

/** @param {Context} context @param {{}} _options @param {About} about */
async function legrad(context, _options, { target }) {
  const { engine, traced } = context;
  const { model } = engine;
  const { machine, config } = model;
  const { tokens, heads, layers, residual } = traced;
  const chosen = targetOf(context, target);
  const weights = weightsOf(context, chosen);
  const backward = new Backward(model, traced, engine.editsOf(traced));
  const total = new Float64Array(tokens);
  for (let layer = 0; layer < layers.length; layer++) {
    const { g, v } = backward.slopes(layer, backward.outputs(residual[layer + 1], weights).g, false);
    machine.within(() => {
      const [gAt, vAt] = [g, v].map((one) => machine.place(one));
      for (let h = 0; h < heads; h++)
        machine.within(() => {
          const at = slopesOf(model, tokens, h, gAt, vAt, config.embed_dim);
          machine
            .view(at, tokens ** 2)
            .forEach((slope, i) => (total[i % tokens] += Math.max(0, slope) / (heads * tokens)));
        });
    });
    await context.step((layer + 1) / layers.length);
  }
  return patchMap(context, total, {
    ...{ unit: 'sensitivity of the target', range: [0, Infinity], method: 'LeGrad', classBlind: false },
    caption: `LeGrad, summed over layers 0-${layers.length - 1}, towards the ${describedTarget(context, chosen)}`,
    note: roundedWords(context),
  });
}

/** @type {import('./index.js').Table} */
export const RELEVANCE = {
  relevance: { needs: 'pass', takesQuery: true, takesTarget: true, answer: relevance, says: mapWords },
  gradient_rollout: {
    needs: 'pass',
    takesQuery: true,
    takesTarget: true,
    answer: gradientRollout,
    says: mapWords,
  },
  legrad: { needs: 'pass', takesTarget: true, answer: legrad, says: mapWords },
};
