// The photo as one head sees it: which rows are fetched, what they light, and what is drawn.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Lit } from '../../vit_viz/web/heads/lit.js';
import { finder } from '../../vit_viz/ui/kit/elements.js';
import { Browser, parse, read } from './browser.js';
import { settle } from './visit.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const TABLE = new Uint32Array(256);
const subject = any({
  trace: 'h4ndle',
  name: 'lion',
  layers: 4,
  heads: 3,
  tokens: 8,
  prefix: ['class'],
  suffix: ['detection 0'],
  grid: [2, 3],
  crop: { region: [2, 5, 16, 30], original: [20, 40] },
  photo: '/photo/x',
  photo_size: [20, 40],
  query: '0,1',
});

/** A photo of which the server knows the rows: those of layer 1, head 2 are eighths of `values`. */
function open(
  /** @type {any} */ context,
  {
    values = [8, 0, 2, 4, 6, 8, 4, 8],
    answer = any(null),
    gone = /** @type {() => boolean} */ (() => false),
  } = {},
) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal }) => {
    asked.push(path.replace('/vit_viz/rows/h4ndle/', ''));
    const found = await answer?.(path);
    if (found instanceof Error || signal.aborted) throw found ?? new Error('This request was given up.');
    if (found) return found;
    const rows = Float32Array.from([
      ...new Array(2 * values.length).fill(0.5),
      ...values.map((one) => one / 8),
    ]);
    return { status: 200, ok: true, arrayBuffer: async () => rows.buffer };
  };
  browser.install(context, { fetch });
  const element = parse(read('../../vit_viz/web/heads/room.html'));
  const find = any(finder(any(element)));
  let arrivals = 0;
  const lit = any(new Lit(find('heads-stage'), TABLE, () => (arrivals += 1), gone));
  find('box').box = { left: 0, top: 0, width: 60, height: 32 };
  return { lit, find, asked, browser, arrivals: () => arrivals };
}

const place = { layer: 1, head: 2 };

test('a photo has its name, its shape, and where the model saw it', (context) => {
  const { lit, find, arrivals } = open(context);
  lit.begin(subject);
  const photo = find('photo');
  assert.deepEqual([photo.src, photo.alt], ['/photo/x', 'lion']);
  assert.equal(find('heads-stage').style.getPropertyValue('--vv-aspect'), '2');
  const { top, left, width, height } = find('box').style;
  assert.deepEqual([top, left, width, height], ['10%', '12.5%', '75%', '80%']);
  photo.fire('load');
  assert.equal(arrivals(), 1);
  let loads = 0;
  Object.defineProperty(photo, 'src', {
    set: () => {
      loads += 1;
    },
  });
  lit.begin({ ...subject, query: 'class' });
  assert.equal(loads, 0); // the same photo is not loaded again
  lit.begin({ ...subject, photo: '/photo/y' });
  assert.equal(loads, 1);
});

test('the rows of the layer that is looked at come first, then all others', async (context) => {
  const { lit, asked, arrivals } = open(context);
  lit.begin(subject);
  assert.equal(lit.draw(place), null);
  await settle();
  assert.deepEqual(asked, [1, 0, 2, 3].map((layer) => `${layer}?query=0%2C1&direction=row`)); // prettier-ignore
  assert.equal(arrivals(), 4);
  lit.draw(place);
  await settle();
  assert.equal(asked.length, 4);
});

test('another layer that is looked at meanwhile comes next, and each is fetched once', async (context) => {
  /** @type {(() => void)[]} */
  const held = [];
  const { lit, asked } = open(context, {
    answer: () => new Promise((done) => held.push(() => done(undefined))),
  });
  lit.begin(subject);
  lit.draw(place);
  lit.draw({ layer: 3, head: 0 });
  await settle();
  assert.equal(asked.length, 1);
  for (let i = 0; i < 4; i++) {
    held[i]();
    await settle();
  }
  assert.deepEqual(asked.map((path) => path[0]).join(''), '1302');
});

test('rows of many tokens are fetched for the layer that is looked at alone', async (context) => {
  const { lit, asked } = open(context);
  lit.begin({ ...subject, layers: 2, heads: 4, tokens: 500001 });
  lit.draw(place);
  await settle();
  assert.deepEqual(asked.map((path) => path[0]).join(''), '1');
  lit.draw({ layer: 0, head: 0 });
  await settle();
  assert.deepEqual(asked.map((path) => path[0]).join(''), '10');
  lit.begin({ ...subject, layers: 2, heads: 4, tokens: 500000 }); // just 16 MB
  lit.draw(place);
  await settle();
  assert.deepEqual(asked.map((path) => path[0]).join(''), '1010');
});

test('rows of a query that was left are not kept', async (context) => {
  /** @type {(() => void)[]} */
  const held = [];
  const { lit, asked, arrivals } = open(context, {
    answer: () => new Promise((done) => held.push(() => done(undefined))),
  });
  lit.begin(subject);
  lit.draw(place);
  await settle();
  lit.begin({ ...subject, query: 'class' });
  lit.draw(place);
  await settle();
  held[0]();
  await settle();
  assert.deepEqual([lit.mapOf(place), arrivals(), lit.error], [null, 0, '']);
  held[1]();
  await settle();
  assert.deepEqual(asked.slice(0, 2), ['1?query=0%2C1&direction=row', '1?query=class&direction=row']);
  assert.ok(lit.mapOf(place));
  assert.equal(asked.length, 3); // the other layers follow one after the other
  lit.begin(subject);
  assert.equal(lit.mapOf(place), null);
});

