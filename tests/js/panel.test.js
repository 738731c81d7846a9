// The panel: which question the link asks, controls made of its options, how its answer is followed, and what ends it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { STOPPED } from '../../vit_viz/web/kit/job.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { factsOf } from '../../vit_viz/web/palette/facts.js';
import { QuestionPanel } from '../../vit_viz/web/palette/panel.js';
import { Browser, mount, read } from './browser.js';
import { placeAt, settle } from './room.js';

const { fields } = JSON.parse(read('./links.json'));
const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const POWER = { name: 'power', link: '', label: 'power', sentence: 'S.', default: 1, low: 1, high: 9000 };
const DEPTH = {
  ...{
    name: 'depth',
    label: 'Depth',
    shows: 's',
    hides: 'h',
    source: 'p',
    runs: '',
    slow: false,
    photo: true,
  },
  ...{ formats: ['png', 'npz', 'json'], controls: [POWER] },
};
const SLOW = { ...DEPTH, slow: true, runs: 'Takes 9 passes.' };
const LINK = '?image=lion&tab=heads&ask=depth&ask.power=2';
const TOLD = { facts: { unit: 'layers', method: 'untold' }, arrays: {} };

/** What a view is of. */
function opened(/** @type {string} */ view) {
  const sample = new URLSearchParams(view).get('image') ?? 'lion';
  const about = {
    model: 'mini',
    image: sample.startsWith('u') ? { upload: sample } : { sample },
    mode: 'fit',
  };
  return { about, trace: `h-${sample}`, layers: 3 };
}

/** What is possible of a power: a whole number. */
function refusalOf(/** @type {any} */ { power = 1 }) {
  return Number.isInteger(power) ? null : new Error(`The depth's power is a whole number, not '${power}'.`);
}

/**
 * The panel at a link; `questions` are listed, `open` says what the view is of, `kept` what is at hand, and `answer` answers: until then
 * it waits.
 */
async function panel({
  link = LINK,
  questions = /** @type {() => any} */ (() => [DEPTH, { ...DEPTH, name: 'width' }]),
  open = /** @type {(view: string) => any} */ (opened),
  kept = /** @type {(body: any) => any} */ (() => null),
  answer = /** @type {(body: any, tell: any) => any} */ (() => undefined),
  file = /** @type {(url: string) => any} */ (() => ({ ok: true, blob: async () => ({}) })),
  source = SERVER,
} = {}) {
  const browser = new Browser();
  /** @type {[string, any][]} */
  const fetched = [];
  const fetch = async (/** @type {string} */ url, /** @type {any} */ { body } = {}) => {
    if (url !== '/questions.json') return (fetched.push([url, JSON.parse(body)]), file(url));
    const list = questions();
    if (list instanceof Error) throw list;
    return { ok: true, json: async () => list };
  };
  Object.assign(browser.globals, { fetch });
  Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} });
  const place = placeAt(link);
  const store = new Store(fields, place);
  /** @type {{name: string, body: any, stop: AbortSignal, tell: any, done: (value: any) => void, fail: (error: Error) => void}[]} */
  const asked = [];
  /** @type {{body: any, stop: any}[]} what is looked for */
  const peeked = [];
  const ask = asker({
    keeps: () => false,
    async kept(_name, body, stop, hear) {
      peeked.push({ body, stop });
      const found = await (kept(body) ?? refusalOf(body));
      if (found instanceof Error) throw found;
      if (found) return found;
      hear?.({ request: { parameters: { power: 1, ...body } } });
      return null;
    },
    answer(name, body, stop, tell) {
      let [done, fail] = any([]);
      const promise = new Promise((resolve, reject) => ([done, fail] = [resolve, reject]));
      asked.push({ name, body, stop, tell, done, fail });
      const known = name === 'open' ? open(body.view) : answer(body, tell);
      if (known instanceof Error) fail(known);
      else if (known !== undefined) done(known);
      return promise;
    },
  });
  const turn = signal(0);
  const page = { store, source, ask, turn };
  const start = (/** @type {any} */ element) =>
    render(html`<${QuestionPanel} page=${page} questions="/questions.json" />`, element);
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
      ...{ place, store, asked, peeked, fetched, input, turn },
    },
    of: (/** @type {string} */ name) => asked.filter((one) => one.name === name),
    /** What was asked, but what the view is of. */
    answers: () => asked.filter(({ name }) => name !== 'open'),
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

