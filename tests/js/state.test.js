import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeChips, markChips } from '../../vit_viz/explorer/controls.js';
import {
  isLocal,
  patchQuery,
  patchRect,
  queryPatches,
  queryTokens,
  queryWords,
  rectangle,
  suffixKinds,
} from '../../vit_viz/explorer/geometry.js';
import { sharesOf, caption } from '../../vit_viz/explorer/labels.js';
import {
  besideQuery,
  columnHead,
  headColumn,
  initialView,
  shownColumns,
  stepHead,
  updateView,
  viewLink,
} from '../../vit_viz/explorer/state.js';
import { Browser, Element } from './browser.js';
import { makeTrace } from './oracle.js';

const trace = makeTrace();

test('queries are read as the Python package writes them', () => {
  assert.deepEqual(queryTokens('class', trace), [0]);
  assert.deepEqual(queryTokens('register 0', trace), [1]);
  assert.deepEqual(queryTokens('0,0', trace), [2]);
  assert.deepEqual(queryTokens('3,5', trace), [25]);
  assert.deepEqual(queryTokens('1,2;0,1;1,2', trace), [3, 10]);
});

test('queries that this trace does not have are null', () => {
  for (const text of ['register 1', '4,0', '0,6', '', '1,2;', '-1,2', '1.5,2', 'patch']) {
    assert.equal(queryTokens(text, trace), null, text);
  }
});

test('the pool is the class token, both tokens of a distilled model, all patches, or the server knows', () => {
  assert.deepEqual(queryTokens('pool', trace), [0]);
  assert.deepEqual(queryTokens('pool', makeTrace({ prefix: ['class', 'distillation'] })), [0, 1]);
  const mean = makeTrace({ prefix: [], pooling: 'mean', tokens: 24 });
  assert.equal(queryTokens('pool', mean)?.length, 24);
  assert.equal(queryTokens('pool', makeTrace({ prefix: [], pooling: 'attention' })), 'pool');
  assert.deepEqual(
    [isLocal('pool', trace), isLocal('pool', mean), isLocal('1,1', mean)],
    [true, false, true],
  );
});

const LATE = { suffix: ['detection 0', 'detection 1', 'detection 2'], tokens: 29 };

test('tokens after the patches are queries too, and move no patch', () => {
  const late = makeTrace(LATE);
  assert.deepEqual(queryTokens('3,5', late), [25]);
  assert.deepEqual(queryTokens('detection 0', late), [26]);
  assert.deepEqual(queryTokens('detection 2', late), [28]);
  assert.equal(queryTokens('detection 3', late), null);
  assert.deepEqual(queryPatches('detection 1', late), []);
  assert.deepEqual(queryPatches('3,5', late), [23]);
  assert.equal(queryWords('detection 1', late), 'detection 1');
  assert.equal(queryTokens('pool', makeTrace({ ...LATE, pooling: 'mean' }))?.length, 24);
  assert.deepEqual(queryTokens('pool', makeTrace({ prefix: [], suffix: ['class'], tokens: 25 })), [24]);
  const view = updateView(initialView(late), { query: 'detection 2' }, late);
  assert.equal(view.query, 'detection 2');
  assert.equal(updateView(view, { query: 'detection 3' }, late).query, 'detection 2');
  assert.equal(besideQuery(view.query, late, [0, 1]), '2,3');
  assert.match(viewLink(view, late), /&q=detection[+]2$/);
});

test('suffix tokens are counted by kind, under their whole name where the kind is taken', () => {
  const kinds = (/** @type {string[]} */ suffix) => [...suffixKinds(makeTrace({ suffix }))];
  assert.deepEqual(kinds(LATE.suffix), [['detection', [26, 27, 28]]]);
  assert.deepEqual(kinds(['class 1', 'text']), [
    ['class 1', [26]],
    ['text', [27]],
  ]);
  assert.deepEqual(sharesOf(makeTrace(LATE)), [
    { name: 'class', kind: 'token', count: 1 },
    { name: 'register 0', kind: 'token', count: 1 },
    { name: 'detection', kind: 'tokens', count: 3 },
    { name: 'patches', kind: 'patches', count: 24 },
  ]);
});

/** The buttons and the list of so many tokens behind the patches. @param {number} count */
function chipsOf(count) {
  new Browser().install();
  const suffix = Array.from({ length: count }, (_, i) => `detection ${i}`);
  const late = makeTrace({ suffix, tokens: 26 + count });
  const box = new Element('div');
  const made = makeChips(/** @type {any} */ (box), late);
  return { ...made, box, mark: (/** @type {string} */ query) => markChips(made, query, late) };
}

test('a few suffix tokens have a button each, many share one list', () => {
  const few = chipsOf(4);
  assert.deepEqual([...few.chips.keys()].slice(1, 4), ['register 0', 'detection 0', 'detection 1']);
  assert.equal(few.list, null);
  const { box, chips, list } = chipsOf(100);
  assert.deepEqual([...chips.keys()], ['class', 'register 0']);
  assert.equal(box.children.length, 4);
  assert.equal(list?.children.length, 101);
  assert.equal(list?.children[0].textContent, 'detection 0 \u2026 detection 99');
});

