// The Survey tab's words and arithmetic: what a brush writes, which dots pass, what is said of heads and methods.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Browser, Element } from './browser.js';
import { axisEnds, dotWords, nearestDot, paintDots, pixelsOf } from '../../vit_viz/web/survey/scatter.js';
import {
  boxFilter,
  columnWords,
  countWords,
  endsOf,
  headLine,
  intervalWords,
  methodWords,
  joined,
  lassoFilter,
  MOST_CORNERS,
  nameLine,
  readBits,
  traceRows,
} from '../../vit_viz/web/survey/lists.js';

test('a box is two ranges, whichever corner it was begun in', () => {
  assert.equal(
    boxFilter('margin', 'head_entropy', { x: [0.5, 0.123456], y: [-1, 2e-7] }),
    '(margin BETWEEN 0.12346 AND 0.5 AND head_entropy BETWEEN -1 AND 2e-7)',
  );
});

test('a lasso is a polygon with no more corners than a filter holds', () => {
  const line = (/** @type {number} */ count) => Array.from({ length: count }, (_none, at) => at / count);
  assert.equal(lassoFilter('a', 'b', { x: [0, 1, 1], y: [0, 0, 1] }), "inside(a, b, '0 0, 1 0, 1 1')");
  for (const count of [MOST_CORNERS, MOST_CORNERS + 1, 977]) {
    const corners = lassoFilter('a', 'b', { x: line(count), y: line(count) }).split(', ').length - 2;
    assert.ok(corners <= MOST_CORNERS && corners >= MOST_CORNERS / 2, String(corners));
  }
});

test('what was written and what was brushed are one filter', () => {
  assert.equal(joined('a or b', '(c)'), '(a or b) AND (c)');
  assert.equal(joined('', '(c)'), '(c)');
  assert.equal(joined('a', ''), 'a');
});

test('how many photos pass is said with how many are right of those with a label', () => {
  assert.equal(
    countWords({ count: 1200, labelled: 1200, accuracy: 0.5 }, 1200),
    'All 1,200 photos; 50.0% are right.',
  );
  assert.equal(
    countWords({ count: 7, labelled: 3, accuracy: 1 / 3 }, 1200),
    '7 of 1,200 photos; 33.3% of the 3 with a label are right.',
  );
  assert.match(countWords({ count: 7, labelled: 0, accuracy: null }, 9), /of none is it known/);
});

test('one bit per photo says which pass', () => {
  const text = 'hQI='; // bytes 10000101 and 00000010
  assert.deepEqual([...readBits(text, 10)], [1, 0, 1, 0, 0, 0, 0, 1, 0, 1]);
});

test('dots are right, wrong or without a label; what is not known has none', () => {
  const points = new Float32Array([0, 1, 2, NaN, 4, 5, 6, NaN, 8, 9, 1, 0, NaN, 1, 1]);
  assert.deepEqual(traceRows(points), [[0, 4], [1], []]);
  const unlabelled = new Float32Array([0, 1, 2, 3, 0, NaN]);
  assert.deepEqual(traceRows(unlabelled), [[], [0], [1]]);
});

test('a head is told with its spread and its name', () => {
  const atlas = { mean: [[0.25, null]], spread: [[0.5, null]], unit: 'share', photos: 4000 };
  assert.equal(
    headLine({ layer: 0, head: 0 }, atlas),
    'Layer 0, head 0: 0.25 ± 0.5 share, over 4,000 photos.',
  );
  assert.equal(headLine({ layer: 0, head: 1 }, atlas), 'Layer 0, head 1: not known of these photos.');
  assert.deepEqual(endsOf(atlas.mean, atlas.spread), [-0.25, 0.75]);
  assert.deepEqual(endsOf([[null]], [[null]]), [0, 1]);
  assert.deepEqual(endsOf([[3, 8]], [[null, 1]]), [3, 9]); // a mean without a spread is its own end
  assert.deepEqual(endsOf([[3, 8]], [[1, null]]), [2, 8]);
  const named = { name: 'local', sentence: '0.1 of all.', evidence: 0.93, thin: true };
  assert.equal(
    nameLine(named),
    'local: 0.1 of all. It holds in 93% of these photos alone. The evidence is thin.',
  );
  assert.equal(nameLine({ ...named, evidence: null, thin: false }), 'local: 0.1 of all.');
  assert.equal(nameLine(undefined), '');
});

