// The lesson as data, its clock, and the room that plays it: what keys, links, guesses and late answers do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { effect, html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { numbersOf } from '../../vit_viz/web/lesson/numbers.js';
import { Player } from '../../vit_viz/web/lesson/player.js';
import { Lesson } from '../../vit_viz/web/lesson/room.js';
import { reachOf } from '../../vit_viz/web/lesson/strip.js';
import {
  beatAt,
  endOf,
  moved,
  placed,
  sayToken,
  told,
  values,
  wordsOf,
} from '../../vit_viz/web/lesson/timeline.js';
import { Browser, ending } from './browser.js';
import { page as dom } from './document.js';
import { makeTrace } from './oracle.js';
import { fields, placeAt, settle } from './room.js';

/** Two scenes, of beats of 2, 4 and 3 seconds; the second beat waits for a guess, the last for an answer. @type {any[]} */
const SCENES = [
  {
    ...{ id: 'one', title: () => 'The first', draw() {} },
    beats: () => [
      { id: 'one-a', seconds: 2, part: 'photo', say: () => told`It *begins*.` },
      { id: 'one-b', seconds: 4, part: 'tokens', say: () => told`It goes on.` },
    ],
    guess: {
      before: 'one-b',
      question: () => ['How?'],
      choices: () => [['so'], ['or so']],
      truth: () => 1,
      verdict: () => ['Or so it is.'],
    },
  },
  {
    ...{ id: 'two', title: () => 'The second', draw() {}, needs: ['attention'] },
    beats: (/** @type {any} */ { layer }) => [
      { id: 'two-a', seconds: 3, part: `attn${layer}`, say: () => ['It ends.'] },
    ],
  },
];
/** Scenes of one beat each, and of one answer. @type {any[]} */
const LONG = ['tokens', 'attention', 'block', 'depth'].map((name) => ({
  ...{ id: name, title: () => name, draw() {}, needs: [name] },
  beats: () => [{ id: `${name}-a`, seconds: 2, part: 'photo', say: () => ['So.'] }],
}));
const BEATS = placed(SCENES, /** @type {any} */ ({ layer: 1 }));

test('a beat raises its own value in the first 70% of its time, and no other', () => {
  assert.deepEqual(values(BEATS, 0), { 'one-a': 0, 'one-b': 0, 'two-a': 0 });
  assert.deepEqual(values(BEATS, 2 + 1.4), { 'one-a': 1, 'one-b': 0.5, 'two-a': 0 });
  assert.equal(values(BEATS, 2 + 2.8)['one-b'], 1);
  assert.deepEqual(values(BEATS, 99), { 'one-a': 1, 'one-b': 1, 'two-a': 1 });
});

test('each moment belongs to one beat, also beyond the ends', () => {
  const at = [-1, 0, 1.999, 2, 5.999, 6, 99].map((t) => beatAt(BEATS, t).id);
  assert.deepEqual(at, ['one-a', 'one-a', 'one-a', 'one-b', 'one-b', 'two-a', 'two-a']);
  assert.equal(beatAt(BEATS, endOf(BEATS[1])).id, 'one-b');
});

test('a moment keeps its beat where beats get other lengths or go', () => {
  const longer = [{ ...BEATS[0], seconds: 10, end: 10 }, { ...BEATS[1], start: 10, end: 14 }, BEATS[2]];
  assert.equal(moved(BEATS, longer, 1), 5);
  assert.equal(moved(BEATS, longer, 4), 12);
  assert.equal(moved(BEATS, BEATS.slice(0, 1), 7), endOf(BEATS[0]));
});

test('what is said is data: terms between stars, numbers, patches and other sayings', () => {
  const said = told`Our *token* ${{ patch: 8 }} is ${3} ${['of ', { strong: 'all' }]}.`;
  assert.deepEqual(said, [
    'Our ',
    { term: 'token' },
    ' ',
    { patch: 8 },
    ' is ',
    '3',
    ' ',
    'of ',
    { strong: 'all' },
    '.',
  ]);
  assert.equal(wordsOf(said, 5), 'Our token (1, 3) is 3 of all.');
});

