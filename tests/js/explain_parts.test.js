// The Explain tab over the store, against a source that a test answers for: which class is explained, and what the answer is made of,
// with the maps of heads, their sums and scale, what switching heads off promised and did.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { headsOff, switched, withHeadsOff } from '../../vit_viz/web/explain/edits.js';
import { decimalsOf, effectOf, madeOf } from '../../vit_viz/web/explain/made.js';
import { Terms, nameOf } from '../../vit_viz/web/explain/parts_table.js';
import { explain } from '../../vit_viz/web/explain/room.js';
import { endOf, signed, signedTable } from '../../vit_viz/web/explain/signed.js';
import { Browser, parse, read } from './browser.js';
import { makeTrace } from './oracle.js';
import { placeAt } from './store.test.js';
import { settle } from './visit.js';

const { fields } = JSON.parse(read('./links.json'));
const HTML = read('../../vit_viz/web/explain/room.html');
const [ROWS, COLS, LAYERS, HEADS] = [2, 3, 2, 4];
const PREFIX = ['class', 'register 0', 'register 1'];
const PATCHES = ROWS * COLS;

/**
 * An answer: each head took layer + head / 10 from each of 6 patches, but head 3 of layer 1, which speaks against the fifth; from the
 * class token 0.5, from each register 0.25. What is off took nothing.
 * @param {string[]} off
 */
function decomposed(off = []) {
  const tokens = PREFIX.length + PATCHES;
  const terms = new Float32Array(LAYERS * HEADS * tokens);
  for (let place = 0; place < LAYERS * HEADS; place++) {
    const [layer, head] = [Math.floor(place / HEADS), place % HEADS];
    if (off.includes(`${layer}.${head}`)) continue;
    terms.set([0.5, 0.25, 0.25], place * tokens);
    terms.fill(layer + head / 10, place * tokens + 3, (place + 1) * tokens);
    if (place === 7) terms[place * tokens + 3 + 4] = -5;
  }
  const heads = Float32Array.from({ length: LAYERS * HEADS }, (_, place) =>
    terms.subarray(place * tokens, (place + 1) * tokens).reduce((sum, one) => sum + one, 0),
  );
  const total = heads.reduce((sum, one) => sum + one, 2);
  return {
    arrays: {
      terms: { shape: [LAYERS, HEADS, tokens], data: terms },
      heads: { shape: [LAYERS, HEADS], data: heads },
      mlps: { shape: [LAYERS], data: Float32Array.from([-1, 2]) },
      rest: { shape: [2], data: Float32Array.from([0.25, 0.75]) },
    },
    facts: {
      rest_names: ['bias', 'embedding'],
      ...{ total, output: total, layers: ['0', '1'], grid: [ROWS, COLS], prefix: PREFIX },
      ...{ unit: 'logit', note: 'Direct parts.', finding: 'Half of lion comes from nowhere' },
    },
  };
}

const LION = {
  classes: [
    { index: 4, name: 'lion', probability: 0.9 },
    { index: 7, name: 'cat', probability: 0.1 },
    { index: 2, name: 'dog', probability: 0.01 },
  ],
  ...{ chosen: 4, other: null, name: 'lion', words: '', link: '4' },
};
/** @param {string[]} off */
const made = (off = [], target = LION) =>
  madeOf(
    /** @type {any} */ (target),
    /** @type {any} */ (decomposed(off)),
    /** @type {any} */ (decomposed()),
    off,
  );

