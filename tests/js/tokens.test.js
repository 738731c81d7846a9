// The Tokens tab against a server that a test answers for: what it shows of a photo, and what pointer, keys and its table do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MOST_BYTES } from '../../vit_viz/web/tokens/held.js';
import { savedBy } from './browser.js';
import { open } from './tokens_tab.js';
import { pressed, settle, texts } from './room.js';

const RING = 'vv-ring 50% 50%'; // around patch (1, 1): 20 of 40 pixels down, 50 of 100 across
const HERE = 'Patch (1, 1) after layer 2: all patches carry the same direction';

/** Whose vectors were asked for: state and role. */
const fetched = (/** @type {string[]} */ asked) =>
  asked.filter((path) => path.includes('/tokens/')).map((path) => path.replace(/.*[/]/, ''));
const statesOf = (/** @type {number[]} */ states, role = 'tokens') =>
  states.map((state) => `${state}?role=${role}`);

test('the tab opens with what is like the middle patch, two thirds of the way through the model', async () => {
  const { words, find, chosenCell, marks, asked, big, small, ready, stage } = await open();
  assert.deepEqual(fetched(asked), statesOf([3, 0, 1, 2, 4])); // what is looked at comes first
  assert.equal(words('tokens-caption'), HERE);
  // patch (1, 1) is token 6; in state 3 the products are 6 t + 9 for the tokens 2 to 7: 21, 27, 33, 39, itself and 51
  assert.equal(
    words('tokens-readout'),
    'Most alike is patch (1, 2), cosine 51; the average patch 34.2; the class token 9. The same direction: within 45°, a cosine of 0.71. Dark: no more alike than the average.',
  );
  assert.deepEqual(['low', 'high', 'unit'].map(words), ['34.2', '51', 'cosine']);
  assert.equal(find('tokens-bar').hasAttribute('data-none'), false);
  assert.match(
    find('strip').style.background,
    /^linear-gradient\(to right, rgb\(0 0 0\), rgb\(15 15 15\), rgb\(30/,
  );
  const tones = [0, 0, 0, 73, 164, 255]; // 255 · 4.8 / 16.8 = 72.9
  assert.deepEqual(big(), tones.flatMap((tone) => [tone, tone, tone, 191])); // prettier-ignore
  assert.deepEqual(small(0), tones); // each state on a scale of its own
  assert.deepEqual(marks(), [RING]);
  assert.deepEqual(texts(find('tokens-table').querySelectorAll('thead th').slice(1)), ['input', 'after 0', 'after 1', 'after 2', 'after 3']); // prettier-ignore
  assert.deepEqual(chosenCell(), ['similarity 3']);
  assert.equal(ready(), 'similarity');
  assert.equal(find('tokens-scroll').getAttribute('aria-busy'), 'false');
  assert.equal(find('tokens-error').hidden, true);
  const aspects = [find('tokens-left'), find('tokens-scroll'), stage];
  assert.deepEqual(aspects.map(({ style }) => style.getPropertyValue('--vv-aspect')), ['2.5', '3', '2.5']); // prettier-ignore
  assert.deepEqual([find('photo').src, find('photo').alt], ['/photo/h4', 'a lion']);
  const { top, left, width, height } = find('box').style;
  assert.deepEqual([top, left, width, height], ['25%', '30%', '60%', '50%']);
});

test('the photo is lit from the average patch up, and tinted where it is too dark for that', async () => {
  const chosen = { style: 'light', alpha: 1, smooth: true };
  const part = await open({ chosen });
  assert.deepEqual([part.how()?.how, part.how()?.smooth], ['light', true]);
  const opacity = part.big().filter((_, i) => i % 4 === 3);
  assert.deepEqual(opacity, [255, 255, 255, 182, 91, 0]); // of the dimmed photo
  await part.press('style', 'tint');
  assert.deepEqual(part.chosen().at(-1), { style: 'tint' });
  assert.equal(part.how()?.how, 'tint');
  await part.press('style', 'heat'); // which has a strength of its own
  assert.deepEqual(part.chosen().at(-1), { style: 'heat', alpha: '0.55' });
  assert.equal(part.find('tokens-unlit'), null);
  const dark = await open({ chosen, unlit: 'too dark' });
  assert.equal(dark.how()?.how, 'tint');
  assert.equal(dark.words('tokens-unlit'), 'tint, as this photo is too dark');
});

test('while the vectors arrive, what is here is shown, the large photo first', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const answer = (/** @type {string} */ path) =>
    path.includes('/tokens/') ? new Promise((done) => void waiting.push(done)) : null;
  const { words, find, ready, small, frame, press } = await open({}, { answer });
  assert.equal(waiting.length, 1); // one state after the other
  assert.deepEqual(['tokens-readout', 'tokens-wait'].map(words), ['', 'Computing alike …']);
  assert.equal(words('tokens-caption'), 'Which patches carry the same direction');
  assert.equal(find('tokens-scroll').getAttribute('aria-busy'), 'true');
  for (const measure of ['norms', 'similarity']) await press('token_measure', measure);
  assert.equal(waiting.length, 1); // it is on its way
  waiting[0](null);
  await frame();
  assert.equal(ready(), undefined);
  assert.equal(words('tokens-caption'), HERE);
  assert.deepEqual([small(0), small(3)[5]], [[], 255]);
  for (let i = 1; i < 5; i++) {
    waiting[i](null);
    await settle();
  }
  assert.deepEqual([ready(), words('tokens-wait')], ['similarity', '']);
});

test('a patch under the pointer is the query of all rows at the next frame, over the large photo and over a small one', async () => {
  const { words, stage, patch, marks, browser, find, cells, small, asked, point, frame } = await open();
  const before = performance.getEntriesByName('vit_viz:tokens').length;
  const requests = asked.length;
  const timers = browser.timers.size;
  stage.fire('pointermove', patch(0, 0));
  stage.fire('pointermove', patch(0, 2)); // token 4: products 4 t + 9
  assert.equal(words('tokens-caption'), HERE);
  assert.equal(browser.timers.size, timers + 1); // one frame for all
  await frame();
  assert.equal(performance.getEntriesByName('vit_viz:tokens').length, before + 1);
  assert.match(words('tokens-caption'), /^Patch \(0, 2\) after layer 2: /);
  assert.deepEqual(small(1), [0, 0, 0, 43, 149, 255]); // 4 t + 1; 255 · 5.6 / 9.6 = 148.75
  assert.deepEqual(marks(), ['vv-ring 25% 70%']);
  stage.fire('pointermove', patch(0, 2)); // still there
  assert.equal(browser.timers.size, timers);
  const over = cells()[1].querySelector('.vv-tokens-small');
  over.box = { left: 400, top: 300, width: 30, height: 10 };
  over.fire('pointermove', { clientX: 405, clientY: 307 });
  await frame();
  assert.match(words('tokens-caption'), /^Patch \(1, 0\) after layer 2: /);
  for (const leave of [
    () => find('tokens-scroll').fire('pointermove', { clientX: 100, clientY: 100 }), // between the photos
    () => find('tokens-scroll').fire('pointerleave'),
    () => stage.fire('pointerleave'),
  ]) {
    await point(patch(0, 0));
    assert.match(words('tokens-caption'), /^Patch \(0, 0\)/);
    leave();
    await frame();
    assert.equal(words('tokens-caption'), HERE);
  }
  assert.equal(asked.length, requests); // nothing is asked meanwhile
});

test('a click pins a patch for the whole page, and the arrow keys move it; beyond what the model receives is no patch', async () => {
  const { stage, at, patch, told, words, marks, point } = await open();
  stage.fire('click', at(9, 40));
  stage.fire('click', at(15, 91));
  await point(at(9, 40));
  assert.deepEqual([told, words('tokens-caption')], [[], HERE]);
  await point(patch(0, 0));
  stage.fire('click', patch(0, 1));
  await settle();
  assert.deepEqual(told, [[{ q: '0,1' }, true]]);
  assert.match(words('tokens-caption'), /^Patch \(0, 1\) after layer 2: /); // the pointer is forgotten
  assert.deepEqual(marks(), ['vv-ring 25% 50%']);
  for (const [key, q] of [
    ['ArrowRight', '0,2'],
    ['ArrowDown', '1,2'],
  ]) {
    /** @type {number} */
    const before = told.length;
    assert.equal(stage.fire('keydown', { key }).prevented, true);
    assert.equal(told.length, before); // pointed at alone
    assert.equal(stage.fire('keydown', { key: 'Enter' }).prevented, true);
    await settle();
    assert.deepEqual(told.at(-1), [{ q }, true]);
  }
  for (const key of ['Escape', 'Escape']) assert.equal(stage.fire('keydown', { key }).prevented, true);
  assert.deepEqual(told.slice(3), [[{ q: null }, true]]);
});

test('a token that is no patch is named, pinned by its button, has no ring, and the keys go on from the middle', async () => {
  const { words, marks, told, stage, find, click, show } = await open({ query: 'class' });
  assert.match(words('tokens-caption'), /^The class token after layer 2: /);
  assert.match(words('tokens-readout'), /^Most alike is patch \(0, 0\), cosine 9; the average patch 9; the class token 9[.]/); // prettier-ignore
  assert.deepEqual(['low', 'high'].map(words), ['9', '9']);
  assert.deepEqual(marks(), []);
  const chips = find('tokens-named').children;
  assert.deepEqual(texts(chips), ['class token', 'register 0']);
  await click(chips[1]);
  assert.deepEqual(told, [[{ q: 'register 0' }, true]]);
  assert.deepEqual(chips.map(pressed), ['false', 'true']);
  assert.match(words('tokens-caption'), /^The register 0 after layer 2: /);
  await show({ query: 'detection 0' });
  assert.match(words('tokens-caption'), /^The detection 0 after layer 2: /);
  assert.match(words('tokens-readout'), /cosine 65; the average patch 45; the class token 9[.]/); // token 8
  for (const key of ['ArrowUp', 'Enter']) stage.fire('keydown', { key });
  assert.deepEqual(told.at(-1), [{ q: '1,1' }, true]);
  await show({ query: 'nobody' });
  assert.match(words('tokens-caption'), /^Patch \(1, 1\) after layer 2: /);
});

/** A server whose first vectors are of one number for each token, and have the products that are told with token 0. */
const products = (/** @type {number[]} */ all) => (/** @type {string} */ path) =>
  path.includes('/tokens/') ? Uint16Array.from(all.flatMap((one) => [one, 0])).buffer : null;
const [ONE, HALF, SEVEN_TENTHS, CLOSE] = [0x3c00, 0x3800, 0x399a, 0x39ae]; // 1, 0.5, 0.7 and 0.71 in fp16

test('what is alike is counted within 45 degrees, without the patch itself; without a class token nothing is said of one', async () => {
  const bare = { prefix: [], suffix: [], query: '0,0' };
  for (const [all, words] of /** @type {[number[], string][]} */ ([
    [[ONE, HALF, SEVEN_TENTHS, 0, 0, 0], 'no other patch carries the same direction'],
    [[ONE, CLOSE, SEVEN_TENTHS, 0, 0, 0], '1 patch carries the same direction'],
    [[ONE, ONE, CLOSE, 0, 0, 0], '2 patches carry the same direction'],
    [[ONE, ONE, ONE, ONE, 0, 0], 'most patches carry the same direction, 3 of 5'],
    [[ONE, ONE, ONE, ONE, ONE, ONE], 'all patches carry the same direction'],
  ])) {
    const part = await open(bare, { answer: products(all) });
    assert.equal(part.words('tokens-caption'), `Patch (0, 0) after layer 2: ${words}`);
  }
  const part = await open(bare, { answer: products([ONE, HALF, HALF, 0, 0, 0]) });
  assert.match(
    part.words('tokens-readout'),
    /^Most alike is patch \(0, 1\), cosine 0[.]5; the average patch 0[.]2[.] The same/,
  );
  const none = await open(
    { ...bare, prefix: ['class'], query: 'class' },
    { answer: products([ONE, 0, 0, 0, 0, 0, HALF]) },
  );
  assert.match(none.words('tokens-caption'), /: no patch carries the same direction$/);
  const one = await open({ ...bare, grid: [1, 1] }, { answer: products([ONE]) });
  assert.match(one.words('tokens-readout'), /^There is one patch alone[.] The same/);
});

test('Back and what is chosen elsewhere are followed; while another tab is open nothing is asked', async () => {
  const { press, show, store, asked, chosenCell, words } = await open();
  await press('token_role', 'keys');
  assert.match(words('tokens-caption'), /by the keys of layer 2/);
  await show({ query: '1,0', chosen: { token_state: 4 } });
  assert.deepEqual(chosenCell(), ['similarity 4']);
  assert.match(words('tokens-caption'), /^Patch \(1, 0\) after layer 3: /);
  const before = asked.length;
  store.set({ tab: 'look', tokens: 'lens', vectors: 'queries', q: '0,0' });
  await settle();
  assert.equal(asked.length, before);
  assert.match(words('tokens-caption'), /^Patch \(1, 0\) after layer 3: /);
  store.set({ tab: 'tokens' });
  await settle();
  assert.deepEqual(chosenCell(), ['lens 4']);
  assert.match(words('tokens-caption'), /^Patch \(0, 0\) after layer 3: /);
});

test('what was seen of another photo is not asked about under the new link', async () => {
  const { store, asked, words } = await open();
  store.set({ tab: 'look' });
  store.look({ image: 'tower' });
  await settle();
  const before = asked.length;
  store.set({ tab: 'tokens', vectors: 'keys' });
  await settle();
  const paths = asked.slice(before).filter((path) => path.includes('/tokens/'));
  assert.ok(paths.length > 0 && paths.every((path) => path.includes('/h5/')));
  assert.match(words('tokens-caption'), /^Patch \(1, 1\), by the keys of layer 2: /);
  store.set({ image: 'lion', vectors: 'queries', q: '0,0' }); // while the tab is open
  await null;
  await null;
  assert.match(words('tokens-caption'), /^Patch \(1, 1\), by the keys of layer 2: /);
  await settle();
  assert.match(words('tokens-caption'), /^Patch \(0, 0\), by the queries of layer 2: /);
  assert.ok(!asked.some((path) => /h5.*queries/.test(path)));
});

test('another photo begins anew: its vectors, its grid, and nothing of the old one arrives', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const { show, asked, signals, words, cells, find, point, patch } = await open(
    {},
    { answer: (path) => (path.includes('/h4/') ? new Promise((done) => void waiting.push(done)) : null) },
  );
  await point(patch(0, 0));
  await show({ trace: 'h5', photo: '/photo/h5', photo_size: [12, 24], crop: { region: [0, 0, 40, 100], original: [40, 100] } }); // prettier-ignore
  assert.deepEqual([signals[0].aborted, signals.at(-1)?.aborted], [true, false]);
  waiting[0](new Error('gone'));
  await settle();
  assert.equal(find('tokens-error').hidden, true);
  const paths = asked.filter((path) => path.includes('/tokens/'));
  assert.deepEqual(paths.map((path) => path.split('/')[3]), ['h4', 'h5', 'h5', 'h5', 'h5', 'h5']); // prettier-ignore
  assert.equal(words('tokens-caption'), HERE); // nothing is under the pointer
  assert.equal(find('photo').src, '/photo/h5');
  assert.equal(find('tokens-left').style.getPropertyValue('--vv-aspect'), '2');
  assert.equal(find('tokens-scroll').style.getPropertyValue('--vv-aspect'), '2.5');
  assert.equal(cells().length, 5);
});

