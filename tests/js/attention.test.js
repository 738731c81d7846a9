import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  Quantile,
  QueryMean,
  attentionInto,
  decay,
  extent,
  fuseHeads,
  halfFloats,
  layerBytes,
  parseLayer,
  prefixMass,
  softmax,
  unpackHalf,
} from '../../vit_viz/explorer/attention.js';
import { close, makeLayer, random, toHalf } from './oracle.js';

const SIZES = { heads: 5, tokens: 26, headDim: 8 };

test('every row sums to 1 and equals the softmax that is written out', () => {
  const { layer, attention } = makeLayer(SIZES);
  const row = new Float32Array(26);
  for (let h = 0; h < 5; h++) {
    for (let i = 0; i < 26; i++) {
      attentionInto(row, layer, h, i, 'row');
      assert.ok(Math.abs(row.reduce((a, b) => a + b, 0) - 1) < 1e-6);
      assert.ok(close(row, attention[h][i], 1e-6));
    }
  }
});

test('columns are the transposed rows', () => {
  const { layer, attention } = makeLayer({ ...SIZES, headDim: 7 }); // a dimension that does not divide by 4
  const column = new Float32Array(26);
  for (let h = 0; h < 5; h++) {
    for (let j = 0; j < 26; j++) {
      attentionInto(column, layer, h, j, 'column');
      const expected = attention[h].map((row) => row[j]);
      assert.ok(close(column, expected, 1e-6), `head ${h}, column ${j}`);
    }
  }
});

test('softmax by hand: scores ln 1, ln 2, ln 5 give 1/8, 2/8, 5/8', () => {
  const scores = Float32Array.of(Math.log(1), Math.log(2), Math.log(5));
  softmax(scores);
  assert.ok(close(scores, [0.125, 0.25, 0.625], 1e-7));
});

test('softmax survives scores that would overflow', () => {
  const scores = Float32Array.of(900, 899, -900);
  softmax(scores);
  assert.ok(close(scores, [1 / (1 + Math.exp(-1)), 1 / (1 + Math.E), 0], 1e-6));
});

test('the quick exponential equals Math.exp, also where its table ends and beyond', () => {
  let worst = 0;
  for (let y = 0; y < 104.5; y += 0.00137) {
    const exact = Math.exp(-y);
    worst = Math.max(worst, Math.abs(decay(y) - exact) / exact);
  }
  assert.ok(worst < 3e-9, `${worst}`);
  for (const y of [-0.3, -12, 104, 200, Infinity, -Infinity]) assert.equal(decay(y), Math.exp(-y));
  assert.ok(Number.isNaN(decay(NaN)));
});

test('a key that no query may see gets nothing, and a column may exceed 1 by its rounding', () => {
  const scores = Float32Array.of(3, -Infinity, 3);
  softmax(scores);
  assert.deepEqual([...scores], [0.5, 0, 0.5]);
  const { layer } = makeLayer(SIZES);
  assert.ok(layer.kind === 'qk');
  const column = new Float32Array(26);
  attentionInto(column, { ...layer, lse: layer.lse.map((v) => v - 9) }, 2, 3, 'column');
  const plain = new Float32Array(26);
  attentionInto(plain, layer, 2, 3, 'column');
  const grown = Array.from(plain, (v) => v * Math.exp(9));
  assert.ok(Math.max(...grown) > 1 && close(column, grown, 1e-5 * Math.max(...grown)));
});

test('norm weighting multiplies by the norm of the key, in rows and in columns', () => {
  const { layer, attention } = makeLayer(SIZES);
  const norms = /** @type {Float32Array} */ (layer.norms);
  const out = new Float32Array(26);
  attentionInto(out, layer, 4, 9, 'row', true);
  const row = attention[4][9].map((a, j) => a * norms[4 * 26 + j]);
  assert.ok(close(out, row, 1e-5));
  attentionInto(out, layer, 4, 9, 'column', true);
  const column = attention[4].map((r) => r[9] * norms[4 * 26 + 9]);
  assert.ok(close(out, column, 1e-5));
});

test('attention that travels as it is gives the same rows and columns', () => {
  const table = halfFloats();
  const buffer = new ArrayBuffer(2 * 3 * (4 + 2 * 3));
  new Uint16Array(buffer, 4 * 2 * 3).set(Array.from({ length: 2 * 3 * 3 }, (_, i) => toHalf(i / 64, table)));
  const about = { kind: 'attention', heads: 2, tokens: 3, headDim: 1, scale: 1 };
  const layer = parseLayer(buffer, about);
  const out = new Float32Array(3);
  attentionInto(out, layer, 1, 2, 'row');
  assert.ok(close(out, [15 / 64, 16 / 64, 17 / 64], 0));
  attentionInto(out, layer, 1, 2, 'column');
  assert.ok(close(out, [11 / 64, 14 / 64, 17 / 64], 0));
  assert.equal(layer.norms, null); // all 0: unknown
  new Float32Array(buffer, 0, 6).set([9, 9, 9, 2, 4, 8]);
  attentionInto(out, parseLayer(buffer, about), 1, 2, 'row', true);
  assert.ok(close(out, [30 / 64, 64 / 64, 136 / 64], 0));
  attentionInto(out, parseLayer(buffer, about), 1, 2, 'column', true);
  assert.ok(close(out, [88 / 64, 112 / 64, 136 / 64], 0));
});

