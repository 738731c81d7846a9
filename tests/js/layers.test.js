import assert from 'node:assert/strict';
import { test } from 'node:test';

import { layerBytes } from '../../vit_viz/explorer/attention.js';
import { LAYER_BUDGET, LayerStore } from '../../vit_viz/explorer/layers.js';
import { Gone, routeUrl } from '../../vit_viz/explorer/source.js';
import { initialView } from '../../vit_viz/explorer/state.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser } from './browser.js';
import { makeTrace } from './oracle.js';
import { settle } from './room.js';

/** @typedef {import('../../vit_viz/explorer/geometry.js').Trace} Trace */

const HEADS = 5;
const TOKENS = 26;

/** Answers requests by address; `answers` may be changed meanwhile. */
function serve(/** @type {(path: string) => any} */ answer, root = '') {
  const browser = new Browser();
  browser.window.gradio_config = { root };
  /** @type {string[]} */
  const asked = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ options) => {
    asked.push(path);
    assert.equal(options.credentials, 'same-origin');
    const found = await answer(path);
    if (found instanceof Error) throw found;
    const { status = 200, buffer = new ArrayBuffer(0), kind = null, json = null } = found;
    return {
      status,
      ok: status < 400,
      headers: { get: () => kind },
      arrayBuffer: async () => buffer,
      json: async () => json,
    };
  };
  browser.install({ fetch });
  return { asked, browser };
}

function layerBuffer(/** @type {Trace} */ trace, layer = 0) {
  const buffer = new ArrayBuffer(layerBytes('qk', trace.heads, trace.tokens, trace.head_dim));
  new Float32Array(buffer, 0, 1)[0] = layer; // so that layers differ
  return buffer;
}

function storeOf(/** @type {Trace} */ trace) {
  /** @type {number[]} */
  const ready = [];
  /** @type {Error[]} */
  const failed = [];
  const store = new LayerStore(trace, SERVER, { ready: (l) => ready.push(l), failed: (e) => failed.push(e) });
  return { store, ready, failed };
}

/** So many tokens that only some layers fit, and one does. */
function large(/** @type {number} */ share, layers = 3) {
  const tokens = Math.floor((LAYER_BUDGET * share) / (HEADS * (8 + 4 * 8)));
  return makeTrace({ layers, tokens, source: Array(layers).fill('qk'), scales: Array(layers).fill(0.4) });
}

const number = (/** @type {string} */ path) => Number(/(\d+)$/.exec(path.split('?')[0])?.[1]);

test('the chosen layer comes first, then the others downwards', async () => {
  const trace = makeTrace();
  const { asked } = serve((path) => ({ buffer: layerBuffer(trace, number(path)) }));
  const { store, ready } = storeOf(trace);
  await store.load(1);
  assert.deepEqual(asked, ['/vit_viz/layer/abc/1', '/vit_viz/layer/abc/0', '/vit_viz/layer/abc/2']);
  assert.deepEqual(ready, [1, 0, 2]);
  assert.equal(store.loading, false);
  assert.equal(store.next(), null);
  for (const l of [0, 1, 2]) assert.equal(/** @type {any} */ (store.get(l)).lse[0], l);
  assert.equal(store.get(3), null);
});

test('the chosen layer comes alone, the others two at a time; all are there when the last one is', async () => {
  const trace = makeTrace({ layers: 6, source: Array(6).fill('qk'), scales: Array(6).fill(0.4) });
  /** @type {Map<number, () => void>} */
  const coming = new Map();
  serve(async (path) => {
    await new Promise((come) => coming.set(number(path), () => come(null)));
    return { buffer: layerBuffer(trace) };
  });
  const { store, ready } = storeOf(trace);
  const loading = store.load(1);
  const after = async (/** @type {number[]} */ ...arrive) => {
    for (const layer of arrive) coming.get(layer)?.();
    for (const layer of arrive) coming.delete(layer);
    await settle();
    return [...coming.keys()];
  };
  assert.deepEqual(await after(), [1]);
  assert.deepEqual(await after(1), [0, 5]);
  assert.deepEqual(await after(5), [0, 4]);
  assert.deepEqual(await after(0, 4), [3, 2]);
  assert.deepEqual(await after(3), [2]);
  assert.equal(store.next(), null);
  assert.ok(!store.isComplete);
  await after(2);
  await loading;
  assert.ok(store.isComplete);
  assert.deepEqual(ready, [1, 5, 0, 4, 3, 2]);
});