test('without a photo a note says why, until there is one', async () => {
  const { find, words, asked, told, cells, click, show } = await open({ note: 'No photo yet.' });
  assert.deepEqual([cells().length, find('tokens-main').hidden, find('tokens-save')], [0, true, null]);
  assert.deepEqual([words('tokens-error'), find('tokens-error').hidden], ['No photo yet. Try again', false]);
  assert.deepEqual([asked, told], [[], []]);
  await show({ note: '' });
  assert.equal(find('tokens-main').hidden, false);
  await show({ note: 'Gone.' });
  await click(find('again')); // which opens it again
  assert.equal(words('tokens-error'), 'Gone. Try again');
});

test('of vectors that are too large for all, those that are looked at are fetched', async () => {
  const large = new Uint16Array(9 * Math.floor(MOST_BYTES / 72)).buffer; // two of them fill the room
  const answer = (/** @type {string} */ path) => (path.includes('/tokens/') ? large : null);
  const { asked, ready } = await open({}, { answer });
  assert.deepEqual([fetched(asked), ready()], [statesOf([3, 0]), 'similarity']);
});

test('vectors of another number of tokens are refused', async () => {
  const answer = (/** @type {string} */ path) => (path.includes('/tokens/') ? new ArrayBuffer(34) : null);
  const { words } = await open({}, { answer });
  assert.equal(words('tokens-error'), 'These vectors do not fit the tokens of the picture. Try again');
});

