// The header's parts: what they show of a view, and what they write into the link.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mountOpener } from '../../vit_viz/ui/kit/parts.js';
import { showFacts } from '../../vit_viz/web/header/facts.js';
import { Tray } from '../../vit_viz/web/header/pictures.js';
import { drawTop, percent } from '../../vit_viz/web/header/said.js';
import { showSizes } from '../../vit_viz/web/header/sizes.js';
import { showTop } from '../../vit_viz/web/header/top.js';
import { showTray } from '../../vit_viz/web/header/tray.js';
import { Browser, component, mount, parse, read } from './browser.js';
import { PROOF, SAMPLES, headerPage, later } from './header_page.js';

const OPENER = component(mountOpener, 'ui/kit/opener.html');
const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');
const expanded = (/** @type {any} */ node) => node.getAttribute('aria-expanded');

test('the facts stand behind the proof as plain text; while something is done the old ones stay', async (t) => {
  let answer = later();
  const { part, store } = headerPage(t, { answers: { facts: () => answer.promise } });
  const { find, element } = part(showFacts, 'facts');
  await answer.give({ card: 'ViT <b>', proof: PROOF });
  assert.deepEqual(texts(['model-facts', 'proof', 'proof-words'].map(find)), [
    'ViT <b>',
    'verified',
    'why <b>',
  ]);
  assert.equal(find('proof').dataset.state, 'proven');
  answer = later();
  store.look({ image: 'tower' });
  assert.ok(element.classList.contains('vv-busy'));
  assert.equal(find('model-facts').textContent, 'ViT <b>');
  await answer.give({ card: 'other' });
  assert.ok(!element.classList.contains('vv-busy'));
  assert.deepEqual([find('proof').textContent, find('proof').dataset.state], ['not verified', 'open']);
  assert.match(find('proof-words').textContent, /could not be checked/);
  answer = later();
  store.look({ image: 'lion' });
  await answer.refuse('No.');
  assert.ok(find('proof').hidden);
});

