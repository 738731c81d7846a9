// The components that rooms are made of.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Classes, ColourBar, PhotoStage, Problem, Toggle } from '../../vit_viz/web/kit/parts.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { Browser, parse, ending } from './browser.js';
import { makeTrace } from './oracle.js';
import { pressed, settle, texts } from './room.js';

const drawn = async () => {
  for (let i = 0; i < 3; i++) await new Promise((done) => setImmediate(done));
};

/** Draws a component in a place of its own. */
function place() {
  const browser = new Browser();
  browser.install();
  const root = /** @type {any} */ (parse('<div></div>').querySelector('div'));
  ending.after(() => render(null, root));
  return { browser, root, draw: (/** @type {any} */ node) => render(node, root) };
}

test('a colour bar says its ends, and what its colours speak for', () => {
  const { root, draw } = place();
  const said = () => texts(root.querySelectorAll('.vv-bar > span')).filter(Boolean);
  draw(html`<${ColourBar} ...${{ low: '0', high: '2', unit: 'pixels', colours: ['#000', '#fff'] }} />`);
  assert.deepEqual(said(), ['0', '2', 'pixels']);
  draw(
    html`<${ColourBar}
      ...${{ low: '-1', high: '+1', colours: ['#00f', '#f00'], ends: ['against', 'for'] }}
    />`,
  );
  assert.deepEqual(said(), ['against', '-1', '+1', 'for']);
});

test('one button is pressed, and each tells its value', () => {
  const { root, draw } = place();
  /** @type {string[]} */
  const told = [];
  const choose = (/** @type {string} */ value) => void told.push(value);
  const choices = [
    ['a', 'first'],
    ['b', '<b>'],
  ];
  draw(html`<${Toggle} ...${{ name: 'face', choices, value: 'b', choose, label: 'Which' }} />`);
  const buttons = root.querySelectorAll('[data-face]');
  assert.deepEqual([texts(buttons), buttons.map(pressed)], [['first', '<b>'], ['false', 'true']]); // prettier-ignore
  buttons[0].click();
  assert.deepEqual(told, ['a']);
});

test('a problem that was closed stays closed until there is another, or it went well since', async () => {
  const { root, draw } = place();
  const say = async (/** @type {string} */ words, how = {}) => {
    draw(html`<${Problem} words=${words} ...${how} />`);
    await drawn();
    const note = root.querySelector('[role=alert]');
    return note.hidden ? null : note.textContent.trim();
  };
  assert.equal(await say(''), null);
  const field = /** @type {any} */ (parse('<input>').querySelector('input'));
  field.focus();
  assert.equal(await say('No memory.'), 'No memory.');
  root.querySelector('.vv-close').focus();
  root.querySelector('.vv-close').click();
  await drawn();
  assert.ok(field.focused); // the keyboard goes back to where it was
  assert.equal(await say('No memory.'), null);
  assert.equal(await say('Another.'), 'Another.');
  root.querySelector('.vv-close').click();
  await drawn();
  assert.equal(await say(''), null);
  assert.equal(await say('Another.'), 'Another.');
  let tries = 0;
  assert.match(
    (await say('Gone.', { stays: true, again: () => (tries += 1) })) ?? '',
    /^Gone[.]\s*Try again$/,
  );
  assert.equal(root.querySelector('.vv-close'), null);
  root.querySelector('.vv-again').click();
  assert.equal(tries, 1);
});