test('what is saved is what is shown: the question of the row, the patch that asks, the layer', async () => {
  for (const [changes, ...wanted] of /** @type {[any, string, any][]} */ ([
    [{}, 'token_similarity', { role: 'tokens', query: '1,1' }],
    [{ query: '0,2' }, 'token_similarity', { role: 'tokens', query: '0,2' }],
    [
      { chosen: { token_measure: 'components', token_whitened: true } },
      'token_components',
      { role: 'tokens', foreground: false, whitened: true },
    ],
    [{ chosen: { token_measure: 'norms', token_factor: 3 } }, 'token_norms', { factor: 3 }],
    [{ chosen: { token_measure: 'norms', token_register: true } }, 'added_register', { factor: 5 }],
    [{ chosen: { token_measure: 'lens' }, target: '7' }, 'logit_lens', { target: '7' }],
    [{ chosen: { token_measure: 'layers', token_role: 'keys' } }, 'layer_similarity', { role: 'keys' }],
    [
      { chosen: { token_measure: 'segments', token_count: 3, token_state: 1 } },
      'segments',
      { layer: 1, role: 'keys', method: 'k-means', box: '', count: 3 },
    ],
  ])) {
    // prettier-ignore
    const { find, element } = await open(changes);
    const [name, { figure, model, ...body }] = savedBy(element, find('tokens-save'));
    assert.deepEqual([name, body], wanted);
    assert.deepEqual([model, figure], ['mini', { style: 'heat', alpha: 0.75, smooth: false }]);
  }
});