/** What the page asks, and how a test answers; answers that are held back wait for `go`. */
async function open(
  /** @type {any} */ t,
  search = '',
  { answers = /** @type {Record<string, any>} */ ({}) } = {},
) {
  const browser = new Browser();
  browser.install(t);
  const place = placeAt(`?tab=explain&image=lion&explain=parts${search}`);
  const store = new Store(fields, place);
  /** @type {[string, any][]} */
  const questions = [];
  /** @type {Record<string, any>} */
  const known = {
    open: (/** @type {any} */ { view }) => {
      const link = new URLSearchParams(view);
      const about = { model: 'mini', image: { sample: link.get('image') }, edits: link.get('edits') ?? '' };
      return makeTrace({
        ...{ grid: [ROWS, COLS], prefix: PREFIX, photo: `/photo/${link.get('image')}`, photo_size: [40, 60] },
        ...{ trace: `h-${view.length}`, name: link.get('image') },
        ...{ crop: { original: [40, 60], input: [40, 60], region: [0, 0, 40, 60] }, about },
      });
    },
    target: (/** @type {any} */ { view, find }) => {
      if (find) return { hits: [{ index: 9, name: 'tiger' }] };
      const [first, other] = (new URLSearchParams(view).get('target') || '4').split('-').map(Number);
      if (first > 9) return { ...LION, words: `Class ${first} does not exist.` };
      const name = LION.classes.find(({ index }) => index === first)?.name;
      const link = other === undefined ? `${first}` : `${first}-${other}`;
      return { ...LION, chosen: first, other: other ?? null, name, link };
    },
    decomposition: (/** @type {any} */ { edits }) => decomposed(headsOff(edits)),
    ...answers,
  };
  const ask = asker({
    keeps: (name) => name === 'decomposition',
    async answer(name, body) {
      questions.push([name, body]);
      const answer = await known[name](body);
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  const turn = signal(0);
  const element = /** @type {any} */ (parse(HTML));
  explain(element, { store, ask, turn });
  await settle();
  const find = (/** @type {string} */ name) => element.querySelector(`.vv-${name}`);
  const text = (/** @type {string} */ name) => find(name).textContent;
  const chips = (/** @type {string} */ name) =>
    find(name).children.map((/** @type {any} */ one) => one.textContent);
  const asked = (/** @type {string} */ name) =>
    questions.filter(([one]) => one === name).map(([, body]) => body);
  return { browser, place, store, element, find, text, chips, asked, known };
}

test('a head has its map, a layer and the whole their sums, and the scale is that of the strongest head', () => {
  const all = new Terms(/** @type {any} */ ({ ...made(), grid: [ROWS, COLS] }));
  assert.deepEqual(
    [...all.map('1.2')].map((part) => part.toFixed(1)),
    Array(6).fill('1.2'),
  );
  assert.equal(all.map('1')[4].toFixed(1), (1 + 1.1 + 1.2 - 5).toFixed(1));
  assert.equal(all.map(null)[0].toFixed(1), (0.6 + 4.6).toFixed(1));
  assert.equal(all.sum('1').toFixed(2), (6 + 6.6 + 7.2 + 1.5 + 4).toFixed(2));
  assert.equal(all.most, 5);
  assert.equal(all.strongestAt(4, -1)?.place, '1.3');
  assert.equal(all.strongestAt(4, 1)?.place, '1.2');
  assert.equal(all.has('1.3') && !all.has('1.4') && !all.has('2'), true);
});

test('a head that is off shows what it took before, and the sum leaves it out', () => {
  const all = new Terms(/** @type {any} */ ({ ...made(['1.3']), grid: [ROWS, COLS] }));
  assert.equal(all.map('1.3')[4], -5);
  assert.equal(all.sum('1.3').toFixed(2), '2.50');
  assert.equal(all.map(null)[4].toFixed(1), (0.6 + 3.3).toFixed(1));
  assert.equal(all.isOff('1.3') && !all.isOff('1'), true);
});

test('maps of another photo are refused', () => {
  assert.throws(() => new Terms(/** @type {any} */ ({ ...made(), grid: [ROWS, COLS + 1] })), /reload/);
});

test('colours are clear in the middle, and signs are written out', () => {
  const bytes = new Uint8ClampedArray(signedTable().buffer);
  assert.ok(bytes[4 * 127 + 3] <= 1 && bytes[3] > 200 && bytes[4 * 255 + 3] > 200);
  assert.ok(bytes[2] > bytes[0] && bytes[4 * 255] > bytes[4 * 255 + 2]);
  assert.deepEqual([signed(-1.25, 1), signed(-0.001, 2), signed(2, 0)], ['−1.3', '+0.00', '+2']);
  assert.equal(endOf(new Float32Array([0, -3, 1])), 3);
  assert.equal(nameOf('1', ['0', 'pool']), 'the heads of layer pool');
});

// --- edits

test('heads are read from edits and written into them, and other edits stay', () => {
  assert.deepEqual(headsOff(''), []);
  assert.deepEqual(headsOff(' off 10.2 4.3;temperature 7=0.5; off 4.10 '), ['4.3', '4.10', '10.2']);
  const others = 'mean 1.2 3.1;temperature 7=0.5;forbid class>2-4,3-5@6-8';
  assert.equal(switched('', ['1.2']), 'off 1.2');
  assert.equal(switched('off 1.2', ['2.0', '2.1']), 'off 1.2 2.0 2.1');
  assert.equal(switched('off 1.2 2.0 2.1', ['2.0', '2.1']), 'off 1.2');
  assert.equal(switched('off 2.0', ['2.0', '2.1']), 'off 2.0 2.1'); // those that are on go off first
  assert.equal(switched('off 1.2', ['1.2']), '');
  assert.equal(switched(others, ['1.2']), 'off 1.2;mean 3.1;temperature 7=0.5;forbid class>2-4,3-5@6-8');
  assert.equal(withHeadsOff(`off 0.1;${others}`, []), others);
});

// --- what switching off did

test('numbers have four digits that are seen to add up', () => {
  assert.deepEqual([[0], [25.9, 1], [-1234], [0.05], [12345.6]].map(decimalsOf), [3, 2, 0, 5, 0]);
});

/** Numbers of two layers of two heads. @param {number[][]} heads @param {number[]} mlps */
const numbers = (heads, mlps) =>
  /** @type {any} */ ({
    ...{ layers: ['0', '1'], heads, mlps },
    total: [...heads.flat(), ...mlps].reduce((sum, one) => sum + one, 0),
  });

test('what was promised is the part, and where the rest went is said', () => {
  const before = numbers([[1, 2], [3, 1]], [1, 2]); // prettier-ignore
  const effect = (/** @type {any} */ now, off = ['1.0']) => effectOf('the logit of lion', before, now, off);
  const asPromised = effect(numbers([[1, 2], [0, 1]], [1, 2])); // prettier-ignore
  assert.deepEqual([asPromised.promised, asPromised.did], [-3, -3]);
  assert.equal(
    asPromised.words,
    'Without 1 · 0, the logit of lion falls from 10.00 to 7.00, by 3.00: as its part promised.',
  );
  const more = effect(numbers([[1, 2], [0, 1]], [1, 0])); // prettier-ignore
  assert.match(
    more.words,
    /by 5\.00; its part promised a fall of 3\.00\. The other 2\.00 came through later layers and the last norm, most of all the MLP of layer 1 \(−2\.00\)\.$/,
  );
  const less = effect(numbers([[1, 2], [0, 2]], [1, 2])); // prettier-ignore
  assert.match(less.words, /It was made up for, by 1\.00, in later .* most of all head 1 · 1 \(\+1\.00\)\.$/);
  const against = effect(numbers([[1, 2], [0, 1]], [1, 7])); // prettier-ignore
  assert.match(
    against.words,
    /rises from 10\.00 to 12\.00, by 2\.00, though its part promised a fall of 3\.00\. What weighed more came through .* MLP of layer 1 \(\+5\.00\)\.$/,
  );
  assert.match(effect(numbers([[0, 0], [0, 1]], [1, 2]), ['0.0', '0.1', '1.0']).words, /^Without 0 · 0, 0 · 1 and 1 · 0, .* as their parts promised\.$/); // prettier-ignore
  assert.match(effect(numbers([[0, 0], [0, 0]], [1, 2]), ['0.0', '0.1', '1.0', '1.1']).words, /^Without 4 heads, /); // prettier-ignore
});

test('of two classes it is the lead, of values the value, of a pool or an embedding nothing is switched off', () => {
  assert.match(
    made(['0.1'], /** @type {any} */ ({ ...LION, other: 7 })).effect?.words ?? '',
    /the lead of lion over cat/,
  );
  const values = LION.classes.map(({ index, name }) => ({ index, name, value: 3 }));
  assert.match(
    made(['0.1'], /** @type {any} */ ({ ...LION, classes: values })).effect?.words ?? '',
    /the value of lion/,
  );
  const none = made(['0.1'], /** @type {any} */ ({ classes: [], name: '', words: 'no classes', link: '' }));
  assert.deepEqual([none.effect, none.target], [null, 'its own embedding']);
  assert.match(none.whyNot, /^Parts are switched off only where a class is explained/);
  const answer = decomposed();
  answer.facts.layers = ['pool'];
  const pool = madeOf(
    /** @type {any} */ (LION),
    /** @type {any} */ (answer),
    /** @type {any} */ (answer),
    [],
  );
  assert.match(pool.whyNot, /^The heads of a pool cannot/);
});

// --- the face

test('the sum stands there with what came from outside the photo', async (t) => {
  const page = await open(t);
  assert.equal(page.find('parts').dataset.state, 'ready');
  assert.deepEqual(page.asked('decomposition'), [
    { model: 'mini', image: { sample: 'lion' }, edits: '', target: '4' },
  ]); // the same before and now, so once
  assert.match(page.text('sum-title'), /^Exactly 34.90/);
  assert.equal(
    page.text('sum-words'),
    'embedding +0.75, all heads +32.90, all MLPs +1.00, bias +0.25. In units of the logit.',
  );
  assert.match(page.text('sum-note'), /outside the photo: class token \+4.00, registers \+4.00\.$/);
  assert.equal(page.text('parts-title'), 'Half of lion comes from nowhere');
  assert.ok(page.find('parts-effect').hidden);
});

test('the button names the head that gives most, then the one that is shown, and a click switches it', async (t) => {
  const page = await open(t);
  assert.equal(page.text('parts-switch'), 'switch off 1 · 2 (promised −8.20)');
  page.find('parts-switch').fire('click');
  assert.deepEqual(page.place.written.at(-1), [{ edits: 'off 1.2', target: '4' }, true]);
  await settle();
  assert.deepEqual(
    page.asked('decomposition').map(({ edits }) => edits),
    ['', 'off 1.2'],
  );
  assert.match(
    page.text('effect-words'),
    /^Without 1 · 2, the logit of lion falls from 34.90 to 26.70, by 8.20/,
  );
  assert.equal(page.text('parts-switch'), 'switch 1 · 2 on again');
  page.find('parts-switch').fire('click');
  await settle();
  assert.equal(page.store.view.edits.value, '');
  assert.ok(page.find('parts-effect').hidden);
});

test('heads that are pressed one after the other all go off, also before an answer is there', async (t) => {
  const page = await open(t, '&target=7');
  const press = (/** @type {string} */ place) => {
    const cell = page.element.querySelector(`[data-place="${place}"]`);
    page.find('parts-table').fire('click', { target: cell, pointerType: 'mouse' });
  };
  press('0.1');
  press('1');
  assert.equal(page.store.view.edits.value, 'off 0.1 1.0 1.1 1.2 1.3');
  assert.equal(page.store.view.target.value, '7');
  await settle();
  assert.equal(page.find('parts').dataset.state, 'ready');
});

test('where nothing can be switched off a click changes nothing, and the reason stands there', async (t) => {
  const target = () => ({ classes: [], name: '', words: 'no classes', link: '' });
  const page = await open(t, '', { answers: { target } });
  assert.equal(page.find('parts-switch').hidden, true);
  assert.match(page.text('parts-hint'), /without one, the number that they sum to changes/);
  page.find('parts-table').fire('click', { target: page.find('parts-cell') });
  assert.deepEqual(page.place.written, []);
  assert.equal(page.asked('decomposition')[0].target, null);
});

test('a refusal hides what was there, and another photo brings it back', async (t) => {
  const page = await open(t);
  page.known.decomposition = () => new Error('It has no such sum.');
  page.store.look({ image: 'twins' });
  await settle();
  assert.equal(page.text('parts-error'), 'It has no such sum.');
  assert.equal(page.find('parts').dataset.state, 'error');
  assert.equal(page.find('parts-heads').hidden, true);
  page.known.decomposition = () => decomposed();
  page.place.go('?tab=explain&image=lion&explain=parts');
  await settle();
  assert.deepEqual([page.find('parts').dataset.state, page.find('parts-error').hidden], ['ready', true]);
  assert.equal(page.find('parts-heads').hidden, false);
  page.known.target = () => new Error('This model returns no scores of classes.');
  page.store.look({ model: 'other' });
  await settle();
  assert.equal(page.text('parts-error'), 'This model returns no scores of classes.');
});

test('an answer to what is no longer asked never stands there', async (t) => {
  const page = await open(t);
  /** @type {(() => void)[]} */
  const held = [];
  page.known.decomposition = (/** @type {any} */ { image }) =>
    new Promise(
      (done) => void held.push(() => done(image.sample === 'twins' ? decomposed(['0.1']) : decomposed())),
    );
  page.store.look({ image: 'twins' });
  await settle();
  assert.equal(page.find('parts').getAttribute('aria-busy'), 'true');
  page.store.look({ image: 'tower' });
  await settle();
  for (const answer of held) answer();
  await settle();
  assert.match(page.text('sum-title'), /^Exactly 34.90/);
  assert.equal(page.find('photo').getAttribute('src') ?? page.find('photo').src, '/photo/tower');
});

test('the figure is that of the class and the colours that are chosen', async (t) => {
  const page = await open(t, '&target=7-2&style=heat&colors=magma');
  /** @type {any} */
  let detail;
  page.element.addEventListener('vv-figure', (/** @type {any} */ event) => void ({ detail } = event));
  page.find('parts-save').fire('click');
  const [address, query] = detail.address.split('?');
  assert.match(address, /^\/vit_viz\/figure\/h-/);
  assert.deepEqual(Object.fromEntries(new URLSearchParams(query)), {
    ...{ kind: 'asked', ask: 'decomposition', target: '7-2', style: 'heat', colors: 'magma' },
  });
});

// --- which class is explained

test('the face is a place of its own; the maps are asked of nobody here', async (t) => {
  const page = await open(t);
  assert.deepEqual(page.text('why-title'), 'What it is made of');
  const face = (/** @type {string} */ name) => page.element.querySelector(`[data-face=${name}]`);
  page.find('faces').fire('click', { target: face('why') });
  assert.deepEqual(page.place.written, [[{ explain: null }, true]]);
  assert.ok(page.find('parts').hidden);
  assert.deepEqual(
    [face('why'), face('parts')].map((one) => one.getAttribute('aria-pressed')),
    ['true', 'false'],
  );
  assert.equal(page.text('why-title'), 'Why');
  page.store.set({ target: '7' });
  await settle();
  assert.equal(page.asked('decomposition').length, 1);
  page.store.set({ tab: 'look' });
  page.store.look({ image: 'twins' });
  await settle();
  const before = page.asked('target').length;
  page.store.set({ tab: 'look' });
  page.store.set({ target: '7', explain: 'parts' });
  page.store.look({ image: 'tower' });
  await settle();
  assert.equal(page.asked('target').length, before);
  assert.equal(page.asked('open').length, 1); // only the tab that is looked at asks
});

test('a class is chosen, and set against another; what it was set against stays', async (t) => {
  const page = await open(t);
  const press = (/** @type {string} */ name, /** @type {number} */ at) =>
    page.find(name).children[at].click();
  assert.deepEqual(page.chips('why'), ['lion90%', 'cat10%', 'dog1.0%']);
  assert.deepEqual(page.chips('unlike'), ['cat', 'dog', 'compared with nothing']);
  press('unlike', 0);
  assert.deepEqual(page.place.written.at(-1), [{ target: '4-7', sides: 'difference' }, false]);
  await settle();
  press('why', 2);
  await settle();
  assert.equal(page.store.view.target.value, '2-7');
  press('why', 1); // the class that it is set against: it is set against nothing then
  assert.equal(page.store.view.target.value, '7');
  press('unlike', 0); // of the chips of before: of class 2, lion
  assert.equal(page.store.view.target.value, '7-4');
  await settle();
  press('unlike', 2);
  assert.equal(page.store.view.target.value, '7');
  assert.equal(page.asked('decomposition').at(-1).target, '7-4');
});

test('a class that does not exist gives way to the first, in a sentence', async (t) => {
  const page = await open(t, '&target=99');
  assert.equal(page.text('target-words'), 'Class 99 does not exist.');
  assert.equal(page.asked('decomposition')[0].target, '4');
  page.find('unlike').children[0].click();
  assert.equal(page.store.view.target.value, '4-7');
});

test('classes are found by their name, and a chip of another model chooses nothing', async (t) => {
  const page = await open(t, '&target=7');
  page.find('search').value = 'tig';
  page.find('search').fire('input');
  page.browser.pass(150);
  await settle();
  assert.deepEqual(page.asked('target').at(-1), { view: 'image=lion&target=7', find: 'tig' });
  page.find('hits').querySelector('button').click();
  assert.equal(page.store.view.target.value, '9');
  await settle();
  page.store.look({ model: 'other' });
  page.find('why').children[0].click();
  assert.equal(page.store.view.target.value, '');
});
