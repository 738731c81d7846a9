// The photo as heads see it: which rows are fetched, what they light, and what is drawn.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Lit, Rows, usePhoto } from '../../vit_viz/web/heads/maps.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { AGAINST, FOR } from '../../vit_viz/web/kit/signed.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser, Element, parse, ending } from './browser.js';
import { settle } from './room.js';

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

/** Rows that the server knows: those of layer 1, head 2 are eighths of `values`. */
function open({
  values = [8, 0, 2, 4, 6, 8, 4, 8],
  answer = any(null),
  gone = /** @type {() => boolean} */ (() => false),
  of = {},
} = {}) {
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
  browser.install({ fetch });
  const rows = new Rows(SERVER, { ...subject, ...of }, gone);
  const want = async (/** @type {number} */ layer) => {
    void rows.want(layer);
    await settle();
  };
  const layers = () => asked.map((path) => path[0]).join('');
  return { rows, want, asked, layers, browser };
}

const place = { layer: 1, head: 2 };

test('the rows of the layer that is looked at come first, then all others', async () => {
  const { rows, want, asked } = open();
  assert.equal(rows.mapOf(place), null);
  await want(1);
  assert.deepEqual(asked, [1, 0, 2, 3].map((layer) => `${layer}?query=0%2C1&direction=row`)); // prettier-ignore
  assert.equal(rows.arrived.value, 4);
  await want(1);
  assert.equal(asked.length, 4);
});

test('another layer that is looked at meanwhile comes next, and each is fetched once', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const { want, asked, layers } = open({
    answer: () => new Promise((done) => held.push(() => done(undefined))),
  });
  await want(1);
  await want(3);
  assert.equal(asked.length, 1);
  for (let i = 0; i < 4; i++) {
    held[i]();
    await settle();
  }
  assert.equal(layers(), '1302');
});

test('rows of many tokens are fetched for the layer that is looked at alone', async () => {
  const many = open({ of: { layers: 2, heads: 4, tokens: 500001 } });
  await many.want(1);
  assert.equal(many.layers(), '1');
  await many.want(0);
  assert.equal(many.layers(), '10');
  const fewer = open({ of: { layers: 2, heads: 4, tokens: 500000 } }); // just 16 MB
  await fewer.want(1);
  assert.equal(fewer.layers(), '10');
});

test('rows that come after they were left are not kept', async () => {
  const { rows, want } = open({ answer: () => settle() });
  void rows.want(1);
  rows.stop.abort();
  await settle();
  await settle();
  await settle();
  assert.deepEqual([rows.mapOf(place), rows.arrived.value, rows.error], [null, 0, '']);
  assert.ok(want);
});

test('what goes wrong is said once and not tried again', async () => {
  const { rows, want, asked, browser } = open({ answer: () => new Error('No network.') });
  await want(1);
  browser.pass(400);
  await settle();
  assert.deepEqual([rows.error, rows.arrived.value, asked.length], ['No network.', 1, 2]); // a dropped connection is tried once more
  await want(1);
  assert.equal(asked.length, 2);
});

test('what the server no longer keeps is asked for again, and says so where that does not help', async () => {
  let tries = 0;
  const lost = { answer: () => ({ status: 404, ok: false }), gone: () => (tries += 1) < 2 };
  const first = open(lost);
  await first.want(1);
  assert.deepEqual([first.rows.isGone, first.rows.error], [true, '']);
  await first.want(1);
  assert.equal(tries, 1);
  const second = open(lost);
  await second.want(1);
  assert.equal(second.rows.isGone, false);
  assert.match(second.rows.error, /no longer keeps this picture/);
});

test('a map is what the head gives each patch, and ends at the brightest', async () => {
  const { rows, want } = open();
  await want(1);
  const { values, most, lit: full, sum } = /** @type {any} */ (rows.mapOf(place));
  assert.deepEqual([...values], [0, 0.25, 0.5, 0.75, 1, 0.5]);
  assert.deepEqual([most, full, sum], [1, 1, 3]);
  assert.equal(rows.mapOf({ layer: 1, head: 0 })?.sum, 3); // six times a half
});

test('one patch in a hundred is as bright as the brightest of the others', async () => {
  const of = { grid: [3, 67], prefix: [], suffix: [], tokens: 201 };
  const lit = async (/** @type {number[]} */ values) => {
    const { rows, want } = open({ values, of });
    await want(1);
    const map = /** @type {any} */ (rows.mapOf(place));
    return [8 * map.most, 8 * map.lit];
  };
  assert.deepEqual(await lit(Array.from({ length: 201 }, (_, i) => i + 1)), [201, 199]);
  assert.deepEqual(await lit([8, ...new Array(200).fill(0)]), [8, 8]);
});

