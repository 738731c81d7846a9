// Links, and moves through layers, heads and patches, in the corners that a whole explorer seldom reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Address } from '../../vit_viz/ui/explorer/address.js';
import {
  outline,
  patchQuery,
  queryPatches,
  queryTokens,
  queryWords,
  rectangle,
} from '../../vit_viz/ui/explorer/geometry.js';
import { keyIntent } from '../../vit_viz/ui/explorer/gestures.js';
import {
  columnHead,
  formatLink,
  headColumn,
  initialView,
  parseLink,
  stepHead,
  stepQuery,
  updateView,
} from '../../vit_viz/ui/explorer/state.js';
import { Browser } from './browser.js';
import { makeTrace } from './oracle.js';

const trace = makeTrace();
const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

// --- links

test('a link drops the mode, and every option, that went back to its default', () => {
  const view = initialView(trace);
  const before =
    '?mode=crop&dir=column&scale=own&clip=0&alpha=0.2&colors=gray&smooth=1&mask=0.5&norm=1&tab=x';
  const after = formatLink(view, trace, before);
  assert.equal(after, '?tab=x&model=mini&image=lion&layer=2&head=mean&q=class');
  assert.equal(parseLink(after).mode, 'fit');
  assert.equal(parseLink(formatLink(view, { ...trace, mode: 'stretch' }, before)).mode, 'stretch');
});

test('a link is read with the type of each option', () => {
  const link = parseLink(
    '?model=m&image=i&mode=crop&layer=2&head=3&q=1,2&dir=column&alpha=0.5&mask=0.2&smooth=1&norm=0&clip=0&colors=gray',
  );
  assert.deepEqual(link, {
    model: 'm',
    image: 'i',
    mode: 'crop',
    change: {
      layer: 2,
      head: 3,
      query: '1,2',
      direction: 'column',
      alpha: 0.5,
      mask: 0.2,
      smooth: true,
      norm: false,
      clip: false,
      table: 'gray',
    },
  });
  assert.deepEqual(parseLink(''), { model: null, image: null, mode: 'fit', change: {} });
  assert.equal(parseLink('?head=max').change.head, 'max');
});

test('a view takes values up to its limits', () => {
  const view = initialView(trace);
  for (const change of [
    { layer: 0 },
    { layer: 2 },
    { head: 0 },
    { head: 4 },
    { head: 'min' },
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
    { second: 'x' },
    { other: 1 },
  ]) {
    assert.deepEqual(updateView(view, change, trace), view, JSON.stringify(change));
  }
});

test('an address is written after a pause, at once where it is a new place, and never twice', (t) => {
  const browser = new Browser('?x=1');
  browser.install(t);
  /** @type {any[]} */
  const returned = [];
  const address = new Address((link) => returned.push(link));
  const view = initialView(trace);
  address.write({ ...view, layer: 0 }, trace);
  browser.pass(199);
  address.write({ ...view, layer: 1 }, trace);
  browser.pass(199);
  assert.deepEqual(browser.visited, []);
  browser.pass(1);
  assert.deepEqual(browser.visited, [
    { how: 'replace', address: '?x=1&model=mini&image=lion&layer=1&head=mean&q=class#here' },
  ]);
  address.write({ ...view, layer: 1 }, trace, { push: true });
  assert.equal(browser.visited.length, 1);
  address.write({ ...view, layer: 2 }, trace);
  address.write({ ...view, layer: 0 }, trace, { push: true });
  browser.pass(1000);
  assert.deepEqual(
    browser.visited.map((/** @type {any} */ v) => v.how),
    ['replace', 'push'],
  );
  address.write({ ...view, layer: 2 }, trace);
  address.close();
  browser.pass(1000);
  browser.window.fire('popstate');
  assert.deepEqual([browser.visited.length, returned.length], [2, 0]);
  assert.ok(address.names(trace));
  assert.ok(!address.names(makeTrace({ image: 'tower' })));
  browser.location.search = '?image=lion';
  assert.ok(!address.names(trace));
});

test('the link that opened the page is claimed once, by its own picture or where it is insisted on', (t) => {
  const browser = new Browser('?model=mini&image=lion&layer=1');
  browser.install(t);
  const other = makeTrace({ image: 'tower' });
  const address = new Address(() => {});
  assert.deepEqual(address.claim(other, false), {});
  address.write(initialView(trace), other, { byUser: false });
  browser.pass(500);
  assert.deepEqual(browser.visited, []);
  assert.deepEqual(address.claim(trace, false), { layer: 1 });
  assert.deepEqual(address.claim(trace, false), {});
  assert.deepEqual(new Address(() => {}).claim(other, true), { layer: 1 });
  const third = new Address(() => {});
  third.write(initialView(trace), other, { byUser: true });
  assert.deepEqual(third.claim(trace, true), {});
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
  const view = { ...initialView(trace), query: '1,2;2,4' };
  assert.equal(stepQuery(view, trace, 0, 1).query, '2,5');
  assert.equal(stepQuery(view, trace, 1, 0).query, '3,4');
  assert.equal(stepQuery(view, trace, 0, -1).query, '1,1');
  assert.equal(stepQuery(view, trace, -1, 0).query, '0,2');
  assert.equal(
    stepQuery({ ...view, query: 'class' }, makeTrace({ grid: [7, 4], tokens: 30 }), 1, 0).query,
    '3,1',
  );
});

test('a rectangle has all its corners, whichever way it is drawn', () => {
  for (const [from, to] of [
    [1, 14],
    [14, 1],
    [2, 13],
    [13, 2],
  ])
    assert.deepEqual(rectangle(from, to, 6), [1, 2, 7, 8, 13, 14]);
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
    ['pool (class token)', 'register 0 token', 'patch (3, 5)', 'region of 2 patches'],
  );
  assert.equal(queryWords('pool', makeTrace({ pooling: 'odd' })), 'pool (odd)');
});

test('keys are what the help says they are, each in its direction', () => {
  const intent = (/** @type {string} */ key, more = {}) =>
    keyIntent({ key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more });
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  for (const [key, step] of Object.entries(steps)) assert.deepEqual(intent(key), { kind: 'head', step });
  for (const [key, step] of Object.entries({ w: [-1, 0], s: [1, 0], a: [0, -1], d: [0, 1] }))
    assert.deepEqual(intent(key), { kind: 'query', step });
  assert.deepEqual(intent('R'), { kind: 'region', step: [0, 0] });
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }])
    assert.equal(intent('r', more), null);
});
