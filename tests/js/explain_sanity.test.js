// Whether the chosen map depends on what the model has learned: the check on the page, its curve, and for which map it holds.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openGallery } from './gallery_part.js';
import { settle } from './visit.js';

const method = (/** @type {string} */ name, /** @type {string} */ label) => ({
  ...{ name, label, map: { caption: label }, src: `/${name}.png`, ratio: 1.5, options: 'o' },
});
const cards = { key: 'k', cards: [method('relevance', 'Relevance'), method('rollout', 'Rollout')] };
const nothing = { key: 'k', method: 'relevance', label: 'Relevance' };
const curve = {
  ...nothing,
  words: 'It falls apart.',
  title: 'Relevance, weights re-initialised',
  caption: 'mini · lion · for lion',
  correlations: [1, 0.25, -0.125],
  labels: ['parts re-initialised', 'correlation'],
  figure: '/vit_viz/figure/abc?kind=asked&ask=randomisation',
};

/** The check of an opened gallery. @param {any} t @param {string} [search] */
async function open(t, search) {
  const page = await openGallery(t, search);
  await page.questions[0]?.answer(cards);
  const root = page.find('sanity');
  const find = (/** @type {string} */ name) => root.querySelector(`.vv-${name}`);
  const text = (/** @type {string} */ name) => find(name).textContent;
  return {
    ...{ page, root, find, text, store: page.store },
    shown: () => ({
      words: ['words', 'amount']
        .map((name) => text(`job-${name}`))
        .join(' ')
        .trim(),
      runs: find('go').hidden && !find('stop').hidden && !find('progress').hidden,
      curve: find('weights-curve').hidden ? '' : text('weights-title'),
    }),
    kept: () => page.asked('checked'),
    asked: () => page.asked('sanity'),
  };
}

test('a curve that is at hand is shown, and said beside the map; else nothing but the button', async (t) => {
  const { page, kept, shown, text, find } = await open(t, '&target=7');
  const [first] = kept();
  assert.deepEqual(Object.fromEntries(new URLSearchParams(first.body.view)), { image: 'lion', target: '7' });
  assert.deepEqual(shown(), { words: '', runs: false, curve: '' });
  await first.answer(nothing);
  assert.deepEqual(shown(), { words: 'For Relevance.', runs: false, curve: '' });
  page.turn.value += 1;
  await kept()[1].answer(curve);
  assert.deepEqual(shown(), { words: 'For Relevance.', runs: false, curve: curve.title });
  assert.equal(text('weights-words'), 'Relevance: It falls apart.');
  assert.equal(page.find('said').children[1].textContent, 'It falls apart.');
  assert.equal(find('weights-line').getAttribute('d'), 'M0.00 0.00L50.00 50.00L100.00 75.00');
  assert.equal(find('weights-grid').getAttribute('d'), 'M0 0.00H100M0 33.33H100M0 66.67H100M0 100.00H100');
  const texts = (/** @type {string} */ name) =>
    find(name).children.map((/** @type {any} */ one) => one.textContent);
  assert.deepEqual(
    [texts('weights-heights'), texts('weights-parts')],
    [
      ['1', '0.5', '0', '−0.5'],
      ['0', '1', '2'],
    ],
  );
  assert.deepEqual(
    [text('weights-axis'), text('weights-what'), text('caption')],
    [...curve.labels, curve.caption],
  );
  const plot = find('weights-plot');
  assert.equal(plot.getAttribute('aria-label'), `${curve.title}: 1.00, 0.25, −0.13`);
  plot.box = { left: 10, top: 0, width: 200, height: 50 };
  plot.fire('pointermove', { clientX: 10 + 190 });
  assert.equal(text('weights-read'), '2 of 2 re-initialised: −0.13');
  plot.fire('pointerleave');
  assert.equal(text('weights-read'), '');
});

