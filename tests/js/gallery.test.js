// The maps of all methods side by side, as Gradio runs them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount as gallery } from '../../vit_viz/ui/explain/gallery.js';
import { Browser, component, mount } from './browser.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

const GALLERY = component(gallery, 'ui/explain/gallery.html');
const map = (/** @type {string} */ caption) => ({ caption });
const cards = {
  revision: 1,
  key: 'k',
  map_scale: 'own',
  cards: [
    {
      name: 'rollout',
      label: 'Rollout',
      blind: true,
      chosen: true,
      shows: 'how tokens mix.',
      hides: 'any class.',
      map: map('a rollout'),
      src: '/r.png',
      ratio: 1.5,
      options: 'o',
    },
    {
      name: 'relevance',
      label: 'Relevance',
      map: map('a relevance'),
      src: '/l.png',
      ratio: 1.5,
      options: 'o',
    },
    {
      name: 'shap',
      label: 'Shap',
      slow: true,
      words: 'about 800 runs',
      src: '/s.png',
      ratio: 1.5,
      options: 'o',
    },
  ],
};
const fall = (/** @type {number[]} */ y) => ({
  x: [0, 0.5, 1],
  y,
  low: [0.5, 0.25, 0],
  high: [1, 0.75, 0.5],
  ends: [0, 1],
  labels: ['0', '100%'],
  texts: y.map((value) => `${100 * value}%`),
});
const known = {
  options: 'o',
  falls: 'falls 4.0 x faster than at random',
  better: true,
  title: 'the areas',
  place: { area: 0.05, low: 0.1, high: 0.3, mean: 0.2 },
  sentences: ['Better than each.', 'Changes with the class.'],
  curves: { deletion: fall([1, 0.25, 0]), insertion: fall([0, 0.5, 1]) },
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
  assert.deepEqual([image.src, image.alt, image.style.aspectRatio], ['/r.png', 'a rollout', '1.5 / 1']);
  image.onload();
  assert.ok(!rollout.classList.contains('vv-busy'));
  assert.deepEqual(texts(['card-name', 'tag'].map((n) => inside(rollout, n))), [
    'Rollout',
    'same for every class',
  ]);
  assert.equal(part.find('gallery-title').textContent, 'Three ways to ask');
  assert.deepEqual(
    ['open', 'blank', 'place', 'falls', 'tag'].map((n) => inside(rollout, n).hidden),
    [false, true, true, true, false],
  );
  assert.deepEqual(
    [pressed(inside(rollout, 'open')), pressed(inside(card(part, 'relevance'), 'open'))],
    ['true', 'false'],
  );
  assert.ok(inside(card(part, 'relevance'), 'tag').hidden);
  const shap = card(part, 'shap');
  assert.deepEqual(
    ['open', 'blank', 'progress', 'stop'].map((n) => inside(shap, n).hidden),
    [true, false, true, true],
  );
  assert.deepEqual(texts(['blank-words', 'go'].map((n) => inside(shap, n))), ['about 800 runs', 'compute']);
  assert.equal(inside(shap, 'blank').style.aspectRatio, '1.5 / 1');
  assert.equal(inside(shap, 'go').getAttribute('aria-label'), 'Compute Shap');
});

test('a slow method says how far it is, and shows its map in the end; news of another picture are left aside', () => {
  const part = mount(GALLERY, cards);
  const shap = card(part, 'shap');
  inside(shap, 'go').click();
  assert.deepEqual(part.told, [['compute', { method: 'shap', key: 'k' }]]);
  const tell = (/** @type {any} */ said, key = 'k') => part.set({ key, of: { shap: said } }, 'progress');
  tell({ seq: 1, share: 0.5, words: 'half' }, 'other');
  assert.ok(inside(shap, 'progress').hidden);
  tell({ seq: 2, share: 0.5, words: 'half' });
  tell({ seq: 1, share: 0.25, words: 'older' }); // came late
  assert.deepEqual(
    [inside(shap, 'progress').hidden, inside(shap, 'progress').value, inside(shap, 'stop').hidden],
    [false, 0.5, false],
  );
  assert.deepEqual(texts(['blank-words', 'go'].map((n) => inside(shap, n))), ['half', '']);
  inside(shap, 'stop').click();
  assert.deepEqual(part.told[1], ['stop', { name: 'shap' }]);
  tell({ seq: 3, share: 0.5, error: 'No.' });
  assert.deepEqual(
    [
      inside(shap, 'blank-words').textContent,
      inside(shap, 'progress').hidden,
      inside(shap, 'go').textContent,
    ],
    ['No.', true, 'compute'],
  );
  tell({ seq: 4, map: map('a shap') });
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
    [false, false, 'Which are the most faithful?'],
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
  assert.equal(part.find('gallery-title').textContent, 'Three ways to ask, the most faithful first');
  assert.ok(!part.find('legend').hidden);
  assert.equal(test_.textContent, 'Test the new maps too');
  assert.ok(inside(card(part, 'rollout'), 'falls').hidden); // tested with other options
  const tested = card(part, 'relevance');
  assert.equal(inside(tested, 'falls').textContent, 'falls 4.0 x faster than at random');
  assert.deepEqual(
    [inside(tested, 'falls').dataset.better, inside(tested, 'place').title],
    ['true', 'the areas'],
  );
  part.set(
    { key: 'k', order: ['relevance', 'rollout'], cards: { relevance: known, rollout: known } },
    'trust',
  );
  assert.ok(job.hidden); // nothing is left to test
  part.set({ ...cards, revision: 2, cards: [{ ...cards.cards[0], options: 'p' }, ...cards.cards.slice(1)] });
  assert.ok(!job.hidden);
  test_.click();
  assert.deepEqual(part.told[2], ['trust', { methods: ['rollout'], known: ['relevance'], key: 'k' }]);
  part.set({ ...cards, revision: 3, key: 'new', about: 'another photo' });
  assert.ok(inside(card(part, 'relevance'), 'falls').hidden);
  assert.equal(part.find('gallery-title').textContent, 'Three ways to ask');
  assert.ok(part.find('legend').hidden);
  assert.deepEqual([test_.disabled, test_.textContent], [false, 'Which are the most faithful?']);
});