// --- the table

test('a small photo that is chosen becomes the large one, without a question', async () => {
  const { cells, click, words, told, asked, ready, small, chosenCell, find } = await open();
  const [, first] = cells();
  const requests = fetched(asked).length;
  await click(first.children[0]);
  assert.deepEqual(told, [[{ state: '1' }, false]]);
  assert.deepEqual(chosenCell(), ['similarity 1']);
  assert.equal(cells()[1], first); // so that the focus stays
  assert.deepEqual(cells().map((/** @type {any} */ cell) => cell.tabIndex), [-1, 0, -1, -1, -1]); // prettier-ignore
  assert.match(words('tokens-caption'), /^Patch \(1, 1\) after layer 0: /);
  assert.match(words('tokens-readout'), /^Most alike is patch \(1, 2\), cosine 43; the average patch 26[.]2; the class token 1[.]/); // prettier-ignore
  assert.deepEqual([fetched(asked).length, ready()], [requests, 'similarity']);
  assert.deepEqual(small(4), [0, 0, 0, 73, 164, 255]);
  await click(find('tokens-table').querySelector('thead')); // between the photos
  assert.equal(told.length, 1);
});

test('another question keeps the layer, also where it has no photo before the first', async () => {
  const part = await open({ chosen: { token_state: 3 } });
  await part.press('token_measure', 'norms');
  assert.deepEqual(part.chosenCell(), ['norms 3']);
  assert.deepEqual(part.element.querySelectorAll('.vv-tokens-row [data-value]').map(pressed), ['false', 'false', 'true', 'false', 'false', 'false']); // prettier-ignore
  await part.press('token_measure', 'layers');
  assert.deepEqual(part.chosen().at(-1), { tokens: 'layers', state: '2' }); // layer 2 is what is done after layer 1
  await part.press('token_measure', 'components');
  await part.press('token_role', 'keys');
  assert.deepEqual(part.chosenCell(), ['components 2']);
  assert.deepEqual([part.cells('components').length, part.cells('norms').length], [4, 5]);
});

