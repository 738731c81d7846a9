// The badge of an edited model: what it shows, and what it takes back.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { headerPage } from './header_page.js';

const CHANGED = {
  words: '2 heads off',
  each: [
    { said: 'layer 3, head 1: off', left: 'off 4.0' },
    { said: 'layer 4, head 0: off', left: 'off 3.1' },
  ],
  before: [
    { name: 'lion <b>', probability: 0.625 },
    { name: 'cat', probability: 0.25 },
  ],
  after: [{ name: 'dog', probability: 0.5 }],
};

test('the badge says what is changed, with the answers before and now; nothing changed, no badge', async () => {
  let answer = /** @type {any} */ (CHANGED);
  const { find, store, bodies, settle } = headerPage({ answers: { edited: () => answer } });
  await settle();
  assert.deepEqual([find('edited'), bodies('edited').length], [null, 0]);
  store.set({ edits: 'off 3.1 4.0' });
  await settle();
  assert.equal(find('edited-words').textContent, '2 heads off');
  const lines = (/** @type {string} */ name) =>
    find(name).children.map((/** @type {any} */ li) => li.textContent);
  assert.deepEqual(lines('edited-before'), ['lion <b>63%', 'cat25%']);
  assert.deepEqual(lines('edited-after'), ['dog50%']);
  assert.equal(find('edited-each').children.length, 2);
  find('edited-badge').click();
  await settle();
  assert.ok(!find('edited-panel').hidden);
  answer = { words: '1 head off', each: [CHANGED.each[0]], error: 'Layer 14 does not exist.' };
  store.set({ edits: 'off 14.1' });
  await settle();
  assert.equal(find('edited-error').firstChild.textContent, 'Layer 14 does not exist.');
  assert.ok(find('edited-answers').hidden);
  store.set({ edits: '' });
  await settle();
  assert.equal(find('edited'), null);
  store.set({ edits: 'off 3.1' });
  await settle();
  assert.ok(find('edited-panel').hidden); // it begins closed
});

test('one edit is undone by its own button, all by one, also where the server says nothing of them', async () => {
  let fails = false;
  const answers = {
    edited: () => (fails ? Promise.reject(new Error('The server is busy.')) : CHANGED),
  };
  const { find, store, settle } = headerPage({ search: '?edits=off+3.1+4.0', answers });
  await settle();
  find('edited-each').children[1].querySelector('button').click();
  assert.equal(store.view.edits.value, 'off 3.1');
  fails = true;
  store.set({ edits: 'off 2.2' });
  await settle();
  find('edited-undo').click();
  assert.equal(store.view.edits.value, '');
});
