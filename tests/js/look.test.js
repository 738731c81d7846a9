// The Look tab: the explorer over the store, against a source that a test answers for.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { initialView, updateView, viewLink } from '../../vit_viz/explorer/state.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { keeperOf } from '../../vit_viz/web/look/keeper.js';
import { thePage } from '../../vit_viz/web/kit/page.js';
import { begin, look } from '../../vit_viz/web/look/room.js';
import { makeTrace, random } from './oracle.js';
import { placeAt, settle, usualFields } from './room.js';
import { open, tables } from './visit.js';

/** The tab, opened at a link; `opens` are its questions what a view is of, which a test answers in any order. */
function room(search = '') {
  const { element, parts, browser } = open();
  const place = placeAt(search);
  const store = new Store(usualFields, place);
  /** @type {{view: string, signal: AbortSignal, answer: (changes?: any) => Promise<void>, refuse: (words: string) => Promise<void>}[]} */
  const opens = [];
  const ask = asker({
    keeps: () => false,
    answer: (_name, { view }, stop) =>
      new Promise((give, fail) => {
        const named = Object.fromEntries(new URLSearchParams(view));
        const of = {
          ...named,
          size: Number(named.size ?? 0),
          part: named.part ?? '',
          mode: named.mode ?? 'fit',
        };
        opens.push({
          view,
          signal: stop,
          answer: (changes = {}) => (give(makeTrace({ ...of, trace: view, ...changes })), settle()),
          refuse: (words) => (fail(new Error(words)), settle()),
        });
      }),
  });
  const explorer = look(
    /** @type {any} */ (element),
    { store, source: SERVER, ask, turn: signal(0) },
    tables,
  );
  return { explorer, store, place, opens, parts, browser };
}

test('a link opens its view, and a first look is in the link, too', async () => {
  const first = room();
  assert.deepEqual(
    first.opens.map(({ view }) => view),
    [''],
  );
  await first.opens[0].answer({ opening: { layer: 1, head: 4 } });
  assert.deepEqual([first.explorer.view?.layer, first.explorer.view?.head], [1, 4]);
  assert.equal(first.place.search(), '?model=mini&image=lion&layer=1&head=4');
  assert.equal(first.place.written.length, 1);
  assert.equal(first.opens.length, 1); // it is the same picture
  const linked = room('?layer=0&head=mean&q=2,3&colors=gray&image=tower');
  await linked.opens[0].answer({ opening: { layer: 1, head: 4 } });
  const { layer, head, query, table } = /** @type {any} */ (linked.explorer.view);
  assert.deepEqual([layer, head, query, table], [0, 'mean', '2,3', 'gray']);
  assert.deepEqual(linked.place.written, [[{ model: 'mini' }, false]]);
  assert.equal(linked.explorer.ghost, null);
});

test('Back is followed where the link names its model and photo, and after another photo', async () => {
  const full = '?model=mini&image=lion&layer=1&head=2&q=0,1';
  const { explorer, opens, place, store } = room(full);
  await opens[0].answer();
  const query = () => explorer.view?.query;
  assert.equal(query(), '0,1');
  store.set({ q: '2,3' });
  assert.equal(query(), '2,3');
  place.go(full);
  assert.equal(query(), '0,1');
  store.look({ image: 'tower' });
  await settle();
  await opens[1].answer();
  store.set({ q: '1,2' });
  const before = place.search();
  store.set({ q: '3,4' });
  assert.equal(query(), '3,4');
  place.go(before);
  assert.equal(query(), '1,2');
});

test('what a model does not have falls back, and the link with it', async () => {
  const { explorer, opens, place } = room('?layer=40&head=2&q=9,9');
  await opens[0].answer();
  assert.deepEqual([explorer.view?.layer, explorer.view?.head, explorer.view?.query], [2, 2, 'class']);
  assert.equal(place.search(), '?layer=2&head=2&q=class&model=mini&image=lion');
});

test('what is chosen here is in the link, and what is chosen elsewhere is seen here', async () => {
  const { explorer, opens, place, store } = room();
  await opens[0].answer();
  explorer.change({ layer: 0, table: 'gray' });
  assert.equal(place.search(), '?model=mini&image=lion&layer=0&colors=gray');
  explorer.pin('1,2');
  assert.deepEqual(place.written.at(-1), [{ q: '1,2' }, true]); // Back leads to the query before
  explorer.pin('class');
  assert.deepEqual(place.written.at(-1), [{ q: 'class' }, true]);
  const before = place.written.length;
  place.go('?model=mini&image=lion&layer=1&head=3&q=3,3');
  assert.deepEqual(
    [explorer.view?.layer, explorer.view?.head, explorer.view?.query, explorer.view?.table],
    [1, 3, '3,3', 'viridis'],
  );
  store.set({ q: 'register 0' });
  assert.equal(explorer.view?.query, 'register 0');
  assert.equal(place.written.length, before + 1); // following writes nothing
  assert.equal(opens.length, 1);
});

