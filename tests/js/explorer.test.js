// The explorer as a whole: hands go in; pictures, words, events and addresses come out.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { settle, texts } from './room.js';
import { expected, open } from './visit.js';

/** @typedef {import('./document.js').Element} Element */

const places = (/** @type {Element} */ node) =>
  [...(node.getAttribute('d') ?? '').matchAll(/M(\d+) (\d+)/g)].map(([, x, y]) => [+x, +y]);
const shares = (/** @type {any} */ parts) =>
  parts.mass.children.map((/** @type {Element} */ part) => part.children[0].textContent);
const argmax = (/** @type {number[]} */ row) => row.indexOf(Math.max(...row));

test('a trace opens with its photo, axes, chips, layers and words', async () => {
  const { parts, show, asked, told, kept, trace } = open({ note: 'a note' });
  await show();
  assert.equal(parts.root.dataset.state, 'ready');
  assert.equal(parts.photo.src, '/vit_viz/photo/x');
  assert.equal(parts.message.textContent, 'a note');
  assert.deepEqual(texts(parts.heads.children), ['0', '1', '2', '3', '4', 'all']);
  assert.deepEqual(texts(parts.layers.children), ['0', '1', '2']);
  assert.deepEqual(texts(parts.chips.children), ['ask', 'class token', 'register 0']);
  assert.deepEqual(
    asked.filter((p) => p.includes('/layer/')).map((p) => p.slice(-1)),
    ['2', '1', '0'],
  );
  assert.equal(asked.filter((p) => p.includes('/numbers/')).length, 1);
  assert.deepEqual(told, []); // nobody has chosen
  assert.deepEqual(
    [kept.chosen.layer, kept.chosen.head, kept.chosen.query, kept.chosen.style],
    [2, 'mean', 'class', 'light'],
  );
  assert.match(
    parts.caption.textContent,
    /^Layer 2, all heads: the class token looks mostly at 6 of 24 patches$/,
  );
  assert.equal(
    parts.readout.textContent,
    'Most on patch (3, 1), 43.21%. Point at another patch; click to keep it.',
  );
  assert.deepEqual(shares(parts), ['20%', '5%', '75%']);
  assert.equal(parts.progress.textContent, '');
  assert.equal(parts.map.canvas.data.width, trace.grid[1]);
  assert.equal(parts.map.canvas.data.height, trace.grid[0]);
  assert.equal(parts.atlas.canvas.data.width, 6 * 6);
  assert.equal(parts.atlas.canvas.data.height, 3 * 4);
});

test('a title waits for its layer, and what is said of the pinned token is not said of another one', async () => {
  const { explorer, parts, show, browser } = open();
  await show();
  assert.match(parts.about.textContent, /^The class token is no part of the photo/);
  explorer.preview('1,2');
  browser.pass(16);
  assert.match(parts.caption.textContent, /: patch \(1, 2\) looks /);
  assert.equal(parts.about.style.visibility, 'hidden');
  explorer.preview(null);
  browser.pass(16);
  assert.deepEqual([parts.about.style.visibility, parts.caption.getAttribute('aria-busy')], ['', 'false']);
  explorer.frame?.fresh.fill(0);
  explorer.schedule();
  browser.pass(16);
  assert.equal(parts.caption.textContent, 'Layer 2, all heads: computing …');
  assert.equal(parts.caption.getAttribute('aria-busy'), 'true');
});

test('a finger is told to tap, and the tokens of no patch say what they are', async () => {
  const { browser, parts, show } = open();
  browser.touch = true;
  await show();
  assert.equal(parts.readout.textContent, 'Most on patch (3, 1), 43.21%. Tap another patch.');
  const [, chip, register] = parts.chips.children;
  assert.match(chip.title, /class token: belongs to no patch; it gathers from all/);
  assert.match(register.title, /register 0: belongs to no patch; a spare token/);
  assert.doesNotMatch(chip.getAttribute('aria-label'), /gathers/);
});

