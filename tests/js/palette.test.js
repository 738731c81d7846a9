// The palette and the panel: what is found by what is typed, what keys do, controls made of options, and how an answer is followed.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { make } from '../../vit_viz/explorer/elements.js';
import { listenToOptions, makeControl, offer } from '../../vit_viz/ui/kit/controls.js';
import { mount as paletteMount, search } from '../../vit_viz/ui/palette/palette.js';
import { mount as panelMount } from '../../vit_viz/ui/palette/panel.js';
import { Browser, component, mount } from './browser.js';

const listed = (
  /** @type {string} */ name,
  /** @type {string} */ label,
  /** @type {object} */ more = {},
) => ({
  ...{ name, label, shows: '', also: '', tab: '', slow: false },
  ...more,
});
const LIST = [
  listed('gradcam', 'Token Grad-CAM', { tab: 'explain' }),
  listed('head_importance', 'Importance of heads', {
    tab: 'heads',
    shows: 'what each head does for the answer.',
  }),
  listed('ablation', 'Ablation', { shows: 'the answer without each head.', slow: true }),
  listed('layer_similarity', 'Layers alike', { also: 'Kornblith CKA' }),
];
const names = (/** @type {string} */ text) => search(text, LIST).map(({ name }) => name);
const settled = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

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
});

// --- the palette

const PALETTE = component(paletteMount, 'ui/palette/palette.html');
const DIALOG = {
  open: false,
  showModal() {
    this.open = true;
  },
  show() {
    this.open = true;
  },
};

/** A dialog as a browser has it. @param {any} dialog */
function withDialog(dialog) {
  const close = () => {
    if (!dialog.open) return;
    dialog.open = false;
    dialog.fire('close');
  };
  return Object.assign(dialog, DIALOG, { close });
}

function palette() {
  const browser = new Browser();
  let asked = 0;
  const fetch = async () => (asked++, { ok: true, json: async () => LIST });
  Object.assign(browser.globals, { fetch });
  Object.assign(browser.globals.navigator, { platform: 'MacIntel' });
  const value = { tabs: { heads: 'Heads', explain: 'Explain' } };
  const props = { questions: '/vit_viz/page/d/questions.json' };
  const mounted = mount(PALETTE, value, { browser, props });
  const dialog = withDialog(mounted.find('palette'));
  const input = /** @type {any} */ (mounted.find('palette-text'));
  const rows = () => mounted.find('palette-list').children;
  const type = (/** @type {string} */ text) => {
    input.value = text;
    input.fire('input');
  };
  return { ...mounted, dialog, input, rows, type, fetched: () => asked };
}

test('the palette opens by its keys, fetches the list once, and asks what is chosen', async () => {
  const { browser, dialog, input, rows, type, find, told, fetched } = palette();
  assert.equal(find('ask-key').textContent, '⌘K');
  assert.equal(browser.window.fire('keydown', { key: 'k', shiftKey: true, ctrlKey: true }).prevented, false);
  assert.ok(browser.window.fire('keydown', { key: 'K', metaKey: true }).prevented);
  assert.ok(dialog.open && input.focused);
  await settled();
  assert.equal(rows().length, LIST.length);
  assert.equal(find('palette-words').textContent, '4 questions');
  type('ablat');
  assert.equal(find('palette-words').textContent, '1 question');
  assert.match(rows()[0].textContent, /panel · takes a while/);
  input.fire('keydown', { key: 'Enter' });
  assert.deepEqual(told, [['ask', { name: 'ablation' }]]);
  assert.equal(dialog.open, false);
  find('ask').click();
  assert.equal(input.value, '');
  assert.equal(fetched(), 1);
});

test('arrows go through the rows and around, and say which is chosen', async () => {
  const { input, rows, type, find, told } = palette();
  find('ask').click();
  await settled();
  const chosen = () =>
    rows()
      .map((row) => row.getAttribute('aria-selected') === 'true')
      .indexOf(true);
  input.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual([chosen(), input.getAttribute('aria-activedescendant')], [3, 'vv-palette-3']);
  assert.ok(rows()[3].scrolled);
  input.fire('keydown', { key: 'ArrowDown' });
  assert.equal(chosen(), 0);
  rows()[2].fire('pointermove');
  assert.equal(chosen(), 2);
  type('zebra');
  assert.match(find('palette-words').textContent, /No question/);
  assert.equal(input.getAttribute('aria-activedescendant'), null);
  input.fire('keydown', { key: 'Enter' });
  assert.deepEqual(told, []);
  type('');
  rows()[1].fire('click');
  assert.deepEqual(told, [['ask', { name: 'head_importance' }]]);
});

test('a list that cannot be fetched is said in words, and fetched again', async () => {
  const { browser, dialog, find, rows } = palette();
  const { fetch } = globalThis;
  globalThis.fetch = async () => Promise.reject(new Error('gone'));
  find('ask').click();
  await settled();
  assert.match(find('palette-words').textContent, /could not be fetched/);
  dialog.close();
  globalThis.fetch = fetch;
  browser.window.fire('keydown', { key: 'k', ctrlKey: true });
  await settled();
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

// --- the panel

const PANEL = component(panelMount, 'ui/palette/panel.html');
const QUESTION = {
  ...{ name: 'depth', label: 'Depth', shows: 's', hides: 'h', source: 'p', runs: '', slow: false },
  formats: ['png', 'npz', 'json'],
};
const POWER = {
  name: 'power',
  link: '',
  label: 'power',
  sentence: 'S.',
  default: 1,
  low: 1,
  high: 9000,
  value: 1,
};
const VALUE = { revision: 4, key: 'k1', question: QUESTION, controls: [POWER], quick: true, runs: false };
const ANSWER = { facts: [['unit', 'layers']], address: '/vit_viz/figure/h?kind=asked&ask=depth' };

/** @param {any} value @param {object} props */
function panel(value, props = {}) {
  const browser = new Browser();
  /** @type {string[]} */ const asked = [];
  const fetch = async (/** @type {string} */ url) => (asked.push(url), { ok: true, blob: async () => ({}) });
  Object.assign(browser.globals, { fetch });
  Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} });
  const mounted = mount(PANEL, null, { browser, props: { job: null, refused: null, ...props } });
  const dialog = withDialog(mounted.find('question'));
  mounted.set(value);
  const input = () => /** @type {any} */ (mounted.find('question-controls').querySelector('[data-option]'));
  const type = (/** @type {string} */ text) => {
    input().value = text;
    input().fire('change');
  };
  return { ...mounted, dialog, asked, input, type };
}

