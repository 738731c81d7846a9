// The dots of the Survey tab in plotly's figure: where they are painted, what dragging writes, and what is under the pointer.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { nearestDot, paintDots, Dots } from '../../vit_viz/web/survey/scatter.js';
import { Element } from './browser.js';
import { makeFigure, makePage, POINTS } from './survey_page.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);

/** Dots in a figure on a page of their own. */
function makeDots(/** @type {any} */ context, { touch = false, figure = makeFigure(), isThere = true } = {}) {
  const page = makePage();
  page.browser.touch = touch;
  page.browser.install(context);
  if (isThere) page.holder.append(figure);
  /** @type {any[]} */
  const told = [];
  const dots = new Dots('vv-survey-dots', {
    brush: (filter) => void told.push(filter),
    pick: (row) => void told.push(row),
  });
  /** Fills the dots and lays the figure out for them. */
  const fill = () => {
    dots.fill(POINTS, 'head_depth', 'mean_entropy');
    figure.draw(page.laid.at(-1));
    any(dots.canvas).box = { left: 30, top: 40, width: 200, height: 100 };
  };
  return { ...page, dots, figure, told, fill, canvas: any(dots.canvas), says: any(dots.says) };
}

test('the figure is told its axes and what dragging does, with room around the outermost dots', (context) => {
  const { dots, figure, laid } = makeDots(context);
  assert.deepEqual(laid, []);
  dots.fill(POINTS, 'head_depth', 'mean_entropy');
  assert.equal(laid.length, 1);
  const { 'xaxis.range': across, 'yaxis.range': up, ...others } = any(laid[0]);
  assert.deepEqual(others, {
    graph: figure,
    'xaxis.title.text': 'head depth',
    'yaxis.title.text': 'mean entropy',
    dragmode: 'select',
    selections: [],
  });
  assert.deepEqual([...across, ...up].map((end) => end.toFixed(3)), ['-0.200', '5.200', '7.600', '72.400']); // prettier-ignore
});

test('a figure that is drawn later, or drawn anew, is found, and told once', (context) => {
  const { dots, figure, laid, holder, changed } = makeDots(context, { isThere: false });
  dots.fill(POINTS, 'head_depth', 'mean_entropy');
  dots.use('lasso');
  dots.forget();
  dots.select(null);
  assert.deepEqual(laid, []);
  const bare = new Element('div');
  bare.className = 'js-plotly-plot';
  holder.append(bare); // which plotly has not drawn yet
  changed();
  assert.equal(laid.length, 0);
  holder.replaceChildren(figure);
  changed();
  changed();
  assert.deepEqual(laid.map(({ graph, dragmode }) => [graph === figure, dragmode]), [[true, 'lasso']]); // prettier-ignore
  const other = makeFigure();
  holder.replaceChildren(other);
  changed();
  assert.ok(any(dots).graph === other && any(laid).length === 2);
});

test('nothing is told before plotly is there', (context) => {
  const { dots, holder, laid, browser, figure, changed } = makeDots(context, { isThere: false });
  const { Plotly } = any(browser.window);
  delete any(browser.window).Plotly;
  dots.fill(POINTS, 'head_depth', 'mean_entropy');
  holder.append(figure);
  changed();
  assert.deepEqual([dots.graph, laid.length], [null, 0]);
  Object.assign(browser.window, { Plotly });
  changed();
  assert.ok(dots.graph === figure && laid.length === 1);
});

test('what dragging does can be changed; with a finger it does nothing at first', (context) => {
  const { dots, laid, figure } = makeDots(context);
  for (const mode of /** @type {const} */ (['lasso', 'off', 'select'])) dots.use(mode);
  dots.forget();
  assert.deepEqual(laid, [
    { graph: figure, dragmode: 'lasso' },
    { graph: figure, dragmode: false },
    { graph: figure, dragmode: 'select' },
    { graph: figure, selections: [] },
  ]);
  const finger = makeDots(context, { touch: true });
  assert.equal(finger.dots.mode, 'off');
  finger.dots.fill(POINTS, 'head_depth', 'mean_entropy');
  assert.equal(finger.laid[0].dragmode, false);
});