test('a failure is told once, and what comes after it is not taken', async () => {
  const trace = makeTrace();
  serve(async (path) => {
    if (number(path) === 0) return { status: 500 };
    if (number(path) === 2) await settle();
    return { buffer: layerBuffer(trace) };
  });
  const { store, ready, failed } = storeOf(trace);
  await store.load(1);
  await settle();
  await settle();
  assert.deepEqual([ready, failed.length, store.broken], [[1], 1, true]);
});

test('a layer is what its header says, and of its own scale', async () => {
  const trace = makeTrace({ source: ['attention', 'qk', 'rows'], scales: [0.1, 0.25, 0.5] });
  const buffer = layerBuffer(trace);
  new Uint16Array(buffer, 8 * HEADS * TOKENS, 1)[0] = 0x4000; // the first q: 2
  serve(() => ({ buffer, kind: 'qk' }));
  const { store } = storeOf(trace);
  assert.equal(/** @type {any} */ (await store.fetchLayer(1)).q[0], 0.5);
  serve(() => ({ buffer: new ArrayBuffer(HEADS * TOKENS * (4 + 2 * TOKENS)) }));
  assert.equal((await store.fetchLayer(0)).kind, 'attention');
});

test('another layer that is chosen while one is under way is the next one', async () => {
  const trace = makeTrace();
  /** @type {string[]} */
  const order = [];
  const { store } = storeOf(trace);
  serve((path) => {
    order.push(path);
    if (order.length === 1) void store.load(2);
    return { buffer: layerBuffer(trace) };
  });
  await store.load(0);
  assert.deepEqual(order.map(number), [0, 2, 1]);
});

test('what is larger than the budget is not fetched, and what does not fit together comes alone', async () => {
  const one = large(0.6);
  const { asked } = serve(() => ({ buffer: layerBuffer(one) }));
  const { store } = storeOf(one);
  assert.ok(store.fits(0) && !store.fitsAll);
  await store.load(1);
  assert.deepEqual(asked.map(number), [1]);
  assert.equal(store.next(), null);
  assert.match(store.progress(1), /Large picture: layer 1 answers at once/);
  const none = storeOf(large(1.2)).store;
  assert.ok(!none.fits(0) && none.next() === null);
  const all = storeOf(large(0.3)).store;
  assert.ok(all.fitsAll);
  assert.equal(storeOf(makeTrace({ source: ['rows', 'qk', 'qk'] })).store.fits(0), false);
});

test('the oldest layer leaves when the budget is full, never the chosen one or the one that just came', () => {
  const trace = large(0.4, 4);
  const { store } = storeOf(trace);
  const layer = /** @type {any} */ ({});
  store.wanted = 0;
  for (const l of [0, 1]) store.keep(l, layer);
  assert.deepEqual([...store.layers.keys()], [0, 1]);
  store.keep(2, layer);
  assert.deepEqual([...store.layers.keys()], [0, 2]);
  store.wanted = 3;
  store.keep(3, layer);
  assert.deepEqual([...store.layers.keys()], [2, 3]);
});

test('progress counts what is here, and says nothing once all are or nothing more comes', () => {
  const { store } = storeOf(makeTrace());
  assert.equal(store.progress(0), 'Fetching layers: 0 of 3.');
  store.keep(1, /** @type {any} */ ({}));
  assert.equal(store.progress(0), 'Fetching layers: 1 of 3.');
  store.broken = true;
  assert.equal(store.progress(0), '');
  store.broken = false;
  for (const l of [0, 2]) store.keep(l, /** @type {any} */ ({}));
  assert.equal(store.progress(0), '');
});

