// The Survey tab's words and arithmetic: what a brush writes, what a filter holds, and where dots lie.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { endsOf } from '../../vit_viz/web/survey/heads.js';
import { axisEnds, dotsOf, nearestDot, paintDots } from '../../vit_viz/web/survey/scatter.js';
import { brushFilter, cardWords, groupsOf, parted } from '../../vit_viz/web/survey/words.js';
import { Browser, Element } from './browser.js';
import { card } from './survey_page.js';

const BOX = '(margin BETWEEN 0.12346 AND 0.5 AND head_entropy BETWEEN -1 AND 2e-7)';
const LASSO = "inside(a, b, '0 0, 1 0, 1 1')";

test('a box is two ranges, whichever corner it was begun in; a lasso a polygon with no more corners than a filter holds', () => {
  const corners = /** @type {[number, number][]} */ ([[0.5, -1], [0.123456, 2e-7]]); // prettier-ignore
  assert.equal(brushFilter('select', ['margin', 'head_entropy'], corners), BOX);
  assert.equal(brushFilter('lasso', ['a', 'b'], [[0, 0], [1, 0], [1, 1]]), LASSO); // prettier-ignore
  for (const count of [40, 41, 977]) {
    const line = Array.from({ length: count }, (_, at) => /** @type {[number, number]} */ ([at, at / count]));
    const kept = parted(brushFilter('lasso', ['a', 'b'], line)).corners.length;
    assert.ok(kept <= 40 && kept >= 20, String(kept));
  }
});

test('a filter is read as what was written and what was brushed on top of it', () => {
  const square = [[0.12346, -1], [0.5, -1], [0.5, 2e-7], [0.12346, 2e-7]]; // prettier-ignore
  assert.deepEqual(parted(BOX), {
    typed: '',
    mode: 'select',
    axes: ['margin', 'head_entropy'],
    corners: square,
  });
  const triangle = [[0, 0], [1, 0], [1, 1]]; // prettier-ignore
  const typed = "label = ':)' or (a)";
  assert.deepEqual(parted(`(${typed}) AND ${LASSO}`), {
    typed,
    mode: 'lasso',
    axes: ['a', 'b'],
    corners: triangle,
  });
  for (const where of ['', 'is_right', `(a) or (b) AND ${LASSO}`, `not ${BOX}`, `a AND ${BOX}`])
    assert.deepEqual(parted(where), { typed: where, mode: 'select', axes: [], corners: [] });
});

test('a card says the answer first, then only what is known', () => {
  const words = (/** @type {any} */ changes, named = '') => cardWords(card(1, changes), named);
  assert.deepEqual(words({}, 'outside'), ['dog', '63%, is cat', 'outside 12.5']);
  assert.deepEqual(words({ right: true }), ['dog', '63%', '12.5']);
  assert.deepEqual(words({ confidence: null, number: 37.25 }), ['dog', '37.3, is cat', '12.5']);
  assert.deepEqual(words({ confidence: null, right: null, answer: '' }), ['no answer', '', '12.5']);
  assert.deepEqual(words({ value: null }, 'outside'), ['dog', '63%, is cat', 'photo 1.jpg']);
  assert.deepEqual(words({ value: 0, there: false }), ['dog', '63%, is cat', '0', 'its file is gone']);
  assert.deepEqual(words({ there: false, small: false }), ['dog', '63%, is cat', '12.5']);
});

test('what became of an answer, in words', () => {
  const change = { kind: 'other class', was: 'wolf', now: 'fox', confidences: [0.625, 0.5] };
  const words = (/** @type {string} */ label, kind = change.kind) =>
    cardWords(card(1, { label, change: { ...change, kind } }), '');
  assert.deepEqual(words('cat', 'right to wrong'), ['was wolf, is now fox', '63%, then 50%']);
  assert.deepEqual(words('cat'), ['was wolf, is now fox', '63%, then 50%; neither is right: cat']);
  for (const label of ['', 'wolf', 'fox'])
    assert.deepEqual(words(label), ['was wolf, is now fox', '63%, then 50%']);
  assert.deepEqual(groupsOf('changed', { won: 2 }), [['won', 'wrong before, right now: 2']]);
  assert.deepEqual(groupsOf('changed', {}), [['other', '']]);
});

test('the colours of heads end at the outermost spread', () => {
  const ends = (/** @type {any} */ mean, /** @type {any} */ spread) =>
    endsOf(/** @type {any} */ ({ mean, spread }));
  assert.deepEqual(ends([[0.25, null]], [[0.5, null]]), [-0.25, 0.75]);
  assert.deepEqual(ends([[3, 8]], [[null, 1]]), [3, 9]); // a mean without a spread is its own end
  assert.deepEqual(ends([[3], [8]], [[1], [null]]), [2, 8]);
  assert.deepEqual(ends([[null]], [[null]]), [0, 1]);
});

