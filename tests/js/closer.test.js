// "Look closer": a rectangle by mouse, finger or keys; the part alone, and its map on the whole photo.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { baseOf, between, partText, placed, steppedShares } from '../../vit_viz/explorer/closer.js';
import { aboutOf } from '../../vit_viz/explorer/geometry.js';
import { makeTrace } from './oracle.js';
import { open } from './visit.js';

/** @typedef {import('../../vit_viz/explorer/closer.js').Base} Base */

/** @type {Base} */
const PHOTO = { corner: [0, 0], size: [200, 300] };
const ALONE = { original: [80, 120], input: [32, 48], region: [0, 0, 80, 120] };
const ON_WHOLE = {
  part: [70, 90, 80, 120],
  crop: { original: [200, 300], input: [32, 48], region: [70, 90, 80, 120] },
  photo: '/vit_viz/photo/whole',
  photo_size: [200, 300],
};
const PART = { part: '70,90,80,120', crop: ALONE, photo_size: [80, 120], whole: ON_WHOLE };

test('a rectangle lies between two points in any order, and ends at the edges of the photo', () => {
  assert.deepEqual(between([0.75, 0.5], [0.25, 0.9]), [0.25, 0.5, 0.75, 0.9]);
  assert.deepEqual(between([-0.5, 0.2], [0.5, 1.5]), [0, 0.2, 0.5, 1]);
});

test('a part is written in whole pixels of the original, also where a part is on the stage', () => {
  assert.equal(partText([0.25, 0.5, 0.75, 0.9], PHOTO), '50,150,100,120');
  assert.equal(partText([0, 0, 1, 1], PHOTO), '0,0,200,300');
  assert.equal(partText([0.25, 0.5, 0.75, 1], { corner: [70, 90], size: [80, 120] }), '90,150,40,60');
});

test('a part has at least 32 pixels on each side', () => {
  assert.equal(partText([0, 0, 32 / 200, 33 / 300], PHOTO), '0,0,32,33');
  assert.equal(partText([0, 0, 31 / 200, 33 / 300], PHOTO), null);
  assert.equal(partText([0, 0, 33 / 200, 31 / 300], PHOTO), null);
});

test('keys move a rectangle to the edges and no further, and change its size', () => {
  const near = (/** @type {number[]} */ shares) => shares.map((share) => Number(share.toFixed(6)));
  assert.deepEqual(near(steppedShares([0.25, 0.25, 0.75, 0.75], [1, 0], false)), [0.3, 0.25, 0.8, 0.75]);
  assert.deepEqual(near(steppedShares([0.02, 0.5, 0.52, 0.98], [-1, 0], false)), [0, 0.5, 0.5, 0.98]);
  assert.deepEqual(near(steppedShares([0.02, 0.5, 0.52, 0.98], [0, 1], false)), [0.02, 0.52, 0.52, 1]);
  assert.deepEqual(near(steppedShares([0.25, 0.25, 0.75, 0.98], [0, 1], true)), [0.25, 0.25, 0.75, 1]);
  assert.deepEqual(near(steppedShares([0.25, 0.25, 0.32, 0.75], [-1, 0], true)), [0.25, 0.25, 0.3, 0.75]);
});

test('a drag on the photo chooses a part, and the photo asks nothing meanwhile', async () => {
  const { explorer, parts, show, told } = open();
  await show();
  told.length = 0;
  parts.stage.box = { left: 100, top: 50, width: 600, height: 400 };
  parts.closer.click();
  assert.equal(parts.closer.getAttribute('aria-pressed'), 'true');
  assert.ok(parts.stage.focused);
  assert.match(parts.hint.textContent, /Draw a rectangle.*Escape cancels/);
  for (const pointerType of ['mouse', 'touch']) {
    if (pointerType === 'touch') parts.closer.click();
    parts.stage.fire('pointerdown', { clientX: 400, clientY: 350, pointerId: 5, pointerType });
    parts.stage.fire('pointermove', { clientX: 300, clientY: 200, pointerType });
    assert.equal(parts.cut.hidden, false);
    assert.deepEqual(
      [parts.cut.style.top, parts.cut.style.height].map((text) => Number.parseFloat(text).toFixed(2)),
      ['37.50', '37.50'],
    );
    assert.equal(explorer.hovered, null);
    parts.stage.fire('pointerup', { clientX: 220, clientY: 150, pointerType });
    assert.deepEqual(told.splice(0), [['closer', { part: '50,60,100,90' }]]);
    assert.equal(parts.closer.getAttribute('aria-pressed'), 'false');
    assert.ok(parts.cut.hidden);
    assert.equal(parts.hint.textContent, '');
  }
  assert.equal(explorer.view?.query, 'class');
});

