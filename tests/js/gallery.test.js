// The maps of all methods side by side, and how they follow the link.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Browser } from './browser.js';
import { mountGallery, openGallery } from './gallery_part.js';
import { settle } from './visit.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

const map = (/** @type {string} */ caption) => ({ caption });
const cards = {
  key: 'k',
  chosen: 'rollout',
  cards: [
    {
      name: 'rollout',
      label: 'Rollout',
      blind: true,
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
      runs: 'about 800 runs',
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
/** How far a job is. */
const howFar = (/** @type {any} */ node) =>
  texts(['words', 'amount'].map((name) => inside(node, `job-${name}`)))
    .join(' ')
    .trim();

test('a gallery has a card per method: a map, or how to get one', () => {
  const part = mountGallery(cards);
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
  assert.deepEqual(texts(['job-words', 'go'].map((n) => inside(shap, n))), ['about 800 runs', 'compute']);
  assert.equal(inside(shap, 'blank').style.aspectRatio, '1.5 / 1');
  assert.equal(inside(shap, 'go').getAttribute('aria-label'), 'Compute Shap');
});

test('a slow method says how far it is, and shows its map in the end', async () => {
  const part = mountGallery(cards);
  const shap = card(part, 'shap');
  inside(shap, 'go').click();
  const [asked] = part.asked;
  assert.deepEqual([asked.name, asked.body], ['map', { view: 'image=lion', method: 'shap' }]);
  const shown = () => [
    ...['progress', 'stop'].map((name) => inside(shap, name).hidden),
    howFar(shap),
    inside(shap, 'go').hidden,
  ];
  assert.deepEqual(shown(), [false, false, 'Starting …', true]);
  asked.tell({ share: 0.5, left: 'about 3 s left' });
  assert.deepEqual(shown(), [false, false, '50% (about 3 s left) of about 800 runs', true]);
  assert.equal(inside(shap, 'progress').value, 0.5);
  inside(shap, 'go').click(); // it is under way
  assert.equal(part.asked.length, 1);
  await asked.answer(new Error('No.'));
  assert.deepEqual(shown(), [true, true, 'No.', false]);
  inside(shap, 'go').click();
  assert.deepEqual(shown(), [false, false, 'Starting …', true]);
  await part.asked[1].answer(map('a shap'));
  assert.deepEqual(
    [inside(shap, 'open').hidden, inside(shap, 'blank').hidden, inside(shap, 'card-image').src],
    [false, true, '/s.png'],
  );
  assert.deepEqual(part.told, [['made', {}]]);
});

test('several slow methods run at once, each with its bar; more of them wait, as the page needs its connections', async () => {
  const names = ['one', 'two', 'three', 'four'];
  const slow = names.map((name) => ({ ...cards.cards[2], name, label: name }));
  const part = mountGallery({ ...cards, cards: slow });
  const words = () => names.map((name) => howFar(card(part, name)));
  for (const name of names) inside(card(part, name), 'go').click();
  const methods = () => part.asked.map(({ body }) => body.method);
  assert.deepEqual(methods(), ['one', 'two']);
  part.asked[1].tell({ share: 0.25, left: '' });
  part.asked[0].tell({ share: 0.5, left: '' });
  assert.deepEqual(words(), ['50% of about 800 runs', '25% of about 800 runs', 'Starting …', 'Starting …']);
  inside(card(part, 'three'), 'stop').click(); // while it waits
  inside(card(part, 'two'), 'stop').click();
  assert.deepEqual(
    part.asked.map(({ stop }) => stop.aborted),
    [false, true],
  );
  await part.asked[1].answer(new Error('aborted'));
  assert.deepEqual(methods(), ['one', 'two', 'four']);
  const cancelled = 'This was stopped; nothing of it was kept.';
  assert.deepEqual(words(), ['50% of about 800 runs', cancelled, cancelled, 'Starting …']);
  part.asked[1].tell({ share: 0.75, left: '' }); // came late
  assert.equal(words()[1], cancelled);
  inside(card(part, 'two'), 'go').click();
  await part.asked[0].answer(map('a map'));
  assert.deepEqual(methods(), ['one', 'two', 'four', 'two']);
  assert.deepEqual(words().slice(1), ['Starting …', cancelled, 'Starting …']);
});

test('what runs about another class, or with other options, is ended and never shown', async () => {
  for (const other of [
    { ...cards, key: 'another class' },
    { ...cards, cards: [...cards.cards.slice(0, 2), { ...cards.cards[2], options: 'p' }] },
  ]) {
    const part = mountGallery(cards);
    const shap = card(part, 'shap');
    inside(shap, 'go').click();
    part.set(cards); // drawn again
    assert.ok(!inside(shap, 'progress').hidden);
    part.set(other);
    const [asked] = part.asked;
    asked.tell({ share: 0.5, left: '' });
    assert.deepEqual(
      [asked.stop.aborted, inside(shap, 'progress').hidden, inside(shap, 'job-words').textContent],
      [true, true, 'about 800 runs'],
    );
    await asked.answer(map('a shap'));
    assert.deepEqual([inside(shap, 'open').hidden, part.told], [true, []]);
  }
});

test('the test of all maps sorts them and says how far each can be trusted', async () => {
  const part = mountGallery(cards);
  const test_ = part.find('test');
  assert.deepEqual([test_.hidden, test_.textContent], [false, 'Which are the most faithful?']);
  test_.click();
  test_.click(); // it is under way
  assert.equal(part.asked.length, 1);
  const [asked] = part.asked;
  assert.deepEqual(
    [asked.name, asked.body],
    ['trust', { view: 'image=lion', methods: ['rollout', 'relevance'] }],
  );
  const job = /** @type {any} */ (part.element.querySelector('[data-job=trust]'));
  asked.tell({ share: 0.25, left: '', preview: { words: 'testing', cards: { relevance: known } } });
  asked.tell({ share: 0.5, left: '' });
  assert.deepEqual(
    [test_.hidden, inside(job, 'progress').hidden, inside(job, 'progress').value, inside(job, 'stop').hidden],
    [true, false, 0.5, false],
  );
  assert.equal(howFar(job), 'testing 50%');
  const tested = card(part, 'relevance');
  assert.equal(inside(tested, 'falls').textContent, 'falls 4.0 x faster than at random'); // while the others are tested
  assert.equal(part.find('gallery-title').textContent, 'Three ways to ask');
  await asked.answer({
    order: ['relevance', 'rollout'],
    cards: { relevance: known, rollout: { ...known, options: 'others' } },
  });
  assert.deepEqual(
    part.find('cards').children.map((c) => c.dataset.method),
    ['relevance', 'rollout', 'shap'],
  );
  assert.equal(part.find('gallery-title').textContent, 'Three ways to ask, the most faithful first');
  assert.ok(!part.find('legend').hidden);
  assert.deepEqual([test_.hidden, test_.textContent], [false, 'Test the new maps too']);
  assert.ok(inside(card(part, 'rollout'), 'falls').hidden); // tested with other options
  assert.equal(inside(tested, 'falls').textContent, 'falls 4.0 x faster than at random');
  assert.deepEqual(
    [inside(tested, 'falls').dataset.better, inside(tested, 'place').title],
    ['true', 'the areas'],
  );
  await part.tested({ order: ['relevance', 'rollout'], cards: { relevance: known, rollout: known } });
  assert.ok(job.hidden); // nothing is left to test
  part.set({ ...cards, cards: [{ ...cards.cards[0], options: 'p' }, ...cards.cards.slice(1)] });
  assert.ok(!job.hidden);
  test_.click();
  assert.deepEqual(part.asked[2].body.methods, ['relevance', 'rollout']); // the known one takes its place in the order
  part.set({ ...cards, key: 'new', about: 'another photo' });
  assert.ok(part.asked[2].stop.aborted);
  part.asked[2].tell({ share: 0.5, left: '', preview: { words: 'testing', cards: { relevance: known } } });
  await part.asked[2].answer({ order: ['relevance'], cards: { relevance: known } });
  assert.ok(inside(card(part, 'relevance'), 'falls').hidden);
  assert.equal(part.find('gallery-title').textContent, 'Three ways to ask');
  assert.ok(part.find('legend').hidden);
  assert.deepEqual([test_.hidden, test_.textContent], [false, 'Which are the most faithful?']);
});

test('a test that is cancelled keeps what was tested, and may be taken up again', () => {
  const part = mountGallery(cards);
  part.find('test').click();
  const [asked] = part.asked;
  asked.tell({ share: 0.75, left: '', preview: { words: 'testing', cards: { rollout: known } } });
  const job = /** @type {any} */ (part.element.querySelector('[data-job=trust]'));
  inside(job, 'stop').click();
  assert.ok(asked.stop.aborted);
  assert.deepEqual(
    [inside(job, 'job-words').textContent, inside(job, 'progress').hidden, inside(job, 'stop').hidden],
    ['This was stopped; nothing of it was kept.', true, true],
  );
  assert.equal(inside(card(part, 'rollout'), 'falls').textContent, known.falls);
  assert.deepEqual(
    [part.find('test').hidden, part.find('test').textContent],
    [false, 'Test the new maps too'],
  );
});

test('all cards have one line, from 0 to beyond every map, with the random orders and the map on it', async () => {
  const part = mountGallery(cards);
  const far = { ...known, place: { ...known.place, area: 0.8 } };
  await part.tested({ cards: { relevance: known, rollout: far } });
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

test('the chosen map has a curve, sentences and what it does not show; another photo takes them away', async () => {
  const part = mountGallery(cards);
  assert.ok(part.find('fall').hidden);
  assert.deepEqual(texts(part.find('said').children), ['Not compared with random orders of patches yet.']);
  assert.equal(part.find('shows').textContent, 'Shows how tokens mix.');
  assert.equal(part.find('hides').textContent, 'Does not show any class.');
  await part.tested({ cards: { rollout: known } });
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
  part.set({ ...cards, key: 'k2', about: 'another photo' });
  assert.ok(part.find('fall').hidden);
  assert.deepEqual(texts(part.find('said').children), ['Not compared with random orders of patches yet.']);
});

test('what became of the map without its weights is said of this map and this class only', () => {
  const part = mountGallery(cards);
  const lines = () => texts(part.find('said').children);
  part.gallery.hear({ key: 'k', method: 'relevance', words: 'It falls apart.' });
  assert.equal(lines().length, 1);
  part.gallery.hear({ key: 'k', method: 'rollout', words: 'It falls apart.' });
  assert.equal(lines()[1], 'It falls apart.');
  part.set({ ...cards, key: 'another class' });
  assert.equal(lines().length, 1);
});

test('the curve says where the slider of the stage is, while it shows patches being taken away', async () => {
  const part = mountGallery(cards);
  await part.tested({ cards: { rollout: known } });
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

test('a test that failed says so, and may be tried again', async () => {
  const part = mountGallery(cards);
  part.find('test').click();
  const [asked] = part.asked;
  const failed = { rollout: { options: 'o', error: 'not this one' } };
  asked.tell({ share: 0.8, left: '', preview: { words: 'testing', cards: failed } });
  await asked.answer(new Error('Too slow.'));
  const job = /** @type {any} */ (part.element.querySelector('[data-job=trust]'));
  assert.deepEqual([inside(job, 'job-words').textContent, part.find('test').hidden], ['Too slow.', false]);
  const tested = card(part, 'rollout');
  assert.equal(inside(tested, 'falls').textContent, 'not this one');
  assert.deepEqual([texts(part.find('said').children), part.find('fall').hidden], [['not this one'], true]);
});

test('a card that is opened puts its map on the stage and brings that onto the screen', () => {
  const browser = new Browser();
  const target = /** @type {any} */ (browser.globals.document);
  const there = { scrolled: 0, scrollIntoView: () => void (there.scrolled += 1) };
  const part = mountGallery(cards, { browser });
  target.querySelector = (/** @type {string} */ stage) =>
    stage === '#vv-explain-picture .vv-play-stage' ? there : null;
  inside(card(part, 'relevance'), 'open').click();
  assert.deepEqual(part.told, [['choose', { method: 'relevance' }]]);
  assert.equal(there.scrolled, 1);
});

test('a gallery keeps what it knows of the same picture, and forgets trust of other options', async () => {
  const part = mountGallery(cards);
  await part.tested({ cards: { rollout: known, relevance: known } });
  const [rollout, relevance, shap] = cards.cards;
  part.set({
    ...cards,

    cards: [{ ...rollout, options: 'p' }, relevance, shap],
  });
  assert.ok(inside(card(part, 'rollout'), 'falls').hidden);
  assert.ok(!inside(card(part, 'relevance'), 'falls').hidden);
  const chips = part.element.querySelectorAll('[data-map-scale]');
  chips[1].click();
  assert.deepEqual(part.told.at(-1), ['choose', { ruler: 'share' }]);
  part.set({ error: 'No model.' });
  assert.deepEqual(
    [part.find('gallery-error').textContent, part.find('cards').hidden, part.find('gallery-head').hidden],
    ['No model.', true, true],
  );
  assert.ok(part.find('belief').hidden && part.find('rule').hidden);
});

test('a gallery that is made again knows nothing of the one before', async () => {
  const first = mountGallery(cards);
  await first.tested({ cards: { rollout: known } });
  const second = mountGallery(cards);
  assert.ok(inside(card(second, 'rollout'), 'falls').hidden);
  assert.ok(!inside(card(first, 'rollout'), 'falls').hidden);
});

// --- as the link has it

test('the cards are asked for as the link has them, and again where it changes what they show', async (t) => {
  const page = await openGallery(t, '&target=7&ruler=share&share=0.25');
  assert.deepEqual(Object.fromEntries(page.questions[0].view), {
    ...{ image: 'lion', target: '7', ruler: 'share', share: '0.25' },
  });
  assert.ok(page.element.classList.contains('vv-busy') && !page.find('gallery-wait').hidden);
  await page.questions[0].answer({ ...cards, chosen: undefined });
  assert.ok(!page.element.classList.contains('vv-busy') && page.find('gallery-wait').hidden);
  const chips = page.element.querySelectorAll('[data-map-scale]');
  assert.deepEqual(chips.map(pressed), ['false', 'true', 'false']);
  assert.ok(card(page, 'relevance').classList.contains('vv-chosen'));
  inside(card(page, 'rollout'), 'open').click();
  assert.deepEqual(page.place.written.at(-1), [{ method: 'rollout' }, false]);
  assert.ok(card(page, 'rollout').classList.contains('vv-chosen'));
  page.store.set({ q: '1,2', layer: 3 });
  await settle();
  assert.equal(page.questions.length, 1); // another map that is looked at is in the same gallery
  chips[0].click();
  assert.deepEqual(page.place.written.at(-1), [{ ruler: null }, false]);
  assert.equal(page.questions.length, 2);
  assert.ok(page.element.classList.contains('vv-busy'));
  page.turn.value += 1;
  assert.equal(page.questions.length, 3);
  await page.questions[2].answer(cards);
  inside(card(page, 'shap'), 'go').click();
  assert.equal(page.asked('map')[0].body.view, page.questions[2].body.view);
  await page.asked('map')[0].answer(map('a shap'));
  assert.equal(page.questions.length, 4); // the new map is compared with the others
});

test('a slow map that was made is told to the stage', async (t) => {
  const page = await openGallery(t, '&method=shap');
  let heard = 0;
  page.browser.window.addEventListener('vv-map-made', () => (heard += 1));
  await page.questions[0].answer({ ...cards, chosen: undefined });
  inside(card(page, 'shap'), 'go').click();
  page.asked('map')[0].tell({ share: 0.5, left: '' });
  assert.equal(heard, 0);
  await page.asked('map')[0].answer(map('a shap'));
  assert.equal(heard, 1);
  page.store.set({ method: 'rollout', ruler: 'share' });
  await settle();
  const other = { ...cards.cards[2], options: 'p' };
  await page.questions.at(-1)?.answer({ ...cards, cards: [...cards.cards.slice(0, 2), other] });
  inside(card(page, 'shap'), 'go').click();
  await page.asked('map')[1].answer(map('another shap'));
  assert.equal(heard, 2);
});

test('another photo ends what runs at once, before its cards are there; another tab does not', async (t) => {
  const page = await openGallery(t);
  await page.questions[0].answer(cards);
  inside(card(page, 'shap'), 'go').click();
  page.find('test').click();
  const ended = () => [page.asked('map')[0], page.asked('trust')[0]].map(({ stop }) => stop.aborted);
  page.store.set({ tab: 'look' });
  page.store.set({ tab: 'explain', explain: 'parts' });
  page.store.set({ explain: 'why', target: '7' }); // whose cards say whether this is another class
  await settle();
  assert.deepEqual(ended(), [false, false]);
  page.store.look({ image: 'twins' });
  assert.deepEqual(ended(), [true, true]);
  assert.deepEqual([inside(card(page, 'shap'), 'progress').hidden, page.find('test').hidden], [true, false]);
});

test('cards of what is looked at no longer never come', async (t) => {
  const page = await openGallery(t);
  page.store.look({ image: 'twins' });
  await settle();
  await page.questions[1].answer({ ...cards, key: 'twins', cards: cards.cards.slice(0, 2) });
  await page.questions[0].answer(cards);
  assert.equal(page.find('cards').childElementCount, 2);
  page.store.look({ model: 'none' });
  await page.questions[2].answer(new Error('No model.'));
  assert.deepEqual([page.find('gallery-error').textContent, page.find('cards').hidden], ['No model.', true]);
  page.place.go('?tab=explain&image=lion');
  await page.questions[3].answer(cards);
  assert.deepEqual([page.find('gallery-error').hidden, page.find('cards').hidden], [true, false]);
});

test('nobody asks for cards that nobody looks at', async (t) => {
  const page = await openGallery(t, '&explain=parts');
  assert.equal(page.questions.length, 0);
  page.store.set({ explain: 'why' });
  assert.equal(page.questions.length, 1);
  page.store.set({ tab: 'look' });
  page.store.look({ image: 'twins' });
  await settle();
  assert.equal(page.questions.length, 1);
});
