// Asking in words on the Explain tab: sentences are written, chosen and taken away, and each has its map.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mapsIn, without } from '../../vit_viz/web/explain/sentences.js';
import { mapBy, openExplain, pressed, texts } from './explain_page.js';
import { settle } from './room.js';

const COSINES = [0.31, 0.27, -0.05];

const sentencesIn = (/** @type {string | null} */ text) =>
  [...new Set((text ?? '').split('|').map((one) => one.trim()))].filter(Boolean);

/** What a model that reads says of the sentences of a link, and what links say once others are written. @param {any} body */
const target = ({ view, sentences, templates }) => {
  const link = new URLSearchParams(view);
  const names = sentencesIn(link.get('sentences'));
  if ([sentences, templates].some((text) => text?.includes('refused'))) return new Error('That is not read.');
  if (templates !== undefined) return { templates: sentencesIn(templates).join(' | ') };
  if (sentences !== undefined) {
    const all = [...new Set([...names, ...sentencesIn(sentences)])];
    const newest = sentencesIn(sentences).at(-1);
    return { sentences: all.join(' | '), ...(newest && { target: String(all.indexOf(newest)) }) };
  }
  if (!names.length)
    return {
      classes: [],
      reads: true,
      words: 'None is written yet.',
      examples: ['a dog', 'the sky'],
      name: '',
      link: '',
    };
  const [chosen = 0, other = null] = (link.get('target') ?? '').split('-').filter(Boolean).map(Number);
  const classes = names.map((written, index) => ({
    name: written.startsWith('@') ? `named ${written}` : written,
    index,
    probability: 1 / names.length,
    cosine: COSINES[index % 3],
  }));
  const pair = other === null ? `${chosen}` : `${chosen}-${other}`;
  return {
    classes,
    chosen,
    other,
    reads: true,
    shares: 'Shares depend.',
    words: '',
    name: names[chosen],
    link: pair,
  };
};
const class_maps = (/** @type {any} */ { sentences }) => {
  const count = sentencesIn(sentences).length;
  const data = Float32Array.from({ length: 6 * count }, (_, i) => i / 10);
  return {
    ...mapBy('relevance'),
    arrays: { values: { shape: [count, 2, 3], data } },
    words: 'Most for one.',
  };
};
const sentence_patches = {
  arrays: { best: { shape: [2, 3], data: BigInt64Array.from([0n, 0n, 1n, 1n, 1n, 0n]) } },
  facts: {
    maps: {
      ...mapBy('x').facts,
      names: ['a lion', '<b>rock</b>', 'the sky'],
      note: 'A probe: another model than yours.',
    },
  },
  words: 'Fits best of 6 patches.',
};
/** The body of each question has the sentences of its link. */
const open = (/** @type {any} */ t, search = '', more = {}) =>
  openExplain(t, `&method=relevance${search}`, { target, class_maps, sentence_patches, ...more });
const THREE = '&sentences=a+lion+|+<b>rock</b>+|+the+sky';

async function write(/** @type {any} */ page, /** @type {string} */ words) {
  const form = page.find('.vv-write');
  form.querySelector('input').value = words;
  form.fire('submit');
  await settle();
}

test('what is explained stays the same sentence where another one goes', () => {
  const all = ['a', 'b', 'c'];
  assert.deepEqual(without(all, 0, [2, 1]), { sentences: 'b | c', target: '1-0' });
  assert.deepEqual(without(all, 1, [2, 1]), { sentences: 'a | c', target: '1' });
  assert.deepEqual(without(all, 2, [2, 1]), { sentences: 'a | b', target: '' });
  assert.deepEqual(without(['a'], 0, [0]), { sentences: '', target: '' });
});

