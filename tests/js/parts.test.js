// The small parts of the page, each run as Gradio runs it: what they show for a value, and what they tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount as mountTarget } from '../../vit_viz/ui/explain/target.js';
import { mountMeter } from '../../vit_viz/ui/explain/gallery.js';
import { fit, mountPlots } from '../../vit_viz/ui/kit/parts.js';
import { mount as mountAddress } from '../../vit_viz/ui/visit/address.js';
import { Browser, component, mount } from './browser.js';

const METER = component(mountMeter, 'ui/kit/__init__.py#Meter');
const PLOTS = component(mountPlots, 'ui/kit/__init__.py#Plots');
const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

// --- what is explained

const TARGET = component(mountTarget, 'ui/explain/target.html');
const classes = [
  { index: 4, name: 'lion', probability: 0.9 },
  { index: 7, name: '<b>', probability: 0.04567 },
  { index: 2, name: 'cat', probability: null },
];

const settled = () => new Promise((done) => setImmediate(done));

test('classes are chips; the chosen one cannot be set against itself', () => {
  const { find, told, element } = mount(TARGET, { classes, chosen: 7, other: 4, words: 'why <b>' });
  assert.deepEqual(texts(find('why').children), ['lion90%', '<b>4.6%', 'cat']);
  assert.deepEqual(find('why').children.map(pressed), ['false', 'true', 'false']);
  assert.deepEqual(texts(find('unlike').children), ['lion', 'cat', 'compared with nothing']);
  assert.deepEqual(find('unlike').children.map(pressed), ['true', 'false', 'false']);
  assert.equal(/** @type {any} */ (find('why').children[1]).title, '<b>, probability 0.0457');
  assert.equal(/** @type {any} */ (find('why').children[2]).title, 'cat');
  assert.equal(find('target-words').textContent, 'why <b>');
  find('why').children[0].click();
  find('unlike').children[0].click();
  find('unlike').children[2].click();
  assert.deepEqual(told, [
    ['why', { index: 4 }],
    ['unlike', { index: 4 }],
    ['unlike', { index: null }],
  ]);
  assert.deepEqual(
    element.querySelectorAll('.vv-target-row').map((row) => row.hidden),
    [false, false],
  );
});

test('without classes there is nothing to choose, without another class it is compared with nothing', () => {
  const { find, element, set } = mount(TARGET, { classes: [] });
  assert.deepEqual(
    element.querySelectorAll('.vv-target-row').map((row) => row.hidden),
    [true, true],
  );
  set({ classes, chosen: 4, other: null });
  assert.deepEqual(find('unlike').children.map(pressed), ['false', 'false', 'true']);
  assert.equal(find('target-words').textContent, '');
  assert.ok(find('target-words').hidden);
});

test('a search asks once the hand rests and shows the newest answer only', async () => {
  const { find, told, browser, set } = mount(TARGET, { classes, chosen: 4, other: null });
  const search = find('search');
  const type = (/** @type {string} */ text) => {
    search.value = text;
    search.fire('input');
  };
  type(' ti');
  browser.pass(149);
  type(' tig ');
  browser.pass(149);
  assert.deepEqual(told, []);
  browser.pass(1);
  assert.deepEqual(told, [['search', { text: 'tig', seq: 1 }]]);
  type('x'.repeat(200));
  browser.pass(150);
  assert.deepEqual(told[1][1], { text: 'x'.repeat(100), seq: 2 });
  set({ seq: 1, hits: [] }, 'matches');
  await settled();
  assert.ok(find('hits').hidden);
  set({ seq: 2, hits: [{ index: 9, name: 'tiger' }] }, 'matches');
  await settled();
  assert.ok(!find('hits').hidden);
  const [hit] = find('hits').children;
  assert.deepEqual(texts(hit.children), ['tiger', 'why', 'and not']);
  assert.equal(/** @type {any} */ (hit.children[0]).title, 'class 9');
  hit.children[2].click();
  assert.deepEqual(told[2], ['unlike', { index: 9 }]);
  assert.deepEqual([search.value, find('hits').hidden], ['', true]); // the click reaches the line
});

test('nothing found is said, Enter takes the first hit, Escape closes, an empty search asks nothing', async () => {
  const { find, told, browser, set } = mount(TARGET, { classes, chosen: 4, other: null });
  const search = find('search');
  const ask = async (/** @type {any[]} */ hits, seq = 1) => {
    search.value = 'x';
    search.fire('input');
    browser.pass(150);
    set({ seq, hits }, 'matches');
    await settled();
  };
  await ask([]);
  assert.equal(find('hits').textContent, 'No class has this name.');
  search.fire('keydown', { key: 'Enter' });
  search.fire('keydown', { key: 'Escape' });
  assert.ok(find('hits').hidden);
  await ask([{ index: 9, name: 'tiger' }], 2);
  search.fire('keydown', { key: 'a' });
  assert.ok(!find('hits').hidden);
  search.fire('keydown', { key: 'Escape' });
  search.fire('keydown', { key: 'Enter' }); // closed: nothing is chosen
  assert.equal(told.length, 2);
  await ask([{ index: 9, name: 'tiger' }], 3);
  search.fire('keydown', { key: 'Enter' });
  assert.deepEqual(told.at(-1), ['why', { index: 9 }]);
  search.value = '  ';
  search.fire('input');
  browser.pass(500);
  assert.equal(told.length, 4);
});

test('hits close where the field is left, and an answer that comes after that opens nothing', async () => {
  const { find, browser, set } = mount(TARGET, { classes, chosen: 4, other: null });
  const [search, box] = [find('search'), find('search-box')];
  const type = () => {
    search.value = 'x';
    search.fire('input');
    browser.pass(150);
  };
  type();
  set({ seq: 1, hits: [{ index: 9, name: 'tiger' }] }, 'matches');
  await settled();
  const choice = find('hits').querySelector('button');
  box.fire('focusout', { relatedTarget: choice });
  assert.ok(!find('hits').hidden); // to a button of the list: still inside
  assert.ok(find('hits').fire('mousedown').prevented);
  box.fire('focusout', { relatedTarget: null });
  assert.ok(find('hits').hidden);
  type();
  box.fire('focusout', { relatedTarget: find('why') });
  set({ seq: 2, hits: [] }, 'matches');
  await settled();
  assert.ok(find('hits').hidden);
  type();
  set({ seq: 3, hits: [] }, 'matches');
  await settled();
  assert.equal(find('hits').textContent, 'No class has this name.');
  search.value = '';
  search.fire('input');
  assert.ok(find('hits').hidden);
});

// --- meter, plot clicks, address

test('a meter starts something long once, says how far it is, and ends it', () => {
  const { find, set, told } = mount(METER, null);
  assert.deepEqual(
    [find('go').textContent, find('go').hidden, find('progress').hidden, find('stop').hidden],
    ['Start', false, true, true],
  );
  find('go').click();
  assert.deepEqual([told, find('go').disabled], [[['start', {}]], true]);
  set({ share: 0, words: 'running', label: 'Go' });
  assert.deepEqual(
    [find('go').hidden, find('go').disabled, find('progress').hidden, find('stop').hidden],
    [true, false, false, false],
  );
  assert.deepEqual(
    [find('go').textContent, find('job-words').textContent, find('progress').value],
    ['Go', 'running', 0],
  );
  find('stop').click();
  assert.deepEqual(told[1], ['stop', {}]);
  set({ error: 'No.', words: 'x', share: null });
  assert.deepEqual([find('job-words').textContent, find('go').hidden], ['No.', false]);
});

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
