// Moves through layers, heads and patches in the corners that a whole explorer seldom reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  cellAt,
  movedPatch,
  nearestCell,
  outline,
  patchQuery,
  placeIn,
  pointerIn,
  queryPatches,
  queryTokens,
  queryWords,
  shareOf,
} from '../../vit_viz/explorer/geometry.js';
import { byKeys, KEY_WORDS, KEYS } from '../../vit_viz/explorer/elements.js';
import {
  columnHead,
  headColumn,
  initialView,
  besideQuery,
  stepHead,
  updateView,
} from '../../vit_viz/explorer/state.js';
import { makeTrace } from './oracle.js';

const trace = makeTrace();
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

test('a view takes values up to its limits', () => {
  const view = initialView(trace);
  for (const change of [
    { layer: 0 },
    { layer: 2 },
    { head: 0 },
    { head: 4 },
    { head: 'min', extremes: true },
    { alpha: 0 },
    { alpha: 1 },
    { mask: 1 },
    { table: 'gray' },
    { scale: 'layer' },
    { direction: 'column' },
    { query: 'pool' },
    { query: '3,5' },
    { clip: false },
  ]) {
    assert.deepEqual(updateView(view, change, trace), { ...view, ...change });
  }
  for (const change of [
    { layer: -1 },
    { layer: 3 },
    { layer: 0.5 },
    { head: 5 },
    { head: 'sum' },
    { alpha: -0.01 },
    { alpha: 1.01 },
    { alpha: '0.5' },
    { mask: 1.1 },
    { query: '4,0' },
    { query: '' },
    { query: null },
    { clip: 1 },
    { table: 'jet' },
    { direction: 'up' },
    { mask: NaN },
    { layers: 2 },
    { other: 1 },
  ]) {
    assert.deepEqual(updateView(view, change, trace), view, JSON.stringify(change));
  }
});

// --- moves

test('arrows stop at the first and last head and layer', () => {
  const view = any({ ...initialView(trace), layer: 1, head: 0 });
  assert.equal(stepHead(view, trace, 0, -1).head, 0);
  assert.equal(stepHead(view, trace, 1, 0).layer, 2);
  assert.equal(stepHead(view, trace, -1, 1).head, 1);
  assert.equal(stepHead({ ...view, head: 'mean' }, trace, 0, -1).head, 4);
  assert.deepEqual(
    [headColumn('min', 5), headColumn(3, 5), columnHead(4, 5), columnHead(5, 5), columnHead(7, 5)],
    [7, 3, 4, 'mean', 'min'],
  );
});

test('a region moves on from its first patch backwards and from its last one forwards', () => {
  const beside = (/** @type {[number, number]} */ step) => besideQuery('1,2;2,4', trace, step);
  assert.deepEqual([beside([0, 1]), beside([1, 0])], ['2,5', '3,4']);
  assert.deepEqual([beside([0, -1]), beside([-1, 0])], ['1,1', '0,2']);
  assert.equal(besideQuery('class', makeTrace({ grid: [7, 4], tokens: 30 }), [1, 0]), '3,2');
});

test('an outline runs along the outer edges only', () => {
  const lines = (/** @type {number[]} */ patches) =>
    (outline(patches, [4, 6]).match(/M\d+ \d+[hv]1/g) ?? []).sort();
  assert.deepEqual(lines([0]), ['M0 0h1', 'M0 0v1', 'M0 1h1', 'M1 0v1']);
  assert.deepEqual(lines([23]), ['M5 3h1', 'M5 3v1', 'M5 4h1', 'M6 3v1']);
  assert.deepEqual(lines([8, 14]), ['M2 1h1', 'M2 1v1', 'M2 2v1', 'M2 3h1', 'M3 1v1', 'M3 2v1']);
  assert.deepEqual(lines([5, 6]).length, 8);
  assert.deepEqual(lines([18, 23]).length, 8);
});

test('queries are read to the last patch and written in order', () => {
  assert.deepEqual(queryTokens('3,5;0,0', trace), [2, 25]);
  const many = makeTrace({ pooling: 'class', prefix: ['class 0', 'register 0', 'class 1'] });
  assert.deepEqual(queryTokens('pool', many), [0, 2]);
  assert.deepEqual(queryTokens(' 1,2 ; 1,3 ', trace), [10, 11]);
  assert.equal(queryTokens('3,6', trace), null);
  assert.equal(queryTokens('100000,1', makeTrace({ grid: [1e6, 6] })), null);
  assert.deepEqual(
    queryTokens('pool', makeTrace({ pooling: 'mean', grid: [2, 2], prefix: ['class'] })),
    [1, 2, 3, 4],
  );
  assert.equal(patchQuery([7, 6], 6), '1,0;1,1');
  assert.deepEqual(queryPatches('pool', trace), []);
  assert.deepEqual(queryPatches('nonsense', trace), []);
  assert.deepEqual(
    ['pool', 'register 0', '3,5', '3,5;0,1'].map((query) => queryWords(query, trace)),
    ['pool (class token)', 'register 0', 'patch (3, 5)', 'region of 2 patches'],
  );
  assert.equal(queryWords('pool', makeTrace({ pooling: 'odd' })), 'pool (odd)');
});

