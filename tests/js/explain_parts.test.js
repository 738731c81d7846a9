// The Explain tab over the store, against a source that a test answers for: which class is explained, and what the answer is made of,
// with the maps of heads, their sums and scale, what switching heads off promised and did.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decimalsOf, effectOf, madeOf } from '../../vit_viz/web/explain/made.js';
import { endOf, signed, signedTable } from '../../vit_viz/web/kit/signed.js';
import { Terms, nameOf } from '../../vit_viz/web/explain/terms.js';
import { editsIn, headsWith, switched } from '../../vit_viz/web/kit/edits.js';
import { savedBy } from './browser.js';
import { LION, openExplain, opened, pressed, texts } from './explain_page.js';
import { settle } from './room.js';

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
      ...{ total, output: total, layers: ['0', '1'], grid: [ROWS, COLS], prefix: PREFIX, suffix: [] },
      ...{ unit: 'logit', note: 'Direct parts.', finding: 'Half of lion comes from nowhere' },
    },
  };
}

/** @param {string[]} off */
const made = (off = [], target = LION) =>
  madeOf(
    /** @type {any} */ (target),
    /** @type {any} */ (decomposed(off)),
    /** @type {any} */ (decomposed()),
    off,
  );

/** @param {any} t @param {string} [search] @param {Record<string, any>} [answers] */
async function open(t, search = '', answers = {}) {
  const decomposition = (/** @type {any} */ { edits }) => decomposed(headsWith(editsIn(edits), 'off'));
  const page = await openExplain(t, `&explain=parts${search}`, {
    open: (/** @type {any} */ body) => ({ ...opened(body), prefix: PREFIX }),
    ...{ decomposition, ...answers },
  });
  return {
    ...page,
    place: (/** @type {string} */ name) => page.find(`[data-place="${name}"]`),
    chips: (/** @type {string} */ name) => page.all(`.vv-${name} > .vv-chip`),
    bodies: (/** @type {string} */ name) => page.asked(name).map(({ body }) => body),
    written: page.place.written,
    go: page.place.go,
    state: () => page.find('.vv-parts').dataset.state,
  };
}