/** The key of a picture and an option. */
const keyOf = (
  /** @type {string} */ name,
  /** @type {string} */ sample,
  /** @type {number | undefined} */ power,
) => JSON.stringify([name, { ...opened(`image=${sample}`).about, ...(power && { power }) }]);

test('nothing is asked where the link asks nothing', async () => {
  const { asked, isOpen } = await panel({ link: '?image=lion&tab=heads&ask.power=2&run=1' });
  assert.deepEqual([asked.map(({ name }) => name), isOpen()], [['open'], false]);
});

test('a quick question is told how far it is, shows its answer, its facts and its figure, and is saved by the dialog', async () => {
  const { isOpen, drawn, of, state, text, find, fetched, far, press, element } = await panel();
  assert.ok(isOpen() && find('question-title').focused);
  assert.deepEqual(
    of('depth').map(({ body }) => body),
    [{ model: 'mini', image: { sample: 'lion' }, mode: 'fit', power: 2 }],
  );
  assert.deepEqual([state(), text('title'), find('question-save').hidden], ['running', 'Depth', true]);
  const [{ tell, done }] = of('depth');
  tell({ share: 0.25, left: 'about 3 s left' });
  await settle();
  assert.equal(any(find('progress')).value, 0.25);
  assert.deepEqual(far(), ['Computing …', '25%, about 3 s left']);
  done(TOLD);
  await settle();
  const saved = { ...opened('image=lion').about, power: 2, figure: {} };
  const shown = { ...saved, figure: { width_cm: 17, dpi: 150 } };
  assert.deepEqual([state(), fetched], ['done', [['/api/v1/depth', shown]]]);
  await press('go'); // a press that comes late
  assert.deepEqual([state(), of('depth').length], ['done', 1]);
  assert.deepEqual([text('facts'), Boolean(find('question-picture'))], ['unitlayers', true]);
  assert.equal(drawn(), keyOf('depth', 'lion', 2));
  /** @type {any} */ let wanted = null;
  element.addEventListener('vv-figure', (/** @type {any} */ event) => (wanted = event.detail));
  await press('save');
  assert.deepEqual(wanted, { question: ['depth', saved], formats: DEPTH.formats, page: '' });
});

test('a question starts from the query and is about the class of the link, and layers are those of the model', async () => {
  const controls = [
    { name: 'query', link: 'q', label: 'query', sentence: '', default: '' },
    { name: 'target', link: 'target', label: 'class', sentence: '', default: '' },
    { ...POWER, name: 'layer', default: -1, low: -9, high: 99, layer: true },
  ];
  const link = '?image=u7&q=1,2&target=4-7&ask=depth';
  const { of, place, element, store } = await panel({
    ...{ link, questions: () => [{ ...DEPTH, controls }] },
    kept: (body) => ({ ...TOLD, request: { parameters: { layer: 2, target: [4, 7], ...body } } }),
  });
  const about = { model: 'mini', image: { upload: 'u7' }, mode: 'fit' };
  assert.deepEqual(of('depth')[0].body, { ...about, query: '1,2', target: '4-7' });
  const [query, target, layer] = [...element.querySelectorAll('[data-option]')].map(any);
  assert.deepEqual(
    [query.value, target.value, layer.value, layer.getAttribute('max')],
    ['1,2', '4-7', '2', '2'],
  );
  query.value = 'class';
  query.fire('change');
  await settle();
  assert.deepEqual(place.written.at(-1), [{ q: 'class' }, true]);
  target.value = '';
  target.fire('change');
  await settle();
  assert.deepEqual([store.view.target.value, of('depth').at(-1)?.body.target], ['4-7', '4-7']); // as it was understood
});

