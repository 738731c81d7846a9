// The stage of the Explain tab: the chosen map on the photo, the patches that are taken away there, and the controls of the map.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { REST } from '../../vit_viz/explorer/long_press.js';
import { stroke } from '../../vit_viz/web/explain/brush.js';
import { readGone, writeGone } from '../../vit_viz/web/explain/gone.js';
import { savedBy } from './browser.js';
import { METHODS, compared, mapBy, openExplain, opened, pressed, texts, trustBy } from './explain_page.js';
import { settle } from './room.js';

/** The photo of 60 x 180 pixels, whose middle is cut into 4 x 6 patches. */
const OPEN = (/** @type {any} */ body) => ({
  ...opened(body),
  ...{ grid: [4, 6], photo_size: [60, 180], prefix: ['class', 'register 0'] },
  crop: { original: [60, 180], input: [32, 48], region: [10, 30, 40, 120] },
});
/** A map on it of which these patches are the best. @param {number[]} best @param {any} [facts] */
const mapOf = (best, facts = {}) => {
  const values = new Float32Array(24).map((_, i) => (best.includes(i) ? 48 - best.indexOf(i) : 24 - i));
  const crop_box = { original_size: [60, 180], input_size: [32, 48], region: [10, 30, 40, 120] };
  return {
    ...mapBy('rollout', [], { crop_box, ...facts }),
    arrays: { values: { shape: [4, 6], data: values } },
  };
};
const ANSWERS = {
  open: OPEN,
  rollout: mapOf([7, 3, 20, 1]),
  relevance: mapOf([5, 6, 7], {
    class_blind: false,
    caption: 'relevance, towards the logit of class 4 (lion)',
  }),
};
const left = (/** @type {any} */ more = {}) => ({
  ...{ words: 'a lion', ...more },
  arrays: { 'top.scores': { data: [0.25] }, before: { data: [0.9] }, ...more.arrays },
  facts: { top: { names: ['lion'], indices: [4], unit: 'probability', ...more.top } },
});

/** The numbers of the patches that are taken away. */
const patchesIn = (/** @type {any} */ { gone }) =>
  gone
    .split(';')
    .map((/** @type {string} */ at) => at.split(',').map(Number))
    .map((/** @type {number[]} */ [row, col]) => 6 * row + col)
    .join();

/** A stage whose photo is drawn twice as large as it is, at (100, 50). @param {any} t @param {any} [answers] @param {string} [search] */
async function open(t, answers = {}, search = '&method=rollout') {
  const page = await openExplain(t, search, { ...ANSWERS, ...answers });
  const marks = page.find('.vv-play-marks');
  page.find('.vv-image').box = { left: 100, top: 50, width: 360, height: 120 };
  const fire =
    (/** @type {string} */ name) =>
    async (/** @type {number} */ row, /** @type {number} */ col, more = {}) => {
      const at = { clientY: 50 + 2 * (10 + 10 * (row + 0.5)), clientX: 100 + 2 * (30 + 20 * (col + 0.5)) };
      const event = marks.fire(name, { ...at, pointerId: 8, pointerType: 'mouse', ...more });
      await settle();
      return event;
    };
  const [down, move, up] = ['pointerdown', 'pointermove', 'pointerup'].map(fire);
  const key = async (/** @type {string} */ name) => {
    const event = page.find('.vv-play-stage').fire('keydown', { key: name });
    await settle();
    return event;
  };
  return {
    ...{ ...page, marks, down, move, up, key },
    /** The patches that were asked about. */
    gone: () => page.asked('without_patches').map(({ body }) => patchesIn(body)),
    answer: (/** @type {any} */ more = {}) =>
      page
        .asked('without_patches')
        .at(-1)
        ?.answer(more instanceof Error ? more : left(more)),
    async slide(/** @type {number} */ count) {
      page.find('.vv-most').value = String(count);
      page.find('.vv-most').fire('input');
      await settle();
    },
    words: () => page.text('.vv-play-words'),
    busy: () => page.find('.vv-play-top').getAttribute('aria-busy'),
    /** How long the bar of the first answer is. */
    long: () => page.find('.vv-answer .vv-track').style.getPropertyValue('--long'),
    places: () =>
      [...marks.children].map((/** @type {any} */ mark) =>
        [mark.getAttribute('class'), mark.getAttribute('y'), mark.getAttribute('x')].join(' '),
      ),
  };
}

