// The stage of the Explain tab: the chosen map on the photo, the patches that are taken away there, and how it follows the link.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { REST } from '../../vit_viz/explorer/long_press.js';
import { mountStage, openStage } from './stage_part.js';
import { STAGED } from './staged.js';
import { settle } from './visit.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

const line = { name: 'lion <b>', now: 0.5, text: '50%', target: true };
const whole = { words: 'With all patches: lion 50%.', top: [line] };
const play = {
  ...STAGED,
  save: '/map/x?save',
  caption: 'a caption',
  bar: { low: '0', high: '1', unit: 'share', stops: ['red', 'blue'] },
  cells: {
    grid: [4, 6],
    region: [10, 30, 40, 120],
    texts: Array.from({ length: 24 }, (_, i) => `value ${i}`),
  },
  whole,
};

/** A stage whose photo is drawn twice as large as it is, at (100, 50). */
function playing(/** @type {any} */ value = play) {
  const part = mountStage(value);
  part.find('image').box = { left: 100, top: 50, width: 360, height: 120 };
  const event = (/** @type {number} */ row, /** @type {number} */ col, more = {}) => ({
    clientY: 50 + 2 * (10 + 10 * (row + 0.5)),
    clientX: 100 + 2 * (30 + 20 * (col + 0.5)),
    pointerId: 8,
    pointerType: 'mouse',
    ...more,
  });
  const fire =
    (/** @type {string} */ name) =>
    (/** @type {number} */ r, /** @type {number} */ c, more = {}) =>
      part.find('play-marks').fire(name, event(r, c, more));
  const [down, move, up] = ['pointerdown', 'pointermove', 'pointerup'].map(fire);
  const answer = async (/** @type {any} */ more = {}) => {
    const said = more instanceof Error ? more : { words: 'still a lion', top: [], ...more };
    await part.rest.at(-1)?.answer(said);
  };
  /** @type {number[]} */
  const taken = [];
  part.browser.window.addEventListener('vv-taken', (/** @type {any} */ e) => taken.push(e.detail));
  const gone = () => part.find('slider-words').textContent;
  return { ...part, down, move, up, answer, taken, gone };
}

test('a stage shows the map and what the model says of the whole photo, and asks nothing', () => {
  const { asked, find, gone, element } = playing();
  assert.deepEqual(asked(), []);
  assert.equal(find('image').src, '/map/x');
  assert.equal(/** @type {any} */ (find('image')).alt, 'A map.');
  assert.equal(find('image').style.aspectRatio, '3 / 1');
  assert.equal(find('play-marks').getAttribute('viewBox'), '0 0 180 60');
  assert.deepEqual([find('caption').textContent, find('low').textContent], ['a caption', '0']);
  assert.equal(gone(), 'drag to take the best patches away, or brush over the photo');
  assert.deepEqual([find('all').disabled, find('choose').hidden], [true, true]);
  assert.equal(/** @type {any} */ (find('most')).max, '3');
  assert.equal(
    find('most').getAttribute('aria-label'),
    'How many of the best patches are taken away, by Rollout',
  );
  const [entry] = find('play-top').children;
  assert.deepEqual(texts(entry.children), ['lion <b>', '', '50%']);
  assert.ok(entry.classList.contains('vv-target-answer'));
  assert.equal(element.querySelectorAll('.vv-answer-tick').length, 0); // nothing to compare with yet
  assert.equal(find('play-words').textContent, 'With all patches: lion 50%.');
});

test('a stroke takes every patch on its way, and what is taken is marked where it was', async () => {
  const { down, move, up, answer, asked, find, gone } = playing();
  down(0, 1);
  await answer();
  move(2, 5);
  await answer();
  up(2, 5);
  move(3, 5);
  assert.deepEqual(asked(), ['1', '1,8,9,16,17']);
  const first = find('play-marks').children[1];
  assert.equal(first.className, 'vv-gone');
  assert.deepEqual(
    ['x', 'y', 'width', 'height'].map((name) => Number(first.getAttribute(name))),
    [30 + 20 * 2, 10 + 10, 20, 10],
  );
  assert.equal(gone(), '21% of the patches are gone (5 of 24)');
  assert.equal(find('all').disabled, false);
  assert.equal(find('play-marks').captured, 8);
  assert.ok(find('play-stage').focused);
});