test('without sentences the field has some to try; Enter asks about the one that is written, and a letter does not', async (t) => {
  const page = await open(t);
  assert.deepEqual(texts(page.all('.vv-example')), ['a dog', 'the sky']);
  assert.match(page.text('.vv-target-words'), /^None is written yet\. Write one, or try:\s+a dog\s+the sky$/);
  assert.equal(page.find('.vv-every'), null);
  const asked = page.asked('target', 'open').length;
  page.find('.vv-write input').value = 'a cat';
  page.find('.vv-write input').fire('input');
  await settle();
  assert.equal(page.asked('target', 'open').length, asked);
  await write(page, ' a cat ');
  assert.deepEqual([page.store.view.sentences.value, page.store.view.target.value], ['a cat', '0']);
  assert.equal(page.find('.vv-write input').value, '');
  assert.match(page.place.search(), /sentences=a\+cat/);
  assert.equal(page.all('.vv-example').length, 0);
  await write(page, 'the sky');
  assert.deepEqual([page.store.view.sentences.value, page.store.view.target.value], ['a cat | the sky', '1']);
  await write(page, 'a cat'); // it is there
  assert.deepEqual([page.store.view.sentences.value, page.store.view.target.value], ['a cat | the sky', '0']);
  await write(page, '  ');
  assert.equal(page.store.view.sentences.value, 'a cat | the sky');
  assert.deepEqual(
    page.place.written.map(([, push]) => push),
    [true, true, true],
  ); // Back leads to what was there before
});

test('a chip chooses a sentence, its cross takes it away, and "and not" sets one against another', async (t) => {
  const page = await open(t, THREE);
  const chips = () => page.all('.vv-written .vv-chip').map(pressed).join();
  assert.deepEqual(texts(page.all('.vv-written .vv-chip')), ['a lion', '<b>rock</b>', 'the sky']);
  assert.equal(chips(), 'true,false,false');
  page.all('.vv-written .vv-chip')[2].click();
  await settle();
  assert.deepEqual([page.store.view.target.value, chips()], ['2', 'false,false,true']);
  page.all('.vv-unlike .vv-chip')[1].click();
  await settle();
  assert.deepEqual([page.store.view.target.value, page.store.view.sides.value], ['2-1', 'difference']);
  assert.equal(page.all('.vv-take')[0].getAttribute('aria-label'), 'Take “a lion” away');
  page.all('.vv-take')[0].click();
  await settle();
  assert.deepEqual(
    [page.store.view.sentences.value, page.store.view.target.value],
    ['<b>rock</b> | the sky', '1-0'],
  );
});

test('answers have the cosine and the share, and every sentence a map on one scale', async (t) => {
  const page = await open(t, `${THREE}&target=1`);
  assert.deepEqual(texts(page.all('.vv-answer > .vv-number')), ['0.27 · 33%', '0.31 · 33%', '-0.05 · 33%']);
  assert.match(page.text('.vv-play-below'), /Shares depend\./);
  const sides = page.all('.vv-every .vv-side');
  assert.deepEqual(sides.map(pressed), ['false', 'true', 'false']);
  assert.deepEqual(texts(page.all('.vv-every .vv-side > .vv-small')), [
    'cosine 0.31',
    'cosine 0.27',
    'cosine -0.05',
  ]);
  assert.match(page.text('.vv-every'), /Relevance, from 0 to 1\.7\. Most for one\./);
  const [{ body }] = page.asked('class_maps');
  assert.deepEqual(['method' in body, 'target' in body], [true, false]);
  sides[2].click();
  await settle();
  assert.equal(page.store.view.target.value, '2');
  assert.equal(page.asked('class_maps').length, 1); // the same maps, another one chosen
  await page.set({ method: 'rollout' }); // the same for every sentence
  assert.equal(page.asked('class_maps').at(-1)?.body.method, 'relevance');
});

test('the maps of an answer are told apart', () => {
  const maps = mapsIn(class_maps({ sentences: 'a | b' }));
  assert.deepEqual(
    maps.map(({ grid }) => grid.join()),
    ['2,3', '2,3'],
  );
  assert.deepEqual(
    maps.map(({ values }) => values[5].toFixed(1)),
    ['0.5', '1.1'],
  );
});

test('the patches that a sentence fits best have its colour, which the key names', async (t) => {
  const page = await open(t, THREE);
  assert.deepEqual(texts(page.all('.vv-best-key li')), ['a lion', '<b>rock</b>']); // the sky fits none best
  assert.match(page.text('.vv-best'), /A probe: another model than yours\./);
  await page.click('.vv-best .vv-link');
  assert.equal(page.store.view.ask.value, 'sentence_patches');
});

