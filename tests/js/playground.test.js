// The photo from which patches are brushed away, as Gradio runs it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount } from './browser.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

const PLAYGROUND = '../../vit_viz/ui/parts/playground.js';
const play = {
  turn: 1,
  key: 'k',
  grid: [4, 6],
  region: [10, 30, 40, 120],
  photo_size: [60, 180],
  photo: '/photo/x',
  alt: 'A photo.',
  order: '7,3,20,1',
  slider: 'Most relevant first',
};

/** A playground whose photo is drawn twice as large as it is, at (100, 50). */
function playing(value = play, options = {}) {
  const part = mount(PLAYGROUND, value, options);
  part.find('play-image').box = { left: 100, top: 50, width: 360, height: 120 };
  const event = (/** @type {number} */ row, /** @type {number} */ col) => ({
    clientY: 50 + 2 * (10 + 10 * (row + 0.5)),
    clientX: 100 + 2 * (30 + 20 * (col + 0.5)),
    pointerId: 8,
  });
  const down = (/** @type {number} */ r, /** @type {number} */ c) =>
    part.find('play-marks').fire('pointerdown', event(r, c));
  const move = (/** @type {number} */ r, /** @type {number} */ c) =>
    part.find('play-marks').fire('pointermove', event(r, c));
  const up = () => part.find('play-marks').fire('pointerup');
  const asked = () => part.told.map(([, data]) => data.gone);
  const answer = (/** @type {any} */ more = {}) => {
    const seq = part.told[part.told.length - 1][1].seq;
    part.set({ key: 'k', seq, words: 'still a lion', top: [], ...more }, 'answer');
  };
  return { ...part, down, move, up, asked, answer };
}

test('a playground opens with all patches and asks once', () => {
  const { told, find } = playing();
  assert.deepEqual(told, [['remove', { gone: '', seq: 1, key: 'k' }]]);
  assert.equal(find('play-image').src, '/photo/x');
  assert.equal(/** @type {any} */ (find('play-image')).alt, 'A photo.');
  assert.equal(find('play-image').style.aspectRatio, '3');
  assert.equal(find('play-stage').style.width, 'min(100%, calc(3 * 56vh))');
  assert.equal(find('play-marks').getAttribute('viewBox'), '0 0 180 60');
  assert.equal(find('gone-words').textContent, 'all 24 patches there');
  assert.deepEqual([find('all').disabled, find('slider-words').textContent], [true, 'Most relevant first']);
  assert.equal(/** @type {any} */ (find('most')).max, '3');
});

test('a stroke takes every patch on its way, and what is taken is marked where it was', () => {
  const { down, move, up, answer, asked, find } = playing();
  answer();
  down(0, 1);
  answer();
  move(2, 5);
  answer();
  up();
  move(3, 5);
  assert.deepEqual(asked(), ['', '1', '1,8,9,16,17']);
  const first = find('play-marks').children[1];
  assert.equal(first.className, 'vv-gone');
  assert.deepEqual(
    ['x', 'y', 'width', 'height'].map((name) => Number(first.getAttribute(name))),
    [30 + 20 * 2, 10 + 10, 20, 10],
  );
  assert.equal(find('gone-words').textContent, '5 of 24 patches gone');
  assert.equal(find('all').disabled, false);
  assert.equal(find('play-marks').captured, 8);
  assert.ok(find('play-stage').focused);
});

test('a stroke outside what the model received, or with another button, takes nothing', () => {
  const { find, told } = playing();
  const marks = find('play-marks');
  const y = 50 + 2 * 15;
  const x = 100 + 2 * 35;
  for (const more of [
    { clientX: 100, clientY: y },
    { clientX: x, clientY: 50 + 2 * 9 },
    { clientX: x, clientY: 50 + 2 * 51 },
    { clientX: 100 + 2 * 151, clientY: y },
    { clientX: x, clientY: y, button: 2 },
  ]) {
    assert.equal(marks.fire('pointerdown', { pointerId: 1, ...more }).prevented, false);
  }
  assert.equal(told.length, 1);
  assert.equal(marks.fire('pointerdown', { pointerId: 1, clientX: x, clientY: y }).prevented, true);
});

test('one question is under way at a time, and the last one is asked when it is answered', () => {
  const { down, up, answer, asked, browser, element } = playing();
  for (const col of [0, 1, 2]) {
    down(0, col);
    up();
  }
  assert.deepEqual(asked(), ['']);
  assert.ok(element.classList.contains('vv-waiting'));
  answer();
  assert.deepEqual(asked(), ['', '0,1,2']);
  assert.ok(element.classList.contains('vv-waiting'));
  answer();
  assert.deepEqual(asked(), ['', '0,1,2']);
  assert.ok(!element.classList.contains('vv-waiting'));
  down(1, 0);
  down(1, 1);
  assert.equal(asked().length, 3);
  browser.pass(10_001); // the answer was lost
  down(1, 2);
  assert.deepEqual(asked()[3], '0,1,2,6,7,8');
});