test('a stroke outside what the model received, or with another button, takes nothing', () => {
  const { find, asked } = playing();
  const marks = find('play-marks');
  const [y, x] = [50 + 2 * 15, 100 + 2 * 35];
  for (const more of [
    { clientX: 100, clientY: y },
    { clientX: x, clientY: 50 + 2 * 9 },
    { clientX: x, clientY: 50 + 2 * 51 },
    { clientX: 100 + 2 * 151, clientY: y },
    { clientX: x, clientY: y, button: 2 },
  ]) {
    const event = marks.fire('pointerdown', { pointerId: 1, pointerType: 'mouse', ...more });
    assert.equal(event.prevented, false);
  }
  assert.deepEqual(asked(), []);
  const event = marks.fire('pointerdown', { pointerId: 1, pointerType: 'mouse', clientX: x, clientY: y });
  assert.equal(event.prevented, true);
});

test('one question is under way at a time, and the last one is asked when it is answered', async () => {
  const { down, up, answer, asked, rest, browser, find } = playing();
  for (const col of [0, 1, 2]) {
    down(0, col);
    up(0, col);
  }
  assert.deepEqual(asked(), ['0']);
  assert.equal(find('play-top').getAttribute('aria-busy'), 'true');
  await answer();
  assert.deepEqual(asked(), ['0', '0,1,2']);
  assert.equal(find('play-top').getAttribute('aria-busy'), 'true');
  await answer();
  assert.deepEqual(asked(), ['0', '0,1,2']);
  assert.equal(find('play-top').getAttribute('aria-busy'), 'false');
  down(1, 0);
  down(1, 1);
  assert.equal(asked().length, 3);
  browser.pass(10_001); // the answer was lost
  down(1, 2);
  assert.deepEqual(asked()[3], '0,1,2,6,7,8');
  assert.deepEqual([rest[2].stop.aborted, rest[3].stop.aborted], [true, false]);
});

test('an answer says what changed, or why there is none, until the next one', async () => {
  const { answer, find, down } = playing();
  down(0, 0);
  await answer({ top: [{ ...line, now: 0.25, before: 0.5, text: '50% → 25%' }] });
  assert.equal(find('play-words').textContent, 'still a lion');
  const [entry] = find('play-top').children;
  assert.deepEqual(texts(entry.children), ['lion <b>', '', '50% → 25%']);
  const track = entry.children[1];
  assert.deepEqual([track.children[0].style.width, track.children[1].style.left], ['25%', '50%']);
  down(0, 1);
  await answer(new Error('Too many.'));
  assert.deepEqual([find('play-error').textContent, find('play-error').hidden], ['Too many.', false]);
  assert.equal(find('play-words').textContent, 'still a lion');
  assert.equal(find('play-top').getAttribute('aria-busy'), 'false');
  down(0, 2);
  await answer({ top: [{ ...line, now: -1 }] });
  assert.equal(find('play-top').children[0].children[1].children[0].style.width, '0%');
  assert.ok(find('play-error').hidden);
});

test('another target is asked about at once, an answer about the one before is not shown', async () => {
  const { asked, rest, down, show, find, answer } = playing();
  down(0, 0);
  show({
    ...play,
    view: 'image=x&target=4',
    target: '4',
    whole: { words: 'With all patches: cat 1%.', top: [] },
  });
  assert.deepEqual(asked(), ['0', '0']);
  assert.deepEqual([rest[0].stop.aborted, rest[1].data.view], [true, 'image=x&target=4']);
  await rest[0].answer({ words: 'of the old one', top: [] });
  assert.notEqual(find('play-words').textContent, 'of the old one');
  assert.equal(find('play-top').getAttribute('aria-busy'), 'true');
  await answer({ words: 'of the new one' });
  assert.equal(find('play-words').textContent, 'of the new one');
  find('all').click();
  assert.equal(find('play-words').textContent, 'With all patches: cat 1%.');
});

test('patches are put back by the other brush, all at once by a button, which needs no answer', async () => {
  const { down, find, asked, answer } = playing();
  down(0, 0);
  await answer();
  down(0, 1);
  await answer();
  find('restore').click();
  assert.deepEqual([pressed(find('erase')), pressed(find('restore'))], ['false', 'true']);
  down(0, 0);
  await answer();
  down(0, 0); // nothing changes: nothing is asked
  assert.deepEqual(asked(), ['0', '0,1', '1']);
  find('erase').click();
  assert.deepEqual([pressed(find('erase')), pressed(find('restore'))], ['true', 'false']);
  down(2, 2);
  find('most').value = '2';
  find('all').click();
  assert.deepEqual([asked().at(-1), find('most').value], ['1,14', '0']);
  assert.equal(find('play-words').textContent, 'With all patches: lion 50%.');
  await answer({ words: 'came late' });
  assert.equal(find('play-words').textContent, 'With all patches: lion 50%.');
});

