// The pointer that nobody moves: where it goes, when, and what ends it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { STAY, startTour } from '../../vit_viz/explorer/ghost.js';
import { Browser, Element } from './browser.js';
import { makeTrace } from './oracle.js';

/** A page on which nobody has done anything yet; `shown` is what is previewed, one after the other. */
function page({
  tour = [8, 23, 0],
  isFirst = true,
  still = false,
  acted = false,
  pointed = /** @returns {boolean} */ () => false,
  kept = /** @type {Map<string, string> | null} */ (new Map()),
} = {}) {
  const browser = new Browser();
  browser.still = still;
  const document = Object.assign(new Element('document'), { hidden: false });
  const sessionStorage = kept && {
    getItem: (/** @type {string} */ name) => kept.get(name) ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ value) => void kept.set(name, value),
  };
  browser.install({ document, sessionStorage, navigator: { userActivation: { hasBeenActive: acted } } });
  const ring = new Element('div');
  ring.hidden = true;
  /** @type {(string | null)[]} */
  const shown = [];
  const explorer = {
    trace: makeTrace({ tour }),
    parts: {
      ghost: ring,
      stage: { matches: (/** @type {string} */ what) => what === ':hover' && pointed() },
    },
    preview: (/** @type {string | null} */ query) => void shown.push(query),
  };
  const ghost = startTour(/** @type {any} */ (explorer), isFirst);
  return { browser, document, ring, shown, ghost };
}

test('it stays at each patch for two seconds, and is over', () => {
  const { browser, ring, shown } = page();
  assert.equal(STAY, 2000);
  browser.pass(1999);
  assert.deepEqual([shown, ring.hidden], [[], true]);
  browser.pass(1);
  assert.deepEqual([shown, ring.hidden], [['1,2'], false]); // patch 8 of a grid of 4 x 6
  const { top, left, width, height } = ring.style;
  assert.deepEqual([top, height], ['25%', '25%']);
  assert.deepEqual([parseFloat(left), parseFloat(width)].map(Math.round), [33, 17]);
  browser.pass(3 * STAY);
  assert.deepEqual([shown, ring.hidden], [['1,2', '3,5', '0,0', null], true]);
  browser.pass(20 * STAY);
  assert.deepEqual([shown.length, browser.timers.size], [4, 0]);
});

test('it comes once a visit; a browser that keeps nothing shows it again', () => {
  const kept = new Map();
  assert.notEqual(page({ kept }).ghost, null);
  assert.equal(page({ kept }).ghost, null); // as after a reload
  for (let time = 0; time < 2; time++) assert.notEqual(page({ kept: null }).ghost, null);
});

for (const input of ['pointerdown', 'pointermove', 'keydown', 'touchstart', 'wheel', 'scroll'])
  test(`${input} ends it for good, and what it showed goes`, () => {
    const { browser, ring, shown } = page();
    browser.pass(STAY);
    browser.window.fire(input, { movementX: 1, movementY: 0 });
    assert.deepEqual([shown, ring.hidden], [['1,2', null], true]);
    browser.pass(20 * STAY);
    assert.equal(shown.length, 2);
    assert.equal(browser.timers.size, 0);
  });

test('a mouse that rests while the page moves under it has not acted', () => {
  const { browser, shown } = page();
  browser.window.fire('pointermove', { movementX: 0, movementY: 0 });
  browser.pass(STAY);
  assert.deepEqual(shown, ['1,2']);
});

test('it ends for good where a pointer rests on the photo, at the first step and at a later one', () => {
  const rested = page({ pointed: () => true });
  rested.browser.pass(20 * STAY);
  assert.deepEqual([rested.shown, rested.ring.hidden, rested.browser.timers.size], [[], true, 0]);
  let rests = false;
  const came = page({ pointed: () => rests });
  came.browser.pass(STAY);
  rests = true; // as when the page moved under it
  came.browser.pass(20 * STAY);
  assert.deepEqual([came.shown, came.ring.hidden], [['1,2', null], true]);
});

test('it waits while nobody sees the tab', () => {
  const { browser, document, shown } = page();
  document.hidden = true;
  document.fire('visibilitychange');
  browser.pass(20 * STAY);
  assert.deepEqual(shown, []);
  document.hidden = false;
  document.fire('visibilitychange');
  browser.pass(STAY);
  assert.deepEqual(shown, ['1,2']);
});

test('it does not start where motion is unwelcome, on an upload, later in a visit, or after an input', () => {
  const cases = [{ still: true }, { tour: [] }, { isFirst: false }, { acted: true }];
  for (const one of cases) assert.equal(page(one).ghost, null);
  assert.notEqual(page().ghost, null);
});
