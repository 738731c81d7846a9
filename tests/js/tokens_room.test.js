// The Tokens tab as Gradio runs it: what it shows for a photo, and what pointer and keys do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, pressed, settle, texts } from './tokens_tab.js';

const RING = 'vv-ring 50% 50%'; // around patch (1, 1): 20 of 40 pixels down, 50 of 100 across
const HERE = 'Patch (1, 1) after layer 2: all patches carry the same direction';

/** Whose vectors were asked for: state and role. */
const fetched = (/** @type {string[]} */ asked) =>
  asked.filter((path) => path.includes('/tokens/')).map((path) => path.replace('/vit_viz/tokens/h4/', ''));

test('the tab opens with what is like the middle patch, two thirds of the way through the model', async () => {
  const { words, find, chosenCell, marks, asked, big, small, element, stage } = await open();
  const order = ['3', '0', '1', '2', '4'].map((state) => `${state}?role=tokens`);
  assert.deepEqual(fetched(asked), order); // what is looked at comes first
  assert.equal(words('room-caption'), HERE);
  // patch (1, 1) is token 6; in state 3 the products are 6 t + 9 for the tokens 2 to 7: 21, 27, 33, 39, itself and 51
  assert.equal(
    words('room-readout'),
    'Most alike is patch (1, 2), cosine 51; the average patch 34.2; the class token 9. The same direction: within 45°, a cosine of 0.71. Dark: no more alike than the average.',
  );
  assert.deepEqual([words('low'), words('high'), words('unit')], ['34.2', '51', 'cosine']);
  assert.equal(find('room-bar').hasAttribute('data-none'), false);
  assert.ok(
    find('strip').style.background.startsWith('linear-gradient(to right, rgb(0 0 0), rgb(15 15 15), rgb(30'),
  );
  assert.deepEqual(
    big(),
    [0, 0, 0, 73, 164, 255].flatMap((tone) => [tone, tone, tone, 191]),
  ); // three quarters opaque; 255 · 4.8 / 16.8 = 72.9
  assert.deepEqual(small(0), [0, 0, 0, 73, 164, 255]); // each state on a scale of its own
  assert.deepEqual(marks(), [RING]);
  assert.deepEqual(texts(find('room-heads').children.slice(1)), ['input', 'after 0', 'after 1', 'after 2', 'after 3']); // prettier-ignore
  assert.deepEqual(chosenCell(), ['similarity 3']);
  assert.equal(element.dataset.ready, 'similarity');
  assert.equal(find('room-scroll').getAttribute('aria-busy'), 'false');
  assert.equal(find('room-error').hidden, true);
  assert.equal(find('room-left').style.getPropertyValue('--vv-aspect'), '2.5');
  assert.equal(find('room-scroll').style.getPropertyValue('--vv-aspect'), '3');
  assert.equal(stage.style.getPropertyValue('--vv-aspect'), '2.5');
  assert.deepEqual([find('photo').src, /** @type {any} */ (find('photo')).alt], ['/photo/h4', 'a lion']);
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
  const dark = await open({ chosen, unlit: 'too dark' });
  assert.equal(dark.how()?.how, 'tint');
  assert.equal(dark.words('room-unlit'), 'tint, as this photo is too dark');
});

test('while the vectors arrive, what is here is shown, the large photo first', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const answer = (/** @type {string} */ path) =>
    path.includes('/tokens/') ? new Promise((done) => void waiting.push(done)) : null;
  const { words, find, element, small, frame } = await open({}, { answer });
  assert.equal(waiting.length, 1); // one state after the other
  assert.equal(words('room-readout'), '');
  assert.equal(words('room-wait'), 'Computing alike …');
  assert.equal(find('room-scroll').getAttribute('aria-busy'), 'true');
  waiting[0](null);
  await settle();
  frame();
  assert.equal(element.dataset.ready, undefined);
  assert.equal(words('room-caption'), HERE);
  assert.deepEqual([small(0), small(3)[5]], [[], 255]);
  for (let i = 1; i < 5; i++) {
    waiting[i](null);
    await settle();
  }
  assert.equal(element.dataset.ready, 'similarity');
  assert.equal(words('room-wait'), '');
});

