// The words and the numbers of the Positions tab's tables, without a browser.

import assert from 'node:assert/strict';
import test from 'node:test';

import { readFloats, sameWords, variantWords } from '../../vit_viz/ui/positions/tables.js';

test('numbers travel as they are', () => {
  const numbers = Float32Array.of(0.1, -2.5, 1e-20);
  assert.deepEqual(readFloats(Buffer.from(numbers.buffer).toString('base64')), numbers);
});

test('a way of resampling is told by how far it lies from the own one', () => {
  const variant = { name: 'dino', colours: '', difference: '', overall: 0.184 };
  assert.equal(variantWords(variant, 'timm'), 'dino: differs by 18%');
  assert.equal(variantWords({ ...variant, overall: 0 }, 'timm'), 'dino: differs by nothing');
  assert.equal(variantWords(variant, 'dino'), "dino: this model's own way");
  assert.match(sameWords([4, 6]), /^This photo's grid, 4 x 6, is the checkpoint's own/);
});