test('answers to older questions and to other pictures are left aside', () => {
  const { answer, find, set } = playing();
  const line = { name: 'lion <b>', now: 0.25, before: 0.5 };
  answer({ top: [line] });
  assert.equal(find('play-words').textContent, 'still a lion');
  const [entry] = find('play-top').children;
  assert.deepEqual(texts(entry.children), ['lion <b>', '0.50 → 0.25']);
  assert.equal(entry.style['--share'], '25%');
  set({ key: 'k', seq: 0, words: 'older', top: [] }, 'answer');
  set({ key: 'another', seq: 9, words: 'elsewhere', top: [] }, 'answer');
  assert.equal(find('play-words').textContent, 'still a lion');
  answer({ error: 'Too many.' });
  assert.deepEqual([find('play-error').textContent, find('play-error').hidden], ['Too many.', false]);
  assert.equal(find('play-words').textContent, 'still a lion');
  answer({ top: [{ ...line, now: -1 }] });
  assert.equal(find('play-top').children[0].style['--share'], '0%');
  assert.ok(find('play-error').hidden);
});

test('patches are put back by the other brush, all at once by a button', () => {
  const { down, find, asked, answer } = playing();
  answer();
  down(0, 0);
  answer();
  down(0, 1);
  answer();
  find('restore').click();
  assert.deepEqual([pressed(find('erase')), pressed(find('restore'))], ['false', 'true']);
  down(0, 0);
  answer();
  down(0, 0); // nothing changes: nothing is asked
  assert.deepEqual(asked(), ['', '0', '0,1', '1']);
  find('erase').click();
  assert.deepEqual([pressed(find('erase')), pressed(find('restore'))], ['true', 'false']);
  find('most').value = '2';
  find('all').click();
  assert.deepEqual([asked().at(-1), find('most').value], ['', '0']);
});

test('the slider takes the most relevant patches first, and a stroke puts it back', () => {
  const { find, asked, answer, down, set } = playing();
  answer();
  find('most').value = '2';
  find('most').fire('input');
  assert.deepEqual(asked().at(-1), '7,3');
  answer();
  set({ ...play, turn: 2, order: '5,6,7' });
  assert.deepEqual(asked().at(-1), '5,6'); // another order of the same picture
  answer();
  down(0, 0);
  assert.deepEqual([asked().at(-1), find('most').value], ['5,6,0', '0']);
  answer();
  const before = asked().length;
  set({ ...play, turn: 3 });
  assert.equal(asked().length, before);
});

test('another picture begins anew, an older one is left aside, an error hides the photo', () => {
  const { down, set, find, told } = playing();
  down(0, 0);
  set({ ...play, turn: 0, key: 'old' });
  assert.equal(find('gone-words').textContent, '1 of 24 patches gone');
  set({ ...play, turn: 2, key: 'new', order: '' });
  assert.equal(find('gone-words').textContent, 'all 24 patches there');
  assert.equal(/** @type {any} */ (find('most')).max, '0');
  set({ turn: 3, error: 'Gone.' });
  assert.deepEqual([find('play-left').hidden, find('play-error').textContent], [true, 'Gone.']);
  set({ ...play, turn: 4, key: 'new' });
  assert.deepEqual([find('play-left').hidden, find('play-error').hidden], [false, true]);
  assert.equal(told[0][1].key, 'k');
});

test('a fine grid is brushed three patches wide, up to its edges', () => {
  const grid = [24, 5];
  const { find, asked, answer } = playing({ ...play, grid });
  answer();
  const at = (/** @type {number} */ row, /** @type {number} */ col) => ({
    clientY: 50 + 2 * (10 + (40 / 24) * (row + 0.5)),
    clientX: 100 + 2 * (30 + 24 * (col + 0.5)),
  });
  find('play-marks').fire('pointerdown', at(0, 4));
  assert.equal(asked().at(-1), '3,4,8,9');
  answer();
  find('play-marks').fire('pointerdown', at(23, 0));
  assert.equal(asked().at(-1), '3,4,8,9,110,111,115,116');
});

test('keys move a cursor from the centre and take its patch away, or put it back', () => {
  const { find, asked, answer } = playing();
  answer();
  const stage = find('play-stage');
  const key = (/** @type {string} */ name) => stage.fire('keydown', { key: name });
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
  assert.equal(asked().at(-1), '');
  for (let i = 0; i < 9; i++) key('ArrowRight');
  for (let i = 0; i < 9; i++) key('ArrowDown');
  assert.deepEqual(cursor(), [40, 130]);
  for (let i = 0; i < 9; i++) key('ArrowLeft');
  for (let i = 0; i < 9; i++) key('ArrowUp');
  assert.deepEqual(cursor(), [10, 30]);
  stage.fire('blur');
  assert.equal(cursor(), undefined);
});