test('a stage shows the map and what the model says of the whole photo, and asks nothing', async (t) => {
  const { find, text, gone, all, words, marks } = await open(t);
  const map = find('.vv-play-stage .vv-drawn-map');
  assert.deepEqual([find('.vv-play-stage img').src, map.style.aspectRatio], ['/photo/lion', '3 / 1']);
  assert.equal(marks.getAttribute('viewBox'), '0 0 180 60');
  const caption =
    'mini · a rollout · the same for every class · scale: own · light; smooth between patch centres';
  assert.deepEqual(['.vv-caption', '.vv-low', '.vv-unit'].map(text), [caption, '1', 'weight']);
  assert.equal(map.getAttribute('aria-label'), caption);
  assert.equal(text('.vv-sides-words'), 'Half of the map lies on 2 of 6 patches.');
  assert.equal(text('.vv-slider-words'), 'drag to take the best patches away, or brush');
  assert.deepEqual([find('.vv-all').disabled, Boolean(find('[data-tool=choose]'))], [true, true]);
  assert.equal(find('.vv-most').max, '23');
  assert.equal(
    find('.vv-most').getAttribute('aria-label'),
    'How many of the best patches are taken away, by Rollout',
  );
  assert.deepEqual(texts(all('.vv-answer > *')), [...['lion', '', '90%', 'cat', '', '10%', 'dog', '', '1%']]);
  assert.deepEqual(texts(all('.vv-target-answer > .vv-class')), ['lion']);
  assert.deepEqual([all('.vv-answer .vv-tick').length, gone()], [0, []]); // nothing to compare with yet
  assert.equal(words(), 'With all patches: lion 90%.');
});

test('the map of before stays, dimmed, until the next one is there; rings come with it', async (t) => {
  const page = await open(t, { relevance: null }, '&method=rollout&q=1,2');
  const busy = () => page.find('.vv-play-picture').classList.contains('vv-busy');
  assert.deepEqual([busy(), page.all('.vv-ring').length], [false, 1]);
  await page.set({ method: 'relevance' });
  assert.deepEqual([busy(), page.all('.vv-ring').length], [true, 1]);
  await page.asked('relevance')[0].answer(mapOf([1]));
  assert.deepEqual([busy(), page.all('.vv-ring').length], [false, 0]);
  t.mock.method(globalThis, 'fetch', async () => ({ ok: false }));
  page.find('.vv-play-stage img').fire('error');
  await settle();
  assert.match(page.text('.vv-empty'), /could not be fetched/);
  assert.ok(page.find('.vv-image').hidden && page.find('#vv-stage .vv-save').hidden);
});

test('a stroke takes every patch on its way, and what is taken is marked where it was', async (t) => {
  const { down, move, up, answer, gone, find, text, marks } = await open(t);
  assert.equal((await down(0, 1)).prevented, true);
  await answer();
  await move(2, 5);
  await answer();
  await up(2, 5);
  await move(3, 5);
  assert.deepEqual(gone(), ['1', '1,8,9,16,17']);
  const first = marks.children[1];
  assert.equal(first.getAttribute('class'), 'vv-gone');
  const place = ['x', 'y', 'width', 'height'].map((name) => Number(first.getAttribute(name)));
  assert.deepEqual(place, [30 + 20 * 2, 10 + 10, 20, 10]);
  assert.equal(text('.vv-slider-words'), '21% of patches are gone (5 of 24)');
  assert.equal(find('.vv-all').disabled, false);
  assert.deepEqual([marks.captured, find('.vv-play-stage').focused], [8, true]);
});

test('a stroke begins within what the model received, goes on where it comes back, and ends', async (t) => {
  const { down, move, marks, places, gone } = await open(t);
  for (const [row, col, more] of /** @type {[number, number, any][]} */ ([
    [-1, 0, {}],
    [4, 0, {}],
    [0, -1, {}],
    [0, 6, {}],
    [0, 0, { button: 2 }],
  ]))
    assert.equal((await down(row, col, more)).prevented, false);
  assert.deepEqual(gone(), []);
  await down(0, 1);
  await move(-1, 1); // above it
  await move(0, 3);
  await move(1, 3);
  assert.deepEqual(places(), ['vv-gone 10 50', 'vv-gone 10 70', 'vv-gone 10 90', 'vv-gone 20 90']);
  marks.fire('pointercancel');
  await move(3, 3);
  assert.equal(places().length, 4);
});

test('a stroke is straight in any direction, and three patches wide on a fine grid', () => {
  const across = (/** @type {any[]} */ ...stroked) =>
    [...new Set(stroke(stroked[0], stroked[1], stroked[2]))].sort((a, b) => a - b);
  assert.deepEqual(across([1, 2], [1, 2], [5, 7]), [9]);
  assert.deepEqual(across([0, 1], [3, 1], [5, 7]), [1, 8, 15, 22]);
  assert.deepEqual(across([3, 1], [0, 1], [5, 7]), [1, 8, 15, 22]);
  assert.deepEqual(across([1, 5], [1, 2], [5, 7]), [9, 10, 11, 12]);
  assert.deepEqual(across([0, 0], [2, 6], [5, 7]), [0, 1, 9, 10, 11, 19, 20]);
  assert.deepEqual(across([1, 20], [1, 20], [3, 23]), [43]);
  assert.deepEqual(across([2, 20], [2, 20], [3, 24]), [43, 44, 45, 67, 68, 69]);
  assert.deepEqual(across([20, 0], [20, 0], [24, 3]), [57, 58, 60, 61, 63, 64]);
});

