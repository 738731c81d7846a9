// The matrix of a head as Gradio runs it: how it fills, what it marks, what it says, and what it does where there is no matrix.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fire, layerOf, open, OPTIONS, trace } from './matrix_page.js';
import { settle } from './room.js';

const HINT = 'Point at the matrix or at the photo; click to choose the query.';
const texts = (/** @type {any} */ nodes) => nodes.map((/** @type {any} */ node) => node.textContent);
const pressed = (/** @type {any} */ element, /** @type {string} */ name) =>
  element
    .querySelectorAll(`[data-${name}]`)
    .filter((/** @type {any} */ one) => one.getAttribute('aria-pressed') === 'true')
    .map((/** @type {any} */ one) => one.dataset[name]);

test('a matrix has its title, its size, the choosers of layers and heads, and the photo', async () => {
  const { find, text, asked, element } = await open();
  assert.deepEqual(asked, ['/vit_viz/layer/abc/1']);
  assert.equal(text('caption'), 'Layer 1, head 2: half of the attention falls on 11 of 26 tokens');
  assert.equal(text('size'), 'Rows are queries, columns are keys: 26 x 26 tokens, and each row sums to 1.');
  assert.deepEqual(texts(find('layer').children), ['0', '1', '2']);
  assert.deepEqual(texts(find('head').children), ['0', '1', '2', '3', '4', 'mean', 'max', 'min']);
  assert.deepEqual([find('layer').value, find('head').value], ['1', '2']);
  assert.deepEqual([pressed(element, 'scale'), pressed(element, 'links')], [['log'], ['query']]);
  assert.deepEqual([find('photo').src, find('photo').alt], ['/vit_viz/photo/lion', 'a lion']);
  assert.equal(find('stage').style.getPropertyValue('--vv-aspect'), '1.5');
  assert.equal(find('links').getAttribute('viewBox'), '0 0 600 400');
  assert.equal(find('sheet').style.getPropertyValue('--vv-margin'), '64px');
  assert.equal(find('main').hidden, false);
  assert.equal(find('error').hidden, true);
});

test('a matrix fills some rows in each frame, and says how far it is', async () => {
  const { text, element, frames, notes, browser } = await open({ wait: true });
  assert.equal(text('readout'), 'Computing: row 0 of 26 …');
  await frames(1);
  assert.equal(text('readout'), 'Computing: row 7 of 26 …'); // eight milliseconds, of which the first look at the clock takes one
  assert.equal(element.dataset.ready, undefined);
  await frames(2);
  assert.equal(text('readout'), 'Computing: row 21 of 26 …');
  await frames(1);
  assert.equal(text('readout'), HINT);
  assert.equal(element.dataset.ready, '1.2');
  assert.deepEqual([notes().length, browser.timers.size], [5, 0]); // nothing is drawn any more
  assert.deepEqual(notes().map(([name, detail]) => [name, detail]).slice(3), [
    ['vit_viz:matrix', 'filling'],
    ['vit_viz:matrix', 'painted'],
  ]); // prettier-ignore
  assert.ok(notes().every(([, , { start, end }]) => start < end));
});

test('before its layer is there it says so, and nothing is marked that is not pinned', async () => {
  const { text, frames, band, find } = await open({ wait: true, answer: () => new Promise(() => {}) });
  await frames(1);
  assert.equal(text('readout'), 'Fetching the layer …');
  assert.deepEqual(['pinned', 'row', 'column'].map(band), ['114px 10px', '', '']);
  assert.equal(find('legend').hidden, true);
});