test('what goes wrong is said once and not tried again, until another query', async (context) => {
  let broken = true;
  const { lit, asked, arrivals, browser } = open(context, {
    answer: () => broken && new Error('No network.'),
  });
  lit.begin(subject);
  lit.draw(place);
  await settle();
  browser.pass(400);
  await settle();
  assert.deepEqual([lit.error, arrivals(), asked.length], ['No network.', 1, 2]); // a dropped connection is tried once more
  assert.equal(lit.draw(place), null);
  await settle();
  assert.equal(asked.length, 2);
  broken = false;
  lit.begin(subject);
  assert.equal(lit.error, '');
  lit.draw(place);
  await settle();
  assert.equal(asked.length, 6);
});

test('what the server no longer keeps is asked for again, and says so where that does not help', async (context) => {
  let tries = 0;
  const { lit, arrivals } = open(context, {
    answer: () => ({ status: 404, ok: false }),
    gone: () => (tries += 1) < 2,
  });
  lit.begin(subject);
  lit.draw(place);
  await settle();
  assert.deepEqual([lit.isGone, lit.error, arrivals()], [true, '', 0]);
  lit.draw(place);
  await settle();
  assert.equal(tries, 1);
  lit.begin(subject);
  lit.draw(place);
  await settle();
  assert.deepEqual([lit.isGone, tries], [false, 2]);
  assert.match(lit.error, /no longer keeps this picture/);
});

test('a map is what the head gives each patch, and ends at the brightest', async (context) => {
  const { lit } = open(context);
  assert.equal(lit.mapOf(place), null);
  lit.begin(subject);
  lit.draw(place);
  await settle();
  const { values, most, lit: full, sum } = lit.mapOf(place);
  assert.deepEqual([...values], [0, 0.25, 0.5, 0.75, 1, 0.5]);
  assert.deepEqual([most, full, sum], [1, 1, 3]);
  assert.equal(lit.mapOf({ layer: 1, head: 0 }).sum, 3); // six times a half
});

test('one patch in a hundred is as bright as the brightest of the others', async (context) => {
  const many = Array.from({ length: 201 }, (_, i) => i + 1);
  const { lit } = open(context, { values: many });
  lit.begin({ ...subject, grid: [3, 67], prefix: [], suffix: [], tokens: 201 });
  lit.draw(place);
  await settle();
  const { most, lit: full } = lit.mapOf(place);
  assert.deepEqual([8 * most, 8 * full], [201, 199]);
  const one = open(context, { values: [8, ...new Array(200).fill(0)] });
  one.lit.begin({ ...subject, grid: [3, 67], prefix: [], suffix: [], tokens: 201 });
  one.lit.draw(place);
  await settle();
  assert.deepEqual([one.lit.mapOf(place).most, one.lit.mapOf(place).lit], [1, 1]);
});

test('patches are dimmed by what they lack, a pixel for each, and drawn where the model saw the photo', async (context) => {
  const { lit, find, browser } = open(context);
  Object.assign(browser.window, { devicePixelRatio: 1.5 });
  lit.begin(subject);
  lit.draw(place);
  await settle();
  const map = lit.draw(place);
  assert.deepEqual([...map.values], [0, 0.25, 0.5, 0.75, 1, 0.5]);
  assert.deepEqual([lit.map.canvas.width, lit.map.canvas.height], [3, 2]);
  const dim = [...lit.map.pixels].map((/** @type {number} */ pixel) => pixel >>> 24);
  assert.deepEqual(dim, [255, 191, 127, 64, 0, 127]); // how opaque the dimmed photo lies over the photo
  assert.ok(lit.map.context.data === lit.map.data);
  const canvas = find('heads-lit');
  assert.deepEqual([canvas.width, canvas.height], [90, 48]);
  const drawn = canvas.getContext().calls;
  assert.deepEqual(drawn.find((/** @type {any[]} */ [name]) => name === 'imageSmoothingEnabled ='), ['imageSmoothingEnabled =', true]); // prettier-ignore
  const [first] = drawn.filter((/** @type {any[]} */ [name]) => name === 'drawImage');
  assert.ok(first[1] === lit.map.canvas);
  assert.deepEqual(first.slice(2), [0, 0, 90, 48]);
  canvas.getContext().calls.length = 0;
  find('box').box = { left: 0, top: 0, width: 0.5, height: 32 };
  assert.ok(lit.draw(place)); // known, but out of sight
  assert.equal(canvas.getContext().calls.length, 0);
  find('box').box = { left: 0, top: 0, width: 1, height: 32 };
  lit.draw(place);
  assert.ok(canvas.getContext().calls.length > 0);
  delete any(browser.window).devicePixelRatio;
  lit.draw(place);
  assert.deepEqual([canvas.width, canvas.height], [1, 32]);
});

test('a photo that is too dark to be lit is tinted', async (context) => {
  const { lit } = open(context);
  lit.begin({ ...subject, unlit: 'too dark' });
  lit.draw(place);
  await settle();
  lit.draw(place);
  const bytes = [...lit.map.pixels].map((/** @type {number} */ pixel) => [pixel & 255, pixel >>> 24]);
  assert.deepEqual([bytes[0], bytes[4]], [[255, 0], [255, 191]]); // prettier-ignore
});
