// The Tokens tab as Gradio runs it: what it shows for a photo, and what pointer and keys do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount as mountRoom } from '../../vit_viz/ui/tokens/room.js';
import { component, mount, OPTIONS } from './browser.js';
import { open, pressed, settle, texts } from './tokens_tab.js';

const RING = 'vv-ring 50% 50%'; // around patch (1, 1): 20 of 40 pixels down, 50 of 100 across
const NAMES = ['input', 'after layer 0', 'after layer 1', 'after layer 2', 'after layer 3'];

/** Whose vectors were asked for: state and role. */
const fetched = (/** @type {string[]} */ asked) =>
  asked.map((path) => path.replace('/vit_viz/tokens/h4/', ''));

test('the tab opens with the cosines of the middle patch, two thirds of the way through the model', async () => {
  const { words, find, tiles, marks, asked, big, small, element, stage } = await open();
  const order = ['3', '0', '1', '2', '4'].map((state) => `${state}?role=tokens`);
  assert.deepEqual(fetched(asked), order); // what is looked at comes first
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
  // patch (1, 1) is token 6; in state 3 the products are 6 t + 9 for the tokens 2 to 7: from 21 to 51, by sixes
  assert.equal(words('room-readout'), 'cosine with all patches: mean 36; class token 9');
  assert.deepEqual([words('low'), words('high'), words('unit')], ['21', '51', 'cosine']);
  assert.equal(find('room-bar').hidden, false);
  assert.ok(
    find('strip').style.background.startsWith('linear-gradient(to right, rgb(0 0 0), rgb(15 15 15), rgb(30'),
  );
  assert.deepEqual(
    big(),
    [0, 51, 102, 153, 204, 255].flatMap((tone) => [tone, tone, tone, 191]),
  ); // three quarters opaque
  assert.deepEqual(small(0), [0, 51, 102, 153, 204, 255]); // each state on a scale of its own
  assert.deepEqual(marks(), [RING]);
  assert.deepEqual(
    tiles().map((tile) => tile.children[1].textContent),
    NAMES,
  );
  assert.deepEqual(tiles().map(pressed), ['false', 'false', 'false', 'true', 'false']);
  assert.equal(element.dataset.ready, 'similarity');
  assert.equal(find('room-wait').hidden, true);
  assert.equal(find('room-error').hidden, true);
  assert.equal(find('room-left').style['--vv-aspect'], '2.5');
  assert.equal(find('room-strip').style['--vv-aspect'], '3');
  assert.equal(stage.style['--vv-aspect'], '2.5');
  assert.deepEqual([find('photo').src, /** @type {any} */ (find('photo')).alt], ['/photo/h4', 'a lion']);
  const { top, left, width, height } = find('box').style;
  assert.deepEqual([top, left, width, height], ['25%', '30%', '60%', '50%']);
});

test('while the vectors arrive, it says how many states are here', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const { words, find, element, small } = await open(
    {},
    { answer: () => new Promise((done) => void waiting.push(done)) },
  );
  assert.equal(waiting.length, 1); // one state after the other
  assert.equal(words('room-readout'), '');
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
  waiting[0](null);
  await settle();
  assert.equal(words('room-wait'), '1 of 5 are here …');
  assert.equal(element.dataset.ready, undefined);
  assert.equal(words('room-readout'), 'cosine with all patches: mean 36; class token 9');
  assert.deepEqual([small(0), small(3)[5]], [[], 255]);
  for (let i = 1; i < 5; i++) {
    waiting[i](null);
    await settle();
    assert.equal(find('room-wait').hidden, i === 4);
  }
  assert.equal(element.dataset.ready, 'similarity');
});

