// What is put on the screen: in which order, at which size, and what is drawn only once.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MosaicScreen, PhotoScreen, Tile, sharpness } from '../../vit_viz/explorer/screen.js';
import { Browser, Element } from './browser.js';
import { makeTrace } from './oracle.js';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const trace = makeTrace({ crop: { original: [200, 300], input: [32, 48], region: [20, 60, 100, 150] } });
const photo = any(Object.assign(new Element('img'), { src: '/photo' }));

const NONE = /** @type {[number, number]} */ ([0, 0]);

/** What was drawn since the last time, without what only sets up. */
function drawings(/** @type {any} */ canvas) {
  return canvas.canvas.calls
    .splice(0)
    .filter((/** @type {any[]} */ [name]) =>
      /^(drawImage|clearRect|fillRect|globalComp.*|imageSmoothingE.*)$/.test(name.replace(' =', '')),
    );
}

test('a canvas has the pixels of the device, up to a limit', () => {
  assert.equal(sharpness({ width: 600, height: 400 }, 2), 2);
  assert.equal(sharpness({ width: 600, height: 400 }), 1);
  const most = sharpness({ width: 3000, height: 2000 }, 3);
  assert.ok(Math.abs(3000 * 2000 * most * most - 2.4e6) < 1);
});

test('light: the map is enlarged, the dimmed photo takes the place of its black', () => {
  new Browser().install();
  const canvas = any(new Element('canvas'));
  const screen = new PhotoScreen(canvas);
  screen.fit({ width: 300, height: 200 }, 2);
  assert.deepEqual([canvas.width, canvas.height], [600, 400]);
  const map = any(Object.assign(new Element('canvas'), { width: 6, height: 4 }));
  screen.show(map, photo, trace, { style: 'light', smooth: true });
  assert.deepEqual(drawings(canvas), [
    ['clearRect', 0, 0, 600, 400],
    ['imageSmoothingEnabled =', true],
    ['drawImage', map, 0, 0, 600, 400],
    ['globalCompositeOperation =', 'source-in'],
    ['drawImage', screen.tile.dark.canvas, 0, 0],
    ['globalCompositeOperation =', 'source-over'],
  ]);
  screen.show(map, photo, trace, { style: 'tint', smooth: false });
  assert.deepEqual(drawings(canvas), [
    ['clearRect', 0, 0, 600, 400],
    ['imageSmoothingEnabled =', false],
    ['drawImage', map, 0, 0, 600, 400],
  ]);
});

test('the photo is drawn once per size, wherever it is used, and where the crop says', () => {
  new Browser().install();
  const own = any(Object.assign(new Element('img'), { src: '/own' }));
  const [tile, other] = [new Tile(), new Tile()];
  const drawnBy = (/** @type {Tile} */ one, width = 300, radius = 0) => {
    assert.ok(one.prepare(own, trace.crop, { width, height: 200 }, radius));
    return drawings(any(one.plain).canvas);
  };
  assert.deepEqual(drawnBy(tile), [['drawImage', own, -120, -40, 600, 400]]);
  assert.deepEqual([...any(tile.dark).data.data.slice(0, 4)], [40, 40, 40, 200]);
  assert.deepEqual([drawnBy(tile), drawnBy(other)], [[], []]);
  assert.ok(other.plain === tile.plain && other.dark === tile.dark);
  assert.ok(drawnBy(other, 300, 4).length > 1); // its corners are other ones
  for (const width of [150, 151, 152]) assert.equal(drawnBy(other, width).length, 1);
  assert.deepEqual(drawnBy(other, 300, 4), []); // four are kept
  assert.deepEqual(drawnBy(tile), []); // what it holds it keeps
  assert.equal(drawnBy(other).length, 1);
  const waiting = any({ ...photo, complete: false, naturalWidth: 0 });
  assert.ok(!new Tile().prepare(waiting, trace.crop, { width: 3, height: 2 }));
  assert.ok(!new Tile().prepare(photo, trace.crop, { width: 0, height: 2 }));
});

