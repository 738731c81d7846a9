// Controls that are made of what options say: which one an option has, what it tells, and what stays while somebody types.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { OptionControl } from '../../vit_viz/web/kit/option.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { Browser, parse } from './browser.js';
import { settle } from './room.js';

/** A control, what it tells, and how it is drawn again. @param {object} option @param {any} [value] @param {object} [more] */
async function made(option, value = '', more = {}) {
  const browser = new Browser();
  browser.install();
  const root = /** @type {any} */ (parse('<div></div>'));
  const told = /** @type {any[]} */ ([]);
  const choose = (/** @type {any} */ chosen) => told.push(chosen);
  const whole = { name: 'n', link: '', default: '', label: 'L', sentence: 'S.', ...option };
  const draw = async (/** @type {any} */ next, others = {}) => {
    const props = { option: whole, value: next, choose, prefix: 'p', ...more, ...others };
    render(html`<${OptionControl} ...${props} />`, root);
    await settle();
  };
  await draw(value);
  const control = root.querySelector('[data-option]');
  assert.equal(control.getAttribute('aria-describedby'), 'p-n-words p-n-refusal');
  return { root, control, told, draw, browser };
}

test('a control is made of what its option says', async () => {
  const kind = async (/** @type {object} */ option) => (await made(option)).control;
  assert.equal((await kind({ default: 3, low: 1, high: 9 })).type, 'range');
  assert.equal((await kind({ default: 3, low: 1, high: 4096 })).type, 'text');
  assert.equal((await kind({ default: 'a,b' })).type, 'text');
  assert.equal((await kind({ default: false })).tagName, 'BUTTON');
  assert.equal((await kind({ default: 'a', choices: ['a', 'b'] })).children.length, 2);
  assert.equal((await kind({ default: 'a', choices: [...'abcde'] })).tagName, 'SELECT');
});

test('a choice is told to the letter, and what is typed without the spaces that no name has', async () => {
  const choices = ['all tokens', ' led by a space', 'two  spaces', '', 'e'];
  const list = await made({ default: 'e', choices }, 'e');
  for (const choice of choices) {
    list.control.value = choice;
    list.control.fire('change');
  }
  assert.deepEqual(list.told, choices);
  const few = choices.slice(0, 4);
  const buttons = await made({ choices: few });
  for (const button of buttons.root.querySelectorAll('[data-value]')) button.click();
  assert.deepEqual(buttons.told, few);
  const field = await made({});
  for (const text of [' register 0 ', '2, 4', ' 5 ,5,  60 , 70']) {
    field.control.value = text;
    field.control.fire('change');
  }
  assert.deepEqual(field.told, ['register 0', '2,4', '5,5,60,70']);
  const yes = await made({ default: false }, true);
  yes.control.click();
  assert.deepEqual([yes.told, yes.control.getAttribute('aria-pressed')], [[false], 'true']);
});

test('a slider has the limits of its option, says its number at once, tells it once the hand rests, and is taken back', async () => {
  let resets = 0;
  const option = { default: 3, low: 1, high: 9 };
  const { root, control, told, draw, browser } = await made(option, 3, { reset: () => (resets += 1) });
  assert.deepEqual([control.min, control.max, control.step], ['1', '9', '1']);
  for (const value of ['4', '7']) {
    control.value = value;
    control.fire('input');
  }
  await settle();
  assert.deepEqual([root.querySelector('output').textContent, told], ['7', []]);
  browser.pass(200);
  assert.deepEqual(told, [7]);
  await draw(7);
  root.querySelector('.vv-bare').click();
  assert.equal(resets, 1);
  const switched = await made({ default: false }, false, { reset: () => {} });
  assert.equal(switched.root.querySelector('.vv-bare'), null);
});

test('a slider of a number with decimals moves by its step', async () => {
  const option = { default: 0.5, low: 0.1, high: 3, step: 0.05 };
  const { control, told, browser } = await made(option, 0.5);
  assert.deepEqual([control.type, control.min, control.max, control.step], ['range', '0.1', '3', '0.05']);
  control.value = '0.55';
  control.fire('input');
  browser.pass(200);
  assert.deepEqual(told, [0.55]);
});

test('what is typed stays until it is told, and what is not possible of it is said beside it', async () => {
  const { root, control, draw } = await made({}, 'a');
  control.value = 'ab';
  control.fire('input');
  await draw('c'); // it was changed elsewhere meanwhile
  assert.equal(control.value, 'ab');
  control.fire('blur');
  await settle();
  assert.equal(control.value, 'c');
  await draw('c', { refusal: 'A whole number.' });
  const refusal = root.querySelector('.vv-refusal');
  assert.deepEqual(
    [control.getAttribute('aria-invalid'), refusal.textContent, refusal.hidden],
    ['true', 'A whole number.', false],
  );
  await draw('c');
  assert.deepEqual([control.getAttribute('aria-invalid'), refusal.hidden], [null, true]);
});
