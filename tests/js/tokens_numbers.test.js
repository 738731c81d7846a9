// The arithmetic of the Tokens tab and of the kit's numbers and controls, and what is kept of vectors.

import assert from 'node:assert/strict';
import test from 'node:test';

import { decodeTable } from '../../vit_viz/explorer/paint.js';
import {
  cosine,
  cosines,
  fixed,
  percent,
  rangeOf,
  readVectors,
  short,
} from '../../vit_viz/ui/kit/numbers.js';
import { asking, Held, MOST_BYTES } from '../../vit_viz/web/tokens/held.js';
import { LIFT, lightness, segmentColour, segmentPixels } from '../../vit_viz/web/tokens/plate.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser } from './browser.js';

test('vectors are read token by token, and compared with the patches, which come after the prefix', () => {
  // three tokens of two numbers: (1, 0), (0.5, -0.5), (0, 1)
  const vectors = readVectors(Uint16Array.of(0x3c00, 0, 0x3800, 0xb800, 0, 0x3c00).buffer, 3);
  assert.deepEqual([vectors.dim, ...vectors.data], [2, 1, 0, 0.5, -0.5, 0, 1]);
  for (const bytes of [10, 0]) assert.throws(() => readVectors(new ArrayBuffer(bytes), 3), /do not fit/);
  assert.deepEqual([...cosines(vectors, 1, 1, new Float32Array(2))], [0.5, -0.5]);
  assert.deepEqual([...cosines(vectors, 0, 1, new Float32Array(2))], [0.5, 0]);
  assert.equal(cosine(vectors, 1, 2), -0.5);
});

test('the range is over all maps, and of none from 0 to 1', () => {
  assert.deepEqual(rangeOf([Float32Array.of(3, 1), Float32Array.of(-2, 0)]), [-2, 3]);
  assert.deepEqual([rangeOf([]), rangeOf([Float32Array.of(4)])], [[0, 1], [4, 4]]); // prettier-ignore
});

test('colours become pixels of one opacity', () => {
  const pixels = decodeTable(Buffer.from([1, 2, 3, 255, 0, 128]).toString('base64'), 9);
  assert.deepEqual([...new Uint8Array(pixels.buffer)], [1, 2, 3, 9, 255, 0, 128, 9]);
});

test('numbers are short', () => {
  const numbers = [0, 0.28349, -0.0123, 0.0004, 12345.6, 45.678, 999.6, 1000, 0.01, 0.0099];
  const words = ['0', '0.283', '-0.0123', '0.0004', '12346', '45.7', '1000', '1000', '0.01', '0.0099'];
  assert.deepEqual(numbers.map(short), words);
  assert.deepEqual([0, 0.004, 0.5, 0.01, 1].map(percent), ['0%', '0.4%', '50%', '1%', '100%']);
});

test('segments are pixels of their colours, each with its opacity', () => {
  const bytes = new Uint8Array(segmentPixels([1, 0], (segment) => 100 + segment).buffer);
  assert.deepEqual([...bytes], [...segmentColour(1), 101, ...segmentColour(0), 100]);
});

test('colours keep the lightness of the photo, and are seen where it is black', () => {
  const gray = [...lightness(Uint8ClampedArray.of(0, 0, 0, 255, 255, 255, 255, 90, 255, 0, 0, 255))];
  const low = Math.round(255 * LIFT);
  const red = Math.round(255 * (LIFT + (1 - LIFT) * 0.2126));
  assert.deepEqual(gray, [low, low, low, 255, 255, 255, 255, 90, red, red, red, 255]);
});

test('vectors are kept as long as there is room for them, those that are wanted first', async () => {
  const large = new Uint16Array(MOST_BYTES / 8); // two of them fill the room
  const fetch = async () => ({ ok: true, arrayBuffer: async () => large.buffer });
  new Browser().install({ fetch });
  const held = new Held(
    { trace: 'abc', prefix: [], suffix: [], grid: [1, 4], about: {}, view: '' },
    async () => null,
    SERVER,
  );
  const piece = (/** @type {number} */ state) => ({
    key: `tokens/${state}`,
    role: /** @type {const} */ ('tokens'),
    state,
  });
  const fetching = async (/** @type {number[]} */ ...states) => {
    const wanted = states.map(piece);
    for (const one of wanted) await held.fetch('similarity', one, wanted);
    return [...held.vectors.keys()];
  };
  assert.deepEqual(await fetching(3, 0), ['tokens/3', 'tokens/0']);
  assert.equal(held.most, 2);
  assert.deepEqual(await fetching(1, 3), ['tokens/3', 'tokens/1'].sort().reverse()); // 0 made room
});

test('questions are asked with what is chosen, and what is empty is left out', async () => {
  new Browser().install();
  /** @type {any[]} */
  const asked = [];
  const of = {
    trace: 'abc',
    prefix: [],
    suffix: [],
    grid: /** @type {[number, number]} */ ([1, 4]),
    about: { model: 'mini' },
    view: 'image=lion&part=1,2,3,4',
  };
  const ask = async (/** @type {string} */ name, /** @type {any} */ body) => {
    asked.push([name, body]);
    return {};
  };
  const held = new Held(of, ask, SERVER);
  await held.fetchAnswer(asking('segments', { layer: 3, box: '', method: 'cut' }));
  await held.fetchAnswer(asking('token_components', { foreground: true, second: 'x y' }));
  assert.deepEqual(asked, [
    ['segments', { model: 'mini', layer: 3, method: 'cut' }],
    ['token_components', { model: 'mini', foreground: true, second: 'x y' }],
    ['open', { view: 'image=x+y' }],
  ]);
});

test('a number that rounds to zero has no sign', () => {
  const texts = [-0.004, -0, 0.004, -0.006, -12.345].map((value) => fixed(value, 2));
  assert.deepEqual(texts, ['0.00', '0.00', '0.00', '-0.01', '-12.35']);
  assert.deepEqual([fixed(-0.4, 0), fixed(-0.6, 0)], ['0', '-1']);
});
