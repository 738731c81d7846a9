// The stage of the Explain tab, as Gradio runs it: the chosen map on the photo, and the patches that are taken away there.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { REST } from '../../vit_viz/explorer/long_press.js';
import { mount as stage } from '../../vit_viz/ui/explain/stage.js';
import { component, mount } from './browser.js';
import { STAGED } from './staged.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

const STAGE = component(stage, 'ui/explain/stage.html');
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
function playing(/** @type {any} */ value = play, options = {}) {
  const part = mount(STAGE, value, options);
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
  const asked = () => part.told.filter(([name]) => name === 'remove').map(([, data]) => data.gone);
  const answer = (/** @type {any} */ more = {}) => {
    const seq = part.told.filter(([name]) => name === 'remove').at(-1)?.[1].seq;
    part.set({ key: 'k|3', seq, words: 'still a lion', top: [], ...more }, 'answer');
  };
  /** @type {number[]} */
  const taken = [];
  part.browser.window.addEventListener('vv-taken', (/** @type {any} */ e) => taken.push(e.detail));
  const gone = () => part.find('slider-words').textContent;
  return { ...part, down, move, up, asked, answer, taken, gone };
}

test('a stage shows the map and what the model says of the whole photo, and asks nothing', () => {
  const { told, find, gone, element } = playing();
  assert.deepEqual(told, []);
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

test('a stroke takes every patch on its way, and what is taken is marked where it was', () => {
  const { down, move, up, answer, asked, find, gone } = playing();
  down(0, 1);
  answer();
  move(2, 5);
  answer();
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
  const { find, told } = playing();
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
  assert.equal(told.length, 0);
  const event = marks.fire('pointerdown', { pointerId: 1, pointerType: 'mouse', clientX: x, clientY: y });
  assert.equal(event.prevented, true);
});

test('one question is under way at a time, and the last one is asked when it is answered', () => {
  const { down, up, answer, asked, browser, find } = playing();
  for (const col of [0, 1, 2]) {
    down(0, col);
    up(0, col);
  }
  assert.deepEqual(asked(), ['0']);
  assert.equal(find('play-top').getAttribute('aria-busy'), 'true');
  answer();
  assert.deepEqual(asked(), ['0', '0,1,2']);
  assert.equal(find('play-top').getAttribute('aria-busy'), 'true');
  answer();
  assert.deepEqual(asked(), ['0', '0,1,2']);
  assert.equal(find('play-top').getAttribute('aria-busy'), 'false');
  down(1, 0);
  down(1, 1);
  assert.equal(asked().length, 3);
  browser.pass(10_001); // the answer was lost
  down(1, 2);
  assert.deepEqual(asked()[3], '0,1,2,6,7,8');
});

test('answers to older questions and to other pictures or targets are left aside', () => {
  const { answer, find, set, down } = playing();
  down(0, 0);
  answer({ top: [{ ...line, now: 0.25, before: 0.5, text: '50% → 25%' }] });
  assert.equal(find('play-words').textContent, 'still a lion');
  const [entry] = find('play-top').children;
  assert.deepEqual(texts(entry.children), ['lion <b>', '', '50% → 25%']);
  const track = entry.children[1];
  assert.deepEqual([track.children[0].style.width, track.children[1].style.left], ['25%', '50%']);
  set({ key: 'k|3', seq: 0, words: 'older', top: [] }, 'answer');
  set({ key: 'another|3', seq: 9, words: 'elsewhere', top: [] }, 'answer');
  set({ key: 'k|4', seq: 9, words: 'another class', top: [] }, 'answer');
  assert.equal(find('play-words').textContent, 'still a lion');
  down(0, 1);
  answer({ error: 'Too many.' });
  assert.deepEqual([find('play-error').textContent, find('play-error').hidden], ['Too many.', false]);
  assert.equal(find('play-words').textContent, 'still a lion');
  down(0, 2);
  answer({ top: [{ ...line, now: -1 }] });
  assert.equal(find('play-top').children[0].children[1].children[0].style.width, '0%');
  assert.ok(find('play-error').hidden);
});

test('another target is asked about at once, an answer about the one before is not shown', () => {
  const { asked, down, set, find, answer } = playing();
  down(0, 0);
  set({ ...play, revision: 2, target: '4', whole: { words: 'With all patches: cat 1%.', top: [] } });
  assert.deepEqual(asked(), ['0', '0']);
  set({ key: 'k|3', seq: 1, words: 'of the old one', top: [] }, 'answer');
  assert.notEqual(find('play-words').textContent, 'of the old one');
  answer({ key: 'k|4', words: 'of the new one' });
  assert.equal(find('play-words').textContent, 'of the new one');
  find('all').click();
  assert.equal(find('play-words').textContent, 'With all patches: cat 1%.');
});

test('patches are put back by the other brush, all at once by a button, which needs no answer', () => {
  const { down, find, asked, answer } = playing();
  down(0, 0);
  answer();
  down(0, 1);
  answer();
  find('restore').click();
  assert.deepEqual([pressed(find('erase')), pressed(find('restore'))], ['false', 'true']);
  down(0, 0);
  answer();
  down(0, 0); // nothing changes: nothing is asked
  assert.deepEqual(asked(), ['0', '0,1', '1']);
  find('erase').click();
  assert.deepEqual([pressed(find('erase')), pressed(find('restore'))], ['true', 'false']);
  down(2, 2);
  find('most').value = '2';
  find('all').click();
  assert.deepEqual([asked().at(-1), find('most').value], ['1,14', '0']);
  assert.equal(find('play-words').textContent, 'With all patches: lion 50%.');
  answer({ words: 'came late' });
  assert.equal(find('play-words').textContent, 'With all patches: lion 50%.');
});

test('once all is back, a new stroke is asked about at once and the answer before it is not shown', () => {
  const { down, find, asked, set } = playing();
  down(0, 0);
  find('all').click();
  down(3, 3);
  assert.deepEqual(asked(), ['0', '21']);
  set({ key: 'k|3', seq: 1, words: 'of the first stroke', top: [] }, 'answer');
  assert.notEqual(find('play-words').textContent, 'of the first stroke');
  set({ key: 'k|3', seq: 2, words: 'of the second', top: [] }, 'answer');
  assert.equal(find('play-words').textContent, 'of the second');
});

test('the slider takes the best patches of the map and says so to the curve; a stroke puts it back', () => {
  const { find, asked, answer, down, set, taken, gone } = playing();
  find('most').value = '2';
  find('most').fire('input');
  assert.deepEqual(asked().at(-1), '7,3');
  assert.equal(gone(), 'the best 8% of the patches are gone (2 of 24): drag, or brush over the photo');
  assert.equal(taken.at(-1), 2 / 4);
  answer();
  set({ ...play, revision: 2, order: '5,6,7' });
  assert.deepEqual(asked().at(-1), '5,6'); // another map of the same picture
  assert.equal(taken.at(-1), 2 / 3);
  answer();
  down(0, 0);
  assert.deepEqual([asked().at(-1), find('most').value, taken.at(-1)], ['5,6,0', '0', 0]);
  answer();
  const before = asked().length;
  set({ ...play, revision: 3 });
  assert.equal(asked().length, before);
});

test('another picture begins anew, an older one is left aside, an error hides the photo', () => {
  const { down, set, find, told, gone } = playing();
  down(0, 0);
  set({ ...play, revision: 0, key: 'old' });
  assert.equal(gone(), '4% of the patches are gone (1 of 24)');
  set({ revision: 2, busy: true });
  assert.ok(find('play-picture').classList.contains('vv-busy'));
  assert.equal(find('play-below').hidden, false);
  set({ ...play, revision: 2, key: 'new', order: '' });
  assert.match(gone(), /^drag to take/);
  assert.equal(/** @type {any} */ (find('most')).max, '0');
  set({ revision: 3, error: 'Gone.' });
  assert.deepEqual([find('play-below').hidden, find('empty').textContent], [true, 'Gone.']);
  assert.ok(find('image').hidden && find('play-marks').hasAttribute('hidden'));
  set({ ...play, revision: 4, key: 'new' });
  assert.deepEqual([find('play-below').hidden, find('empty').hidden], [false, true]);
  assert.ok(!find('play-marks').hasAttribute('hidden'));
  assert.equal(told[0][1].key, 'k|3');
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
  const { find, told, down, set, asked } = playing({ ...play, pick: true });
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
    ['pick', { y: 10 + 10 * 1.5, x: 30 + 20 * 2.5 }],
    ['step', { down: 0, across: -1 }],
  ]);
  set({ ...play, revision: 2, pick: false });
  assert.deepEqual([find('choose').hidden, pressed(find('erase'))], [true, 'true']);
  down(1, 2);
  assert.deepEqual(asked(), ['8']);
});