test('a token is said as its piece of the photo, or by its name', () => {
  const n = /** @type {any} */ ({
    trace: { prefix: ['class'], suffix: [], grid: [2, 3] },
    patch: 4,
    name: () => 'class token',
  });
  assert.deepEqual(sayToken(n, 0), ['the class token']);
  assert.deepEqual(sayToken(n, 5), ['itself ', { patch: 4 }]);
  assert.deepEqual(sayToken(n, 3), ['the patch ', { patch: 2 }]);
});

test('the band of the residual stream grows by half a block with attention and with the MLP', () => {
  assert.deepEqual(
    ['photo', 'attn0', 'mlp0', 'attn3', 'head'].map((part) => reachOf(part, 4)),
    [0, 0.125, 0.25, 0.875, 1],
  );
});

// --- the clock

/** A player of the beats in a browser whose time a test turns on. */
function clock(hold = /** @type {any} */ (() => null)) {
  const browser = new Browser();
  browser.install({ performance: { now: () => browser.now } });
  return { browser, player: new Player(() => BEATS, hold) };
}

test('it plays to its end, and from its beginning again', () => {
  const { browser, player } = clock();
  player.play();
  browser.pass(4000);
  assert.ok(Math.abs(player.t.value - 4) < 0.05);
  browser.pass(9000);
  assert.deepEqual([player.t.value, player.isPlaying.value], [player.end, false]);
  player.play();
  assert.deepEqual([player.t.value, player.isPlaying.value], [0, true]);
});

test('however often it is told to play, time passes once', () => {
  const { browser, player } = clock();
  for (let i = 0; i < 3; i++) player.play();
  browser.pass(1600);
  assert.equal(browser.timers.size, 1, 'one frame is waited for');
  assert.ok(Math.abs(player.t.value - 1.6) < 0.05);
});

test('two quick steps go two beats on, and the last one stops at the end of its beat', () => {
  const { browser, player } = clock();
  player.step(1, false);
  browser.pass(48);
  player.step(1, false);
  assert.equal(beatAt(BEATS, player.t.value).id, 'two-a');
  player.step(-1, false);
  browser.pass(9000);
  assert.deepEqual([player.t.value, player.isPlaying.value], [endOf(BEATS[1]), false]);
  player.step(1, true);
  assert.deepEqual(
    [player.t.value, player.isPlaying.value],
    [player.end, false],
    'a still is the end of a beat',
  );
});

test('a frame that comes late, as after a pause of the browser, does not leap', () => {
  const { browser, player } = clock();
  player.play();
  browser.now += 5000;
  browser.pass(17);
  assert.ok(player.t.value <= 0.2);
});

test('it waits where it is held, and goes on by itself when it no longer is', () => {
  let held = /** @type {any} */ ({ at: 1.5, stops: false });
  const { browser, player } = clock((/** @type {number} */ _from, /** @type {number} */ to) =>
    to > 1.5 ? held : null,
  );
  player.play();
  browser.pass(4000);
  assert.deepEqual([player.t.value, player.isPlaying.value], [1.5, true]);
  held = null;
  browser.pass(1000);
  assert.ok(player.t.value > 2.4);
});

// --- the room