test('the figure of the curve is saved in a format to choose', async (t) => {
  const { kept, find } = await open(t);
  await kept()[0].answer(curve);
  assert.equal(find('save').getAttribute('href'), curve.figure);
  /** @type {any} */
  let wanted = null;
  find('save').addEventListener('vv-figure', (/** @type {any} */ event) => {
    wanted = event.detail.address;
    event.preventDefault();
  });
  find('save').click();
  assert.equal(wanted, curve.figure);
});

test('the check says how far it is, and then shows its curve', async (t) => {
  const { page, kept, asked, shown, find } = await open(t);
  await kept()[0].answer(nothing);
  find('go').click();
  const run = asked()[0];
  assert.deepEqual(run.body, { view: kept()[0].body.view });
  assert.deepEqual(shown(), { words: 'Relevance: the trained model …', runs: true, curve: '' });
  run.tell({ share: 0.5, left: '' });
  assert.deepEqual(shown(), { words: 'Relevance: 50%', runs: true, curve: '' });
  assert.equal(find('progress').value, 0.5);
  find('go').click(); // it is under way
  assert.equal(asked().length, 1);
  await run.answer(curve);
  assert.deepEqual(shown(), { words: 'For Relevance.', runs: false, curve: curve.title });
  assert.equal(page.find('said').children[1].textContent, 'It falls apart.');
});

test('the check can be cancelled, and says why it failed, until it is started again', async (t) => {
  const { kept, asked, shown, find } = await open(t);
  await kept()[0].answer(nothing);
  find('go').click();
  find('stop').click();
  assert.ok(asked()[0].stop.aborted);
  const cancelled = 'This was stopped; nothing of it was kept.';
  assert.deepEqual(shown(), { words: cancelled, runs: false, curve: '' });
  await asked()[0].answer(new Error('aborted'));
  assert.deepEqual(shown(), { words: cancelled, runs: false, curve: '' });
  find('go').click();
  assert.deepEqual(shown(), { words: 'Relevance: the trained model …', runs: true, curve: '' });
  await asked()[1].answer(new Error('Not this model.'));
  assert.deepEqual(shown(), { words: 'Not this model.', runs: false, curve: '' });
});

test('another map has its own check: what runs ends, and what came of it is not shown for this one', async (t) => {
  const { page, store, kept, asked, shown, find } = await open(t);
  await kept()[0].answer(curve);
  store.set({ method: 'rollout' });
  assert.deepEqual(shown(), { words: '', runs: false, curve: '' });
  await settle();
  await kept()[1].answer({ ...nothing, method: 'rollout', label: 'Rollout' });
  assert.deepEqual(shown(), { words: 'For Rollout.', runs: false, curve: '' });
  assert.equal(page.find('said').children.length, 1);
  find('go').click();
  const run = asked()[0];
  store.set({ layer: 3, q: '1,2' }); // of another tab
  assert.ok(!run.stop.aborted);
  store.set({ tab: 'look' });
  store.set({ tab: 'explain' });
  await settle();
  assert.ok(!run.stop.aborted && shown().runs);
  store.set({ target: '3' });
  assert.ok(run.stop.aborted);
  await run.answer({ ...curve, method: 'rollout', label: 'Rollout' });
  assert.deepEqual(shown(), { words: '', runs: false, curve: '' });
  store.set({ target: '', method: 'relevance' });
  await settle();
  await kept().at(-1)?.answer(curve);
  assert.equal(shown().curve, curve.title);
});

test('a view that cannot be checked says why, and one that nobody looks at is not asked about', async (t) => {
  const { kept, shown, store } = await open(t, '&explain=parts');
  assert.equal(kept().length, 0);
  store.set({ explain: 'why' });
  await settle();
  await kept()[0].answer(new Error('This model has no scores.'));
  assert.deepEqual(shown(), { words: 'This model has no scores.', runs: false, curve: '' });
  store.set({ tab: 'look' });
  store.look({ image: 'twins' });
  await settle();
  assert.equal(kept().length, 1);
});
