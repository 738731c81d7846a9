// What the explorer does at its edges: before anything was chosen, with links to other pictures, and in its form.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Closer, steppedShares } from '../../vit_viz/explorer/closer.js';
import { Controls } from '../../vit_viz/explorer/controls.js';
import { Strongest } from '../../vit_viz/explorer/matrix.js';
import { drawSheet } from '../../vit_viz/explorer/save.js';
import { Browser, Element, parse } from './browser.js';
import { makeTrace } from './oracle.js';
import { settle } from './room.js';
import { open } from './visit.js';

test('the tour begins with the first picture alone, and not where a link says what to look at', async () => {
  const { explorer, show } = open({ tour: [3, 7] });
  const page = { addEventListener() {}, removeEventListener() {} };
  Object.assign(globalThis.document, page);
  await show();
  assert.ok(explorer.ghost);
  await show(makeTrace({ tour: [3, 7], trace: 'second' }));
  assert.equal(explorer.ghost, null);
  const linked = open({ tour: [3, 7] }, { chosen: { query: '1,2' } });
  await linked.show();
  assert.deepEqual([linked.explorer.view?.query, linked.explorer.ghost], ['1,2', null]);
});

test('every cell of the mosaic is drawn on the screen, each from its place in the picture of all', async () => {
  const { explorer, browser, parts, show, trace } = open();
  await show();
  const [rows, cols] = trace.grid;
  const columns = trace.heads + 1;
  const cell = { width: 30, height: 20, gap: 2, radius: 0 };
  parts.lit.canvas.calls.length = 0;
  explorer.pictures.mosaic.fit(/** @type {any} */ (cell), { layers: trace.layers, columns });
  explorer.schedule();
  browser.pass(60);
  const drawn = parts.lit.canvas.calls.filter((/** @type {any[]} */ call) => call[1] === parts.atlas);
  assert.equal(drawn.length, trace.layers * columns);
  assert.deepEqual(drawn[columns + 2].slice(2), [2 * cols, rows, cols, rows, 60, 20, 28, 18]); // layer 1, head 2
});

test('each repaint is measured, those under the pointer apart', async () => {
  const { explorer, browser, show } = open();
  performance.clearMeasures('vit_viz:paint');
  const details = () =>
    performance.getEntriesByName('vit_viz:paint').map((entry) => /** @type {any} */ (entry).detail);
  await show();
  assert.equal(details().at(-1), 'pinned');
  explorer.preview('1,2');
  browser.pass(60);
  assert.equal(details().at(-1), 'hover');
});

test('what is quick is not said to be under way, and what is said goes when it is done', async () => {
  const { explorer, browser, parts, show } = open();
  await show();
  explorer.setBusy('Computing');
  browser.pass(249);
  explorer.setBusy('');
  browser.pass(1000);
  assert.deepEqual([parts.root.dataset.state, parts.busy.textContent], ['ready', '']);
  explorer.setBusy('Computing');
  browser.pass(250);
  assert.deepEqual([parts.root.dataset.state, parts.busy.textContent], ['busy', 'Computing']);
  assert.equal(parts.status.textContent, 'Computing');
  explorer.setBusy('');
  assert.deepEqual([parts.root.dataset.state, parts.busy.textContent], ['ready', '']);
  browser.pass(500);
  assert.notEqual(parts.status.textContent, '');
  await settle();
});

test('a query that is pinned already is not told again', async () => {
  const { explorer, told, show, browser } = open();
  await show();
  explorer.pin('1,2');
  browser.pass(1000);
  const pins = () => told.filter(([name]) => name === 'place').length;
  const before = pins();
  explorer.preview('0,1');
  explorer.pin('1,2');
  browser.pass(1000);
  assert.deepEqual([pins(), explorer.hovered], [before, null]);
});

test('a saved sheet has the photo with its map, below it the bar with its ends and unit, and the caption', () => {
  new Browser().install();
  const [photo, layer, bar] = [new Element('img'), new Element('canvas'), new Element('canvas')];
  const trace = makeTrace({ photo_size: [400, 560] });
  trace.crop = { original: [200, 280], input: [32, 48], region: [40, 60, 100, 140] };
  /** @type {any[]} */
  const sizes = [];
  const sheet = /** @type {any} */ (
    drawSheet(
      /** @type {any} */ ({
        ...{ photo, bar, trace, ends: ['0', '0.5'], unit: 'share', lines: ['one', 'two'] },
        layer: (/** @type {any} */ size) => sizes.push([size.width, size.height]) && layer,
      }),
    )
  );
  // 560 x 400 enlarged to 900 x 643; letters of 16 pixels, which is the margin too
  assert.deepEqual([sheet.width, sheet.height], [932, 805]); // 643 + 2 · 16 + 16 · (5.2 + 2 · 1.45)
  const { calls } = sheet.canvas;
  const round = (/** @type {any[]} */ call) =>
    call.map((one) => (typeof one === 'number' ? Number(one.toFixed(2)) : one));
  const of = (/** @type {string} */ name) =>
    calls
      .filter((/** @type {any[]} */ call) => call[0] === name)
      .map((/** @type {any[]} */ call) => round(call.slice(1)));
  assert.deepEqual(of('drawImage'), [
    [photo, 0, 0, 900, 643],
    [layer, 192.86, 128.6, 450, 321.5],
    [bar, 0, 659, 480, 13],
  ]);
  assert.deepEqual(sizes.map(round), [[450, 321.5]]);
  assert.deepEqual(of('translate'), [[16, 16]]);
  assert.deepEqual(of('fillRect'), [[0, 0, 932, 805]]);
  assert.deepEqual(of('rect'), [[0, 0, 900, 643]]);
  assert.deepEqual(of('fillText'), [
    ['0', 0, 676.6],
    ['0.5', 480, 676.6],
    ['share', 0, 699.8],
    ['one', 0, 729.4],
    ['two', 0, 752.6],
  ]);
});