test('the chosen token is marked on its button or in the list, never on both', () => {
  const { chips, list, mark } = chipsOf(5);
  for (const [query, listed, ...pressed] of [
    ['detection 3', 'detection 3'],
    ['register 0', '', 'register 0'],
    ['1,2', ''],
  ]) {
    mark(query);
    const marked = [...chips].filter(([, chip]) => chip.getAttribute('aria-pressed') === 'true');
    assert.deepEqual([list?.value, ...marked.map(([name]) => name)], [listed, ...pressed]);
  }
});

test('patches are written in order and once', () => {
  assert.equal(patchQuery([13, 2, 13, 6], 6), '0,2;1,0;2,1');
  assert.deepEqual(queryPatches('0,2;1,0;2,1', trace), [2, 6, 13]);
  assert.deepEqual(queryPatches('class', trace), []);
});

test('a rectangle holds all patches between two corners, whichever comes first', () => {
  assert.deepEqual(rectangle(1, 8, 6), [1, 2, 7, 8]);
  assert.deepEqual(rectangle(8, 1, 6), [1, 2, 7, 8]);
  assert.deepEqual(rectangle(2, 7, 6), [1, 2, 7, 8]);
});

test('patch rectangles lie in the crop region of the original', () => {
  const crop = { ...trace.crop, region: /** @type {[number, number, number, number]} */ ([10, 40, 80, 120]) };
  assert.deepEqual(patchRect(crop, 1, 2, [4, 6]), [30, 80, 50, 100]);
});

test('a trace opens on its own query in the last third', () => {
  assert.equal(initialView(trace).query, 'class');
  const other = initialView(makeTrace({ opening: { layer: 1, head: 4 } }));
  assert.deepEqual([other.layer, other.head], [1, 4]); // the server's rule, not one of ours
});

test('the largest and the smallest of all heads come and go with their columns; a link of before that names one has both', () => {
  const view = initialView(trace);
  assert.equal(shownColumns(view, 5), 6);
  for (const head of ['max', 'min']) {
    const old = updateView(view, { layer: 1, head }, trace);
    assert.deepEqual([old.head, old.extremes, shownColumns(old, 5)], [head, true, 8]);
    assert.match(viewLink(old, trace), /&extremes=1$/);
    assert.deepEqual(updateView(view, { head, extremes: false }, trace), { ...view, head, extremes: true });
    assert.deepEqual(updateView(old, { extremes: false }, trace), { ...view, layer: 1, head: 'mean' });
  }
  const other = updateView(view, { head: 4, extremes: true }, trace);
  assert.deepEqual(updateView(other, { extremes: false }, trace), { ...view, head: 4 });
});

test('heads and their columns are inverse', () => {
  for (const head of [0, 4, 'mean', 'max', 'min']) assert.equal(columnHead(headColumn(head, 5), 5), head);
});

test('arrows walk through heads into the fusions and stop at the edges', () => {
  let view = { ...initialView(trace), layer: 0, head: /** @type {number | string} */ (3) };
  const walked = (/** @type {boolean} */ extremes) =>
    Array.from({ length: 6 }, (_, i) => {
      view = stepHead({ ...view, extremes, head: i ? view.head : 3 }, trace, 0, 1);
      return view.head;
    });
  assert.deepEqual(walked(true), [4, 'mean', 'max', 'min', 'min', 'min']);
  assert.deepEqual(walked(false), [4, 'mean', 'mean', 'mean', 'mean', 'mean']);
  assert.equal(stepHead(view, trace, -1, 0).layer, 0);
  assert.equal(stepHead({ ...view, layer: 2 }, trace, 1, 0).layer, 2);
});

test('the query walks over the patches from the centre and stops at the edges', () => {
  assert.equal(besideQuery('class', trace, [0, 1]), '2,3');
  assert.equal(besideQuery('2,3', trace, [0, 1]), '2,4');
  assert.equal(besideQuery('0,0', trace, [-1, 0]), '0,0');
  assert.equal(besideQuery('3,5', trace, [0, 1]), '3,5');
});

test('the caption says model, layer, head, query, direction and scale', () => {
  const view = { ...initialView(trace), head: 3, query: '1,2' };
  assert.equal(
    caption(view, trace),
    'Layer 2, head 3: where patch (1, 2) looks. mini. Scale: its own, peaks clipped (cells: each layer). Light, smooth.',
  );
  assert.equal(queryWords('0,0;0,1', trace), 'region of 2 patches');
  assert.equal(queryWords('pool', makeTrace({ pooling: 'mean' })), 'pool (mean of patches)');
  const many = makeTrace({ pooling: 'class', prefix: ['class 0', 'class 1', 'register 0'] });
  assert.equal(queryWords('pool', many), 'pool (class 0, class 1)');
  const unread = makeTrace({ ...many, unread: ['class 0'] });
  assert.equal(queryWords('pool', unread), 'pool (class 1)');
  assert.deepEqual(queryTokens('pool', unread), [1]);
});
