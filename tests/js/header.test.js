// The header's parts, each run as Gradio runs it: what they show for a value, and what they tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount as mountFacts } from '../../vit_viz/ui/header/facts.js';
import { mountTop, percent, mountSamples, mountLoading, showTab } from '../../vit_viz/ui/header/parts.js';
import { mountOpener } from '../../vit_viz/ui/kit/parts.js';
import { Browser, component, mount, parse } from './browser.js';

const OPENER = component(mountOpener, 'ui/kit/__init__.py#Opener');
const FACTS = component(mountFacts, 'ui/header/facts.html');
const TOP = component(mountTop, 'ui/header/top.html');
const SAMPLES = component(mountSamples, 'ui/header/samples.html');
const LOADING = component(mountLoading, 'ui/kit/__init__.py#Loading');
const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');
const PROOF = { text: 'verified', title: 'why <b>', state: 'proven' };
const expanded = (/** @type {any} */ node) => node.getAttribute('aria-expanded');

test('the facts stand behind the proof as plain text; while something is done the old ones stay', () => {
  const { find, set, element } = mount(FACTS, { card: 'ViT <b>', proof: PROOF });
  assert.deepEqual(texts(['model-facts', 'proof', 'proof-words'].map(find)), [
    'ViT <b>',
    'verified',
    'why <b>',
  ]);
  assert.equal(find('proof').dataset.state, 'proven');
  set({ busy: 'Loading', card: 'other' });
  assert.ok(element.classList.contains('vv-busy'));
  assert.equal(find('model-facts').textContent, 'ViT <b>');
  set({ card: 'other', proof: null });
  assert.deepEqual([find('proof').textContent, find('proof').dataset.state], ['not verified', 'open']);
  assert.match(find('proof-words').textContent, /could not be checked/);
  set({ error: 'No.' });
  assert.ok(find('proof').hidden);
});

test('what a button opens is closed by the button, by Escape, by a press and by the focus elsewhere', () => {
  const { find, browser } = mount(FACTS, { card: 'ViT', proof: PROOF });
  const [button, panel] = [find('proof'), find('details')];
  const state = () => [expanded(button), panel.hidden];
  const [open, closed] = [
    ['true', false],
    ['false', true],
  ];
  assert.deepEqual(state(), closed);
  button.click();
  assert.deepEqual(state(), open);
  browser.window.fire('pointerdown', { target: find('proof-words') });
  assert.deepEqual(state(), open);
  browser.window.fire('keydown', { key: 'a' });
  assert.deepEqual(state(), open);
  button.click();
  assert.deepEqual(state(), closed);
  for (const [event, more] of /** @type {const} */ ([
    ['keydown', { key: 'Escape' }],
    ['pointerdown', { target: find('share') }],
    ['focusin', { target: find('share') }],
  ])) {
    button.click();
    browser.window.fire(event, more);
    assert.deepEqual(state(), closed, event);
  }
});

test('a copied link says so, and that the photo stays here where it is the visitor’s own', async () => {
  const { find, set, browser } = mount(FACTS, { card: 'ViT', proof: PROOF });
  find('share').click();
  await Promise.resolve();
  assert.deepEqual([browser.copied, find('share').textContent], ['http://page/', 'Link copied']);
  browser.pass(2500);
  assert.equal(find('share').textContent, 'Copy link');
  set({ card: 'ViT', proof: PROOF, own: true });
  find('share').click();
  await Promise.resolve();
  assert.equal(find('share').textContent, 'Copied, without your photo');
  assert.match(/** @type {any} */ (find('share')).title, /photo stays here/);
  browser.globals.navigator.clipboard.writeText = async () => Promise.reject(new Error('no'));
  find('share').click();
  await new Promise((done) => setImmediate(done));
  assert.equal(find('share').textContent, 'See the address bar');
});

test('a visitor who is new is shown around, and one who has been may go around again', () => {
  const browser = new Browser();
  let begun = 0;
  browser.window.addEventListener('vv-tour', () => begun++);
  const { find } = mount(FACTS, { card: 'ViT', proof: PROOF }, { browser });
  assert.match(find('start').textContent, /^New here[?]/);
  find('start').click();
  assert.equal(begun, 1);
  const seen = new Browser();
  Object.assign(seen.globals, { localStorage: { getItem: () => 'done' } });
  assert.equal(
    mount(FACTS, { card: 'ViT', proof: PROOF }, { browser: seen }).find('start').textContent,
    'Tour',
  );
});

test('an opener shows a part of the page that stands elsewhere, and a new value closes it', () => {
  const browser = new Browser();
  const panel = parse('<div></div>');
  /** @type {any} */ (browser.globals.document).getElementById = (/** @type {string} */ id) =>
    id === 'vv-size' ? panel : null;
  const value = { words: 'Size', label: 'Size of the photo', panel: 'vv-size' };
  const { find, set } = mount(OPENER, value, { browser });
  const button = find('opener');
  assert.deepEqual([button.textContent, button.getAttribute('aria-label')], ['Size', 'Size of the photo']);
  button.click();
  assert.ok(panel.classList.contains('vv-opened'));
  set({ ...value, revision: 2 });
  assert.ok(!panel.classList.contains('vv-opened'));
  set({ ...value, panel: 'nowhere' });
  button.click();
  assert.equal(expanded(button), 'false');
});

