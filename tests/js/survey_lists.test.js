// Photos as cards and classes and methods as tables: what stands in them, and how cards are lit.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  cardGroup,
  drawClasses,
  drawMethods,
  Lighter,
  photoCard,
  selectionLink,
} from '../../vit_viz/web/survey/lists.js';
import { Browser, Element, parse } from './browser.js';
import { card, settle, texts } from './survey_page.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const SCORES = {
  pointing: 'points at the object',
  energy: 'map on the object',
  insertion: 'insertion over random',
  deletion: 'deletion below random',
};
const TABLE = '<table><thead></thead><tbody></tbody></table>';

/** The words of a card: the answer, what is said of it, its value. */
const wordsOf = (/** @type {any} */ button) => texts(button.querySelectorAll('.vv-survey-file')[0].children);

test('a card has its photo, the answer, and a ring where the head looks most', (context) => {
  new Browser().install(context);
  const button = any(photoCard(card(4), 'outside'));
  assert.deepEqual(
    [button.className, button.type, button.dataset.row],
    ['vv-survey-card vv-bare', 'button', '4'],
  );
  assert.equal(button.title, 'Open photo 4.jpg in Look');
  const [stage, file] = button.children;
  assert.deepEqual([stage.className, file.className], ['vv-survey-stage', 'vv-survey-file']);
  assert.equal(stage.style.aspectRatio, '60 / 40');
  const [image, ring] = stage.children;
  assert.deepEqual([image.src, image.alt, image.loading], ['/vit_viz/survey/thumbnail/4', '', 'lazy']);
  assert.deepEqual([ring.className, ring.style.top, ring.style.left], ['vv-survey-ring', '25%', '75%']);
  assert.deepEqual(wordsOf(button), ['dog', '63%, is cat', 'outside 12.5']);
  assert.deepEqual(
    file.children.map((/** @type {any} */ one) => one.className),
    ['vv-survey-answer vv-class', 'vv-small vv-class', 'vv-small vv-class'],
  );
  assert.equal(file.children[0].dataset.right, 'false');
  assert.ok(!stage.classList.contains('vv-gone'));
  image.fire('error');
  assert.ok(stage.classList.contains('vv-gone'));
});

test('a card says only what is known', (context) => {
  new Browser().install(context);
  const words = (/** @type {any} */ changes, named = '') => wordsOf(photoCard(card(1, changes), named));
  assert.deepEqual(words({ right: true }), ['dog', '63%', '12.5']);
  assert.deepEqual(words({ confidence: null }), ['dog', 'is cat', '12.5']);
  assert.deepEqual(words({ confidence: null, right: null, answer: '' }), ['no answer', '', '12.5']);
  assert.deepEqual(words({ value: null }, 'outside'), ['dog', '63%, is cat', 'photo 1.jpg']);
  assert.deepEqual(words({ value: 0 }, 'outside'), ['dog', '63%, is cat', 'outside 0']);
  const right = (/** @type {any} */ of) =>
    any(photoCard(card(1, { right: of }), '')).querySelector('.vv-survey-answer').dataset.right;
  assert.deepEqual([right(true), right(null)], ['true', undefined]);
});

test('photos stand under their title, and where there are none it says so', (context) => {
  new Browser().install(context);
  const group = any(cardGroup('highest', [card(4), card(1)], ''));
  assert.equal(group.className, 'vv-survey-group vv-stack');
  const [title, line] = group.children;
  assert.deepEqual([title.tagName, title.className, title.textContent], ['H4', 'vv-small', 'highest']);
  assert.equal(line.className, 'vv-survey-line');
  assert.deepEqual(
    line.children.map((/** @type {any} */ one) => one.dataset.row),
    ['4', '1'],
  );
  const empty = any(cardGroup('', [], ''));
  assert.deepEqual(
    empty
      .querySelectorAll('*')
      .map((/** @type {any} */ one) => `${one.tagName} ${one.className}: ${one.textContent}`),
    ['DIV vv-survey-line: No photo.', 'P vv-quiet: No photo.'],
  );
});

/** Pictures whose decoding a test ends, in the order in which they were asked for. */
function makeImages() {
  /** @type {{src: string, done: () => void, fail: () => void}[]} */
  const waiting = [];
  function Image() {
    const image = Object.assign(new Element('img'), { naturalWidth: 90, naturalHeight: 70 });
    image.decode = () =>
      new Promise((done, fail) =>
        waiting.push({
          src: image.src,
          done: () => done(undefined),
          fail: () => fail(new Error('No picture.')),
        }),
      );
    return image;
  }
  return { Image, waiting };
}