test('a click on a patch pins it: ring, words, event, address; the brightest pixel is the patch it looks at', async () => {
  const { explorer, parts, show, patch, told, browser, trace, cell } = open();
  await show();
  parts.cells.fire('click', cell(1, 3));
  parts.stage.fire('pointerdown', patch(2, 4));
  parts.stage.fire('pointerup', patch(2, 4));
  browser.pass(60);
  await settle();
  browser.pass(300);
  await settle();
  assert.equal(explorer.view?.query, '2,4');
  assert.deepEqual(places(parts.pinned), [
    [4, 2],
    [4, 3],
    [4, 2],
    [5, 2],
  ]);
  assert.deepEqual(places(parts['pinned-halo']), places(parts.pinned));
  assert.equal(parts.stage.captured, 4);
  assert.equal(parts.caption.textContent, 'Layer 1, head 3: patch (2, 4) looks mostly at 2 of 24 patches');
  assert.equal(parts.mark.textContent, 'lit where patch (2, 4) looks');
  assert.equal(
    parts.details.textContent,
    'mini. Scale: its own, peaks clipped (cells: each layer). Light, smooth.',
  );
  assert.deepEqual(
    told.map(([how, { layer, head, query }]) => [how, layer, head, query]),
    [
      ['view', 1, 3, 'class'],
      ['place', 1, 3, '2,4'], // Back leads to the query before
    ],
  );
  const row = expected(trace, 1)[3][2 + 2 * 6 + 4].slice(2);
  const pixels = [...new Uint32Array(parts.map.canvas.data.data.buffer)].map((p) => p & 255);
  explorer.change({ clip: false, scale: 'shared', style: 'heat' }); // which is that of the cells
  browser.pass(16);
  const own = [...new Uint32Array(parts.map.canvas.data.data.buffer)].map((p) => p & 255);
  assert.equal(argmax(own), argmax(row));
  assert.equal(Math.max(...own), 255);
  assert.ok(pixels.length === 24);
});

test('the frame of the chosen cell and the marked names stand at its layer and head', async () => {
  const { parts, show, cell } = open();
  await show();
  const on = (/** @type {Element} */ axis) =>
    axis.children.findIndex((label) => label.hasAttribute('data-on'));
  assert.deepEqual([on(parts.layers), on(parts.heads)], [2, 5]);
  parts.cells.fire('click', cell(0, 4));
  assert.deepEqual([on(parts.layers), on(parts.heads)], [0, 4]);
  const size = (/** @type {string} */ name) => parts.mosaic.style.getPropertyValue(`--vx-cell-${name}`);
  const [width, height] = ['width', 'height'].map((name) => parseFloat(size(name)));
  assert.ok(width > 24 && height > 24 && width !== height);
  assert.equal(parts.pick.style.transform, `translate(${4 * width}px, 0px)`);
  parts.cells.fire('pointermove', cell(1, 2));
  assert.equal(parts.over.hidden, false);
  assert.equal(parts.over.style.transform, `translate(${2 * width}px, ${height}px)`);
  assert.match(parts.readout.textContent, /^Layer 1, head 2: /);
  parts.cells.fire('pointerleave', {});
  assert.ok(parts.over.hidden);
});

test('hovering previews and tells nobody; leaving returns to the pinned query', async () => {
  const { parts, show, patch, told, browser, explorer } = open();
  await show();
  parts.stage.fire('pointermove', patch(3, 5));
  browser.pass(16);
  assert.deepEqual(places(parts.hovered)[0], [5, 3]);
  assert.deepEqual(places(parts.pinned), []);
  assert.match(parts.caption.textContent, /patch \(3, 5\) looks/);
  assert.match(parts.readout.textContent, /≈ .*%\. The query is the patch at pixels x 250-300, y 150-200\.$/);
  parts.stage.fire('pointerleave', {});
  browser.pass(16);
  assert.deepEqual(places(parts.hovered), []);
  assert.match(parts.caption.textContent, /class token looks/);
  assert.deepEqual([told.length, explorer.hovered], [0, null]);
  const chip = parts.chips.children[2];
  chip.fire('pointerenter', { pointerType: 'mouse' });
  assert.equal(explorer.hovered, 'register 0');
  chip.fire('pointerleave', {});
  assert.equal(explorer.hovered, null);
  chip.fire('pointerenter', { pointerType: 'touch' });
  assert.equal(explorer.hovered, null);
  chip.fire('click');
  assert.equal(explorer.view?.query, 'register 0');
  assert.deepEqual(
    parts.chips.children.map((/** @type {any} */ c) => c.getAttribute('aria-pressed')),
    [null, 'false', 'true'],
  );
});