test('a dropped connection is tried once more, not twice', async () => {
  const trace = makeTrace({ layers: 1, source: ['qk'] });
  let drops = 1;
  const { asked, browser } = serve(() =>
    drops-- > 0 ? new Error('dropped') : { buffer: layerBuffer(trace) },
  );
  browser.window.setTimeout = (/** @type {() => void} */ run) => setImmediate(run);
  const { store, ready, failed } = storeOf(trace);
  await store.load(0);
  assert.deepEqual([asked.length, ready.length, failed.length], [2, 1, 0]);
  drops = 2;
  const other = storeOf(trace);
  await other.store.load(0);
  assert.deepEqual([asked.length, other.ready.length, other.failed[0].message], [4, 0, 'dropped']);
});

test('a trace that is gone, and a request that is refused, end the loading in a sentence', async () => {
  const trace = makeTrace();
  for (const [status, kind, words] of /** @type {[number, any, RegExp][]} */ ([
    [404, Gone, /no longer keeps this picture/],
    [410, Gone, /no longer keeps this picture/],
    [400, Error, /refused this request \(400\)/],
  ])) {
    const { asked } = serve(() => ({ status }));
    const { store, failed } = storeOf(trace);
    await store.load(0);
    assert.ok(failed[0] instanceof kind && words.test(failed[0].message));
    assert.equal(failed[0] instanceof Gone, status !== 400);
    assert.ok(store.broken && !store.loading);
    await store.load(1);
    assert.equal(asked.length, 1); // nothing more is asked of it
  }
});

test('nothing is kept or told after the trace was left', async () => {
  const trace = makeTrace();
  const { store, ready, failed } = storeOf(trace);
  serve(() => {
    store.close();
    return { buffer: layerBuffer(trace) };
  });
  await store.load(0);
  assert.deepEqual([ready, failed, store.layers.size], [[], [], 0]);
  const other = storeOf(trace);
  serve(() => {
    other.store.close();
    return new Error('aborted');
  });
  await other.store.load(0);
  assert.deepEqual(
    [other.ready, other.failed, other.store.broken, other.store.loading],
    [[], [], false, false],
  );
});

test('leaving a trace frees its layers and answers', () => {
  const { store } = storeOf(makeTrace());
  store.keep(0, /** @type {any} */ ({}));
  store.answers.set('x', new Float32Array(1));
  store.close();
  assert.deepEqual([store.layers.size, store.answers.size, store.abort.signal.aborted], [0, 0, true]);
});

test('answers are kept by layer, direction and query', async () => {
  const trace = makeTrace({ pooling: 'mean' });
  let fill = 0;
  const { asked } = serve(() => ({ buffer: new Float32Array(HEADS * TOKENS).fill(++fill).buffer }));
  const { store } = storeOf(trace);
  const view = { ...initialView(trace), query: 'pool', layer: 1 };
  const views = [
    { layer: 1, view },
    { layer: 1, view: { ...view, direction: /** @type {'column'} */ ('column') } },
    { layer: 2, view },
    { layer: 1, view: { ...view, query: '1,2' } },
  ];
  const { signal } = new AbortController();
  for (const one of views) {
    assert.equal(store.answer(one.layer, one.view), null);
    await store.ask(one.layer, one.view, signal);
  }
  assert.deepEqual(
    views.map((one) => store.answer(one.layer, one.view)?.[0]),
    [1, 2, 3, 4],
  );
  assert.equal(asked[1], '/vit_viz/rows/abc/1?query=pool&direction=column');
});

test('an answer that is too short is refused, and too many answers make room', async () => {
  const trace = makeTrace({ tokens: 200_000 });
  let length = HEADS * 200_000;
  serve(() => ({ buffer: new ArrayBuffer(4 * length) }));
  const { store } = storeOf(trace);
  const { signal } = new AbortController();
  const view = initialView(trace);
  for (const layer of [0, 1, 2, 3, 4]) await store.ask(layer, view, signal);
  assert.deepEqual([store.answers.size, store.answerBytes], [5, 20e6]); // 4 MB each
  await store.ask(5, view, signal);
  assert.deepEqual([store.answers.size, store.answerBytes], [6, 24e6]);
  await store.ask(6, view, signal);
  assert.deepEqual([[...store.answers.keys()].length, store.answerBytes], [1, 4e6]);
  length -= 1;
  await assert.rejects(store.ask(1, view, signal), /numbers of this layer are missing/);
});

