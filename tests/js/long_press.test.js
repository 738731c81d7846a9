// A finger as the browser tells of it: downs, moves, ups and what the browser takes away.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { REST, STILL, attachFinger } from '../../vit_viz/explorer/long_press.js';
import { Browser, Element } from './browser.js';

/** An element under a finger; `told` says what the finger did and where. */
function picture(bare = false) {
  const browser = new Browser();
  browser.install();
  const element = new Element('div');
  /** @type {[string, number?, number?][]} */
  const told = [];
  const tell =
    (/** @type {string} */ what) =>
    (/** @type {any} */ ...[event]) =>
      void told.push(event ? [what, event.clientX, event.clientY] : [what]);
  const [tap, begin, draw, end, slide, cancel] = ['tap', 'begin', 'draw', 'end', 'slide', 'cancel'].map(tell);
  attachFinger(/** @type {any} */ (element), { tap, begin, draw, end, ...(bare ? {} : { slide, cancel }) });
  const finger = (
    /** @type {string} */ what,
    /** @type {number} */ x,
    /** @type {number} */ y,
    /** @type {object} */ more = {},
  ) =>
    element.fire(`pointer${what}`, { pointerType: 'touch', pointerId: 3, clientX: x, clientY: y, ...more });
  const touchMove = (cancelable = true) => element.fire('touchmove', { cancelable }).prevented;
  return { browser, element, told, finger, touchMove };
}

test('a short touch at one place is a tap, up to the moment in which it would rest', () => {
  const { browser, told, finger } = picture();
  finger('down', 30, 50);
  finger('move', 30 + STILL, 50);
  browser.pass(REST - 1);
  finger('up', 31, 52);
  browser.pass(1000);
  assert.deepEqual(told, [['tap', 31, 52]]);
});

test('a finger that rests begins where it came down, draws as it moves, and ends where it lifts', () => {
  const { browser, told, finger } = picture();
  finger('down', 30, 50);
  finger('move', 30, 50 - STILL); // a tremble
  browser.pass(REST);
  assert.deepEqual(told, [['begin', 30, 50]]);
  finger('move', 33, 51);
  finger('move', 80, 190);
  finger('up', 81, 191);
  assert.deepEqual(told.slice(1), [
    ['draw', 33, 51],
    ['draw', 80, 190],
    ['end', 81, 191],
  ]);
  finger('move', 5, 5);
  finger('up', 5, 5);
  assert.equal(told.length, 4);
});

test('a swipe up or down does nothing but scroll: it neither taps nor begins, nor after a pause', () => {
  const { browser, told, finger, touchMove } = picture();
  finger('down', 30, 50);
  finger('move', 31, 50 - STILL - 1);
  assert.equal(touchMove(), false);
  browser.pass(2 * REST);
  finger('cancel', 0, 0);
  browser.pass(2 * REST);
  finger('up', 31, 20);
  assert.deepEqual(told, [['cancel']]);
});

test('a swipe that the browser takes at once leaves no timer and tells nothing', () => {
  const { browser, told, finger } = picture();
  finger('down', 30, 50);
  finger('cancel', 0, 0);
  assert.equal(browser.timers.size, 0);
  browser.pass(2 * REST);
  assert.deepEqual(told, []);
});

test('a finger that slides sideways is followed and is off when it lifts', () => {
  const { browser, told, finger } = picture();
  finger('down', 30, 50);
  finger('move', 30 + STILL + 1, 50);
  browser.pass(2 * REST);
  finger('move', 90, 55);
  finger('move', 70, 99); // down more than across: of no interest
  finger('up', 90, 55);
  assert.deepEqual(told, [['slide', 41, 50], ['slide', 90, 55], ['cancel']]);
});

test('the page is kept from scrolling only while the finger draws', () => {
  const { browser, finger, touchMove } = picture();
  assert.equal(touchMove(), false);
  finger('down', 30, 50);
  assert.equal(touchMove(), false);
  browser.pass(REST);
  assert.equal(touchMove(), true);
  assert.equal(touchMove(false), false); // too late for the browser to be asked
  finger('up', 30, 50);
  assert.equal(touchMove(), false);
});

test('a second finger calls off what the first began, and is none itself', () => {
  const { browser, told, finger, touchMove } = picture();
  finger('down', 30, 50);
  browser.pass(REST);
  finger('down', 90, 90, { pointerId: 4 });
  assert.deepEqual(told, [['begin', 30, 50], ['cancel']]);
  assert.equal(touchMove(), false);
  browser.pass(2 * REST);
  finger('move', 60, 60);
  finger('up', 95, 95, { pointerId: 4 });
  finger('up', 30, 50);
  assert.equal(told.length, 2);
});

test('another pointer than the one that is down changes nothing', () => {
  const { browser, told, finger } = picture();
  finger('down', 30, 50);
  finger('move', 200, 200, { pointerId: 9 });
  finger('up', 200, 200, { pointerId: 9 });
  finger('cancel', 200, 200, { pointerId: 9 });
  browser.pass(REST);
  finger('up', 30, 50);
  assert.deepEqual(told, [
    ['begin', 30, 50],
    ['end', 30, 50],
  ]);
});

test('a pen is a finger; a mouse, and a further button, are not listened to', () => {
  const { browser, told, finger } = picture();
  finger('down', 30, 50, { pointerType: 'mouse' });
  finger('up', 30, 50, { pointerType: 'mouse' });
  finger('down', 30, 50, { button: 2 });
  finger('up', 30, 50);
  browser.pass(REST);
  assert.deepEqual(told, []);
  finger('down', 30, 50, { pointerType: 'pen' });
  finger('up', 30, 50, { pointerType: 'pen' });
  assert.deepEqual(told, [['tap', 30, 50]]);
});

test("the browser's menu of a long press does not open, that of the mouse does", () => {
  const { browser, element, finger } = picture();
  assert.equal(element.fire('contextmenu', { pointerType: 'mouse' }).prevented, false);
  assert.equal(element.fire('contextmenu', { pointerType: 'touch' }).prevented, true);
  finger('down', 30, 50);
  browser.pass(REST);
  assert.equal(element.fire('contextmenu').prevented, true); // browsers that do not say which pointer asked
});

test('who wants neither slides nor their end need not name them; the page scrolls and enlarges as elsewhere', () => {
  const { browser, element, told, finger } = picture(true);
  finger('down', 30, 50);
  finger('move', 90, 50);
  finger('up', 90, 50);
  finger('down', 30, 50);
  browser.pass(REST);
  finger('cancel', 0, 0);
  assert.deepEqual(told, [['begin', 30, 50]]);
  assert.equal(element.style.touchAction, 'pan-y pinch-zoom');
});