test('links that weigh nothing are links too, and of equals the first that came stays before', () => {
  const strongest = new Strongest(3, /** @type {any} */ ({ prefix: ['class'], patches: 3 }));
  strongest.add(2, Float32Array.of(9, 0, 9, 0));
  assert.deepEqual(strongest.best(2), [
    { query: 2, key: 1, weight: 0 },
    { query: 2, key: 3, weight: 0 },
  ]);
  strongest.add(1, Float32Array.of(9, 9, 0.5, 0.25));
  assert.deepEqual(strongest.best(5), [
    { query: 1, key: 2, weight: 0.5 },
    { query: 1, key: 3, weight: 0.25 },
    { query: 2, key: 1, weight: 0 },
  ]);
  assert.deepEqual([strongest.pairs, strongest.total], [4, 0.75]);
});

// --- a part of the photo

/** A stage of 300 x 200 pixels on which parts are drawn; `there` says whether there is a picture. */
function closer() {
  const [stage, frame] = [new Element('div'), new Element('div')];
  stage.box = { left: 0, top: 0, width: 300, height: 200 };
  frame.hidden = true;
  /** @type {any[]} */
  const said = [];
  const button = new Element('button');
  button.setAttribute = (/** @type {string} */ _name, /** @type {string} */ drawing) =>
    void said.push(drawing === 'true');
  const photo = { crop: { original: [200, 300] } };
  const state = {
    get there() {
      return explorer.trace !== null;
    },
    set there(there) {
      explorer.trace = there ? photo : null;
    },
  };
  const explorer = {
    trace: /** @type {typeof photo | null} */ (photo),
    parts: { stage, cut: frame, closer: button, hint: new Element('p') },
    host: { closer: (/** @type {string} */ part) => void said.push(part) },
  };
  const one = new Closer(/** @type {any} */ (explorer));
  const at = (/** @type {number} */ y, /** @type {number} */ x) => ({ clientX: x, clientY: y, pointerId: 3 });
  return { one, stage, frame, said, state, at };
}

test('nothing is drawn before the button was pressed, and nothing without a picture', () => {
  const { one, stage, frame, said, state } = closer();
  assert.equal(stage.fire('keydown', { key: 'ArrowUp' }).prevented, false);
  assert.equal(frame.hidden, true);
  state.there = false;
  one.toggle();
  assert.equal(stage.fire('keydown', { key: 'ArrowUp' }).prevented, false);
  one.stop('');
  assert.deepEqual(said, []);
});

test('the button pressed again ends it, and the Tab key goes on to the next control', () => {
  const { one, stage, frame, said } = closer();
  one.toggle();
  assert.ok(stage.hasAttribute('data-drawing'));
  assert.equal(stage.fire('keydown', { key: 'Tab' }).prevented, false);
  stage.fire('keydown', { key: 'ArrowUp' });
  const { top, left, width, height } = frame.style;
  assert.deepEqual([frame.hidden, top, left, width, height], [false, '25%', '25%', '50%', '50%']);
  one.toggle();
  assert.deepEqual([said, frame.hidden, stage.hasAttribute('data-drawing')], [[true, false], true, false]);
});

test('a rectangle keeps a twentieth of the photo in each direction', () => {
  const near = (/** @type {number[]} */ shares) => shares.map((share) => Number(share.toFixed(6)));
  assert.deepEqual(near(steppedShares([0.1, 0.4, 0.16, 0.9], [-1, 0], true)), [0.1, 0.4, 0.15, 0.9]);
  assert.deepEqual(near(steppedShares([0.4, 0.1, 0.9, 0.16], [0, -1], true)), [0.4, 0.1, 0.9, 0.15]);
});

test('another button of the mouse draws nothing, and a press that is cancelled leaves nothing', () => {
  const { one, stage, frame, at, said } = closer();
  one.toggle();
  stage.fire('pointerdown', { ...at(20, 30), button: 2 });
  stage.fire('pointermove', at(120, 130));
  assert.equal(frame.hidden, true);
  stage.fire('pointerdown', at(20, 30));
  assert.equal(stage.captured, 3);
  stage.fire('pointermove', at(120, 130));
  assert.equal(frame.hidden, false);
  stage.fire('pointercancel');
  stage.fire('pointermove', at(150, 160));
  assert.equal(frame.hidden, true);
  stage.fire('pointerup', at(150, 160));
  assert.deepEqual(said, [true]);
});

