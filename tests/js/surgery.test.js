// Surgery and the badge of an edited model, each run as Gradio runs it: what they show, and what they tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mountEdited } from '../../vit_viz/ui/header/parts.js';
import { mount as mountSurgery, temperatureOf, wordsOf } from '../../vit_viz/ui/heads/surgery.js';
import { component, mount } from './browser.js';

const EDITED = component(mountEdited, 'ui/header/edited.html');
const SURGERY = component(mountSurgery, 'ui/heads/surgery.html');
const BEFORE = [
  { name: 'lion <b>', probability: 0.625 },
  { name: 'cat', probability: 0.25 },
];
const CHANGED = {
  words: '2 heads off',
  each: [
    { words: 'off 3.1', said: 'layer 3, head 1: off' },
    { words: 'off 4.0', said: 'layer 4, head 0: off' },
  ],
  before: BEFORE,
  after: [{ name: 'dog', probability: 0.5 }],
};
const PANEL = {
  revision: 4,
  layers: 3,
  heads: 5,
  grid: [4, 6],
  crop: { original: [40, 90], input: [32, 48], region: [0, 15, 40, 60] },
  photo: '/vit_viz/photo/x',
  photo_size: [40, 90],
  name: 'a photo',
  tokens: [
    { value: 'class', label: 'class token' },
    { value: 'patches', label: 'all patches' },
  ],
  off: [[1, 2, 'off']],
  temperatures: [[2, 0.5]],
  forbidden: ['class>1,2@0'],
  error: '',
};

test('the badge says what is changed, with the answers before and now; nothing changed, no badge', () => {
  const { find, set } = mount(EDITED, { words: '', each: [] });
  assert.ok(find('edited').hidden);
  set(CHANGED);
  assert.ok(!find('edited').hidden);
  assert.equal(find('edited-words').textContent, '2 heads off');
  const lines = (/** @type {string} */ name) =>
    find(name).children.map((/** @type {any} */ li) => li.textContent);
  assert.deepEqual(lines('edited-before'), ['lion <b>63%', 'cat25%']);
  assert.deepEqual(lines('edited-after'), ['dog50%']);
  assert.equal(find('edited-each').children.length, 2);
  set({ words: '1 head off', each: [CHANGED.each[0]], error: 'Layer 14 does not exist.' });
  assert.equal(find('edited-error').textContent, 'Layer 14 does not exist.');
  assert.ok(find('edited-answers').hidden);
});

test('one edit is undone by its own button, all by one', () => {
  const { find, told } = mount(EDITED, CHANGED);
  find('edited-each').children[1].querySelector('button').click();
  find('edited-undo').click();
  assert.deepEqual(told, [
    ['undo', { words: 'off 4.0' }],
    ['undo', { words: '' }],
  ]);
});

test('edits are put into the words that Python reads', () => {
  const heads = new Map(
    /** @type {any} */ ([
      ['1.0', 'off'],
      ['2.3', 'mean'],
      ['0.4', 'off'],
    ]),
  );
  const words = wordsOf(
    heads,
    new Map([
      [2, 0.5],
      [1, 1],
    ]),
    ['class>patches@0'],
  );
  assert.equal(words, 'off 1.0 0.4;mean 2.3;temperature 2=0.5;forbid class>patches@0');
  assert.equal(wordsOf(new Map(), new Map(), []), '');
  assert.deepEqual([-3, -1, 0, 0.25, 3].map(temperatureOf), [0.125, 0.5, 1, 1.19, 8]);
});

const cell = (/** @type {any} */ find, /** @type {string} */ place) =>
  find('surgery-table').querySelector(`[data-place="${place}"]`);

test('clicks on heads are gathered and told once; a head that has the state is on again', () => {
  const { find, told, browser } = mount(SURGERY, PANEL);
  assert.equal(cell(find, '1.2').dataset.state, 'off');
  assert.equal(cell(find, '1.2').getAttribute('aria-label'), 'layer 1, head 2: off');
  cell(find, '1.2').click();
  cell(find, '0.4').click();
  find('surgery-states').querySelector('[data-state="mean"]').click();
  cell(find, '0.3').click();
  assert.deepEqual(told, []);
  browser.pass(300);
  assert.deepEqual(told, [['edit', { edits: 'off 0.4;mean 0.3;temperature 2=0.5;forbid class>1,2@0' }]]);
});

test('the number of a layer is a switch for all of its heads', () => {
  const { find, told, browser } = mount(SURGERY, PANEL);
  find('surgery-table').querySelector('[data-all="1"]').click();
  browser.pass(300);
  assert.match(told[0][1].edits, /^off 1\.2 1\.0 1\.1 1\.3 1\.4;/);
  find('surgery-table').querySelector('[data-all="1"]').click();
  browser.pass(300);
  assert.equal(told[1][1].edits, 'temperature 2=0.5;forbid class>1,2@0');
});

test('an older value does not take back what was clicked since; a refusal does, with its sentence', () => {
  const { find, set, browser } = mount(SURGERY, PANEL);
  cell(find, '0.0').click();
  browser.pass(300);
  set({ ...PANEL, revision: 4 });
  assert.equal(cell(find, '0.0').dataset.state, 'off');
  set({ ...PANEL, revision: 4, error: 'No.' });
  assert.equal(cell(find, '0.0').dataset.state, 'on');
  assert.equal(find('surgery-error').textContent, 'No.');
});

test('a view is forbidden by name, by patches that are typed, and allowed again', () => {
  const { find, told, browser } = mount(SURGERY, PANEL);
  find('surgery-forbid').click();
  assert.match(find('surgery-error').textContent, /Which patches/);
  find('surgery-seen-patches').value = '1-2,3';
  find('surgery-layers').value = '1, 2';
  find('surgery-forbid').click();
  browser.pass(300);
  assert.match(told[0][1].edits, /;forbid class>1,2@0;forbid class>1-2,3@1\+2$/);
  find('surgery-forbidden').querySelector('button').click();
  browser.pass(300);
  assert.match(told[1][1].edits, /=0.5;forbid class>1-2,3@1\+2$/);
});