test('all cards have one line, from 0 to beyond every map, with the random orders and the map on it', () => {
  const part = mount(GALLERY, cards);
  const far = { ...known, place: { ...known.place, area: 0.8 } };
  part.set({ key: 'k', cards: { relevance: known, rollout: far } }, 'trust');
  const end = 1.05 * 0.8;
  const at = (/** @type {string} */ name, /** @type {string} */ of, /** @type {string} */ side) =>
    Math.round(10 * parseFloat(inside(card(part, name), of).style[side])) / 10;
  const percent = (/** @type {number} */ value) => Math.round((1000 * value) / end) / 10;
  for (const name of ['relevance', 'rollout']) {
    assert.equal(at(name, 'band', 'left'), percent(0.1));
    assert.equal(at(name, 'band', 'width'), percent(0.2));
  }
  assert.equal(at('relevance', 'dot', 'left'), percent(0.05));
  assert.equal(at('rollout', 'dot', 'left'), percent(0.8));
  assert.ok(!inside(card(part, 'shap'), 'place').hidden);
  assert.ok(inside(card(part, 'shap'), 'dot').hidden); // not computed: an empty line
});

test('the chosen map has a curve, sentences and what it does not show; another photo takes them away', () => {
  const part = mount(GALLERY, cards);
  assert.ok(part.find('fall').hidden);
  assert.deepEqual(texts(part.find('said').children), ['Not compared with random orders of patches yet.']);
  assert.equal(part.find('shows').textContent, 'Shows how tokens mix.');
  assert.equal(part.find('hides').textContent, 'Does not show any class.');
  part.set({ key: 'k', cards: { rollout: known } }, 'trust');
  assert.ok(!part.find('fall').hidden);
  assert.equal(part.find('fall-title').textContent, 'Rollout: the answer falls as its patches go');
  assert.deepEqual(texts(part.find('said').children), known.sentences);
  assert.equal(part.find('line').getAttribute('d'), 'M0.00 0.00L50.00 75.00L100.00 100.00');
  const random = 'M0.00 0.00L50.00 25.00L100.00 50.00L100.00 100.00L50.00 75.00L0.00 50.00Z';
  assert.equal(part.find('random').getAttribute('d'), random);
  const ends = ['top', 'bottom', 'first', 'last'].map((name) => part.find(name));
  assert.deepEqual(texts(ends), ['100%', '0', 'no patch gone', 'all gone']);
  const plot = part.find('plot');
  plot.box = { left: 10, top: 0, width: 200, height: 50 };
  plot.fire('pointermove', { clientX: 10 + 110 });
  assert.equal(part.find('curve-words').textContent, '50% gone: 25%');
  plot.fire('pointerleave');
  assert.match(part.find('curve-words').textContent, /painted over/);
  part.element.querySelectorAll('[data-test]')[1].click();
  assert.equal(part.find('fall-title').textContent, 'Rollout: the answer rises as its patches come back');
  assert.equal(part.find('line').getAttribute('d'), 'M0.00 100.00L50.00 50.00L100.00 0.00');
  assert.deepEqual(texts(ends), ['100%', '0', 'no patch there', 'all back']);
  part.set({ ...cards, revision: 2, key: 'k2', about: 'another photo' });
  assert.ok(part.find('fall').hidden);
  assert.deepEqual(texts(part.find('said').children), ['Not compared with random orders of patches yet.']);
});