test('a rectangle that was finished follows the pointer no further, also where the picture has gone', () => {
  const { one, stage, frame, at, state } = closer();
  one.toggle();
  stage.fire('pointerdown', at(20, 30));
  state.there = false;
  stage.fire('pointerup', at(120, 180));
  stage.fire('pointermove', at(40, 60));
  assert.deepEqual([frame.style.height, frame.style.width], ['50%', '50%']);
});

// --- the form

const FORM = `<div>
  <input name="a-style" type="radio" value="light" /><input name="a-style" type="radio" value="heat" />
  <input name="a-norm" type="checkbox" /><input name="a-masked" type="checkbox" />
  <input name="a-mask" type="range" /><input name="a-alpha" type="range" /><select name="a-scale"></select>
  <input name="a-direction" type="radio" value="0" /><input name="a-direction" type="radio" value="1" />
  <i data-vv="mask-share"></i><i data-vv="mask-text"></i></div>`;

test('every kind of control shows its option and tells of it', () => {
  new Browser().install();
  const root = parse(FORM);
  /** @type {any[]} */
  const told = [];
  const controls = new Controls(/** @type {any} */ (root), (change) => void told.push(change));
  const options = /** @type {any[]} */ ([
    { name: 'style', default: 'light' },
    { name: 'norm', default: false },
    { name: 'alpha', default: 1 },
    { name: 'scale', default: 'cell', choices: ['cell', 'layer', 'shared'] },
    { name: 'direction', default: false },
  ]);
  const view = { style: 'heat', norm: true, alpha: 0.25, scale: 'layer', direction: true, mask: 0.35 };
  const show = (more = {}, unlit = '', hasNorms = false) =>
    controls.show(
      /** @type {any} */ ({ ...view, ...more }),
      /** @type {any} */ ({ options, unlit }),
      hasNorms,
    );
  show();
  const inputs = (/** @type {string} */ name) => /** @type {any[]} */ (controls.inputs(name));
  const checked = (/** @type {string} */ name) => inputs(name).map((input) => input.checked);
  assert.deepEqual(['style', 'direction', 'norm', 'masked'].map(checked), [
    [false, true],
    [false, true],
    [true],
    [true],
  ]);
  const [list] = inputs('scale');
  assert.deepEqual(
    [inputs('alpha')[0].value, inputs('mask')[0].value, list.value],
    ['0.25', '0.35', 'layer'],
  );
  assert.deepEqual(
    list.children.map((/** @type {any} */ one) => [one.value, one.textContent]),
    [
      ['cell', 'cell'],
      ['layer', 'layer'],
      ['shared', 'shared'],
    ],
  );
  const find = (/** @type {string} */ name) =>
    /** @type {Element} */ (root.querySelector(`[data-vv=${name}]`));
  assert.deepEqual([find('mask-share').hidden, find('mask-text').textContent], [false, '35%']);
  assert.equal(inputs('norm')[0].disabled, false); // it is on, and can be turned off
  show({ norm: false, mask: 0 });
  assert.deepEqual(
    [inputs('norm')[0].disabled, checked('norm'), checked('masked')],
    [true, [false], [false]],
  );
  assert.deepEqual([find('mask-share').hidden, find('mask-text').textContent], [true, '35%']); // what was last chosen
  show({ norm: false }, '', true);
  assert.equal(inputs('norm')[0].disabled, false);
  assert.equal(list.childElementCount, 3); // offered once

  const say = (/** @type {string} */ name, more = {}, place = 0) => {
    const input = Object.assign(inputs(name)[place], { name: `a-${name}`, ...more });
    root.fire('input', { target: input });
    return told.pop();
  };
  assert.deepEqual(say('norm', { checked: true }), { norm: true });
  assert.deepEqual(say('direction', {}, 1), { direction: true });
  assert.deepEqual(say('direction', {}, 0), { direction: false });
  assert.deepEqual(say('alpha', { value: '0.5' }), { alpha: 0.5 });
  assert.deepEqual(say('scale', { value: 'shared' }), { scale: 'shared' });
  assert.deepEqual(say('masked', { checked: true }), { mask: 0.35 });
  assert.deepEqual(say('masked', { checked: false }), { mask: 0 });
  assert.deepEqual(say('style', {}, 1), { style: 'heat', alpha: 0.55 });
  const table = { name: 'a-table', value: 'magma' };
  root.fire('input', { target: table });
  assert.deepEqual(told, []); // nobody offers it
  show({ style: 'light' }, 'too dark');
  assert.deepEqual(checked('style'), [false, false]); // it gets tint
  const [light] = inputs('style');
  assert.deepEqual([light.disabled, light.title], [true, 'This photo is too dark for light']);
  root.fire('input', { target: table });
  assert.deepEqual(told.pop(), { table: 'magma', style: 'heat', alpha: 0.55 });
  show({ style: 'light' });
  assert.deepEqual([light.disabled, light.title], [false, '']);
  root.fire('input', { target: { name: 'a-nobody', value: '1' } });
  assert.deepEqual(told, []);
});
