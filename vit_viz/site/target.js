// Classes that a view may be explained for, as vit_viz/ui/target.py has them: the one that its link names, the first ones, and those that
// a text means.

import { matching } from '../browser/labels.js';
import { outputKind, shown } from '../browser/outputs.js';
/** @import { Loaded } from '../browser/serving.js' */

const MOST_HITS = 12;
const CHIPS = 3; // classes that are offered at once; the search has all
const NO_CLASSES =
  'This model has no classes. The maps explain its own embedding of this photo: what makes the embedding what it is. ' +
  'Whether a map changes with the class cannot be measured without classes.';

/**
 * The first classes and those that a link names, the model's first where none is named that exists, and what has to be said.
 * @param {Float32Array} logits @param {Loaded} loaded @param {string} target of the link
 * @param {string} [find] only the classes that this text means are wanted
 */
export function targetValue(logits, { config, labels, output }, target, find) {
  const count = config.num_classes ? logits.length : 0;
  const kind = outputKind(output, count);
  const nameOf = (/** @type {number} */ index) =>
    labels?.[index] ?? `${kind === 'value' ? 'output' : 'class'} ${index}`;
  if (find !== undefined)
    return {
      hits: matching(labels ?? Array(count).fill(''), find, MOST_HITS).map((index) => ({
        index,
        name: nameOf(index),
      })),
    };
  const [chosen, problem] = chosenOf(target, count);
  if (!count) return { classes: [], words: `${NO_CLASSES} ${problem}`.trim(), name: '', link: '' };
  const answers = shown(logits, kind);
  const order = answers.map((_, index) => index).sort((a, b) => answers[b] - answers[a]);
  const [first, ...others] = chosen.length ? chosen : order;
  const meant = chosen.length ? chosen : [first];
  const listed = [...new Set([...order.slice(0, CHIPS), ...meant])];
  const amount = kind === 'value' ? 'value' : 'probability';
  return {
    classes: listed.map((index) => ({ index, name: nameOf(index), [amount]: answers[index] })),
    chosen: first,
    other: chosen.length ? (others[0] ?? null) : null,
    words: problem,
    name: meant.map(nameOf).join(' and not '),
    link: meant.join('-'),
  };
}

/** The classes that a link names, or none and why not. @param {string} target @param {number} count @returns {[number[], string]} */
function chosenOf(target, count) {
  const chosen = target.split('-').filter(Boolean).map(Number);
  const isAgainstItself = new Set(chosen).size < chosen.length;
  if (!isAgainstItself && chosen.every((index) => index < count)) return [chosen, ''];
  if (count === 1) return [[], 'This model has one output, which is explained.'];
  if (!count) return [[], 'A class was asked for, but this model has none.'];
  if (isAgainstItself) return [[], 'A class cannot be set against itself; the first class is explained.'];
  return [[], `This model has classes 0-${count - 1}; its first class is explained instead.`];
}