test('a drag takes a rectangle, Shift adds and removes patches, the region button collects', async () => {
  const { parts, show, patch, explorer } = open();
  await show();
  const { stage } = parts;
  const click = (/** @type {number} */ r, /** @type {number} */ c, more = {}) => {
    stage.fire('pointerdown', { ...patch(r, c), ...more });
    stage.fire('pointerup', { ...patch(r, c), ...more });
  };
  stage.fire('pointerdown', patch(1, 4));
  stage.fire('pointermove', patch(0, 3));
  assert.equal(explorer.hovered, '0,3;0,4;1,3;1,4');
  stage.fire('pointerup', patch(0, 3));
  assert.equal(explorer.view?.query, '0,3;0,4;1,3;1,4');
  click(3, 0, { shiftKey: true });
  assert.equal(explorer.view?.query, '0,3;0,4;1,3;1,4;3,0');
  click(0, 4, { shiftKey: true });
  assert.equal(explorer.view?.query, '0,3;1,3;1,4;3,0');
  parts.region.fire('click');
  assert.equal(parts.region.getAttribute('aria-pressed'), 'true');
  click(2, 2);
  assert.equal(explorer.view?.query, '0,3;1,3;1,4;2,2;3,0');
  parts.region.fire('click');
  click(2, 2);
  assert.equal(explorer.view?.query, '2,2');
  click(2, 2, { shiftKey: true }); // the last one stays
  assert.equal(explorer.view?.query, '2,2');
  click(2, 3, { button: 2 });
  assert.equal(explorer.view?.query, '2,2');
  const beyond = { clientX: 900, clientY: 40, pointerType: 'mouse' }; // to the right of the photo, and above it
  stage.fire('pointerdown', patch(1, 4));
  stage.fire('pointermove', beyond);
  assert.equal(explorer.hovered, '0,4;0,5;1,4;1,5');
  stage.fire('pointerup', beyond);
  assert.equal(explorer.view?.query, '0,4;0,5;1,4;1,5');
  click(2, 2);
  stage.fire('pointerdown', patch(0, 0));
  stage.fire('pointercancel', {});
  stage.fire('pointerup', patch(0, 0));
  assert.equal(explorer.view?.query, '2,2');
});

test('outside what the model received there is no patch', async () => {
  const { parts, show, explorer } = open();
  await show();
  for (const [clientX, clientY] of [
    [99, 60],
    [701, 60],
    [110, 49],
    [110, 451],
  ]) {
    parts.stage.fire('pointermove', { clientX, clientY, pointerType: 'mouse' });
    assert.equal(explorer.hovered, null);
    parts.stage.fire('pointermove', { clientX, clientY, pointerType: 'mouse', altKey: true });
    assert.ok(parts.tip.hidden && !parts.tip.textContent);
  }
  parts.stage.fire('pointermove', { clientX: 100, clientY: 50, pointerType: 'mouse' });
  assert.equal(explorer.hovered, '0,0');
});

test('with Alt, or as a reading pointer, the pinned map is read beside the pointer', async () => {
  const { parts, show, patch, explorer, element, trace, browser } = open();
  await show();
  explorer.change({ query: '1,1', head: 2, layer: 0 });
  browser.pass(16);
  parts.tip.box = { left: 0, top: 0, width: 120, height: 20 };
  parts.stage.box = { left: 90, top: 40, width: 690, height: 420 };
  parts.stage.fire('pointermove', { ...patch(2, 3), altKey: true });
  assert.equal(parts.tip.hidden, false);
  const value = expected(trace, 0)[2][2 + 7][2 + 15];
  assert.equal(
    parts.tip.textContent,
    `patch (2, 3): ${Number((100 * value).toPrecision(value >= 0.1 ? 3 : 2))}%, pixels x 150-200, y 100-150`,
  );
  assert.equal(parts.tip.style.transform, `translate(${100 + 350 - 90 + 14}px, ${50 + 250 - 40 + 20}px)`);
  assert.equal(explorer.hovered, null);
  parts.stage.fire('pointermove', { ...patch(3, 5), altKey: true });
  assert.equal(parts.tip.style.transform, `translate(${690 - 120 - 4}px, ${50 + 350 - 40 + 20}px)`);
  parts.stage.box = { ...parts.stage.box, height: 390 };
  parts.stage.fire('pointermove', { ...patch(3, 0), altKey: true });
  assert.equal(parts.tip.style.transform, `translate(${150 - 90 + 14}px, ${400 - 40 + 20 - 50}px)`);
  parts.stage.fire('pointermove', patch(2, 3));
  assert.ok(parts.tip.hidden);
  const reads = element.querySelectorAll('[name$="-pointer"]').find((input) => input.value === 'reads');
  /** @type {any} */ (reads).checked = true;
  parts.stage.fire('pointermove', patch(2, 3));
  assert.ok(!parts.tip.hidden);
  parts.stage.fire('pointerdown', patch(2, 3));
  parts.stage.fire('pointerup', patch(2, 3));
  assert.equal(explorer.view?.query, '2,3');
});