test('one question is under way at a time, and the last one is asked when it is answered', async (t) => {
  const { down, answer, gone, busy, browser, asked } = await open(t);
  for (const col of [0, 1, 2]) await down(0, col);
  assert.deepEqual([gone(), busy()], [['0'], 'true']);
  await answer();
  assert.deepEqual([gone(), busy()], [['0', '0,1,2'], 'true']);
  await answer();
  assert.deepEqual([gone(), busy()], [['0', '0,1,2'], 'false']);
  browser.pass(6000);
  await down(1, 0);
  browser.pass(9999);
  await down(1, 1);
  assert.equal(gone().length, 3);
  browser.pass(1); // the answer was lost
  await down(1, 2);
  assert.equal(gone()[3], '0,1,2,6,7,8');
  const [, , late, last] = asked('without_patches');
  assert.deepEqual([late.stop.aborted, last.stop.aborted], [true, false]);
});

test('an answer says what changed, or why there is none, until the next one', async (t) => {
  const { answer, find, all, text, down, words, busy, long } = await open(t);
  await down(0, 0);
  await answer();
  assert.equal(words(), 'a lion');
  assert.deepEqual(texts(all('.vv-answer > *')), ['lion', '', '90% → 25%']);
  assert.deepEqual([long(), find('.vv-answer .vv-tick').style.left], ['25.00%', '90.00%']);
  await down(0, 1);
  await answer(new Error('Too many.'));
  assert.deepEqual([text('.vv-play-error'), words(), busy()], ['Too many.', 'a lion', 'false']);
  await down(0, 2);
  await answer({ arrays: { 'top.scores': { data: [-1] } } });
  assert.equal(long(), '0.00%');
  assert.ok(find('.vv-play-error').hidden);
});

test('what is waited for is said, and no number of before stands for it', async (t) => {
  const { answer, all, find, slide, words, browser, set, asked } = await open(t, { relevance: null });
  const numbers = () => texts(all('.vv-answer .vv-number'));
  const wait = async (/** @type {number} */ time) => {
    browser.pass(time);
    await settle();
  };
  await slide(1);
  await answer();
  await slide(2);
  await wait(299);
  assert.deepEqual([words(), numbers()], ['a lion', ['90% → 25%']]); // a moment later it may be there
  await wait(1);
  assert.deepEqual([words(), numbers()], ['Asking the model without 2 patches …', ['90% → …']]);
  const { style, dataset } = find('.vv-answer .vv-track');
  assert.deepEqual(
    [dataset.unknown, style.getPropertyValue('--long'), find('.vv-answer .vv-tick').style.left],
    ['', '0.00%', '90.00%'],
  );
  await slide(3);
  await answer(); // to the one before: while the hand moves, the newest answer is shown
  assert.deepEqual([words(), numbers()], ['a lion', ['90% → 25%']]);
  await wait(300);
  assert.equal(words(), 'Asking the model without 3 patches …');
  await answer();
  assert.equal(words(), 'a lion');
  assert.ok(find('.vv-play-stage .vv-asking').hidden);
  await set({ method: 'relevance' });
  await wait(300);
  assert.deepEqual(
    [find('.vv-play-stage .vv-asking').hidden, find('.vv-play-stage .vv-asking').textContent],
    [false, 'Making the map …'],
  );
  await asked('relevance')
    .at(-1)
    ?.answer(mapOf([1]));
  assert.ok(find('.vv-play-stage .vv-asking').hidden);
});

test('another target is asked about at once, an answer about the one before is not shown', async (t) => {
  const { asked, down, set, words, busy, answer, click } = await open(t);
  await down(0, 0);
  await set({ target: '7' });
  const [old, next] = asked('without_patches');
  assert.deepEqual([old.stop.aborted, next.body.gone, next.body.target], [true, '0,0', '7']);
  await old.answer(left({ words: 'of the old one' }));
  assert.deepEqual([words(), busy()], ['With all patches: cat 10%.', 'true']);
  await answer({ words: 'of the new one' });
  assert.equal(words(), 'of the new one');
  await click('.vv-all');
  assert.equal(words(), 'With all patches: cat 10%.');
});

test('patches are put back by the other brush, all at once by a button, which needs no answer', async (t) => {
  const { down, find, gone, answer, click, words, asked, slide } = await open(t);
  for (const col of [0, 1]) {
    await down(0, col);
    await answer();
  }
  await click('[data-tool=restore]');
  assert.deepEqual(
    ['erase', 'restore'].map((name) => pressed(find(`[data-tool=${name}]`))),
    ['false', 'true'],
  );
  await down(0, 0);
  await answer();
  await down(0, 0); // nothing changes: nothing is asked
  assert.deepEqual(gone(), ['0', '0,1', '1']);
  await click('[data-tool=erase]');
  await down(2, 2);
  await click('.vv-all');
  assert.deepEqual([gone().at(-1), words()], ['1,14', 'With all patches: lion 90%.']);
  await answer({ words: 'came late' });
  assert.equal(words(), 'With all patches: lion 90%.');
  await slide(2);
  const late = asked('without_patches').at(-1);
  await click('.vv-all');
  assert.deepEqual([find('.vv-most').value, find('.vv-all').disabled], ['0', true]);
  await down(3, 3); // a new stroke is asked about at once
  assert.deepEqual([late?.stop.aborted, gone().at(-1)], [true, '21']);
  await answer({ words: 'of the second' });
  assert.equal(words(), 'of the second');
});