test('a state that the model does not have is two thirds of the way through it', async () => {
  for (const [state, where] of /** @type {[number, string][]} */ ([
    [5, 'after layer 2'],
    [4, 'after layer 3'],
    [0, 'before the first layer'],
  ]))
    // prettier-ignore
    assert.match((await open({ chosen: { token_state: state } })).words('tokens-caption'), new RegExp(` ${where}: `));
});

test('the arrow keys go from photo to photo, over what is folded or empty', async () => {
  const { cells, find } = await open({ chosen: { token_state: 0 } });
  const at = () => find('tokens-scroll').querySelector('[data-cell]:focus')?.dataset.cell;
  const key = (/** @type {string} */ name, more = {}) =>
    find('tokens-scroll').ownerDocument.activeElement.fire('keydown', { key: name, ...more });
  cells()[0].focus();
  assert.equal(key('ArrowDown').prevented, true);
  assert.equal(at(), 'norms 0');
  key('ArrowDown');
  key('ArrowDown');
  assert.equal(at(), 'lens 0'); // change has none before the first layer, segments are folded
  key('ArrowLeft');
  key('ArrowRight');
  key('ArrowDown');
  assert.equal(at(), 'layers 0');
  key('ArrowUp', { ctrlKey: true });
  key('Enter');
  assert.equal(at(), 'layers 0');
});

