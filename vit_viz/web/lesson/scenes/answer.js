// Scene (e): what is read at the end becomes the answer, and the answer is a sum of what every part gave.

import { fixed } from '../../../ui/kit/numbers.js';
import { largestOf, signed } from '../../kit/signed.js';
import { beatsOf, said, ease, rowOf, shapeOf, told } from '../timeline.js';
import { drawSaid, reader, saidAfter } from './depth.js';
/** @import { Pen } from '../pen.js' */
/** @import { Answer, Numbers, Scene, Times } from '../timeline.js' */

const TOP = 5;
const SAME = 0.05; // of the whole: sums that differ by less are called about the same

const partsOf = (/** @type {Numbers} */ n) => /** @type {Answer} */ (n.parts);
const sum = (/** @type {ArrayLike<number>} */ numbers) =>
  Array.from(numbers).reduce((all, one) => all + one, 0);

/** What all heads, all MLPs, and the embedding with what is always added gave. @param {Numbers} n @returns {number[]} */
export const givenBy = (n) => ['heads', 'mlps', 'rest'].map((name) => sum(partsOf(n).arrays[name].data));

/** What the score is of: the first name at the end, or the embedding's likeness. @param {Numbers} n */
const about = (n) => ({
  strong: n.depth?.facts.words.length ? saidAfter(n, n.trace.layers)[0].name : partsOf(n).facts.unit,
});
/** A block of the sum, in words. @param {Numbers} n @param {number} row */
const blockOf = (n, row) =>
  partsOf(n)
    .facts.layers[row].replace(/^(?=\d)/, 'block ')
    .replace('pool', 'the pool');

/** What becomes of what is read. @param {Numbers} n */
function saidOfTop(n) {
  const { kind, unit } = /** @type {Answer} */ (n.depth).facts;
  if (kind === 'embedding')
    return told`What comes out is the *embedding* of the photo: a list of numbers by which photos can be compared.`;
  if (kind === 'value') return told`The classifier makes of it the values that the model returns.`;
  const shares = unit.includes('sigmoid')
    ? 'Each score becomes a probability by itself'
    : 'Softmax makes shares of all scores';
  return told`For each name the classifier has a list of learned numbers. As a query meets a key, it meets what is read: multiplied, number by number, and added up to the *score* of that name. ${shares}; these come first.`;
}

/** That the score is a sum. @param {Numbers} n */
function saidOfSum(n) {
  const isPool = partsOf(n).facts.layers[0] === 'pool';
  const added = isPool ? 'The pool adds up what it reads' : 'In every block we only added';
  const parts = isPool ? 'its heads and its MLP' : 'the heads and the MLP of each block';
  const { final_norm: last, fc_norm: pooled } = shapeOf(n);
  const held = last || pooled ? ', with the scale of the last norm held as it is' : '';
  return told`${added}, so the score of ${about(n)}, ${{ strong: fixed(partsOf(n).facts.total, 2) }}, is a sum, too${held}: here is what ${parts} gave to it. Orange is for it, blue against it.`;
}

/** Which head gave most. @param {Numbers} n */
function saidOfHeads(n) {
  const { data, shape } = partsOf(n).arrays.heads;
  const place = data.indexOf(Math.max(...data));
  return told`Now each head by itself, stronger in colour where it gave more. Head ${place % shape[1]} of ${blockOf(n, Math.floor(place / shape[1]))} gave most: ${signed(data[place], 2)}.`;
}

/** @type {Times} */
const TIMES = {
  ...{ norm: [5, 'norm', { isFor: ({ tokens }) => tokens?.facts.shape.final_norm !== false }] },
  ...{ top: [8, 'head'], sum: [10, 'answer'], heads: [8, 'answer'], where: [10, 'photo'] },
};
const SAID = {
  norm: said`After the last block all tokens are brought to one scale once more, by a last norm. Now the answer is read, from ${reader}.`,
  top: saidOfTop,
  sum: saidOfSum,
  heads: saidOfHeads,
  where: said`What the heads gave, they took from tokens. Orange: patches from which they took what speaks for ${about}; blue: against it. From pixels to the answer, and back to the pixels.`,
};

/** @type {Scene} */
export const ANSWER = {
  id: 'answer',
  title: () => 'The answer, and what it is made of',
  needs: ['tokens', 'depth', 'parts'],
  beats: () => beatsOf('answer', TIMES, SAID),
  draw,
  guess: {
    before: 'answer-sum',
    shown: 'answer-sum',
    question: (n) => told`Guess: what gave most to the score of ${about(n)}?`,
    choices: () => [['all heads'], ['all MLPs'], ['all else'], ['heads and MLPs alike']],
    truth(n) {
      const given = givenBy(n);
      const [heads, mlps, rest] = given;
      const isSame = Math.abs(heads - mlps) < SAME * Math.abs(partsOf(n).facts.total);
      return isSame && heads > rest ? 3 : given.indexOf(Math.max(...given));
    },
    verdict(n) {
      const [heads, mlps, rest] = givenBy(n).map((one) => signed(one, 2));
      return told`The heads gave ${heads}, the MLPs ${mlps}, all else ${rest}.`;
    },
  },
  whatIf: [
    {
      change: 'head',
      label: 'one of these heads were switched off',
      controls: ['layer', 'head'],
      isFor: ({ trace }) => trace.pooling !== 'attention', // then those of the pool are drawn
    },
  ],
  fold: {
    build: ['model'],
    shapes({ depth, parts }) {
      if (!depth || !parts) return [];
      const { heads, mlps, terms } = parts.arrays;
      return [
        ['read', `[${depth.arrays.stream.shape[1]}]`, 'at the end, brought to one scale'],
        ['by heads', `[${heads.shape.join(', ')}]`, 'what each gave to the score'],
        ['by MLPs', `[${mlps.shape[0]}]`, 'what each gave'],
        ['from tokens', `[${terms.shape.join(', ')}]`, 'what each head took from each token'],
      ];
    },
  },
};

