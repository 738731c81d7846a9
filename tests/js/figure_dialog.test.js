// The dialog that saves a figure: what it asks the server for, what it says, and what it copies.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { askForFigure } from '../../vit_viz/explorer/source.js';
import { mount as fill } from '../../vit_viz/web/kit/figure_dialog.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { mount } from './browser.js';
import { settle } from './room.js';

/** @type {import('../../vit_viz/explorer/source.js').Saved} */
const LOOK = ['look', { model: 'mini', layer: 2, figure: { style: 'heat' } }];

const dialog = (/** @type {any} */ element, source = SERVER) => fill(element, { source });

/** An opened dialog, and what the server is asked. @param {typeof LOOK} question @param {any} answer @param {string[]} [formats] */
async function open(question, answer, formats, page = '') {
  const { element, find, browser } = mount(dialog);
  const shown = /** @type {any} */ (find('figure'));
  /** @type {any[]} */
  const asked = [];
  globalThis.fetch = /** @type {any} */ (
    async (/** @type {string} */ url, /** @type {any} */ { headers, body }) => (
      asked.push(body ? [url, headers.Accept, JSON.parse(body)] : url),
      { ok: true, ...answer }
    )
  );
  const event = { detail: { question, formats, page }, preventDefault: () => (shown.taken = true) };
  browser.window.fire('vv-figure', event);
  await settle();
  /** Chooses a format. @param {string} value */
  const choose = async (value) => {
    const input = /** @type {any} */ (element.querySelector(`input[value=${value}]`));
    input.checked = true;
    input.fire('change');
    await settle();
  };
  return { element, find, shown, asked, browser, choose };
}

test('a figure is asked for in the chosen format and size, and saved under the name that the server gives', async () => {
  const globals = /** @type {any} */ (URL);
  globals.createObjectURL = () => 'blob:x';
  globals.revokeObjectURL = () => {};
  const headers = { get: () => 'attachment; filename="vit_viz_lion.svg"' };
  const { find, shown, asked, choose } = await open(LOOK, { headers, blob: async () => ({}) });
  assert.ok(shown.open && shown.taken);
  await choose('svg');
  assert.match(find('figure-words').textContent, /outlines/);
  find('figure-save').fire('click');
  await settle();
  const figure = { style: 'heat', width_cm: 12, dpi: 300 };
  assert.deepEqual(asked, [['/api/v1/look', 'image/svg+xml', { ...LOOK[1], figure }]]);
  assert.equal(find('figure-status').textContent, 'Saved vit_viz_lion.svg.');
});

test('a figure that is on its way is not asked for again, and can be once it is there', async () => {
  Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} });
  /** @type {(value: any) => void} */
  let send = () => {};
  const blob = () => new Promise((done) => (send = done));
  const { find, asked } = await open(LOOK, { headers: { get: () => null }, blob });
  const press = async () => {
    find('figure-save').click();
    await settle();
  };
  await press();
  await press();
  assert.deepEqual([asked.length, find('figure-status').textContent], [1, 'Drawing …']);
  send({});
  await settle();
  await press();
  assert.equal(asked.length, 2);
});

test('a refusal is said in the words of the server', async () => {
  const { find } = await open(LOOK, { ok: false, text: async () => '{"error": "Too large."}' });
  find('figure-save').fire('click');
  await settle();
  assert.equal(find('figure-error').textContent, 'Too large.');
  assert.equal(/** @type {any} */ (find('figure-save')).disabled, false);
});

test('lines to copy are shown, and gone when another format is chosen', async () => {
  const { find, choose, asked } = await open(LOOK, {
    text: async () => 'vit-viz',
  });
  find('figure-command').fire('click');
  await settle();
  const figure = { style: 'heat', width_cm: 12, dpi: 300, format: 'png' };
  assert.deepEqual(asked, [['/api/v1/look', 'text/x-shellscript', { ...LOOK[1], figure }]]);
  assert.deepEqual([find('figure-code').hidden, find('figure-code').textContent], [false, 'vit-viz']);
  await choose('svg');
  assert.ok(find('figure-code').hidden);
});

test('only maps of attention can go through the layers', async () => {
  const barred = (/** @type {any} */ element) =>
    [...element.querySelectorAll('input')]
      .filter((/** @type {any} */ input) => input.disabled)
      .map((input) => /** @type {any} */ (input).value);
  assert.deepEqual(barred((await open(LOOK, {})).element), []);
  assert.deepEqual(barred((await open(['rollout', {}], {})).element), ['gif', 'webp']);
  const numbers = await open(LOOK, {}, ['npz', 'json']);
  assert.deepEqual(barred(numbers.element), ['png', 'svg', 'pdf', 'csv', 'gif', 'webp']);
  assert.match(numbers.find('figure-words').textContent, /NumPy/);
});

