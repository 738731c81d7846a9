// The small parts of the page, each run as Gradio runs it: what they show for a value, and what they tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Browser, mount } from './browser.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

// --- what is explained

const AIM = '../../vit_viz/ui/parts/aim.js';
const classes = [
  { index: 4, name: 'lion', probability: 0.9 },
  { index: 7, name: '<b>', probability: 0.04567 },
  { index: 2, name: 'cat', probability: null },
];

test('classes are chips; the chosen one cannot be set against itself', () => {
  const { find, told, element } = mount(AIM, { classes, chosen: 7, other: 4, words: 'why <b>' });
  assert.deepEqual(texts(find('why').children), ['lion0.90', '<b>0.05', 'cat']);
  assert.deepEqual(find('why').children.map(pressed), ['false', 'true', 'false']);
  assert.deepEqual(texts(find('unlike').children), ['nothing in particular', 'lion0.90', 'cat']);
  assert.deepEqual(find('unlike').children.map(pressed), ['false', 'true', 'false']);
  assert.equal(/** @type {any} */ (find('why').children[1]).title, '<b>, probability 0.0457');
  assert.equal(/** @type {any} */ (find('why').children[2]).title, 'cat');
  assert.equal(find('aim-words').textContent, 'why <b>');
  find('why').children[0].click();
  find('unlike').children[0].click();
  find('unlike').children[2].click();
  assert.deepEqual(told, [
    ['why', { index: 4 }],
    ['unlike', { index: null }],
    ['unlike', { index: 2 }],
  ]);
  assert.deepEqual(
    element.querySelectorAll('.vv-aim-row').map((row) => row.hidden),
    [false, false],
  );
});

test('without classes there is nothing to choose, without another class nothing in particular is', () => {
  const { find, element, set } = mount(AIM, { classes: [] });
  assert.deepEqual(
    element.querySelectorAll('.vv-aim-row').map((row) => row.hidden),
    [true, true],
  );
  set({ classes, chosen: 4, other: null });
  assert.deepEqual(find('unlike').children.map(pressed), ['true', 'false', 'false']);
  assert.equal(find('aim-words').textContent, '');
});

test('a search asks once the hand rests and shows the newest answer only', () => {
  const { find, told, browser, set } = mount(AIM, { classes, chosen: 4, other: null });
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
  set({ seq: 1, hits: [] }, 'found');
  assert.ok(find('hits').hidden);
  set({ seq: 2, hits: [{ index: 9, name: 'tiger' }] }, 'found');
  assert.ok(!find('hits').hidden);
  const [hit] = find('hits').children;
  assert.deepEqual(texts(hit.children), ['tiger', 'why', 'and not']);
  assert.equal(/** @type {any} */ (hit.children[0]).title, 'class 9');
  hit.children[2].click();
  assert.deepEqual(told[2], ['unlike', { index: 9 }]);
  assert.deepEqual([search.value, find('hits').hidden], ['', true]); // the click reaches the line
});

test('nothing found is said, Enter takes the first hit, Escape closes, an empty search asks nothing', () => {
  const { find, told, browser, set } = mount(AIM, { classes, chosen: 4, other: null });
  const search = find('search');
  const ask = (/** @type {any[]} */ hits, seq = 1) => {
    search.value = 'x';
    search.fire('input');
    browser.pass(150);
    set({ seq, hits }, 'found');
  };
  ask([]);
  assert.equal(find('hits').textContent, 'No class has this name.');
  search.fire('keydown', { key: 'Enter' });
  search.fire('keydown', { key: 'Escape' });
  assert.ok(find('hits').hidden);
  ask([{ index: 9, name: 'tiger' }], 2);
  search.fire('keydown', { key: 'a' });
  assert.ok(!find('hits').hidden);
  search.fire('keydown', { key: 'Escape' });
  search.fire('keydown', { key: 'Enter' }); // closed: nothing is chosen
  assert.equal(told.length, 2);
  ask([{ index: 9, name: 'tiger' }], 3);
  search.fire('keydown', { key: 'Enter' });
  assert.deepEqual(told.at(-1), ['why', { index: 9 }]);
  search.value = '  ';
  search.fire('input');
  browser.pass(500);
  assert.equal(told.length, 4);
});

