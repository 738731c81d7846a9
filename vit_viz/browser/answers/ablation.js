// What a head is for: the change of the answer when it is switched off, from vit_viz/analyses/ablation.py.

import { withHead } from '../edits.js';
import { scoreOf } from './following.js';
import { answerOf, flags, numbers } from './form.js';
/** @import { Context } from './form.js' */

const HOW = /** @type {const} */ (['zero', 'mean', 'uniform']);

/**
 * Each head is switched off alone; a pass starts from what enters the layer of its head. The last layers come first: theirs are short.
 * @param {Context} context @param {{how: (typeof HOW)[number]}} options @param {{target: string | null}} about
 */
async function ablation(context, { how }, { target }) {
  const { engine, traced } = context;
  const { heads, layers, residual, grid, logits } = traced;
  const { of, words } = scoreOf(context, target);
  const edits = engine.editsOf(traced);
  const values = new Float32Array(layers.length * heads);
  const known = new Uint8Array(values.length);
  const table = () => ({
    values: numbers([layers.length, heads], values),
    unit: `change of the ${words}`,
    value_range: [-Infinity, Infinity],
    signed: true,
    method: `head ablation (${how})`,
    note: 'Target without the head minus target with it: below 0 where the head helps.',
  });
  const far = () =>
    answerOf(
      { question: 'ablation', parameters: {} },
      { table: table(), known: flags([layers.length, heads], known) },
      '',
    );
  for (let done = 0; done < values.length; done++) {
    await context.step(done / values.length, far);
    const layer = layers.length - 1 - Math.floor(done / heads);
    const head = done % heads;
    const changed = withHead(edits, layer, head, how === 'zero' ? 'off' : how);
    const outputs = engine.model.outputs(residual[layer], layer, grid, changed);
    values[layer * heads + head] = of(outputs) - of(logits);
    known[layer * heads + head] = 1;
  }
  return table();
}

/** @type {import('./index.js').Table} */
export const ABLATION = {
  ablation: { needs: 'pass', options: { how: HOW }, takesTarget: true, answer: ablation },
};
