// The maps of the cards: what is asked for them, what lies on one scale, and what is drawn of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Quantile } from '../../vit_viz/explorer/attention.js';
import { CLIPPED } from '../../vit_viz/explorer/frame.js';
import { captionOf, onScale, questionOf, ruleWords } from '../../vit_viz/web/explain/maps.js';
import { endsOf } from '../../vit_viz/web/kit/map.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { read } from './browser.js';
import { mapBy, openExplain } from './explain_page.js';
import { placeAt, settle } from './room.js';

const { fields } = JSON.parse(read('./links.json'));
const PHOTO = { photo: '/photo/lion', photo_size: [40, 60] };
const answer = (/** @type {string} */ name, /** @type {any} */ values, /** @type {any} */ facts = {}) =>
  /** @type {any} */ ({ ...mapBy(name, values, facts), photo: PHOTO });
const rounded = (/** @type {ArrayLike<number>} */ values) =>
  Array.from(values, (value) => Math.round(1e4 * value) / 1e4);

test('a body has what the map is of, the class where the method takes one, and the options that are changed', () => {
  const store = new Store(fields, placeAt('?image=lion&share=0.25&value_rollout.attention_share=1'));
  const of = /** @type {any} */ ({ about: { model: 'mini' }, photo: PHOTO, target: { link: '4-7' } });
  const body = (/** @type {any} */ method, /** @type {string[]} */ ...target) =>
    questionOf(store, of, method, ...target)[1].body;
  assert.deepEqual(body({ name: 'relevance', aimed: true }), { model: 'mini', target: '4-7' });
  assert.deepEqual(body({ name: 'relevance', aimed: true }, '7'), { model: 'mini', target: '7' });
  assert.deepEqual(body({ name: 'rollout' }), { model: 'mini', attention_share: 0.25 });
  assert.deepEqual(body({ name: 'value_rollout' }), { model: 'mini', attention_share: 1 });
  of.target.link = ''; // the image's own embedding
  assert.deepEqual(body({ name: 'relevance', aimed: true }), { model: 'mini', target: null });
});

test('a clipped scale ends where that of the explorer does', () => {
  const values = Float32Array.from({ length: 300 }, (_, i) => ((i * 7919) % 300) ** 2 / 3);
  const quantile = new Quantile();
  const most = Math.max(...values);
  quantile.reset(0, most);
  quantile.add(new Uint32Array(values.buffer), 0, values.length);
  assert.deepEqual(endsOf(values, false, true), [0, Math.min(most, quantile.top(CLIPPED))]);
  assert.deepEqual(endsOf(values, false, false), [0, most]);
  assert.deepEqual(endsOf(Float32Array.of(-3, 1), true, false), [-3, 3]);
});

test('maps share a scale as shares of their sums, or less the mean of the quick ones; no map alone makes it', () => {
  const maps = new Map([
    ['one', answer('one', [1, 1, 0, 0, 0, 0])],
    ['two', answer('two', [0, 0, 0, 0, 0, 8])],
    ['slow', answer('slow', [3, 3, 3, 3, 3, 3])],
  ]);
  const shown = (/** @type {any} */ ruler, quick = ['one', 'two']) => onScale(maps, quick, ruler, false);
  assert.deepEqual(shown('own').get('two')?.ends, [0, 8]);
  assert.deepEqual(shown('share').get('one')?.ends, [0, 1]);
  assert.deepEqual(rounded(shown('share').get('one')?.map.values ?? []), [0.5, 0.5, 0, 0, 0, 0]);
  const only = shown('only');
  assert.deepEqual(rounded(only.get('one')?.map.values ?? []), [0.25, 0.25, 0, 0, 0, -0.5]);
  assert.deepEqual([only.get('slow')?.ends, only.get('slow')?.map.signed], [[-0.5, 0.5], true]);
  assert.equal(shown('share', ['one', 'two', 'on its way']).size, 0);
  maps.set('failed', null);
  assert.equal(shown('share', ['one', 'two', 'failed']).size, 3);
  assert.equal(shown('own').get('one')?.map, shown('own').get('one')?.map); // so that it is painted once
});

test('a card is told in the words of its answer, and says where its scale ends', () => {
  const drawn = (/** @type {any} */ ends) => ({ map: { values: [1, 6], unit: 'weight' }, ends });
  const said = (/** @type {any} */ ends, ruler = 'own', note = '') =>
    captionOf(
      answer('map', undefined, { note }),
      /** @type {any} */ (drawn(ends)),
      /** @type {any} */ (ruler),
    );
  assert.equal(said([0, 6]), 'A map. Half of the map lies on 2 of 6 patches. Scale: weight from 0 to 6.');
  assert.match(
    said([0, 4], 'only', 'Noisy.'),
    /^A map\. Noisy\. Scale: .* Its largest value, 6, lies beyond/,
  );
  assert.match(ruleWords('only', 'lead', [], [-0.5, 0.5]), /from -0.5 to 0.5 for all/);
  assert.equal(ruleWords('own', 'lead', ['a', 'b']), '');
  assert.match(ruleWords('own', 'one', ['a', 'b']), /a's lead over b.* the map for a alone/);
});

test('a map is drawn on the photo as wide as its card, from its numbers', async (t) => {
  const page = await openExplain(t, '&style=tint');
  const canvas = page.card('relevance', 'canvas');
  assert.deepEqual([canvas.parentElement.style.left, canvas.parentElement.style.width], ['0%', '100%']);
  canvas.parentElement.box = { width: 90, height: 60 };
  page.card('relevance', 'img').fire('load');
  await settle();
  assert.deepEqual([canvas.width, canvas.height, 'drawn' in canvas.dataset], [90, 60, true]);
  const sheet = canvas.getContext('2d');
  assert.equal(sheet.calls.filter((/** @type {any[]} */ [name]) => name === 'drawImage').length, 1);
});
