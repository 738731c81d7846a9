// Patches that are truly removed from the sequence, and what the model says then: vit_viz/analyses/removal.py.

import { outputKind, shown } from '../outputs.js';
import { numbers } from './form.js';
import { UNITS } from './lens.js';
import { hasClasses, kindOf, outputName, targetOf } from './targets.js';
import { general, percent } from './words.js';
/** @import { Context } from './form.js' */

const MOST = 4096; // patches that are named one by one
const GONE = {
  usual: '',
  pattern: new RegExp(`^(\\d{1,4},\\d{1,4}(;\\d{1,4},\\d{1,4}){0,${MOST - 1}})?$`),
  sentence: 'The patches row,col that are taken away, with semicolons between them, as in 3,4;3,5.',
};

/**
 * Outputs of the model when these patches are absent: the others keep their positions.
 * @param {Context} context @param {Set<number>} gone patches
 */
export function outputsWithout({ engine, traced }, gone) {
  const { residual, grid, prefix, tokens } = traced;
  if (gone.size === tokens - prefix.length && engine.model.config.pooling !== 'class')
    throw new Error('Removing every patch leaves nothing to look at: keep at least one.');
  const all = Array.from({ length: tokens }, (_, token) => token);
  const kept = all.filter((token) => !gone.has(token - prefix.length));
  return engine.model.outputs(residual[0], 0, grid, engine.editsOf(traced), kept);
}

/** @param {Context} context @param {{gone: string}} options @param {{target: string | null}} about */
function withoutPatches(context, { gone }, { target }) {
  const { traced, engine } = context;
  const [rows, cols] = traced.grid;
  const patches = gone
    .split(';')
    .filter(Boolean)
    .map((place) => {
      const [row, col] = place.split(',').map(Number);
      if (row >= rows || col >= cols)
        throw new Error(
          `Patch (${row}, ${col}) does not exist: rows are 0-${rows - 1} and columns 0-${cols - 1}.`,
        );
      return row * cols + col;
    });
  const outputs = outputsWithout(context, new Set(patches));
  const share = new Set(patches).size / (rows * cols);
  const [method, note] = ['patches removed', ''];
  if (!hasClasses(context)) {
    const names = ['similarity to the whole photo'];
    const scores = numbers([1], [cosine(outputs, traced.logits)]);
    const top = {
      names,
      scores,
      unit: 'cosine similarity',
      method,
      indices: /** @type {number[]} */ ([]),
      note,
    };
    return { top, before: numbers([1], [1]), share };
  }
  const kind = outputKind(engine.output, outputs.length);
  const [before, after] = [traced.logits, outputs].map((one) => shown(one, kind));
  const { index, other } = targetOf(context, target);
  const explained = other === null ? [index] : [index, other];
  const indices = [...new Set([...explained, ...best(before, 3), ...best(after, 5)])];
  const of = (/** @type {number[]} */ scores) =>
    numbers(
      [indices.length],
      indices.map((one) => scores[one]),
    );
  const names = indices.map((one) => outputName(context, one));
  return {
    top: { names, scores: of(after), unit: UNITS[kindOf(context)], method, indices, note },
    before: of(before),
    share,
  };
}

/** Places of the largest numbers, the largest first. @param {number[]} scores @param {number} count */
export function best(scores, count) {
  return [...scores.keys()].sort((a, b) => scores[b] - scores[a]).slice(0, count);
}

/** @param {Float32Array} one @param {Float32Array} other */
export function cosine(one, other) {
  const dot = (/** @type {Float32Array} */ a, /** @type {Float32Array} */ b) =>
    a.reduce((sum, value, i) => sum + value * b[i], 0);
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other));
}

/** What becomes of the class that is explained, and what comes first; of values nothing does. @param {Awaited<ReturnType<typeof withoutPatches>>} result */
function says({ top, before: { data: before }, share }) {
  if (!top.indices.length) return '';
  const [{ data: scores }, isValue] = [top.scores, top.unit === UNITS.value];
  if (!share) return `With all patches: ${top.names[0]} ${inWords(scores[0], isValue)}.`;
  return `Without ${percent(share)} of the photo, ${changeInWords(top.names, before, scores, isValue)}.`;
}

/**
 * What becomes of the first of some classes, and which comes first now: "lion falls from 18% to 3%; tower comes first now".
 * @param {string[]} names @param {Float32Array} before @param {Float32Array} after @param {boolean} isValue
 */
export function changeInWords(names, before, after, isValue) {
  const [old, is] = [before, after].map((scores) => inWords(scores[0], isValue));
  const way = after[0] < before[0] ? 'falls' : 'rises';
  const change = `${names[0]} ${old === is ? `stays at ${is}` : `${way} from ${old} to ${is}`}`;
  if (isValue) return change;
  const [cameFirst, first] = [before, after].map((scores) => scores.indexOf(Math.max(...scores)));
  if (first === 0) return change + (cameFirst === 0 ? ' and still comes first' : ' and comes first');
  return `${change}; ${names[first]} comes first${cameFirst === 0 ? ' now' : ''}`;
}

/** @param {number} score @param {boolean} isValue */
function inWords(score, isValue) {
  return isValue ? general(score, 3) : percent(score);
}

/** @type {import('./index.js').Table} */
export const REMOVAL = {
  without_patches: {
    needs: 'pass',
    options: { gone: GONE },
    takesTarget: true,
    answer: withoutPatches,
    says,
  },
};