test('rows fold, and what is folded is not asked for until it is opened', async () => {
  const { find, asked, cells, click, press } = await open();
  const fold = (/** @type {string} */ measure) =>
    find('tokens-scroll').querySelector(`[data-fold=${measure}]`);
  const row = (/** @type {string} */ measure) => find('tokens-scroll').querySelector(`[data-row=${measure}]`);
  assert.ok(!asked.some((path) => path.includes('segments')));
  assert.equal(fold('segments').getAttribute('aria-expanded'), 'false');
  await click(fold('segments'));
  assert.equal(fold('segments').getAttribute('aria-expanded'), 'true');
  assert.equal(asked.filter((path) => path.includes('segments')).length, cells('segments').length);
  await click(fold('lens'));
  assert.equal(row('lens').hasAttribute('data-folded'), true);
  await press('token_measure', 'lens'); // which opens it
  assert.equal(row('lens').hasAttribute('data-folded'), false);
  await click(fold('lens'));
  assert.equal(row('lens').hasAttribute('data-folded'), true); // also the chosen one, by hand
});

test('on a shared scale all maps have the ends of all states', async () => {
  const { press, words, small, asked, chosen, element } = await open();
  await press('token_scale', 'shared');
  assert.deepEqual(chosen(), [{ token_scale: 'shared' }]);
  assert.deepEqual(['low', 'high'].map(words), ['25.2', '58']); // the mean of 6 t without itself, and 6 · 7 + 16
  assert.deepEqual(small(0), [0, 0, 0, 37, 84, 131]); // 255 · 16.8 / 32.8 = 130.6 for the last
  assert.equal(fetched(asked).length, 5);
  assert.deepEqual(['shared', 'layer'].map((one) => pressed(element.querySelector(`[data-value=${one}]`))), ['true', 'false']); // prettier-ignore
});

