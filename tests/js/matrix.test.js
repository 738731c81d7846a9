// The matrix of a head, its axis, colours and strongest links, against matrices that are written out.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  Axis,
  Filling,
  Strongest,
  endsOf,
  paintWeights,
  pixelTable,
  shareOnScale,
} from '../../vit_viz/explorer/matrix.js';
import { close, makeLayer, makeTrace, random } from './oracle.js';

const SIZES = { heads: 5, tokens: 26, headDim: 8 };

/** A matrix that is computed to its end. */
function filled(
  /** @type {any} */ layer,
  /** @type {number | string} */ head,
  /** @type {Axis} */ axis,
  most = 10,
) {
  const filling = new Filling(layer, head, axis, most);
  while (!filling.isDone) filling.step();
  return filling;
}

test('an axis has the prefix tokens, the patches row by row, and the suffix tokens', () => {
  const axis = new Axis(makeTrace({ suffix: ['detection 0'] }));
  assert.deepEqual([axis.cells, axis.tokens, axis.block], [27, 27, 1]);
  assert.deepEqual(
    [0, 1, 2, 9, 25, 26].map((cell) => axis.nameOf(cell)),
    ['class token', 'register 0', 'patch (0, 0)', 'patch (1, 1)', 'patch (3, 5)', 'detection 0'],
  );
  assert.deepEqual(
    [0, 2, 26].map((cell) => axis.namedOf(cell)),
    ['class', '', 'detection 0'],
  );
  assert.deepEqual([axis.patchesOf(1), axis.patchesOf(2), axis.patchesOf(26)], [[], [0], []]);
});

test('the axis holds 2,000 tokens one by one; above that, neighbours of a row share a cell', () => {
  const one = new Axis({ grid: [37, 54], prefix: ['class', 'register 0'], suffix: [] });
  assert.deepEqual([one.cells, one.block], [2000, 1]);
  const two = new Axis({ grid: [37, 54], prefix: ['class', 'register 0', 'register 1'], suffix: [] });
  assert.deepEqual([two.cells, two.block], [3 + 37 * 27, 2]);
  const many = new Axis({ grid: [64, 64], prefix: [], suffix: [] });
  assert.deepEqual([many.cells, many.block], [64 * 22, 3]); // the last of a row has one patch
});

test('blocks never reach from one row of patches into the next', () => {
  const axis = new Axis(makeTrace({ grid: [3, 5], tokens: 17 }), 8);
  assert.deepEqual([axis.block, axis.perRow, axis.cells], [3, 2, 8]);
  assert.deepEqual([...axis.starts], [0, 1, 2, 5, 7, 10, 12, 15, 17]);
  assert.deepEqual([...axis.cellOf], [0, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7]);
  assert.deepEqual([axis.nameOf(3), axis.patchesOf(3)], ['patches (0, 3) to (0, 4)', [3, 4]]);
  assert.equal(new Axis(makeTrace({ grid: [9, 1], tokens: 11 }), 4).cells, 11); // no smaller without mixing rows
});

test('every cell is the softmax that is written out', () => {
  const { layer, attention } = makeLayer(SIZES);
  const axis = new Axis(makeTrace());
  for (const head of [0, 3]) {
    const { values, low, high } = filled(layer, head, axis);
    assert.ok(close(values, attention[head].flat(), 1e-6));
    assert.ok(Math.abs(high - Math.max(...attention[head].flat())) < 1e-6);
    assert.ok(Math.abs(low / Math.min(...attention[head].flat()) - 1) < 1e-4);
  }
});

test('heads are fused cell by cell, by mean, maximum and minimum', () => {
  const { layer, attention } = makeLayer(SIZES);
  const axis = new Axis(makeTrace());
  const fuse = (/** @type {(values: number[]) => number} */ how) =>
    attention[0].flatMap((row, i) => row.map((_, j) => how(attention.map((head) => head[i][j]))));
  const mean = fuse((values) => values.reduce((a, b) => a + b) / 5);
  assert.ok(close(filled(layer, 'mean', axis).values, mean, 1e-6));
  assert.ok(
    close(
      filled(layer, 'max', axis).values,
      fuse((v) => Math.max(...v)),
      1e-6,
    ),
  );
  assert.ok(
    close(
      filled(layer, 'min', axis).values,
      fuse((v) => Math.min(...v)),
      1e-6,
    ),
  );
});