test('the pinned query has its row, its ring and its strongest links', async () => {
  const { band, rings, arrows, text, find } = await open();
  assert.deepEqual(['pinned', 'row', 'column'].map(band), ['114px 10px', '', '']);
  assert.deepEqual(rings(), [`query 30% ${11000 / 300}% ${4000 / 300}% 20%`]);
  assert.equal(arrows().length, 2);
  assert.match(arrows()[1], /^M260\.0 160\.0Q/); // the strongest is on top, and goes to patch (0, 3)
  assert.match(find('links').children[1].children[1].getAttribute('d'), /^M340\.0 80\.0L/);
  assert.match(find('links').children[0].children[1].getAttribute('d'), /^M260\.0 320\.0L/);
  const attributes = (/** @type {any} */ node, /** @type {string[]} */ ...names) =>
    names.map((name) => node.getAttribute(name)).join(' ');
  assert.deepEqual(
    find('links').children.map((/** @type {any} */ node) => attributes(node, 'class', 'opacity')),
    ['vv-link 0.68', 'vv-link 1.00'],
  );
  assert.deepEqual(
    find('links').children[1].children.map((/** @type {any} */ node) =>
      attributes(node, 'class', 'stroke-width').trim(),
    ),
    ['vv-link-under 7.0', 'vv-link-tip-under', 'vv-link-line 5.0', 'vv-link-tip'],
  );
  assert.equal(find('legend').hidden, false);
  assert.deepEqual([text('strong'), text('weak')], ['50%', '25%']);
  const look = (/** @type {string} */ name) => [find(name).style.height, find(name).style.opacity];
  assert.deepEqual([look('thick'), look('thin')], [['5px', '1.00'], ['3px', '0.68']]); // prettier-ignore
  assert.equal(
    text('said'),
    "The 2 strongest links of patch (1, 2) to patches hold 75% of its attention. A patch's link to itself is left out.",
  );
});

test('the links of the whole head, and as many as are asked for', async () => {
  const { arrows, text, set, find } = await open();
  const option = find('count').options.at(-1);
  assert.deepEqual([option.textContent, find('count').value], ['2', '2']); // a number that the list did not have
  await set({}, { links: 'head', strongest: 5 });
  assert.equal(find('count').value, '5');
  assert.equal(arrows().length, 5);
  assert.match(arrows()[4], /^M500\.0 320\.0Q/); // from the last patch
  assert.deepEqual([text('strong'), text('weak')], ['75%', '1.6%']);
  assert.match(text('said'), /^The 5 strongest of 552 links between patches hold 15\.2% of their weight\./);
});

test('a region looks where all its patches look, and a query that has no place draws dots', async () => {
  const { set, band, rings, find, text } = await open();
  await set({ view: { layer: 1, head: 2, query: '1,2;3,5' } });
  assert.equal(band('pinned'), '');
  assert.equal(rings().length, 2);
  assert.deepEqual([text('strong'), text('weak')], ['75%', '50%']);
  assert.match(
    text('said'),
    /^The 2 strongest links of a region of 2 patches to patches hold 62\.5% of its attention\. A/,
  );
  await set({ view: { layer: 1, head: 2, query: 'class' } });
  assert.equal(band('pinned'), '0px 14px');
  assert.deepEqual(rings(), []);
  const [, dot] = find('links').children;
  assert.deepEqual(
    [dot.tagName, ...['cx', 'cy', 'r', 'class'].map((name) => dot.getAttribute(name))],
    ['circle', '340.0', '160.0', '7.0', 'vv-link vv-link-dot'],
  );
  assert.match(text('said'), /^The 2 strongest links of the class token .* It has no place on the photo/);
  await set({ view: { layer: 1, head: 2, query: 'pool' }, pooling: 'attention' });
  assert.deepEqual([band('pinned'), rings()], ['', []]);
  assert.deepEqual([find('links').children.length, find('legend').hidden], [0, true]);
  await set({ view: { layer: 1, head: 2, query: 'pool' }, pooling: 'mean' });
  assert.match(text('said'), /strongest of 552 links between patches/);
});