test('what a button opens is closed by the button, by Escape, by a press and by the focus elsewhere', async (t) => {
  const { part, browser, settle } = headerPage(t);
  const { find } = part(showFacts, 'facts');
  await settle();
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

test('a copied link says so, and for longer that the photo stays here where it is the visitor’s own', async (t) => {
  let own = false;
  const { part, browser, turn, settle } = headerPage(t, { answers: { facts: () => ({ card: 'ViT', own }) } });
  const { find } = part(showFacts, 'facts');
  await settle();
  find('share').click();
  await settle();
  assert.deepEqual([browser.copied, find('share').textContent], ['http://page/', 'Link copied']);
  browser.pass(2500);
  assert.equal(find('share').textContent, 'Copy link');
  own = true;
  turn.value += 1;
  await settle();
  find('share').click();
  await settle();
  browser.pass(5999);
  assert.equal(find('share').textContent, 'Copied, without your photo');
  assert.match(find('share').title, /photo stays here/);
  browser.pass(1);
  assert.equal(find('share').textContent, 'Copy link');
  browser.globals.navigator.clipboard.writeText = async () => Promise.reject(new Error('no'));
  find('share').click();
  await settle();
  assert.equal(find('share').textContent, 'See the address bar');
  find('help').click();
  assert.equal(find('help-words').hidden, false);
  browser.window.fire('keydown', { key: 'Escape' });
  assert.deepEqual([find('help-words').hidden, find('help').focused], [true, true]);
});

test('a visitor who is new is shown around, and one who has been may go around again', (t) => {
  const { part, browser } = headerPage(t);
  let begun = 0;
  browser.window.addEventListener('vv-tour', () => begun++);
  const { find } = part(showFacts, 'facts');
  assert.match(find('start').textContent, /^New here[?]/);
  find('start').click();
  assert.equal(begun, 1);
});

test('who has been shown around is offered the tour by its name', (t) => {
  const { part } = headerPage(t, { globals: { localStorage: { getItem: () => 'done' } } });
  assert.equal(part(showFacts, 'facts').find('start').textContent, 'Tour');
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

/** What stands in the line of the answers. @param {any} value */
function top(value) {
  const element = /** @type {any} */ (parse(read('../../vit_viz/web/header/top.html')));
  const set = (/** @type {any} */ next) => drawTop(element, next);
  set(value);
  return { element, set, find: (/** @type {string} */ name) => element.querySelector(`.vv-${name}`) };
}

test('the best classes have bars and percent, and a model without a head says so', (t) => {
  new Browser().install(t);
  const { element, set, find } = top({
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

test('of probabilities that are sigmoids it is said that each is a matter of its own', (t) => {
  new Browser().install(t);
  const { set, find } = top({ top: [{ name: 'a', probability: 0.7 }] });
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

test('what is being done names the picture; then the answers, or why there are none', async (t) => {
  let answer = later();
  const { part, store, settle } = headerPage(t, { answers: { facts: () => answer.promise } });
  const { find } = part(showTop, 'top');
  assert.equal(find('status').textContent, 'Running mini on the sample lion …');
  await answer.give({ top: [], notes: ['The link has no layer 99.'] });
  assert.equal(find('status').textContent.startsWith('The link has no layer 99.'), true);
  answer = later();
  store.look({ image: 'u9' });
  await settle();
  assert.equal(find('status').textContent, 'Running mini on your image …');
  await answer.refuse('This model takes no such photo.');
  assert.equal(find('error').firstChild.textContent, 'This model takes no such photo.');
});

test('the pictures of the visit are buttons with their names, and the chosen one is pressed', (t) => {
  new Browser().install(t);
  const { pictures, aspects } = SAMPLES;
  /** @type {string[]} */
  const chosen = [];
  const element = /** @type {any} */ (parse(read('../../vit_viz/web/header/tray.html')));
  const tray = new Tray(element, ({ id }) => void chosen.push(id));
  const shown = () => /** @type {any} */ (tray.box.children);
  tray.draw({ pictures, chosen: 'lion', aspects });
  const [lion, tower] = shown();
  assert.deepEqual([pressed(lion), pressed(tower)], ['true', 'false']);
  assert.deepEqual(
    [lion.children[0].src, lion.title, lion.getAttribute('aria-label')],
    ['data:lion', 'lion', 'Sample image lion'],
  );
  tower.click();
  assert.deepEqual(chosen, ['tower']);
  const scrolled = () => shown().map((/** @type {any} */ node) => node.scrolled);
  assert.deepEqual(scrolled(), [false, false]);
  const mine = { id: 'u1', name: 'my <b>', thumbnail: 'data:u1', own: true };
  tray.draw({ pictures: [...pictures, mine], chosen: 'u1', aspects });
  assert.deepEqual(shown().map(pressed), ['false', 'false', 'true']);
  assert.deepEqual(scrolled(), [false, false, true]); // it was chosen elsewhere: into sight
  assert.ok(shown()[0] === lion); // the same buttons: the focus stays
  assert.deepEqual(
    [shown()[2].title, shown()[2].getAttribute('aria-label')],
    ['my <b>', 'Your picture my <b>'],
  );
  tray.draw({ pictures: [...pictures, { ...mine, id: 'u2', name: 'other' }], chosen: '' });
  assert.deepEqual(
    shown().map((/** @type {any} */ node) => node.title),
    ['lion', 'tower', 'other'], // what is no longer kept has left
  );
});

test('a picture is looked at by its button; one that is gone leaves the tray, and the page stays', async (t) => {
  const own = { id: 'u1', name: 'mine', thumbnail: 'data:u1', own: true };
  let pictures = [...SAMPLES.pictures, own];
  const { part, store, place, header, settle } = headerPage(t, {
    answers: { tray: () => ({ ...SAMPLES, pictures }) },
  });
  const { find } = part(showTray, 'tray');
  const buttons = () => find('samples').children;
  assert.equal(buttons().length, 2); // what everybody has is there from the beginning
  await settle();
  buttons()[1].click();
  await settle();
  assert.deepEqual(place.written.at(-1), [{ image: 'tower' }, true]);
  assert.deepEqual(buttons().map(pressed), ['false', 'true', 'false']);
  buttons()[2].click();
  await settle();
  assert.equal(store.view.image.value, 'u1');
  store.look({ image: 'lion' });
  pictures = SAMPLES.pictures;
  buttons()[2].click();
  await settle();
  assert.deepEqual([store.view.image.value, buttons().length], ['lion', 2]);
  assert.match(header.problem.value, /not here any more/);
});

test('of a link to a picture that is not here the first one is shown, and what is brought takes its place', async (t) => {
  const { store, header, place, settle } = headerPage(t, {
    search: '?image=u7&size=9&layer=2',
    answers: {
      facts: ({ view }) => ({ awaits: view.includes('u7') }),
    },
  });
  await settle();
  assert.equal(header.image.value, 'lion');
  header.lookAt('u8');
  assert.deepEqual(place.written, [[{ image: 'u8' }, true]]);
  assert.deepEqual([store.view.size.value, store.view.layer.value], [9, 2]); // the rest of the link holds
  await settle();
  store.look({ image: 'tower', size: 5 });
  await settle();
  header.lookAt('u9');
  assert.deepEqual([store.view.image.value, store.view.size.value], ['u9', 0]);
});

test('sizes are offered with their cost, in the shape that is chosen; another shape keeps the size where it can', async (t) => {
  const offered = {
    fit: [
      ['4 x 6 patches', '0'],
      ['8 x 12 patches', '8'],
      ['480 px; stretched', 'dino'],
    ],
    crop: [['4 x 4 patches', '0']],
    stretch: [
      ['4 x 4 patches', '0'],
      ['8 x 8 patches', '8'],
    ],
  };
  const { part, store, place, settle } = headerPage(t, {
    answers: { facts: () => ({ sizes: { offered, cost: 'Up to 64.' } }) },
  });
  const { element, find } = part(showSizes, 'sizes');
  const radios = () => find('sizes-list').querySelectorAll('input');
  const listed = () => radios().map((/** @type {any} */ one) => [one.value, one.checked]);
  assert.deepEqual(listed(), [['0', true]]); // as long as nothing is known
  await settle();
  assert.deepEqual(listed(), [
    ['0', true],
    ['8', false],
    ['dino', false],
  ]);
  assert.equal(find('sizes-cost').textContent, 'Up to 64.');
  const [first] = radios();
  find('sizes-list').fire('change', { target: radios()[1] });
  assert.deepEqual(place.written.at(-1), [{ size: '8' }, true]);
  await settle();
  assert.equal(radios()[0], first); // the focus stays
  const shape = /** @type {any} */ (element.querySelector('select'));
  const choose = async (/** @type {string} */ mode) => {
    shape.value = mode;
    shape.fire('change');
    await settle();
  };
  await choose('stretch');
  assert.deepEqual([store.view.mode.value, store.view.size.value], ['stretch', 8]);
  await choose('crop');
  assert.deepEqual([store.view.mode.value, store.view.size.value], ['crop', 0]);
  await choose('fit');
  find('sizes-list').fire('change', { target: radios()[2] });
  assert.deepEqual([store.view.mode.value, store.view.size.value], ['stretch', 60]);
  await settle();
  assert.match(radios().at(-1).dataset.words, /not possible here/);
});