test('a cell of several tokens is the mean of its block', () => {
  const { layer, attention } = makeLayer({ ...SIZES, tokens: 17 });
  const axis = new Axis(makeTrace({ grid: [3, 5], tokens: 17 }), 8);
  const filling = filled(layer, 2, axis);
  for (let query = 0; query < axis.cells; query++) {
    for (let key = 0; key < axis.cells; key++) {
      const block = axis.tokensOf(query).flatMap((i) => axis.tokensOf(key).map((j) => attention[2][i][j]));
      const mean = block.reduce((a, b) => a + b) / block.length;
      assert.ok(Math.abs(filling.at(query, key) - mean) < 1e-6, `${query}, ${key}`);
    }
  }
});

test('a matrix fills row by row, and what is not there yet is no number', () => {
  const { layer, attention } = makeLayer(SIZES);
  const filling = new Filling(layer, 1, new Axis(makeTrace()), 3);
  filling.step();
  filling.step();
  assert.equal(filling.next, 2);
  assert.ok(Math.abs(filling.at(1, 4) - attention[1][1][4]) < 1e-6);
  assert.ok(Number.isNaN(filling.at(2, 4)));
});

test('the strongest links are the first of all pairs of patches when these are sorted', () => {
  for (const most of [1, 7, 1000]) {
    const { layer, attention } = makeLayer({ ...SIZES, seed: most });
    const { strongest } = filled(layer, 4, new Axis(makeTrace()), most);
    const pairs = [];
    for (let i = 2; i < 26; i++) for (let j = 2; j < 26; j++) if (i !== j) pairs.push([i, j]);
    const sorted = pairs.toSorted((a, b) => attention[4][b[0]][b[1]] - attention[4][a[0]][a[1]]);
    const best = strongest.best(most);
    assert.deepEqual(
      best.map(({ query, key }) => [query, key]),
      sorted.slice(0, most),
    );
    const total = pairs.reduce((sum, [i, j]) => sum + attention[4][i][j], 0);
    assert.ok(Math.abs(strongest.total - total) < 1e-4);
    assert.equal(strongest.pairs, 24 * 23);
  }
});

test('of equal links the first ones stay, and a token that is no patch may be the query', () => {
  const axis = new Axis(makeTrace());
  const even = new Float32Array(26).fill(1 / 26);
  const found = new Strongest(3, axis);
  found.add(0, even);
  assert.deepEqual(
    found.best(9).map(({ query, key }) => [query, key]),
    [
      [0, 2],
      [0, 3],
      [0, 4],
    ],
  );
  assert.equal(found.pairs, 24);
  const own = new Strongest(24, axis);
  own.add(3, even);
  assert.equal(own.count, 23);
});

test('the scale goes from 0 or, in logarithms, from the smallest weight, but never below five powers of ten', () => {
  assert.deepEqual(endsOf({ low: 0.001, high: 0.5 }, false), [0, 0.5]);
  assert.deepEqual(endsOf({ low: 0.001, high: 0.5 }, true), [0.001, 0.5]);
  assert.deepEqual(endsOf({ low: 1e-30, high: 0.5 }, true), [5e-6, 0.5]);
  assert.deepEqual(endsOf({ low: Infinity, high: 0 }, true), [0, 0]);
  assert.ok(Math.abs(shareOnScale(0.01, [0.001, 0.1], true) - 0.5) < 1e-12);
  assert.equal(shareOnScale(0, [0.001, 0.1], true), 0);
  assert.equal(shareOnScale(0.2, [0, 0.1]), 1);
  assert.equal(shareOnScale(0.2, [0.2, 0.2]), 1);
});

test('pixels are those of the exact scale, give or take one place of the table', () => {
  const next = random(4);
  const values = Float32Array.from({ length: 500 }, () => 10 ** (3 * next() - 3));
  values.set([0, 0.9]);
  const places = Uint32Array.from({ length: 256 }, (_, i) => i);
  for (const log of [false, true]) {
    /** @type {[number, number]} */
    const ends = log ? [1e-5, 0.9] : [0, 0.9];
    const pixels = new Uint32Array(500).fill(999);
    paintWeights(pixels, values, pixelTable(places, ends, log), 0, 499);
    values.slice(0, 499).forEach((value, i) => {
      const exact = 255 * shareOnScale(value, ends, log);
      assert.ok(Math.abs(pixels[i] - exact) <= 1.1, `${value}: ${pixels[i]}, not ${exact}`);
    });
    assert.equal(pixels[499], 999); // outside what was asked for
  }
});