test('a quick question shows its answer, its facts and its figure, and is saved by the dialog', async () => {
  const { dialog, find, set, asked, element, told } = panel(VALUE);
  assert.ok(dialog.open);
  assert.deepEqual([dialog.dataset.state, find('question-title').textContent], ['running', 'Depth']);
  set({ key: 'k0', answer: ANSWER }, 'job');
  assert.equal(dialog.dataset.state, 'running');
  set({ key: 'k1', share: 0.25 }, 'job');
  assert.equal(/** @type {any} */ (find('progress')).value, 0.25);
  find('question-stop').click();
  set({ key: 'k1', answer: ANSWER }, 'job');
  await settled();
  assert.equal(dialog.dataset.state, 'done');
  assert.deepEqual(asked, [`${ANSWER.address}&format=png&width_cm=17&dpi=150`]);
  assert.equal(find('question-facts').textContent, 'unitlayers');
  assert.equal(find('question-picture').hidden, false);
  /** @type {any} */ let wanted = null;
  element.addEventListener('vv-figure', (/** @type {any} */ event) => (wanted = event.detail));
  find('question-save').click();
  assert.deepEqual(wanted, { address: ANSWER.address, formats: QUESTION.formats, page: '' });
  assert.deepEqual(told, [['stop', {}]]);
});

test('a slow question waits, is started once, and tells the link', () => {
  const slow = { ...VALUE, quick: false, question: { ...QUESTION, slow: true, runs: 'Takes 9 passes.' } };
  const { dialog, find, set, told } = panel(slow);
  assert.deepEqual(
    [dialog.dataset.state, find('question-words').textContent],
    ['waiting', 'Takes 9 passes.'],
  );
  find('question-go').click();
  assert.deepEqual([dialog.dataset.state, find('question-go').hidden], ['running', true]);
  set({ ...slow, revision: 5, runs: true });
  assert.deepEqual(
    told.map(([event]) => event),
    ['run', 'start'],
  );
  set({ key: 'k1', error: 'Stopped.' }, 'job');
  assert.deepEqual(
    [find('question-error').textContent, find('question-go').textContent],
    ['Stopped.', 'Try again'],
  );
  const linked = panel({ ...slow, runs: true });
  assert.deepEqual([linked.told, linked.dialog.dataset.state], [[['start', {}]], 'running']);
});

test('what was typed stays where it is refused, with one sentence beside it', () => {
  const { input, type, set, told, find, dialog } = panel(VALUE);
  type('7x');
  assert.deepEqual(told, [['choose', { options: { power: '7x' } }]]);
  const refusal = () => /** @type {any} */ (find('question-controls').querySelector('.vv-refusal'));
  set({ of: { power: 'A whole number.' }, values: { power: '7x' }, revision: 6 }, 'refused');
  assert.deepEqual(
    [refusal().textContent, input().getAttribute('aria-invalid')],
    ['A whole number.', 'true'],
  );
  set({ ...VALUE, revision: 5 }); // older than what was refused
  assert.equal(dialog.dataset.revision, '4');
  set({ ...VALUE, revision: 6 });
  assert.equal(input().value, '7x');
  type('7');
  set({ of: {}, values: { power: '7' }, revision: 8 }, 'refused');
  assert.deepEqual([refusal().hidden, input().getAttribute('aria-invalid')], [true, null]);
  set({ ...VALUE, revision: 8, key: 'k2', controls: [{ ...POWER, value: 7 }] });
  assert.equal(input().value, '7');
});

test('closing tells the page once, and a page that went back closes the panel in silence', () => {
  const { dialog, find, set, told } = panel(VALUE);
  find('question-close').click();
  assert.deepEqual([dialog.open, told], [false, [['close', {}]]]);
  set(VALUE); // was on its way
  assert.equal(dialog.open, false);
  set({ ...VALUE, revision: 7 });
  assert.ok(dialog.open);
  set({ revision: 8, key: '' });
  assert.deepEqual([dialog.open, told.length], [false, 1]);
});

test('numbers without a figure are said to be so; a figure that is refused says why', async () => {
  const bare = panel({ ...VALUE, question: { ...QUESTION, formats: ['npz', 'json'] } });
  bare.set({ key: 'k1', answer: ANSWER }, 'job');
  await settled();
  assert.deepEqual([bare.asked, bare.find('question-caption').hidden], [[], false]);
  const { find, set } = panel(VALUE);
  globalThis.fetch = /** @type {any} */ (async () => ({ ok: false, text: async () => 'Too large.' }));
  set({ key: 'k1', answer: ANSWER }, 'job');
  await settled();
  assert.deepEqual(
    [find('question-caption').textContent, find('question-picture').hidden],
    ['Too large.', true],
  );
});

test('on a tab it is a part of the page, which nothing closes', () => {
  const { dialog, find } = panel(VALUE, { inline: true });
  assert.ok(dialog.open && dialog.classList.contains('vv-inline') && find('question-close').hidden);
});