test('a finger that taps takes one patch, one that rests brushes, one that swipes takes nothing', () => {
  const { down, move, up, asked, answer, browser, find } = playing();
  const finger = { pointerType: 'touch' };
  assert.equal(find('play-marks').style.touchAction, 'pan-y pinch-zoom');
  down(1, 1, finger);
  assert.deepEqual(asked(), []); // not before it is known what it does
  up(1, 1, finger);
  assert.deepEqual(asked(), ['7']);
  answer();
  down(0, 0, finger);
  move(3, 0, finger); // a swipe
  up(3, 0, finger);
  assert.deepEqual(asked(), ['7']);
  down(0, 0, finger);
  browser.pass(REST);
  assert.deepEqual(asked().at(-1), '7,0');
  answer();
  move(0, 2, finger);
  assert.deepEqual(asked().at(-1), '7,0,1,2');
  answer();
  up(0, 2, finger);
  move(0, 5, finger);
  assert.deepEqual(asked().at(-1), '7,0,1,2');
  find('restore').click();
  down(1, 1, finger);
  up(1, 1, finger);
  assert.deepEqual(asked().at(-1), '0,1,2');
});

test('a fine grid is brushed three patches wide, up to its edges', () => {
  const grid = [24, 5];
  const { find, asked, answer } = playing({ ...play, grid });
  const at = (/** @type {number} */ row, /** @type {number} */ col) => ({
    clientY: 50 + 2 * (10 + (40 / 24) * (row + 0.5)),
    clientX: 100 + 2 * (30 + 24 * (col + 0.5)),
    pointerType: 'mouse',
  });
  find('play-marks').fire('pointerdown', at(0, 4));
  assert.equal(asked().at(-1), '3,4,8,9');
  answer();
  find('play-marks').fire('pointerdown', at(23, 0));
  assert.equal(asked().at(-1), '3,4,8,9,110,111,115,116');
});

test('keys move a cursor from the centre and take its patch away, or put it back', () => {
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
  answer();
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
