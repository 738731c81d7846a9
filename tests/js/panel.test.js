// The panel: which question the link asks, controls made of its options, how its answer is followed, and what ends it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { STOPPED } from '../../vit_viz/web/kit/job.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { QuestionPanel } from '../../vit_viz/web/palette/panel.js';
import { Browser, mount, read } from './browser.js';
import { placeAt } from './store.test.js';
import { settle } from './visit.js';

const { fields } = JSON.parse(read('./links.json'));
const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const DEPTH = {
  ...{ name: 'depth', label: 'Depth', shows: 's', hides: 'h', source: 'p', runs: '', slow: false },
  formats: ['png', 'npz', 'json'],
};
const SLOW = { ...DEPTH, slow: true, runs: 'Takes 9 passes.' };
const POWER = { name: 'power', link: '', label: 'power', sentence: 'S.', default: 1, low: 1, high: 9000 };
const ABOUT = { model: 'mini', image: { sample: 'lion' } };
const FACTS = [['unit', 'layers']];
const LINK = '?image=lion&tab=heads&ask=depth&ask.power=2';

/** The question of a view as the server says it: with a control for its option, and a key of its picture and that option. */
function valueOf(/** @type {string} */ view, question = DEPTH) {
  const link = new URLSearchParams(view);
  const value = Number(link.get('ask.power') ?? 1);
  const key = `${link.get('image')} ${link.get('ask')} ${value}`;
  const words = { ...question, name: link.get('ask') ?? '' };
  return {
    key,
    own: false,
    about: ABOUT,
    question: words,
    controls: [{ ...POWER, value }],
    quick: !question.slow,
  };
}

/** What is possible of a power: a whole number. */
function chosenOf(/** @type {any} */ { power }) {
  const isPossible = /^\d+$/.test(power);
  return isPossible
    ? { refused: {}, link: { 'ask.*': `ask.power=${power}`, run: null } }
    : { refused: { power: 'A whole number.' }, link: {} };
}

/** The panel at a link; `said` changes what the server says of a question, `answer` answers: until then it waits. */
async function panel({
  link = LINK,
  said = /** @type {(told: any, body: any) => any} */ ((told) => told),
  answer = /** @type {(body: any, tell: any) => any} */ (() => undefined),
  file = /** @type {(url: string) => any} */ (() => ({ ok: true, blob: async () => ({}) })),
} = {}) {
  const browser = new Browser();
  /** @type {[string, any][]} */
  const fetched = [];
  const fetch = async (/** @type {string} */ url, /** @type {any} */ { body }) => (
    fetched.push([url, JSON.parse(body)]),
    file(url)
  );
  Object.assign(browser.globals, { fetch });
  Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} });
  const place = placeAt(link);
  const store = new Store(fields, place);
  /** @type {{name: string, body: any, stop: AbortSignal, tell: any, done: (value: any) => void, fail: (error: Error) => void}[]} */
  const asked = [];
  const ask = asker({
    keeps: () => false,
    answer(name, body, stop, tell) {
      let [done, fail] = any([]);
      const promise = new Promise((resolve, reject) => ([done, fail] = [resolve, reject]));
      asked.push({ name, body, stop, tell, done, fail });
      const known =
        name === 'answer'
          ? answer(body, tell)
          : body.options
            ? said(chosenOf(body.options), body)
            : said(valueOf(body.view), body);
      if (known instanceof Error) fail(known);
      else if (known !== undefined) done(known);
      return promise;
    },
  });
  const turn = signal(0);
  const page = { store, ask, turn };
  const start = (/** @type {any} */ element) => render(html`<${QuestionPanel} page=${page} />`, element);
  const mounted = mount(start, { browser });
  await settle();
  const { find } = mounted;
  const input = () => any(find('question-controls').querySelector('[data-option]'));
  return {
    ...mounted,
    ...{
      isOpen: () => Boolean(any(find('question'))?.open),
      drawn: () => any(find('question')).dataset.drawn,
      caption: () => any(mounted.element.querySelector('figcaption')),
      place,
      store,
      asked,
      fetched,
      input,
      turn,
    },
    of: (/** @type {string} */ name) => asked.filter((one) => one.name === name && !one.body.options),
    state: () => any(find('question')).dataset.state,
    text: (/** @type {string} */ name) => find(`question-${name}`).textContent,
    far: () => ['job-words', 'job-amount'].map((name) => find(name).textContent),
    refusal: () => any(find('question-controls').querySelector('.vv-refusal')),
    async type(/** @type {string} */ text) {
      input().value = text;
      input().fire('change');
      await settle();
    },
    async press(/** @type {string} */ name) {
      find(`question-${name}`).click();
      await settle();
    },
    async go(/** @type {string} */ to) {
      place.go(to);
      await settle();
    },
  };
}