test('a rectangle or a line that is drawn becomes a filter, and none where it is taken away', (context) => {
  const { dots, figure, told } = makeDots(context);
  dots.fill(POINTS, 'head_depth', 'mean_entropy');
  figure.heard.plotly_selected({ range: { x: [3, 1], y: [20, 40] } });
  figure.heard.plotly_selected({ lassoPoints: { x: [0, 1, 2], y: [10, 30, 20] } });
  figure.heard.plotly_selected(undefined);
  figure.heard.plotly_selected({});
  figure.heard.plotly_deselect(undefined);
  assert.deepEqual(told, [
    '(head_depth BETWEEN 1 AND 3 AND mean_entropy BETWEEN 20 AND 40)',
    "inside(head_depth, mean_entropy, '0 10, 1 30, 2 20')",
    '',
  ]);
});

test('dots lie in the area of the plot, and are counted with those that pass', (context) => {
  const { dots, fill, canvas, figure, says } = makeDots(context);
  assert.ok(says.hidden);
  fill();
  assert.ok(figure.plot.children[0] === canvas && figure.plot.children[1] === says);
  assert.deepEqual([canvas.className, says.className], ['vv-survey-canvas', 'vv-survey-dot-words']);
  const { left, top, width, height } = canvas.style;
  assert.deepEqual([left, top, width, height], ['30px', '40px', '200px', '100px']);
  assert.deepEqual([canvas.width, canvas.height], [200, 100]);
  const [across, up] = dots.places;
  assert.deepEqual([...across].map((at) => at.toFixed(1)), ['7.4', '44.4', '81.5', '118.5', '155.6', '192.6', 'NaN']); // prettier-ignore
  assert.deepEqual([...up].map((at) => at.toFixed(1)), ['96.3', '80.9', '65.4', '50.0', '34.6', '19.1', '3.7']); // prettier-ignore
  assert.deepEqual(dots.rows, [[0, 2, 4], [1, 3], [5]]);
  assert.deepEqual([canvas.dataset.dots, canvas.dataset.shown], ['6', '6']);
  dots.select(Uint8Array.of(1, 0, 1, 0, 0, 0, 1));
  assert.deepEqual([canvas.dataset.dots, canvas.dataset.shown], ['6', '2']);
  const drawn = canvas
    .getContext()
    .calls.filter((/** @type {any[]} */ [name]) => name === 'drawImage')
    .slice(6);
  assert.deepEqual(
    drawn.map((/** @type {any[]} */ [, , ...at]) => at),
    [[152, 31], [40, 77], [115, 46], [189, 15], [3, 92], [77, 61]], // those that pass on top
  ); // prettier-ignore
  figure.heard.plotly_afterplot(undefined);
  assert.equal(figure.plot.children.length, 2);
});

test('a figure that was laid out anew without our axes gets them again', (context) => {
  const { fill, figure, laid, canvas } = makeDots(context);
  figure.heard.plotly_afterplot(undefined); // before there are numbers
  assert.equal(laid.length, 0);
  fill();
  canvas.style.width = '7px';
  figure.layout.xaxis = { title: { text: 'x' } };
  figure.heard.plotly_afterplot(undefined);
  assert.deepEqual([laid.length, canvas.style.width], [2, '7px']);
  figure.layout.xaxis = {};
  figure.heard.plotly_afterplot(undefined);
  assert.equal(laid.length, 3);
});

test('nothing is painted where the canvas is not on the page', (context) => {
  const { dots, fill, canvas } = makeDots(context);
  fill();
  canvas.remove();
  canvas.canvas = null;
  dots.select(null);
  assert.equal(canvas.canvas, null);
});