test('a head has its map, a layer and the whole their sums, and the scale is that of the strongest head', () => {
  const all = new Terms(made(), [ROWS, COLS]);
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

test('of heads that gave equally much none is called the one that gave most', () => {
  const given = made();
  const all = new Terms(given, [ROWS, COLS]);
  assert.equal(all.best(), '1.2');
  const equal = { ...given, now: { ...given.now, heads: given.now.heads.map((row) => row.map(() => 1)) } };
  assert.equal(new Terms(equal, [ROWS, COLS]).best(), null);
  const maps = Float32Array.from(given.now.maps);
  maps[5 * PATCHES + 2] = maps[7 * PATCHES + 2]; // as much as the strongest at that patch
  const tied = new Terms({ ...given, now: { ...given.now, maps } }, [ROWS, COLS]);
  assert.equal(all.strongestAt(2, 1)?.place, '1.3');
  assert.equal(tied.strongestAt(2, 1), null);
  assert.equal(tied.strongestAt(1, 1)?.place, '1.3');
});

test('tokens after the patches are outside the photo', () => {
  const told = decomposed();
  told.facts.prefix = ['class'];
  const last = { ...told, facts: { ...told.facts, grid: [2, 3], suffix: ['detection 0', 'register 0'] } };
  const one = madeOf(/** @type {any} */ (LION), /** @type {any} */ (last), /** @type {any} */ (last), []);
  assert.deepEqual(
    [...one.now.maps.subarray(0, PATCHES)],
    [...told.arrays.terms.data.subarray(1, 1 + PATCHES)],
  );
  const place = (/** @type {number} */ token) =>
    told.arrays.terms.data.filter((_, i) => i % (3 + PATCHES) === token).reduce((sum, value) => sum + value);
  assert.deepEqual(Object.keys(one.outside), ['class token', 'detection 0 token', 'registers']);
  assert.equal(one.outside['detection 0 token'].toFixed(3), place(7).toFixed(3));
  assert.equal(one.outside.registers.toFixed(3), place(8).toFixed(3));
});

test('a head that is off shows what it took before, and the sum leaves it out', () => {
  const all = new Terms(made(['1.3']), [ROWS, COLS]);
  assert.equal(all.map('1.3')[4], -5);
  assert.equal(all.sum('1.3').toFixed(2), '2.50');
  assert.equal(all.map(null)[4].toFixed(1), (0.6 + 3.3).toFixed(1));
  assert.equal(all.isOff('1.3') && !all.isOff('1'), true);
});

test('maps of another photo are refused', () => {
  assert.throws(() => new Terms(made(), [ROWS, COLS + 1]), /reload/);
});

test('colours are clear in the middle, and signs are written out', () => {
  const bytes = new Uint8ClampedArray(signedTable().buffer);
  assert.ok(bytes[4 * 127 + 3] <= 1 && bytes[3] > 200 && bytes[4 * 255 + 3] > 200);
  assert.ok(bytes[2] > bytes[0] && bytes[4 * 255] > bytes[4 * 255 + 2]);
  assert.deepEqual([signed(-1.25, 1), signed(-0.001, 2), signed(2, 0)], ['−1.3', '0.00', '+2']);
  assert.equal(endOf(new Float32Array([0, -3, 1])), 3);
  assert.equal(nameOf('1', ['0', 'pool']), 'the heads of layer pool');
});

// --- edits

test('heads are read from edits and written into them, and other edits stay', () => {
  const off = (/** @type {string} */ words) => headsWith(editsIn(words), 'off');
  assert.deepEqual(off(''), []);
  assert.deepEqual(off(' off 10.2 4.3;temperature 7=0.5; off 4.10 '), ['4.3', '4.10', '10.2']);
  const others = 'mean 1.2 3.1;temperature 7=0.5;forbid class>2-4,3-5@6-8';
  assert.equal(switched('', ['1.2']), 'off 1.2');
  assert.equal(switched('off 1.2', ['2.0', '2.1']), 'off 1.2 2.0 2.1');
  assert.equal(switched('off 1.2 2.0 2.1', ['2.0', '2.1']), 'off 1.2');
  assert.equal(switched('off 2.0', ['2.0', '2.1']), 'off 2.0 2.1'); // those that are on go off first
  assert.equal(switched('off 1.2', ['1.2']), '');
  assert.equal(switched(others, ['1.2']), 'off 1.2;mean 3.1;temperature 7=0.5;forbid class>2-4,3-5@6-8');
  assert.equal(switched(`off 0.1;${others}`, ['0.1']), others);
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
  const alone = values.map((one) => ({ ...one, cosine: 0.3 })); // one sentence alone, which is scored by a logit all the same
  const less = decomposed(['0.1']);
  less.facts.total -= 2;
  const ofSentence = madeOf(
    /** @type {any} */ ({ ...LION, classes: alone }),
    .../** @type {[any, any]} */ ([less, decomposed()]),
    ['0.1'],
  );
  assert.match(
    ofSentence.effect?.words ?? '',
    /the logit of lion falls.* through later layers, the last norm and the length of the embedding\.$/,
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
  assert.equal(page.state(), 'ready');
  assert.deepEqual(page.bodies('decomposition'), [
    { model: 'mini', image: { sample: 'lion' }, edits: '', target: '4' },
  ]); // the same before and now, so once
  assert.match(page.text('.vv-sum-title'), /^Exactly 34.90/);
  assert.equal(
    page.text('.vv-sum-words'),
    'embedding +0.75, all heads +32.90, all MLPs +1.00, bias +0.25. In units of the logit.',
  );
  assert.match(page.text('.vv-sum-note'), /^Direct parts. Heads .* class token \+4.00, registers \+4.00\.$/);
  assert.equal(page.text('.vv-parts-title'), 'Half of lion comes from nowhere');
  assert.ok(page.find('.vv-parts-effect').hidden);
});

test('each head has its picture and number, each layer the bars of its heads and MLP; one is on the photo', async (t) => {
  const { all, place, text, find } = await open(t);
  const shares = () => texts(all('.vv-parts-cell .vv-number')).slice(0, 3);
  assert.deepEqual(texts(all('.vv-parts-table th')), ['layer', '0', '1', '2', '3', 'heads', 'MLP', '0', '1']);
  assert.deepEqual(shares(), ['+1.00', '+1.60', '+2.20']);
  assert.deepEqual(texts(all('.vv-parts-sumbar')), ['+7.60', '−1.00', '+25.30', '+2.00']);
  for (const bar of all('.vv-parts-sumbar'))
    // only what can be pressed looks so
    assert.equal(bar.classList.contains('vv-bare'), bar.tagName === 'BUTTON');
  const painted = (/** @type {any} */ canvas) => new Uint32Array(canvas.canvas.data.data.buffer);
  const [head] = place('1.2').querySelectorAll('canvas');
  assert.deepEqual([head.width, head.height, painted(head).length], [COLS, ROWS, 6]);
  const map = find('.vv-parts .vv-map');
  assert.match(
    text('.vv-parts-caption'),
    /^lion · .* through all heads together, \+32.90 in all. A scale of its own;/,
  );
  place('1.2').fire('pointerover', { pointerType: 'mouse' });
  await settle();
  assert.ok(place('1.2').classList.contains('vv-chosen'));
  assert.deepEqual([...painted(map)], [...painted(head)]);
  assert.match(text('.vv-parts-caption'), /through 1 · 2, \+8.20 in all. The scale of all heads;/);
  assert.deepEqual(['.vv-parts .vv-low', '.vv-parts .vv-high'].map(text), ['−5.0', '+5.0']);
  const stage = find('.vv-parts .vv-stage');
  stage.box = { left: 0, top: 0, width: 60, height: 40 };
  stage.fire('pointermove', { clientX: 30, clientY: 30 }); // the fifth patch
  await settle();
  assert.equal(text('.vv-parts-caption'), 'Patch (1, 1): +1.200 through 1 · 2, −1.100 through all heads, most of it by 1 · 3 (−5.000)'); // prettier-ignore
  assert.deepEqual(shares(), ['0.00', '+0.10', '+0.20']);
  assert.equal(all('.vv-parts .vv-ring').length, 1);
  assert.equal(find('.vv-parts-scroll').style.getPropertyValue('--at-top'), '50%');
  stage.fire('pointerleave');
  await settle();
  assert.deepEqual([shares()[1], all('.vv-parts .vv-ring').length], ['+1.60', 0]);
  find('.vv-parts-all').click();
  await settle();
  assert.deepEqual([all('.vv-chosen').length, find('.vv-parts-all').hidden], [0, true]);
});

test('the keys go from head to head, and a finger sees a head before it switches it', async (t) => {
  const { place, written, all, text } = await open(t);
  const tabs = () => all('.vv-parts-cell[tabindex="0"]').map(({ dataset }) => dataset.place);
  assert.deepEqual(tabs(), ['0.0']);
  place('0.0').fire('keydown', { key: 'ArrowDown' });
  place('1.0').fire('keydown', { key: 'ArrowRight' });
  await settle();
  assert.deepEqual([tabs(), place('1.1').focused], [['1.1'], true]);
  for (let i = 0; i < 9; i++)
    /** @type {any} */ (globalThis).document.activeElement.fire('keydown', { key: 'ArrowRight' });
  await settle();
  assert.ok(place('1').focused); // from the last head to the bar of its layer
  place('1').fire('keydown', { key: 'ArrowUp' });
  await settle();
  assert.ok(place('0').focused);
  place('0').fire('keydown', { key: 'ArrowLeft' });
  await settle();
  assert.match(tabs()[0], /^0[.]/);
  place('0.2').fire('click', { pointerType: 'touch' });
  await settle();
  assert.deepEqual([written, text('.vv-parts-switch')], [[], 'switch off 0 · 2 (promised −2.20)']);
  place('0.2').fire('click', { pointerType: 'touch' });
  assert.deepEqual(written.at(-1), [{ edits: 'off 0.2', target: '4' }, true]);
});

test('the button names the head that gives most, then the one that is shown, and a click switches it', async (t) => {
  const page = await open(t);
  assert.equal(page.text('.vv-parts-switch'), 'switch off 1 · 2 (promised −8.20)');
  await page.click('.vv-parts-switch');
  assert.deepEqual(page.written.at(-1), [{ edits: 'off 1.2', target: '4' }, true]);
  assert.deepEqual(
    page.bodies('decomposition').map(({ edits }) => edits),
    ['', 'off 1.2'],
  );
  assert.match(
    page.text('.vv-effect-words'),
    /^Without 1 · 2, the logit of lion falls from 34.90 to 26.70, by 8.20/,
  );
  assert.deepEqual(texts(page.all('.vv-effect-bars .vv-number')), ['−8.20', '−8.20']);
  assert.equal(page.text('.vv-parts-switch'), 'switch 1 · 2 on again');
  const off = page.find('.vv-parts-off');
  assert.deepEqual([off.title, pressed(off)], ['layer 1, head 2: off, was +8.20', 'true']);
  assert.equal(page.place('1').title, 'all heads of layer 1: +17.10, before +25.30');
  assert.equal(page.all('.vv-parts-sumbar .vv-tick').length, 4);
  await page.click('.vv-parts-switch');
  assert.equal(page.store.view.edits.value, '');
  assert.ok(page.find('.vv-parts-effect').hidden);
});

test('heads that are pressed one after the other all go off, also before an answer is there', async (t) => {
  const page = await open(t, '&target=7');
  for (const place of ['0.1', '1']) page.place(place).fire('click', { pointerType: 'mouse' });
  assert.equal(page.store.view.edits.value, 'off 0.1 1.0 1.1 1.2 1.3');
  assert.equal(page.store.view.target.value, '7');
  await settle();
  assert.equal(page.state(), 'ready');
});

test('where nothing can be switched off a click changes nothing, and the reason stands there', async (t) => {
  const target = () => ({ classes: [], name: '', words: 'no classes', link: '' });
  const page = await open(t, '', { target });
  assert.equal(page.find('.vv-parts-switch').hidden, true);
  assert.match(page.text('.vv-parts-hint'), /without one, the number that they sum to changes/);
  page.place('0.0').click();
  assert.deepEqual([page.written, page.place('1')], [[], null]);
  assert.equal(page.bodies('decomposition')[0].target, null);
  assert.ok(page.find('.vv-target-row').hidden);
});

test('a refusal hides what was there, and another photo brings it back', async (t) => {
  const page = await open(t);
  const { decomposition } = page.known;
  page.known.decomposition = new Error('It has no such sum.');
  page.store.look({ image: 'twins' });
  await settle();
  assert.deepEqual([page.text('.vv-parts-error'), page.state()], ['It has no such sum.', 'error']);
  assert.equal(page.find('.vv-parts-heads'), null);
  page.known.decomposition = decomposition;
  page.go('?tab=explain&image=lion&explain=parts');
  await settle();
  assert.deepEqual([page.state(), page.find('.vv-parts-error').hidden], ['ready', true]);
  assert.ok(page.find('.vv-parts-heads'));
  page.known.target = new Error('This model returns no scores of classes.');
  page.store.look({ model: 'other' });
  await settle();
  assert.equal(page.text('.vv-parts-error'), 'This model returns no scores of classes.');
});

test('an answer to what is no longer asked never stands there', async (t) => {
  const page = await open(t);
  page.known.decomposition = null;
  for (const image of ['twins', 'tower']) {
    page.store.look({ image });
    await settle();
    assert.equal(page.find('.vv-parts').getAttribute('aria-busy'), 'true');
    assert.equal(page.find('.vv-parts .vv-photo').src, '/photo/lion');
  }
  assert.ok(page.find('.vv-parts > .vv-asking').hidden);
  page.browser.pass(300);
  await settle();
  assert.ok(!page.find('.vv-parts > .vv-asking').hidden); // what stands there is of before
  const [, twins, tower] = page.asked('decomposition');
  await tower.answer(decomposed());
  await twins.answer(decomposed(['0.1']));
  assert.ok(page.find('.vv-parts > .vv-asking').hidden);
  assert.match(page.text('.vv-sum-title'), /^Exactly 34.90/);
  assert.equal(page.find('.vv-parts .vv-photo').src, '/photo/tower');
});

test('the figure is that of the class and the colours that are chosen', async (t) => {
  const page = await open(t, '&target=7-2&style=heat&colors=magma');
  const [name, { figure, target, image }] = savedBy(page.root, page.find('.vv-parts-save'));
  assert.deepEqual([name, target, image], ['decomposition', '7-2', { sample: 'lion' }]);
  assert.deepEqual(figure, { style: 'heat', table: 'magma' });
});

// --- which class is explained

test('the face is a place of its own; what is behind it is asked of nobody', async (t) => {
  const page = await open(t);
  const faces = () => ['why', 'parts'].map((name) => pressed(page.find(`[data-face=${name}]`)));
  assert.deepEqual([page.text('.vv-why-title'), faces()], ['What it is made of', ['false', 'true']]);
  assert.deepEqual([page.find('#vv-explain-columns').hidden, page.asked('relevance').length], [true, 0]);
  await page.click('[data-face=why]');
  assert.deepEqual(page.written, [[{ explain: null }, true]]);
  assert.deepEqual([page.text('.vv-why-title'), faces()], ['Why', ['true', 'false']]);
  assert.deepEqual([page.find('.vv-parts').hidden, page.find('#vv-explain-columns').hidden], [true, false]);
  await page.set({ target: '7' });
  assert.equal(page.asked('decomposition').length, 1);
});

test('a class is chosen, and set against another; what it was set against stays', async (t) => {
  const page = await open(t);
  const { chips, written, store } = page;
  const press = (/** @type {string} */ name, /** @type {number} */ at) => chips(name)[at].click();
  assert.deepEqual(texts(chips('why')), ['lion90%', 'cat10%', 'dog1%']);
  assert.deepEqual(texts(chips('unlike')), ['cat', 'dog', 'compared with nothing']);
  press('unlike', 0);
  assert.deepEqual(written.at(-1), [{ target: '4-7', sides: 'difference' }, false]);
  await settle();
  press('why', 2);
  await settle();
  assert.equal(store.view.target.value, '2-7');
  press('why', 1); // the class that it is set against: it is set against nothing then
  assert.equal(store.view.target.value, '7');
  press('unlike', 0); // of the chips of before: of class 2, lion
  assert.equal(store.view.target.value, '7-4');
  await settle();
  press('unlike', 2);
  assert.equal(store.view.target.value, '7');
  assert.equal(page.bodies('decomposition').at(-1).target, '7-4');
});

test('a class that does not exist gives way to the first, in a sentence', async (t) => {
  const page = await open(t, '&target=99');
  assert.equal(page.text('.vv-target-words'), 'Class 99 does not exist.');
  page.chips('unlike')[0].click();
  assert.match(page.store.view.target.value, /-7$/);
});

test('classes are found by their name, and a chip of another model chooses nothing', async (t) => {
  const page = await open(t, '&target=7');
  page.find('.vv-search').value = 'tig';
  page.find('.vv-search').fire('input');
  page.browser.pass(150);
  await settle();
  assert.deepEqual(page.bodies('target').at(-1), { view: 'image=lion&target=7', find: 'tig' });
  await page.click('.vv-hits button');
  assert.equal(page.store.view.target.value, '9');
  page.known.target = null;
  page.store.look({ model: 'other' });
  await settle();
  page.chips('why')[0].click();
  assert.equal(page.store.view.target.value, '');
});
