// What the answer is made of: the maps of heads, their sums and scale, and what the table and the button tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount as parts } from '../../vit_viz/ui/explain/parts.js';
import { Terms, nameOf } from '../../vit_viz/ui/explain/parts_table.js';
import { endOf, signed, signedTable } from '../../vit_viz/ui/explain/signed.js';
import { component, mount } from './browser.js';

const PARTS = component(parts, 'ui/explain/parts.html');
const [ROWS, COLS, LAYERS, HEADS] = [2, 3, 2, 4];

/** What each head took from each patch: layer + head / 10 in each of 6 patches, but for one that speaks against. */
function terms(off = false) {
  const values = new Float32Array(LAYERS * HEADS * ROWS * COLS);
  for (let i = 0; i < values.length; i++) {
    const place = Math.floor(i / (ROWS * COLS));
    values[i] = Math.floor(place / HEADS) + (place % HEADS) / 10;
  }
  if (off) values.fill(0, 7 * 6, 8 * 6);
  else values[7 * 6 + 4] = -5; // layer 1, head 3, patch 4
  return values;
}

const heads = [
  [0, 0.6, 1.2, 1.8],
  [6, 6.6, 7.2, 1.5],
];
const numbers = { layers: ['0', '1'], heads, mlps: [-1, 2], total: 25.9, output: 25.9 };
const value = {
  revision: 1,
  state: 'ready',
  terms: '/parts/now',
  terms_before: '',
  grid: [ROWS, COLS],
  crop: { original: [40, 60], input: [40, 60], region: [0, 0, 40, 60] },
  photo: '/photo',
  photo_size: [40, 60],
  name: 'odd',
  target: 'lion',
  title: 'Half of lion comes from nowhere',
  now: numbers,
  before: numbers,
  off: [],
  decimals: 2,
  sum: [
    ['embedding', 1],
    ['all heads', 24.9],
  ],
  unit: 'logit',
  note: 'Direct parts.',
  outside: { 'class token': -0.25 },
  effect: null,
  why_not: '',
  figure: '/figure',
};

test('a head has its map, a layer and the whole their sums, and the scale is that of the strongest head', () => {
  const all = new Terms(/** @type {any} */ (value), terms(), terms());
  assert.deepEqual(
    [...all.map('1.2')].map((part) => part.toFixed(1)),
    Array(6).fill('1.2'),
  );
  assert.equal(all.map('1')[4].toFixed(1), (1 + 1.1 + 1.2 - 5).toFixed(1));
  assert.equal(all.map(null)[0].toFixed(1), (0.6 + 4.6).toFixed(1));
  assert.equal(all.sum('1'), 21.3);
  assert.equal(all.most, 5);
  assert.equal(all.strongestAt(4, -1)?.place, '1.3');
  assert.equal(all.strongestAt(4, 1)?.place, '1.2');
  assert.equal(all.has('1.3') && !all.has('1.4') && !all.has('2'), true);
});

test('a head that is off shows what it took before, and the sum leaves it out', () => {
  const now = { ...numbers, heads: [heads[0], [6, 6.6, 7.2, 0]] };
  const all = new Terms(/** @type {any} */ ({ ...value, now, off: [[1, 3]] }), terms(true), terms());
  assert.equal(all.map('1.3')[4], -5);
  assert.equal(all.sum('1.3'), 1.5);
  assert.equal(all.map(null)[4].toFixed(1), (0.6 + 3.3).toFixed(1));
  assert.equal(all.isOff('1.3') && !all.isOff('1'), true);
});

test('maps of another photo are refused', () => {
  assert.throws(() => new Terms(/** @type {any} */ (value), terms().subarray(6), terms()), /reload/);
});

test('colours are clear in the middle, and signs are written out', () => {
  const bytes = new Uint8ClampedArray(signedTable().buffer);
  assert.ok(bytes[4 * 127 + 3] <= 1 && bytes[3] > 200 && bytes[4 * 255 + 3] > 200);
  assert.ok(bytes[2] > bytes[0] && bytes[4 * 255] > bytes[4 * 255 + 2]);
  assert.deepEqual([signed(-1.25, 1), signed(-0.001, 2), signed(2, 0)], ['−1.3', '+0.00', '+2']);
  assert.equal(endOf(new Float32Array([0, -3, 1])), 3);
  assert.equal(nameOf('1', ['0', 'pool']), 'the heads of layer pool');
});

/** The room with its maps. @param {Partial<typeof value>} more */
async function room(more = {}, now = terms()) {
  const part = mount(PARTS, null);
  const answer = async (/** @type {string} */ path) => ({
    ok: true,
    arrayBuffer: async () => (path.includes('before') ? terms() : now).buffer,
  });
  part.browser.install({ after: () => {} }, { fetch: answer });
  part.set({ ...value, ...more });
  for (let i = 0; i < 10; i++) await null;
  return part;
}

test('the button names the head that gives most, then the one that is shown, and tells which is switched', async () => {
  const part = await room();
  assert.equal(part.find('parts').dataset.state, 'ready');
  assert.match(part.find('sum-title').textContent, /^Exactly 25.90/);
  assert.match(part.find('sum-words').textContent, /embedding \+1.00, all heads \+24.90/);
  assert.equal(part.find('parts-switch').textContent, 'switch off 1 · 2 (promised −7.20)');
  part.find('parts-switch').fire('click');
  assert.deepEqual(part.told.at(-1), ['switch', { place: '1.2' }]);
});

test('where nothing can be switched off a click tells nothing, and the reason stands there', async () => {
  const part = await room({ why_not: 'It has a pool.' });
  assert.equal(part.find('parts-switch').hidden, true);
  assert.match(part.find('parts-hint').textContent, /It has a pool/);
  part.find('parts-cell').fire('click', { target: part.find('parts-cell') });
  assert.deepEqual(part.told, []);
});

test('an older answer is not shown, and a refusal hides what was there', async () => {
  const part = await room({ revision: 5 });
  part.set({ ...value, revision: 4, state: 'hidden' });
  assert.equal(part.find('parts').hidden, false);
  part.set({ revision: 6, state: 'error', error: 'It has no such sum.' });
  assert.equal(part.find('parts-error').textContent, 'It has no such sum.');
  assert.equal(part.find('parts-heads').hidden, true);
});