test('among pictures no patch has a sentence that fits it best, which is said; with sentences alone they have', async (t) => {
  const page = await open(t, `${THREE}+|+@u1`);
  assert.deepEqual([page.find('.vv-best canvas'), page.asked('sentence_patches')], [null, []]);
  assert.match(
    page.text('.vv-gallery'),
    /Which sentence fits each patch best is shown among sentences alone/,
  );
  await page.set({ sentences: 'a lion | me@home' });
  assert.equal(page.asked('sentence_patches').length, 1);
  assert.ok(page.find('.vv-best canvas'));
});

test('a link that somebody wrote by hand has the sentences that the server reads in it', async (t) => {
  const page = await open(t, '&sentences=a+lion|+the+sky+|a+lion|');
  assert.deepEqual(texts(page.all('.vv-written .vv-chip')), ['a lion', 'the sky']);
  page.all('.vv-take')[0].click();
  await settle();
  assert.equal(page.store.view.sentences.value, 'the sky');
});

test('templates are written in a fold that says what is set', async (t) => {
  const page = await open(t, THREE);
  assert.equal(page.text('.vv-templates summary'), 'Read as they are written');
  page.find('.vv-templates input').value = ' a photo of {}. |  {} ';
  page.find('.vv-templates form').fire('submit');
  await settle();
  assert.equal(page.store.view.templates.value, 'a photo of {}. | {}');
  assert.equal(page.text('.vv-templates summary'), 'Read as “a photo of {}. | {}”');
});

test('another photo, and the patch of Look, stand in the place of a sentence; links keep what is written for them', async (t) => {
  const page = await open(t, '&image=lion&q=0,2');
  const select = page.find('.vv-likes select');
  assert.deepEqual(texts(page.all('.vv-likes option')), ['like another photo …', 'mine.jpg']);
  select.value = 'u1';
  select.fire('change');
  await settle();
  assert.equal(page.store.view.sentences.value, '@u1');
  assert.equal(page.text('.vv-likes button'), 'like patch (0, 2)');
  page.find('.vv-likes button').fire('click');
  await settle();
  assert.equal(page.store.view.sentences.value, '@u1 | @lion 0,2');
  assert.deepEqual(texts(page.all('.vv-written .vv-chip')), ['named @u1', 'named @lion 0,2']);
  page.all('.vv-take')[0].fire('click');
  await settle();
  assert.equal(page.store.view.sentences.value, '@lion 0,2');
});

test('what is refused is told beside its field and stays there until something else is taken', async (t) => {
  const page = await open(t, THREE);
  const said = () => page.all('.vv-refused').map(({ hidden, textContent }) => (hidden ? '' : textContent));
  for (const [form, written, taken, place] of [
    ['.vv-write', 'refused', 'a cat', ''],
    ['.vv-templates form', 'refused {}', 'a photo of {}.', 'second'],
  ]) {
    const view = ['sentences', 'templates'].map((name) => page.store.view[name].value);
    page.find(`${form} input`).value = written;
    page.find(form).fire('submit');
    await settle();
    assert.deepEqual(said(), place ? ['', 'That is not read.'] : ['That is not read.', '']);
    assert.deepEqual(
      [page.find(`${form} input`).value, page.find(`${form} input`).getAttribute('aria-invalid')],
      [written, 'true'],
    );
    assert.deepEqual(
      ['sentences', 'templates'].map((name) => page.store.view[name].value),
      view,
    );
    page.find(`${form} input`).value = taken;
    page.find(form).fire('submit');
    await settle();
    assert.deepEqual(said(), ['', '']);
    assert.match(page.place.search(), place ? /templates=a\+photo/ : /sky\+%7C\+a\+cat/);
  }
});

test('another photo keeps the sentences and the chosen one; another model drops them', async (t) => {
  const page = await open(t, `${THREE}&target=2&templates=a+photo+of+{}.`);
  const view = () => ['sentences', 'templates', 'target'].map((name) => page.store.view[name].value);
  page.store.look({ image: 'tower' });
  assert.deepEqual(view(), ['a lion | <b>rock</b> | the sky', 'a photo of {}.', '2']);
  page.store.look({ model: 'mini' });
  assert.deepEqual(view(), ['', '', '']);
});
