// From halves to pixels: the numbers of a repaint and what is painted of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { QueryMean, layerBytes, parseLayer } from '../../vit_viz/explorer/attention.js';
import { CLIPPED, massMask } from '../../vit_viz/explorer/frame.js';
import {
  Picture,
  decodeTable,
  paintBigMap,
  paintMap,
  paintMosaic,
  tableIndex,
} from '../../vit_viz/explorer/paint.js';
import { Element } from './browser.js';
import { frameOf, made, trace } from './framed.js';
import { close } from './oracle.js';

const gray = Uint32Array.from({ length: 256 }, (_, i) => 0xff000000 | i);
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

test('a layer has the bytes of its kind, and is refused with one more or less', () => {
  assert.deepEqual(
    [layerBytes('qk', 5, 26, 9), layerBytes('attention', 5, 26, 9), layerBytes('rows', 5, 26, 9)],
    [5 * 26 * 44, 5 * 26 * 56, Infinity],
  );
  const about = { kind: 'qk', heads: 5, tokens: 26, headDim: 9, scale: 0.5 };
  for (const more of [-2, 2])
    assert.throws(() => parseLayer(new ArrayBuffer(5 * 26 * 44 + more), about), /has 5720 bytes, not/);
  assert.equal(any(parseLayer(new ArrayBuffer(5720), about)).norms, null); // all 0: unknown
  const buffer = new ArrayBuffer(5720);
  new Float32Array(buffer, 4 * 130, 130)[129] = 3;
  new Uint16Array(buffer, 8 * 130)[9 * 130] = 0x3c00;
  const layer = any(parseLayer(buffer, about));
  assert.deepEqual(
    [layer.norms[129], layer.k[0], layer.q[0], layer.q.length, layer.k.length],
    [3, 1, 0, 1170, 1170],
  );
});

test('only the rows that changed are added to a mean', () => {
  const mean = new QueryMean(made[0].layer, 'row', false);
  /** @type {[number, number][]} */
  const added = [];
  const add = mean.add.bind(mean);
  mean.add = (token, sign) => {
    added.push([token, sign]);
    add(token, sign);
  };
  const out = new Float32Array(5 * 26);
  mean.into([1, 2, 3, 4, 5], out, 0);
  added.length = 0;
  mean.into([1, 2, 3, 5, 6], out, 0);
  assert.deepEqual(added, [
    [6, 1],
    [4, -1],
  ]);
  added.length = 0;
  mean.into([1, 2], out, 0); // three leave: two rows are cheaper
  assert.deepEqual(added, [
    [1, 1],
    [2, 1],
  ]);
});

test('a clipped scale lets a hundredth of the values share the last colour', () => {
  const { frame, view } = frameOf({ clip: true, scale: 'shared' });
  const [, high] = frame.range(view, 0, 0);
  const cells = made.flatMap(({ attention }) => [...attention.map((head) => head[0].slice(2))]).flat();
  const above = cells.filter((value) => value > high).length / cells.length;
  assert.ok(above <= 2.5 * CLIPPED, `${above}`);
  assert.ok(above > 0);
});

test('the range of nothing is from 0 to 1', () => {
  const { frame, view } = frameOf({}, trace, () => null);
  assert.deepEqual(frame.range(view, 0, 0), [0, 1, 1]);
});

// --- pictures

function picture() {
  return new Picture(any(new Element('canvas')));
}

const shownPixels = (/** @type {any} */ one) => [...new Uint32Array(one.context.data.data.buffer)];

test('layers that are not here are empty, those that are behind stay, later ones are drawn', () => {
  const { frame, view } = frameOf({ scale: 'layer', extremes: true }, trace, (l) =>
    l === 0 ? null : made[l].layer,
  );
  const mosaic = picture();
  paintMosaic(mosaic, frame, view, gray);
  const stride = 8 * 6;
  const layer = (/** @type {number} */ l) => shownPixels(mosaic).slice(l * 4 * stride, (l + 1) * 4 * stride);
  assert.ok(layer(0).every((pixel) => pixel === 0));
  const before = layer(1);
  const last = layer(2);
  assert.ok(before.every((pixel) => pixel >>> 24 === 255) && new Set(before).size > 20);
  frame.compute(
    { ...view, query: '1,1' },
    (l) => (l === 2 ? made[2].layer : null),
    () => null,
  );
  paintMosaic(mosaic, frame, { ...view, query: '1,1' }, gray);
  assert.ok(layer(0).every((pixel) => pixel === 0));
  assert.deepEqual(layer(1), before); // the screen lets it fade
  assert.ok(layer(2).every((pixel) => pixel >>> 24 === 255));
  assert.notDeepEqual(layer(2), last);
});