/** A canvas that is lit, with what was drawn there; its size in pixels of the page. */
async function light(props = {}, { width = 60, height = 32, ratio = 1.5 } = {}) {
  const { browser } = open();
  Object.assign(browser.window, { devicePixelRatio: ratio });
  /** @type {() => void} */
  let resized = () => {};
  class ResizeObserver {
    constructor(/** @type {() => void} */ run) {
      resized = run;
    }

    observe() {}

    disconnect() {}
  }
  browser.install({ ResizeObserver });
  const root = any(parse('<div></div>'));
  const values = Float32Array.of(0, 0.25, 0.5, 0.75, 1, 0.5);
  const seen = {
    subject,
    photo: any(new Element('img')),
    values,
    top: 1,
    colours: TABLE,
    look: 'vv-heads-lit',
    ...props,
  };
  const before = browser.made.length;
  render(html`<${Lit} ...${seen} />`, root);
  ending.after(() => render(null, root));
  const canvas = root.querySelector('canvas');
  canvas.box = { left: 0, top: 0, width, height };
  resized();
  await settle();
  const map = any(browser.made.slice(before).find((node) => node.width === 3 && node.height === 2));
  const pixels = map ? new Uint32Array(map.canvas.data.data.buffer) : new Uint32Array();
  return { canvas, calls: canvas.canvas?.calls ?? [], pixels: [...pixels], map };
}

test('patches are dimmed by what they lack, a pixel for each, and drawn where the model saw the photo', async () => {
  const { canvas, calls, pixels, map } = await light();
  assert.deepEqual(pixels.map((pixel) => pixel >>> 24), [255, 191, 127, 64, 0, 127]); // prettier-ignore
  assert.deepEqual([canvas.width, canvas.height], [90, 48]);
  assert.ok(
    calls.some((/** @type {any[]} */ [name, on]) => name === 'imageSmoothingEnabled =' && on === true),
  );
  const [first, ...others] = calls.filter((/** @type {any[]} */ [name]) => name === 'drawImage');
  assert.ok(first[1] === map);
  assert.deepEqual(first.slice(2), [0, 0, 90, 48]);
  assert.equal(others.length, 1); // the dimmed photo
  const alone = await light({ isAlone: true });
  assert.equal(alone.calls.filter((/** @type {any[]} */ [name]) => name === 'drawImage').length, 3); // and the photo below
});

test('a canvas without room is not painted, and a screen that does not say has one pixel for one', async () => {
  assert.deepEqual((await light({}, { width: 0.5 })).calls, []);
  const { canvas } = await light({}, { width: 1, ratio: 0 });
  assert.deepEqual([canvas.width, canvas.height], [1, 32]);
  assert.deepEqual((await light({ values: null })).calls, []);
});

test('a photo that is too dark to be lit is tinted, and a change has the colours of its sign', async () => {
  const dark = await light({ subject: { ...subject, unlit: 'too dark' } });
  const bytes = dark.pixels.map((pixel) => pixel >>> 24);
  assert.deepEqual([bytes[0], bytes[4]], [0, 191]);
  const values = Float32Array.of(-2, 0, 2, 1, 0, 0);
  const { pixels } = await light({ isChange: true, values, top: 2 });
  const [less, none, more, half] = [...new Uint8Array(Uint32Array.from(pixels).buffer).values()].reduce(
    (/** @type {number[][]} */ all, byte, i) => (i % 4 ? all.at(-1)?.push(byte) : all.push([byte]), all),
    [],
  );
  assert.deepEqual(
    [less, more],
    [
      [...AGAINST, 217],
      [...FOR, 217],
    ],
  ); // blue is less, orange more
  assert.deepEqual([none[3], half], [1, [...FOR, 108]]);
});

test('a photo that comes after its numbers is lit once it is there', async () => {
  const { browser } = open();
  let resized = () => {};
  browser.install({
    ResizeObserver: class {
      constructor(/** @type {() => void} */ run) {
        resized = run;
      }

      observe() {}
      disconnect() {}
    },
  });
  const root = any(parse('<div></div>'));
  const seen = { subject, values: Float32Array.of(0, 0.25, 0.5, 0.75, 1, 0.5), top: 1, colours: TABLE };
  const Both = (/** @type {{address: string}} */ { address }) =>
    html`<${Lit} ...${seen} photo=${usePhoto(address)} />`;
  const show = (/** @type {string} */ address) => render(html`<${Both} address=${address} />`, root);
  const drawn = () =>
    (canvas.canvas?.calls ?? []).filter((/** @type {any[]} */ [name]) => name === 'drawImage').length;
  const photo = () => any(browser.made.filter((node) => node.tagName === 'IMG').at(-1));
  show('/photo/x');
  ending.after(() => render(null, root));
  const canvas = root.querySelector('canvas');
  canvas.box = { left: 0, top: 0, width: 60, height: 32 };
  resized();
  await settle();
  assert.equal(drawn(), 0);
  photo().onload();
  await settle();
  assert.equal(drawn(), 2); // the layer and the dimmed photo
  show('/photo/y');
  await settle();
  assert.equal(drawn(), 2); // nothing of the one with the numbers of the other
  photo().onload();
  await settle();
  assert.equal(drawn(), 4);
});
