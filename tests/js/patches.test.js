// The Patches tab against a source that a test answers for: no server, no browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { html, render } from '../../vit_viz/web/kit/preact.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Patches, seenWords } from '../../vit_viz/web/patches/room.js';
import { page as dom } from './document.js';
import { makeTrace } from './oracle.js';
import { savedBy, withGlobals, ending } from './browser.js';
import { fields, placeAt, settle } from './room.js';

// a photo of 40 x 200 pixels, of which the model has 4 x 6 patches from (0, 25) on, and pads 10 rows below
const photo = /** @type {any} */ (
  makeTrace({
    crop: { original: [40, 200], input: [32, 48], region: [0, 25, 50, 150] },
    photo: '/vit_viz/photo/p',
    trace: 'handle',
    about: { model: 'mini', image: { sample: 'lion' } },
    note: '',
  })
);
const ANSWERS = /** @type {Record<string, any>} */ ({
  open: photo,
  patches: {
    facts: {
      note: 'photo 40 x 200 px to input 32 x 48 px, a quarter left out',
      shapes: { image: [3, 32, 48], patch: [3, 8, 8], patches: [24, 192], tokens: [26, 40] },
    },
  },
  sequence: {
    arrays: { values: { shape: [32, 48], data: Uint8Array.from({ length: 32 * 48 }, (_, i) => i % 251) } },
  },
});

/** The room, whose box for the sequence is as wide as it is told. */
async function open(search = '?tab=patches&image=lion', answers = ANSWERS) {
  /** @type {[string, any][]} */
  const questions = [];
  let changed = () => {};
  class ResizeObserver {
    constructor(/** @type {any} */ call) {
      changed = call;
    }

    observe() {}

    disconnect() {}
  }
  const globals = { document: dom.document, window: dom, ResizeObserver };
  withGlobals(globals);
  const place = placeAt(search);
  const store = new Store(fields, place);
  const ask = asker({
    keeps: (name) => name !== 'open',
    async answer(name, body) {
      questions.push([name, body]);
      if (answers[name] instanceof Error) throw answers[name];
      return answers[name];
    },
  });
  const root = dom.document.createElement('div');
  dom.document.body.append(root);
  render(html`<${Patches} page=${{ store, ask }} />`, root);
  ending.after(() => render(null, root));
  await settle();
  const find = (/** @type {string} */ selector) => root.querySelector(selector);
  const all = (/** @type {string} */ selector) => [...root.querySelectorAll(selector)];
  const grid = find('.vv-patch-grid');
  if (grid) grid.box = { left: 100, top: 50, width: 200, height: 50 }; // the photo and its padding, one to one
  const resize = (/** @type {number} */ width) => {
    find('.vv-sequence-box').box.width = width;
    changed();
  };
  return { root, store, place, questions, find, all, grid, resize };
}

/** Where a rectangle of a drawing stands. @param {any} rect */
const placeOf = (rect) =>
  ['x', 'y', 'width', 'height'].map((name) => Math.round(100 * Number(rect.getAttribute(name))) / 100);

test('the room says every size, and draws the grid where the model cut', async () => {
  const { questions, find, all } = await open();
  assert.deepEqual(questions, [
    ['open', { view: '?tab=patches&image=lion' }],
    ['patches', photo.about],
    ['sequence', photo.about],
  ]);
  const [grid, sequence] = all('.vv-caption').map((node) => node.textContent);
  assert.equal(
    grid,
    'mini · 4 rows x 6 columns of patches · photo 40 x 200 px to input 32 x 48 px, a quarter left out',
  );
  assert.match(sequence, /^mini · the sequence: class, register 0, then 24 patches, row by row/);
  assert.deepEqual(
    all('code').map((node) => node.textContent),
    ['[3, 32, 48]', '[24, 192]', '[26, 40]'],
  );
  assert.equal(find('.vv-patch-grid svg').getAttribute('viewBox'), '0 0 200 50');
  const lines = find('.vv-patch-line').getAttribute('d');
  assert.equal(lines.match(/h150/g).length, 5);
  assert.equal(lines.match(/v50/g).length, 7);
  assert.match(lines, /^M25 0h150M25 12.5h150/);
});

