// The palette: what is found by what is typed, what keys do, and where what is chosen opens.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { ACTIONS } from '../../vit_viz/web/palette/actions.js';
import { keepTheme, turnTheme } from '../../vit_viz/web/kit/theme.js';
import { Palette, search } from '../../vit_viz/web/palette/palette.js';
import { Browser, mount, read } from './browser.js';
import { placeAt, settle } from './room.js';

const { fields } = JSON.parse(read('./links.json'));
const QUESTIONS = JSON.parse(read('./questions.json'));

const listed = (
  /** @type {string} */ name,
  /** @type {string} */ label,
  /** @type {object} */ more = {},
) => ({
  ...{ name, label, called: '', shows: '', also: '', tab: '', slow: false, link: { ask: name } },
  ...more,
});
const LIST = [
  listed('gradcam', 'Token Grad-CAM', { tab: 'explain' }),
  listed('head_importance', 'Importance of heads', {
    tab: 'heads',
    shows: 'what each head does for the answer.',
    link: { tab: 'heads', measure: 'estimate', ask: null },
  }),
  listed('ablation', 'Ablation', { shows: 'the answer without each head.', slow: true }),
  listed('layer_similarity', 'Layers alike', { also: 'Kornblith CKA' }),
];
const names = (/** @type {string} */ text) => search(text, LIST).map(({ name }) => name);

test('a question is found by beginnings of its words, in any order, the likeliest first', () => {
  assert.deepEqual(names(''), LIST.map(({ name }) => name)); // prettier-ignore
  assert.deepEqual(names('imp hea'), ['head_importance']);
  assert.deepEqual(names('hea imp'), ['head_importance']);
  assert.deepEqual(names('head'), ['head_importance', 'ablation']);
  assert.deepEqual(names('GRAD-cam'), ['gradcam']);
  assert.deepEqual(names('gradcam'), ['gradcam']);
  assert.deepEqual(names('tokengrad'), ['gradcam']);
  assert.deepEqual(names('kornblíth'), ['layer_similarity']);
  assert.deepEqual(names('head zebra'), ['head_importance']); // none has both
  assert.deepEqual(names('zebra'), []);
  const rollouts = [listed('gradient_rollout', 'Gradient rollout'), listed('rollout', 'Attention rollout')];
  for (const text of ['rollout', 'roll']) assert.equal(search(text, rollouts)[0].name, 'rollout');
});

/** What people type, and what they mean. */
const MEANT = {
  ...{ pca: 'token_components', shapley: 'kernel_shap', shap: 'kernel_shap', gradcam: 'gradcam' },
  ...{ 'saliency map': 'saliency', heatmap: 'look', 'attention map': 'look', lrp: 'relevance' },
  ...{ 'where does the model look': 'look', 'previous token head': 'heads.left_neighbour' },
  ...{ 'previous patch': 'heads.left_neighbour', deletion: 'trust', faithfulness: 'trust' },
  ...{ 'can I believe this': 'trust', ig: 'integrated_gradients', cka: 'layer_similarity' },
  ...{ 'activation patching': 'ablation', prediction: 'classes', rope: 'rotary_similarity' },
  ...{ 'positional encoding': 'positions', 'attention sink': 'sink_kinds', clustering: 'segments' },
  ...{ 'pointing game': 'on_object', 'bounding box': 'on_object', dla: 'decomposition' },
  ...{ 'which head matters': 'head_importance', 'similar patches': 'token_similarity' },
  ...{ 'remove a patch': 'without_patches', save: 'save', download: 'save', 'dark mode': 'theme' },
  ...{ text: 'words', sentence: 'words', clip: 'words', words: 'words', prompt: 'words' },
  ...{ reset: 'reset', upload: 'open', help: 'help', share: 'link', tutorial: 'tour' },
};

test('what people type finds what they mean first', () => {
  const first = (/** @type {string} */ words) => search(words, [...QUESTIONS, ...ACTIONS])[0]?.name;
  assert.deepEqual(Object.fromEntries(Object.keys(MEANT).map((words) => [words, first(words)])), MEANT);
});

test('the head that looks at the previous patch is the first where that opens', () => {
  const [{ link }] = /** @type {any[]} */ (search('previous patch', QUESTIONS));
  assert.deepEqual([link.measure, link.order, link.layer], ['left_neighbour', 'value', null]);
});

// --- the palette