/** The tab with a source that answers when it is told; a photo of 4 x 6 patches. */
async function open(
  search = '?tab=lesson&image=lion',
  { still = false, answers = true, scenes = SCENES } = {},
) {
  const browser = new Browser();
  browser.still = still;
  const image = class {
    getAttribute() {}

    decode = () => new Promise(() => {});
  };
  const watch = class {
    observe() {}

    disconnect() {}
  };
  const performance = { now: () => browser.now };
  browser.install({ performance, Image: image, MutationObserver: watch, document: dom.document });
  Object.assign(browser.window, {
    addEventListener: dom.addEventListener.bind(dom),
    removeEventListener: dom.removeEventListener.bind(dom),
  });
  const trace = makeTrace({
    ...{
      photo: '/p.jpg',
      about: { model: 'mini' },
      opening: { layer: 2, head: 'mean', patch: null },
      top: [],
    },
    crop: { original: [40, 60], input: [32, 48], region: [0, 0, 40, 60] },
  });
  const place = placeAt(search);
  /** @type {[string, any][]} */
  const asked = [];
  /** @type {(() => void)[]} */
  const late = [];
  const source = {
    keeps: () => false,
    answers: () => false,
    async answer(/** @type {string} */ name, /** @type {any} */ { view, ...body }) {
      if (name === 'open') return { ...trace, view };
      asked.push([name, body]);
      if (!answers) await new Promise((done) => late.push(() => done(null)));
      return { arrays: {}, facts: { shape: { classes: 7, final_norm: true }, query: body.query } };
    },
  };
  const store = new Store(fields, place);
  const page = { store, source, ask: asker(/** @type {any} */ (source)), turn: signal(0) };
  const element = dom.document.createElement('div');
  dom.document.body.append(element);
  render(html`<${Lesson} page=${page} scenes=${scenes} />`, element);
  ending.after(() => render(null, element));
  await settle();
  const find = (/** @type {string} */ selector) => element.querySelector(selector);
  const pass = async (/** @type {number} */ seconds) => {
    browser.pass(1000 * seconds);
    await settle();
  };
  const key = async (/** @type {string} */ name, target = dom.document.body) => {
    target.fire('keydown', { key: name });
    await settle();
  };
  const now = () => [find('.vv-lesson').dataset.beat, find('.vv-lesson').dataset.playing !== undefined];
  const arrive = () => late.splice(0).forEach((done) => done());
  return { arrive, asked, find, key, now, page, pass, place, store };
}

test('it plays when it is opened, says each beat, and the link follows', async () => {
  const { find, now, pass, store } = await open();
  assert.deepEqual(now(), ['one-a', true]);
  assert.equal(find('.vv-lesson-say').textContent, 'It begins.');
  assert.equal(find('dfn').textContent, 'begins');
  assert.equal(store.view.beat.value, '');
  await pass(5);
  assert.deepEqual(now(), ['one-a', false], 'it waits for a guess');
  find('.vv-lesson-guess button').click();
  await pass(1);
  assert.deepEqual(now(), ['one-b', true]);
  assert.equal(store.view.beat.value, 'one-b');
  assert.equal(find('canvas').getAttribute('aria-label'), 'It goes on.');
});

test('a guess that nobody makes is passed over by playing on', async () => {
  const { key, now, pass } = await open();
  await pass(5);
  await key(' ');
  await pass(0.5);
  assert.deepEqual(now(), ['one-b', true]);
});

test('where motion is unwelcome it stands still, and steps show the end of a beat', async () => {
  const { key, now, pass } = await open('?tab=lesson&image=lion', { still: true });
  await pass(3);
  assert.deepEqual(now(), ['one-a', false]);
  await key('ArrowRight');
  await key('ArrowRight');
  assert.deepEqual(now(), ['two-a', false]);
});

test('keys go to the ends and back, but not those that are meant for a control', async () => {
  const { find, key, now } = await open();
  await key(' ');
  assert.deepEqual(now(), ['one-a', false]);
  await key('End');
  assert.deepEqual(now(), ['two-a', false]);
  await key('Home');
  assert.deepEqual(now(), ['one-a', false]);
  await key('ArrowRight', find('[data-option=layer]'));
  await key(' ', find('.vv-lesson-speed'));
  assert.deepEqual(now(), ['one-a', false]);
});