test('a patch under the pointer is the query of all rows at the next frame, over the large photo and over a small one', async () => {
  const { words, stage, patch, marks, browser, element, cells, small, asked } = await open();
  const before = performance.getEntriesByName('vit_viz:tokens').length;
  const requests = asked.length;
  stage.fire('pointermove', patch(0, 2)); // token 4: products 4 t + 9
  stage.fire('pointermove', patch(0, 2));
  assert.equal(words('room-caption'), HERE);
  assert.equal(browser.timers.size, 1); // one frame for all
  browser.pass(16);
  assert.equal(performance.getEntriesByName('vit_viz:tokens').length, before + 1);
  assert.match(words('room-caption'), /^Patch \(0, 2\) after layer 2: /);
  assert.deepEqual(small(1), [0, 0, 0, 43, 149, 255]); // 4 t + 1; 255 · 5.6 / 9.6 = 148.75
  assert.deepEqual(marks(), ['vv-ring 25% 70%']);
  stage.fire('pointermove', patch(0, 2)); // still there
  assert.equal(browser.timers.size, 0);
  const over = cells()[1].querySelector('.vv-room-small');
  assert.ok(over);
  over.box = { left: 400, top: 300, width: 30, height: 10 };
  over.fire('pointermove', { clientX: 405, clientY: 307 });
  browser.pass(16);
  assert.match(words('room-caption'), /^Patch \(1, 0\) after layer 2: /);
  element.fire('pointermove', { clientX: 100, clientY: 100 }); // between the photos
  browser.pass(16);
  assert.equal(words('room-caption'), HERE);
  stage.fire('pointermove', patch(0, 0));
  browser.pass(16);
  assert.match(words('room-caption'), /^Patch \(0, 0\)/);
  element.fire('pointerleave');
  browser.pass(16);
  assert.equal(words('room-caption'), HERE);
  assert.equal(asked.length, requests); // nothing is asked meanwhile
});

test('the edge of the photo that the model does not receive belongs to no patch', async () => {
  const { stage, at, told, browser, words } = await open();
  stage.fire('pointermove', at(9, 40));
  stage.fire('click', at(9, 40));
  stage.fire('click', at(15, 91));
  assert.equal(browser.timers.size, 0);
  assert.deepEqual(told, []);
  assert.equal(words('room-caption'), HERE);
});

test('a click pins a patch for the whole page, and the arrow keys move it', async () => {
  const { stage, patch, told, words, marks, browser } = await open();
  stage.fire('pointermove', patch(0, 0));
  stage.fire('click', patch(0, 1));
  assert.deepEqual(told, [[{ q: '0,1' }, true]]);
  assert.match(words('room-caption'), /^Patch \(0, 1\) after layer 2: /); // the pointer is forgotten
  assert.deepEqual(marks(), ['vv-ring 25% 50%']);
  assert.equal(stage.fire('keydown', { key: 'ArrowRight' }).prevented, true);
  assert.deepEqual(told.at(-1), [{ q: '0,2' }, true]);
  stage.fire('keydown', { key: 'ArrowDown' });
  assert.deepEqual(told.at(-1), [{ q: '1,2' }, true]);
  assert.equal(stage.fire('keydown', { key: 'Enter' }).prevented, false);
  assert.equal(told.length, 3);
  browser.pass(20);
  assert.match(words('room-caption'), /^Patch \(1, 2\) after layer 2: /);
});