test('a sentence says what becomes of the photo, and how much of it is left out', async () => {
  const { find } = await open();
  // 150 x 50 pixels of 200 x 40, padded, become 48 x 32: twice as much down as across
  assert.equal(
    find('h2').textContent,
    'Stretched to the shape that the model takes, the photo becomes 24 patches; 25% of it is left out',
  );
  /** @type {(original: any, region: any, input: any) => string} */
  const said = (original, region, input) =>
    seenWords({ ...photo.crop, original, region, input }, 24).replace(', the photo becomes 24 patches', '');
  assert.equal(
    said([64, 96], [0, 0, 64, 96], [32, 48]),
    'Shrunk to 50% of its width; nothing of it is left out',
  );
  assert.equal(
    said([16, 40], [0, 8, 16, 24], [32, 48]),
    'Enlarged to 200% of its width; 40% of it is left out',
  );
  assert.equal(said([40, 48], [-4, 0, 48, 48], [48, 48]), 'At its own size; nothing of it is left out');
});

test('a click, or the arrow keys, choose the query; outside of the patches nothing is chosen', async () => {
  const { grid, store, place, all } = await open();
  const at = (/** @type {number} */ x, /** @type {number} */ y) => ({ clientX: 100 + x, clientY: 50 + y });
  grid.fire('click', at(10, 5));
  assert.deepEqual(place.written, []);
  grid.fire('click', at(26, 13));
  assert.deepEqual(place.written, [[{ q: '1,0' }, true]]);
  await settle();
  const [, right] = all('.vv-pinned .vv-patch-ring');
  assert.deepEqual(placeOf(all('.vv-pinned .vv-patch-ring')[0]), [25, 12.5, 25, 12.5]);
  assert.ok(right); // the same patch in the sequence
  const press = (/** @type {string} */ key, more = {}) => grid.fire('keydown', { key, ...more });
  assert.ok(press('ArrowRight').prevented);
  press('ArrowDown', { ctrlKey: true });
  await settle();
  assert.deepEqual(placeOf(all('.vv-pointed .vv-patch-ring')[0]), [50, 12.5, 25, 12.5]);
  assert.equal(store.view.q.value, '1,0'); // pointed at alone
  press('Enter');
  assert.equal(store.view.q.value, '1,1');
  for (let i = 0; i < 9; i++) press('ArrowDown');
  press('Enter');
  await settle();
  assert.equal(store.view.q.value, '3,1');
  press('Escape');
  press('Escape');
  assert.equal(store.view.q.value, '');
  for (const query of ['class', '0,0;1,1', '']) {
    store.set({ q: query });
    await settle();
    for (const key of ['ArrowDown', 'Enter', 'Escape']) press(key);
    assert.equal(store.view.q.value, '2,3'); // the centre
  }
});

test('what is pointed at in the photo is marked in the sequence, and the other way round', async () => {
  const { grid, find, all, resize } = await open();
  resize(7 * 31 - 3); // seven patches in a line
  await settle();
  assert.deepEqual(
    all('.vv-sequence-labels li').map((node) => node.textContent),
    ['0 – 6', '7 – 13', '14 – 20', '21 – 23'],
  );
  grid.fire('pointermove', { clientX: 100 + 174, clientY: 50 + 13 }); // row 1, column 5: patch 11
  await settle();
  const marks = () => all('.vv-pointed .vv-patch-ring').map(placeOf);
  assert.match(
    find('.vv-readout').textContent,
    /^Patch \(1, 5\) is number 11 of the sequence[.] Patches are named by /,
  );
  assert.deepEqual(marks(), [
    [150, 12.5, 25, 12.5],
    [4 * 31, 31, 28, 28],
  ]);
  grid.fire('pointerleave');
  await settle();
  assert.deepEqual(marks(), []);
  const sheet = find('.vv-sequence-sheet');
  sheet.box = { left: 0, top: 0, width: 214, height: 124 };
  sheet.fire('pointermove', { clientX: 5, clientY: 35 });
  await settle();
  assert.deepEqual(marks()[0], [50, 12.5, 25, 12.5]); // patch 7: row 1, column 1
  sheet.fire('pointermove', { clientX: 200, clientY: 120 }); // behind the last one
  await settle();
  assert.deepEqual(marks(), []);
});

test('each patch of the sequence is cut from the pixels that the model received', async () => {
  const { find, resize } = await open();
  resize(10 * 31);
  await settle();
  const drawn = find('.vv-sequence-sheet canvas').canvas.calls.filter(
    (/** @type {any} */ c) => c[0] === 'drawImage',
  );
  const last = drawn.slice(-24);
  assert.deepEqual(last[0].slice(2), [0, 0, 8, 8, 0, 0, 28, 28]);
  assert.deepEqual(last[23].slice(2), [40, 24, 8, 8, 93, 62, 28, 28]); // the fourth in the third line of ten
  const { data } = last[0][1].canvas.data;
  assert.deepEqual([...data.slice(0, 8)], [0, 0, 0, 255, 1, 1, 1, 255]);
});

