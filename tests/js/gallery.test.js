// The maps of all methods side by side, as Gradio runs them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Browser, mount } from './browser.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

const GALLERY = '../../vit_viz/ui/parts/gallery.js';
const map = (/** @type {string} */ caption) => ({
  caption,
  bar: { low: '0', high: '1', stops: ['red', 'blue'] },
});
const cards = {
  turn: 1,
  key: 'k',
  ruler: 'own',
  cards: [
    {
      name: 'rollout',
      label: 'Rollout',
      blind: true,
      chosen: true,
      map: map('a rollout'),
      src: '/r.png',
      save: '/r?save',
      ratio: 1.5,
      options: 'o',
    },
    {
      name: 'relevance',
      label: 'Relevance',
      map: map('a relevance'),
      src: '/l.png',
      save: '/l?save',
      ratio: 1.5,
      options: 'o',
    },
    {
      name: 'shap',
      label: 'Shap',
      slow: true,
      words: 'takes long',
      src: '/s.png',
      save: '/s?save',
      ratio: 1.5,
      options: 'o',
    },
  ],
};
const score = (/** @type {number} */ area, better = true) => ({
  area,
  low: 0.1,
  high: 0.3,
  mean: 0.2,
  better,
  text: String(area),
  title: 'area',
});
const known = {
  options: 'o',
  verdict: 'above chance',
  says: 'says',
  better: true,
  numbers: 'n',
  deletion: score(0.4),
  insertion: score(0.05, false),
};
const card = (/** @type {any} */ part, /** @type {string} */ name) =>
  part.find('cards').children.find((/** @type {any} */ c) => c.dataset.method === name);
const inside = (/** @type {any} */ node, /** @type {string} */ name) => node.querySelector(`.vv-${name}`);

test('a gallery has a card per method: a map, or how to get one', () => {
  const part = mount(GALLERY, cards);
  assert.deepEqual(
    part.find('cards').children.map((c) => c.dataset.method),
    ['rollout', 'relevance', 'shap'],
  );
  assert.deepEqual(
    [part.find('gallery-wait').hidden, part.find('cards').hidden, part.find('gallery-head').hidden],
    [true, false, false],
  );
  const rollout = card(part, 'rollout');
  assert.ok(rollout.classList.contains('vv-chosen') && rollout.classList.contains('vv-busy'));
  const image = inside(rollout, 'card-image');
  assert.deepEqual([image.src, image.alt, image.style.aspectRatio], ['/r.png', 'a rollout', '1.5']);
  image.onload();
  assert.ok(!rollout.classList.contains('vv-busy'));
  assert.deepEqual(
    texts(['card-name', 'tag', 'low', 'high', 'card-caption'].map((n) => inside(rollout, n))),
    ['Rollout', 'class-blind', '0', '1', 'a rollout'],
  );
  assert.equal(inside(rollout, 'strip').style.background, 'linear-gradient(to right, red, blue)');
  assert.equal(inside(rollout, 'save').href, '/r?save');
  assert.deepEqual(
    ['open', 'bar', 'card-links', 'blank', 'trust', 'tag'].map((n) => inside(rollout, n).hidden),
    [false, false, false, true, true, false],
  );
  assert.deepEqual(
    [pressed(inside(rollout, 'open')), pressed(inside(card(part, 'relevance'), 'open'))],
    ['true', 'false'],
  );
  assert.ok(inside(card(part, 'relevance'), 'tag').hidden);
  const shap = card(part, 'shap');
  assert.deepEqual(
    ['open', 'bar', 'card-links', 'blank', 'progress', 'stop'].map((n) => inside(shap, n).hidden),
    [true, true, true, false, true, true],
  );
  assert.deepEqual(texts(['blank-words', 'go', 'card-caption'].map((n) => inside(shap, n))), [
    'takes long',
    'Compute',
    '',
  ]);
  assert.equal(inside(shap, 'blank').style.aspectRatio, '1.5');
  assert.equal(inside(shap, 'go').getAttribute('aria-label'), 'Compute Shap');
});

