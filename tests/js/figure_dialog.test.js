// The dialog that saves a figure: what it asks the server for, what it says, and what it copies.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { askForFigure } from '../../vit_viz/explorer/source.js';
import { mount as dialog } from '../../vit_viz/ui/kit/figure_dialog.js';
import { component, mount } from './browser.js';

const DIALOG = component(dialog, 'ui/kit/figure_dialog.html');
const ADDRESS = '/vit_viz/figure/h?kind=map&layer=2';

/** An opened dialog, and what the server is asked. @param {string} address @param {any} answer */
function open(address, answer) {
  const { element, find, browser } = mount(DIALOG, null);
  const shown = /** @type {any} */ (find('figure'));
  shown.showModal = () => (shown.isOpen = true);
  shown.close = () => (shown.isOpen = false);
  /** @type {string[]} */
  const asked = [];
  globalThis.fetch = /** @type {any} */ (
    async (/** @type {string} */ url) => (asked.push(url), { ok: true, ...answer })
  );
  const event = { detail: { address }, preventDefault: () => (shown.taken = true) };
  browser.window.fire('vv-figure', event);
  return { element, find, shown, asked };
}

const settled = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('a figure is asked for in the chosen format and size, and saved under the name that the server gives', async () => {
  const globals = /** @type {any} */ (URL);
  globals.createObjectURL = () => 'blob:x';
  globals.revokeObjectURL = () => {};
  const headers = { get: () => 'attachment; filename="vit_viz_lion.svg"' };
  const { find, shown, asked, element } = open(ADDRESS, { headers, blob: async () => ({}) });
  assert.ok(shown.isOpen && shown.taken);
  const inputs = /** @type {any[]} */ ([...element.querySelectorAll('input')]);
  for (const input of inputs)
    if (input.getAttribute('name') === 'vv-figure-format') input.checked = input.value === 'svg';
  shown.fire('change');
  assert.match(find('figure-words').textContent, /outlines/);
  find('figure-save').fire('click');
  await settled();
  assert.deepEqual(asked, [`${ADDRESS}&format=svg&width_cm=12&dpi=300`]);
  assert.equal(find('figure-status').textContent, 'Saved vit_viz_lion.svg.');
});

test('a refusal is said in the words of the server', async () => {
  const { find } = open(ADDRESS, { ok: false, text: async () => 'Too large.' });
  find('figure-save').fire('click');
  await settled();
  assert.equal(find('figure-status').textContent, 'Too large.');
  assert.equal(/** @type {any} */ (find('figure-save')).disabled, false);
});

test('lines to copy are shown, and gone when another format is chosen', async () => {
  const { find, shown, asked } = open(ADDRESS, {
    json: async () => ({ python: 'vv.figure()', command: 'vit-viz' }),
  });
  find('figure-command').fire('click');
  await settled();
  assert.deepEqual(asked, ['/vit_viz/recipe/h?kind=map&layer=2&format=png&width_cm=12&dpi=300']);
  assert.deepEqual([find('figure-code').hidden, find('figure-code').textContent], [false, 'vit-viz']);
  shown.fire('change');
  assert.ok(find('figure-code').hidden);
});

test('only maps of attention can go through the layers', () => {
  const barred = (/** @type {any} */ element) =>
    [...element.querySelectorAll('input')]
      .filter((/** @type {any} */ input) => input.disabled)
      .map((input) => /** @type {any} */ (input).value);
  assert.deepEqual(barred(open(ADDRESS, {}).element), []);
  assert.deepEqual(barred(open(ADDRESS.replace('map', 'explain'), {}).element), ['gif', 'webp']);
});

test('where no dialog is there, whoever asks saves it alone', () => {
  mount(DIALOG, null);
  const taken = (/** @type {boolean} */ goesOn) =>
    askForFigure(/** @type {any} */ ({ dispatchEvent: () => goesOn }), ADDRESS);
  assert.deepEqual([taken(true), taken(false)], [false, true]);
});