test('the slider takes the best patches of the map, also of the next one; a stroke puts it back', async (t) => {
  const { find, gone, answer, down, set, text, slide } = await open(t);
  await slide(2);
  assert.equal(gone().at(-1), '3,7');
  const words = 'the best 8% of patches are gone (2 of 24)';
  assert.equal(text('.vv-slider-words'), words);
  assert.equal(find('.vv-most').getAttribute('aria-valuetext'), words);
  await answer();
  await set({ method: 'relevance' }); // another map of the same picture
  assert.equal(gone().at(-1), '5,6');
  await answer();
  await down(0, 0);
  assert.deepEqual([gone().at(-1), find('.vv-most').value], ['0,5,6', '0']);
  await answer();
  await set({ method: 'rollout' });
  assert.equal(gone().length, 3);
});

test('what is taken away stands in the link, which takes the same away elsewhere', async (t) => {
  const page = await open(t);
  const { down, move, up, slide, gone, answer, place, click } = page;
  const link = () => new URLSearchParams(place.search()).get('gone');
  /** What another visitor asks about who opens the same link. */
  const elsewhere = async () => (await open(t, {}, `&method=rollout&gone=${link()}`)).gone();
  await slide(3);
  assert.deepEqual([link(), place.written.at(-1)], ['best.3', [{ gone: 'best.3' }, false]]);
  await answer();
  assert.deepEqual([gone().at(-1), await elsewhere()], ['3,7,20', ['3,7,20']]);
  await down(2, 5); // on top of the best ones
  await move(3, 5);
  await up(3, 5);
  await answer();
  assert.equal(link(), 'patches.ICgk'); // 3, 7, 17, 20, 23
  assert.deepEqual([gone().at(-1), await elsewhere()], ['3,7,17,20,23', ['3,7,17,20,23']]);
  await click('.vv-all');
  assert.equal(link(), null);
  const { gone: late, known, store, asked, ...other } = await open(t, {}, '&method=rollout&gone=best.3');
  await other.answer();
  known.open = null;
  store.place.write({ image: 'twins', gone: 'best.2' }, { push: true });
  await settle();
  assert.deepEqual([store.view.gone.value, late()], ['best.2', ['3,7,20']]); // not of the photo that is still there
  await asked('open')
    .at(-1)
    ?.answer(OPEN({ view: 'image=twins' }));
  await settle();
  assert.equal(late().at(-1), '3,7');
});

test('a link that takes away what is not there takes nothing, and a mask of any patches is read as it was written', async (t) => {
  for (const text of ['best.0', 'best.-3', 'best.1e3', 'patches.', 'patches.%E4', 'patches.A.B', '<b>']) {
    const { gone, find } = await open(t, {}, `&method=rollout&gone=${encodeURIComponent(text)}`);
    assert.deepEqual([gone(), find('.vv-note').textContent], [[], ''], text); // the server says why
  }
  const other = await open(t, {}, '&method=rollout&gone=patches.AAAAB'); // patch 24 of 24
  assert.deepEqual(
    [other.gone(), other.text('.vv-note')],
    [[], 'The link takes away patches of another grid; all are here.'],
  );
  await other.down(0, 0);
  assert.deepEqual([other.gone(), other.text('.vv-note')], [['0'], '']);
  const most = await open(t, {}, '&method=rollout&gone=best.99999');
  assert.equal(most.gone()[0].split(',').length, 23); // one is left
  for (const count of [1, 6, 7, 24, 391]) {
    const patches = Array.from({ length: count }, (_, patch) => patch).filter((patch) => patch % 5 !== 1);
    assert.deepEqual(readGone(writeGone(patches), count), { most: 0, patches });
    assert.ok(writeGone(patches).length <= 'patches.'.length + Math.ceil(count / 6));
  }
});

test('another picture begins anew, an error hides the photo until there is a map again', async (t) => {
  const { down, find, text, marks, asked, store, set, known } = await open(t);
  await down(0, 0);
  assert.equal(text('.vv-slider-words'), '4% of patches are gone (1 of 24)');
  const body = { model: 'mini', image: { sample: 'lion' }, edits: '', target: '4', gone: '0,0' };
  assert.deepEqual(asked('without_patches')[0].body, body);
  store.look({ image: 'twins' });
  await settle();
  assert.match(text('.vv-slider-words'), /^drag to take/);
  known.relevance = new Error('Gone.');
  store.look({ image: 'tower' });
  await set({ method: 'relevance' });
  assert.deepEqual([find('.vv-play-below').hidden, text('.vv-empty')], [true, 'Gone.']);
  assert.ok(
    find('.vv-image').hidden && marks.hasAttribute('hidden') && !find('#vv-stage .vv-caption').textContent,
  );
  await set({ method: 'rollout' });
  assert.deepEqual([find('.vv-play-below').hidden, find('.vv-empty').hidden], [false, true]);
  assert.ok(!marks.hasAttribute('hidden'));
});

test('hovering reads the value of a patch, but not while a stroke is drawn', async (t) => {
  const { move, down, up, find, text, marks } = await open(t);
  assert.ok(find('.vv-tip').hidden);
  await move(2, 4);
  assert.deepEqual([text('.vv-tip'), find('.vv-tip').hidden], ['patch (2, 4): 8 (1.90%)', false]);
  await down(2, 4);
  await move(2, 5);
  assert.ok(find('.vv-tip').hidden);
  await up(2, 5);
  await move(0, 0);
  assert.equal(text('.vv-tip'), 'patch (0, 0): 24 (5.70%)');
  marks.fire('pointerleave');
  await settle();
  assert.ok(find('.vv-tip').hidden);
});