test('Cancel ends the computation, and it can be tried again', async () => {
  const { of, state, text, press, find } = await panel();
  find('stop').click();
  await settle();
  assert.ok(of('depth')[0].stop.aborted);
  assert.deepEqual([state(), text('error').trim(), text('go')], ['failed', STOPPED, 'Try again']);
  of('depth')[0].done(TOLD); // it was on its way
  await settle();
  assert.equal(state(), 'failed');
  await press('go');
  assert.deepEqual([state(), of('depth').length, find('question-error').hidden], ['running', 2, true]);
  of('depth')[1].fail(new Error('The device is busy.'));
  await settle();
  assert.deepEqual([state(), text('error').trim()], ['failed', 'The device is busy.']);
});

const slowly = () => [SLOW];

test('a slow question waits until it is asked for, once, and the link says so from then on', async () => {
  const { of, state, far, press, place, type, find, peeked } = await panel({ questions: slowly });
  assert.deepEqual([state(), far()[0], of('depth'), peeked.length], ['waiting', 'Takes 9 passes.', [], 1]);
  assert.equal(find('stop'), null);
  await press('go');
  assert.deepEqual(place.written, [[{ run: '1' }, false]]);
  assert.deepEqual([state(), of('depth').length, find('question-go').hidden], ['running', 1, true]);
  find('question-go').click(); // a press that comes late
  assert.deepEqual([state(), of('depth').length], ['running', 1]);
  await type('3'); // which would take as long again
  assert.deepEqual(place.written.at(-1), [{ run: null, 'ask.power': '3' }, false]);
  assert.deepEqual([of('depth')[0].stop.aborted, of('depth').length, state()], [true, 1, 'waiting']);
});

test('a slow question is computed where the link says so; one that is at hand lets the link say so', async () => {
  const linked = await panel({ link: `${LINK}&run=1`, questions: slowly });
  assert.deepEqual([linked.of('depth').length, linked.state(), linked.peeked], [1, 'running', []]);
  const kept = await panel({ questions: slowly, kept: () => TOLD });
  assert.deepEqual([kept.state(), kept.place.written], ['done', [[{ run: '1' }, false]]]);
  assert.deepEqual([kept.of('depth').length, kept.peeked.length], [0, 1]); // it is there already
  const wrong = await panel({ questions: slowly, kept: () => new Error('No class 9.') });
  assert.deepEqual([wrong.state(), wrong.text('error').trim()], ['failed', 'No class 9.']);
});

test('what was typed stays where it is refused, with one sentence beside it, and what is possible is in the link', async () => {
  const { type, peeked, refusal, input, place, store, drawn, go } = await panel();
  await type('7x');
  assert.equal(peeked[0].body.power, '7x');
  const words = "The option “power” is a whole number, not '7x'.";
  assert.deepEqual([refusal().textContent, input().getAttribute('aria-invalid')], [words, 'true']);
  assert.deepEqual(place.written, []);
  store.set({ image: 'tower' }); // brought while it stands there
  await settle();
  assert.deepEqual([input().value, refusal().textContent], ['7x', words]);
  await type('7');
  assert.deepEqual([refusal().hidden, input().getAttribute('aria-invalid')], [true, null]);
  assert.deepEqual(place.written.at(-1), [{ 'ask.power': '7' }, false]);
  assert.deepEqual([input().value, drawn()], ['7', undefined]);
  await go('?image=tower&ask=depth&ask.power=4');
  assert.equal(input().value, '4');
  await type('1');
  assert.deepEqual(place.written.at(-1), [{ 'ask.power': null }, false]); // as it is by itself
});

test('of two choices the answer to the first comes to nothing, and a choice is made again of another picture', async () => {
  /** @type {((value: any) => void)[]} */
  const held = [];
  const { type, peeked, place, store, input } = await panel({
    kept: () => new Promise((done) => held.push(done)),
  });
  const heard = async (/** @type {number} */ at, /** @type {any} */ value) => {
    held[at](value);
    await settle();
  };
  const said = (/** @type {number} */ power) => ({ ...TOLD, request: { parameters: { power } } });
  await type('3');
  await type('2');
  assert.ok(peeked[0].stop.aborted);
  await heard(0, said(3));
  assert.deepEqual([place.written, input().value], [[], '2']);
  store.set({ image: 'tower' });
  await settle();
  await heard(1, said(2));
  assert.deepEqual([peeked[2].body.image, peeked[2].body.power], [{ sample: 'tower' }, 2]);
  await heard(2, new Error('No answer came.'));
  assert.match(any(input().closest('.vv-option')).textContent, /No answer came/);
  await type('5');
  place.go('?image=tower');
  await heard(3, said(5)); // the panel is closed by now
  assert.deepEqual([place.search(), peeked.length], ['?image=tower', 4]);
});

