// What a model's outputs are: shares of a softmax, a sigmoid for each, or values; in the browser's engine and in the header.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { highest, outputKind, shown } from '../../vit_viz/browser/outputs.js';
import { surgeryFinding } from '../../vit_viz/web/heads/findings.js';
import { amountWords, number } from '../../vit_viz/ui/kit/numbers.js';
import { findingWords } from '../../vit_viz/web/survey/room.js';

const SCORES = [Math.log(1), Math.log(2), Math.log(5)];

/** @param {number[]} found @param {number[]} expected */
function close(found, expected) {
  assert.equal(found.length, expected.length);
  found.forEach((value, i) => assert.ok(Math.abs(value - expected[i]) < 1e-12, `${found} ${expected}`));
}

test('outputs are shown by their kind', () => {
  close(shown(SCORES, null), [1 / 8, 2 / 8, 5 / 8]);
  close(shown(SCORES, 'softmax'), [1 / 8, 2 / 8, 5 / 8]);
  close(shown(SCORES, 'sigmoid'), [1 / 2, 2 / 3, 5 / 6]);
  close(shown(SCORES, 'value'), SCORES);
  close(shown([900, 800], 'softmax'), [1, 0]);
});

test('one output is a value unless its file says otherwise', () => {
  assert.deepEqual(
    [outputKind(null, 1), outputKind('sigmoid', 1), outputKind(null, 2)],
    ['value', 'sigmoid', 'softmax'],
  );
  assert.deepEqual(highest([-3.5], null, null, 5), [{ name: 'output 0', value: -3.5 }]);
  assert.deepEqual(highest([0], null, 'sigmoid', 5), [{ name: 'class 0', probability: 0.5 }]);
});

test('the largest come first, under their names, and without names no class of many is listed', () => {
  const names = highest(SCORES, ['cat', 'dog', 'ox'], null, 2).map(({ name, probability }) => [
    name,
    probability,
  ]);
  assert.deepEqual(
    names.map(([name]) => name),
    ['ox', 'dog'],
  );
  close(
    names.map(([, share]) => Number(share)),
    [5 / 8, 2 / 8],
  );
  assert.deepEqual(highest(SCORES, null, null, 2), []);
  assert.deepEqual(highest([2, 7], ['width', 'age'], 'value', 5), [
    { name: 'age', value: 7 },
    { name: 'width', value: 2 },
  ]);
});

test('a probability is written as its place writes it, a value as a number, that of a sentence as its cosine', () => {
  const percent = (/** @type {number} */ share) => `${100 * share}%`;
  assert.equal(amountWords({ probability: 0.5 }, percent), '50%');
  assert.equal(amountWords({ value: 37.25 }, percent), '37.3');
  assert.equal(amountWords({ value: 10.13, cosine: 0.3377 }, percent), '0.34');
  assert.equal(amountWords({ probability: 0.5, cosine: 0.3377 }, percent), '50%');
});

test('surgery says what became of a value', () => {
  const edits = { heads: new Map([['0.1', 'off']]), temperatures: new Map(), forbidden: [] };
  const answers = { before: [{ name: 'age', value: 37.25 }], now: [{ name: 'age', value: -2 }] };
  assert.equal(surgeryFinding(edits, answers), '1 head off: still age, 37.3 → -2');
  const of = (/** @type {number[]} */ shares, /** @type {string[]} */ names) =>
    names.map((name, i) => ({ name, probability: shares[i] }));
  const lost = { before: of([0.963, 0.03], ['lion', 'lynx']), now: of([0.5, 0.012], ['wheel', 'vase']) };
  assert.equal(surgeryFinding(edits, lost), '1 head off: lion (96.3% → <1.2%) gives way to wheel (50.0%)');
  const none = { ...edits, heads: new Map() };
  assert.equal(surgeryFinding(none, { ...lost, now: lost.before }), 'Nothing is edited: the model says lion, 96.3%'); // prettier-ignore
});

test('surveys of values are compared without answers', () => {
  const compared = { name: 'b', model: 'm', photos: 1234, changed: null, accuracy: '', heads: '', moved: [] };
  assert.equal(findingWords(compared), 'Compared with b: 1,234 photos');
});

test('a number has three digits that count, as Python writes it', () => {
  assert.deepEqual(
    [0, -0, 5.78e-4, 5.784e-5, 999.4, 999.6, -1234.5, 1, 0.1 + 0.2, 100].map((value) => number(value)),
    ['0', '0', '0.000578', '5.78e-05', '999', '1e+03', '-1.23e+03', '1', '0.3', '100'],
  );
  assert.deepEqual(
    [number(0.059830812, 4), number(1234.5678, 4), number(99996, 4)],
    ['0.05983', '1235', '1e+05'],
  );
});