test('the dot under the pointer says its numbers, beside it where there is room', (context) => {
  const { fill, figure, says } = makeDots(context);
  const move = (/** @type {number} */ x, /** @type {number} */ y) =>
    figure.fire('pointermove', { clientX: 30 + x, clientY: 40 + y });
  move(44, 81); // before there are numbers
  assert.ok(says.hidden);
  fill();
  move(43, 82);
  assert.ok(!says.hidden);
  assert.equal(says.textContent, 'head depth 1, mean entropy 20; wrong');
  const style = () => ['left', 'top'].map((side) => parseFloat(says.style[side]).toFixed(1));
  assert.equal(says.style.translate, '0 -50%');
  assert.deepEqual(style(), ['84.4', '120.9']); // ten pixels to the right of it
  assert.ok(says.style.left.endsWith('px') && says.style.top.endsWith('px'));
  move(155, 34);
  assert.equal(says.textContent, 'head depth 4, mean entropy 50; right');
  assert.equal(says.style.translate, '-100% -50%');
  assert.deepEqual(style(), ['175.6', '74.6']); // ten pixels to the left
  move(192, 19);
  assert.equal(says.textContent, 'head depth 5, mean entropy 60; no label');
  move(100, 10);
  assert.ok(says.hidden);
  move(81, 65); // left of the middle
  assert.equal(says.style.translate, '0 -50%');
  move(7, 96); // the first of all
  assert.ok(!says.hidden);
  assert.equal(says.textContent, 'head depth 0, mean entropy 10; right');
  figure.fire('pointerleave');
  assert.ok(says.hidden);
});

test('a press on a dot without a drag chooses it, a press elsewhere or a drag does not', (context) => {
  const { fill, figure, told, browser, dots } = makeDots(context);
  fill();
  const press = (/** @type {number} */ x, /** @type {number} */ y, across = 0, down = 0) => {
    figure.fire('pointerdown', { clientX: 30 + x, clientY: 40 + y });
    browser.window.fire('pointerup', { clientX: 30 + x + across, clientY: 40 + y + down });
  };
  press(7, 96);
  press(81, 65, 2, 3);
  press(81, 65, 4, 0);
  press(81, 65, 3, 3);
  press(100, 10);
  assert.deepEqual(told, [0, 2]);
  browser.window.fire('pointerup', { clientX: 111, clientY: 105 });
  assert.deepEqual(told, [0, 2]);
  dots.select(Uint8Array.of(1, 1, 0, 1, 1, 1, 1));
  press(81, 65);
  assert.deepEqual(told, [0, 2]); // whose photo does not pass
});

test('the nearest dot is measured across and down alike', () => {
  const [across, up] = [Float32Array.of(10, 20), Float32Array.of(10, 13)];
  assert.equal(nearestDot(across, up, null, 14, 10), 0);
  assert.equal(nearestDot(across, up, null, 16, 12), 1);
  assert.equal(nearestDot(across, up, null, 10, 2), 0);
  assert.equal(nearestDot(across, up, null, 16, 17), 1);
  assert.equal(nearestDot(across, up, null, 15.7, 15.7), 1);
  assert.equal(nearestDot(across, up, null, 4, 4), -1); // too far along the diagonal
  assert.equal(nearestDot(across, up, null, 2, 10), 0);
  assert.equal(nearestDot(across, up, null, 1.9, 10), -1);
});

test('a dot is a disc or, of a wrong answer, a diamond, as large as the pixels of the screen ask for', (context) => {
  const { browser } = makeDots(context);
  Object.assign(browser.window, { devicePixelRatio: 2.5 });
  const canvas = new Element('canvas');
  const places = { across: Float32Array.of(10, 21), up: Float32Array.of(31, 40) };
  const made = browser.made.length;
  paintDots(any(canvas), { ...places, rows: [[0], [1], []], passes: null }, { colours: ['red', 'blue', 'gray'], width: 101, height: 51 }); // prettier-ignore
  assert.deepEqual([any(canvas).width, any(canvas).height], [253, 128]);
  const [disc, diamond] = browser.made.slice(made);
  assert.deepEqual([any(disc).width, any(disc).height], [18, 18]); // 7.5 pixels around the middle, and one at the edge
  assert.deepEqual(disc.getContext().calls, [
    ['fillStyle =', 'red'],
    ['beginPath'],
    ['arc', 9, 9, 7.5, 0, 2 * Math.PI],
    ['fill'],
  ]);
  assert.deepEqual(diamond.getContext().calls, [
    ['fillStyle =', 'blue'],
    ['beginPath'],
    ['moveTo', -0.375, 9],
    ['lineTo', 9, -0.375],
    ['lineTo', 18.375, 9],
    ['lineTo', 9, 18.375],
    ['fill'],
  ]);
  assert.deepEqual(canvas.getContext().calls, [
    ['globalAlpha =', 0.85],
    ['drawImage', disc, 16, 69],
    ['drawImage', diamond, 44, 91],
  ]);
});
