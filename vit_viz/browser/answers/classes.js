// The model's answer in words: vit_viz/analyses/classes.py.

import { shown } from '../outputs.js';
import { numbers } from './form.js';
import { UNITS } from './lens.js';
import { hasClasses, kindOf, outputName } from './targets.js';
/** @import { Context } from './form.js' */

/** @param {Context} context @param {{count: number}} options @param {import('./index.js').About} about */
function classes(context, { count }, { model }) {
  const { logits } = context.traced;
  if (!hasClasses(context) && logits.length !== 1)
    throw new Error(`${model} has no classes, so its output has no words.`);
  const kind = kindOf(context);
  const answers = shown(logits, kind);
  const order = answers.map((_, index) => index).sort((a, b) => answers[b] - answers[a] || a - b);
  const best = order.slice(0, count);
  return {
    names: best.map((index) => outputName(context, index)),
    scores: numbers(
      [best.length],
      best.map((index) => answers[index]),
    ),
    unit: UNITS[kind],
    method: kind === 'value' ? 'outputs' : 'top classes',
    indices: best,
    note: '',
  };
}

/** @type {import('./index.js').Table} */
export const CLASSES = {
  classes: {
    needs: 'pass',
    options: { count: { usual: 5, low: 1, high: 1000, isWhole: true } },
    answer: classes,
  },
};
