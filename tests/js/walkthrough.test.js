// The Walkthrough tab over the store, against a source that a test answers for: no server, no browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Walkthrough } from '../../vit_viz/web/walkthrough/room.js';
import { page as dom } from './document.js';
import { savedBy, withGlobals, ending } from './browser.js';
import { fields, placeAt } from './room.js';

const STEPS = ['Patches', 'Embedding', 'Attention'];
const settled = async () => {
  for (let i = 0; i < 4; i++) await new Promise((done) => setImmediate(done));
};

// 4 x 6 patches on a photo of 40 x 200 pixels, of which they cover the columns from 25 to 175
const PHOTO = {
  src: '/vit_viz/picture/h.png?kind=patches&bare=1',
  figure: ['patches', { model: 'mini' }],
  caption: 'followed: patch (2, 3); choose a patch to follow it',
  area: [0, 0, 40, 200],
  rings: [[20, 100, 30, 125]],
  bar: null,
  pick: true,
  grid: [4, 6],
  region: [0, 25, 40, 150],
};
const LAYER = { option: 'layer', label: 'layer', low: 0, high: 5, value: 4 };

/** What the server says of a link. @param {URLSearchParams} link @returns {any} */
function told(link) {
  const step = Number(link.get('step') ?? 1);
  const controls = /** @type {Record<number, any[]>} */ ({
    1: [{ option: 'play', label: 'number', low: 0, high: 191, value: Number(link.get('play') ?? 7) }],
    2: [
      {
        option: 'play',
        label: 'softmax',
        options: ['as it is', 'without'],
        value: Number(link.get('play') ?? 0),
      },
      LAYER,
    ],
    3: [LAYER, { option: 'head', label: 'head', low: 0, high: 2, value: 1 }],
  });
  const words = `<div class="vv-w" data-step="${step}"><math><mi>x</mi></math>${link}</div>`;
  return { step, html: words, photo: PHOTO, controls: controls[step] };
}

/** The room. @param {any} _context */
async function open(_context, search = '?tab=walkthrough&image=lion', answer = told) {
  /** @type {string[]} */
  const questions = [];
  /** @type {string[]} */
  const fetched = [];
  let now = 1e6;
  const timers = /** @type {Map<number, () => void>} */ (new Map());
  const window = Object.assign(Object.create(dom), {
    setTimeout(/** @type {() => void} */ run) {
      timers.set(timers.size + 1, run);
      return timers.size;
    },
  });
  const globals = {
    document: dom.document,
    window,
    clearTimeout: (/** @type {number} */ id) => void (timers.has(id) && timers.set(id, () => {})),
    fetch: async (/** @type {string} */ path) => void fetched.push(path),
    Date: { now: () => now },
  };
  const place = placeAt(search);
  const store = new Store(fields, place);
  const turn = signal(0);
  const ask = asker({
    keeps: () => false,
    async answer(name, { view }) {
      assert.equal(name, 'walkthrough');
      questions.push(view);
      return answer(new URLSearchParams(view));
    },
  });
  const root = dom.document.createElement('div');
  dom.document.body.append(root);
  withGlobals(globals);
  render(
    html`<${Walkthrough}
      ...${{ page: { store, source: SERVER, ask, turn }, steps: STEPS, drawing: ['style'] }}
    />`,
    root,
  );
  ending.after(() => render(null, root));
  await settled();
  const find = (/** @type {string} */ selector) => root.querySelector(selector);
  const image = find('.vv-image');
  if (image) image.box = { left: 100, top: 50, width: 400, height: 80 }; // twice the photo
  return {
    ...{ store, place, turn, questions, fetched, find, root },
    all: (/** @type {string} */ selector) => [...root.querySelectorAll(selector)],
    words: () => find('#vv-w-content .vv-w')?.textContent,
    /** Lets a hand rest. */
    async rest() {
      for (const run of timers.values()) run();
      timers.clear();
      await settled();
    },
    /** Presses or moves something. @param {string} selector @param {string} event @param {any} [details] */
    async act(selector, event, details) {
      const done = find(selector).fire(event, details);
      await settled();
      return done;
    },
    /** Sets a control as a hand does. @param {string} selector @param {string} value @param {string} event */
    async set(selector, value, event) {
      find(selector).value = value;
      find(selector).fire(event);
      await settled();
    },
    later: (/** @type {number} */ seconds) => void (now += 1000 * seconds),
  };
}