test('a finger that taps takes one patch, one that rests brushes, one that swipes takes nothing', async (t) => {
  const { down, move, up, gone, answer, browser, marks, click } = await open(t);
  const finger = { pointerType: 'touch' };
  assert.equal(marks.style.touchAction, 'pan-y pinch-zoom');
  await down(1, 1, finger);
  assert.deepEqual(gone(), []); // not before it is known what it does
  await up(1, 1, finger);
  assert.deepEqual(gone(), ['7']);
  await answer();
  await down(0, 0, finger);
  await move(3, 0, finger); // a swipe
  await up(3, 0, finger);
  assert.deepEqual(gone(), ['7']);
  await down(0, 0, finger);
  browser.pass(REST);
  assert.equal(gone().at(-1), '0,7');
  await answer();
  await move(0, 2, finger);
  assert.equal(gone().at(-1), '0,1,2,7');
  await answer();
  await up(0, 2, finger);
  await move(0, 5, finger);
  assert.equal(gone().at(-1), '0,1,2,7');
  await click('[data-tool=restore]');
  await down(1, 1, finger);
  await up(1, 1, finger);
  assert.equal(gone().at(-1), '0,1,2');
});

test('keys move a cursor from the centre and take its patch away, or put it back; a press puts it away', async (t) => {
  const { find, gone, answer, key, words, places, down } = await open(t);
  const cursor = () => places().find((place) => place.startsWith('vv-cursor'));
  assert.equal((await key('a')).prevented, false);
  assert.equal((await key('ArrowDown')).prevented, true);
  assert.equal(cursor(), 'vv-cursor 30 90'); // the first key only shows it
  await key('ArrowLeft');
  await key('ArrowUp');
  assert.equal(cursor(), 'vv-cursor 20 70');
  await key(' ');
  assert.equal(gone().at(-1), '8');
  await answer();
  await key(' ');
  assert.equal(words(), 'With all patches: lion 90%.');
  for (const name of ['ArrowRight', 'ArrowDown']) for (let i = 0; i < 9; i++) await key(name);
  assert.equal(cursor(), 'vv-cursor 40 130');
  await down(0, 0);
  assert.equal(cursor(), undefined);
  await key('ArrowUp');
  find('.vv-play-stage').fire('blur');
  await settle();
  assert.equal(cursor(), undefined);
});

test('where a map follows a query, it is chosen on the photo by pointer and keys, while the photo is looked at', async (t) => {
  const page = await open(t);
  const { down, key, click, set, place, store, gone, find, known } = page;
  await click('[data-tool=choose]');
  await key('ArrowUp');
  assert.deepEqual(place.written, []); // pointed at alone
  await key('Enter');
  assert.deepEqual(place.written.at(-1), [{ q: '2,3' }, true]); // from no patch to the centre
  await down(1, 4);
  assert.equal(store.view.q.value, '1,4');
  await key('Escape');
  for (const name of ['ArrowDown', 'ArrowRight', 'ArrowRight', ' ']) await key(name);
  assert.equal(store.view.q.value, '2,5');
  for (const name of ['ArrowUp', 'Escape']) await key(name);
  assert.equal(store.view.q.value, '2,5');
  await key('Escape');
  assert.equal(store.view.q.value, '');
  for (const other of ['class', '0,0;1,1', '9,9']) {
    await set({ q: other });
    for (const name of ['ArrowLeft', 'Enter']) await key(name);
    assert.equal(store.view.q.value, '2,3', other);
    await key('Escape');
  }
  await down(0, -1); // outside of what the model received
  assert.equal(store.view.q.value, '2,3');
  await set({ method: 'relevance' });
  assert.deepEqual([find('[data-tool=choose]'), pressed(find('[data-tool=erase]'))], [null, 'true']);
  await set({ method: 'rollout' });
  known.open = null;
  store.look({ image: 'twins' });
  await settle();
  await down(1, 4);
  await key('ArrowUp');
  assert.deepEqual([store.view.q.value, gone()], ['', []]);
});

// --- as the link has it