test('keys point at patches and heads, which are shown and said; Enter keeps them, Shift and Enter add, Escape lets go', async () => {
  const { parts, show, explorer, browser, told } = open();
  await show();
  const key = (/** @type {string} */ name, more = {}, where = parts.stage) =>
    where.fire('keydown', { key: name, ...more });
  const caption = () => {
    browser.pass(20);
    return parts.caption.textContent;
  };
  assert.ok(!key('Enter').prevented && !key('Escape').prevented); // nothing is pointed at, nothing was chosen
  assert.ok(key('ArrowUp').prevented);
  assert.match(caption(), /^Layer 2, all heads: patch \(2, 3\) looks mostly at /); // the centre
  browser.pass(600);
  assert.match(parts.status.textContent, /patch \(2, 3\) looks/);
  key('ArrowDown');
  assert.deepEqual([explorer.view?.query, explorer.hovered, told.length], ['class', '3,3', 0]);
  assert.equal(key('Enter').prevented, true);
  assert.deepEqual([explorer.view?.query, explorer.hovered, told.length], ['3,3', null, 1]);
  key('ArrowRight');
  key('Enter', { shiftKey: true });
  assert.equal(explorer.view?.query, '3,3;3,4');
  parts.region.fire('click');
  key('ArrowRight');
  key(' ');
  assert.equal(explorer.view?.query, '3,3;3,4;3,5');
  key('ArrowLeft');
  parts.stage.fire('blur');
  assert.equal(explorer.hovered, null);
  key('ArrowLeft');
  assert.ok(key('Escape').prevented);
  assert.deepEqual([explorer.hovered, explorer.view?.query], [null, '3,3;3,4;3,5']);
  key('Escape');
  assert.equal(explorer.view?.query, 'class');
  const on = (/** @type {string} */ name) => key(name, {}, parts.mosaic);
  assert.ok(on('ArrowUp').prevented);
  assert.match(caption(), /^Layer 1, all heads: the class token looks mostly at /);
  assert.equal(explorer.view?.layer, 2);
  assert.equal(parts.over.hidden, false);
  on('ArrowLeft');
  on('Enter');
  assert.deepEqual([explorer.view?.layer, explorer.view?.head], [1, 4]);
  on('ArrowUp');
  assert.equal(on('Escape').prevented, true);
  assert.match(caption(), /^Layer 1, head 4: the class token looks mostly at /);
  assert.deepEqual([parts.over.hidden, on('Escape').prevented, on('x').prevented], [true, false, false]);
  on('ArrowUp');
  parts.mosaic.fire('blur');
  assert.equal(explorer.reached, null);
  for (const part of [parts.stage, parts.mosaic])
    assert.ok(part.getAttribute('aria-label').endsWith(parts.keys.textContent));
});

test('where values are read, the keys read the pinned map, which stays; Enter keeps the patch, Escape lets go', async () => {
  const { parts, show, patch, explorer, element, browser } = open();
  await show();
  explorer.change({ query: '1,1', head: 2, layer: 0 });
  browser.pass(600);
  const reads = element.querySelectorAll('[name$="-pointer"]').find((input) => input.value === 'reads');
  /** @type {any} */ (reads).checked = true;
  parts.tip.box = { left: 0, top: 0, width: 120, height: 20 };
  parts.stage.box = { left: 90, top: 40, width: 690, height: 420 };
  const key = (/** @type {string} */ name) => parts.stage.fire('keydown', { key: name });
  parts.stage.fire('pointermove', patch(1, 2));
  browser.pass(20);
  const byMouse = [parts.tip.textContent, parts.tip.style.transform, parts.hovered.getAttribute('d')];
  parts.stage.fire('pointerleave', { pointerType: 'mouse' });
  browser.pass(20);
  assert.deepEqual([parts.tip.hidden, parts.hovered.getAttribute('d')], [true, '']);
  key('ArrowRight');
  browser.pass(600);
  assert.deepEqual([parts.tip.textContent, parts.tip.style.transform, parts.hovered.getAttribute('d')], byMouse); // prettier-ignore
  assert.deepEqual([parts.status.textContent, explorer.hovered, explorer.view?.query], [byMouse[0], null, '1,1']); // prettier-ignore
  assert.ok(key('Escape').prevented);
  browser.pass(600);
  assert.ok(parts.tip.hidden);
  assert.match(parts.status.textContent, /^Layer 0, head 2: where patch \(1, 1\) looks/);
  key('ArrowDown');
  key('ArrowDown');
  key('Enter');
  assert.deepEqual([explorer.view?.query, parts.tip.hidden], ['3,1', false]);
  parts.stage.fire('blur');
  assert.ok(parts.tip.hidden);
});