test('one question says all of a step, and of the link what the step depends on', async (t) => {
  const { questions, find, all, words } = await open(
    t,
    '?tab=walkthrough&image=lion&step=2&layer=3&head=2&style=heat&extremes=1&q=2,3&edits=off 1.3',
  );
  assert.deepEqual(questions, ['image=lion&edits=off+1.3&q=2%2C3&step=2&layer=3&head=2&style=heat']);
  assert.match(words(), /step=2/);
  assert.ok(find('#vv-w-content math mi'));
  assert.deepEqual(
    all('#vv-w-steps label').map((label) => [label.textContent.trim(), label.querySelector('input').checked]),
    [
      ['1 Patches', false],
      ['2 Embedding', true],
      ['3 Attention', false],
    ],
  );
  assert.equal(find('.vv-view').getAttribute('aria-busy'), 'false');
});

test('steps are places of the history, their control begins anew, and one that was seen is not asked for again', async (t) => {
  const { questions, place, act, words, find, later, turn } = await open(t, '?tab=walkthrough&play=3');
  assert.ok(find('#vv-w-previous').disabled);
  await act('#vv-w-next', 'click');
  assert.deepEqual(place.written, [[{ step: '2', play: null }, true]]);
  assert.match(words(), /step=2/);
  find('#vv-w-steps input[value="3"]').checked = true;
  await act('#vv-w-steps input[value="3"]', 'change');
  assert.deepEqual(place.written.at(-1), [{ step: '3' }, true]);
  assert.ok(find('#vv-w-next').disabled);
  await act('#vv-w-previous', 'click');
  assert.match(words(), /step=2/);
  place.go('?tab=walkthrough&play=3'); // Back
  await settled();
  assert.match(words(), /play=3/);
  assert.deepEqual(questions, ['play=3', 'step=2', 'step=3']);
  later(11 * 60); // its addresses will expire
  await act('#vv-w-next', 'click');
  assert.deepEqual(questions.slice(3), ['step=2']);
  turn.value += 1; // what was known is gone
  await settled();
  place.go('?tab=walkthrough&play=3');
  await settled();
  assert.deepEqual(questions.slice(4), ['step=2', 'play=3']);
});

test('a slider is told of once it rests, or is let go, and what it says stays until the answer is there', async (t) => {
  const { place, find, set, rest, act, questions } = await open(t);
  const slider = '#vv-w-slider input[type=range]';
  assert.deepEqual(
    ['min', 'max', 'value'].map((name) => find(slider)[name]),
    ['0', '191', '7'],
  );
  await set(slider, '20', 'input');
  await set(slider, '30', 'input');
  assert.deepEqual(place.written, []);
  assert.equal(find('#vv-w-slider input[type=number]').value, '30');
  await rest();
  assert.deepEqual(place.written, [[{ play: '30' }, false]]);
  await set(slider, '31', 'input');
  await set(slider, '31', 'change');
  await rest();
  assert.deepEqual(place.written.slice(1), [[{ play: '31' }, false]]);
  assert.deepEqual(questions, ['image=lion', 'image=lion&play=30', 'image=lion&play=31']);
  await set('#vv-w-slider input[type=number]', '900', 'change');
  assert.deepEqual(place.written.at(-1), [{ play: '191' }, false]);
  await set('#vv-w-slider input[type=number]', '', 'change');
  assert.equal(find('#vv-w-slider input[type=number]').value, '191');
  await act('#vv-w-slider button', 'click');
  assert.deepEqual(place.written.at(-1), [{ play: null }, false]);
  assert.equal(find(slider).value, '7');
});