const answerTo = () => ({ facts: FACTS });

test('nothing is asked where the link asks nothing', async () => {
  const { asked, isOpen } = await panel({ link: '?image=lion&tab=heads&ask.power=2&run=1' });
  assert.deepEqual([asked, isOpen()], [[], false]);
});

test('a quick question is told how far it is, shows its answer, its facts and its figure, and is saved by the dialog', async () => {
  const { isOpen, drawn, asked, of, state, text, find, fetched, far, press, element } = await panel();
  assert.ok(isOpen() && find('question-title').focused);
  assert.deepEqual(
    asked.map(({ name, body }) => [name, body.view]),
    ['panel', 'answer'].map((name) => [name, 'image=lion&ask=depth&ask.power=2']),
  );
  assert.deepEqual([state(), text('title'), find('question-save').hidden], ['running', 'Depth', true]);
  const [{ tell, done }] = of('answer');
  tell({ share: 0.25, left: 'about 3 s left' });
  await settle();
  assert.equal(any(find('progress')).value, 0.25);
  assert.deepEqual(far(), ['Computing …', '25%, about 3 s left']);
  done(answerTo());
  await settle();
  const saved = { ...ABOUT, power: 2, figure: {} };
  const shown = { ...saved, figure: { width_cm: 17, dpi: 150 } };
  assert.deepEqual([state(), fetched], ['done', [['/api/v1/depth', shown]]]);
  await press('go'); // a press that comes late
  assert.deepEqual([state(), of('answer').length], ['done', 1]);
  assert.deepEqual([text('facts'), Boolean(find('question-picture'))], ['unitlayers', true]);
  assert.equal(drawn(), 'lion depth 2');
  /** @type {any} */ let wanted = null;
  element.addEventListener('vv-figure', (/** @type {any} */ event) => (wanted = event.detail));
  await press('save');
  assert.deepEqual(wanted, { question: ['depth', saved], formats: DEPTH.formats, page: '' });
});

test('Cancel ends the computation, and it can be tried again', async () => {
  const { of, state, text, press, find } = await panel();
  find('stop').click();
  await settle();
  assert.ok(of('answer')[0].stop.aborted);
  assert.deepEqual([state(), text('error').trim(), text('go')], ['failed', STOPPED, 'Try again']);
  of('answer')[0].done(answerTo()); // it was on its way
  await settle();
  assert.equal(state(), 'failed');
  await press('go');
  assert.deepEqual([state(), of('answer').length, find('question-error').hidden], ['running', 2, true]);
  of('answer')[1].fail(new Error('The device is busy.'));
  await settle();
  assert.deepEqual([state(), text('error').trim()], ['failed', 'The device is busy.']);
});

const slowly = (/** @type {any} */ told, /** @type {any} */ body) =>
  body.options ? told : valueOf(body.view, SLOW);

test('a slow question waits until it is asked for, once, and the link says so from then on', async () => {
  const { of, state, far, press, place, type, find } = await panel({ said: slowly });
  assert.deepEqual([state(), far()[0], of('answer')], ['waiting', 'Takes 9 passes.', []]);
  assert.equal(find('stop'), null);
  await press('go');
  assert.deepEqual(place.written, [[{ run: '1' }, false]]);
  assert.deepEqual([state(), of('answer').length, find('question-go').hidden], ['running', 1, true]);
  find('question-go').click(); // a press that comes late
  assert.deepEqual([state(), of('answer').length], ['running', 1]);
  await type('3'); // which would take as long again
  assert.deepEqual(place.written.at(-1), [{ run: null, 'ask.power': '3' }, false]);
  assert.deepEqual([of('answer')[0].stop.aborted, of('answer').length, state()], [true, 1, 'waiting']);
});