// --- facts, top, samples, loading, meter, plot clicks, address

test('facts are plain text; while something is done the old card stays', async () => {
  const part = mount('../../vit_viz/ui/parts/facts.js', {
    card: 'ViT <b>',
    notes: ['one', 'two'],
    proof: { text: 'proof ok', title: 'why', state: 'proven' },
    error: '',
  });
  const { find, set, element, browser } = part;
  assert.deepEqual(texts(['card', 'status', 'proof'].map(find)), ['ViT <b>', 'one two', 'proof ok']);
  assert.deepEqual(
    [find('proof').dataset.state, /** @type {any} */ (find('proof')).title],
    ['proven', 'why'],
  );
  assert.deepEqual(
    ['status', 'error', 'proof'].map((n) => find(n).hidden),
    [false, true, false],
  );
  set({ busy: 'Loading', card: 'other' });
  assert.ok(element.classList.contains('vv-busy'));
  assert.deepEqual(texts(['card', 'status'].map(find)), ['ViT <b>', 'Loading']);
  set({ card: 'other', error: 'No.', proof: null });
  assert.deepEqual(
    [find('proof').hidden, find('error').textContent, find('error').hidden, find('status').hidden],
    [true, 'No.', false, true],
  );
  find('share').click();
  await Promise.resolve();
  assert.deepEqual([browser.copied, find('share').textContent], ['http://page/', 'Link copied']);
  browser.pass(2500);
  assert.equal(find('share').textContent, 'Copy link');
  part.browser.globals.navigator.clipboard.writeText = async () => Promise.reject(new Error('no'));
  find('share').click();
  await new Promise((done) => setImmediate(done));
  assert.equal(find('share').textContent, 'See the address bar');
});

test('the best classes have bars, and a model without a head says so', () => {
  const { element, set, find } = mount('../../vit_viz/ui/parts/top.js', {
    top: [{ name: '<i>', probability: 0.256 }],
  });
  const [line] = element.querySelectorAll('li');
  assert.deepEqual([...texts(line.children), line.style['--share']], ['<i>', '0.26', '25.6%']);
  assert.ok(find('nothing').hidden);
  set({ busy: true });
  assert.equal(element.querySelectorAll('li').length, 1);
  set({ top: [] });
  assert.deepEqual(
    [find('nothing').hidden, find('nothing').textContent.startsWith('This model has no class head')],
    [false, true],
  );
  set({ error: 'No.' });
  assert.ok(find('nothing').hidden);
});

test('samples are buttons, and the chosen one is pressed', () => {
  const samples = ['lion', 'tower'].map((name) => ({ name, thumbnail: `data:${name}` }));
  const { find, set, told } = mount('../../vit_viz/ui/parts/samples.js', { samples, chosen: 'lion' });
  const [lion, tower] = find('samples').children;
  assert.deepEqual([pressed(lion), pressed(tower)], ['true', 'false']);
  assert.deepEqual(
    [lion.children[0].src, /** @type {any} */ (lion).title, lion.getAttribute('aria-label')],
    ['data:lion', 'lion', 'Sample image lion'],
  );
  tower.click();
  assert.deepEqual(told, [['choose', { name: 'tower' }]]);
  set({ samples, chosen: 'tower' });
  assert.deepEqual([pressed(lion), pressed(tower)], ['false', 'true']);
  assert.ok(find('samples').children[0] === lion); // the same buttons: the focus stays
  set({ samples: samples.slice(1), chosen: '' });
  assert.deepEqual(find('samples').children.map(pressed), ['false']);
});