test('a token that is no patch is named, has no ring, and the keys go on from the middle', async () => {
  const { words, marks, told, stage } = await open({ query: 'class' });
  assert.match(words('room-caption'), /^The class token after layer 2: /);
  assert.match(
    words('room-readout'),
    /^Most alike is patch \(0, 0\), cosine 9; the average patch 9; the class token 9[.]/,
  );
  assert.deepEqual([words('low'), words('high')], ['9', '9']);
  assert.deepEqual(marks(), []);
  stage.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(told, [[{ q: '1,1' }, true]]);
});

test('a token after the patches is named too, and a number in a name is no word of its own', async () => {
  const part = await open({ query: 'detection 0' });
  assert.match(part.words('room-caption'), /^The detection 0 after layer 2: /);
  assert.match(part.words('room-readout'), /cosine 65; the average patch 45; the class token 9[.]/); // token 8
  assert.deepEqual(part.marks(), []);
  part.stage.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(part.told, [[{ q: '1,1' }, true]]);
  await part.show({ query: 'register 0' });
  assert.match(part.words('room-caption'), /^The register 0 after layer 2: /);
  await part.show({ query: '1,2' });
  assert.match(part.words('room-caption'), /^Patch \(1, 2\) after layer 2: /);
  await part.show({ query: 'nobody' });
  assert.match(part.words('room-caption'), /^Patch \(1, 1\) after layer 2: /);
});

test('without a class token, nothing is said of one', async () => {
  const answer = (/** @type {string} */ path) =>
    !path.includes('/tokens/')
      ? null
      : Uint16Array.from({ length: 14 }, (_, i) => (i % 2 ? 0 : 0x3c00)).buffer;
  const part = await open({ prefix: [] }, { answer });
  assert.match(part.words('room-readout'), /; the average patch 1[.] The same direction/);
  assert.deepEqual([part.words('low'), part.words('high')], ['1', '1']);
  assert.deepEqual(part.marks(), [RING]);
});

test('a token that is no patch is pinned by its button', async () => {
  const { find, told, words } = await open();
  const chips = find('room-named').children;
  assert.deepEqual(texts(chips), ['class token', 'register 0']);
  chips[1].click();
  assert.deepEqual(told, [[{ q: 'register 0' }, true]]);
  assert.deepEqual(chips.map(pressed), ['false', 'true']);
  assert.match(words('room-caption'), /^The register 0 after layer 2: /);
});

test('a model without queries and keys shows its tokens, and offers nothing else', async () => {
  const part = await open({ head_dim: 0, chosen: { token_role: 'keys' } });
  assert.match(part.asked[0], /role=tokens$/);
  assert.equal(part.find('roles').hidden, true);
  assert.equal((await open()).find('roles').hidden, false);
});

test('Back and what is chosen elsewhere are followed; while another tab is open nothing is asked', async () => {
  const { press, show, store, asked, chosenCell, words } = await open();
  await press('token_role', 'keys');
  assert.match(words('room-caption'), /by the keys of layer 2/);
  await show({ query: '1,0', chosen: { token_state: 4 } });
  assert.deepEqual(chosenCell(), ['similarity 4']);
  assert.match(words('room-caption'), /^Patch \(1, 0\) after layer 3: /);
  const before = asked.length;
  store.set({ tab: 'look', tokens: 'lens', vectors: 'queries', q: '0,0' });
  await settle();
  assert.equal(asked.length, before);
  store.set({ tab: 'tokens' });
  await settle();
  assert.deepEqual(chosenCell(), ['lens 4']);
  assert.match(words('room-caption'), /^Patch \(0, 0\) after layer 3: /);
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
  assert.match(words('room-caption'), /^Patch \(1, 1\), by the keys of layer 2: /);
});

test('vectors of another number of tokens are refused', async () => {
  const { words } = await open(
    {},
    { answer: (path) => (path.includes('/tokens/') ? new ArrayBuffer(34) : null) },
  );
  assert.equal(words('room-error'), 'These vectors do not fit the tokens of the picture. Try again');
});

