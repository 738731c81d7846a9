// Surgery: what it shows, and what it changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { temperatureOf, wordsOf } from '../../vit_viz/web/heads/surgery.js';
import { PANEL, mountSurgery } from './surgery_part.js';
import { settle } from './visit.js';

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

test('clicks on heads are gathered and told once; a head that has the state is on again', () => {
  const { find, told, browser, press, state } = mountSurgery(PANEL);
  assert.equal(state('1.2'), 'off');
  press('1.2');
  press('0.4');
  find('surgery-states').querySelector('[data-state="mean"]').click();
  press('0.3');
  assert.deepEqual(told, []);
  browser.pass(300);
  assert.deepEqual(told, ['off 0.4;mean 0.3;temperature 2=0.5;forbid class>1,2@0']);
});

test('all heads of a layer are switched at once, and on again where all are off', () => {
  const { told, browser, press } = mountSurgery(PANEL);
  const layer = [0, 1, 2, 3, 4].map((head) => `1.${head}`);
  press(...layer);
  browser.pass(300);
  assert.match(told[0], /^off 1\.2 1\.0 1\.1 1\.3 1\.4;/);
  press(...layer);
  browser.pass(300);
  assert.equal(told[1], 'temperature 2=0.5;forbid class>1,2@0');
});

test('what is edited elsewhere does not take back what was clicked since; a refusal does, with its sentence', async () => {
  /** @type {((refused: string) => void)[]} */
  const held = [];
  const part = mountSurgery(PANEL, () => new Promise((done) => held.push(done)));
  const { find, set, browser, press, state, surgery } = part;
  press('0.0');
  set({ ...PANEL });
  assert.equal(state('0.0'), 'off');
  assert.equal(surgery.isWaiting, true);
  browser.pass(300);
  set({ ...PANEL });
  assert.deepEqual([state('0.0'), surgery.isWaiting], ['off', true]); // it is being asked about
  held[0]('No.');
  await settle();
  assert.deepEqual([state('0.0'), surgery.isWaiting], ['on', false]);
  assert.equal(find('surgery-error').textContent, 'No.');
  assert.equal(find('surgery-undo').disabled, true); // nothing was done that could be taken back
  press('0.1');
  browser.pass(300);
  press('0.2'); // before it is known whether the first is possible
  held[1]('No.');
  await settle();
  assert.deepEqual([state('0.1'), state('0.2')], ['off', 'off']);
  browser.pass(300);
  held[2]('');
  await settle();
  set(null);
  assert.equal(surgery.isWaiting, true);
  set({ ...PANEL, off: [[0, 1, 'off'], [0, 2, 'off']] }); // prettier-ignore
  assert.deepEqual(
    [state('0.1'), state('0.2'), state('1.2'), surgery.isWaiting],
    ['off', 'off', 'on', false],
  );
  assert.equal(find('surgery-error').hidden, true);
});

test('every step is taken back, by the button or by Ctrl+Z, one movement of a slider as one step', async () => {
  const { find, told, browser, press, surgery, set } = mountSurgery(PANEL);
  const edits = async () => (browser.pass(300), await settle(), told.at(-1));
  assert.equal(find('surgery-undo').disabled, true);
  press('0.0');
  for (const power of ['0.5', '1', '2']) {
    find('surgery-warmth').value = power;
    find('surgery-warmth').fire('input');
  }
  find('surgery-all').click();
  assert.equal(await edits(), '');
  assert.equal(find('surgery-all').disabled, true);
  find('surgery-undo').click();
  assert.equal(await edits(), 'off 1.2 0.0;temperature 2=0.5 0=4;forbid class>1,2@0');
  const key = (/** @type {any} */ more) =>
    browser.window.fire('keydown', { key: 'z', target: null, ...more });
  find('surgery').box = { left: 0, top: 0, width: 0, height: 0 }; // the switches are not seen
  key({ ctrlKey: true });
  assert.equal(surgery.past.length, 2);
  find('surgery').box = { left: 0, top: 0, width: 300, height: 9 };
  key({});
  key({ ctrlKey: true, shiftKey: true });
  key({ ctrlKey: true, target: find('surgery-layers') }); // somebody types
  assert.equal(surgery.past.length, 2);
  assert.ok(key({ ctrlKey: true }).prevented);
  assert.equal(await edits(), 'off 1.2 0.0;temperature 2=0.5;forbid class>1,2@0');
  assert.ok(key({ metaKey: true }).prevented);
  assert.equal(await edits(), 'off 1.2;temperature 2=0.5;forbid class>1,2@0');
  assert.ok(!key({ ctrlKey: true }).prevented);
  set({ ...PANEL, off: [] }); // edited elsewhere, such as by the badge
  find('surgery-undo').click();
  assert.equal(await edits(), 'off 1.2;temperature 2=0.5;forbid class>1,2@0');
  await settle();
  set({ ...PANEL, trace: 'of another photo' });
  assert.equal(find('surgery-undo').disabled, true);
});

test('a view is forbidden by name, by patches that are typed, and allowed again', () => {
  const { find, told, browser } = mountSurgery(PANEL);
  find('surgery-forbid').click();
  assert.match(find('surgery-error').textContent, /Which patches/);
  find('surgery-seen-patches').value = '1-2,3';
  find('surgery-layers').value = '1, 2';
  find('surgery-forbid').click();
  browser.pass(300);
  assert.match(told[0], /;forbid class>1,2@0;forbid class>1-2,3@1\+2$/);
  find('surgery-forbidden').querySelector('button').click();
  browser.pass(300);
  assert.match(told[1], /=0.5;forbid class>1-2,3@1\+2$/);
});