test('a slow question is computed where the link says so; one that is at hand lets the link say so', async () => {
  const linked = await panel({ link: `${LINK}&run=1`, said: slowly });
  assert.deepEqual([linked.of('answer').length, linked.state()], [1, 'running']);
  const kept = await panel({ said: (told) => ({ ...told, question: SLOW, quick: true }), answer: answerTo });
  assert.deepEqual([kept.state(), kept.place.written], ['done', [[{ run: '1' }, false]]]);
  assert.equal(kept.of('answer').length, 1);
});

test('what was typed stays where it is refused, with one sentence beside it, and what is possible is in the link', async () => {
  const { type, asked, refusal, input, place, store, drawn, go } = await panel();
  await type('7x');
  const [choice] = asked.filter(({ body }) => body.options);
  assert.deepEqual(choice.body, { view: 'image=lion&ask=depth&ask.power=2', options: { power: '7x' } });
  assert.deepEqual(
    [refusal().textContent, input().getAttribute('aria-invalid')],
    ['A whole number.', 'true'],
  );
  assert.deepEqual(place.written, []);
  store.set({ image: 'tower' }); // brought while it stands there
  await settle();
  assert.deepEqual([input().value, refusal().textContent], ['7x', 'A whole number.']);
  await type('7');
  assert.deepEqual([refusal().hidden, input().getAttribute('aria-invalid')], [true, null]);
  assert.deepEqual(place.written.at(-1), [{ 'ask.power': '7' }, false]);
  assert.deepEqual([input().value, drawn()], ['7', undefined]);
  await go('?image=tower&ask=depth&ask.power=4');
  assert.equal(input().value, '4');
});

test('of two choices the answer to the first comes to nothing, and a choice is made again of another picture', async () => {
  const { type, asked, place, store, input } = await panel({
    said: (told, { options }) => (options ? undefined : told),
  });
  const choices = () => asked.filter(({ body }) => body.options);
  await type('3');
  await type('2');
  assert.ok(choices()[0].stop.aborted);
  choices()[0].done(chosenOf({ power: '3' }));
  await settle();
  assert.deepEqual([place.written, input().value], [[], '2']);
  store.set({ image: 'tower' });
  choices()[1].done(chosenOf({ power: '2' }));
  await settle();
  assert.deepEqual(choices()[2].body, { view: 'image=tower&ask=depth&ask.power=2', options: { power: '2' } });
  choices()[2].fail(new Error('No answer came.'));
  await settle();
  assert.match(any(input().closest('.vv-option')).textContent, /No answer came/);
  await type('5');
  place.go('?image=tower');
  choices()[3].done(chosenOf({ power: '5' })); // the panel is closed by now
  await settle();
  assert.deepEqual([place.search(), choices().length], ['?image=tower', 4]);
});

test('closing leads to the link without the question, which Back opens again', async () => {
  const { press, place, isOpen, of, state } = await panel({ link: `${LINK}&run=1` });
  await press('close');
  assert.deepEqual([isOpen(), place.written], [false, [[{ ask: null, run: null, 'ask.power': null }, true]]]);
  assert.ok(of('answer')[0].stop.aborted);
  await place.go(LINK);
  await settle();
  assert.deepEqual([isOpen(), state()], [true, 'running']);
});

test('where the page goes back the panel closes in silence, and comes back where it goes forward at once', async () => {
  const { place, isOpen, go } = await panel();
  await go('?image=lion');
  assert.deepEqual([isOpen(), place.written], [false, []]);
  await go(LINK);
  assert.ok(isOpen());
  place.go('?image=lion');
  await go(LINK); // before the browser has said that the dialog was closed
  assert.deepEqual([isOpen(), place.written], [true, []]);
});

test('what is under way for another question or picture ends, and its answer is not shown', async () => {
  const { of, go, text, drawn, state, find } = await panel();
  await go('?image=tower&ask=depth&ask.power=2');
  await go('?image=tower&ask=width');
  assert.deepEqual(
    of('answer').map(({ stop }) => stop.aborted),
    [true, true, false],
  );
  for (const one of of('answer').slice(0, 2)) one.done(answerTo());
  await settle();
  assert.deepEqual([state(), find('question-answer')], ['running', null]);
  of('answer')[2].done(answerTo());
  await settle();
  assert.deepEqual([state(), drawn(), text('title')], ['done', 'tower width 1', 'Depth']);
  await go('?image=tower&ask=width&ask.power=5');
  const isBusy = find('question-answer').classList.contains('vv-busy');
  assert.deepEqual([state(), isBusy, drawn()], ['running', true, undefined]);
});