test('a patch under the pointer is compared at the next frame, over the photo and over a small map', async () => {
  const { words, stage, patch, marks, browser, element, tiles } = await open();
  const before = performance.getEntriesByName('vit_viz:tokens').length;
  stage.fire('pointermove', patch(0, 2)); // token 4: products 4 t + 9
  stage.fire('pointermove', patch(0, 2));
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
  assert.equal(browser.timers.size, 1); // one frame for all
  browser.pass(16);
  assert.equal(performance.getEntriesByName('vit_viz:tokens').length, before + 1);
  assert.equal(words('room-caption'), 'What resembles the patch (0, 2), after layer 2');
  assert.equal(words('room-readout'), 'cosine with all patches: mean 27; class token 9');
  assert.deepEqual(marks(), ['vv-ring 25% 70%']);
  stage.fire('pointermove', patch(0, 2)); // still there
  assert.equal(browser.timers.size, 0);
  const small = tiles()[1].querySelector('.vv-room-small');
  assert.ok(small);
  small.box = { left: 400, top: 300, width: 30, height: 10 };
  small.fire('pointermove', { clientX: 405, clientY: 307 });
  browser.pass(16);
  assert.equal(words('room-caption'), 'What resembles the patch (1, 0), after layer 2');
  element.fire('pointermove', { clientX: 100, clientY: 100 }); // between the maps
  browser.pass(16);
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
  stage.fire('pointermove', patch(0, 0));
  browser.pass(16);
  assert.equal(words('room-caption'), 'What resembles the patch (0, 0), after layer 2');
  element.fire('pointerleave');
  browser.pass(16);
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
});

test('the edge of the photo that the model does not receive belongs to no patch', async () => {
  const { stage, at, told, browser, words } = await open();
  stage.fire('pointermove', at(9, 40));
  stage.fire('click', at(9, 40));
  stage.fire('click', at(15, 91));
  assert.equal(browser.timers.size, 0);
  assert.deepEqual(told, []);
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
});

test('a click pins a patch for the whole page, and the arrow keys move it', async () => {
  const { stage, patch, told, words, marks, browser } = await open();
  stage.fire('pointermove', patch(0, 0));
  stage.fire('click', patch(0, 1));
  assert.deepEqual(told, [['pin', { query: '0,1' }]]);
  assert.equal(words('room-caption'), 'What resembles the patch (0, 1), after layer 2'); // the pointer is forgotten
  assert.deepEqual(marks(), ['vv-ring 25% 50%']);
  assert.equal(stage.fire('keydown', { key: 'ArrowRight' }).prevented, true);
  assert.deepEqual(told.at(-1), ['pin', { query: '0,2' }]);
  stage.fire('keydown', { key: 'ArrowDown' });
  assert.deepEqual(told.at(-1), ['pin', { query: '1,2' }]);
  assert.equal(stage.fire('keydown', { key: 'Enter' }).prevented, false);
  assert.equal(told.length, 3);
  browser.pass(20);
  assert.equal(words('room-caption'), 'What resembles the patch (1, 2), after layer 2');
});

test('a token that is no patch is named, has no ring, and the keys go on from the middle', async () => {
  const { words, marks, told, stage } = await open({ query: 'class' });
  assert.equal(words('room-caption'), 'What resembles the class token, after layer 2');
  assert.equal(words('room-readout'), 'cosine with all patches: mean 9; class token 9');
  assert.deepEqual([words('low'), words('high')], ['9', '9']);
  assert.deepEqual(marks(), []);
  stage.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(told, [['pin', { query: '1,1' }]]);
});

test('a token after the patches is named too, and a number in a name is no word of its own', async () => {
  const part = await open({ query: 'detection 0' });
  assert.equal(part.words('room-caption'), 'What resembles the detection 0, after layer 2');
  assert.equal(part.words('room-readout'), 'cosine with all patches: mean 45; class token 9'); // token 8
  assert.deepEqual(part.marks(), []);
  part.stage.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(part.told, [['pin', { query: '1,1' }]]);
  await part.show({ query: 'register 0' });
  assert.equal(part.words('room-caption'), 'What resembles the register 0, after layer 2');
  await part.show({ query: '1,2' });
  assert.equal(part.words('room-caption'), 'What resembles the patch (1, 2), after layer 2');
  await part.show({ query: 'nobody' });
  assert.equal(part.words('room-caption'), 'What resembles the patch (1, 1), after layer 2');
});

test('without a class token, nothing is said of one', async () => {
  const answer = () => Uint16Array.from({ length: 14 }, (_, i) => (i % 2 ? 0 : 0x3c00)).buffer;
  const part = await open({ prefix: [] }, { answer });
  assert.equal(part.words('room-readout'), 'cosine with all patches: mean 1');
  assert.deepEqual([part.words('low'), part.words('high')], ['1', '1']);
  assert.deepEqual(part.marks(), [RING]);
});

