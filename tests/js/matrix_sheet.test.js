// The canvas of the matrix: which pixels are painted, where its panes are stretched to, and the names beside them. And arrows.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Axis } from '../../vit_viz/explorer/matrix.js';
import { arrow, strokeOf } from '../../vit_viz/web/heads/links.js';
import { Panes, labelsOf, Sheet } from '../../vit_viz/web/heads/matrix_sheet.js';
import { Browser, Element } from './browser.js';
import { makeTrace } from './oracle.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const TABLE = Uint32Array.from({ length: 256 }, (_, i) => i + 1);

/** A sheet of 2 x 3 patches between one token before and one after them. */
function makeSheet({ size = 100, ratio = 2, fontSize = '12px' } = {}) {
  const browser = new Browser();
  const style = { fontSize, fontFamily: 'serif', color: 'navy' };
  browser.install({ getComputedStyle: () => style });
  Object.assign(browser.window, { devicePixelRatio: ratio });
  const axis = new Axis(makeTrace({ grid: [2, 3], prefix: ['class'], suffix: ['detection 0'], tokens: 8 }));
  const panes = new Panes(axis);
  panes.resize(size);
  const canvas = any(new Element('canvas'));
  const sheet = any(new Sheet(canvas, TABLE));
  /** @returns {any[][]} what was drawn since */
  const calls = () => canvas.getContext().calls.splice(0);
  return { sheet, panes, axis, canvas, calls, style };
}

test('text that is larger on this screen has a wider margin', () => {
  const { sheet, style } = makeSheet();
  sheet.measure();
  assert.deepEqual([sheet.unit, sheet.margin], [1, 64]);
  style.fontSize = '15px';
  sheet.measure();
  assert.deepEqual([sheet.unit, sheet.margin], [1.25, 80]);
  style.fontSize = '';
  sheet.measure();
  assert.equal(sheet.unit, 1);
});

test('only the rows are painted that have come since, unless the scale has changed', () => {
  const { sheet } = makeSheet();
  sheet.begin(3);
  /** @type {any[]} */
  const rows = [];
  sheet.cells.context.putImageData = (/** @type {any[]} */ ...args) => void rows.push(args.slice(1));
  const filling = { values: new Float32Array(9), next: 1, low: 0.25, high: 1 };
  filling.values.set([0.25, 0.5, 1]);
  sheet.paint(filling, true);
  assert.deepEqual([...sheet.cells.pixels], [1, 129, 256, 0, 0, 0, 0, 0, 0]);
  filling.values.set([1, 0.25, 0.25], 3);
  filling.next = 2;
  sheet.paint(filling, true);
  sheet.paint(filling, true); // nothing new
  assert.deepEqual([...sheet.cells.pixels], [1, 129, 256, 256, 1, 1, 0, 0, 0]);
  sheet.paint(filling, false); // from 0 on
  assert.deepEqual([...sheet.cells.pixels].slice(2, 4), [256, 256]);
  assert.ok(Math.abs(sheet.cells.pixels[1] - 129) <= 1 && sheet.cells.pixels[0] > 60);
  filling.high = 2; // which is brighter than all before
  sheet.paint(filling, false);
  assert.ok(Math.abs(sheet.cells.pixels[2] - 129) <= 1);
  assert.deepEqual(rows, [
    [0, 0, 0, 0, 3, 1],
    [0, 0, 0, 1, 3, 1],
    [0, 0, 0, 0, 3, 2],
    [0, 0, 0, 0, 3, 2],
  ]);
  sheet.begin(3);
  assert.deepEqual([sheet.painted, [...sheet.cells.pixels]], [0, new Array(9).fill(0)]);
});

