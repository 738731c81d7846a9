// Where cells, labels and arrows are on the screen, and what is said of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Axis, Filling } from '../../vit_viz/explorer/matrix.js';
import { Panes, labelsOf } from '../../vit_viz/web/heads/matrix_sheet.js';
import {
  linkWords,
  matrixFinding,
  mostWords,
  pairWords,
  sizeWords,
  tooLargeWords,
} from '../../vit_viz/web/heads/matrix_words.js';
import { percent } from '../../vit_viz/explorer/labels.js';
import { makeLayer, makeTrace } from './oracle.js';

const DOWN = 0;
const ACROSS = 1;

function makePanes(size = 300, changes = {}) {
  const axis = new Axis(makeTrace({ suffix: ['detection 0'], ...changes }));
  const panes = new Panes(axis);
  panes.resize(size);
  return { axis, panes };
}

test('named tokens stand at the edges, behind a gap, and the patches share what is left', () => {
  const { panes } = makePanes();
  const [prefix, patches, suffix] = panes.runs(DOWN);
  assert.deepEqual(prefix, { from: 0, to: 2, at: 0, end: 28 });
  assert.deepEqual(patches, { from: 2, to: 26, at: 34, end: 280 });
  assert.deepEqual(suffix, { from: 26, to: 27, at: 286, end: 300 });
  const { panes: bare } = makePanes(240, { prefix: [], suffix: [], tokens: 24 });
  assert.deepEqual(bare.runs(ACROSS), [{ from: 0, to: 24, at: 0, end: 240 }]);
});

test('each pixel belongs to the cell that is drawn there, and a gap to none', () => {
  const { panes, axis } = makePanes();
  for (const [factor, point] of [
    [1, [0, 0]],
    [3, [200, 90]],
    [50, [40, 270]],
  ]) {
    panes.zoomBy(Number(factor), /** @type {[number, number]} */ (point));
    for (const direction of /** @type {const} */ ([DOWN, ACROSS])) {
      for (let cell = 0; cell < axis.cells; cell++) {
        const place = panes.placeOf(cell, direction);
        if (place && place[1] - place[0] > 1e-6)
          assert.equal(panes.cellAt((place[0] + place[1]) / 2, direction), cell);
      }
    }
  }
  for (const pixel of [-1, 29, 33.9, 281, 300]) assert.equal(panes.cellAt(pixel, DOWN), null);
});

test('rows of patches are named, and each patch where there is room', () => {
  const { panes, axis } = makePanes();
  const texts = () => labelsOf(panes, axis, DOWN).map(({ text }) => text);
  assert.deepEqual(texts(), ['class', 'register 0', 'detection 0', 'row 0', 'row 1', 'row 2', 'row 3']);
  const [first, second] = labelsOf(panes, axis, DOWN);
  assert.deepEqual([first.at, second.at], [7, 21]);
  panes.zoomBy(4, [34, 34]);
  assert.deepEqual(texts().slice(3, 6), ['(0, 0)', '(0, 1)', '(0, 2)']);
  assert.ok(!texts().includes('(3, 5)')); // out of sight
  panes.zoomBy(12.5 / panes.cell, [34, 34]);
  panes.move([-0.7 * panes.cell, 0]);
  assert.deepEqual(texts().slice(3, 5), ['(0, 1)', '(0, 2)']); // the first is cut off
});

test('a pair is named with its weight', () => {
  const { layer, attention } = makeLayer({ heads: 5, tokens: 26, headDim: 8 });
  const axis = new Axis(makeTrace());
  const filling = new Filling(layer, 1, axis, 3);
  for (let i = 0; i < 6; i++) filling.step();
  const value = percent(attention[1][5][0]);
  assert.equal(pairWords(filling, [5, 0]), `patch (0, 3) looks at class token: ${value}`);
  assert.equal(pairWords(filling, [0, 9]).split(':')[0], 'class token looks at patch (1, 1)');
  assert.equal(pairWords(filling, [7, 9]), 'patch (0, 5) looks at patch (1, 1): not computed yet');
});

test('a block is said to be one, with its size', () => {
  const { layer } = makeLayer({ heads: 5, tokens: 17, headDim: 8 });
  const axis = new Axis(makeTrace({ grid: [3, 5], tokens: 17 }), 8);
  const filling = new Filling(layer, 0, axis, 3);
  while (!filling.isDone) filling.step();
  assert.match(
    pairWords(filling, [2, 7]),
    /^patches \(0, 0\) to \(0, 2\) look at patches \(2, 3\) to \(2, 4\): mean \d+(\.\d+)?%$/,
  );
  const large = new Axis({ grid: [64, 64], prefix: ['class'], suffix: [] });
  assert.equal(
    sizeWords(large, 2),
    'Rows are queries, columns are keys: 4,097 x 4,097 tokens, and each row sums to 1. Drawn as 1,409 x 1,409 cells: each is the mean of a block of up to 3 x 3 neighbouring tokens.',
  );
  assert.equal(
    sizeWords(new Axis(makeTrace()), 'max'),
    'Rows are queries, columns are keys: 26 x 26 tokens.', // and they need not sum to 1
  );
  assert.doesNotMatch(sizeWords(new Axis(makeTrace()), 'mean'), /block/);
});