test('a click chooses a patch of the photo, keys point at one, choose it and let go, and rings lie where patches do', async () => {
  const { root, draw } = place();
  const photo = makeTrace({
    grid: [2, 4],
    photo: '/photo/x',
    photo_size: [40, 80],
    crop: { region: [0, 0, 40, 80], original: [40, 80], input: [16, 32] },
  });
  /** @type {(number | null)[]} */
  const chosen = [];
  /** @type {(number | null)[]} */
  const pointed = [];
  const look = {
    choose: (/** @type {number | null} */ patch) => chosen.push(patch),
    point: (/** @type {any} */ patch) => pointed.push(patch),
    rings: [[5, 'vv-ring']],
    map: {},
  };
  draw(html`<${PhotoStage} photo=${photo} ...${look} />`);
  const stage = root.querySelector('.vv-stage');
  stage.box = { left: 0, top: 0, width: 80, height: 40 };
  stage.fire('click', { clientX: 70, clientY: 30 });
  stage.fire('pointermove', { clientX: 10, clientY: 10 });
  stage.fire('pointerleave');
  assert.deepEqual([chosen, pointed], [[7], [0, null]]);
  const key = (/** @type {string} */ name) => stage.fire('keydown', { key: name }).prevented;
  assert.ok(!key('Enter')); // nothing is pointed at
  assert.ok(key('ArrowLeft')); // none is pinned: the centre
  await settle();
  assert.equal(root.querySelector('[role=status]').textContent, 'patch (1, 2)');
  assert.ok(key('ArrowLeft') && key('Enter'));
  await settle();
  assert.equal(parseFloat(root.querySelector('.vv-at').style.left), 25);
  assert.ok(key('Escape'));
  await settle();
  assert.deepEqual([chosen, pointed.slice(2), root.querySelector('.vv-at')], [[7, 5], [6, 5, null], null]);
  draw(html`<${PhotoStage} photo=${photo} ...${look} pinned=${5} />`);
  assert.ok(key('ArrowRight') && !key('a'));
  stage.fire('pointermove', { clientX: 10, clientY: 10 }); // the pointer goes on
  assert.ok(key('Escape')); // lets go of what is pinned
  key('ArrowUp');
  stage.fire('blur');
  assert.deepEqual([chosen.slice(2), pointed.slice(5)], [[null], [6, null, 0, 1, null]]);
  const { left, top, width } = root.querySelector('.vv-ring').style;
  assert.deepEqual([left, top, width].map(parseFloat), [25, 50, 25]);
  assert.deepEqual([root.querySelector('canvas').getAttribute('width'), root.querySelector('img').src], ['4', '/photo/x']); // prettier-ignore
});

// --- which class is meant

const classes = [
  { index: 4, name: 'lion', probability: 0.9 },
  { index: 7, name: '<b>', probability: 0.04567 },
  { index: 2, name: 'cat', probability: null },
];

/** The chips with what they tell, and the searches that wait for an answer. @param {any} target */
function chooser(target) {
  const { root, draw, browser } = place();
  /** @type {[string, any][]} */
  const told = [];
  /** @type {((hits: any) => void)[]} */
  const searches = [];
  /** @type {AbortSignal[]} */
  const stops = [];
  const choices = {
    why: (/** @type {any} */ index) => void told.push(['why', index]),
    unlike: (/** @type {any} */ index) => void told.push(['unlike', index]),
    find: (/** @type {string} */ text, /** @type {AbortSignal} */ stop) =>
      new Promise((answer) => {
        stops.push(stop);
        told.push(['find', text]);
        searches.push(answer);
      }),
  };
  const show = (/** @type {any} */ now) =>
    draw(html`<${Classes} target=${now} ...${choices} label="What is explained" />`);
  show(target);
  const find = (/** @type {string} */ name) => root.querySelector(`.vv-${name}`);
  const answer = async (/** @type {number} */ seq, /** @type {any[]} */ hits) => {
    searches[seq - 1](hits);
    await settle();
    await drawn();
  };
  const type = (/** @type {string} */ text) => {
    find('search').value = text;
    find('search').fire('input');
  };
  const press = async (/** @type {string} */ key) => {
    find('search').fire('keydown', { key });
    await drawn();
  };
  return { root, told, stops, browser, show, find, answer, type, press };
}