test('of several choices those that are possible are taken, and each of the others is refused', async () => {
  const controls = [POWER, { ...POWER, name: 'other', label: 'other' }];
  const { element, place } = await panel({
    link: '?image=lion&ask=depth',
    questions: () => [{ ...DEPTH, controls }],
    kept: ({ power, other }) =>
      other === 9 || power === 'x' ? new Error("The depth's other cannot be.") : null,
  });
  const [first, second] = [...element.querySelectorAll('[data-option]')].map(any);
  first.value = 'x';
  first.fire('change');
  await settle();
  second.value = '3';
  second.fire('change');
  await settle();
  assert.deepEqual(place.written, [[{ 'ask.other': '3' }, false]]);
  assert.deepEqual([first.value, first.getAttribute('aria-invalid'), second.getAttribute('aria-invalid')], ['x', 'true', null]); // prettier-ignore
});

test('closing leads to the link without the question, which Back opens again', async () => {
  const { press, place, isOpen, of, state } = await panel({ link: `${LINK}&run=1` });
  await press('close');
  assert.deepEqual([isOpen(), place.written], [false, [[{ ask: null, run: null, 'ask.power': null }, true]]]);
  assert.ok(of('depth')[0].stop.aborted);
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
  const { answers, go, text, drawn, state, find } = await panel();
  await go('?image=tower&ask=depth&ask.power=2');
  await go('?image=tower&ask=width');
  assert.deepEqual(
    answers().map(({ name, stop }) => [name, stop.aborted]),
    [
      ['depth', true],
      ['depth', true],
      ['width', false],
    ],
  );
  for (const one of answers().slice(0, 2)) one.done(TOLD);
  await settle();
  assert.deepEqual([state(), find('question-answer')], ['running', null]);
  answers()[2].done(TOLD);
  await settle();
  assert.deepEqual([state(), drawn(), text('title')], ['done', keyOf('width', 'tower', undefined), 'Depth']);
  await go('?image=tower&ask=width&ask.power=5');
  const isBusy = find('question-facts').classList.contains('vv-busy');
  assert.deepEqual([state(), isBusy, drawn()], ['running', true, undefined]);
});

test('the same question drawn otherwise is drawn anew and not asked again; where the model changes it is', async () => {
  const { of, go, fetched, turn } = await panel({ answer: () => TOLD });
  await go(`${LINK}&style=tint`);
  assert.deepEqual([of('depth').length, fetched.length], [1, 2]);
  assert.equal(fetched[1][1].figure.style, 'tint');
  await go(`${LINK}&style=tint&tab=look&measure=entropy`); // none of its matter
  assert.deepEqual([of('depth').length, fetched.length], [1, 2]);
  turn.value += 1;
  await settle();
  assert.deepEqual([of('open').length, of('depth').length, fetched.length], [2, 2, 2]);
});

test('a question that there is not opens nothing, and closes what is open', async () => {
  const { isOpen, answers, go, place } = await panel({ link: '?ask=nothing' });
  assert.deepEqual([isOpen(), answers()], [false, []]);
  await go(LINK);
  assert.ok(isOpen());
  await go('?ask=nothing');
  assert.deepEqual([isOpen(), place.search()], [false, '?ask=nothing']);
});