test('once all is back, a new stroke is asked about at once and the answer before it is not shown', async () => {
  const { down, find, asked, rest } = playing();
  down(0, 0);
  find('all').click();
  down(3, 3);
  assert.deepEqual(asked(), ['0', '21']);
  assert.ok(rest[0].stop.aborted);
  await rest[0].answer({ words: 'of the first stroke', top: [] });
  assert.notEqual(find('play-words').textContent, 'of the first stroke');
  await rest[1].answer({ words: 'of the second', top: [] });
  assert.equal(find('play-words').textContent, 'of the second');
});

test('the slider takes the best patches of the map and says so to the curve; a stroke puts it back', async () => {
  const { find, asked, answer, down, show, taken, gone } = playing();
  find('most').value = '2';
  find('most').fire('input');
  assert.deepEqual(asked().at(-1), '7,3');
  assert.equal(gone(), 'the best 8% of the patches are gone (2 of 24): drag, or brush over the photo');
  assert.equal(taken.at(-1), 2 / 4);
  await answer();
  show({ ...play, order: '5,6,7' });
  assert.deepEqual(asked().at(-1), '5,6'); // another map of the same picture
  assert.equal(taken.at(-1), 2 / 3);
  await answer();
  down(0, 0);
  assert.deepEqual([asked().at(-1), find('most').value, taken.at(-1)], ['5,6,0', '0', 0]);
  await answer();
  const before = asked().length;
  show({ ...play });
  assert.equal(asked().length, before);
});

test('another picture begins anew, an error hides the photo until there is a map again', () => {
  const { down, show, find, rest, gone } = playing();
  down(0, 0);
  assert.equal(gone(), '4% of the patches are gone (1 of 24)');
  show(null);
  assert.ok(find('play-picture').classList.contains('vv-busy'));
  assert.equal(find('play-below').hidden, false);
  show({ ...play, key: 'new', order: '' });
  assert.match(gone(), /^drag to take/);
  assert.equal(/** @type {any} */ (find('most')).max, '0');
  show('Gone.');
  assert.deepEqual([find('play-below').hidden, find('empty').textContent], [true, 'Gone.']);
  assert.ok(find('image').hidden && find('play-marks').hasAttribute('hidden'));
  show({ ...play, key: 'new' });
  assert.deepEqual([find('play-below').hidden, find('empty').hidden], [false, true]);
  assert.ok(!find('play-marks').hasAttribute('hidden'));
  assert.deepEqual(rest[0].data, { view: 'image=x', target: '3', gone: '0' });
});

test('hovering reads the value of a patch, but not while a stroke is drawn', () => {
  const { move, down, up, find } = playing();
  /** @type {any} */ (find('image')).onload?.();
  move(2, 4);
  assert.deepEqual([find('tip').textContent, find('tip').hidden], ['row 2, column 4: value 16', false]);
  down(2, 4);
  move(2, 5);
  assert.equal(find('tip').hidden, true);
  up(2, 5);
  move(0, 0);
  assert.equal(find('tip').textContent, 'row 0, column 0: value 0');
  find('play-marks').fire('pointerleave');
  assert.equal(find('tip').hidden, true);
});

test('where a map follows a query, it is chosen on the photo by pointer and keys', () => {
  const { find, told, down, show, asked } = playing({ ...play, pick: true });
  assert.equal(find('choose').hidden, false);
  find('choose').click();
  assert.deepEqual(
    ['erase', 'restore', 'choose'].map((name) => pressed(find(name))),
    ['false', 'false', 'true'],
  );
  down(1, 2);
  const stage_ = find('play-stage');
  stage_.fire('keydown', { key: 'ArrowLeft' });
  stage_.fire('keydown', { key: ' ' });
  assert.deepEqual(told, [
    ['pick', 8],
    ['move', [0, -1]],
  ]);
  show({ ...play, pick: false });
  assert.deepEqual([find('choose').hidden, pressed(find('erase'))], [true, 'true']);
  down(1, 2);
  assert.deepEqual(asked(), ['8']);
});

