// The Positions tab's small maps: painted where they lie, enlarged under the pointer, pinned by a click, and the curve over distance.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Picture } from '../../vit_viz/explorer/paint.js';
import { paintTiles, stepWords } from '../../vit_viz/ui/positions/places.js';
import { mount as mountTables } from '../../vit_viz/ui/positions/tables.js';
import { Browser, component, mount } from './browser.js';

const TABLES = component(mountTables, 'ui/positions/tables.html');
const base64 = (/** @type {ArrayBufferLike} */ buffer) => Buffer.from(buffer).toString('base64');
const floats = (/** @type {number[]} */ ...numbers) => base64(Float32Array.from(numbers).buffer);
const grays = base64(Uint8Array.from({ length: 768 }, (_, i) => Math.floor(i / 3)).buffer);
const tables = { viridis: grays, diverging: grays };
const settle = async () => {
  for (let i = 0; i < 20; i++) await new Promise((done) => setImmediate(done));
};
const BITS = [0xbc00, 0xb800, 0, 0x3800, 0x3c00]; // -1, -0.5, 0, 0.5 and 1 in fp16
const GRAY = [0, 64, 128, 191, 255];

/** Four rows and two columns of places, every other of which has a map; a patch is twice as wide as it is high. */
const similarity = {
  tiles: '/vit_viz/positions/h?places=image',
  every: 2,
  unit: 'cosine similarity',
  cell: 2,
  photo: {
    grid: [4, 2],
    photo: '/photo/h',
    photo_size: [40, 60],
    crop: { region: [0, 20, 40, 40], original: [40, 80] },
  },
  place: [1, 1],
  row: floats(0, 0.5, 0, 1, 0, 0, 0, -0.5),
  prefix: null,
  title: 'Positions tell near from far',
  about: '',
  direction: 'Along a row it falls more slowly.',
  mean: floats(1, 0.5, -0.25),
  low: floats(1, 0.25, -0.5),
  high: floats(1, 0.75, 0),
  pairs: [8, 12, 3],
  saved: ['/a', '/b'],
};

/** The tab; the map of place (0, 0) and of (2, 0): value i of the list, and the other way round. */
async function open(changes = {}, refuses = '') {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  const halves = [0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 1, 0].map((i) => BITS[i]);
  const fetch = async (/** @type {string} */ path) => {
    asked.push(path);
    return {
      ok: !refuses,
      text: async () => refuses,
      arrayBuffer: async () => Uint16Array.from(halves).buffer,
    };
  };
  Object.assign(browser.globals, { fetch });
  const value = (more = {}, revision = 1) => ({
    revision,
    part: 'similarity',
    parts: ['similarity', 'filters'],
    drawn: { ...similarity, ...changes, ...more },
  });
  const part = mount(TABLES, value(), { props: { tables }, browser });
  await settle();
  part.find('places-tiles').box = { left: 0, top: 0, width: 200, height: 200 };
  if (!refuses) part.find('stage').box = { left: 0, top: 0, width: 80, height: 40 };
  const reds = (/** @type {any} */ canvas) =>
    [...canvas.canvas.data.data].filter((/** @type {number} */ _, /** @type {number} */ i) => i % 4 === 0);
  const one = () => part.find('places-pair').querySelector('.vv-cells');
  const style = (/** @type {any} */ ring) =>
    ['top', 'left', 'width', 'height'].map((name) => Math.round(parseFloat(ring.style[name])));
  return {
    ...part,
    asked,
    value,
    one,
    map: () => reds(one()?.querySelector('canvas')),
    caption: () => one()?.parentNode?.querySelector('figcaption span')?.textContent,
    ring: () => style(part.find('places-tiles').querySelector('.vv-ring')),
    onPhoto: () => style(part.find('stage').querySelector('.vv-ring')),
  };
}

test('each small map is painted where its place lies, enlarged to squares, with a clear line between', () => {
  const { globals } = new Browser();
  const document = globalThis.document;
  Object.assign(globalThis, { document: globals.document });
  const picture = new Picture();
  const table = Uint32Array.from({ length: 256 }, (_, i) => 1000 + i);
  paintTiles(picture, Float32Array.of(-1, 1, 0, 1, -1, 0), [1, 3], [2, 1], table); // 3 maps of 2 x 1
  Object.assign(globalThis, { document });
  const zoom = 200; // 600 pixels are 3 columns
  assert.deepEqual([picture.data.width, picture.data.height], [3 * (zoom + 1) - 1, 2 * zoom]);
  const at = (/** @type {number} */ row, /** @type {number} */ col) =>
    picture.pixels[row * picture.data.width + col];
  assert.deepEqual([at(0, 0), at(zoom - 1, zoom - 1), at(zoom, 0)], [1000, 1000, 1255]);
  assert.deepEqual([at(0, zoom), at(0, zoom + 1), at(zoom, zoom + 1)], [0, 1128, 1255]);
  assert.deepEqual([at(zoom - 1, 3 * zoom + 1), at(2 * zoom - 1, 3 * zoom + 1)], [1000, 1128]);
});