test('a mean has its interval, a column is read as words', () => {
  assert.equal(intervalWords({ mean: 0.851, low: 0.8, high: 0.9 }), '0.85 (0.80 to 0.90)');
  assert.equal(intervalWords(undefined), '');
  assert.equal(columnWords('head_prefix_mass'), 'head prefix mass');
});

test('chance is said of the scores that have one', () => {
  const one = { mean: 0.5, low: 0.4, high: 0.6 };
  const pointed = { lines: { rollout: { pointing: one } }, resamples: 1000 };
  assert.equal(
    methodWords(pointed),
    'Means with 95% intervals from 1000 bootstrap samples of the photos; higher is better.',
  );
  const deleted = { lines: { rollout: { pointing: one, deletion: one } }, resamples: 9 };
  assert.match(methodWords(deleted), /higher is better; in insertion and deletion 0 is chance\.$/);
  assert.equal(methodWords({ lines: {}, resamples: 9 }), '');
});

test('an axis has room around its outermost dots, and ends of its own where there is nothing to span', () => {
  const [low, high] = axisEnds(new Float32Array([2, NaN, 12]));
  assert.ok(Math.abs(low - 1.6) < 1e-6 && Math.abs(high - 12.4) < 1e-6);
  assert.deepEqual(axisEnds(new Float32Array([NaN])), [0, 1]);
  assert.deepEqual(axisEnds(new Float32Array([3, 3])), [1.5, 4.5]);
  assert.deepEqual(axisEnds(new Float32Array([0])), [-0.5, 0.5]);
});

test('a number becomes pixels from the first end of its axis, also where that is the upper one', () => {
  assert.deepEqual([...pixelsOf(new Float32Array([0, 5, 10]), 0, 10, 400)], [0, 200, 400]);
  assert.deepEqual([...pixelsOf(new Float32Array([0, 5, 8]), 10, 0, 200)], [200, 100, 40]);
});

test('the nearest dot is within eight pixels, passes, and has both numbers', () => {
  const across = new Float32Array([10, 14, 10, NaN]);
  const up = new Float32Array([10, 10, 90, 10]);
  assert.equal(nearestDot(across, up, null, 11, 10), 0);
  assert.equal(nearestDot(across, up, Uint8Array.of(0, 1, 1, 1), 11, 10), 1);
  assert.equal(nearestDot(across, up, null, 10, 18), 0);
  assert.equal(nearestDot(across, up, null, 10, 19), -1);
});

test('a dot says its numbers and whether the answer was right', () => {
  assert.equal(
    dotWords(['confidence', 'mean_entropy'], [0.25, 3], 'wrong'),
    'confidence 0.25, mean entropy 3; wrong',
  );
});

test('dots of photos that pass are painted last, and at the places given', (context) => {
  new Browser().install(context);
  const canvas = new Element('canvas');
  const paint = (/** @type {Uint8Array | null} */ passes) => {
    canvas.canvas = null; // nothing drawn yet
    const places = { across: new Float32Array([10, 20]), up: new Float32Array([30, 40]) };
    const figure = { colours: ['red', 'blue', 'gray'], width: 100, height: 50 };
    paintDots(/** @type {any} */ (canvas), { ...places, rows: [[0], [1], []], passes }, figure);
    const kept = canvas.getContext().calls.filter(([name]) => ['drawImage', 'globalAlpha ='].includes(name));
    return kept.map(([name, first, ...place]) => (name === 'drawImage' ? place : first));
  };
  assert.deepEqual(paint(Uint8Array.of(1, 0)), [0.06, [16, 36], 0.85, [6, 26]]);
  assert.deepEqual(paint(null), [0.85, [6, 26], [16, 36]]);
  assert.deepEqual([/** @type {any} */ (canvas).width, /** @type {any} */ (canvas).height], [100, 50]);
});
