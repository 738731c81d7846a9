// The Explain tab at its edges: strokes that leave the photo, and news that come early, late or of something else.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { stroke } from '../../vit_viz/web/explain/brush.js';
import { mountStage } from './stage_part.js';
import { STAGED } from './staged.js';

const across = (/** @type {number[]} */ patches) => [...new Set(patches)].sort((a, b) => a - b);

test('a stroke is straight, in any direction', () => {
  assert.deepEqual(across(stroke([1, 2], [1, 2], [5, 7])), [9]);
  assert.deepEqual(across(stroke([0, 1], [3, 1], [5, 7])), [1, 8, 15, 22]);
  assert.deepEqual(across(stroke([3, 1], [0, 1], [5, 7])), [1, 8, 15, 22]);
  assert.deepEqual(across(stroke([1, 5], [1, 2], [5, 7])), [9, 10, 11, 12]);
  assert.deepEqual(across(stroke([0, 0], [2, 6], [5, 7])), [0, 1, 9, 10, 11, 19, 20]); // rows 0, 0.33, 0.67, 1, 1.33, 1.67, 2
});

test('from 24 rows or columns on a stroke is three patches wide, within the grid', () => {
  assert.deepEqual(across(stroke([1, 20], [1, 20], [3, 23])), [43]);
  assert.deepEqual(across(stroke([2, 20], [2, 20], [3, 24])), [43, 44, 45, 67, 68, 69]);
  assert.deepEqual(across(stroke([20, 0], [20, 0], [24, 3])), [57, 58, 60, 61, 63, 64]);
});

/** A stage that is as large as its photo. */
function playing(value = STAGED) {
  const part = mountStage(value);
  part.find('image').box = { left: 0, top: 0, width: 180, height: 60 };
  const marks = part.find('play-marks');
  const fire = (
    /** @type {string} */ name,
    /** @type {number} */ row,
    /** @type {number} */ col,
    more = {},
  ) => {
    const at = { clientY: 10 + 10 * (row + 0.5), clientX: 30 + 20 * (col + 0.5) };
    return marks.fire(name, { ...at, pointerId: 8, pointerType: 'mouse', ...more });
  };
  const gone = () =>
    marks.children.map((mark) => [Number(mark.getAttribute('y')), Number(mark.getAttribute('x'))].join());
  return { ...part, fire, gone, marks };
}

test('a stroke that leaves what the model received goes on where it comes back', () => {
  const { fire, gone } = playing();
  fire('pointerdown', 0, 1);
  fire('pointermove', -1, 1); // above it
  fire('pointermove', 0, 3);
  assert.deepEqual(gone(), ['10,50', '10,70', '10,90']);
  fire('pointercancel', 0, 3);
  fire('pointermove', 3, 3);
  assert.equal(gone().length, 3);
});

test('a stroke goes on to a patch whose row is the column before, or the other way round', () => {
  const { fire, gone } = playing();
  fire('pointerdown', 2, 2);
  fire('pointermove', 3, 2);
  assert.deepEqual(gone(), ['30,70', '40,70']);
  fire('pointerup', 3, 2);
  fire('pointerdown', 1, 2);
  fire('pointermove', 2, 2);
  fire('pointermove', 2, 3);
  assert.deepEqual(gone(), ['30,70', '40,70', '20,70', '30,90']);
});

test('the cursor of the keys begins in the middle patch', () => {
  const { find, gone } = playing({ ...STAGED, grid: [5, 3], region: [0, 0, 50, 90] });
  find('play-stage').fire('keydown', { key: ' ' });
  assert.deepEqual(gone()[0], '20,30'); // row 2, column 1; a patch is 10 high and 30 wide
});

test('an answer that is late holds up the next question, for ten seconds from when it was asked', () => {
  const { fire, browser, asked } = playing();
  browser.pass(6000);
  fire('pointerdown', 0, 0);
  browser.pass(9999);
  fire('pointerdown', 1, 1);
  assert.equal(asked().length, 1);
  browser.pass(1);
  fire('pointerdown', 2, 2);
  assert.deepEqual(asked(), ['0', '0,7,14']);
});

test('a press puts the cursor of the keys away, and takes the focus', () => {
  const { fire, find, marks } = playing();
  find('play-stage').fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(
    marks.children.map((mark) => mark.className),
    ['vv-cursor'],
  );
  assert.equal(fire('pointerdown', 0, 0).prevented, true);
  assert.deepEqual(
    marks.children.map((mark) => mark.className),
    ['vv-gone'],
  );
  assert.ok(find('play-stage').focused);
});

test('a map that follows a query is told where the pointer was, and takes nothing away', () => {
  const { fire, find, told, gone } = playing({ ...STAGED, pick: true });
  find('choose').click();
  fire('pointerdown', 2, 3);
  assert.deepEqual(told, [['pick', 15]]);
  find('play-stage').fire('keydown', { key: ' ' });
  assert.equal(find('play-stage').fire('keydown', { key: 'ArrowLeft' }).prevented, true);
  assert.deepEqual(told.slice(1), [['move', [0, -1]]]);
  assert.equal(find('play-stage').fire('keydown', { key: 'Enter' }).prevented, false);
  assert.deepEqual(gone(), []);
});

// --- the gallery