test('what became of the map without its weights is said of this map and this class only', () => {
  const part = mount(GALLERY, cards);
  const lines = () => texts(part.find('said').children);
  part.set({ key: 'k', method: 'relevance', words: 'It falls apart.' }, 'weights');
  assert.equal(lines().length, 1);
  part.set({ key: 'k', method: 'rollout', words: 'It falls apart.' }, 'weights');
  assert.equal(lines()[1], 'It falls apart.');
  part.set({ ...cards, revision: 2, key: 'another class' });
  assert.equal(lines().length, 1);
});

test('the curve says where the slider of the stage is, while it shows patches being taken away', () => {
  const part = mount(GALLERY, cards);
  part.set({ key: 'k', cards: { rollout: known } }, 'trust');
  const now = part.find('now');
  assert.ok(now.hidden);
  part.browser.window.fire('vv-taken', { detail: 0.25 });
  assert.deepEqual([now.hidden, now.style.left], [false, '25%']);
  const [deletion, insertion] = part.element.querySelectorAll('[data-test]');
  insertion.click();
  assert.ok(now.hidden);
  deletion.click();
  assert.ok(!now.hidden);
  part.browser.window.fire('vv-taken', { detail: 0 });
  assert.ok(now.hidden);
});

test('a chosen method that was computed just now is shown on the stage', () => {
  const [rollout, relevance, shap] = cards.cards;
  const chosen = { ...cards, cards: [{ ...rollout, chosen: false }, relevance, { ...shap, chosen: true }] };
  const part = mount(GALLERY, chosen);
  const tell = (/** @type {any} */ said) => part.set({ key: 'k', of: { shap: said } }, 'progress');
  tell({ seq: 1, share: 0.5, words: 'half' });
  assert.deepEqual(part.told, []);
  tell({ seq: 2, map: map('a shap') });
  assert.deepEqual(part.told, [['open', { method: 'shap' }]]);
  tell({ seq: 2, map: map('a shap') }); // told twice
  assert.equal(part.told.length, 1);
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
  assert.equal(inside(tested, 'falls').textContent, 'not this one');
  assert.deepEqual([texts(part.find('said').children), part.find('fall').hidden], [['not this one'], true]);
});

test('a card that is opened puts its map on the stage and brings that onto the screen', () => {
  const browser = new Browser();
  const target = /** @type {any} */ (browser.globals.document);
  const there = { scrolled: 0, scrollIntoView: () => void (there.scrolled += 1) };
  const part = mount(GALLERY, cards, { browser });
  target.querySelector = (/** @type {string} */ stage) =>
    stage === '#vv-explain-picture .vv-play-stage' ? there : null;
  inside(card(part, 'relevance'), 'open').click();
  assert.deepEqual(part.told, [['open', { method: 'relevance' }]]);
  assert.equal(there.scrolled, 1);
});

test('a gallery keeps what it knows of the same picture, and forgets trust of other options', () => {
  const part = mount(GALLERY, cards);
  part.set({ key: 'k', cards: { rollout: known, relevance: known } }, 'trust');
  const [rollout, relevance, shap] = cards.cards;
  part.set({
    ...cards,
    revision: 2,
    map_scale: 'share',
    cards: [{ ...rollout, options: 'p' }, relevance, shap],
  });
  assert.ok(inside(card(part, 'rollout'), 'falls').hidden);
  assert.ok(!inside(card(part, 'relevance'), 'falls').hidden);
  const chips = part.element.querySelectorAll('[data-map-scale]');
  assert.deepEqual(chips.map(pressed), ['false', 'true', 'false']);
  chips[0].click();
  assert.deepEqual(part.told.at(-1), ['map_scale', { map_scale: 'own' }]);
  part.set({ ...cards, revision: 1, cards: [] });
  assert.equal(part.find('cards').childElementCount, 3);
  part.set({ revision: 3, busy: true });
  assert.ok(part.element.classList.contains('vv-busy'));
  part.set({ revision: 4, error: 'No model.' });
  assert.ok(!part.element.classList.contains('vv-busy'));
  assert.deepEqual(
    [part.find('gallery-error').textContent, part.find('cards').hidden, part.find('gallery-head').hidden],
    ['No model.', true, true],
  );
  assert.ok(part.find('belief').hidden && part.find('rule').hidden);
});

test('what was told before the module was there is shown when it is mounted', () => {
  const early = {
    progress: { key: 'k', of: { shap: { seq: 1, share: 0.5, words: 'half' } } },
    trust: { key: 'k', cards: { rollout: known } },
  };
  const part = mount(GALLERY, cards, { props: early });
  assert.equal(inside(card(part, 'shap'), 'progress').value, 0.5);
  assert.equal(inside(card(part, 'rollout'), 'falls').textContent, known.falls);
});

test('a gallery that is made again knows nothing of the one before', () => {
  const first = mount(GALLERY, cards);
  first.set({ key: 'k', cards: { rollout: known } }, 'trust');
  const second = mount(GALLERY, cards);
  assert.ok(inside(card(second, 'rollout'), 'falls').hidden);
  assert.ok(!inside(card(first, 'rollout'), 'falls').hidden);
});
