// Which class is meant: chips of the first classes, and a search for others by their name.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TargetChooser } from '../../vit_viz/web/kit/target.js';
import { Browser, parse, read } from './browser.js';
import { settle } from './visit.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');
const HTML = read('../../vit_viz/web/explain/room.html');

/** The chips with what they tell; `answer` answers a search by its number, from 1. */
function open(/** @type {any} */ t, /** @type {any} */ target) {
  const browser = new Browser();
  browser.install(t);
  const element = /** @type {any} */ (parse(HTML)).querySelector('.vv-target');
  /** @type {[string, any][]} */
  const told = [];
  /** @type {((hits: any) => void)[]} */
  const searches = [];
  /** @type {AbortSignal[]} */
  const stops = [];
  const chooser = new TargetChooser(element, {
    why: (index) => void told.push(['why', index]),
    unlike: (index) => void told.push(['unlike', index]),
    find: (text, stop) =>
      new Promise((found) => {
        stops.push(stop);
        told.push(['find', text]);
        searches.push(found);
      }),
  });
  chooser.show(target);
  const find = (/** @type {string} */ name) => element.querySelector(`.vv-${name}`);
  const answer = async (/** @type {number} */ seq, /** @type {any[]} */ hits) => {
    searches[seq - 1](hits);
    await settle();
  };
  return { element, told, stops, browser, chooser, find, answer };
}

const classes = [
  { index: 4, name: 'lion', probability: 0.9 },
  { index: 7, name: '<b>', probability: 0.04567 },
  { index: 2, name: 'cat', probability: null },
];

test('classes are chips; the chosen one cannot be set against itself', async (t) => {
  const { find, told, element } = open(t, { classes, chosen: 7, other: 4, words: 'why <b>' });
  assert.deepEqual(texts(find('why').children), ['lion90%', '<b>4.6%', 'cat']);
  assert.deepEqual(find('why').children.map(pressed), ['false', 'true', 'false']);
  assert.deepEqual(texts(find('unlike').children), ['lion', 'cat', 'compared with nothing']);
  assert.deepEqual(find('unlike').children.map(pressed), ['true', 'false', 'false']);
  assert.equal(/** @type {any} */ (find('why').children[1]).title, '<b>, probability 0.0457');
  assert.equal(/** @type {any} */ (find('why').children[2]).title, 'cat');
  assert.equal(find('target-words').textContent, 'why <b>');
  find('why').children[0].click();
  find('unlike').children[0].click();
  find('unlike').children[2].click();
  assert.deepEqual(told, [
    ['why', 4],
    ['unlike', 4],
    ['unlike', null],
  ]);
  assert.deepEqual(
    element.querySelectorAll('.vv-target-row').map((/** @type {any} */ row) => row.hidden),
    [false, false],
  );
});

test('without classes there is nothing to choose, without another class it is compared with nothing', async (t) => {
  const { find, element, chooser } = open(t, { classes: [] });
  assert.deepEqual(
    element.querySelectorAll('.vv-target-row').map((/** @type {any} */ row) => row.hidden),
    [true, true],
  );
  chooser.show({ classes, chosen: 4, other: null });
  assert.deepEqual(find('unlike').children.map(pressed), ['false', 'false', 'true']);
  assert.equal(find('target-words').textContent, '');
  assert.ok(find('target-words').hidden);
});

test('a search asks once the hand rests and shows the newest answer only', async (t) => {
  const { find, told, stops, browser, answer } = open(t, { classes, chosen: 4, other: null });
  const search = find('search');
  const type = (/** @type {string} */ text) => {
    search.value = text;
    search.fire('input');
  };
  type(' ti');
  browser.pass(149);
  type(' tig ');
  browser.pass(149);
  assert.deepEqual(told, []);
  browser.pass(1);
  assert.deepEqual(told, [['find', 'tig']]);
  type('x'.repeat(200));
  browser.pass(150);
  assert.deepEqual(told[1][1], 'x'.repeat(100));
  assert.deepEqual(
    stops.map(({ aborted }) => aborted),
    [true, false],
  );
  await answer(1, []);
  assert.ok(find('hits').hidden);
  await answer(2, [{ index: 9, name: 'tiger' }]);
  assert.ok(!find('hits').hidden);
  const [hit] = find('hits').children;
  assert.deepEqual(texts(hit.children), ['tiger', 'why', 'and not']);
  assert.equal(/** @type {any} */ (hit.children[0]).title, 'class 9');
  hit.children[2].click();
  assert.deepEqual(told[2], ['unlike', 9]);
  assert.deepEqual([search.value, find('hits').hidden], ['', true]); // the click reaches the line
});

test('nothing found is said, Enter takes the first hit, Escape closes, an empty search asks nothing', async (t) => {
  const { find, told, browser, answer } = open(t, { classes, chosen: 4, other: null });
  const search = find('search');
  const ask = async (/** @type {any[]} */ hits, seq = 1) => {
    search.value = 'x';
    search.fire('input');
    browser.pass(150);
    await answer(seq, hits);
  };
  await ask([]);
  assert.equal(find('hits').textContent, 'No class has this name.');
  search.fire('keydown', { key: 'Enter' });
  search.fire('keydown', { key: 'Escape' });
  assert.ok(find('hits').hidden);
  await ask([{ index: 9, name: 'tiger' }], 2);
  search.fire('keydown', { key: 'a' });
  assert.ok(!find('hits').hidden);
  search.fire('keydown', { key: 'Escape' });
  search.fire('keydown', { key: 'Enter' }); // closed: nothing is chosen
  assert.equal(told.length, 2);
  await ask([{ index: 9, name: 'tiger' }], 3);
  search.fire('keydown', { key: 'Enter' });
  assert.deepEqual(told.at(-1), ['why', 9]);
  search.value = '  ';
  search.fire('input');
  browser.pass(500);
  assert.equal(told.length, 4);
});

test('hits close where the field is left, and an answer that comes after that opens nothing', async (t) => {
  const { find, browser, answer } = open(t, { classes, chosen: 4, other: null });
  const [search, box] = [find('search'), find('search-box')];
  const type = () => {
    search.value = 'x';
    search.fire('input');
    browser.pass(150);
  };
  type();
  await answer(1, [{ index: 9, name: 'tiger' }]);
  const choice = find('hits').querySelector('button');
  box.fire('focusout', { relatedTarget: choice });
  assert.ok(!find('hits').hidden); // to a button of the list: still inside
  assert.ok(find('hits').fire('mousedown').prevented);
  box.fire('focusout', { relatedTarget: null });
  assert.ok(find('hits').hidden);
  type();
  box.fire('focusout', { relatedTarget: find('why') });
  await answer(2, []);
  assert.ok(find('hits').hidden);
  type();
  await answer(3, []);
  assert.equal(find('hits').textContent, 'No class has this name.');
  search.value = '';
  search.fire('input');
  assert.ok(find('hits').hidden);
});