test('the map is asked for as the link has it, and again where the link changes it', async (t) => {
  const page = await open(t, {}, '&target=7&method=rollout&share=0.25&layer=3&q=2,5');
  const { asked, set, store, text } = page;
  const body = { model: 'mini', image: { sample: 'lion' }, edits: '', attention_share: 0.25 };
  const bodies = () => asked('rollout').map((one) => one.body);
  assert.deepEqual(bodies(), [{ ...body, query: '2,5' }, body]); // the card's explains the output
  await set({ layer: 1, head: 2, style: 'tint' });
  assert.equal(bodies().length, 2);
  await set({ q: '1,2' });
  assert.deepEqual(bodies()[2], { ...body, query: '1,2' });
  const saved = () => savedBy(page.root, page.find('#vv-stage .vv-save'));
  assert.deepEqual(saved(), ['rollout', { ...body, query: '1,2', figure: { style: 'tint' } }]);
  await set({ q: '7,0' }); // which the picture does not have
  assert.match(text('.vv-note'), /no token “7,0” here: the picture has 4 x 6 patches/);
  assert.equal(bodies().length, 3); // as that of the card
  await set({ method: 'relevance', q: 'register 0' });
  assert.match(
    text('#vv-stage .vv-caption'),
    /mini · relevance · for cat · explains the output, not the pinned register 0 · /,
  );
  store.look({ image: 'twins' });
  await settle();
  assert.equal(asked('relevance').at(-1)?.body.image.sample, 'twins');
  await set({ tab: 'look' });
  store.look({ image: 'tower' });
  await settle();
  assert.equal(asked('relevance').at(-1)?.body.image.sample, 'twins'); // none while nobody looks
});

test('a map is on the scale that the link says, with what fell outside the photo', async (t) => {
  const facts = {
    prefix: { class: 0.25, 'register 0': 0.5, 'register 1': 0.125 },
    suffix: { 'detection 0': 1, 'detection 1': 2 },
  };
  const answers = {
    methods: METHODS,
    rollout: mapOf([1], facts),
    comparison: compared('rollout', 'relevance'),
    own_part: mapOf([2], { signed: true, unit: 'less', class_blind: false }),
  };
  const page = await open(t, answers);
  const bar = () => ['low', 'high', 'unit'].map((name) => page.text(`#vv-stage .vv-${name}`));
  assert.equal(page.text('.vv-note'), 'Outside the photo: class 25.0%, registers 62.5%, detection 300.0%.');
  await page.set({ ruler: 'share', clip: false });
  assert.deepEqual(bar(), ['0', '0.333', 'share of the map']); // 5 of 15, in either map
  assert.match(
    page.text('#vv-stage .vv-caption'),
    /scale: one for all methods: each patch's share of its map · /,
  );
  assert.deepEqual(page.asked('comparison')[0].body.target, '4');
  const saved = () => savedBy(page.root, page.find('#vv-stage .vv-save'));
  const about = { model: 'mini', image: { sample: 'lion' }, edits: '' };
  assert.deepEqual(saved(), ['rollout', { ...about, figure: { clip: false, shared_scale: true } }]);
  await page.set({ ruler: 'only' });
  assert.deepEqual([bar(), page.find('.vv-sides-words').hidden], [['0', '0', 'less'], true]); // the maps are alike
  const own = { ...about, method: 'rollout', target: '4' };
  assert.deepEqual(page.asked('own_part')[0].body, own);
  assert.deepEqual(saved(), ['own_part', { ...own, figure: { clip: false } }]);
  await page.set({ share: 0.25 });
  assert.deepEqual(page.asked('own_part')[1].body.options, { attention_share: 0.25 });
});

test('of two classes each has its map, and both are subtracted where the method has one for each', async (t) => {
  const apart = {
    ...mapOf([2], { signed: true, unit: 'share of the map, subtracted' }),
    words: 'Most for lion.',
  };
  const page = await open(t, { class_difference: apart }, '&method=relevance&target=4-7&sides=difference');
  const { text, set, asked, all } = page;
  assert.equal(text('.vv-sides-words'), 'Most for lion.');
  assert.equal(text('#vv-stage .vv-unit'), 'share of the map, subtracted; orange lion, blue cat');
  assert.deepEqual(texts(all('.vv-side')), [
    'for lion',
    'for cat',
    'lion, and not cat',
    "lion's lead over cat",
  ]);
  assert.deepEqual(all('.vv-side').map(pressed), ['false', 'false', 'true', 'false']);
  const { method, target } = asked('class_difference')[0].body;
  const [name, { figure }] = savedBy(page.root, page.find('#vv-stage .vv-save'));
  assert.deepEqual([name, figure], ['class_difference', {}]);
  assert.deepEqual([method, target], ['relevance', '4-7']);
  assert.deepEqual(new Set(asked('relevance').map(({ body }) => body.target)), new Set(['4', '7', '4-7']));
  await page.click('[data-side=other]');
  assert.deepEqual(page.place.written.at(-1), [{ sides: 'other' }, false]);
  assert.match(text('#vv-stage .vv-caption'), / · for cat · scale: own/);
  await set({ method: 'rollout', sides: 'difference' });
  assert.equal(text('.vv-note'), 'Rollout is the same for every class, so there is nothing to subtract.');
  assert.deepEqual(
    [all('.vv-side').length, text('.vv-sides-words')],
    [0, 'Half of the map lies on 2 of 6 patches.'],
  );
});