test('a small map that is chosen shows its state over the photo, at once and without a question', async () => {
  const { tiles, words, told, asked, element, small } = await open();
  const [, first] = tiles();
  first.children[0].fire('click');
  await settle();
  assert.deepEqual(told, [['choose', { token_state: 1 }]]);
  assert.deepEqual(tiles().map(pressed), ['false', 'true', 'false', 'false', 'false']);
  assert.equal(tiles()[1], first); // so that the focus stays
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 0');
  assert.equal(words('room-readout'), 'cosine with all patches: mean 28; class token 1'); // 6 t + 1
  assert.equal(asked.length, 5);
  assert.equal(element.dataset.ready, 'similarity');
  assert.deepEqual(small(4), [0, 51, 102, 153, 204, 255]);
});

test('a click between the small maps chooses none', async () => {
  const { find, told } = await open();
  find('room-strip').fire('click');
  assert.deepEqual(told, []);
});

test('a state that the model does not have is two thirds of the way through it', async () => {
  assert.match((await open({ chosen: { token_state: 5 } })).words('room-caption'), /, after layer 2$/);
  assert.match((await open({ chosen: { token_state: 4 } })).words('room-caption'), /, after layer 3$/);
  assert.match((await open({ chosen: { token_state: 0 } })).words('room-caption'), /, input$/);
});

test('on a shared scale all maps have the ends of all states', async () => {
  const { press, words, small, asked, chosen, element } = await open();
  await press('token_scale', 'shared');
  assert.deepEqual(chosen(), [{ token_scale: 'shared' }]);
  assert.deepEqual([words('low'), words('high')], ['12', '58']); // 6 · 2 + 0 and 6 · 7 + 16
  assert.deepEqual(small(0), [0, 33, 67, 100, 133, 166]); // 255 · 30 / 46 = 166.3 for the last
  assert.equal(asked.length, 5);
  assert.equal(pressed(element.querySelector('[data-value=shared]')), 'true');
  assert.equal(pressed(element.querySelector('[data-value=layer]')), 'false');
});

test('queries and keys have a map per layer, and are asked for anew', async () => {
  const { press, asked, tiles, words, told } = await open();
  asked.length = 0;
  await press('token_role', 'queries');
  assert.deepEqual(told, [['choose', { token_role: 'queries' }]]);
  assert.deepEqual(
    fetched(asked),
    [2, 0, 1, 3].map((state) => `${state}?role=queries`),
  );
  assert.deepEqual(
    tiles().map((tile) => tile.children[1].textContent),
    ['layer 0', 'layer 1', 'layer 2', 'layer 3'],
  );
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), layer 2');
  await press('token_role', 'tokens');
  assert.equal(asked.length, 4); // they are here
  assert.equal(words('room-readout'), 'cosine with all patches: mean 36; class token 9');
});

test('a model without queries and keys shows its tokens, and offers nothing else', async () => {
  const part = await open({ roles: ['tokens'], chosen: { token_role: 'keys' } });
  assert.match(part.asked[0], /role=tokens$/);
  assert.equal(part.find('roles').hidden, true);
  assert.equal((await open()).find('roles').hidden, false);
});

test('an older answer does not take back what was chosen here', async () => {
  const { press, show, words } = await open();
  await press('token_scale', 'shared');
  await press('token_role', 'keys');
  await show({ revision: 2, chosen: { token_scale: 'shared' } }); // the server has heard of the first choice alone
  assert.match(words('room-caption'), /, layer 2$/);
  await show({ revision: 3, chosen: { token_scale: 'shared' } });
  assert.match(words('room-caption'), /, after layer 2$/);
});

test('the answer to a pinned patch does not take back what was chosen after it', async () => {
  const { show, tiles, stage, patch } = await open();
  stage.fire('click', patch(1, 0));
  tiles()[1].fire('click');
  await settle();
  await show({ revision: 2, query: '1,0' }); // of the pin
  assert.deepEqual(tiles().map(pressed), ['false', 'true', 'false', 'false', 'false']);
  await show({ revision: 3, query: '1,0', chosen: { token_state: 4 } }); // of a choice elsewhere
  assert.deepEqual(tiles().map(pressed), ['false', 'false', 'false', 'false', 'true']);
});

