// The table of small photos in the Tokens tab: which of them is large, rows that fold, keys, scales and failures.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, pressed, settle } from './tokens_tab.js';

/** Whose vectors were asked for: state and role. */
const fetched = (/** @type {string[]} */ asked) =>
  asked.filter((path) => path.includes('/tokens/')).map((path) => path.replace('/vit_viz/tokens/h4/', ''));

test('a small photo that is chosen becomes the large one, at once and without a question', async () => {
  const { cells, words, told, asked, element, small, chosenCell, frame } = await open();
  const [, first] = cells();
  const requests = fetched(asked).length;
  first.children[0].fire('click');
  await settle();
  frame();
  assert.deepEqual(told, [[{ state: '1' }, false]]);
  assert.deepEqual(chosenCell(), ['similarity 1']);
  assert.equal(cells()[1], first); // so that the focus stays
  assert.equal(first.tabIndex, 0);
  assert.match(words('room-caption'), /^Patch \(1, 1\) after layer 0: /);
  assert.match(words('room-readout'), /^Most alike is patch \(1, 2\), cosine 43; the average patch 26[.]2; the class token 1[.]/); // prettier-ignore
  assert.equal(fetched(asked).length, requests);
  assert.equal(element.dataset.ready, 'similarity');
  assert.deepEqual(small(4), [0, 0, 0, 73, 164, 255]);
});

test('another question keeps the layer, also where it has no photo before the first', async () => {
  const part = await open({ chosen: { token_state: 3 } });
  await part.press('token_measure', 'norms');
  assert.deepEqual(part.chosenCell(), ['norms 3']);
  await part.press('token_measure', 'layers');
  assert.deepEqual(part.chosen().at(-1), { tokens: 'layers', state: '2' }); // layer 2 is what is done after layer 1
  await part.press('token_measure', 'components');
  await part.press('token_role', 'keys');
  assert.deepEqual(part.chosenCell(), ['components 2']);
  assert.equal(part.cells('components').length, 4);
  assert.equal(part.cells('norms').length, 5);
});

test('the arrow keys go from photo to photo, over what is folded or empty', async () => {
  const { cells, find } = await open({ chosen: { token_state: 0 } });
  const at = () => find('room-scroll').querySelector('[data-cell]:focus')?.dataset.cell;
  const key = (/** @type {string} */ name, more = {}) =>
    find('room-scroll').ownerDocument.activeElement.fire('keydown', { key: name, ...more });
  cells()[0].focus();
  assert.equal(key('ArrowDown').prevented, true);
  assert.equal(at(), 'norms 0');
  key('ArrowDown');
  key('ArrowDown');
  assert.equal(at(), 'lens 0'); // change has none before the first layer, segments are folded
  key('ArrowRight');
  key('ArrowDown');
  assert.equal(at(), 'layers 0');
  key('ArrowUp', { ctrlKey: true });
  key('Enter');
  assert.equal(at(), 'layers 0');
});

test('rows fold, and what is folded is not asked for until it is opened', async () => {
  const { find, asked, cells } = await open();
  const fold = (/** @type {string} */ measure) => find('room-scroll').querySelector(`[data-fold=${measure}]`);
  assert.ok(!asked.some((path) => path.includes('segments')));
  assert.equal(fold('segments')?.getAttribute('aria-expanded'), 'false');
  fold('segments')?.click();
  await settle();
  assert.equal(fold('segments')?.getAttribute('aria-expanded'), 'true');
  assert.equal(asked.filter((path) => path.includes('segments')).length, cells('segments').length);
  fold('similarity')?.click();
  await settle();
  assert.equal(cells()[0].closest('tr').hasAttribute('data-folded'), true);
});

test('a click between the small photos chooses none', async () => {
  const { find, told } = await open();
  find('room-scroll').fire('click');
  find('room-heads').fire('click');
  assert.deepEqual(told, []);
});

test('a state that the model does not have is two thirds of the way through it', async () => {
  assert.match((await open({ chosen: { token_state: 5 } })).words('room-caption'), / after layer 2: /);
  assert.match((await open({ chosen: { token_state: 4 } })).words('room-caption'), / after layer 3: /);
  assert.match(
    (await open({ chosen: { token_state: 0 } })).words('room-caption'),
    / before the first layer: /,
  );
});