test('what changes while playing is told once it stops', async () => {
  const { parts, show, told, browser } = open();
  await show();
  parts.play.fire('click');
  browser.pass(1500);
  assert.equal(told.length, 0);
  parts.play.fire('click');
  assert.deepEqual(
    told.map(([how, { layer }]) => [how, layer]),
    [['view', 1]],
  );
  browser.still = true;
  parts.play.fire('click'); // where motion is unwelcome: one step
  assert.equal(parts.play.getAttribute('aria-pressed'), 'false');
});

test('every option of the page’s form changes the view and is shown in it', async () => {
  const { show, explorer, element } = open();
  await show();
  const input = (/** @type {string} */ name, value = '') =>
    /** @type {any} */ (
      element.querySelectorAll(`[name$="-${name}"]`).find((one) => !value || one.value === value)
    );
  const set = (/** @type {any} */ node, more = {}) => Object.assign(node, more).fire('input');
  for (const [name, value] of Object.entries({
    direction: 'column',
    scale: 'own',
    style: 'heat',
    smooth: '0',
  }))
    set(input(name, value));
  set(input('alpha'), { value: '0.25' });
  set(input('norm'), { checked: true });
  set(input('clip'), { checked: false });
  set(input('masked'), { checked: true });
  const change = { direction: 'column', scale: 'own', alpha: 0.25, smooth: false, norm: true, clip: false };
  assert.deepEqual(explorer.view, { ...explorer.view, ...change, style: 'heat', mask: 0.6 });
  assert.deepEqual([input('direction', 'row').checked, input('direction', 'column').checked], [false, true]);
  set(input('mask'), { value: '0.9' });
  for (const checked of [false, true]) set(input('masked'), { checked });
  assert.equal(explorer.view?.mask, 0.9); // as it was
  set(input('style', 'light'));
  assert.equal(explorer.view?.alpha, 1);
  set(input('table'), { value: 'gray' }); // what colours would have
  assert.deepEqual(explorer.view, { ...explorer.view, style: 'heat', alpha: 0.55, table: 'gray' });
});

test('a mask shows the photo outside its patches, dimmed where the style is light', async () => {
  const { parts, show, explorer, browser, trace } = open();
  await show();
  explorer.change({ query: '1,1', head: 2, layer: 0, mask: 0.3, style: 'heat' });
  browser.pass(16);
  const row = expected(trace, 0)[2][2 + 7].slice(2);
  const total = row.reduce((a, b) => a + b, 0);
  const order = row.map((v, i) => [v, i]).sort((a, b) => b[0] - a[0]);
  let sum = 0;
  let count = 0;
  for (; sum < 0.3 * total; count++) sum += order[count][0];
  const pixels = [...new Uint32Array(parts.map.canvas.data.data.buffer)];
  assert.equal(pixels.filter((pixel) => pixel !== 0).length, count);
  assert.ok(pixels[order[0][1]] !== 0 && pixels[order[23][1]] === 0);
  const atlas = new Uint32Array(parts.atlas.canvas.data.data.buffer);
  const cellOf = (/** @type {number} */ i) => atlas[Math.floor(i / 6) * 36 + 2 * 6 + (i % 6)];
  assert.deepEqual(
    pixels.map((_, i) => cellOf(i) !== 0),
    pixels.map((pixel) => pixel !== 0),
  );
  explorer.change({ style: 'light', scale: 'own', clip: false }); // there the photo is dimmed
  browser.pass(16);
  const dark = [...new Uint32Array(parts.map.canvas.data.data.buffer)];
  assert.ok(dark[order[0][1]] >>> 24 < 5);
  for (const [, i] of order.slice(count)) assert.equal(dark[i], 0xff000000);
});