test('while another picture is on its way the one before stays as it was, and its choices are no picture', async () => {
  const { explorer, opens, place, parts, browser } = room('?image=lion&layer=1&q=1,2');
  await opens[0].answer();
  place.go('?model=mini&image=tower&layer=1');
  assert.equal(opens[1].view, '?model=mini&image=tower&layer=1');
  assert.deepEqual([explorer.trace?.image, explorer.view?.query], ['lion', '1,2']);
  browser.pass(250);
  assert.deepEqual([parts.root.dataset.state, parts.busy.textContent], ['busy', 'Running mini …']);
  explorer.change({ layer: 0 });
  assert.equal(new URLSearchParams(place.search()).get('image'), 'tower');
  place.go('?model=mini&image=runner&layer=0');
  assert.ok(opens[1].signal.aborted);
  await opens[1].answer(); // which nobody waits for
  assert.equal(explorer.trace?.image, 'lion');
  await opens[2].answer();
  assert.deepEqual(
    [explorer.trace?.image, explorer.view?.query, explorer.view?.layer],
    ['runner', 'class', 0],
  );
  assert.equal(parts.root.dataset.state, 'ready');
});

test('what stands in for a picture that is gone leaves the link alone until somebody acts on it', async () => {
  const { explorer, opens, place } = room('?image=ugone&q=1,2&layer=1&part=0,0,40,40');
  await opens[0].answer({ image: 'lion', part: '' });
  assert.equal(explorer.trace?.image, 'lion');
  assert.deepEqual(place.written, []);
  place.go('?image=unew&q=1,2&layer=1'); // it was brought
  await opens[1].answer();
  assert.deepEqual([explorer.trace?.image, explorer.view?.query], ['unew', '1,2']);
  const other = room('?image=ugone&q=1,2&layer=1&part=0,0,40,40');
  await other.opens[0].answer({ image: 'lion', part: '' });
  other.explorer.pin('0,3');
  assert.equal(other.place.search(), '?image=lion&q=0%2C3&layer=1&model=mini');
});

test('a refusal is one sentence; what is gone is opened again; a part is another picture', async () => {
  const { explorer, opens, place, parts, store } = room('?q=1,2&size=9');
  await opens[0].refuse('Too many wait for the device.');
  assert.deepEqual(
    [parts.root.dataset.state, parts.message.textContent],
    ['empty', 'Too many wait for the device.'],
  );
  explorer.host.again();
  assert.equal(opens[1].view, opens[0].view);
  await opens[1].answer();
  assert.equal(parts.root.dataset.state, 'ready');
  explorer.host.closer('10,20,40,50');
  assert.equal(opens[2].view, '?model=mini&image=lion&layer=2&part=10%2C20%2C40%2C50');
  assert.deepEqual([store.view.q.value, place.written.at(-1)?.[1]], ['', true]);
});

test('another tab shows nothing here, and the picture is there still when its visitor comes back', async () => {
  const { opens, place, explorer } = room('?tab=heads');
  await opens[0].answer();
  assert.equal(explorer.trace, null);
  place.go('?tab=look');
  const { store } = explorer;
  place.go('?tab=heads&q=1,2&layer=1');
  assert.equal(explorer.view?.query, '1,2');
  place.go('?tab=look&q=1,2&layer=1');
  assert.equal(opens.length, 1);
  assert.equal(explorer.store, store); // its layers are not fetched again
});

test('the layer that a view begins with is fetched while the page is being built, and once', async () => {
  const { element, asked, browser, trace } = open({ opening: { layer: 1, head: 0 } });
  const ours = /** @type {any} */ (globalThis).fetch;
  /** @type {string[]} */
  const opens = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ options) => {
    if (path !== '/vit_viz/open') return ours(path, options);
    opens.push(JSON.parse(options.body).view);
    return new Response(`event: answer\ndata: ${JSON.stringify(trace)}\n\n`);
  };
  const config = { components: [{ props: { props: { fields: JSON.stringify(usualFields) } } }] };
  browser.install({ fetch, gradio_config: config, Image: class {} });
  await begin(SERVER);
  await settle();
  assert.deepEqual([opens.length, asked], [1, ['/vit_viz/layer/abc/1']]);
  const explorer = look(/** @type {any} */ (element), thePage(), tables);
  await settle();
  assert.equal(explorer.trace?.trace, 'abc');
  assert.deepEqual(
    asked.filter((path) => path.includes('/layer/')),
    ['1', '0', '2'].map((layer) => `/vit_viz/layer/abc/${layer}`),
  );
  assert.equal(opens.length, 1);
  thePage().turn.value += 1;
  await settle();
  assert.equal(opens.length, 2);
});

test('every view survives its permalink', () => {
  const trace = makeTrace();
  const next = random(11);
  const pick = (/** @type {any[]} */ list) => list[Math.floor(((next() + 1) / 2) * list.length)];
  for (let round = 0; round < 200; round++) {
    const change = {
      layer: pick([0, 1, 2]),
      head: pick([0, 4, 'mean', 'max', 'min']),
      query: pick(['class', 'register 0', 'pool', '3,5', '0,1;2,2']),
      direction: pick(['row', 'column']),
      scale: pick(['shared', 'layer', 'own']),
      clip: pick([true, false]),
      alpha: pick([0, 0.35, 0.65, 1]),
      table: pick(['viridis', 'magma', 'cividis', 'gray']),
      smooth: pick([true, false]),
      mask: pick([0, 0.6, 0.95]),
      norm: pick([true, false]),
      extremes: pick([true, false]),
    };
    const view = updateView(initialView(trace), change, trace);
    const place = placeAt('');
    const store = new Store(usualFields, place);
    keeperOf(store, () => true).keep(view, trace, { push: false, byUser: true });
    for (const search of [place.search(), `?${viewLink(view, trace)}`]) {
      const chosen = keeperOf(new Store(usualFields, placeAt(search)), () => true).chosen(trace);
      assert.deepEqual(updateView(initialView(trace), chosen, trace), view, search);
    }
  }
});