test('a finger that taps takes one patch, one that rests brushes, one that swipes takes nothing', async () => {
  const { down, move, up, asked, answer, browser, find } = playing();
  const finger = { pointerType: 'touch' };
  assert.equal(find('play-marks').style.touchAction, 'pan-y pinch-zoom');
  down(1, 1, finger);
  assert.deepEqual(asked(), []); // not before it is known what it does
  up(1, 1, finger);
  assert.deepEqual(asked(), ['7']);
  await answer();
  down(0, 0, finger);
  move(3, 0, finger); // a swipe
  up(3, 0, finger);
  assert.deepEqual(asked(), ['7']);
  down(0, 0, finger);
  browser.pass(REST);
  assert.deepEqual(asked().at(-1), '7,0');
  await answer();
  move(0, 2, finger);
  assert.deepEqual(asked().at(-1), '7,0,1,2');
  await answer();
  up(0, 2, finger);
  move(0, 5, finger);
  assert.deepEqual(asked().at(-1), '7,0,1,2');
  find('restore').click();
  down(1, 1, finger);
  up(1, 1, finger);
  assert.deepEqual(asked().at(-1), '0,1,2');
});

test('a fine grid is brushed three patches wide, up to its edges', async () => {
  const grid = [24, 5];
  const { find, asked, answer } = playing({ ...play, grid });
  const at = (/** @type {number} */ row, /** @type {number} */ col) => ({
    clientY: 50 + 2 * (10 + (40 / 24) * (row + 0.5)),
    clientX: 100 + 2 * (30 + 24 * (col + 0.5)),
    pointerType: 'mouse',
  });
  find('play-marks').fire('pointerdown', at(0, 4));
  assert.equal(asked().at(-1), '3,4,8,9');
  await answer();
  find('play-marks').fire('pointerdown', at(23, 0));
  assert.equal(asked().at(-1), '3,4,8,9,110,111,115,116');
});

test('keys move a cursor from the centre and take its patch away, or put it back', async () => {
  const { find, asked, answer } = playing();
  const box = find('play-stage');
  const key = (/** @type {string} */ name) => box.fire('keydown', { key: name });
  const cursor = () => {
    const mark = find('play-marks').children.find((node) => node.className === 'vv-cursor');
    return mark && [Number(mark.getAttribute('y')), Number(mark.getAttribute('x'))];
  };
  assert.equal(key('a').prevented, false);
  assert.equal(key('ArrowDown').prevented, true);
  assert.deepEqual(cursor(), [10 + 10 * 2, 30 + 20 * 3]); // the first key only shows it
  key('ArrowLeft');
  key('ArrowUp');
  assert.deepEqual(cursor(), [20, 70]);
  key(' ');
  assert.equal(asked().at(-1), '8');
  await answer();
  key(' ');
  assert.equal(find('play-words').textContent, 'With all patches: lion 50%.');
  for (let i = 0; i < 9; i++) key('ArrowRight');
  for (let i = 0; i < 9; i++) key('ArrowDown');
  assert.deepEqual(cursor(), [40, 130]);
  for (let i = 0; i < 9; i++) key('ArrowLeft');
  for (let i = 0; i < 9; i++) key('ArrowUp');
  assert.deepEqual(cursor(), [10, 30]);
  box.fire('blur');
  assert.equal(cursor(), undefined);
});

// --- as the link has it

const map = { ...play, formula: '<p>A</p>', options: [], drawing: [] };
const rollout = [
  {
    ...{ name: 'query', link: 'q', label: 'from which token', sentence: 'Where it begins.' },
    ...{ default: 'class', choices: ['class', 'register 0'] },
  },
  {
    ...{ name: 'attention_share', link: 'share', label: 'attention share', sentence: 'How much.' },
    ...{ default: 0.5, low: 0, high: 1, step: 0.05 },
  },
  {
    ...{ name: 'head_fusion', link: 'fusion', label: 'head fusion', sentence: 'How heads become one.' },
    ...{ default: 'mean', choices: ['mean', 'max', 'min'] },
  },
  {
    ...{ name: 'last', link: 'last', label: 'last layer', sentence: 'The last.' },
    ...{ default: -1, low: 0, high: 5, layers: 6 },
  },
];
const drawing = [
  {
    ...{ name: 'style', link: 'style', label: 'style', sentence: 'How it is drawn.' },
    ...{ default: 'light', choices: ['light', 'tint', 'heat'] },
  },
  {
    ...{ name: 'alpha', link: 'alpha', label: 'strength', sentence: 'How much.' },
    ...{ default: 1, low: 0, high: 1, step: 0.05 },
  },
  {
    ...{ name: 'table', link: 'colors', label: 'colours of heat', sentence: 'Of heat.' },
    ...{ default: 'viridis', choices: ['viridis', 'magma', 'cividis', 'gray'] },
  },
  { name: 'smooth', link: 'smooth', label: 'smooth', sentence: 'Between.', default: true },
];
const option = (/** @type {any} */ page, /** @type {string} */ name) =>
  page.element.querySelector(`[data-option=${name}]`);