test('on a shared scale all maps have the ends of all states', async () => {
  const { press, words, small, asked, chosen, element } = await open();
  await press('token_scale', 'shared');
  assert.deepEqual(chosen(), [{ token_scale: 'shared' }]);
  assert.deepEqual([words('low'), words('high')], ['25.2', '58']); // the mean of 6 t without itself, and 6 · 7 + 16
  assert.deepEqual(small(0), [0, 0, 0, 37, 84, 131]); // 255 · 16.8 / 32.8 = 130.6 for the last
  assert.equal(fetched(asked).length, 5);
  assert.equal(pressed(element.querySelector('[data-value=shared]')), 'true');
  assert.equal(pressed(element.querySelector('[data-value=layer]')), 'false');
});

test('queries and keys have a map per layer, and are asked for anew', async () => {
  const { press, asked, cells, words, told } = await open();
  asked.length = 0;
  await press('token_role', 'queries');
  assert.deepEqual(told, [[{ vectors: 'queries', state: '2' }, false]]);
  assert.deepEqual(
    fetched(asked),
    [2, 0, 1, 3].map((state) => `${state}?role=queries`),
  );
  assert.deepEqual(
    cells().map((/** @type {any} */ cell) => cell.querySelector('canvas').getAttribute('aria-label')),
    ['layer 0', 'layer 1', 'layer 2', 'layer 3'].map((name) => `alike, ${name}`),
  );
  assert.match(words('room-caption'), /^Patch \(1, 1\), by the queries of layer 2: /);
  await press('token_role', 'tokens');
  assert.equal(fetched(asked).length, 4); // they are here
  assert.match(words('room-caption'), /^Patch \(1, 1\) after layer 2: /);
});

test('a failure is said, and what failed is asked for again', async () => {
  let failing = true;
  const { find, words, show, asked, element, press } = await open(
    {},
    { answer: (path) => (failing && path.includes('/1?role') ? new Error('The server is full.') : null) },
  );
  assert.deepEqual(
    [words('room-error'), find('room-error').hidden],
    ['The server is full. Try again', false],
  );
  assert.equal(element.dataset.ready, undefined);
  assert.equal(words('room-wait'), '');
  assert.match(words('room-readout'), /; the average patch 34[.]2; /); // state 3 is here
  assert.match(
    find('room-scroll').querySelector('[data-row=similarity] .vv-error')?.textContent ?? '',
    /full/,
  );
  failing = false;
  asked.length = 0;
  await press('token_scale', 'shared');
  assert.deepEqual(
    fetched(asked),
    [1, 2, 4].map((state) => `${state}?role=tokens`),
  );
  assert.equal(find('room-error').hidden, true);
  assert.equal(element.dataset.ready, 'similarity');
  await show({ note: 'This photo is small.' });
  assert.equal(words('room-error'), 'This photo is small. Try again');
});

test('a question that fails says so in its own row, and the others go on', async () => {
  const answer = (/** @type {string} */ path) =>
    path.startsWith('logit_lens') ? new Error('No head.') : null;
  const part = await open({}, { answer });
  const row = part.find('room-scroll').querySelector('[data-row=lens]');
  assert.equal(row?.querySelector('.vv-error')?.textContent, 'No head.');
  assert.equal(part.find('room-error').hidden, true);
  assert.ok(part.asked.some((path) => path.startsWith('token_change')));
  assert.equal(part.element.dataset.ready, 'similarity');
  await part.press('token_measure', 'lens');
  assert.equal(part.words('room-error'), 'No head. Try again');
  assert.equal(part.element.dataset.ready, undefined);
});

test('what does not fit into a frame is drawn in the next ones', async () => {
  const part = await open({}, { slow: 20 }); // one photo in a frame
  for (let i = 0; i < 60; i++) part.frame();
  assert.equal(part.browser.timers.size, 0); // and then it rests
  const states = [0, 1, 2, 3, 4];
  const before = states.map((state) => part.small(state).join());
  const changed = () => states.filter((state) => part.small(state).join() !== before[state]);
  part.stage.fire('pointermove', part.patch(0, 1));
  part.frame();
  assert.match(part.words('room-caption'), /^Patch \(0, 1\)/);
  assert.deepEqual(changed(), [0]);
  part.frame();
  part.frame();
  assert.deepEqual(changed(), [0, 1, 2]);
  for (let i = 0; i < 9; i++) part.frame();
  assert.deepEqual(changed(), states);
  assert.equal(part.browser.timers.size, 0);
});
