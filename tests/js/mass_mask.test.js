// The top of a map: by hand, against sorting, and against the masks of Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { massMask } from '../../vit_viz/explorer/frame.js';
import { read } from './browser.js';
import { random } from './oracle.js';

/** What a share of the sum takes, found by sorting all pairs of value and index. */
function sorted(/** @type {Float32Array} */ values, /** @type {number} */ share) {
  const order = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  const total = values.reduce((a, b) => a + b, 0);
  const mask = new Uint8Array(values.length);
  for (let sum = 0, i = 0; sum < (share - 1e-7) * total; i++) {
    sum += values[order[i]];
    mask[order[i]] = 1;
  }
  return mask;
}

test('the mass mask is the smallest set that holds the share, by hand', () => {
  const values = Float32Array.of(0.1, 0.4, 0.2, 0.3);
  assert.deepEqual([...massMask(values, 0.6)], [0, 1, 0, 1]);
  assert.deepEqual([...massMask(values, 0.75)], [0, 1, 1, 1]);
  assert.deepEqual([...massMask(values, 1)], [1, 1, 1, 1]);
  assert.deepEqual([...massMask(Float32Array.of(1, 4, 2, 3), 0.7)], [0, 1, 0, 1]);
  assert.deepEqual([...massMask(Float32Array.of(1, 4, 2, 3), 0.71)], [0, 1, 1, 1]);
});

test('equal values enter the mass mask in order of their index', () => {
  assert.deepEqual([...massMask(Float32Array.of(1, 1, 1, 1), 0.5)], [1, 1, 0, 0]);
  assert.deepEqual([...massMask(Float32Array.of(1, 2, 1, 1, 2), 0.7)], [1, 1, 0, 0, 1]);
  assert.deepEqual([...massMask(Float32Array.of(1, 1, 4, 1), 1)], [1, 1, 1, 1]);
});

test('a map of zeros has an empty mass mask, and zeros are never needed', () => {
  assert.deepEqual([...massMask(new Float32Array(4), 0.6)], [0, 0, 0, 0]);
  assert.deepEqual([...massMask(Float32Array.of(0, 3, 0), 1)], [0, 1, 0]);
});

test('a part of a larger array has the mask of its own values', () => {
  const whole = Float32Array.of(9, 9, 1, 4, 2, 3, 9);
  assert.deepEqual([...massMask(whole.subarray(2, 6), 0.7)], [0, 1, 0, 1]);
});

test('the mass mask agrees with sorting all pairs: ties, near ties and values of every size', () => {
  const next = random(3); // from -1 to 1
  const kinds = [
    () => Math.round(6 + 6 * next()) / 8,
    () => 2 ** (60 * next()),
    () => 0.25 + 1e-7 * Math.round(3 * next()),
    () => Math.max(0, next()),
  ];
  for (let round = 0; round < 200; round++) {
    const values = Float32Array.from({ length: 23 + round }, kinds[round % 4]);
    const share = 0.05 + 0.45 * (next() + 1);
    assert.deepEqual(massMask(values, share), sorted(values, share), `round ${round}`);
  }
});

for (const { name, share, values, mask } of JSON.parse(read('./masks.json'))) {
  test(`${share} of ${name} keeps the patches that Python keeps`, () => {
    const bytes = Uint8Array.from(Buffer.from(values, 'base64'));
    const kept = massMask(new Float32Array(bytes.buffer), share);
    assert.deepEqual([...kept], [...Buffer.from(mask, 'base64')]);
  });
}