test('a slow method says how far it is, and shows its map in the end; news of another picture are left aside', () => {
  const part = mount(GALLERY, cards);
  const shap = card(part, 'shap');
  inside(shap, 'go').click();
  assert.deepEqual(part.told, [['compute', { method: 'shap', key: 'k' }]]);
  part.set({ key: 'other', method: 'shap', share: 0.5, words: 'half' }, 'slow_1');
  assert.ok(inside(shap, 'progress').hidden);
  part.set({ key: 'k', method: 'shap', share: 0.5, words: 'half' }, 'slow_1');
  assert.deepEqual(
    [inside(shap, 'progress').hidden, inside(shap, 'progress').value, inside(shap, 'stop').hidden],
    [false, 0.5, false],
  );
  assert.deepEqual(texts(['blank-words', 'go'].map((n) => inside(shap, n))), ['half', '']);
  inside(shap, 'stop').click();
  assert.deepEqual(part.told[1], ['stop', { name: 'shap' }]);
  part.set({ key: 'k', method: 'shap', share: 0.5, error: 'No.' }, 'slow_1');
  assert.deepEqual(
    [
      inside(shap, 'blank-words').textContent,
      inside(shap, 'progress').hidden,
      inside(shap, 'go').textContent,
    ],
    ['No.', true, 'Compute'],
  );
  part.set({ key: 'k', method: 'shap', map: map('a shap') }, 'slow_1');
  assert.deepEqual(
    [inside(shap, 'open').hidden, inside(shap, 'blank').hidden, inside(shap, 'card-image').src],
    [false, true, '/s.png'],
  );
});

test('the test of all maps sorts them and says how far each can be trusted', () => {
  const part = mount(GALLERY, cards);
  const test_ = part.find('test');
  assert.deepEqual(
    [test_.hidden, test_.disabled, test_.textContent],
    [false, false, 'How far can each map be trusted?'],
  );
  test_.click();
  assert.deepEqual(part.told, [['trust', { methods: ['rollout', 'relevance'], known: [], key: 'k' }]]);
  assert.ok(test_.disabled);
  const job = /** @type {any} */ (part.element.querySelector('[data-job=trust]'));
  part.set({ key: 'k', running: true, share: 0.25, words: 'testing' }, 'trust');
  assert.deepEqual(
    [test_.hidden, inside(job, 'progress').hidden, inside(job, 'progress').value, inside(job, 'stop').hidden],
    [true, false, 0.25, false],
  );
  assert.equal(inside(job, 'job-words').textContent, 'testing');
  inside(job, 'stop').click();
  assert.deepEqual(part.told[1], ['stop', { name: 'trust' }]);
  part.set(
    {
      key: 'k',
      order: ['relevance', 'rollout'],
      cards: { relevance: known, rollout: { ...known, options: 'others' } },
    },
    'trust',
  );
  assert.deepEqual(
    part.find('cards').children.map((c) => c.dataset.method),
    ['relevance', 'rollout', 'shap'],
  );
  assert.match(inside(job, 'job-words').textContent, /^Sorted by trust/);
  assert.equal(test_.textContent, 'Test the new maps too');
  assert.ok(inside(card(part, 'rollout'), 'trust').hidden); // tested with other options
  const tested = card(part, 'relevance');
  assert.deepEqual(texts(['verdict', 'trust-numbers'].map((n) => inside(tested, n))), ['above chance', 'n']);
  assert.deepEqual(
    [inside(tested, 'verdict').dataset.better, inside(tested, 'verdict').title],
    ['true', 'says'],
  );
  test_.click();
  assert.deepEqual(part.told[2], ['trust', { methods: ['rollout'], known: ['relevance'], key: 'k' }]);
  part.set({ ...cards, turn: 2, key: 'new' });
  assert.ok(inside(card(part, 'relevance'), 'trust').hidden);
  assert.deepEqual([test_.disabled, test_.textContent], [false, 'How far can each map be trusted?']);
});