test('queries and keys have a map per layer, and are asked for anew', async () => {
  const { press, asked, cells, words, told } = await open();
  asked.length = 0;
  await press('token_role', 'queries');
  assert.deepEqual(told, [[{ vectors: 'queries', state: '2' }, false]]);
  assert.deepEqual(fetched(asked), statesOf([2, 0, 1, 3], 'queries'));
  const labels = cells().map((/** @type {any} */ cell) =>
    cell.querySelector('canvas').getAttribute('aria-label'),
  );
  assert.deepEqual(labels, ['layer 0', 'layer 1', 'layer 2', 'layer 3'].map((name) => `alike, ${name}`)); // prettier-ignore
  assert.match(words('tokens-caption'), /^Patch \(1, 1\), by the queries of layer 2: /);
  await press('token_role', 'tokens');
  assert.equal(fetched(asked).length, 4); // they are here
  assert.match(words('tokens-caption'), /^Patch \(1, 1\) after layer 2: /);
});

test('a failure is said, and what failed is asked for again', async () => {
  let failing = true;
  const { find, words, asked, ready, press } = await open(
    {},
    { answer: (path) => (failing && path.includes('/1?role') ? new Error('The server is full.') : null) },
  );
  assert.deepEqual([words('tokens-error'), find('tokens-error').hidden], ['The server is full. Try again', false]); // prettier-ignore
  assert.deepEqual([ready(), words('tokens-wait')], [undefined, '']);
  assert.match(words('tokens-readout'), /; the average patch 34[.]2; /); // state 3 is here
  assert.match(find('tokens-scroll').querySelector('[data-row=similarity] .vv-error').textContent, /full/);
  failing = false;
  asked.length = 0;
  await press('token_scale', 'shared');
  assert.deepEqual(fetched(asked), statesOf([1, 2, 4]));
  assert.deepEqual([find('tokens-error').hidden, ready()], [true, 'similarity']);
});

test('a question that fails says so in its own row, and the others go on', async () => {
  const answer = (/** @type {string} */ path) =>
    path.startsWith('logit_lens') ? new Error('No head.') : null;
  const part = await open({}, { answer });
  assert.equal(part.find('tokens-scroll').querySelector('[data-row=lens] .vv-error').textContent, 'No head.');
  assert.equal(part.find('tokens-error').hidden, true);
  assert.ok(part.asked.some((path) => path.startsWith('token_change')));
  assert.equal(part.ready(), 'similarity');
  await part.press('token_measure', 'lens');
  assert.deepEqual([part.words('tokens-error'), part.ready()], ['No head. Try again', undefined]);
});

test('what does not fit into a frame is drawn in the next ones', async () => {
  const part = await open({}, { slow: 20 }); // one photo in a frame
  for (let i = 0; i < 60; i++) await part.frame();
  assert.equal(part.browser.timers.size, 0); // and then it rests
  const states = [0, 1, 2, 3, 4];
  const before = states.map((state) => part.small(state).join());
  const changed = () => states.filter((state) => part.small(state).join() !== before[state]);
  await part.point(part.patch(0, 1));
  assert.match(part.words('tokens-caption'), /^Patch \(0, 1\)/);
  assert.deepEqual(changed(), [0]);
  await part.frame();
  await part.frame();
  assert.deepEqual(changed(), [0, 1, 2]);
  for (let i = 0; i < 9; i++) await part.frame();
  assert.deepEqual(changed(), states);
  assert.equal(part.browser.timers.size, 0);
});
