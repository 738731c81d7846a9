// What a test of the maps found for one class, while another class of the same photo is chosen.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mountGallery } from './gallery_part.js';

const method = (/** @type {string} */ name, /** @type {string} */ label) => ({
  ...{ name, label, map: { caption: label }, src: `/${name}.png`, ratio: 1.5, options: 'o' },
});
const cards = {
  chosen: 'rollout',
  cards: [method('rollout', 'Rollout'), method('relevance', 'Relevance'), method('legrad', 'LeGrad')],
};
const fall = {
  x: [0, 1],
  y: [1, 0],
  low: [0.5, 0],
  high: [1, 0.5],
  ends: [0, 1],
  labels: ['0', '1'],
  texts: ['1', '0'],
};
const known = {
  options: 'o',
  falls: 'falls 4.0 x faster than at random',
  better: true,
  place: { area: 0.05, low: 0.1, high: 0.3, mean: 0.2 },
  sentences: ['Better than each.'],
  curves: { deletion: fall, insertion: fall },
};
const card = (/** @type {any} */ part, /** @type {string} */ name) =>
  part.find('cards').children.find((/** @type {any} */ c) => c.dataset.method === name);
const inside = (/** @type {any} */ node, /** @type {string} */ name) => node.querySelector(`.vv-${name}`);

test('what was tested for a class stays as that of this class until the other one is tested, and comes back with it', async () => {
  const about = (/** @type {string} */ target, photo = 'photo') => ({
    ...cards,
    ...{ target, about: photo, key: `${photo}|${target}` },
  });
  const part = mountGallery(about('lion'));
  const shown = () => ({
    title: part.find('gallery-title').textContent,
    first: part.find('cards').children[0].dataset.method,
    falls: inside(card(part, 'rollout'), 'falls').textContent,
    other: card(part, 'rollout').classList.contains('vv-of-other'),
    curve: part.find('fall').hidden ? '' : part.find('fall-title').textContent,
    said: part.find('said').children[0].textContent,
    test: part.find('test').textContent,
  });
  part.browser.window.fire('vv-taken', { detail: 0.25 });
  const found = { relevance: known, rollout: known };
  await part.tested({ order: ['relevance', 'rollout'], cards: found });
  const lion = shown();
  assert.deepEqual(lion, {
    title: 'Three ways to ask, the most faithful first',
    first: 'relevance',
    falls: known.falls,
    other: false,
    curve: 'Rollout: the answer falls as its patches go',
    said: known.sentences[0],
    test: lion.test,
  });
  assert.ok(!part.find('now').hidden);
  part.set(about('cougar'));
  assert.deepEqual(shown(), {
    title: 'Three ways to ask, the most faithful for lion first',
    first: 'relevance',
    falls: `for lion: ${known.falls}`,
    other: true,
    curve: 'Rollout for lion: the answer falls as its patches go',
    said: 'Measured for lion, not for cougar yet.',
    test: 'Which are the most faithful?',
  });
  assert.ok(part.find('now').hidden); // the slider takes away the patches of another map
  part.find('test').click();
  const asked = part.asked[1];
  assert.deepEqual(asked.body.methods, ['rollout', 'relevance', 'legrad']);
  asked.tell({ share: 0.5, left: '', preview: { words: 'testing', cards: {} } });
  assert.equal(shown().falls, `for lion: ${known.falls}`);
  const slower = { ...known, falls: 'falls slower than at random', better: false };
  await asked.answer({ order: ['rollout'], cards: { rollout: slower } });
  assert.deepEqual([shown().falls, shown().other, shown().first], [slower.falls, false, 'rollout']);
  assert.ok(inside(card(part, 'relevance'), 'falls').hidden); // not tested for this class
  part.set(about('lion'));
  assert.deepEqual(shown(), lion);
  part.set(about('tower', 'another photo'));
  assert.deepEqual([shown().falls, shown().curve, shown().other], ['', '', false]);
  part.set(about('lion'));
  assert.equal(shown().falls, ''); // of a photo that was left nothing is kept
});