test('a ruler puts band, mean and map on one line from 0', () => {
  const part = mount(GALLERY, cards);
  part.set({ key: 'k', cards: { relevance: known } }, 'trust');
  const lines = inside(card(part, 'relevance'), 'rulers').children;
  assert.deepEqual(texts(lines.map((/** @type {any} */ l) => inside(l, 'ruler-label'))), [
    'deletion',
    'insertion',
  ]);
  const percent = (/** @type {string} */ text) => Math.round(10 * parseFloat(text)) / 10;
  const [first, second] = lines;
  const top = 0.4 * 1.08;
  assert.equal(percent(inside(first, 'band').style.left), percent(String((100 * 0.1) / top)));
  assert.equal(inside(first, 'band').style.right, `calc(100% - ${100 * (0.3 / top)}%)`);
  assert.equal(percent(inside(first, 'mean').style.left), percent(String((100 * 0.2) / top)));
  assert.equal(percent(inside(first, 'dot').style.left), percent(String(100 / 1.08)));
  assert.ok(inside(first, 'dot').classList.contains('vv-better'));
  assert.ok(!inside(second, 'dot').classList.contains('vv-better'));
  assert.equal(percent(inside(second, 'dot').style.left), percent(String((100 * 0.05) / (0.3 * 1.08))));
  assert.deepEqual([inside(first, 'ruler-number').textContent, first.title], ['0.4', 'area']);
});

test('a test that failed says so, and may be tried again', () => {
  const part = mount(GALLERY, cards);
  part.find('test').click();
  part.set(
    { key: 'k', error: 'Too slow.', cards: { rollout: { options: 'o', error: 'not this one' } } },
    'trust',
  );
  const job = /** @type {any} */ (part.element.querySelector('[data-job=trust]'));
  assert.deepEqual([inside(job, 'job-words').textContent, part.find('test').disabled], ['Too slow.', false]);
  const tested = card(part, 'rollout');
  assert.deepEqual(
    [inside(tested, 'verdict').textContent, inside(tested, 'rulers').childElementCount],
    ['not this one', 0],
  );
  assert.ok(inside(tested, 'link').hidden);
});

test('an open card and its curves come onto the screen once they are there', () => {
  const browser = new Browser();
  const target = /** @type {any} */ (browser.globals.document);
  const there = { offsetHeight: 50, scrolled: 0, scrollIntoView: () => void (there.scrolled += 1) };
  target.getElementById = (/** @type {string} */ id) =>
    ['vv-explain-picture', 'vv-deletion'].includes(id) ? there : null;
  const part = mount(GALLERY, cards, { browser });
  inside(card(part, 'relevance'), 'open').click();
  assert.deepEqual(part.told, [['open', { method: 'relevance' }]]);
  browser.pass(600);
  assert.equal(there.scrolled, 0);
  there.offsetHeight = 101;
  browser.pass(300);
  assert.equal(there.scrolled, 1);
  inside(card(part, 'relevance'), 'link').click();
  assert.deepEqual(part.told[1], ['curves', { method: 'relevance' }]);
  assert.equal(there.scrolled, 2);
  there.offsetHeight = 0;
  inside(card(part, 'relevance'), 'open').click();
  browser.pass(60_000);
  assert.equal(browser.timers.size, 0); // it gives up
});

test('a gallery keeps what it knows of the same picture, and forgets trust of other options', () => {
  const part = mount(GALLERY, cards);
  part.set({ key: 'k', cards: { rollout: known, relevance: known } }, 'trust');
  const [rollout, relevance, shap] = cards.cards;
  part.set({ ...cards, turn: 2, ruler: 'share', cards: [{ ...rollout, options: 'p' }, relevance, shap] });
  assert.ok(inside(card(part, 'rollout'), 'trust').hidden);
  assert.ok(!inside(card(part, 'relevance'), 'trust').hidden);
  const chips = part.element.querySelectorAll('[data-ruler]');
  assert.deepEqual(chips.map(pressed), ['false', 'true']);
  chips[0].click();
  assert.deepEqual(part.told.at(-1), ['ruler', { ruler: 'own' }]);
  part.set({ ...cards, turn: 1, cards: [] });
  assert.equal(part.find('cards').childElementCount, 3);
  part.set({ turn: 3, busy: true });
  assert.ok(part.element.classList.contains('vv-busy'));
  part.set({ turn: 4, error: 'No model.' });
  assert.ok(!part.element.classList.contains('vv-busy'));
  assert.deepEqual(
    [part.find('gallery-error').textContent, part.find('cards').hidden, part.find('gallery-head').hidden],
    ['No model.', true, true],
  );
});