test('of values nothing is compared by bars, and an embedding has one line', async (t) => {
  const entry = (/** @type {number} */ index, /** @type {number} */ value) => ({
    index,
    name: `output ${index}`,
    value,
  });
  const values = {
    classes: [entry(1, 12.3456), entry(0, -3)],
    chosen: 0,
    other: null,
    words: '',
    name: 'output 0',
    link: '0',
  };
  const page = await open(t, { target: values });
  const lines = () => texts(page.all('.vv-answer .vv-number'));
  assert.deepEqual([lines(), page.words()], [['-3', '12.3'], 'With all patches: output 0 -3.']);
  await page.down(0, 0);
  const top = { names: ['output 0', 'output 1', 'output 2'], indices: [0, 1, 2], unit: 'value' };
  await page.answer({
    top,
    arrays: { 'top.scores': { data: [1, 2, 3] }, before: { data: [-3, 12.3456, 3] } },
  });
  assert.deepEqual(lines(), ['-3 → 1', '12.3 → 2', '3 → 3']);
  assert.equal(page.all('.vv-answer-tick').length, 0);
  const sentence = {
    classes: [{ name: 'a dog', index: 0, value: 3.1, cosine: 0.31 }],
    chosen: 0,
    other: null,
  };
  const written = await open(t, { target: { ...sentence, words: '', name: 'a dog', link: '0' } });
  const said = () => texts(written.all('.vv-answer .vv-number'));
  assert.deepEqual(said(), ['0.31']);
  await written.down(0, 0);
  await written.answer({
    top: { names: ['a dog'], indices: [0], unit: 'value' },
    arrays: { 'top.scores': { data: [2] }, before: { data: [3.1] } },
  });
  assert.deepEqual(said(), ['0.31 → 0.20']);
  const alone = await open(t, { target: { classes: [], words: 'None.', name: '', link: '' } });
  assert.deepEqual(texts(alone.all('.vv-answer > *')), ['similarity to the whole photo', '', '1.00']);
  await alone.down(0, 0);
  const alike = { names: ['similarity to the whole photo'], indices: [], unit: 'cosine similarity' };
  await alone.answer({
    words: '',
    top: alike,
    arrays: { 'top.scores': { data: [0.5] }, before: { data: [1] } },
  });
  assert.deepEqual(texts(alone.all('.vv-target-answer .vv-number')), ['1.00 → 0.50']);
  assert.equal(alone.asked('without_patches')[0].body.target, null);
});

const named = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any} */ more) => ({
  ...{ name, link: name, label, sentence: `${label}.` },
  ...more,
});
const OPTIONS = [
  named('attention_share', 'attention share', { link: 'share', default: 0.5, low: 0, high: 1, step: 0.05 }),
  named('head_fusion', 'head fusion', { link: 'fusion', default: 'mean', choices: ['mean', 'max', 'min'] }),
  named('last', 'last layer', { default: -1, low: 0, high: 5, is_layer: true }),
];
const DRAWING = [
  named('style', 'style', { default: 'light', choices: ['light', 'tint', 'heat'] }),
  named('table', 'colours of heat', {
    ...{ link: 'colors', default: 'viridis', choices: ['viridis', 'magma', 'cividis', 'inferno', 'gray'] },
  }),
  named('smooth', 'smooth', { default: true }),
];

test('the controls are those of the map on the stage, and say what the link has', async (t) => {
  const methods = [{ ...METHODS[0], controls: OPTIONS }, METHODS[1]];
  const page = await open(t, { methods, drawing: DRAWING }, '&method=rollout&share=0.25&style=tint&last=-2');
  const { place, find } = page;
  const option = (/** @type {string} */ name) => find(`[data-option=${name}]`);
  const choice = (/** @type {string} */ name, /** @type {string} */ value) =>
    find(`[data-option=${name}] [data-value="${value}"]`);
  const press = async (/** @type {any} */ node) => {
    node.click();
    await settle();
    return place.written.at(-1);
  };
  assert.equal(find('.vv-map-formula').innerHTML, '<p>Rollout</p>');
  const share = option('attention_share');
  assert.deepEqual([share.value, option('last').value, option('last').max], ['0.25', '1', '2']);
  assert.deepEqual([choice('query', 'class'), choice('style', 'tint'), option('smooth')].map(pressed), [
    'true',
    'true',
    'true',
  ]);
  assert.ok(option('table').closest('.vv-option').hidden);
  assert.deepEqual(await press(choice('head_fusion', 'max')), [{ fusion: 'max' }, false]);
  assert.equal(pressed(choice('head_fusion', 'max')), 'true');
  assert.deepEqual(await press(choice('style', 'heat')), [{ style: 'heat', alpha: '0.55' }, false]);
  const table = option('table');
  assert.deepEqual([table.closest('.vv-option').hidden, table.value], [false, 'viridis']);
  table.value = 'magma';
  table.fire('change');
  assert.deepEqual(place.written.at(-1), [{ colors: 'magma' }, false]);
  assert.deepEqual(await press(option('smooth')), [{ smooth: '0' }, false]);
  share.value = '0.75';
  share.fire('input');
  await settle();
  assert.equal(share.parentElement.querySelector('output').textContent, '0.75');
  assert.deepEqual(place.written.at(-1), [{ smooth: '0' }, false]); // while it is moved nothing is asked
  page.browser.pass(200);
  await settle();
  assert.deepEqual(place.written.at(-1), [{ share: '0.75' }, false]);
  assert.deepEqual(await press(find('[aria-label="Reset attention share to its default"]')), [
    ...[{ share: null }, false],
  ]);
  assert.equal(share.value, '0.5');
  assert.deepEqual(await press(choice('query', 'class')), [{ q: 'class' }, true]);
  await page.set({ q: '1,2' });
  assert.equal(pressed(choice('query', 'class')), 'false');
  assert.equal(option('attention_share'), share); // which keeps the focus
  await page.set({ method: 'relevance' });
  assert.equal(find('.vv-map-formula').innerHTML, '<p>Relevance</p>');
  assert.equal(option('attention_share'), null);
});