const choice = (/** @type {any} */ page, /** @type {string} */ name, /** @type {string} */ value) =>
  option(page, name).querySelector(`[data-value=${value}]`);

test('the map is asked for as the link has it, and again where the link changes it', async () => {
  const page = await openStage('&target=7&method=rollout&share=0.25&layer=3');
  assert.deepEqual(Object.fromEntries(new URLSearchParams(page.asked.stage[0].data.view)), {
    ...{ image: 'lion', target: '7', method: 'rollout', share: '0.25' },
  });
  assert.deepEqual(Object.keys(page.asked.stage[0].data), ['view']);
  assert.ok(page.find('play-picture').classList.contains('vv-busy') && page.find('play-below').hidden);
  await page.asked.stage[0].answer(map);
  assert.equal(page.find('image').src, '/map/x');
  page.store.set({ layer: 1, head: 2 });
  await settle();
  assert.equal(page.asked.stage.length, 1);
  page.store.set({ q: '1,2' });
  await settle();
  assert.equal(page.asked.stage.length, 2);
  assert.ok(page.find('play-picture').classList.contains('vv-busy') && !page.find('play-below').hidden);
  await page.asked.stage[1].answer(new Error('No such token.'));
  assert.equal(page.find('empty').textContent, 'No such token.');
  page.turn.value += 1;
  await page.asked.stage[2].answer(map);
  assert.ok(page.find('empty').hidden);
});

test('a map of what is looked at no longer never comes, and none is made while nobody looks', async () => {
  const page = await openStage();
  page.store.look({ image: 'twins' });
  await settle();
  assert.ok(page.asked.stage[0].stop.aborted);
  await page.asked.stage[1].answer({ ...map, key: 'twins', caption: 'of the twins' });
  await page.asked.stage[0].answer(map);
  assert.equal(page.find('caption').textContent, 'of the twins');
  page.store.set({ explain: 'parts' });
  page.store.set({ method: 'rollout' });
  await settle();
  page.store.set({ tab: 'look', explain: 'why' });
  page.turn.value += 1;
  await settle();
  assert.equal(page.asked.stage.length, 2);
  page.store.set({ tab: 'explain' });
  await settle();
  assert.equal(page.asked.stage.length, 3);
});

test('a map that took long comes onto the stage once it was made, where another one stands for it', async () => {
  const page = await openStage('&method=occlusion');
  const made = () => page.browser.window.fire('vv-map-made');
  made(); // while the answer is on its way, which may be from before
  await settle();
  assert.equal(page.asked.stage.length, 2);
  await page.asked.stage[1].answer({ ...map, shows: 'relevance', note: 'Relevance is shown instead.' });
  made();
  await settle();
  await page.asked.stage[2].answer({ ...map, shows: 'occlusion' });
  assert.ok(page.find('note').hidden);
  made();
  await settle();
  assert.equal(page.asked.stage.length, 3);
});

test('what is left without patches is asked of the map on the stage', async () => {
  const page = await openStage('&target=7');
  await page.asked.stage[0].answer(map);
  page.store.set({ target: '8' }); // whose map is on its way
  /** @type {any} */ (page.find('most')).value = '1';
  page.find('most').fire('input');
  assert.deepEqual(page.asked.without[0].data, { view: 'image=lion&target=7', gone: '7' });
});

