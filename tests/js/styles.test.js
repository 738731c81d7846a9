// The browser's light, tint and heat against those of Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decodeTable, tableIndex } from '../../vit_viz/explorer/paint.js';
import { barPixels, dimmed, drawn, layerTable, suited } from '../../vit_viz/explorer/styles.js';
import { read } from './browser.js';

const python = JSON.parse(read('./styles.json'));
const table = decodeTable(python.table);

/** Bytes of RGB as opaque RGBA. */
function opaque(/** @type {string} */ text) {
  const rgb = [...Buffer.from(text, 'base64')];
  const count = rgb.length / 3;
  const pixels = Array.from({ length: count }, (_, i) => [...rgb.slice(3 * i, 3 * i + 3), 255]);
  return Uint8ClampedArray.from(pixels.flat());
}

function apart(/** @type {Uint8ClampedArray} */ a, /** @type {Uint8ClampedArray} */ b) {
  assert.equal(a.length, b.length);
  return Math.max(...a.map((value, i) => Math.abs(value - b[i])));
}

for (const { style, strength, pixels } of python.cases) {
  test(`${style} at strength ${strength} has Python\u2019s pixels within 1 of 255`, () => {
    const places = python.shares.map((/** @type {number} */ share) => tableIndex(share));
    const ours = drawn(opaque(python.photo), places, style, layerTable(style, strength, table));
    assert.ok(apart(ours, opaque(pixels)) <= 1);
    if (strength === 0) assert.deepEqual(ours, opaque(python.photo));
  });
}

test('the bars have Python\u2019s colours within 1 of 255', () => {
  for (const style of /** @type {const} */ (['light', 'tint', 'heat']))
    assert.ok(
      apart(new Uint8ClampedArray(barPixels(style, table).buffer), opaque(python.bars[style])) <= 1,
      style,
    );
});

test('a dimmed photo is gray at a fifth of its luma, and keeps its opacity', () => {
  assert.deepEqual([...dimmed(Uint8ClampedArray.of(200, 100, 50, 80))], [24, 24, 24, 80]);
});

test('only light gives way to tint, and only where the photo cannot be lit', () => {
  assert.deepEqual(
    [
      suited('light', 'too dark'),
      suited('heat', 'too dark'),
      suited('light', ''),
      suited('light', undefined),
    ],
    ['tint', 'heat', 'light', 'light'],
  );
});