test('panes are stretched to where they are, in pixels of the screen, and the names stand beside them', () => {
  const { sheet, panes, axis, canvas, calls } = makeSheet();
  sheet.begin(8);
  calls();
  sheet.draw(panes, axis); // 14 for the first token, a gap of 6, 60 for six patches, a gap, 14 for the last token
  assert.deepEqual([canvas.width, canvas.height], [328, 328]);
  const all = calls();
  assert.deepEqual(all.slice(0, 2), [
    ['setTransform', 2, 0, 0, 2, 0, 0],
    ['clearRect', 0, 0, 328, 328],
  ]);
  const runs = [
    [0, 1, 64, 14],
    [1, 6, 84, 60],
    [7, 1, 150, 14],
  ];
  const drawn = all.filter(([name]) => name === 'drawImage').map(([, picture, ...place]) => [picture === sheet.cells.canvas, ...place]); // prettier-ignore
  assert.deepEqual(
    drawn,
    runs.flatMap(([y, tall, down, height]) =>
      runs.map(([x, wide, across, width]) => [true, x, y, wide, tall, across, down, width, height]),
    ),
  );
  const smooth = all.filter(([name]) => name === 'imageSmoothingEnabled =').map(([, on]) => on);
  assert.deepEqual(smooth, new Array(9).fill(false));
  const written = all.slice(all.findIndex(([name]) => name === 'fillStyle ='));
  assert.deepEqual(written.slice(0, 9), [
    ['fillStyle =', 'navy'],
    ['font =', '12px serif'],
    ['textBaseline =', 'middle'],
    ['textAlign =', 'right'],
    ['fillText', 'class', 60, 71],
    ['fillText', 'detection 0', 60, 157],
    ['fillText', 'row 0', 60, 89],
    ['fillText', 'row 1', 60, 119],
    ['textAlign =', 'left'],
  ]);
  assert.deepEqual(written.slice(9, 14), [
    ['save'],
    ['translate', 71, 60],
    ['rotate', -Math.PI / 2],
    ['fillText', 'class', 0, 0],
    ['restore'],
  ]);
  assert.equal(written.length, 9 + 4 * 5);
  sheet.draw(panes, axis);
  assert.ok(!calls().some(([name]) => name === 'width'));
});

test('cells that are smaller than pixels are drawn as their means; of a zoomed matrix its part', () => {
  const smooth = (/** @type {ReturnType<typeof makeSheet>} */ { sheet, panes, axis, calls }) => {
    sheet.begin(8);
    sheet.draw(panes, axis);
    return calls().filter(([name]) => name === 'imageSmoothingEnabled =').map(([, on]) => on); // prettier-ignore
  };
  // of 20 pixels three for a named token, so that six patches share two
  const small = smooth(makeSheet({ size: 20, ratio: 1 }));
  assert.deepEqual(small, [false, true, false, true, true, true, false, true, false]);
  assert.deepEqual(smooth(makeSheet({ size: 24, ratio: 2 })), new Array(9).fill(false)); // 0.8 for a patch, twice
  assert.deepEqual(smooth(makeSheet({ size: 17, ratio: 1 })), new Array(4).fill(false)); // and none for patches
  const { sheet, panes, axis, calls } = makeSheet({ size: 100, ratio: 1 });
  panes.see('2,0.25,0.5');
  sheet.draw(panes, axis);
  const middle = calls().filter(([name]) => name === 'drawImage')[4];
  assert.deepEqual(middle.slice(2), [4, 2.5, 3, 3, 84, 84, 60, 60]); // three of six patches each way
});

test('a sheet without room is one pixel, and a screen that does not say has one pixel for one', () => {
  const { sheet, panes, axis, canvas } = makeSheet({ size: 100, ratio: 0 });
  sheet.draw(panes, axis);
  assert.equal(canvas.width, 164);
  const none = makeSheet({ size: -70, ratio: 1 });
  none.sheet.draw(none.panes, none.axis);
  assert.deepEqual([none.canvas.width, none.canvas.height], [1, 1]);
});

test('the last cell of a run ends at its edge, and one that is cut off is where it is seen', () => {
  const panes = new Panes({ prefix: ['class'], suffix: ['detection 0'], patchCells: 6 });
  panes.resize(100);
  assert.deepEqual([panes.inner, panes.room, panes.cell, panes.largestZoom], [[20, 80], 60, 10, 4.8]);
  const cells = [0, 13.9, 14, 19.9, 20, 29.9, 30, 79.9, 80, 85.9, 86, 99.9].map((at) => panes.cellAt(at, 0));
  assert.deepEqual(cells, [0, 0, null, null, 1, 1, 2, 6, null, null, 7, 7]);
  assert.deepEqual([0, 1, 6, 7, 8].map((cell) => panes.placeOf(cell, 1)), [[0, 14], [20, 30], [70, 80], [86, 100], null]); // prettier-ignore
  panes.see('2,0.25,0'); // cells of 20 pixels, one and a half above
  assert.deepEqual(panes.offset, [1.5, 0]);
  assert.deepEqual([1, 2, 3, 5, 6].map((cell) => panes.placeOf(cell, 0)), [null, [20, 30], [30, 50], [70, 80], null]); // prettier-ignore
  assert.deepEqual(
    [20, 29.9, 30, 79.9].map((at) => panes.cellAt(at, 0)),
    [2, 2, 3, 5],
  );
  panes.reveal(2, 0);
  assert.deepEqual(panes.offset, [1, 0]);
  panes.reveal(4, 0); // which ends at the edge
  assert.deepEqual(panes.offset, [1, 0]);
  panes.reveal(5, 1);
  assert.deepEqual(panes.offset, [1, 2]);
  panes.reveal(7, 1);
  assert.deepEqual(panes.offset, [1, 2]);
  panes.move([10, -30]);
  assert.deepEqual(panes.offset, [0.5, 3]);
  assert.equal(panes.seen, '2,0.0833,0.5');
  panes.zoomBy(1.5, [50, 20]); // 0.5 + 30 / 20 = 2 stays under the point
  assert.deepEqual([panes.zoom, panes.offset], [3, [1, 3]]);
  panes.zoomBy(0.5); // about the middle: 1 + 1 and 3 + 1 stay there
  assert.deepEqual([panes.zoom, panes.offset], [1.5, [0, 2]]);
});