test('a model on its way says how far it is, and can be stopped once', () => {
  const { find, set, told } = mount('../../vit_viz/ui/parts/loading.js', {
    words: 'Loading x',
    amount: '3 of 9 MB',
    share: 0.3,
    stop: true,
  });
  assert.deepEqual(texts(['job-words', 'job-amount'].map(find)), ['Loading x', '3 of 9 MB']);
  assert.deepEqual(
    ['job', 'progress', 'stop', 'error'].map((n) => find(n).hidden),
    [false, false, false, true],
  );
  assert.equal(find('progress').value, 0.3);
  find('stop').click();
  assert.deepEqual([told, find('stop').disabled], [[['stop', {}]], true]);
  set({ words: 'Loading y', error: 'No.' });
  assert.deepEqual(
    [find('stop').disabled, find('stop').hidden, find('progress').hidden, find('progress').value],
    [false, true, true, 0],
  );
  assert.deepEqual(
    [find('error').textContent, find('error').hidden, find('job-amount').textContent],
    ['No.', false, ''],
  );
  set(null);
  assert.deepEqual([find('job').hidden, find('job-words').textContent], [true, '']);
});

test('a meter starts something long once, says how far it is, and ends it', () => {
  const { find, set, told } = mount('../../vit_viz/ui/parts/meter.js', null);
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

test('the clicked point of a figure is told, also after it was drawn again, once', () => {
  const browser = new Browser();
  /** @type {any[]} */
  const heard = [];
  const figure = () => ({
    on: (/** @type {string} */ name, /** @type {any} */ run) => void heard.push([name, run]),
  });
  let graph = /** @type {any} */ (null);
  let changed = () => {};
  const globals = /** @type {any} */ (browser.globals);
  globals.document.getElementById = (/** @type {string} */ id) =>
    id === 'vv-plot' ? { querySelector: () => graph } : null;
  globals.document.body = {};
  globals.MutationObserver = class {
    constructor(/** @type {() => void} */ run) {
      changed = run;
    }

    observe() {}
  };
  const { told } = mount('../../vit_viz/ui/parts/plot_clicks.js', { plot: 'vv-plot' }, { browser });
  graph = figure();
  changed();
  changed();
  assert.deepEqual(
    heard.map(([name]) => name),
    ['plotly_click'],
  );
  heard[0][1]({ points: [{ x: 1, y: 2, customdata: Float32Array.of(3, 4) }] });
  heard[0][1]({ points: [{ x: 5, y: 6 }] });
  assert.deepEqual(told, [
    ['point', { x: 1, y: 2, data: [3, 4] }],
    ['point', { x: 5, y: 6, data: [] }],
  ]);
  graph = figure();
  changed();
  assert.equal(heard.length, 2);
});

const ADDRESS = '../../vit_viz/ui/parts/address.js';

test('a tab says what the address holds when it opens and on Back, under a name of its own', () => {
  const browser = new Browser('?model=mini');
  const { told } = mount(ADDRESS, null, { browser });
  browser.pass(0);
  browser.location.search = '?model=other';
  browser.window.fire('popstate');
  const owner = told[0][1].owner;
  assert.match(owner, /^[0-9a-f]{48}$/);
  assert.deepEqual(told, [
    ['arrive', { owner, search: '?model=mini' }],
    ['arrive', { owner, search: '?model=other' }],
  ]);
  const again = mount(ADDRESS, null, { browser });
  browser.pass(0);
  assert.equal(again.told[0][1].owner, owner); // a reload of the same tab
  const other = mount(ADDRESS, null);
  other.browser.pass(0);
  assert.notEqual(other.told[0][1].owner, owner);
});

test('a tab without storage has a name all the same', () => {
  const browser = new Browser();
  /** @type {any} */ (browser.globals.sessionStorage).setItem = () => {
    throw new Error('forbidden');
  };
  const { told } = mount(ADDRESS, null, { browser });
  browser.pass(0);
  assert.match(told[0][1].owner, /^[0-9a-f]{48}$/);
});

test('the address is written where it changes, and what is null leaves it', () => {
  const browser = new Browser('?model=mini&mode=crop&x=1');
  const { set } = mount(ADDRESS, null, { browser });
  set({ set: { mode: null, q: '1,2;3,4' }, push: true });
  set({ set: { q: '1,2;3,4' }, push: true });
  set({ set: { model: null, q: null, x: null }, push: false });
  set(null);
  assert.deepEqual(browser.visited, [
    { how: 'push', address: '/app?model=mini&x=1&q=1,2;3,4' },
    { how: 'replace', address: '/app' },
  ]);
});