test('cards are lit one after the other; where there is no lit photo the one before stays', async (context) => {
  const { Image, waiting } = makeImages();
  new Browser().install(context, { Image });
  const cards = [4, 1, 2].map((row) => any(photoCard(card(row), '')));
  cards[0].children[0].classList.add('vv-gone');
  const lit = new Lighter().light(cards, (row) => `/lit/${row}`);
  assert.deepEqual(texts(waiting.map(({ src }) => ({ textContent: src }))), ['/lit/4']);
  waiting[0].done();
  await settle();
  const [image, ...others] = cards[0].children[0].children;
  assert.deepEqual([image.className, image.alt, image.src], ['vv-survey-lit', '', '/lit/4']);
  assert.equal(others.length, 0);
  assert.equal(cards[0].children[0].style.aspectRatio, '90 / 70');
  assert.ok(!cards[0].children[0].classList.contains('vv-gone'));
  assert.equal(waiting[1].src, '/lit/1');
  waiting[1].fail();
  await settle();
  assert.equal(cards[1].querySelectorAll('.vv-survey-ring').length, 1);
  waiting[2].done();
  await lit;
  assert.equal(cards[2].querySelectorAll('.vv-survey-ring').length, 0);
});

test('a newer list ends the lighting of the one before, as does a stop', async (context) => {
  const { Image, waiting } = makeImages();
  new Browser().install(context, { Image });
  const make = () => [4, 1].map((row) => any(photoCard(card(row), '')));
  const [first, second] = [make(), make()];
  const lighter = new Lighter();
  const before = lighter.light(first, (row) => `/old/${row}`);
  void lighter.light(second, (row) => `/new/${row}`);
  waiting[0].done();
  await before;
  assert.equal(first[0].querySelectorAll('.vv-survey-lit').length, 0);
  assert.deepEqual(
    waiting.map(({ src }) => src),
    ['/old/4', '/new/4'],
  );
  lighter.stop();
  waiting[1].fail();
  await settle();
  assert.equal(waiting.length, 2);
});

test('classes have their counts, accuracies and means; a mean that no class has is left out', (context) => {
  new Browser().install(context);
  const table = parse(TABLE);
  const means = (/** @type {any} */ ...[confidence, depth, none]) => ({
    confidence,
    head_depth: depth,
    none,
  });
  drawClasses(any(table), [
    { label: 'cat', photos: 3, accuracy: 2 / 3, means: means(0.75, null, null) },
    { label: '<b>', photos: 12, accuracy: null, means: means(null, 1.5, null) },
  ]);
  const rows = table.querySelectorAll('tr').map((row) => texts(row.children));
  assert.deepEqual(rows, [
    ['label', 'photos', 'right', 'confidence', 'head depth'],
    ['cat', '3', '67%', '0.75', ''],
    ['<b>', '12', '', '', '1.5'],
  ]);
  const [button] = table.querySelectorAll('tbody button');
  assert.deepEqual([button.className, button.dataset.label], ['vv-survey-class vv-bare', 'cat']);
  assert.equal(/** @type {any} */ (button).title, 'Filter by cat');
  const scopes = table.querySelectorAll('th').map((one) => one.getAttribute('scope'));
  assert.deepEqual(scopes, ['col', 'col', 'col', 'col', 'col', 'row', 'row']);
  drawClasses(any(table), []);
  assert.deepEqual(texts(table.querySelectorAll('tr')), ['labelphotosright']);
});

test('methods have their scores with intervals, in the order of the scores; without any there is no table', (context) => {
  new Browser().install(context);
  const table = parse(TABLE);
  const of = (/** @type {number} */ mean) => ({ mean, low: mean - 0.25, high: mean + 0.25, photos: 9 });
  const words = drawMethods(any(table), {
    lines: { rollout: { insertion: of(0.5), pointing: of(0.75) }, raw: { insertion: of(0.25) } },
    scores: SCORES,
    conclusion: '',
    resamples: 40,
  });
  assert.equal(table.hidden, false);
  assert.equal(
    words,
    'Means with 95% intervals from 40 bootstrap samples of the photos; higher is better; in insertion and deletion 0 is chance.',
  );
  assert.deepEqual(
    table.querySelectorAll('tr').map((row) => texts(row.children)),
    [
      ['method', 'points at the object', 'insertion over random'],
      ['rollout', '0.75 (0.50 to 1.00)', '0.50 (0.25 to 0.75)'],
      ['raw', '', '0.25 (0.00 to 0.50)'],
    ],
  );
  const all = { pointing: of(0.5), energy: of(0.5), insertion: of(0.5), deletion: of(0.5) };
  drawMethods(any(table), { lines: { raw: all }, scores: SCORES, conclusion: '', resamples: 40 });
  assert.deepEqual(texts(table.querySelectorAll('th')).slice(1, 5), [
    'points at the object',
    'map on the object',
    'insertion over random',
    'deletion below random',
  ]);
  assert.equal(
    drawMethods(any(table), { lines: {}, scores: SCORES, conclusion: 'None.', resamples: 40 }),
    '',
  );
  assert.equal(table.hidden, true);
});

test('the link of a selection holds the filter, the list, and the head', () => {
  const choice = { layer: 2, head: 0, where: "label = 'a & b'", across: 'margin', up: 'confidence' };
  const link = new URL(
    selectionLink('http://here/?image=x&layer=5', {
      ...choice,
      measure: 'entropy',
      list: 'elsewhere',
      second: '',
    }),
  );
  assert.deepEqual(Object.fromEntries(link.searchParams), {
    image: 'x',
    tab: 'survey',
    ...{ ...choice, layer: '2', head: '0' },
    of_heads: 'entropy',
    photos: 'elsewhere',
  });
});