test('a source that makes some files itself offers those, and names the others with where they are made', async () => {
  const own = { ...SERVER, makes: (/** @type {string} */ type) => /^image.(png|svg)/.test(type) };
  const { element, find, browser } = mount((/** @type {any} */ one) => dialog(one, own));
  const ask = async (/** @type {string} */ name) => {
    const detail = { question: [name, {}] };
    browser.window.fire('vv-figure', { detail, preventDefault: () => {} });
    await settle();
    const formats = [...element.querySelectorAll('input[name=vv-figure-format]')];
    return formats.map((input) => /** @type {any} */ (input).value);
  };
  assert.deepEqual(await ask('rollout'), ['png', 'svg']);
  assert.equal(find('in-app').textContent, 'In the app: PDF, CSV, NPZ, lines of Python, the command.');
  assert.equal(element.querySelector('.vv-figure-python'), null);
  await ask('look');
  assert.equal(
    find('in-app').textContent,
    'In the app: PDF, CSV, NPZ, GIF, WebP, lines of Python, the command.',
  );
});

test('where no dialog is there, whoever asks saves it alone', async () => {
  mount(dialog);
  const taken = (/** @type {boolean} */ goesOn) =>
    askForFigure(/** @type {any} */ ({ dispatchEvent: () => goesOn }), LOOK);
  assert.deepEqual([taken(true), taken(false)], [false, true]);
});

test('what is a page of its own is saved from where that is, and no lines make it', async () => {
  const globals = /** @type {any} */ (URL);
  globals.createObjectURL = () => 'blob:x';
  globals.revokeObjectURL = () => {};
  const headers = { get: () => 'attachment; filename="explorer.html"' };
  const page = '/vit_viz/explorer/h.html?layer=2';
  const { find, asked, choose } = await open(LOOK, { headers, blob: async () => ({}) }, undefined, page);
  await choose('html');
  assert.deepEqual([find('figure-python').disabled, find('figure-size').hidden], [true, true]);
  find('figure-save').fire('click');
  await settle();
  assert.deepEqual([asked, find('figure-status').textContent], [[page], 'Saved explorer.html.']);
});

test('the link of the view is copied, or shown where the page may not', async () => {
  const { find, browser } = await open(LOOK, {});
  find('figure-link').fire('click');
  await settle();
  assert.equal(browser.copied, 'http://page/');
  assert.match(find('figure-status').textContent, /^Link copied/);
  browser.globals.navigator.clipboard.writeText = async () => Promise.reject(new Error('no'));
  find('figure-link').fire('click');
  await settle();
  assert.match(find('figure-status').textContent, /select/);
  assert.equal(find('figure-code').textContent, 'http://page/');
});

test('Ctrl+S presses the first button on the screen that saves, and leaves the browser its own keys', async () => {
  const { browser } = await open(LOOK, {});
  const pressed = /** @type {string[]} */ ([]);
  const button = (/** @type {string} */ name, isSeen = true) => ({
    checkVisibility: () => isSeen,
    click: () => pressed.push(name),
  });
  const document = /** @type {any} */ (browser.globals.document);
  document.querySelectorAll = () => [
    button('of a hidden tab', false),
    button('of this tab'),
    button('below'),
  ];
  document.querySelector = () => null;
  const press = (/** @type {any} */ keys) => {
    let isTaken = false;
    browser.window.fire('keydown', { key: 's', preventDefault: () => (isTaken = true), ...keys });
    return isTaken;
  };
  assert.deepEqual([press({ ctrlKey: true }), press({ metaKey: true, key: 'S' })], [true, true]);
  assert.deepEqual([press({}), press({ ctrlKey: true, shiftKey: true }), press({ ctrlKey: true, key: 'x' })], [false, false, false]); // prettier-ignore
  assert.deepEqual(pressed, ['of this tab', 'of this tab']);
  document.querySelector = () => ({ querySelectorAll: () => [button('of the dialog')] });
  press({ ctrlKey: true });
  document.querySelector = () => ({ querySelectorAll: () => [] });
  assert.equal(press({ ctrlKey: true }), false);
  assert.deepEqual(pressed.slice(2), ['of the dialog']);
});