test('a figure that comes late stands below what is asked now, and never in the place of a newer one; facts do not wait for it', async () => {
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
    any(of('depth').at(-1)).done(TOLD);
    await settle();
  };
  /** The figure, whether it and the facts are of before, and of what both are. */
  const isDone = () => {
    const picture = any(find('question-picture'));
    const busy = [picture.parentNode, find('question-facts')].map(({ classList }) =>
      classList.contains('vv-busy'),
    );
    return [picture.src, busy, drawn()];
  };
  await answered();
  await go('?image=lion&ask=depth&ask.power=3');
  await send(0);
  assert.deepEqual(isDone(), ['blob:0', [true, true], undefined]);
  await answered();
  assert.deepEqual(isDone(), ['blob:0', [true, false], undefined]);
  await go('?image=lion&ask=depth&ask.power=4');
  await answered();
  await send(2);
  await send(1);
  assert.deepEqual(isDone(), ['blob:2', [false, false], keyOf('depth', 'lion', 4)]);
  assert.equal(fetched.length, 3);
});

test('what is not possible is said, and nothing is asked; where the server says nothing it can be tried again', async () => {
  const wrong = await panel({ open: () => new Error('No photo 77.') });
  assert.deepEqual(
    [wrong.state(), wrong.text('error').trim(), wrong.answers(), wrong.text('title')],
    ['failed', 'No photo 77.', [], 'Depth'],
  );
  let isGone = true;
  const gone = await panel({ questions: () => (isGone ? new Error('No answer came.') : [DEPTH]) });
  assert.deepEqual([gone.isOpen(), gone.state(), gone.find('column')], [true, 'failed', null]);
  assert.match(gone.text('error'), /No answer came|could not be fetched/);
  isGone = false;
  await gone.press('go');
  assert.deepEqual([gone.state(), gone.text('title'), gone.input().value], ['running', 'Depth', '2']);
  gone.find('question-close').click();
  await settle();
  assert.equal(gone.isOpen(), false);
});

test('numbers without a figure are said to be so; a figure that is refused says why', async () => {
  const questions = () => [{ ...DEPTH, formats: ['npz', 'json'] }];
  const bare = await panel({ questions, answer: () => TOLD });
  assert.deepEqual([bare.fetched, Boolean(bare.caption())], [[], true]);
  assert.equal(bare.text('save'), 'Save the numbers');
  const file = () => ({ ok: false, text: async () => '{"error": "Too large."}' });
  const { caption, find } = await panel({ answer: () => TOLD, file });
  assert.deepEqual([caption().textContent, find('question-picture')], ['Too large.', null]);
});

test('an answer in words: its facts, and each array with its shape and its ends', () => {
  const facts = {
    ...{
      unit: 'px',
      provenance: { model: 'x' },
      signed: true,
      note: '',
      count: 0,
      overall: 0.123456,
      own: true,
    },
    tables: { distance: { unit: 'pixels', method: 'm' } },
    heads: [{ layer: 1, name: 'local' }, { layer: 2 }],
    names: Array.from({ length: 13 }, (_, i) => i),
  };
  const arrays = {
    'maps.values': { shape: [2, 3], data: Float32Array.of(1, NaN, -2.34567, 0, 5, Infinity) },
    labels: { shape: [2], data: BigInt64Array.of(9n, 7n) },
    none: { shape: [0], data: new Float32Array() },
    '': { shape: [], data: Float32Array.of(3) },
  };
  assert.deepEqual(factsOf({ facts, arrays }), [
    ['unit', 'px'],
    ['overall', '0.1235'],
    ['own', 'yes'],
    ['tables distance unit', 'pixels'],
    ['heads 0 layer', '1'],
    ['heads 0 name', 'local'],
    ['heads 1 layer', '2'],
    ['names', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (13 in all)'],
    ['maps values', '2 x 3, -2.346 to 5'],
    ['labels', '2, 7 to 9'],
    ['none', '0'],
    ['values', 'one number, 3 to 3'],
  ]);
});

test('a link to a question that the source does not answer says where it is answered, and asks nothing', async () => {
  const source = { ...SERVER, answers: (/** @type {string} */ name) => name !== 'depth' };
  const { answers, isOpen, text, state } = await panel({ source });
  assert.ok(isOpen());
  assert.deepEqual([state(), answers()], ['failed', []]);
  assert.match(text('error'), /does not answer that; the app does/);
});