test('after it the photo answers as before, and Escape draws nothing', async () => {
  const { explorer, parts, show, patch, told } = open();
  await show();
  parts.stage.box = { left: 100, top: 50, width: 600, height: 400 };
  parts.closer.click();
  parts.stage.fire('pointerdown', { clientX: 400, clientY: 350 });
  parts.stage.fire('pointermove', { clientX: 300, clientY: 200 });
  parts.stage.fire('keydown', { key: 'Escape' });
  assert.equal(parts.closer.getAttribute('aria-pressed'), 'false');
  assert.ok(parts.cut.hidden);
  parts.stage.fire('pointerup', { clientX: 300, clientY: 200 });
  assert.deepEqual(
    told.filter(([name]) => name === 'closer'),
    [],
  );
  parts.stage.fire('pointerdown', patch(2, 4));
  parts.stage.fire('pointerup', patch(2, 4));
  assert.equal(explorer.view?.query, '2,4');
});

test('a rectangle that is too small is not taken, and a larger one can follow', async () => {
  const { parts, show, told } = open();
  await show();
  told.length = 0;
  parts.stage.box = { left: 0, top: 0, width: 300, height: 200 };
  parts.closer.click();
  parts.stage.fire('pointerdown', { clientX: 10, clientY: 10 });
  parts.stage.fire('pointerup', { clientX: 41, clientY: 90 });
  assert.deepEqual(told, []);
  assert.match(parts.hint.textContent, /at least 32 x 32 pixels/);
  parts.stage.fire('pointerdown', { clientX: 10, clientY: 10 });
  parts.stage.fire('pointerup', { clientX: 42, clientY: 90 });
  assert.deepEqual(told, [['closer', { part: '10,10,80,32' }]]);
});

test('keys alone draw a part, and Tab goes on as ever', async () => {
  const { explorer, parts, show, told } = open();
  await show();
  told.length = 0;
  parts.closer.click();
  const press = (/** @type {string} */ key, shiftKey = false) =>
    parts.stage.fire('keydown', { key, shiftKey, ctrlKey: false, metaKey: false, altKey: false });
  press('Enter'); // nothing is drawn yet
  assert.deepEqual(told, []);
  press('ArrowUp'); // the middle
  press('ArrowDown');
  press('ArrowRight', true);
  assert.equal(press('Tab').prevented, false);
  assert.equal(press('w').prevented, true); // another key neither asks nor draws
  press('Enter');
  assert.deepEqual(told, [['closer', { part: '60,75,100,165' }]]);
  assert.equal(explorer.view?.query, 'class');
});

test('the map of a part lies on the part, and on a switch on the whole photo', async () => {
  const { explorer, parts, show, told } = open(PART);
  await show();
  assert.equal(parts.root.dataset.part, '');
  assert.equal(parts.photo.src, '/vit_viz/photo/x');
  assert.deepEqual([parts.box.style.top, parts.box.style.width], ['0%', '100%']);
  parts.onwhole.checked = true;
  parts.onwhole.fire('change');
  assert.equal(parts.photo.src, '/vit_viz/photo/whole');
  assert.deepEqual([parts.box.style.top, parts.box.style.left], ['35%', '30%']);
  assert.deepEqual([parts.box.style.height, parts.box.style.width], ['40%', '40%']);
  assert.equal(explorer.frame?.trace.crop, ON_WHOLE.crop);
  parts.onwhole.checked = false;
  parts.onwhole.fire('change');
  assert.equal(parts.photo.src, '/vit_viz/photo/x');
  told.length = 0;
  parts.whole.click();
  assert.deepEqual(told, [['closer', { part: '' }]]);
});

test('without a part there is nothing to go back from', async () => {
  const { parts, show } = open();
  await show();
  assert.equal(parts.root.dataset.part, undefined);
});

test('a part of a part is counted from the corner of the whole, on either photo', () => {
  const trace = makeTrace(PART);
  assert.deepEqual(baseOf(trace), { corner: [70, 90], size: [80, 120] });
  assert.deepEqual(baseOf(placed(trace, true)), { corner: [0, 0], size: [200, 300] });
  assert.deepEqual(baseOf(placed(placed(trace, true), false)), baseOf(trace));
  assert.deepEqual(baseOf(makeTrace()), { corner: [0, 0], size: [200, 300] });
});

test('a trace of another part or size is of another picture', () => {
  const trace = makeTrace({ ...PART, size: 9 });
  assert.notEqual(aboutOf(trace), aboutOf(makeTrace({ ...PART, size: 8 })));
  assert.notEqual(aboutOf(trace), aboutOf(makeTrace({ size: 9 })));
  assert.equal(aboutOf(makeTrace()), aboutOf(makeTrace({ size: 0, part: '' })));
});