test('a region is the mean of its rows, whatever it was before', () => {
  const { layer, attention } = makeLayer(SIZES);
  const mean = new QueryMean(layer, 'row', false);
  const out = new Float32Array(3 + 5 * 26);
  for (const tokens of [[4], [4, 5], [4, 5, 10, 11], [5, 10, 11], [20, 21, 22], [2], [20, 21, 22, 23]]) {
    mean.into(tokens, out, 3);
    for (let h = 0; h < 5; h++) {
      const expected = attention[h][0].map(
        (_, j) => tokens.reduce((sum, i) => sum + attention[h][i][j], 0) / tokens.length,
      );
      assert.ok(close(out.subarray(3 + h * 26, 3 + (h + 1) * 26), expected, 1e-6), `tokens ${tokens}`);
    }
  }
});

test('fp16 unpacks by table: zeros, smallest, one, third, largest, infinity, not a number', () => {
  const bits = Uint16Array.of(
    0x0000,
    0x8000,
    0x0001,
    0x0400,
    0x3c00,
    0xc000,
    0x3555,
    0x7bff,
    0x7c00,
    0xfc00,
    0x7e00,
  );
  const out = unpackHalf(bits.buffer, 0, bits.length, false);
  const expected = [0, -0, 2 ** -24, 2 ** -14, 1, -2, 0.333251953125, 65504, Infinity, -Infinity, NaN];
  assert.deepEqual([...out], expected);
});

test('fp16 by table equals Float16Array where there is one', (t) => {
  if (!('Float16Array' in globalThis)) return t.skip('this Node has no Float16Array');
  const bits = Uint16Array.from({ length: 0x7c00 }, (_, i) => i);
  assert.deepEqual(
    unpackHalf(bits.buffer, 0, bits.length, true),
    unpackHalf(bits.buffer, 0, bits.length, false),
  );
});

test('a layer is read as the route writes it, with the scale in q', () => {
  const [heads, tokens, headDim] = [2, 3, 4];
  const cells = heads * tokens;
  const buffer = new ArrayBuffer(layerBytes('qk', heads, tokens, headDim));
  new Float32Array(buffer, 0, cells).set([1, 2, 3, 4, 5, 6]);
  new Float32Array(buffer, 4 * cells, cells).set([7, 8, 9, 10, 11, 12]);
  new Uint16Array(buffer, 8 * cells, cells * headDim).fill(0x4000); // 2
  new Uint16Array(buffer, 8 * cells + 2 * cells * headDim, cells * headDim).fill(0x3800); // 0.5
  const layer = parseLayer(buffer, { kind: 'qk', heads, tokens, headDim, scale: 0.25 });
  assert.equal(layer.kind, 'qk');
  if (layer.kind !== 'qk') return;
  assert.deepEqual([...layer.lse], [1, 2, 3, 4, 5, 6]);
  assert.deepEqual([...(layer.norms ?? [])], [7, 8, 9, 10, 11, 12]);
  assert.ok(layer.q.every((v) => v === 0.5) && layer.q.length === 24);
  assert.ok(layer.k.every((v) => v === 0.5) && layer.k.length === 24);
});

test('heads fuse to mean, maximum and minimum', () => {
  const cells = new Float32Array(1 + (2 + 3) * 3);
  cells.set([1, 5, 3, 3, 1, 3], 1);
  fuseHeads(cells, 1, 2, 3);
  assert.deepEqual([...cells.subarray(7)], [2, 3, 3, 3, 5, 3, 1, 1, 3]);
});

test('suffix tokens are a part of their own, by kind, and not patches', () => {
  const row = Float32Array.of(9, 0.1, 0.2, 0.05, 0.15, 0.25, 0.1, 0.15); // one prefix token, three patches, three suffix tokens
  const parts = prefixMass(row, 1, 1, 3, [[4, 6], [5]]);
  assert.ok(close(parts, [0.1, 0.25 + 0.15, 0.1, 0.2 + 0.05 + 0.15], 1e-7));
  assert.ok(Math.abs(parts.reduce((a, b) => a + b, 0) - 1) < 1e-6);
});

test('a model without prefix tokens has all mass on patches', () => {
  assert.deepEqual(prefixMass(Float32Array.of(9, 0.25, 0.75), 1, 0, 2), [1]);
});

test('extent finds smallest and largest of a part', () => {
  assert.deepEqual(extent(Float32Array.of(9, 2, 3, 1, -5), 1, 4), [1, 3]);
});

test('the top quantile is within 1.6% of the sorted one', () => {
  const next = random(8);
  const values = Float32Array.from({ length: 5000 }, () => Math.exp(4 * next()));
  const quantile = new Quantile();
  quantile.reset(Math.min(...values), Math.max(...values));
  quantile.add(new Uint32Array(values.buffer), 0, values.length);
  const sorted = values.slice().sort();
  const expected = sorted[values.length - 1 - 50];
  const found = quantile.top(0.01);
  assert.ok(found >= expected && found <= expected * 1.016, `${found} for ${expected}`);
});