test('the pinned place is enlarged from its own numbers, and ringed on the maps and on the photo', async () => {
  const page = await open();
  assert.deepEqual(page.asked, ['/vit_viz/positions/h?places=image']);
  assert.deepEqual(page.map(), [128, 191, 128, 255, 128, 128, 128, 64]);
  assert.equal(page.caption(), 'place (1, 1) with all places');
  assert.deepEqual(page.ring(), [0, 0, 100, 50]); // the nearest place that has a map
  assert.deepEqual(page.onPhoto(), [25, 50, 25, 25]); // the model sees the middle half of the photo
  assert.equal(page.find('places-tiles').style.getPropertyValue('--vv-aspect'), '1');
  assert.match(page.find('places-caption').textContent, /one in 2 in either direction/);
  assert.equal(page.find('places-title').textContent, 'Positions tell near from far');
  const root = page.find('tables');
  assert.deepEqual([root.getAttribute('aria-busy'), root.getAttribute('data-revision')], ['false', '1']);
});

test('the place under the pointer is enlarged without asking, and leaving brings the pinned one back', async () => {
  const page = await open();
  page.find('places-tiles').fire('pointermove', { clientX: 150, clientY: 150 });
  assert.deepEqual(page.map(), [3, 2, 1, 0].map((i) => GRAY[i]).reduce((all, gray) => [...all, gray], [255, 255, 255, 255])); // prettier-ignore
  assert.equal(page.caption(), 'place (2, 0) with all places');
  page.one()?.fire('keydown', { key: 'ArrowDown' });
  assert.equal(page.find('places-read').textContent, 'place (2, 0) with place (1, 0): cosine similarity 1');
  page.find('places-tiles').fire('pointerleave', {});
  assert.equal(page.caption(), 'place (1, 1) with all places');
  page.find('stage').fire('pointermove', { clientX: 45, clientY: 25 }); // row 2 and column 1, whose map is that of column 0
  assert.equal(page.caption(), 'place (2, 0) with all places');
  assert.equal(page.asked.length, 1);
});

test('a click on a map or on the photo pins, arrow keys pin the next place', async () => {
  const page = await open();
  page.find('places-tiles').fire('click', { clientX: 20, clientY: 120 });
  page.find('stage').fire('click', { clientX: 55, clientY: 35 });
  page.find('stage').fire('click', { clientX: 5, clientY: 35 }); // beside what the model sees
  page.find('places-tiles').fire('keydown', { key: 'ArrowDown' });
  page.find('stage').fire('keydown', { key: 'ArrowLeft' });
  const pins = [[2, 0], [3, 1], [2, 1], [1, 0]].map(([row, col]) => ['pin', { row, col }]); // prettier-ignore
  assert.deepEqual(page.told, pins);
  page.set(page.value({ place: [3, 1] }, 2));
  await settle();
  assert.deepEqual([page.asked.length, page.caption()], [1, 'place (3, 1) with all places']);
});

test('the curve is read step by step, and a token with a position has a map of its own', async () => {
  const page = await open({ prefix: { name: 'class', values: floats(1, 0, 0, 0, 0, 0, 0, -1) } });
  const curve = page.find('places-curve');
  assert.equal(curve.querySelector('.vv-places-mean')?.getAttribute('points'), '16.666666666666668,0 50,25 83.33333333333333,62.5'); // prettier-ignore
  curve.fire('keydown', { key: 'ArrowRight' });
  assert.equal(page.find('places-step').textContent, stepWords(1, [0.5, 0.25, 0.75], 12));
  assert.equal(stepWords(2, [0.5, 0.25, 0.75], 12), '2 steps apart: 0.50 on average of 12 pairs; a tenth below 0.25, a tenth above 0.75.'); // prettier-ignore
  assert.match(page.find('places-key').textContent, /Along a row it falls more slowly[.]$/);
  const [, cells] = page.find('places-pair').querySelectorAll('.vv-cells');
  cells.fire('keydown', { key: 'ArrowRight' });
  assert.equal(page.find('places-read').textContent, 'with place (0, 1): cosine similarity 0');
});

test('maps that are refused leave the words in their place', async () => {
  const page = await open({}, 'This picture is no longer kept.');
  assert.equal(page.find('tables-note').textContent, 'This picture is no longer kept.');
  assert.ok(page.find('places').hidden);
});