test('an axis has room around its outermost dots, and ends of its own where there is nothing to span', () => {
  const [low, high] = axisEnds(new Float32Array([2, NaN, 12]));
  assert.ok(Math.abs(low - 1.6) < 1e-6 && Math.abs(high - 12.4) < 1e-6);
  assert.deepEqual(axisEnds(new Float32Array([NaN])), [0, 1]);
  assert.deepEqual(axisEnds(new Float32Array([3, 3])), [1.5, 4.5]);
  assert.deepEqual(axisEnds(new Float32Array([0])), [-0.5, 0.5]);
});

// across, up and right of five photos: 2 of no number, 3 of no label
const POINTS = Float32Array.of(...[0, 10, NaN, 5, 10], ...[0, 20, 5, 10, 0], ...[0, 1, 1, NaN, 0]);

test('dots lie by their numbers, upwards, the wrong ones over the right ones; what is not known has none', () => {
  const { rows, kinds, across, up } = dotsOf(POINTS, [30, 40, 108, 216, ...[-0.4, 10.4], ...[-0.8, 20.8]]);
  assert.deepEqual(rows, [1, 0, 4, 3]);
  assert.deepEqual([...kinds], [1, 0, 0, 2, 1]);
  assert.deepEqual([...across].map(Math.round), [4, 104, NaN, 54, 104]);
  assert.deepEqual([...up].map(Math.round), [208, 8, 158, 108, 208]);
});

test('the nearest dot is within eight pixels across and down alike, passes, and has both numbers', () => {
  const [across, up] = [Float32Array.of(10, 14, 10, NaN), Float32Array.of(10, 10, 90, 10)];
  assert.equal(nearestDot(across, up, null, [11, 10]), 0);
  assert.equal(nearestDot(across, up, Uint8Array.of(0, 1, 1, 1), [11, 10]), 1);
  assert.equal(nearestDot(across, up, null, [10, 18]), 0);
  assert.equal(nearestDot(across, up, null, [10, 19]), -1);
  assert.equal(nearestDot(across, up, null, [2, 10]), 0);
  assert.equal(nearestDot(across, up, null, [4, 4]), -1); // too far along the diagonal
});

test('dots that pass are painted last: discs, or diamonds of wrong answers, as large as the pixels of the screen ask for', () => {
  const browser = new Browser();
  browser.install();
  Object.assign(browser.window, { devicePixelRatio: 2.5 });
  const canvas = new Element('canvas');
  const dots = {
    across: Float32Array.of(10, 21),
    up: Float32Array.of(31, 40),
    rows: [0, 1],
    kinds: Float32Array.of(0, 1),
  };
  const legend = [['red', 'circle'], ['blue', 'diamond']].map(([color, symbol]) => ({ name: '', marker: { color, symbol } })); // prettier-ignore
  const made = browser.made.length;
  paintDots(/** @type {any} */ (canvas), dots, null, legend, [101, 51]);
  assert.deepEqual([/** @type {any} */ (canvas).width, /** @type {any} */ (canvas).height], [253, 128]);
  const [disc, diamond] = browser.made.slice(made);
  assert.equal(/** @type {any} */ (disc).width, 18); // 7.5 pixels around the middle, and one at the edge
  assert.deepEqual(disc.getContext().calls.at(-2), ['arc', 9, 9, 7.5, 0, 2 * Math.PI]);
  assert.deepEqual(disc.getContext().calls[0], ['fillStyle =', 'red']);
  const corners = diamond.getContext().calls.filter(([name]) => name === 'lineTo');
  assert.deepEqual(corners.map(([, ...at]) => at), [[-0.375, 9], [9, -0.375], [18.375, 9], [9, 18.375]]); // prettier-ignore
  const drawn = () => canvas.getContext().calls.filter(([name]) => /^(drawImage|globalAlpha =)$/.test(name));
  assert.deepEqual(drawn(), [['globalAlpha =', 0.85], ['drawImage', disc, 16, 69], ['drawImage', diamond, 44, 91]]); // prettier-ignore
  canvas.canvas = null;
  paintDots(/** @type {any} */ (canvas), dots, Uint8Array.of(1, 0), legend, [101, 51]);
  assert.deepEqual(drawn().map(([, what, ...at]) => (at.length ? at : what)), [0.06, [44, 91], 0.85, [16, 69]]); // prettier-ignore
});
