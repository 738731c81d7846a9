import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Frame } from '../../vit_viz/explorer/frame.js';
import { paintMap, paintMosaic, tableIndex } from '../../vit_viz/explorer/paint.js';
import { initialView } from '../../vit_viz/explorer/state.js';
import { frameOf, made } from './framed.js';
import { close, makeLayer, makeTrace } from './oracle.js';

const none = () => null;

test('the big map is the patch part of the chosen cell', () => {
  const { frame, view } = frameOf({ layer: 1, head: 3, query: '2,4' });
  const token = 2 + 2 * 6 + 4;
  assert.ok(close(frame.map(view), made[1].attention[3][token].slice(2), 1e-6));
});

test('with tokens before and after the patches the map, its scale and the shares are those of the patches', () => {
  const late = makeTrace({ tokens: 29, suffix: ['detection 0', 'detection 1', 'text'] });
  const layers = [4, 5, 6].map((seed) => makeLayer({ heads: 5, tokens: 29, headDim: 8, seed }));
  const frame = new Frame(late);
  const view = { ...initialView(late), clip: false, layer: 2, head: 4, query: '3,1' };
  frame.compute(view, (l) => layers[l].layer, none);
  const row = layers[2].attention[4][2 + 3 * 6 + 1];
  assert.ok(close(frame.map(view), row.slice(2, 26), 1e-6));
  const own = frame.range({ ...view, scale: 'own' }, 2, 4);
  assert.ok(
    close(own, [Math.min(...row.slice(2, 26)), ...Array(2).fill(Math.max(...row.slice(2, 26)))], 1e-6),
  );
  const patches = row.slice(2, 26).reduce((a, b) => a + b, 0);
  assert.ok(close(frame.mass(view), [row[0], row[1], row[26] + row[27], row[28], patches], 1e-6));
  const detection = { ...view, query: 'detection 1' };
  frame.compute(detection, (l) => layers[l].layer, none);
  assert.ok(close(frame.map(detection), layers[2].attention[4][27].slice(2, 26), 1e-6));
  const clipped = frame.range({ ...detection, scale: 'own', clip: true }, 2, 4);
  assert.ok(clipped[1] <= Math.max(...layers[2].attention[4][27].slice(2, 26)) + 1e-6);
});

test('the mosaic paints the patches of each cell', () => {
  const suffix = ['detection 0', 'detection 1', 'text'];
  const late = makeTrace({ tokens: 29, suffix });
  const plain = makeTrace({ tokens: 29, prefix: ['class', 'register 0', ...suffix] });
  const rows = [7, 8, 9].map((seed) =>
    Float32Array.from({ length: 5 * 29 }, (_, i) => ((i * seed) % 31) / 31),
  );
  const moved = rows.map((layer) =>
    layer.map(
      (_, i) =>
        layer[
          i - (i % 29) + [0, 1, 26, 27, 28, ...Array(24).keys()].map((t, j) => (j < 5 ? t : t + 2))[i % 29]
        ],
    ),
  );
  const paint = (/** @type {typeof late} */ shape, /** @type {Float32Array[]} */ answers) => {
    const frame = new Frame({ ...shape, pooling: 'mean' });
    const view = { ...initialView(shape), query: 'pool', clip: true };
    frame.compute(view, none, (l) => answers[l]);
    const picture = {
      pixels: new Uint32Array(),
      resize: (/** @type {number} */ w, /** @type {number} */ h) => (picture.pixels = new Uint32Array(w * h)),
      show: () => {},
    };
    paintMosaic(
      /** @type {any} */ (picture),
      frame,
      view,
      Uint32Array.from({ length: 256 }, (_, i) => i + 1),
    );
    return picture.pixels;
  };
  const [got, expected] = [paint(late, rows), paint(plain, moved)];
  assert.deepEqual(got, expected);
  assert.ok(new Set(got).size > 20);
});

test('a shared scale spans all cells, one of a layer its cells, an own one the cell', () => {
  const { frame, view } = frameOf({ query: 'class' });
  const patches = made.map(({ attention }) => attention.map((head) => head[0].slice(2)));
  const spans = { shared: patches.flat(2), layer: patches[2].flat(), own: patches[2][4] };
  for (const [scale, values] of Object.entries(spans)) {
    const [low, high] = frame.range({ ...view, scale: /** @type {any} */ (scale) }, 2, 4);
    assert.ok(close([low, high], [Math.min(...values), Math.max(...values)], 1e-6), scale);
  }
});

test('a clipped scale ends below the largest value and says what that is', () => {
  const { frame, view } = frameOf({ scale: 'shared' });
  const [low, high, top] = frame.range({ ...view, clip: true }, 0, 0);
  assert.ok(low < high && high < top);
  assert.equal(top, frame.range(view, 0, 0)[1]);
});

test('shares of a row sum to 1 for a head and for every fusion', () => {
  for (const head of [0, 'mean', 'max', 'min']) {
    const { frame, view } = frameOf({ head, query: '1,1' });
    assert.ok(Math.abs(frame.mass(view).reduce((a, b) => a + b, 0) - 1) < 1e-6);
  }
});

test('a layer that is not here is not fresh, and does not count for the scale', () => {
  const { frame, view } = frameOf({}, undefined, (l) => (l === 1 ? made[1].layer : null));
  assert.deepEqual([...frame.fresh], [0, 1, 0]);
  const one = frame.range(view, 1, 0);
  const layer = made[1].attention.map((head) => head[0].slice(2)).flat();
  assert.ok(close(one.slice(0, 2), [Math.min(...layer), Math.max(...layer)], 1e-6));
});

test('rows from the server stand in for a layer, times the norms where asked', () => {
  const rows = Float32Array.from({ length: 5 * 26 }, (_, i) => i / 1000);
  const pooled = makeTrace({ pooling: 'mean' });
  const frame = new Frame(pooled);
  const view = { ...initialView(pooled), query: 'pool', layer: 0, head: 1 };
  frame.compute(
    view,
    (l) => made[l].layer,
    () => rows,
  );
  assert.ok(close(frame.map(view), rows.subarray(28, 52), 0));
  frame.compute(
    { ...view, norm: true },
    (l) => made[l].layer,
    () => rows,
  );
  const norms = /** @type {Float32Array} */ (made[0].layer.norms);
  assert.ok(
    close(
      frame.map(view),
      [...rows.subarray(28, 52)].map((v, i) => v * norms[28 + i]),
      1e-6,
    ),
  );
});

test('a painted map has the colour of every value at its own patch', () => {
  const table = Uint32Array.from({ length: 256 }, (_, i) => i);
  const values = Float32Array.from({ length: 6 }, (_, i) => i / 7);
  const pixels = new Uint32Array(5 * 4).fill(999);
  paintMap(pixels, { at: 6, stride: 5, rows: 2, cols: 3 }, values, table, [0, 0.6, 1]);
  for (let i = 0; i < 6; i++) {
    const at = 6 + Math.floor(i / 3) * 5 + (i % 3);
    assert.equal(pixels[at], tableIndex(values[i], 0, 0.6));
  }
  assert.equal(pixels.filter((p) => p === 999).length, 20 - 6);
});
