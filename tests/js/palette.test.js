// The palette: what is found by what is typed, what keys do, and where what is chosen opens; and controls made of options.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { make } from '../../vit_viz/explorer/elements.js';
import { listenToOptions, makeControl, offer } from '../../vit_viz/ui/kit/controls.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { paletteIn, search } from '../../vit_viz/web/palette/palette.js';
import { Browser, component, mount, read } from './browser.js';
import { placeAt } from './store.test.js';
import { settle } from './visit.js';

const { fields } = JSON.parse(read('./links.json'));

const listed = (
  /** @type {string} */ name,
  /** @type {string} */ label,
  /** @type {object} */ more = {},
) => ({
  ...{ name, label, shows: '', also: '', tab: '', slow: false, link: { ask: name } },
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
  assert.deepEqual(names('head zebra'), []);
  const rollouts = [listed('gradient_rollout', 'Gradient rollout'), listed('rollout', 'Attention rollout')];
  for (const text of ['rollout', 'roll']) assert.equal(search(text, rollouts)[0].name, 'rollout');
});

// --- the palette

/** A dialog as a browser has it, which says a little later that it was closed. @param {any} dialog */
function withDialog(dialog) {
  const close = () => {
    if (!dialog.open) return;
    dialog.open = false;
    setImmediate(() => dialog.fire('close'));
  };
  return Object.assign(dialog, { open: false, showModal: () => void (dialog.open = true), close });
}

/** The palette at a link. */
function palette(link = '?image=lion&ask.old=1&run=1') {
  const browser = new Browser();
  let fetches = 0;
  const fetch = async () => (fetches++, { ok: true, json: async () => LIST });
  Object.assign(browser.globals, { fetch });
  Object.assign(browser.globals.navigator, { platform: 'MacIntel' });
  const at = placeAt(link);
  const store = new Store(fields, at);
  const ask = asker({ keeps: () => false, answer: async (name) => assert.fail(name) });
  const page = { store, ask, turn: signal(0) };
  const props = { tabs: { heads: 'Heads', explain: 'Explain' }, questions: '/vit_viz/page/d/questions.json' };
  const template = component((element) => paletteIn(element, page, props), 'web/palette/palette.html');
  const mounted = mount(template, null, { browser });
  const dialog = withDialog(mounted.find('palette'));
  const input = /** @type {any} */ (mounted.find('palette-text'));
  const rows = () => mounted.find('palette-list').children;
  const type = (/** @type {string} */ text) => {
    input.value = text;
    input.fire('input');
  };
  return { ...mounted, ...{ dialog, input, rows, type, store }, at, fetches: () => fetches };
}

test('the palette opens by its keys, fetches the list once, and opens what is chosen', async () => {
  const { browser, dialog, input, rows, type, find, at, fetches } = palette();
  assert.equal(find('ask-key').textContent, '⌘K');
  assert.equal(browser.window.fire('keydown', { key: 'k', shiftKey: true, ctrlKey: true }).prevented, false);
  assert.ok(browser.window.fire('keydown', { key: 'K', metaKey: true }).prevented);
  assert.ok(dialog.open && input.focused);
  await settle();
  assert.equal(rows().length, LIST.length);
  assert.equal(find('palette-words').textContent, '4 questions');
  type('ablat');
  assert.equal(find('palette-words').textContent, '1 question');
  assert.match(rows()[0].textContent, /panel · takes a while/);
  input.fire('keydown', { key: 'Enter' });
  await settle();
  assert.equal(dialog.open, false);
  assert.deepEqual(at.written, [[{ ask: 'ablation', run: null, 'ask.old': null }, true]]);
  find('ask').click();
  assert.equal(input.value, '');
  assert.equal(fetches(), 1);
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
  assert.deepEqual([store.view.tab.value, store.view.layer.value], ['heads', 3]); // tab_row.js opens it
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
  const { input, rows, type, find, at, store } = palette();
  find('ask').click();
  await settle();
  const chosen = () =>
    rows()
      .map((row) => row.getAttribute('aria-selected') === 'true')
      .indexOf(true);
  input.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual([chosen(), input.getAttribute('aria-activedescendant')], [3, 'vv-palette-list-3']);
  assert.ok(rows()[3].scrolled);
  input.fire('keydown', { key: 'ArrowDown' });
  assert.equal(chosen(), 0);
  rows()[2].fire('pointermove');
  assert.equal(chosen(), 2);
  type('zebra');
  assert.match(find('palette-words').textContent, /No question/);
  assert.equal(input.getAttribute('aria-activedescendant'), null);
  input.fire('keydown', { key: 'Enter' });
  assert.equal(at.written.length, 0);
  type('');
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
  assert.equal(rows().length, 4);
});

// --- controls

test('a control is made of what its option says', () => {
  const browser = new Browser();
  browser.install({ after: () => {} });
  const made = (/** @type {object} */ more) => {
    const option = { name: 'n', link: '', default: '', label: 'L', sentence: 'S.', value: '', ...more };
    const part = /** @type {any} */ (makeControl(/** @type {any} */ (option), 'p'));
    const control = part.querySelector('[data-option]');
    assert.equal(control.getAttribute('aria-describedby'), 'p-n-words p-n-refusal');
    return control;
  };
  assert.equal(made({ default: 3, low: 1, high: 9 }).type, 'range');
  assert.equal(made({ default: 3, low: 1, high: 4096 }).type, 'text');
  assert.equal(made({ default: 'a,b' }).type, 'text');
  assert.equal(made({ default: false }).tagName, 'BUTTON');
  assert.equal(made({ default: 'a', choices: ['a', 'b'] }).children.length, 2);
  assert.equal(made({ default: 'a', choices: [...'abcde'] }).tagName, 'SELECT');
});

test('a choice is told to the letter, and what is typed without the spaces that no name has', () => {
  const browser = new Browser();
  browser.install({ after: () => {} });
  const told = /** @type {any[]} */ ([]);
  const made = (/** @type {object} */ more) => {
    const option = { name: 'n', link: '', default: '', label: 'L', sentence: 'S.', value: '', ...more };
    const box = /** @type {any} */ (makeControl(/** @type {any} */ (option), 'p'));
    listenToOptions(box, (chosen) => told.push(chosen.n));
    return box;
  };
  const choices = ['all tokens', ' led by a space', 'two  spaces', '', 'e'];
  const select = made({ default: 'e', choices }).querySelector('[data-option]');
  for (const choice of choices) {
    select.value = choice;
    select.fire('change');
  }
  assert.deepEqual(told.splice(0), choices);
  const few = choices.slice(0, 4);
  for (const button of made({ default: '', choices: few }).querySelectorAll('[data-value]')) button.click();
  assert.deepEqual(told.splice(0), few);
  const typed = made({}).querySelector('[data-option]');
  for (const text of [' register 0 ', '2, 4', ' 5 ,5,  60 , 70']) {
    typed.value = text;
    typed.fire('change');
  }
  assert.deepEqual(told, ['register 0', '2,4', '5,5,60,70']);
});

test('a list that is offered other words is filled anew, also where they differ in spaces alone', () => {
  new Browser().install({ after: () => {} });
  const select = /** @type {any} */ (make('select'));
  const choice = (/** @type {string} */ value, /** @type {string} */ label) => ({ value, label });
  offer(select, [choice('a', 'b c')]);
  const [first] = select.options;
  offer(select, [choice('a', 'b c')]);
  assert.equal(select.options[0], first);
  offer(select, [choice('a b', 'c')]);
  assert.deepEqual([select.options[0].value, select.options[0].textContent], ['a b', 'c']);
});