/** The palette at a link. */
function palette(link = '?image=lion&ask.old=1&run=1', source = SERVER) {
  const browser = new Browser();
  let fetches = 0;
  const fetch = async () => (fetches++, { ok: true, json: async () => LIST });
  Object.assign(browser.globals, { fetch });
  Object.assign(browser.globals.navigator, { platform: 'MacIntel' });
  const at = placeAt(link);
  const store = new Store(fields, at);
  /** @type {any[]} */
  const searched = [];
  const answer = async (/** @type {string} */ name, /** @type {any} */ { find }) => {
    searched.push([name, find]);
    return { hits: /^lion|cougar$/.test(find) ? [{ index: 291, name: 'lion' }] : [] };
  };
  const ask = asker({ keeps: () => false, answer: /** @type {any} */ (answer) });
  const page = { store, source, ask, turn: signal(0) };
  const props = { tabs: { heads: 'Heads', explain: 'Explain' }, questions: '/vit_viz/page/d/questions.json' };
  const start = (/** @type {any} */ element) =>
    render(html`<${Palette} ...${props} page=${page} />`, element);
  const mounted = mount(start, { browser });
  const dialog = /** @type {any} */ (mounted.find('palette'));
  const input = /** @type {any} */ (mounted.find('palette-text'));
  const rows = () => mounted.find('palette-list').children;
  const type = async (/** @type {string} */ text) => {
    input.value = text;
    input.fire('input');
    await settle();
  };
  return { ...mounted, ...{ dialog, input, rows, type, store, searched }, at, fetches: () => fetches };
}

test('the palette opens by its keys, fetches the list once, and opens what is chosen', async () => {
  const { browser, dialog, input, rows, type, find, at, fetches } = palette();
  assert.equal(find('ask-key').textContent, '⌘K');
  assert.equal(browser.window.fire('keydown', { key: 'k', shiftKey: true, ctrlKey: true }).prevented, false);
  assert.ok(browser.window.fire('keydown', { key: 'K', metaKey: true }).prevented);
  assert.ok(dialog.open && input.focused);
  await settle();
  assert.equal(rows().length, LIST.length + ACTIONS.length);
  assert.equal(find('palette-words').textContent, `${rows().length} found`);
  await type('ablat');
  browser.pass(200);
  await settle();
  assert.equal(find('palette-words').textContent, '1 found');
  assert.match(rows()[0].textContent, /panel · takes a while/);
  input.fire('keydown', { key: 'Enter' });
  await settle();
  assert.equal(dialog.open, false);
  assert.deepEqual(at.written, [[{ ask: 'ablation', run: null, 'ask.old': null }, true]]);
  find('ask').click();
  await settle();
  assert.equal(input.value, '');
  assert.equal(fetches(), 1);
});

test('what the source does not answer is found, too, and says where it is answered', async () => {
  const own = {
    ...SERVER,
    answers: (/** @type {string} */ name) => name !== 'ablation' && name !== 'gradcam',
  };
  const { find, rows, dialog, at, type } = palette('?image=lion', own);
  find('ask').click();
  await settle();
  const where = rows().map((/** @type {any} */ row) => row.textContent.includes('in the app'));
  assert.deepEqual(where.slice(0, LIST.length), [true, false, true, false]);
  await type('token grad');
  rows()[0].fire('click');
  await settle();
  assert.match(find('palette-words').textContent, /does not answer that; the app does/);
  assert.deepEqual([dialog.open, at.written], [true, []]);
});

test('a question of a tab leads there in one step; the view that is there already is not written again', async () => {
  const { find, rows, at, store } = palette('?ask=links&ask.count=3&layer=3');
  const choose = async () => {
    find('ask').click();
    await settle();
    rows()[1].fire('click');
    await settle();
  };
  await choose();
  const link = { tab: 'heads', measure: 'estimate', ask: null, 'ask.count': null };
  assert.deepEqual(at.written, [[link, true]]);
  assert.deepEqual([store.view.tab.value, store.view.layer.value], ['heads', 3]);
  await choose();
  assert.equal(at.written.length, 1);
});

test('another view is written once the entry of the dialog is left', async () => {
  const { find, rows, at, dialog } = palette();
  /** @type {number[]} */
  const seen = [];
  dialog.addEventListener('close', () => seen.push(at.written.length));
  find('ask').click();
  await settle();
  rows()[2].fire('click');
  await settle();
  assert.deepEqual([seen, at.written.length], [[0], 1]);
});

test('arrows go through the rows and around, and say which is chosen', async () => {
  const { browser, input, rows, type, find, at, store } = palette();
  find('ask').click();
  await settle();
  const press = async (/** @type {string} */ key) => {
    input.fire('keydown', { key });
    await settle();
  };
  const chosen = () =>
    rows()
      .map((row) => row.getAttribute('aria-selected') === 'true')
      .indexOf(true);
  await press('ArrowUp');
  const last = rows().length - 1;
  assert.deepEqual(
    [chosen(), input.getAttribute('aria-activedescendant')],
    [last, `vv-palette-list-${last}`],
  );
  assert.ok(rows()[last].scrolled);
  await press('ArrowDown');
  assert.equal(chosen(), 0);
  rows()[2].fire('pointermove');
  await settle();
  assert.equal(chosen(), 2);
  await type('zebra');
  assert.match(find('palette-words').textContent, /Looking among the classes/);
  browser.pass(200);
  await settle();
  assert.match(find('palette-words').textContent, /Nothing has these words/);
  assert.equal(input.getAttribute('aria-activedescendant'), null);
  input.fire('keydown', { key: 'Enter' });
  assert.equal(at.written.length, 0);
  await type('');
  rows()[2].fire('pointermove');
  await type('head');
  assert.equal(chosen(), 0); // the likeliest of what is found now
  await type('');
  rows()[1].fire('click');
  await settle();
  assert.equal(store.view.measure.value, 'estimate');
});