test('layers that the browser computes itself are not asked of the server', () => {
  const trace = makeTrace();
  const { store } = storeOf(trace);
  const view = { ...initialView(trace), query: '1,2', layer: 1 };
  assert.deepEqual(store.unanswered(view), []);
  const pooled = makeTrace({ pooling: 'mean' });
  const other = storeOf(pooled).store;
  const pool = { ...view, query: 'pool' };
  assert.deepEqual(other.unanswered(pool), [1, 0, 2]);
  other.answers.set('0|row|pool', new Float32Array(1));
  assert.deepEqual(other.unanswered(pool), [1, 2]);
  assert.deepEqual(other.unanswered({ ...pool, norm: true }), [1, 2]); // rows of the server, times norms of the layer
  assert.deepEqual(other.unanswered({ ...pool, norm: true, direction: 'column' }), []);
  assert.deepEqual(store.unanswered({ ...view, norm: true }), []);
});

test('where not all layers fit, the server answers for those that do not come', () => {
  const { store } = storeOf(large(0.6));
  const view = { ...initialView(store.trace), query: '1,2', layer: 1 };
  assert.deepEqual(store.unanswered(view), [0, 2]);
  store.keep(2, /** @type {any} */ ({}));
  assert.deepEqual(store.unanswered(view), [0]);
  assert.deepEqual(storeOf(large(1.2)).store.unanswered(view), [1, 0, 2]);
});

test('numbers are asked for with the whole view', async () => {
  const trace = makeTrace({ trace: 'a/b' });
  const { asked } = serve(() => ({ json: { max: 1 } }), '/behind/');
  const { store } = storeOf(trace);
  const view = { ...initialView(trace), layer: 2, head: 3, query: '1,2' };
  const { signal } = new AbortController();
  assert.deepEqual(await store.numbers(view, signal), { max: 1 });
  await store.numbers({ ...view, norm: true, direction: 'column' }, signal);
  assert.deepEqual(asked, [
    '/behind/vit_viz/numbers/a%2Fb?layer=2&head=3&query=1%2C2&direction=row',
    '/behind/vit_viz/numbers/a%2Fb?layer=2&head=3&query=1%2C2&direction=column&norm=1',
  ]);
});

test('addresses lie behind the prefix of the page', () => {
  const browser = new Browser();
  browser.install();
  assert.equal(routeUrl('/x'), '/x');
  browser.window.gradio_config = { root: 'http://host/prefix/' };
  assert.equal(routeUrl('/x'), 'http://host/prefix/x');
  assert.equal(routeUrl('http://elsewhere/x'), 'http://elsewhere/x');
});

test('layers fit up to their budget exactly', () => {
  const unit = 5 * (8 + 4 * 8);
  assert.equal(LAYER_BUDGET % unit, 0);
  const of = (/** @type {number} */ tokens, layers = 1) =>
    new LayerStore(
      makeTrace({ tokens, layers, source: Array(layers).fill('qk') }),
      SERVER,
      /** @type {any} */ ({}),
    );
  const most = LAYER_BUDGET / unit;
  assert.deepEqual(
    [of(most).fits(0), of(most + 1).fits(0), of(most).fitsAll, of(most + 1).fitsAll],
    [true, false, true, false],
  );
  assert.deepEqual([of(most / 3, 3).fitsAll, of(most / 3 + 1, 3).fitsAll], [true, false]);
  const store = of(most / 2, 3);
  store.wanted = 0;
  for (const l of [0, 1]) store.keep(l, /** @type {any} */ ({}));
  assert.deepEqual([...store.layers.keys()], [0, 1]);
});