test('classes are chips; the chosen one cannot be set against itself', () => {
  const { find, told, root, show } = chooser({ classes, chosen: 7, other: 4, words: 'why <b>' });
  assert.deepEqual(texts(find('why').children), ['lion90%', '<b>4.6%', 'cat']);
  assert.deepEqual(find('why').children.map(pressed), ['false', 'true', 'false']);
  assert.deepEqual(texts(find('unlike').children), ['lion', 'cat', 'compared with nothing']);
  assert.deepEqual(find('unlike').children.map(pressed), ['true', 'false', 'false']);
  assert.equal(find('why').children[1].title, '<b>, probability 0.0457');
  assert.equal(find('why').children[2].title, 'cat');
  assert.equal(find('target-words').textContent, 'why <b>');
  find('why').children[0].click();
  find('unlike').children[0].click();
  find('unlike').children[2].click();
  assert.deepEqual(told, [['why', 4], ['unlike', 4], ['unlike', null]]); // prettier-ignore
  show({ classes, chosen: 4, other: null });
  assert.deepEqual(find('unlike').children.map(pressed), ['false', 'false', 'true']);
  assert.equal(find('target-words').hidden, true);
  show({ classes: [] });
  assert.ok(root.querySelectorAll('.vv-target-row').every((/** @type {any} */ row) => row.hidden));
  show({ classes, chosen: 4, single: true });
  assert.equal(find('unlike'), null);
});

test('on a phone the classes that are not chosen are folded, and counted', async () => {
  const { find, show, root } = chooser({ classes, chosen: 7, other: null });
  const more = () => [find('more-classes').textContent.trim(), find('target').hasAttribute('data-folded')];
  assert.deepEqual(more(), ['and 1 more', true]); // the first one is there, too
  find('more-classes').click();
  await drawn();
  assert.deepEqual(more(), ['fewer', false]);
  assert.equal(find('more-classes').getAttribute('aria-expanded'), 'true');
  find('more-classes').click();
  await drawn();
  show({ classes, chosen: 7, other: 2 });
  assert.deepEqual(more(), ['another class…', true]);
  show({ classes: [] });
  assert.ok(root.querySelector('.vv-more-classes').hidden);
});

test('a search asks once the hand rests and shows the newest answer only', async () => {
  const { find, told, stops, browser, answer, type } = chooser({ classes, chosen: 4, other: null });
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
  assert.deepEqual(stops.map(({ aborted }) => aborted), [true, false]); // prettier-ignore
  await answer(1, []);
  assert.ok(find('hits').hidden);
  await answer(2, [{ index: 9, name: 'tiger' }]);
  assert.ok(!find('hits').hidden);
  const [hit] = find('hits').children;
  assert.deepEqual(texts(hit.children), ['tiger', 'why', 'and not']);
  assert.equal(hit.children[0].title, 'class 9');
  hit.children[2].click();
  await drawn();
  assert.deepEqual(told[2], ['unlike', 9]);
  assert.deepEqual([find('search').value, find('hits').hidden], ['', true]);
});

test('nothing found is said, Enter takes the first hit, Escape closes, an empty search asks nothing', async () => {
  const { find, told, browser, answer, type, press } = chooser({ classes, chosen: 4, other: null });
  const ask = async (/** @type {any[]} */ hits, seq = 1) => {
    type('x');
    browser.pass(150);
    await answer(seq, hits);
  };
  await ask([]);
  assert.equal(find('hits').textContent.trim(), 'No class has this name.');
  await press('Enter');
  await press('Escape');
  assert.ok(find('hits').hidden);
  await ask([{ index: 9, name: 'tiger' }], 2);
  await press('a');
  assert.ok(!find('hits').hidden);
  await press('Escape');
  await press('Enter'); // closed: nothing is chosen
  assert.equal(told.length, 2);
  await ask([{ index: 9, name: 'tiger' }], 3);
  await press('Enter');
  assert.deepEqual(told.at(-1), ['why', 9]);
  type('  ');
  browser.pass(500);
  assert.equal(told.length, 4);
});

test('hits close where the field is left, and an answer that comes after that opens nothing', async () => {
  const { find, browser, answer, type } = chooser({ classes, chosen: 4, other: null });
  const search = () => {
    type('x');
    browser.pass(150);
  };
  const leave = async (/** @type {any} */ relatedTarget) => {
    find('search-box').fire('focusout', { relatedTarget });
    await drawn();
  };
  search();
  await answer(1, [{ index: 9, name: 'tiger' }]);
  await leave(find('hits').querySelector('button'));
  assert.ok(!find('hits').hidden); // to a button of the list: still inside
  assert.ok(find('hits').fire('mousedown').prevented);
  await leave(null);
  assert.ok(find('hits').hidden);
  search();
  await leave(find('why'));
  await answer(2, []);
  assert.ok(find('hits').hidden);
});
