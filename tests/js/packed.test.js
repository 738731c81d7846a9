import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';

import { attentionInto, halfFloats, layerBytes } from '../../vit_viz/explorer/attention.js';
import { packedSource, paired, parseSteps } from '../../vit_viz/explorer/packed.js';
import { initialView } from '../../vit_viz/explorer/state.js';
import { close, makeTrace, random, toHalf } from './oracle.js';

const HEADS = 5;
const TOKENS = 26;
const DIM = 8;
const CELLS = HEADS * TOKENS;
const { signal } = new AbortController();

/** First all first bytes, then all second ones, compressed. */
function packed(/** @type {ArrayBuffer} */ buffer) {
  const bytes = new Uint8Array(buffer);
  const planes = [0, 1].flatMap((place) => [...bytes].filter((_, i) => i % 2 === place));
  return new Uint8Array(deflateSync(Uint8Array.from(planes)));
}

/** A layer as the server sends it, with queries and keys of which fp16 keeps every digit. */
function halves() {
  const next = random(3);
  const buffer = new ArrayBuffer(layerBytes('qk', HEADS, TOKENS, DIM));
  new Float32Array(buffer, 0, CELLS).fill(4);
  new Float32Array(buffer, 4 * CELLS, CELLS).fill(2);
  const numbers = Array.from({ length: 2 * CELLS * DIM }, () => Math.round(4 * next() + 4) / 8);
  const eighths = Array.from({ length: 9 }, (_, i) => toHalf(i / 8, halfFloats()));
  new Uint16Array(buffer, 8 * CELLS).set(numbers.map((number) => eighths[8 * number]));
  return { buffer, q: numbers.slice(0, CELLS * DIM), k: numbers.slice(CELLS * DIM) };
}

test('pairs of bytes come back from their planes', () => {
  assert.deepEqual(
    [...new Uint8Array(paired(Uint8Array.of(1, 2, 3, 11, 12, 13).buffer))],
    [1, 11, 2, 12, 3, 13],
  );
});

test('a layer in fp16 is what was packed, times its own scale', async () => {
  const { buffer, q, k } = halves();
  const trace = makeTrace({ scales: [0.4, 0.25, 0.4] });
  /** @type {number[]} */
  const asked = [];
  const bytesOf = async (/** @type {number} */ layer) => {
    asked.push(layer);
    return packed(buffer);
  };
  const layer = /** @type {any} */ (
    await packedSource(bytesOf, { storage: 'fp16', pool: null }).layer(trace, 1, signal)
  );
  assert.deepEqual(asked, [1]);
  assert.ok(
    close(
      layer.q,
      q.map((number) => 0.25 * number),
      1e-7,
    ),
  );
  assert.ok(close(layer.k, k, 0));
  assert.deepEqual([layer.lse[7], layer.norms[7]], [4, 2]);
});

test('a layer of steps has the length of a step for each row', () => {
  const buffer = new ArrayBuffer(16 * CELLS + 2 * CELLS * DIM);
  const floats = new Float32Array(buffer, 0, 4 * CELLS);
  floats.fill(3, 0, CELLS);
  floats.set(
    Array.from({ length: CELLS }, (_, i) => (i + 1) / 64),
    2 * CELLS,
  );
  floats.set(
    Array.from({ length: CELLS }, (_, i) => (i + 1) / 32),
    3 * CELLS,
  );
  const steps = new Int8Array(buffer, 16 * CELLS);
  steps[3 * DIM + 2] = -127;
  steps[CELLS * DIM + 9 * DIM + 7] = 5;
  const layer = /** @type {any} */ (
    parseSteps(buffer, { heads: HEADS, tokens: TOKENS, headDim: DIM, scale: 0.5 })
  );
  assert.equal(layer.q[3 * DIM + 2], (-127 * 4 * 0.5) / 64);
  assert.equal(layer.k[9 * DIM + 7], (5 * 10) / 32);
  assert.equal(layer.lse[0], 3);
  assert.equal(layer.norms, null); // all 0: unknown
});

test('int8 is for layers of queries and keys alone', async () => {
  const trace = makeTrace({ source: ['attention', 'qk', 'qk'] });
  const bytes = packed(new ArrayBuffer(CELLS * (4 + 2 * TOKENS)));
  const source = packedSource(async () => bytes, { storage: 'int8', pool: null });
  assert.equal((await source.layer(trace, 0, signal)).kind, 'attention');
});

test('rows of the pool are the weighted mean of the rows of its tokens', async () => {
  const { buffer } = halves();
  const bytes = packed(buffer);
  const mean = makeTrace({ pooling: 'mean', default_query: 'pool' });
  const learned = makeTrace({ pooling: 'attention', default_query: 'pool' });
  const pool = Array.from({ length: TOKENS }, (_, i) => (i === 4 ? 0.75 : i === 11 ? 0.25 : 0));
  const source = packedSource(async () => bytes, { storage: 'fp16', pool });
  const layer = await source.layer(mean, 1, signal);
  const row = new Float32Array(TOKENS);
  for (const direction of /** @type {const} */ (['row', 'column'])) {
    const weighted = (/** @type {number[]} */ weights) => {
      const sum = new Float32Array(CELLS);
      for (let h = 0; h < HEADS; h++)
        weights.forEach((weight, token) => {
          attentionInto(row, layer, h, token, direction);
          row.forEach((value, j) => (sum[h * TOKENS + j] += weight * value));
        });
      return sum;
    };
    const even = Array.from({ length: TOKENS }, (_, i) => (i < 2 ? 0 : 1 / 24));
    for (const [trace, weights] of /** @type {[any, number[]][]} */ ([
      [mean, even],
      [learned, pool],
    ])) {
      const view = { ...initialView(trace), query: 'pool', direction };
      assert.ok(close(await source.rows(trace, 1, view, signal), weighted(weights), 1e-5));
    }
  }
});

test('nobody knows the numbers better, and there is no page to save', async () => {
  const source = packedSource(async () => new Uint8Array(), { storage: 'fp16', pool: null });
  const trace = makeTrace();
  assert.equal(await source.exact(trace, initialView(trace), signal), null);
  assert.equal(source.page(trace, initialView(trace)), '');
  assert.equal(source.photo('data:image/webp;base64,x'), 'data:image/webp;base64,x');
});