test('a failure is said, and what failed is asked for again', async () => {
  let failing = true;
  const { find, words, show, asked, element, press } = await open(
    {},
    { answer: (path) => (failing && path.includes('/1?') ? new Error('The server is full.') : null) },
  );
  assert.deepEqual([words('room-error'), find('room-error').hidden], ['The server is full.', false]);
  assert.equal(element.dataset.ready, undefined);
  assert.equal(words('room-wait'), '');
  assert.equal(words('room-readout'), 'cosine with all patches: mean 36; class token 9'); // state 3 is here
  failing = false;
  asked.length = 0;
  await press('token_scale', 'shared');
  assert.deepEqual(
    fetched(asked),
    [1, 2, 4].map((state) => `${state}?role=tokens`),
  );
  assert.equal(find('room-error').hidden, true);
  assert.equal(element.dataset.ready, 'similarity');
  await show({ revision: 9, note: 'This photo is small.' });
  assert.equal(words('room-error'), 'This photo is small.');
});

test('so many tokens that the vectors cannot travel are refused with a way out', async () => {
  const { words, asked } = await open({ travels: false });
  assert.equal(
    words('room-error'),
    'There are too many tokens here to compare them under the pointer; please choose a smaller size.',
  );
  assert.deepEqual(asked, []);
  const { words: said } = await open({ travels: false, grid: [3, 4] });
  assert.match(said('room-caption'), /^What resembles the patch \(1, 2\), /); // the middle, all the same
});

test('vectors of another number of tokens are refused', async () => {
  const { words } = await open({}, { answer: () => new ArrayBuffer(34) });
  assert.equal(words('room-error'), 'These vectors do not fit the tokens of the picture.');
});

test('another photo begins anew: its vectors, its grid, and nothing of the old one arrives', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const { show, asked, signals, words, tiles, find, stage, patch, browser } = await open(
    {},
    { answer: (path) => (path.includes('/h4/') ? new Promise((done) => void waiting.push(done)) : null) },
  );
  stage.fire('pointermove', patch(0, 0));
  browser.pass(16);
  await show({
    revision: 2,
    handle: 'h5',
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
    asked.map((path) => path.split('/')[3]),
    ['h4', 'h5', 'h5', 'h5', 'h5', 'h5'],
  );
  assert.equal(words('room-caption'), 'What resembles the patch (1, 1), after layer 2'); // nothing is under the pointer
  assert.equal(find('photo').src, '/photo/h5');
  assert.equal(find('room-left').style['--vv-aspect'], '2');
  assert.equal(find('room-strip').style['--vv-aspect'], '2.5');
  assert.equal(tiles().length, 5);
});

test('without a photo there are no controls, and a note says why', async () => {
  const { find, words, asked, stage, told, patch } = await open({ handle: '', note: 'No photo yet.' });
  assert.deepEqual([find('room-main').hidden, find('room-head').hidden], [true, true]);
  assert.deepEqual([words('room-error'), find('room-error').hidden], ['No photo yet.', false]);
  assert.deepEqual(asked, []);
  stage.fire('pointermove', patch(0, 0));
  stage.fire('click', patch(0, 0));
  stage.fire('keydown', { key: 'ArrowUp' });
  assert.deepEqual(told, []);
  const shown = await open();
  assert.deepEqual([shown.find('room-main').hidden, shown.find('room-head').hidden], [false, false]);
});

test('before the first value nothing is drawn', () => {
  const black = Buffer.alloc(768).toString('base64');
  const room = component(mountRoom, 'ui/tokens/room.html');
  const { find, told } = mount(room, null, {
    props: { tables: { viridis: black }, options: OPTIONS.tokens, job: null },
  });
  assert.deepEqual(told, []);
  assert.equal(find('room-strip').childElementCount, 0);
});

test('the class of the lens is chosen as elsewhere', async () => {
  const classes = {
    classes: [
      { index: 4, name: 'nail', probability: 0.9 },
      { index: 7, name: 'lion', probability: 0.05 },
    ],
    chosen: 4,
    single: true,
  };
  const { find, told, set } = await open({ classes });
  assert.deepEqual(texts(find('why').children), ['nail90%', 'lion5.0%']);
  find('why').children[1].click();
  assert.deepEqual(told, [['why', { index: 7 }]]);
  find('search').value = 'li';
  find('search').fire('input');
  set({ seq: 1, hits: [] }, 'matches');
  assert.equal(find('hits').hidden, true); // nothing was asked yet
});