test('another photo begins anew: its vectors, its grid, and nothing of the old one arrives', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const { show, asked, signals, words, cells, find, stage, patch, browser } = await open(
    {},
    { answer: (path) => (path.includes('/h4/') ? new Promise((done) => void waiting.push(done)) : null) },
  );
  stage.fire('pointermove', patch(0, 0));
  browser.pass(16);
  await show({
    trace: 'h5',
    photo: '/photo/h5',
    photo_size: [12, 24],
    crop: { region: [0, 0, 40, 100], original: [40, 100] },
  });
  assert.equal(signals[0].aborted, true);
  assert.equal(signals.at(-1)?.aborted, false);
  waiting[0](new Error('gone'));
  await settle();
  assert.equal(find('room-error').hidden, true);
  assert.deepEqual(
    asked.filter((path) => path.includes('/tokens/')).map((path) => path.split('/')[3]),
    ['h4', 'h5', 'h5', 'h5', 'h5', 'h5'],
  );
  assert.equal(words('room-caption'), HERE); // nothing is under the pointer
  assert.equal(find('photo').src, '/photo/h5');
  assert.equal(find('room-left').style.getPropertyValue('--vv-aspect'), '2');
  assert.equal(find('room-scroll').style.getPropertyValue('--vv-aspect'), '2.5');
  assert.equal(cells().length, 5);
});

test('without a photo there are no controls, and a note says why', async () => {
  const { find, words, asked, stage, told, patch, cells } = await open({ note: 'No photo yet.' });
  assert.equal(cells().length, 0);
  assert.equal(find('room-main').hidden, true);
  assert.deepEqual([words('room-error'), find('room-error').hidden], ['No photo yet. Try again', false]);
  assert.deepEqual(asked, []);
  stage.fire('pointermove', patch(0, 0));
  stage.fire('click', patch(0, 0));
  stage.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(told, []);
  const shown = await open();
  assert.equal(shown.find('room-main').hidden, false);
});

test('the class of the lens is chosen as elsewhere', async () => {
  const lion = { index: 7, name: 'lion', probability: 0.05 };
  const answer = (/** @type {string} */ path) => {
    const [name, asked] = path.split('?');
    if (name !== 'target') return null;
    if (new URLSearchParams(asked).get('find')) return { hits: [lion] };
    return { classes: [{ index: 4, name: 'nail', probability: 0.9 }, lion], chosen: 4, name: 'nail' };
  };
  const { find, told, browser, asked } = await open({ chosen: { token_measure: 'lens' } }, { answer });
  assert.deepEqual(texts(find('why').children), ['nail90%', 'lion5.0%']);
  assert.deepEqual(find('why').children.map(pressed), ['false', 'false']); // each patch has its own
  find('why').children[1].click();
  assert.deepEqual(told, [[{ target: '7' }, false]]);
  await settle();
  assert.ok(asked.includes('logit_lens?target=7'));
  find('search').value = 'li';
  find('search').fire('input');
  assert.equal(find('hits').hidden, true); // nothing was asked yet
  browser.pass(150);
  await settle();
  assert.equal(asked.at(-1), 'target?view=&find=li');
  find('hits').querySelector('button')?.click();
  assert.equal(told.length, 1); // it is chosen already
});

test('what is saved is what is shown: the tab, the patch that asks, the layer', async () => {
  for (const [changes, q] of /** @type {[any, string][]} */ ([
    [{}, '1,1'],
    [{ query: '0,2' }, '0,2'],
  ])) {
    // prettier-ignore
    const { find, element } = await open(changes);
    /** @type {string[]} */
    const asked = [];
    element.addEventListener('vv-figure', (/** @type {any} */ event) => asked.push(event.detail.address));
    find('room-save').click();
    const link = new URL(asked[0], 'http://page');
    assert.equal(link.pathname, '/vit_viz/figure/h4');
    const said = Object.fromEntries(link.searchParams);
    assert.deepEqual(
      [said.kind, said.tab, said.tokens, said.q, said.layer],
      ['shown', 'tokens', 'similarity', q, '3'],
    );
  }
});