test('what is drawn says how much of the attention it is', () => {
  const links = [
    { query: 4, key: 9, weight: 0.25 },
    { query: 4, key: 3, weight: 0.05 },
  ];
  const all = { total: 12, pairs: 65280 };
  assert.equal(
    linkWords(links, all, null, 3),
    "The 2 strongest of 65,280 links between patches hold 2.5% of their weight. A patch's link to itself is left out.",
  );
  assert.equal(
    linkWords(links, all, { query: 'patch (0, 2)', tokens: 1, isPlaced: true }, 'mean'),
    "The 2 strongest links of patch (0, 2) to patches hold 30% of its attention. A patch's link to itself is left out.",
  );
  assert.equal(
    linkWords(links, all, { query: 'the class token', tokens: 1, isPlaced: false }, 3),
    'The 2 strongest links of the class token to patches hold 30% of its attention. It has no place on the photo: dots mark where it looks.',
  );
  assert.equal(
    linkWords(links, all, { query: 'patch (0, 2)', tokens: 1, isPlaced: true }, 'max'),
    "The 2 strongest links of patch (0, 2) to patches by the max over heads. A patch's link to itself is left out.",
  );
  assert.match(linkWords([], { total: 0, pairs: 0 }, null, 3), /^There is no link/);
  const axis = new Axis(makeTrace());
  assert.equal(mostWords(axis, 4, links[0]), 'patch (0, 2) looks most at patch (1, 1): 25%');
  assert.equal(mostWords(axis, 0, undefined), 'class token');
});

test('the title of a matrix says where all tokens together look', () => {
  const axis = new Axis(makeTrace({ prefix: ['class'], grid: [2, 3], tokens: 7 }));
  const says = (
    /** @type {(query: number, key: number) => number} */ weight,
    /** @type {any} */ head = 2,
  ) => {
    const values = Float32Array.from({ length: 49 }, (_, at) => weight(Math.floor(at / 7), at % 7));
    return matrixFinding(4, /** @type {any} */ ({ axis, head, values })).replace('Layer 4, head 2: ', '');
  };
  const beside = (/** @type {number} */ step) => (/** @type {number} */ query, /** @type {number} */ key) =>
    query && key === query + step ? 0.4 : 0.1; // across the edge of the grid, too, which is not beside
  assert.equal(says(beside(-1)), 'patches look most at their left neighbour, 40% on average');
  assert.equal(says(beside(0)), 'patches look most at themselves, 40% on average');
  assert.equal(says(beside(3)), 'patches look most at their lower neighbour, 40% on average');
  assert.equal(
    says((_, key) => (key ? 0.05 : 0.7)),
    'tokens look most at class token, 70% on average',
  );
  const even = (/** @type {number} */ _, /** @type {number} */ key) => (key > 5 ? 0.06 : 0.05);
  assert.equal(says(even), 'half of the attention falls on 4 of 7 tokens');
  assert.equal(says(even, 'max'), 'Layer 4, max over heads: every token against every token');
});

test('what is in sight can be written down and seen again, on a screen of another size too', () => {
  const { panes } = makePanes();
  assert.equal(panes.seen, '');
  panes.zoomBy(2, [120, 200]);
  const { seen } = panes;
  assert.match(seen, /^2,0\.\d{2,4},0\.\d{2,4}$/);
  const { panes: other } = makePanes(520);
  other.see(seen);
  assert.equal(other.seen, seen);
  for (const i of [DOWN, ACROSS]) assert.ok(Math.abs(other.offset[i] - panes.offset[i]) < 0.01);
  other.see('900,1,1');
  assert.ok(Math.abs(other.cell - 48) < 1e-9); // no larger than by hand, and not beyond the edge
  other.see('');
  assert.deepEqual([other.zoom, other.offset], [1, [0, 0]]);
});

test('names take the room of their text where it grows with the page', () => {
  const { panes, axis } = makePanes();
  panes.resize(300, 1.25);
  assert.equal(panes.named, 17.5);
  const places = labelsOf(panes, axis, DOWN).map(({ at }) => at);
  const apart = places.slice(1).map((at, i) => Math.abs(at - places[i]));
  assert.ok(Math.min(...apart.slice(0, -2)) >= 15 - 1e-6);
});

test('a layer that is too large says how large, what the limit is, and what there is instead', () => {
  const words = tooLargeWords(61.2e6, 60e6);
  assert.ok(
    words.startsWith(
      'This layer is too large for the browser to compute its matrix (62 MB, and it takes at most 60 MB).',
    ),
  );
  assert.ok(words.includes('Choose a smaller size'));
  assert.ok(!tooLargeWords(60e6, 60e6).includes('MB'));
});