test('a link opens the end of its beat and stands; Back leads to where it was before a click on the strip', async () => {
  const { find, now, place } = await open('?tab=lesson&image=lion&beat=one-b');
  assert.deepEqual(now(), ['one-b', false]);
  find('[data-part=attn0]').click();
  await settle();
  assert.deepEqual(now(), ['two-a', true]);
  assert.deepEqual(place.written.at(-1), [{ layer: '0', beat: 'two-a' }, true]);
  place.go('?tab=lesson&image=lion&beat=one-b');
  await settle();
  assert.deepEqual(now(), ['one-b', false]);
});

test('a beat whose numbers are on their way says so; what plays waits for them, and goes on', async () => {
  const opened = await open('?tab=lesson&image=lion&beat=two-a', { answers: false });
  const { arrive, find, now, pass, place } = opened;
  assert.equal(find('.vv-lesson-say').textContent, 'The second: computing …');
  assert.equal(find('.vv-lesson-stage').dataset.waits, 'attention');
  place.go('?tab=lesson&image=lion&beat=one-b');
  find('.vv-lesson-play').click();
  await pass(3);
  assert.deepEqual(now(), ['one-b', true]);
  arrive();
  await settle();
  await pass(1);
  assert.deepEqual(now(), ['two-a', true]);
  assert.equal(find('.vv-lesson-say').textContent, 'It ends.');
});

test('what a scene needs is asked for when the one before it is played, or when a link leads there', async () => {
  const names = (/** @type {any} */ { asked }) =>
    asked.map((/** @type {any[]} */ [name]) => name.replace('lesson_', ''));
  const opened = await open('?tab=lesson&image=lion', { scenes: LONG });
  assert.deepEqual(names(opened), ['tokens', 'attention']);
  await opened.pass(2.5);
  assert.deepEqual(opened.now(), ['attention-a', true]);
  assert.deepEqual(names(opened), ['tokens', 'attention', 'block']);
  const linked = await open('?tab=lesson&image=lion&beat=depth-a', { scenes: LONG });
  assert.deepEqual(names(linked).sort(), ['block', 'depth', 'tokens']);
});

test('another tab stops it, and so does a page that nobody sees', async () => {
  const { now, store } = await open();
  store.set({ tab: 'look' });
  await settle();
  assert.deepEqual(now(), ['one-a', false]);
});

test('another patch in the middle keeps the beat, asks about that patch, and takes guesses back', async () => {
  const { asked, find, now, pass, store } = await open();
  await pass(5);
  find('.vv-lesson-guess button').click();
  await pass(1);
  store.set({ q: '3,5' });
  await pass(0.1);
  assert.deepEqual(now(), ['one-b', true]);
  const last = Object.fromEntries(asked);
  assert.deepEqual(last.lesson_attention, { model: 'mini', query: '3,5', layer: 2, head: 0 });
  assert.deepEqual(last.lesson_tokens, { model: 'mini', query: '3,5' });
  assert.equal(find('.vv-lesson-guess [aria-pressed=true]'), null);
});

test('numbers of one patch are never told as those of another', async () => {
  const { page, store } = await open();
  const { numbers } = numbersOf(/** @type {any} */ (page), 'lesson', signal(['tokens']));
  /** @type {[number, string][]} */
  const seen = [];
  const end = effect(() => {
    const { patch, tokens } = numbers.value ?? {};
    if (tokens) seen.push([/** @type {number} */ (patch), tokens.facts.query]);
  });
  await settle();
  for (const change of [{ q: '3,5' }, { q: '1,1' }, { tab: 'look' }, { q: '0,2' }, { tab: 'lesson' }]) {
    store.set(change);
    await settle();
  }
  end();
  assert.deepEqual(new Set(seen.map(([patch]) => patch)), new Set([15, 23, 7, 2]));
  assert.ok(seen.every(([patch, query]) => query === `${Math.floor(patch / 6)},${patch % 6}`));
});

test('the patch that is followed is chosen by keys, too', async () => {
  const { find, key, store } = await open();
  const photo = find('.vv-lesson-photo');
  await key('ArrowRight', photo);
  await key('Enter', photo);
  assert.match(store.view.q.value, /^\d,\d$/);
});