test('patches that are chosen on the photo, and those beside them, are the query, where the photo is still looked at', async () => {
  const page = await openStage('&method=rollout');
  await page.asked.stage[0].answer({ ...map, pick: true });
  page.find('image').box = { left: 0, top: 0, width: 180, height: 60 };
  page.find('choose').click();
  const press = (/** @type {number} */ x, /** @type {number} */ y) =>
    page.find('play-marks').fire('pointerdown', { clientX: x, clientY: y, pointerType: 'mouse' });
  const key = (/** @type {string} */ name) => page.find('play-stage').fire('keydown', { key: name });
  const query = () => page.store.view.q.value;
  key('ArrowUp');
  assert.equal(query(), '2,3'); // from no patch to the centre
  assert.deepEqual(page.place.written.at(-1), [{ q: '2,3' }, true]);
  press(30 + 20 * 4.5, 10 + 10 * 1.5);
  assert.equal(query(), '1,4');
  for (const name of ['ArrowDown', 'ArrowRight', 'ArrowRight']) key(name);
  assert.equal(query(), '2,5');
  for (const other of ['class', '0,0;1,1', '9,9']) {
    page.store.set({ q: other });
    key('ArrowLeft');
    assert.equal(query(), '2,3', other);
  }
  press(29, 15); // outside what the model received
  assert.equal(query(), '2,3');
  page.store.look({ image: 'twins' });
  press(30 + 20 * 4.5, 10 + 10 * 1.5);
  key('ArrowUp');
  assert.equal(query(), '');
});

test('one of two classes is chosen by its small map', async () => {
  const page = await openStage('&target=1-2&sides=difference');
  const sides = ['one', 'difference'].map((side) => ({
    ...{ side, label: side, chosen: side === 'difference', src: `/${side}.png` },
  }));
  await page.asked.stage[0].answer({ ...map, sides });
  const [one, difference] = page.find('sides').children;
  assert.deepEqual([pressed(one), pressed(difference)], ['false', 'true']);
  one.click();
  assert.deepEqual(page.place.written.at(-1), [{ sides: 'one' }, false]);
});

test('the controls are those of the map on the stage, and say what the link has', async () => {
  const page = await openStage('&method=rollout&share=0.25&style=tint&last=-2');
  await page.asked.stage[0].answer({ ...map, options: rollout, drawing });
  assert.equal(page.find('map-formula').innerHTML, '<p>A</p>');
  assert.deepEqual([option(page, 'attention_share').value, option(page, 'last').value], ['0.25', '4']);
  assert.equal(option(page, 'last').max, '5');
  assert.equal(pressed(choice(page, 'query', 'class')), 'true');
  assert.equal(pressed(choice(page, 'style', 'tint')), 'true');
  assert.equal(pressed(option(page, 'smooth')), 'true');
  assert.ok(option(page, 'table').closest('.vv-option').hidden);
  const share = option(page, 'attention_share');
  choice(page, 'head_fusion', 'max').click();
  assert.deepEqual(page.place.written.at(-1), [{ fusion: 'max' }, false]);
  assert.equal(pressed(choice(page, 'head_fusion', 'max')), 'true'); // before there is an answer
  choice(page, 'style', 'heat').click();
  assert.deepEqual(page.place.written.at(-1), [{ style: 'heat', alpha: '0.55' }, false]);
  assert.ok(!option(page, 'table').closest('.vv-option').hidden);
  share.value = '0.75';
  share.fire('change');
  assert.deepEqual(page.place.written.at(-1), [{ share: '0.75' }, false]);
  option(page, 'smooth').click();
  assert.deepEqual(page.place.written.at(-1), [{ smooth: '0' }, false]);
  page.element.querySelector('[aria-label="Reset attention share to its default"]').click();
  assert.deepEqual([page.place.written.at(-1), share.value], [[{ share: null }, false], '0.5']);
  choice(page, 'query', 'class').click();
  assert.deepEqual(page.place.written.at(-1), [{ q: 'class' }, true]);
  page.store.set({ q: '1,2' });
  assert.equal(pressed(choice(page, 'query', 'class')), 'false');
  await settle();
  await page.asked.stage.at(-1)?.answer({ ...map, options: rollout, drawing });
  assert.equal(option(page, 'attention_share'), share); // which keeps the focus
  page.store.set({ method: 'relevance' });
  await settle();
  await page.asked.stage.at(-1)?.answer({ ...map, formula: '<p>B</p>', drawing });
  assert.equal(page.find('map-formula').innerHTML, '<p>B</p>');
  assert.equal(option(page, 'attention_share'), null);
});
