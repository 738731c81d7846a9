// The small parts of the page, each run as Gradio runs it: what they show for a value, and what they tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fit, mountPlots } from '../../vit_viz/ui/kit/parts.js';
import { mount as mountAddress } from '../../vit_viz/ui/visit/address.js';
import { Browser, component, mount } from './browser.js';

const PLOTS = component(mountPlots, 'ui/kit/__init__.py#Plots');

// --- plots, address

/** A figure of plotly, shown larger by a factor. */
function drawnGraph(scale = 1) {
  const style = /** @type {Record<string, string>} */ ({});
  return /** @type {any} */ ({
    style,
    offsetHeight: 400,
    getBoundingClientRect: () => ({ height: scale * 400 }),
  });
}

test('a figure that is shown larger keeps what lies below it away', () => {
  const curve = drawnGraph(1.25);
  fit(curve);
  assert.deepEqual(curve.style, { marginBottom: '100px' });
});

test('every figure of the page is fitted once, also one that comes later', () => {
  const browser = new Browser();
  const graphs = /** @type {any[]} */ ([drawnGraph()]);
  /** @type {any[]} */
  const watched = [];
  let changed = () => {};
  const globals = /** @type {any} */ (browser.globals);
  globals.document.querySelectorAll = () => graphs;
  globals.document.body = {};
  globals.MutationObserver = class {
    constructor(/** @type {() => void} */ run) {
      changed = run;
    }

    observe() {}
  };
  globals.ResizeObserver = class {
    observe(/** @type {any} */ graph) {
      watched.push(graph);
    }
  };
  mount(PLOTS, null, { browser });
  assert.deepEqual(watched, graphs);
  graphs.push(drawnGraph());
  changed();
  changed();
  assert.deepEqual(watched, graphs);
});

const ADDRESS = component(mountAddress, 'ui/kit/__init__.py#Address');

test('a tab says what the address holds when it opens and on Back, and nothing else', () => {
  const browser = new Browser('?model=mini');
  const { told } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(0);
  browser.location.search = '?model=other';
  browser.window.fire('popstate');
  assert.deepEqual(told, [
    ['arrive', { search: '?model=mini', told: 0, arrival: 1 }],
    ['arrive', { search: '?model=other', told: 0, arrival: 2 }],
  ]);
});

test('an arrival without an answer is told again, each time after twice as long, and four times at most', () => {
  const browser = new Browser('?model=mini');
  const { told } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(7999);
  assert.equal(told.length, 1);
  browser.pass(1);
  assert.equal(told.length, 2);
  browser.pass(15_999);
  assert.equal(told.length, 2);
  browser.pass(600_000);
  assert.deepEqual(
    told,
    [1, 2, 3, 4].map((arrival) => ['arrive', { search: '?model=mini', told: 0, arrival }]),
  );
});

test('an arrival that was answered is not told again', () => {
  const browser = new Browser('?model=mini');
  const { told, set } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(5000);
  set({ set: {}, push: false });
  browser.pass(600_000);
  assert.equal(told.length, 1);
});

test('the address is written where it changes, and what is null leaves it', () => {
  const browser = new Browser('?model=mini&mode=crop&x=1');
  const { set } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  set({ set: { mode: null, q: '1,2;3,4' }, push: true });
  set({ set: { q: '1,2;3,4' }, push: true });
  set({ set: { model: null, q: null, x: null }, push: false });
  set(null);
  assert.deepEqual(browser.visited, [
    { how: 'push', address: '?model=mini&x=1&q=1,2;3,4#here' },
    { how: 'replace', address: '/app#here' },
  ]);
});

test('a change that was made before the module was there is written first, and then the page arrives', () => {
  const browser = new Browser('?model=mini');
  const { told } = mount(
    ADDRESS,
    { set: { image: 'tower' }, push: true },
    { browser, props: { fields: '[]' } },
  );
  browser.pass(0);
  assert.deepEqual(browser.visited, [{ how: 'push', address: '?model=mini&image=tower#here' }]);
  assert.deepEqual(told, [['arrive', { search: '?model=mini&image=tower', told: 0, arrival: 1 }]]);
});