test('a pair that is pointed at has its row, its column, its rings and its weight', async () => {
  const { over, frames, band, rings, text, find, arrows } = await open();
  await over('pointermove', 25, 2);
  await frames(1);
  assert.deepEqual(['row', 'column', 'pinned'].map(band), ['264px 10px', '34px 10px', '114px 10px']);
  assert.equal(text('readout'), 'patch (3, 5) looks at patch (0, 0): 75%');
  assert.equal(find('readout').dataset.weight, '0.75');
  assert.deepEqual(rings(), [
    `query 70% ${23000 / 300}% ${4000 / 300}% 20%`,
    `key 10% 10% ${4000 / 300}% 20%`,
  ]);
  assert.match(arrows()[1], /^M500\.0 320\.0Q/); // from the query that is pointed at
  await over('pointermove', 0, 11);
  await frames(1);
  assert.deepEqual(['row', 'column'].map(band), ['0px 14px', '124px 10px']);
  assert.deepEqual(rings(), [`key 30% 50% ${4000 / 300}% 20%`]);
  await fire(find('sheet'), 'pointerleave', { pointerId: 1, pointerType: 'mouse' });
  await frames(1);
  assert.deepEqual(['row', 'column'].map(band), ['', '']);
  assert.equal(text('readout'), HINT);
});

test('a patch that is pointed at on the photo is a query, and says where it looks most', async () => {
  const { onPhoto, frames, band, text, set, find } = await open();
  await onPhoto('pointermove', 3, 5);
  await frames(1);
  assert.deepEqual(['row', 'column'].map(band), ['264px 10px', '']);
  assert.equal(text('readout'), 'patch (3, 5) looks most at patch (0, 0): 75%');
  assert.equal(find('readout').dataset.weight, undefined);
  await fire(find('stage'), 'pointermove', { clientX: 501, clientY: 31 }); // outside what the model received
  await frames(1);
  assert.equal(text('readout'), HINT);
  await set({}, { links: 'head' });
  await onPhoto('pointermove', 3, 5);
  await frames(1);
  assert.equal(text('readout'), HINT);
});