test('keys do what the help says: arrows point at the next one, Enter and Space choose it, Escape lets go', () => {
  /** @type {any[]} */
  const done = [];
  let at = /** @type {number | null} */ (null);
  const hear = byKeys({
    at: () => at,
    beside: ([down, right]) => ((at ?? 0) + 10 * down + right < 0 ? null : (at ?? 0) + 10 * down + right),
    point: (spot) => void (at = spot),
    choose: (spot) => (spot === 7 ? false : void done.push(spot)),
  });
  const press = (/** @type {string} */ key, more = {}) => {
    let heard = '';
    hear(any({ key, ...more, preventDefault: () => (heard += 'p'), stopPropagation: () => (heard += 's') }));
    return heard;
  };
  const steps = { ArrowDown: 10, ArrowRight: 11, ArrowUp: 1, ArrowLeft: 0 };
  for (const [key, spot] of Object.entries(steps)) assert.deepEqual([press(key), at], ['ps', spot]);
  assert.deepEqual([press('ArrowLeft'), at], ['ps', 0]); // there is no further
  for (const key of ['Enter', ' ']) assert.equal(press(key), 'ps');
  assert.deepEqual([press('Escape'), at, done], ['ps', null, [0, 0]]);
  assert.deepEqual([press('Enter'), press('Escape'), done], ['', 'ps', [0, 0, null]]);
  at = 7;
  assert.equal(press('Enter'), ''); // nothing to do: the key is left to others
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }])
    assert.equal(press('Enter', more), '');
  assert.deepEqual(
    ['x', 'Tab', 'r', 'w'].map((key) => press(key)),
    ['', '', '', ''],
  );
  const reads = byKeys({ at: () => at, beside: () => 3, point: (spot) => void (at = spot) });
  for (const key of ['Enter', 'Escape', 'Escape'])
    reads(any({ key, preventDefault: () => done.push(key), stopPropagation() {} }));
  assert.deepEqual([at, done.slice(3)], [null, ['Escape']]); // where nothing can be chosen
  for (const { name, words } of KEYS) assert.ok(KEY_WORDS.includes(`${name} ${words}`));
});

// --- places

test('a pointer is in a cell from its first edge up to, and without, its last', () => {
  const box = any({ getBoundingClientRect: () => ({ left: 100, top: 50, width: 60, height: 20 }) });
  const at = (/** @type {number} */ clientX, /** @type {number} */ clientY) =>
    cellAt(pointerIn({ clientX, clientY }, box), [4, 6]);
  assert.deepEqual(pointerIn({ clientX: 130, clientY: 55 }, box), [0.25, 0.5]);
  assert.deepEqual(at(100, 50), [0, 0]);
  assert.deepEqual(at(159, 69), [3, 5]);
  assert.deepEqual(at(130, 55), [1, 3]);
  for (const [x, y] of [
    [99, 60],
    [160, 60],
    [130, 49],
    [130, 70],
  ])
    assert.equal(at(x, y), null, `${x}, ${y}`);
  const nothing = any({ getBoundingClientRect: () => ({ left: 0, top: 0, width: 0, height: 0 }) });
  assert.equal(cellAt(pointerIn({ clientX: 0, clientY: 0 }, nothing), [4, 6]), null);
});

test('outside a grid the nearest cell is on its edge; inside it is the cell there', () => {
  const at = (/** @type {number} */ down, /** @type {number} */ across) =>
    nearestCell([down, across], [4, 6]);
  assert.deepEqual(
    [at(0.3, 0.7), at(-2, 0.7), at(0.3, 1), at(1, -0.01)],
    [
      [1, 4],
      [0, 4],
      [1, 5],
      [3, 0],
    ],
  );
});

test('a point of the photo is a share of the region that the model received', () => {
  assert.deepEqual(shareOf([25, 80], [10, 20, 60, 240]), [0.25, 0.25]);
  assert.deepEqual(shareOf([10, 20], [10, 20, 60, 240]), [0, 0]);
});

test('a patch moves by steps and stops at the edges', () => {
  assert.equal(movedPatch(8, [1, 0], [4, 6]), 14);
  assert.equal(movedPatch(8, [0, -1], [4, 6]), 7);
  assert.equal(movedPatch(0, [-1, -1], [4, 6]), 0);
  assert.equal(movedPatch(23, [1, 1], [4, 6]), 23);
  assert.equal(movedPatch(6, [0, -1], [4, 6]), 6); // not into the row above
});

test('a rectangle lies in an area where its style says', () => {
  assert.deepEqual(placeIn([20, 40, 30, 100], [10, 20, 60, 220]), {
    top: '20%',
    left: '10%',
    width: '30%',
    height: '20%',
  });
});