test('tokens before or after the patches alone have a gap on their own side', () => {
  const before = new Panes({ prefix: ['class', 'register 0'], suffix: [], patchCells: 6 });
  before.resize(100);
  assert.deepEqual(before.inner, [34, 100]);
  const after = new Panes({
    prefix: [],
    suffix: ['detection 0', 'detection 1', 'detection 2'],
    patchCells: 6,
  });
  after.resize(100);
  assert.deepEqual([after.named, after.inner], [10, [0, 64]]); // three tenths of the length, together
  const none = new Panes({ prefix: [], suffix: [], patchCells: 6 });
  none.resize(0);
  assert.deepEqual([none.named, none.room, none.inner], [0, 1, [0, 0]]);
});

test('names keep their distance: rows that are narrow are named one in two, tokens that are narrow one in four', () => {
  const axis = new Axis(makeTrace({ grid: [7, 2], prefix: [], suffix: Array.from({ length: 9 }, (_, i) => `detection ${i}`), tokens: 23 })); // prettier-ignore
  const panes = new Panes(axis);
  panes.resize(100); // 30 pixels for nine tokens, a gap of 6, and 64 for fourteen patches
  const labels = labelsOf(panes, axis, 1);
  assert.deepEqual(
    labels.map(({ text }) => text),
    ['detection 0', 'detection 4', 'detection 8', 'row 0', 'row 2', 'row 4', 'row 6'],
  );
  assert.equal(labels[1].at, 85); // four and a half tokens behind the gap
  panes.see('3,0,0.5'); // cells of 13.7 pixels, from the eighth patch on; the last one is cut off, and too near
  const near = labelsOf(panes, axis, 1).slice(3);
  assert.deepEqual(
    near.map(({ text }) => text),
    ['(3, 1)', '(4, 0)', '(4, 1)', '(5, 0)'],
  );
});

test('an arrow bends to one side, ends in a tip, and is no longer than its way', () => {
  const odd = arrow([10, 20], [40, 60], 0.5);
  assert.equal(odd.line, 'M10.0 20.0Q19.4 44.2 32.1 53.9');
  assert.equal(odd.tip, 'M40.0 60.0L29.3 57.5L34.8 50.3Z');
  assert.deepEqual([odd.width, odd.opacity.toFixed(3)], [3, '0.675']);
  assert.deepEqual(
    [strokeOf(0), strokeOf(1)],
    [
      { width: 1, opacity: 0.35 },
      { width: 5, opacity: 1 },
    ],
  );
  const wide = arrow([10, 20], [110, 20], 1);
  assert.deepEqual([wide.line, wide.tip], ['M10.0 20.0Q60.0 34.0 96.5 23.8', 'M110.0 20.0L98.2 29.9L94.8 17.6Z']); // prettier-ignore
  const near = arrow([0, 0], [6, 8], 1);
  assert.deepEqual([near.line, near.tip], ['M0.0 0.0Q1.9 4.8 2.0 5.0', 'M6.0 8.0L0.6 6.8L3.4 3.2Z']);
  const none = arrow([5, 5], [5, 5], 1);
  assert.deepEqual([none.line, none.tip], ['M5.0 5.0Q5.0 5.0 5.0 5.0', 'M5.0 5.0L5.0 5.0L5.0 5.0Z']);
});