test('a list that cannot be fetched is said in words, and fetched again', async () => {
  const { browser, dialog, find, rows } = palette();
  const { fetch } = globalThis;
  globalThis.fetch = async () => Promise.reject(new Error('gone'));
  find('ask').click();
  await settle();
  assert.match(find('palette-words').textContent, /could not be fetched/);
  dialog.close();
  globalThis.fetch = fetch;
  browser.window.fire('keydown', { key: 'k', ctrlKey: true });
  await settle();
  assert.equal(rows().length, LIST.length + ACTIONS.length);
});

test('a class is found by its name once the hand rests, and opens explained', async () => {
  const { browser, input, rows, type, find, store, searched } = palette('?q=3,4');
  find('ask').click();
  await settle();
  for (const text of ['co', 'cougar', 'why is it a lion?']) await type(text);
  assert.deepEqual(searched, []);
  input.fire('keydown', { key: 'Enter' }); // before it is there
  await settle();
  assert.equal(store.view.target.value, '');
  browser.pass(200);
  await settle();
  assert.deepEqual(searched, [['target', 'lion']]);
  const { tab, explain, target, q } = store.view;
  assert.deepEqual([tab.value, explain.value, target.value, q.value], ['explain', 'why', '291', '3,4']);
  find('ask').click();
  await type('cougar');
  browser.pass(200);
  await settle();
  assert.match(rows()[0].textContent, /Why “lion”\?.*Explain/);
});

test('what is a name of a question does not wait for classes', async () => {
  const { input, type, find, dialog } = palette();
  find('ask').click();
  await settle();
  await type('ablation');
  input.fire('keydown', { key: 'Enter' });
  await settle();
  assert.equal(dialog.open, false);
});

test('an action is done once the palette is closed; one that says something leaves it open', async () => {
  const { browser, input, type, find, dialog, store, at } = palette(
    '?image=tower&tab=heads&layer=3&edits=off 3.1',
  );
  const written = /** @type {string[]} */ ([]);
  const clipboard = { writeText: async (/** @type {string} */ text) => void written.push(text) };
  Object.assign(browser.globals.navigator, { clipboard });
  const act = async (/** @type {string} */ text) => {
    if (!dialog.open) find('ask').click();
    await settle();
    await type(text);
    input.fire('keydown', { key: 'Enter' });
    await settle();
  };
  await act('save'); // of nothing
  assert.equal(dialog.open, true);
  assert.match(find('palette-words').textContent, /Nothing on this tab/);
  await act('copy link');
  assert.deepEqual([dialog.open, written.length], [true, 1]);
  assert.match(find('palette-words').textContent, /Link copied/);
  await act('reset');
  assert.equal(dialog.open, false);
  const { image, tab, layer, edits } = store.view;
  assert.deepEqual([image.value, tab.value, edits.value], ['tower', 'heads', '']);
  assert.notEqual(layer.value, 3);
  assert.equal(at.written.at(-1)?.[1], true); // Back undoes it
});

test('where no model reads, asking in words is said to be done in the app', async () => {
  const { find, rows, type, dialog, store, searched } = palette('?image=lion', {
    ...SERVER,
    answers: (/** @type {string} */ name) => name !== 'sentence_patches',
  });
  find('ask').click();
  await settle();
  await type('ask in words');
  rows()[0].fire('click');
  await settle();
  assert.match(find('palette-words').textContent, /does not answer that; the app does/);
  assert.deepEqual([dialog.open, store.view.tab.value, searched.length], [true, 'look', 0]);
});

test('a page that was made dark is dark when it is opened again, where the browser keeps that', () => {
  const kept = new Map();
  const opened = (/** @type {Map<string, string> | null} */ storage) => {
    const classes = new Set();
    const toggle = (/** @type {string} */ name, on = !classes.has(name)) => {
      on ? classes.add(name) : classes.delete(name);
      return on;
    };
    const localStorage = storage && {
      getItem: (/** @type {string} */ name) => storage.get(name) ?? null,
      setItem: (/** @type {string} */ name, /** @type {string} */ value) => storage.set(name, value),
    };
    Object.defineProperty(globalThis, 'document', {
      value: { body: { classList: { toggle } } },
      configurable: true,
    });
    Object.defineProperty(globalThis, 'localStorage', { value: localStorage, configurable: true });
    keepTheme();
    return classes;
  };
  const first = opened(kept);
  turnTheme();
  assert.ok(first.has('dark'));
  assert.ok(opened(kept).has('dark'));
  turnTheme();
  assert.ok(!opened(kept).has('dark'));
  const forgetful = opened(null);
  turnTheme();
  assert.ok(forgetful.has('dark'));
});