test('while an answer is on its way the controls say what was chosen, and the old step stands back', async (t) => {
  let late = false;
  const { store, find, all, set } = await open(t, '?tab=walkthrough&step=3', (link) =>
    late ? new Promise(() => {}) : told(link),
  );
  assert.deepEqual(all('.vv-w-card').length, 1);
  late = true;
  await set('#vv-w-layer input[type=range]', '2', 'change');
  await set('#vv-w-head input[type=range]', '0', 'change');
  assert.deepEqual([store.view.layer.value, store.view.head.value], [2, 0]);
  assert.deepEqual(
    ['layer', 'head'].map((name) => find(`#vv-w-${name} input[type=range]`).value),
    ['2', '0'],
  );
  assert.equal(find('#vv-w-content').getAttribute('aria-busy'), 'true');
  assert.ok(find('.vv-part-picture').classList.contains('vv-busy'));
});

test('a choice has its name and its options', async (t) => {
  const { place, find, all, act } = await open(t, '?tab=walkthrough&step=2');
  assert.equal(find('#vv-w-choice legend').textContent, 'softmax');
  const chosen = () => all('#vv-w-choice input').map(({ checked }) => checked);
  assert.deepEqual(chosen(), [true, false]);
  all('#vv-w-choice input')[1].checked = true;
  await act('#vv-w-choice label:last-of-type input', 'change');
  assert.deepEqual(place.written, [[{ play: '1' }, false]]);
  assert.deepEqual(chosen(), [false, true]);
  assert.equal(all('.vv-w-card').length, 2); // its own control, and that of the whole page
});

test('a click on a patch of the photo, or the arrow keys, follow it; beside the patches nothing is followed', async (t) => {
  const { place, store, act, find } = await open(t);
  const at = (/** @type {number} */ x, /** @type {number} */ y) => ({
    clientX: 100 + 2 * x,
    clientY: 50 + 2 * y,
  });
  await act('.vv-image', 'click', at(10, 5));
  assert.deepEqual(place.written, []);
  await act('.vv-image', 'click', at(26, 13));
  assert.deepEqual(place.written, [[{ q: '1,0' }, true]]);
  const press = (/** @type {string} */ key, more = {}) => act('.vv-frame', 'keydown', { key, ...more });
  assert.ok((await press('ArrowRight')).prevented);
  assert.ok(!(await press('ArrowDown', { ctrlKey: true })).prevented);
  assert.equal(store.view.q.value, '1,0'); // pointed at alone
  assert.equal(find('[role=status]').textContent, 'patch (1, 1)');
  await press('Enter');
  assert.equal(store.view.q.value, '1,1');
  find('.vv-frame').fire('keydown', { key: 'ArrowDown' }); // two before the page has drawn either
  find('.vv-frame').fire('keydown', { key: 'ArrowDown' });
  await press('Enter');
  assert.equal(store.view.q.value, '3,1');
  for (let i = 0; i < 9; i++) await press('ArrowLeft');
  await press('Enter');
  assert.equal(store.view.q.value, '3,0');
  for (let i = 0; i < 2; i++) await press('Escape');
  assert.equal(store.view.q.value, '');
  for (const query of ['class', '0,0;1,1', '']) {
    store.set({ q: query });
    await settled();
    for (const key of ['ArrowDown', 'Enter', 'Escape']) await press(key);
    assert.equal(store.view.q.value, '2,3'); // the centre
  }
});

test('a photo in which nothing can be followed is a picture', async (t) => {
  const { place, act, find } = await open(t, undefined, (link) => ({
    ...told(link),
    photo: { ...PHOTO, pick: false, rings: [], caption: '4 x 6 patches' },
  }));
  await act('.vv-image', 'click', { clientX: 300, clientY: 80 });
  assert.ok(!(await act('.vv-frame', 'keydown', { key: 'ArrowDown' })).prevented);
  assert.deepEqual(place.written, []);
  const frame = find('.vv-frame');
  assert.deepEqual([frame.getAttribute('role'), frame.getAttribute('aria-label')], ['img', '4 x 6 patches']);
});