test('the bar has the ends of the scale, and says where smaller weights have the lowest colour', async () => {
  const { text, set, find } = await open();
  assert.deepEqual(['low', 'high', 'unit'].map(text), ['1.6%', '75%', 'of the attention, logarithmic']);
  assert.match(find('strip').style.background, /^linear-gradient\(to right, rgb\(45 45 45\), /);
  await set({}, { matrix_scale: 'linear' });
  assert.deepEqual(['low', 'high', 'unit'].map(text), ['0%', '75%', 'of the attention']);
  const small = await open({ answer: () => layerOf(1, 5, [[3, 4, 2 ** -14], [3, 5, 2 ** -14]]) }); // prettier-ignore
  assert.equal(small.text('low'), '0.0061%');
  const tiny = layerOf(1);
  new Uint16Array(tiny, 4 * 5 * 26)[2 * 26 * 26] = 1; // the smallest number of fp16
  const { text: textOf } = await open({ answer: () => tiny });
  assert.equal(textOf('low'), '<0.001%');
});

test('another layer is fetched once, and an answer that came too late is not shown', async () => {
  /** @type {Record<string, () => void>} */
  const held = {};
  const part = await open({
    answer: (path) => new Promise((done) => (held[path.slice(-1)] = () => done(undefined))),
    wait: true,
  });
  await part.set({ view: { layer: 0, head: 2, query: '1,2' } });
  held[1]();
  await settle();
  await part.frames(8);
  assert.equal(part.text('readout'), 'Fetching the layer …');
  held[0]();
  await settle();
  await part.frames(8);
  assert.equal(part.element.dataset.ready, '0.2');
  await part.set({ view: { layer: 0, head: 'max', query: '1,2' } });
  assert.equal(part.element.dataset.ready, '0.max');
  assert.equal(part.text('caption'), 'Layer 0, max over heads: every token against every token');
  assert.equal(part.text('size'), 'Rows are queries, columns are keys: 26 x 26 tokens.');
  await part.set({ view: { layer: 0, head: 2, query: '1,2' } });
  assert.deepEqual(part.asked, ['/vit_viz/layer/abc/1', '/vit_viz/layer/abc/0']);
});

test('the same head with another query is not computed again', async () => {
  const part = await open();
  const computed = () => part.notes().filter(([, detail]) => detail === 'filling').length;
  const before = computed();
  await part.set({ view: { layer: 1, head: 2, query: '3,5' } });
  assert.deepEqual(
    [part.element.dataset.ready, part.band('pinned'), computed()],
    ['1.2', '264px 10px', before],
  );
});

test('a layer that only the server can compute is refused with a sentence, and the next one shows', async () => {
  const part = await open({ now: { ...trace, view: { layer: 2, head: 2, query: '1,2' } } });
  assert.match(part.text('error'), /^This layer is too large for the browser to compute its matrix/);
  assert.equal(part.find('error').hidden, false);
  assert.deepEqual([part.element.hasAttribute('data-refused'), part.text('readout')], [true, '']);
  assert.deepEqual(part.asked, []);
  await part.set({ view: { layer: 1, head: 2, query: '1,2' } });
  assert.deepEqual([part.element.hasAttribute('data-refused'), part.find('error').hidden], [false, true]);
  assert.equal(part.text('readout'), HINT);
});

test('a layer that is too many bytes is not fetched', async () => {
  const large = { ...trace, heads: 1200, tokens: 162, grid: [16, 10], trace: 'large' };
  const { text, asked } = await open({ now: large });
  assert.match(text('error'), /\(64 MB, and it takes at most 60 MB\)/);
  assert.deepEqual(asked, []);
});

test('what goes wrong on the way is said, but not of a trace that was left', async () => {
  const broken = await open({ answer: () => ({ status: 500, ok: false }) });
  assert.match(broken.text('error'), /^The server refused this request \(500\)/);
  /** @type {((found: any) => void)[]} */
  const held = [];
  const part = await open({ answer: () => new Promise((done) => held.push(done)), wait: true });
  await part.set({ trace: 'def' });
  held[0]({ status: 500, ok: false });
  await settle();
  assert.equal(part.find('error').hidden, true);
  held[1](undefined);
  await settle();
  await part.frames(8);
  assert.deepEqual([part.element.dataset.ready, part.asked[1]], ['1.2', '/vit_viz/layer/def/1']);
});

test('another trace has its own axis, and nothing stays pointed at', async () => {
  const part = await open();
  await part.over('pointermove', 25, 2);
  await part.frames(1);
  await part.set({ trace: 'def' });
  assert.deepEqual(['row', 'column'].map(part.band), ['', '']);
  const layer = new Uint16Array(5 * 17 * (2 + 17)).fill(0x3800).buffer;
  const small = { ...trace, trace: 'small', grid: [3, 5], tokens: 17, layers: 2 };
  const other = await open({ now: small, answer: () => layer, size: 184 });
  assert.equal(other.element.dataset.ready, '1.2');
  assert.match(other.text('size'), /17 x 17 tokens/);
  assert.deepEqual(texts(other.find('layer').children), ['0', '1']);
});

test('a matrix that is out of sight is not painted until it has room', async () => {
  const part = await open({ size: 0 });
  assert.deepEqual([part.notes(), part.band('pinned')], [[], '']);
  const boxes = {
    plot: { left: 100, top: 50, width: 274, height: 274 },
    stage: { left: 500, top: 30, width: 300, height: 200 },
  };
  Object.assign(part.boxes, boxes);
  await part.set({});
  assert.equal(part.notes().length, 1);
  assert.equal(part.find('links').getAttribute('viewBox'), '0 0 300 200');
  assert.match(part.arrows()[1], /^M130\.0 80\.0Q/);
  part.boxes.stage = { left: 0, top: 0, width: 0, height: 0 };
  await part.set({});
  assert.equal(part.find('links').getAttribute('viewBox'), '0 0 1 1');
});

test('who followed a link to the matrix finds it in sight, once', async () => {
  const plain = await open();
  assert.equal(plain.element.scrolled, true); // its number of links is not the usual one
  plain.element.scrolled = false;
  await plain.set({ view: { layer: 0, head: 2, query: '1,2' } });
  assert.equal(plain.element.scrolled, false);
  const usual = await open({ options: { ...OPTIONS, strongest: 10 } });
  assert.equal(usual.element.scrolled, false);
});