test('every cell of the mosaic is the photo; layers that are behind fade', () => {
  new Browser().install();
  const canvas = any(new Element('canvas'));
  const screen = new MosaicScreen(canvas);
  const size = { width: 54, height: 40, gap: 4, radius: 3, inset: NONE };
  screen.fit(size, { layers: 3, columns: 8 }, 2);
  assert.deepEqual([canvas.width, canvas.height], [864, 240]);
  const frame = any({ trace, fresh: [1, 0, 1] });
  const atlas = any(Object.assign(new Element('canvas'), { width: 48, height: 12 }));
  screen.show(atlas, photo, frame, 'light');
  const calls = drawings(canvas);
  const cells = calls.filter((/** @type {any[]} */ call) => call[1] === atlas);
  assert.equal(cells.length, 24);
  assert.deepEqual(cells[8 + 3], ['drawImage', atlas, 3 * 6, 4, 6, 4, 3 * 108, 80, 100, 72]);
  assert.deepEqual(calls.slice(1, 2), [['imageSmoothingEnabled =', false]]);
  assert.deepEqual(calls.slice(26), [
    ['globalCompositeOperation =', 'source-in'],
    ['drawImage', screen.dark.canvas, 0, 0],
    ['globalCompositeOperation =', 'destination-over'],
    ['drawImage', screen.plain.canvas, 0, 0],
    ['globalCompositeOperation =', 'destination-out'],
    ['fillRect', 0, 80, 856, 72],
    ['globalCompositeOperation =', 'source-over'],
  ]);
  const inside = drawings(any(screen.plain).canvas).filter(
    (/** @type {any[]} */ [name]) => name === 'drawImage',
  );
  assert.equal(inside.length, 24);
  screen.show(atlas, photo, frame, 'heat');
  const heat = drawings(canvas);
  assert.deepEqual(heat[26], ['globalCompositeOperation =', 'destination-in']);
  assert.equal(heat[27][1], screen.plain.canvas);
  assert.deepEqual(drawings(any(screen.plain).canvas), []); // the photo is there already
  screen.fit({ ...size, width: 64 }, { layers: 3, columns: 8 }, 2);
  screen.show(atlas, photo, frame, 'heat');
  assert.equal(canvas.width, 1024);
  assert.ok(drawings(any(screen.plain).canvas).length > 24);
});

test('layers that follow stand in bands beside the first, and a flat photo in the middle of its cell', () => {
  new Browser().install();
  const canvas = any(new Element('canvas'));
  const screen = new MosaicScreen(canvas);
  const size = { width: 54, height: 40, gap: 4, radius: 3, inset: /** @type {[number, number]} */ ([0, 6]) };
  screen.fit(size, { layers: 3, columns: 4, rows: 2, shift: 250 }, 2);
  assert.deepEqual([canvas.width, canvas.height], [2 * (250 + 216), 160]);
  screen.smooth = true;
  const atlas = any(Object.assign(new Element('canvas'), { width: 24, height: 12 }));
  screen.show(atlas, photo, any({ trace, fresh: [1, 1, 0] }), 'light');
  const calls = drawings(canvas);
  assert.deepEqual(calls[1], ['imageSmoothingEnabled =', true]);
  const cells = calls.flatMap((/** @type {any[]} */ call) => (call[1] === atlas ? [call.slice(2)] : []));
  assert.equal(cells.length, 12);
  assert.deepEqual(cells[7], [18, 4, 6, 4, 3 * 108, 92, 100, 48]); // layer 1, in the first band
  assert.deepEqual(cells[9], [6, 8, 6, 4, 500 + 108, 12, 100, 48]); // layer 2, in the second
  const faded = calls.filter((/** @type {any[]} */ call) => call[0] === 'fillRect');
  assert.deepEqual(faded, [['fillRect', 500, 12, 424, 48]]);
});

test('cells smaller than their grid are averaged, not sampled', () => {
  new Browser().install();
  const canvas = any(new Element('canvas'));
  const screen = new MosaicScreen(canvas);
  screen.fit({ width: 28, height: 28, gap: 4, radius: 3, inset: NONE }, { layers: 3, columns: 8 });
  const frame = any({ trace: { ...trace, grid: [16, 48] }, fresh: [1, 1, 1] });
  screen.show(any(new Element('canvas')), photo, frame, 'tint');
  assert.deepEqual(drawings(canvas)[1], ['imageSmoothingEnabled =', true]);
});