// --- of two classes

const CURVES = { deletion: [3, -1, -1], insertion: [0, 0.5, 1], reverse: [1, 3, 0] };
const MEASURED = {
  ...trustBy(-1, CURVES, {
    names: ['lion', 'cat'],
    random: [1, 0, 2],
    band: { value_range: ['-inf', 'inf'] },
  }),
  words: 'It is lost when 50% are gone.',
};

const HALF = { ...trustBy(-1, { deletion: CURVES.deletion }, MEASURED.facts), words: undefined };
const VERDICT = 'How far to believe it: mean lead −1.00, at random 1.00';

/** @param {any} t @param {any} [kept] */
async function openLead(t, kept) {
  const answers = {
    kept: { trust: kept },
    costs: { trust: 'about 9 s' },
    legrad: mapOf([3]),
    class_difference: mapOf([2]),
  };
  const methods = [...METHODS, { ...METHODS[1], name: 'legrad', label: 'LeGrad' }];
  const page = await open(t, { ...answers, methods }, '&target=4-7&method=relevance&sides=difference');
  const { text, click, all } = page;
  return {
    ...page,
    verdict: () => text('.vv-belief > .vv-title'),
    said: () => texts(all('.vv-said > p')),
    far: () => ['words', 'amount'].map((name) => text(`.vv-belief .vv-job-${name}`)),
    measure: () => click('.vv-test'),
  };
}

test('the difference of two classes is tested as any map on the photo, before the cards', async (t) => {
  const { asked, find, far, verdict, said, set, measure, text, all } = await openLead(t);
  assert.deepEqual(far(), ['Takes its patches away, beside random orders of patches; about 9 s.', '']);
  assert.equal(text('.vv-test'), 'Test this map, then the others');
  await measure();
  const [first] = asked('trust');
  const body = { model: 'mini', image: { sample: 'lion' }, edits: '', method: 'relevance', target: '4-7' };
  assert.deepEqual(first.body, { ...body, sides: 'difference' });
  await first.tell({ share: 0.5, left: '', preview: HALF });
  const half = ['Measured as its patches go, not yet as they come back.'];
  assert.deepEqual([verdict(), said()], [VERDICT, half]);
  assert.equal(text('.vv-key-words'), 'most for lion first');
  await first.answer(MEASURED);
  assert.deepEqual([verdict(), said()], [VERDICT, ['It is lost when 50% are gone.']]);
  assert.equal(asked('trust')[1].body.sides, undefined); // of a card
  await asked('trust')[1].answer(trustBy());
  assert.equal(all('.vv-dot').length, 1); // the difference has no card
  await set({ sides: 'one' });
  assert.notEqual(verdict(), VERDICT);
  assert.ok(!find('.vv-belief').hidden);
});

test('what is known of the difference is said at once, of this one alone', async (t) => {
  const { verdict, find } = await openLead(t, MEASURED);
  assert.deepEqual([verdict(), find('.vv-belief .vv-fall').hidden], [VERDICT, false]);
  const { asked, measure, ...other } = await openLead(t);
  await measure();
  await asked('trust')[0].answer(MEASURED);
  assert.equal(other.verdict(), VERDICT);
  await other.set({ method: 'legrad' });
  assert.equal(other.verdict(), 'How far to believe it');
  await other.set({ target: '4-2' });
  assert.ok(asked('trust')[1].stop.aborted);
});

test('the curve is of the lead, from either end of the map, with 0 as a line and the slider on it', async (t) => {
  const { asked, find, all, text, measure, slide, click } = await openLead(t);
  await measure();
  await asked('trust')[0].answer(MEASURED);
  const title = 'Relevance, lion and not cat: the lead of lion over cat';
  assert.equal(text('.vv-fall-title'), `${title} falls as its orange patches go`);
  assert.equal(text('.vv-axis'), 'lead of lion over cat, in logits');
  assert.deepEqual(texts(all('.vv-belief [data-test]')), ['orange away', 'orange back', 'blue away']);
  assert.equal(find('.vv-plot-line').getAttribute('d'), 'M0.00 0.00L50.00 100.00L100.00 100.00');
  assert.equal(find('.vv-plot-rules').getAttribute('d'), 'M0 75.00H100');
  assert.deepEqual(texts(all('.vv-plot-left span')), ['3.00', '−1.00']);
  await slide(2);
  const now = find('.vv-now');
  assert.deepEqual([now.hidden, Math.round(parseFloat(now.style.left))], [false, 8]);
  await click('[data-test=reverse]');
  assert.equal(text('.vv-fall-title'), `${title} first grows as its blue patches go`);
  assert.equal(text('.vv-key-words'), 'most for cat first');
  assert.equal(find('.vv-now'), null);
  await click('[data-test=insertion]');
  assert.equal(text('.vv-plot-below span'), 'no patch there');
});