test('the big map is empty while its layer is behind, and says its range', () => {
  const big = picture();
  const { frame, view } = frameOf({ layer: 1, head: 2, query: '2,4', scale: 'layer' });
  const range = paintBigMap(big, frame, view, gray);
  const row = made[1].attention[2][2 + 16].slice(2);
  assert.ok(close(range, [Math.min(...row), Math.max(...row), Math.max(...row)], 1e-6));
  assert.deepEqual(
    shownPixels(big).map((pixel) => pixel & 255),
    row.map((v) => tableIndex(Math.fround(v), range[0], range[1])),
  );
  frame.fresh[1] = 0;
  paintBigMap(big, frame, view, gray);
  assert.ok(shownPixels(big).every((pixel) => pixel === 0));
});

test('what a mass mask leaves out gets the pixel that is asked for', () => {
  const { frame, view } = frameOf({ layer: 1, head: 2, query: '2,4', scale: 'own', mask: 0.4 });
  const [big, mosaic] = [picture(), picture()];
  paintBigMap(big, frame, view, gray, 0x12345678);
  paintMosaic(mosaic, frame, view, gray, 0x12345678);
  const mask = massMask(frame.map(view), 0.4);
  const cell = (/** @type {number} */ i) =>
    shownPixels(mosaic)[(4 + Math.floor(i / 6)) * 36 + 2 * 6 + (i % 6)];
  for (const [i, inside] of mask.entries()) {
    assert.equal(shownPixels(big)[i] === 0x12345678, !inside);
    assert.equal(cell(i) === 0x12345678, !inside);
  }
});

test('colours lie between the ends, also where these are not 0 and 1', () => {
  assert.deepEqual(
    [2, 3, 4, 1, 9].map((v) => tableIndex(v, 2, 4)),
    [0, 128, 255, 0, 255],
  );
  assert.equal(tableIndex(0.1, 0, 1), 26);
  assert.deepEqual(
    [1, 2, 3].map((v) => tableIndex(v, 2, 2)),
    [0, 128, 255],
  );
  const pixels = new Uint32Array(4);
  paintMap(pixels, { at: 1, stride: 3, rows: 1, cols: 3 }, Float32Array.of(2, 3, 9), gray, [2, 4, 4]);
  assert.deepEqual(
    [...pixels].map((pixel) => pixel & 255),
    [0, 0, 128, 255],
  );
  paintMap(pixels, { at: 0, stride: 2, rows: 2, cols: 2 }, Float32Array.of(1, 2, 3, 2), gray, [2, 2, 2]);
  assert.deepEqual(
    [...pixels].map((pixel) => pixel & 255),
    [0, 128, 255, 128],
  );
});

test('a table is 256 opaque colours', () => {
  const bytes = Uint8Array.from({ length: 768 }, (_, i) => (i * 7) % 256);
  const table = decodeTable(Buffer.from(bytes).toString('base64'));
  const colours = new Uint8Array(table.buffer);
  for (const i of [0, 1, 100, 255])
    assert.deepEqual([...colours.slice(4 * i, 4 * i + 4)], [...bytes.slice(3 * i, 3 * i + 3), 255]);
});

test('a picture keeps its pixels while its size stays', () => {
  const one = picture();
  one.resize(3, 2);
  const { pixels } = one;
  one.resize(3, 2);
  assert.equal(one.pixels, pixels);
  one.resize(2, 3);
  assert.notEqual(one.pixels, pixels);
  assert.deepEqual([any(one.canvas).width, any(one.canvas).height], [2, 3]);
});