test('tokens that are no patches stand before and behind them, and can be chosen', async () => {
  const many = { ...photo, suffix: Array.from({ length: 20 }, (_, i) => `detection ${i}`) };
  const { all, store } = await open('?tab=patches&q=register 0', { ...ANSWERS, open: many });
  const chips = () =>
    all('.vv-chip').map((node) => [node.textContent.trim(), node.getAttribute('aria-pressed')]);
  assert.deepEqual(chips(), [
    ['class', 'false'],
    ['register 0', 'true'],
    ['detection 0', 'false'],
    ['detection 1', 'false'],
    ['detection 19', 'false'],
  ]);
  assert.match(
    all('.vv-caption')[1].textContent,
    /: class, register 0, then 24 patches, row by row, then detection 0 to detection 19$/,
  );
  assert.match(all('.vv-step')[2].textContent, /2 prefix [+] 24 patches [+] 20 suffix$/);
  all('.vv-chip')[0].fire('click');
  assert.equal(store.view.q.value, 'class');
});

test('a sequence without prefix tokens begins with its patches', async () => {
  const bare = { ...photo, prefix: [], suffix: ['class'], default_query: 'class' };
  const { all } = await open(undefined, { ...ANSWERS, open: bare });
  assert.match(all('.vv-caption')[1].textContent, /: 24 patches, row by row, then class$/);
});

test('numbers are drawn where they are wanted, and the figure that is saved has them', async () => {
  const { find, all, place, root } = await open();
  assert.equal(all('text').length, 0);
  assert.deepEqual(savedBy(root, find('.vv-save')), ['patches', { ...photo.about, numbers: false }]);
  const box = find('input[type=checkbox]');
  box.checked = true;
  box.fire('change');
  await settle();
  assert.deepEqual(place.written, [[{ numbers: '1' }, false]]);
  assert.deepEqual(
    all('text').map((node) => node.textContent),
    Array.from({ length: 24 }, (_, i) => String(i)),
  );
  assert.deepEqual(savedBy(root, find('.vv-save')), ['patches', { ...photo.about, numbers: true }]);
  assert.deepEqual(savedBy(root, all('.vv-save')[1]), ['sequence', photo.about]);
});

test('what is shown is of one photo, also while another one is on its way', async () => {
  const wide = {
    ...photo,
    grid: [2, 3],
    trace: 'other',
    about: { ...photo.about, image: { sample: 'tower' } },
  };
  /** @type {(value: any) => void} */
  let arrive = () => {};
  const late = new Promise((done) => (arrive = done));
  const answers = { ...ANSWERS };
  const { place, find, all } = await open(undefined, answers);
  Object.assign(answers, { open: wide, sequence: late });
  place.go('?tab=patches&image=tower');
  await settle();
  assert.equal(find('.vv-columns').getAttribute('aria-busy'), 'true');
  assert.equal(find('.vv-patch-line').getAttribute('d').match(/h150/g).length, 5);
  arrive(ANSWERS.sequence);
  await settle();
  assert.equal(find('.vv-columns').getAttribute('aria-busy'), 'false');
  assert.equal(find('.vv-patch-line').getAttribute('d').match(/h150/g).length, 3);
  assert.equal(all('.vv-sequence-labels li').at(-1).textContent, '0 – 5');
});

test('a photo that is padded is as wide and as high as what the model sees of it', async () => {
  const crop = { original: [40, 200], input: [32, 48], region: [-80, -10, 200, 220] };
  const { find } = await open(undefined, { ...ANSWERS, open: { ...photo, crop } });
  assert.equal(find('.vv-columns').style.getPropertyValue('--vv-aspect'), '1.1');
});

test('nothing is asked while another tab is open, and a refusal is said in place of the pictures', async () => {
  const refused = { ...ANSWERS, sequence: new Error('This picture is no longer here.') };
  const { questions, place, find, all } = await open('?tab=look', refused);
  assert.deepEqual([questions.map(([name]) => name), all('figure')], [['open'], []]);
  place.go('?tab=patches');
  await settle();
  assert.equal(find('[role=alert]').textContent, 'This picture is no longer here.');
  assert.equal(all('figure').length, 0);
});