test('the same question drawn otherwise is drawn anew, and where the model changes everything is asked again', async () => {
  const { of, go, fetched, turn } = await panel({ answer: answerTo });
  await go(`${LINK}&style=tint`);
  assert.deepEqual([of('answer').length, fetched.length], [2, 2]);
  assert.equal(fetched[1][1].figure.style, 'tint');
  await go(`${LINK}&style=tint&tab=look&measure=entropy`); // none of its matter
  assert.equal(of('panel').length, 2);
  turn.value += 1;
  await settle();
  assert.deepEqual([of('panel').length, of('answer').length, fetched.length], [3, 3, 2]);
});

test('a question that there is not opens nothing, and closes what is open', async () => {
  const said = (/** @type {any} */ told) => (told.question.name === 'depth' ? told : {});
  const { isOpen, of, go, place } = await panel({ link: '?ask=nothing', said });
  assert.deepEqual([isOpen(), of('answer')], [false, []]);
  await go(LINK);
  assert.ok(isOpen());
  await go('?ask=nothing');
  assert.deepEqual([isOpen(), place.search()], [false, '?ask=nothing']);
});

test('what was known of a question that was left is not shown for the next one', async () => {
  const said = (/** @type {any} */ told) => (told.question.name === 'depth' ? told : undefined);
  const { isOpen, of, go } = await panel({ said });
  await go('');
  await go('?ask=width');
  assert.deepEqual([isOpen(), of('panel').length, of('answer').length], [false, 2, 1]);
});

test('a figure that comes late stands below what is asked now, and never in the place of a newer one', async () => {
  /** @type {((value: any) => void)[]} */
  const files = [];
  const file = () => new Promise((done) => files.push(done));
  const { of, go, drawn, find, fetched } = await panel({ file });
  const send = async (/** @type {number} */ at) => {
    Object.assign(URL, { createObjectURL: () => `blob:${at}` });
    files[at]({ ok: true, blob: async () => ({}) });
    await settle();
  };
  const answered = async () => {
    const last = any(of('answer').at(-1));
    last.done(answerTo());
    await settle();
  };
  const isDone = () => [
    any(find('question-picture')).src,
    find('question-answer').classList.contains('vv-busy'),
    drawn(),
  ];
  await answered();
  await go('?image=lion&ask=depth&ask.power=3');
  await send(0);
  assert.deepEqual(isDone(), ['blob:0', true, undefined]);
  await answered();
  await go('?image=lion&ask=depth&ask.power=4');
  await answered();
  await send(2);
  await send(1);
  assert.deepEqual(isDone(), ['blob:2', false, 'lion depth 4']);
  assert.equal(fetched.length, 3);
});

test('what is not possible is said, and nothing else is asked; where the server says nothing it can be tried again', async () => {
  const wrong = await panel({ said: (told) => ({ ...told, quick: undefined, error: 'No layer 77.' }) });
  assert.deepEqual(
    [wrong.state(), wrong.text('error').trim(), wrong.of('answer')],
    ['failed', 'No layer 77.', []],
  );
  let isGone = true;
  const gone = await panel({ said: (told) => (isGone ? new Error('No answer came.') : told) });
  assert.deepEqual([gone.isOpen(), gone.state(), gone.find('column')], [true, 'failed', null]);
  assert.equal(gone.text('error').trim(), 'No answer came.');
  isGone = false;
  await gone.press('go');
  assert.deepEqual([gone.state(), gone.text('title'), gone.input().value], ['running', 'Depth', '2']);
  gone.find('question-close').click();
  await settle();
  assert.equal(gone.isOpen(), false);
});

test('numbers without a figure are said to be so; a figure that is refused says why', async () => {
  const said = (/** @type {any} */ told) => ({ ...told, question: { ...DEPTH, formats: ['npz', 'json'] } });
  const bare = await panel({ said, answer: answerTo });
  assert.deepEqual([bare.fetched, Boolean(bare.caption())], [[], true]);
  assert.equal(bare.text('save'), 'Save the numbers');
  const file = () => ({ ok: false, text: async () => '{"error": "Too large."}' });
  const { caption, find } = await panel({ answer: answerTo, file });
  assert.deepEqual([caption().textContent, find('question-picture')], ['Too large.', null]);
});
