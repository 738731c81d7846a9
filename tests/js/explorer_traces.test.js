// The explorer over several traces: links, other pictures, what is gone, what is saved, leaving.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { settle } from './room.js';
import { open } from './visit.js';

test('a trace that is gone is computed again once, and then the reason is said', async () => {
  const { show, told, parts, trace } = open({}, { answer: () => ({ status: 404, ok: false }) });
  await show();
  assert.deepEqual(told, [['again', {}]]);
  await show({ ...trace, trace: 'again' });
  assert.equal(told.filter(([name]) => name === 'again').length, 1);
  assert.match(parts.message.textContent, /no longer keeps this picture/);
});

test('once all layers came, a trace that goes later is computed again', async () => {
  let gone = true;
  const { show, told, trace, explorer, browser } = open(
    {},
    { answer: () => (gone ? { status: 410, ok: false } : null) },
  );
  await show();
  gone = false;
  await show({ ...trace, trace: 'again' });
  gone = true;
  explorer.change({ layer: 0 });
  browser.pass(60);
  await settle();
  assert.equal(told.filter(([name]) => name === 'again').length, 2);
});

test('what the browser cannot compute is asked of the server, the shown layer first', async () => {
  const { show, asked, explorer, parts, browser } = open({ pooling: 'mean', default_query: 'pool' });
  await show();
  const later = asked
    .filter((p) => !p.includes('/layer/'))
    .map((p) => p.split('?')[0].replace('/vit_viz/', ''));
  assert.deepEqual(later, ['rows/abc/2', 'numbers/abc', 'rows/abc/1', 'rows/abc/0']);
  assert.deepEqual([...(explorer.frame?.fresh ?? [])], [1, 1, 1]);
  assert.match(parts.caption.textContent, /pool \(mean of patches\)/);
  assert.deepEqual(
    parts.chips.children.map((/** @type {any} */ c) => c.textContent),
    ['ask', 'pool', 'class token', 'register 0'],
  );
  asked.length = 0;
  for (const layer of [0, 2, 1]) explorer.change({ layer }); // the first one, and the last
  browser.pass(40);
  await settle();
  assert.deepEqual(
    asked.map((p) => /layer=(\d)/.exec(p)?.[1]),
    ['0', '1'],
  );
});

test('what the server works on is said until it is done, and then the view again', async () => {
  const { show, explorer, parts, browser } = open();
  await show();
  for (const words of ['Loading a model', 'Loading another model']) {
    explorer.setBusy(words);
    browser.pass(250);
    browser.pass(500);
    assert.equal(parts.status.textContent, words);
  }
  explorer.setBusy('');
  browser.pass(500);
  assert.match(parts.status.textContent, /^Layer 2, all heads: where the class token looks\. /);
});

test('the pinned view is spoken once it rests', async () => {
  const { show, explorer, parts, browser } = open();
  await show();
  explorer.change({ query: '1,2', head: 0, layer: 1 });
  browser.pass(499);
  const before = parts.status.textContent;
  browser.pass(1);
  assert.notEqual(parts.status.textContent, before);
  assert.match(
    parts.status.textContent,
    /^Layer 1, head 0: where patch \(1, 2\) looks\. .*Light, smooth\. Most on patch/,
  );
});

test('the proof badge says what was proven', async () => {
  const { show, parts, trace } = open({ proof: { state: 'proven', text: 'proof ok', title: 'why' } });
  await show();
  assert.deepEqual(
    [parts.proof.hidden, parts.proof.dataset.proof, parts.proof.textContent, parts.proof.title],
    [false, 'proven', 'proof ok', 'why'],
  );
  await show({ ...trace, trace: 'x', proof: null });
  assert.ok(parts.proof.hidden);
});

test('the saved picture has the photo, the map where it lies on it, the bar and the words', async () => {
  const crop = { original: [200, 300], input: [32, 48], region: [20, 30, 160, 240] };
  const { show, parts, browser, explorer } = open({ crop });
  const globals = /** @type {any} */ (URL);
  globals.createObjectURL = () => 'blob:x';
  globals.revokeObjectURL = (/** @type {string} */ url) => assert.equal(url, 'blob:x');
  await show();
  explorer.change({ query: '1,2', layer: 0, head: 3, alpha: 0.25, smooth: true });
  browser.pass(16);
  parts.save.fire('click');
  const link = browser.made.findLast((node) => node.tagName === 'A');
  assert.equal(/** @type {any} */ (link).download, 'vit_viz-mini-lion-layer0-head3-1,2-row-light-smooth.png');
  const canvas = /** @type {any} */ (
    browser.made.findLast(
      (node) => node.tagName === 'CANVAS' && node.canvas?.calls.some(([name]) => name === 'fillText'),
    )
  );
  const of = (/** @type {string} */ name) =>
    canvas.canvas.calls.flatMap((/** @type {any[]} */ [one, ...args]) => (one === name ? [args] : []));
  const [photo, map, bar] = of('drawImage');
  assert.deepEqual([photo[0], bar[0]], [parts.photo, parts.colors]);
  assert.deepEqual(map.slice(1), [90, 60, 720, 480]);
  assert.deepEqual([map[0].width, map[0].height], [720, 480]); // drawn anew, at the size of the file
  const words = of('fillText').map((/** @type {any[]} */ [text]) => text);
  assert.deepEqual(
    words.slice(0, 3),
    [parts.low, parts.high, parts.unit].map((part) => part.textContent),
  );
  assert.match(words[3], /^Layer 0, head 3: where patch \(1, 2\) looks/);
  assert.match(words.at(-1), /Photo: lion, fit. vit_viz$/);
  explorer.change({ query: Array.from({ length: 15 }, (_, i) => `${i % 4},${i % 6}`).join(';') });
  parts.save.fire('click');
  assert.match(
    /** @type {any} */ (browser.made.findLast((node) => node.tagName === 'A')).download,
    /-region-row/,
  );
});

test('whoever saves figures here is told the view, and the page that holds it where there is one', async () => {
  const { explorer, parts, show } = open();
  await show();
  explorer.trace = { .../** @type {any} */ (explorer.trace), about: { model: 'mini' } };
  /** @type {any[]} */ const asked = [];
  parts.save.addEventListener('vv-figure', (/** @type {any} */ event) => {
    event.preventDefault();
    asked.push(event.detail);
  });
  explorer.change({ layer: 1, head: 3, query: '1,2', style: 'heat' });
  explorer.save();
  const page = new URL(asked[0].page, 'http://host');
  assert.equal(page.pathname, '/vit_viz/explorer/abc.html');
  assert.equal(page.search, '?layer=1&head=3&q=1,2&style=heat');
  const [name, { figure, ...body }] = asked[0].question;
  const wanted = { model: 'mini', layer: 1, head: '3', query: '1,2', direction: 'row', norm: false };
  assert.deepEqual([name, body], ['look', wanted]);
  assert.deepEqual(Object.keys(figure), ['style', 'scale', 'clip', 'alpha', 'table', 'smooth', 'mask']);
  assert.equal(figure.style, 'heat');
  explorer.source = { ...explorer.source, page: () => '' };
  explorer.save();
  assert.equal(asked[1].page, '');
});