test('the best classes have bars and percent, and a model without a head says so', () => {
  const { element, set, find } = mount(TOP, {
    notes: ['one', 'two'],
    top: [
      { name: '<i>', probability: 0.256 },
      { name: 'b', probability: 0.004 },
    ],
  });
  const [line, other] = element.querySelectorAll('li');
  assert.deepEqual(
    [...texts(line.children), line.style.getPropertyValue('--bar')],
    ['<i>', '26%', `${112 * 0.256}px`],
  );
  assert.equal(other.style.getPropertyValue('--bar'), '2px'); // still to be seen
  assert.deepEqual([find('nothing').hidden, find('says').hidden], [true, false]);
  assert.deepEqual([find('status').textContent, find('error').hidden], ['one two', true]);
  set({ busy: 'Running <b>' });
  assert.equal(element.querySelectorAll('li').length, 2);
  assert.deepEqual(
    [find('status').textContent, element.classList.contains('vv-busy')],
    ['Running <b>', true],
  );
  set({ top: [] });
  assert.deepEqual(
    [
      find('nothing').hidden,
      find('nothing').textContent.startsWith('This model has no class head'),
      find('says').hidden,
    ],
    [false, true, true],
  );
  set({ error: 'No.' });
  assert.deepEqual(
    [find('nothing').hidden, find('error').textContent, find('status').hidden],
    [true, 'No.', true],
  );
});

test('of probabilities that are sigmoids it is said that each is a matter of its own', () => {
  const { set, find } = mount(TOP, { top: [{ name: 'a', probability: 0.7 }] });
  const said = () => [find('says').textContent, find('top').getAttribute('aria-label'), find('says').title];
  assert.deepEqual(said(), ['The model says', 'Most probable classes with their probability', '']);
  set({ top: [{ name: 'a', probability: 0.7, alone: true }] });
  const [says, meaning, title] = said();
  assert.equal(says, 'The model says, of each by itself');
  assert.match(meaning, /each with a probability of its own/);
  assert.match(title, /do not sum to 100%/);
  set({ top: [{ name: 'a', value: -2 }] });
  assert.deepEqual(said(), ['The model says', 'Values that the model returns, the largest first', '']);
});

test('a probability is never said to be all or nothing where it is not', () => {
  const shares = [1, 0.9999, 0.996, 0.964, 0.03, 0.0034, 0.0004, 0];
  assert.deepEqual(shares.map(percent), ['100%', '>99.9%', '99.6%', '96%', '3%', '0.3%', '<0.1%', '0%']);
});

test('the pictures of the visit are buttons with their names, and the chosen one is pressed', () => {
  const pictures = ['lion', 'tower'].map((name) => ({ id: name, name, thumbnail: `data:${name}` }));
  const aspects = { lion: 1, tower: 0.5, u1: 3 };
  const { find, set, told } = mount(SAMPLES, { pictures, chosen: 'lion', aspects });
  const shown = () => find('samples').children;
  const [lion, tower] = shown();
  assert.deepEqual([pressed(lion), pressed(tower)], ['true', 'false']);
  assert.deepEqual(
    [lion.children[0].src, /** @type {any} */ (lion).title, lion.getAttribute('aria-label')],
    ['data:lion', 'lion', 'Sample image lion'],
  );
  tower.click();
  assert.deepEqual(told, [['choose', { id: 'tower' }]]);
  const mine = { id: 'u1', name: 'my <b>', thumbnail: 'data:u1', own: true };
  set({ pictures: [...pictures, mine], chosen: 'u1', aspects });
  assert.deepEqual(shown().map(pressed), ['false', 'false', 'true']);
  assert.ok(shown()[0] === lion); // the same buttons: the focus stays
  assert.deepEqual(
    [/** @type {any} */ (shown()[2]).title, shown()[2].getAttribute('aria-label')],
    ['my <b>', 'Your picture my <b>'],
  );
  set({ pictures: [...pictures, { ...mine, id: 'u2', name: 'other' }], chosen: '' });
  assert.deepEqual(
    shown().map((node) => /** @type {any} */ (node).title),
    ['lion', 'tower', 'other'], // what is no longer kept has left
  );
});

test('a model on its way says how far it is, and can be stopped once', () => {
  const { find, set, told } = mount(LOADING, {
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

test('the chosen tab is moved into sight, and the row no further than that', () => {
  const row = /** @type {any} */ (
    parse('<div><b aria-selected="false"></b><i aria-selected="true"></i></div>')
  );
  const tab = row.querySelector('i');
  row.box = { left: 10, top: 0, width: 300, height: 40 };
  row.scrollLeft = 50;
  const shownAt = (/** @type {number} */ left) => {
    tab.box = { left, top: 0, width: 80, height: 40 };
    showTab(row);
    return row.scrollLeft;
  };
  assert.deepEqual([10, 230, 290, -20].map(shownAt), [50, 50, 138, 80]); // 28 more, so that the next one is seen
  tab.setAttribute('aria-selected', 'false');
  assert.equal(shownAt(900), 80);
});