test('rings come with the picture that they are of, and lie on their patches', async (t) => {
  const bar = { low: '0', high: '0.7', unit: 'attention weight', stops: ['red', 'blue'] };
  const map = { ...PHOTO, src: '/map.png', rings: [[0, 25, 10, 50]], bar };
  const { find, all, act, root } = await open(t, undefined, (link) =>
    link.has('step') ? { ...told(link), photo: map } : told(link),
  );
  const rings = () => all('.vv-ring').map(({ style: s }) => [s.top, s.left, s.height, s.width]);
  assert.deepEqual(rings(), []);
  assert.ok(find('.vv-part-picture').classList.contains('vv-busy'));
  await act('.vv-image', 'load');
  assert.deepEqual(rings(), [['50%', '50%', '25%', '12.5%']]);
  assert.ok(!find('.vv-part-picture').classList.contains('vv-busy'));
  assert.equal(find('.vv-bar'), null);
  await act('#vv-w-next', 'click');
  assert.deepEqual(rings(), [['50%', '50%', '25%', '12.5%']]); // those of the picture that is seen
  await act('.vv-image', 'load');
  assert.deepEqual(rings(), [['0%', '12.5%', '25%', '12.5%']]);
  assert.deepEqual(
    ['low', 'high', 'unit'].map((name) => find(`.vv-${name}`).textContent),
    ['0', '0.7', 'attention weight'],
  );
  assert.equal(find('.vv-image').style.aspectRatio, '5 / 1');
  assert.deepEqual(savedBy(root, find('.vv-save')), PHOTO.figure);
});

test('where a picture is gone all is asked for again, once, and then it is said', async (t) => {
  let handle = 'old';
  const { find, act, questions, turn, fetched } = await open(t, undefined, (link) => ({
    ...told(link),
    photo: { ...PHOTO, src: `/${handle}.png` },
  }));
  handle = 'new';
  await act('.vv-image', 'error');
  assert.deepEqual([fetched, questions.length, turn.value], [['/old.png'], 2, 1]);
  assert.deepEqual([find('.vv-image').getAttribute('src'), find('.vv-empty')], ['/new.png', null]);
  await act('.vv-image', 'error');
  assert.equal(turn.value, 2);
  await act('.vv-image', 'error');
  assert.equal(turn.value, 2);
  assert.match(find('.vv-empty').textContent, /could not be fetched/);
  assert.ok(find('.vv-image').hidden);
});

test('what is shown is of one subject: a refusal of another one takes it away, and no click on it counts', async (t) => {
  /** @type {(error: Error) => void} */
  let refuse = () => {};
  const { place, act, find, all, words } = await open(t, undefined, (link) =>
    link.get('image') === 'lion' ? told(link) : new Promise((_, fail) => (refuse = fail)),
  );
  place.go('?tab=walkthrough&image=tower');
  await settled();
  assert.match(words(), /lion/);
  assert.equal(find('.vv-view').getAttribute('aria-busy'), 'true');
  await act('.vv-image', 'click', { clientX: 300, clientY: 80 });
  assert.deepEqual(place.written, []);
  refuse(new Error('This picture is no longer here.'));
  await settled();
  assert.equal(find('[role=alert]').textContent, 'This picture is no longer here.');
  assert.deepEqual([all('.vv-image').length, all('.vv-w-card').length, words()], [0, 0, undefined]);
  assert.ok(!find('#vv-w-next').disabled);
});

test('where a step is refused its controls stay, so that it can be left', async (t) => {
  const { act, set, find, all, words } = await open(t, '?tab=walkthrough&step=3', (link) => {
    if (link.get('layer') === '1') throw new Error('This layer is edited.');
    return told(link);
  });
  await set('#vv-w-layer input[type=range]', '1', 'change');
  assert.equal(find('[role=alert]').textContent, 'This layer is edited.');
  assert.equal(find('#vv-w-layer input[type=range]').value, '1');
  assert.equal(all('.vv-image').length, 0);
  await set('#vv-w-layer input[type=range]', '2', 'change');
  assert.match(words(), /layer=2/);
  await act('#vv-w-previous', 'click');
  assert.match(words(), /step=2/);
});

test('nothing is asked while another tab is open', async (t) => {
  const { questions, place, words } = await open(t, '?tab=look');
  assert.deepEqual(questions, []);
  place.go('?tab=walkthrough&step=2');
  await settled();
  assert.deepEqual(questions, ['step=2']);
  place.go('?tab=heads&step=3');
  await settled();
  assert.deepEqual(questions, ['step=2']);
  assert.match(words(), /step=2/);
});
