// Fingers and pens on the photo of the explorer.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open } from './visit.js';

test('a finger pins where it taps, and a swipe that scrolls the page pins and previews nothing', async () => {
  const { parts, show, patch, explorer } = open();
  await show();
  const touch = { pointerType: 'touch', buttons: 1 };
  const { stage } = parts;
  stage.fire('pointerdown', { ...patch(0, 1), ...touch });
  assert.equal(explorer.hovered, null); // it may be the start of a swipe
  stage.fire('pointermove', { ...patch(3, 1), ...touch });
  assert.equal(explorer.hovered, null);
  stage.fire('pointercancel', { ...patch(3, 1), ...touch });
  assert.deepEqual([explorer.view?.query, explorer.hovered], ['class', null]);
  stage.fire('pointerdown', { ...patch(3, 2), ...touch });
  stage.fire('pointerup', { ...patch(3, 2), ...touch });
  assert.deepEqual([explorer.view?.query, explorer.hovered], ['3,2', null]);
  parts.region.fire('click'); // collects
  stage.fire('pointerdown', { ...patch(0, 5), ...touch });
  stage.fire('pointerup', { ...patch(0, 5), ...touch });
  assert.equal(explorer.view?.query, '0,5;3,2');
});

test('a finger that has rested takes a region, one that slides sideways previews', async () => {
  const { parts, show, patch, explorer, browser } = open();
  await show();
  const { stage } = parts;
  const finger = (/** @type {string} */ name, /** @type {number} */ r, /** @type {number} */ c) =>
    stage.fire(name, { ...patch(r, c), pointerType: 'touch', buttons: 1 });
  finger('pointerdown', 1, 4);
  browser.pass(450);
  assert.equal(explorer.hovered, '1,4');
  finger('pointermove', 0, 3);
  assert.equal(explorer.hovered, '0,3;0,4;1,3;1,4');
  finger('pointerup', 0, 3);
  stage.fire('pointerleave', { pointerType: 'touch' });
  assert.deepEqual([explorer.view?.query, explorer.hovered], ['0,3;0,4;1,3;1,4', null]);
  finger('pointerdown', 1, 0);
  finger('pointermove', 1, 4);
  assert.equal(explorer.hovered, '1,4');
  finger('pointerup', 1, 4);
  assert.deepEqual([explorer.view?.query, explorer.hovered], ['0,3;0,4;1,3;1,4', null]);
  finger('pointerdown', 2, 2);
  browser.pass(450);
  finger('pointermove', 3, 3);
  finger('pointercancel', 3, 3);
  assert.deepEqual([explorer.view?.query, explorer.hovered], ['0,3;0,4;1,3;1,4', null]);
});

test('a finger that reads leaves the value beside it when it lifts', async () => {
  const { parts, show, patch, explorer, element } = open();
  await show();
  const reads = element.querySelectorAll('[name$="-pointer"]').find((input) => input.value === 'reads');
  const tap = (/** @type {number} */ r, /** @type {number} */ c) => {
    for (const name of ['pointerdown', 'pointerup', 'pointerleave'])
      parts.stage.fire(name, { ...patch(r, c), pointerType: 'touch', buttons: 1 });
  };
  /** @type {any} */ (reads).checked = true;
  tap(2, 3);
  assert.deepEqual([explorer.view?.query, parts.tip.hidden], ['class', false]);
  assert.match(parts.tip.textContent, /[(]2, 3[)]/);
  /** @type {any} */ (reads).checked = false;
  tap(2, 3);
  assert.deepEqual([explorer.view?.query, parts.tip.hidden], ['2,3', true]);
});

test('a pen previews where it points and taps as a finger does', async () => {
  const { parts, show, patch, explorer } = open();
  await show();
  const pen = { pointerType: 'pen' };
  parts.stage.fire('pointermove', { ...patch(3, 5), ...pen, buttons: 0 });
  assert.equal(explorer.hovered, '3,5');
  parts.stage.fire('pointerleave', { ...pen, buttons: 0 });
  assert.equal(explorer.hovered, null);
  parts.stage.fire('pointerdown', { ...patch(3, 5), ...pen, buttons: 1 });
  assert.deepEqual([explorer.view?.query, explorer.hovered], ['class', null]);
  parts.stage.fire('pointerup', { ...patch(3, 5), ...pen, buttons: 0 });
  assert.equal(explorer.view?.query, '3,5');
});