/** @type {Scene['draw']} */
function draw(pen, v, n) {
  const { photo } = pen;
  const looks = /** @type {Answer} */ (n.depth).arrays.answer_looks;
  const where = ease(v['answer-where']);
  pen.lit(rowOf(looks, looks.shape[0] - 1), photo, 1, 1 - ease(v['answer-sum']));
  const { prefix } = n.trace;
  const taken = takenFrom(n);
  const patches = taken.subarray(prefix.length);
  pen.signed(patches, photo, where);
  const ours = prefix.length + n.patch;
  if (v['answer-sum'] > 0.5) pen.tokens(ours, taken, 'what all heads took from each token for the score');
  else pen.tokens(ours, rowOf(looks, looks.shape[0] - 1), 'share of attention in the last block');
  pen.frame(pen.at(n.patch), 'accent', 1 - where);
  const top = {
    id: 'answer-top',
    low: n.trace.layers - 1,
    f: 1,
    top: pen.work.y,
    pitch: Math.min(pen.work.h / TOP, 50 * pen.unit),
    shown: TOP,
  };
  pen.within(1 - v['answer-sum'] * 4, () => drawSaid(pen, n, top));
  pen.within(v['answer-sum'] * 4 - 1, () => drawSum(pen, n, v['answer-sum'], ease(v['answer-heads'])));
}

/** What all heads took from each token. @param {Numbers} n */
function takenFrom(n) {
  const { data, shape } = partsOf(n).arrays.terms;
  const all = new Float32Array(shape[2]);
  for (let i = 0; i < data.length; i++) all[i % all.length] += data[i];
  return all;
}

/**
 * The score as a sum: what the heads of each block gave, together or each, and what its MLP gave.
 * @param {Pen} pen @param {Numbers} n @param {number} u how many rows are there @param {number} each how far the heads have come apart
 */
function drawSum(pen, n, u, each) {
  const { work, wide } = pen;
  const { arrays, facts } = partsOf(n);
  const [rows, count] = arrays.heads.shape;
  const ofHeads = Array.from({ length: rows }, (_, row) => sum(rowOf(arrays.heads, row)));
  const most = Math.max(largestOf(ofHeads), largestOf(arrays.mlps.data)) || 1;
  const strongest = largestOf(arrays.heads.data) || 1;
  const [label, numbers, foot] = (wide ? [72, 64, 34] : [26, 46, 26]).map((one) => one * pen.unit);
  const pitch = Math.min((work.h - 2 * foot) / rows, 46 * pen.unit);
  const half = (work.w - label) / 2;
  const size = pitch > 18 ? 13 : 12;
  const bar = (
    /** @type {string} */ id,
    /** @type {number} */ value,
    /** @type {number} */ x,
    /** @type {number} */ y,
    /** @type {number} */ a,
  ) => {
    const [h, long] = [Math.max(3, pitch * 0.42), ((half - numbers) * Math.abs(value)) / most];
    const box = { x, y: y - h / 2, w: Math.max(1, long * a), h };
    pen.box(box, value < 0 ? 'against' : 'for', a, 4);
    if (pitch > 11)
      pen.number(`answer-${id}`, value, signed(value, 2), x + long * a + 6, y + 4, { size, fill: 'text', a });
  };
  const left = work.x + label;
  pen.text('heads', left, work.y + 6);
  pen.text('MLP', left + half, work.y + 6);
  for (let row = 0; row < rows; row++) {
    const [y, a] = [work.y + foot / 2 + (row + 0.5) * pitch, ease(u * rows * 1.3 - row)];
    if (pitch > 11) pen.text(wide ? blockOf(n, row) : facts.layers[row], work.x, y + 4, { size, a });
    pen.within(1 - each * 2, () => bar(`heads-${row}`, ofHeads[row], left, y, a));
    const cell = (half - 16) / count;
    for (let head = 0; each > 0 && head < count; head++) {
      const value = arrays.heads.data[row * count + head];
      const [x, h] = [left + head * cell, Math.max(2, pitch - 4)];
      const box = { x, y: y - h / 2, w: cell - 3, h };
      pen.box(box, 'soft', each, 3);
      pen.box(box, value < 0 ? 'against' : 'for', (0.6 * each * Math.abs(value)) / strongest, 3);
      const how = /** @type {const} */ ({ size: 12, fill: 'text', align: 'center', a: each });
      if (cell > 40 && pitch > 16)
        pen.number(`answer-head-${row}-${head}`, value, signed(value, 2), x + (cell - 3) / 2, y + 4, how);
    }
    if (row < arrays.mlps.data.length) bar(`mlp-${row}`, arrays.mlps.data[row], left + half, y, a);
  }
  const bottom = work.y + foot * 1.3 + rows * pitch;
  const a = ease(u * 2 - 1);
  const others = wide ? 'the embedding and what is always added' : 'all else';
  const rest = `${signed(givenBy(n)[2], 2)} from ${others}`;
  pen.text(rest, work.x, bottom, { size, a });
  const strong = /** @type {const} */ ({ size: 16, fill: 'text', weight: 600, align: 'right', a });
  pen.number('answer-total', facts.total, `= ${fixed(facts.total, 2)}`, work.x + work.w, bottom, strong);
}
