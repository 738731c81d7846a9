// Below the stage of the lesson: the guess, what if, and what folds out.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Folds } from '../../vit_viz/web/lesson/folds.js';
import { Guessing } from '../../vit_viz/web/lesson/guess.js';
import { HEADS } from '../../vit_viz/web/lesson/scenes/heads.js';
import { endOf, placed } from '../../vit_viz/web/lesson/timeline.js';
import { WhatIfs } from '../../vit_viz/web/lesson/what_if.js';
import { Browser, ending, parse, withGlobals } from './browser.js';
import { array, numbers } from './lesson_numbers.js';
import { fields, placeAt, pressed, settle, texts } from './room.js';

/** Draws a component in a place of its own. */
function place() {
  const browser = new Browser();
  browser.install();
  const root = /** @type {any} */ (parse('<div></div>').querySelector('div'));
  ending.after(() => render(null, root));
  return { browser, root, draw: (/** @type {any} */ node) => render(node, root) };
}

/** A scene at one of its beats, before anybody guessed. @param {any} [n] */
function guessing(n = numbers()) {
  const { root, draw } = place();
  const all = placed([HEADS], n);
  const player = { t: signal(0), played: 0, play: () => void (player.played += 1) };
  const guesses = signal(/** @type {Record<string, number>} */ ({}));
  const lesson = /** @type {any} */ ({ beats: () => all, guesses, player });
  const show = async (/** @type {string} */ id, end = false) => {
    const now = /** @type {any} */ (all.find((beat) => beat.id === id));
    player.t.value = end ? endOf(now) : now.start;
    draw(html`<${Guessing} ...${{ lesson, n, now }} />`);
    await settle();
  };
  const card = () => root.querySelector('.vv-lesson-guess');
  return { root, show, player, guesses, card, isKept: () => card().getAttribute('data-kept') !== null };
}

test('a question is asked at the beat that waits, and a guess plays on', async () => {
  const { root, show, player, guesses, card } = guessing();
  await show('heads-length');
  assert.equal(card(), null);
  await show('heads-add');
  assert.notEqual(card().getAttribute('data-open'), null);
  const buttons = root.querySelectorAll('button');
  assert.deepEqual(buttons.map(pressed), ['false', 'false', 'false']);
  buttons[0].click();
  await settle();
  assert.deepEqual([guesses.value, player.played], [{ heads: 0 }, 1]);
  assert.equal(card().getAttribute('data-open'), null);
  assert.equal(pressed(root.querySelector('button')), 'true');
  assert.match(card().textContent, /Now watch\.\s*$/);
});

test('the truth is told once it was seen, whatever was guessed, and is in sight as the question was', async () => {
  const { root, show, guesses, card, isKept } = guessing();
  await show('heads-add');
  assert.ok(isKept());
  guesses.value = { heads: 0 };
  await show('heads-after');
  assert.match(card().textContent, /Now watch/);
  assert.equal(root.querySelector('[data-true]'), null);
  assert.ok(!isKept());
  await show('heads-after', true);
  assert.match(
    card().textContent,
    /No\. All heads together add a list of length 4\.49, the network one of length 8\.97/,
  );
  assert.deepEqual(texts([root.querySelector('[data-true]')]), ['the network that comes next']);
  assert.ok(isKept());
  assert.ok(root.querySelectorAll('button').every((/** @type {any} */ one) => one.disabled));
  guesses.value = { heads: 1 };
  await settle();
  assert.match(card().textContent, /Right\. All heads/);
});

test('who passes a question without a guess may still guess, and nothing is told before', async () => {
  const { root, show, card, player } = guessing();
  await show('heads-after', true);
  assert.equal(card().getAttribute('data-open'), null);
  assert.doesNotMatch(card().textContent, /Right|No\.|watch/);
  root.querySelectorAll('button')[1].click();
  await settle();
  assert.match(card().textContent, /Right\./);
  assert.equal(player.played, 0);
});

test('no question is asked before its numbers are there', async () => {
  const { show, card } = guessing(numbers({ block: null }));
  await show('heads-add');
  assert.equal(card(), null);
});

const CHANGES = /** @type {any[]} */ ([
  { change: 'head', label: 'a head were off', controls: ['layer', 'head'] },
  { change: 'patch', label: 'patches were larger', controls: ['patch'] },
  { change: 'positions', label: 'there were no places', controls: ['seed'] },
]);

/** What if, over a source that writes down what it is asked. @param {(body: any) => any} answer */
function whatIf(answer, answers = true) {
  const { root, draw } = place();
  const bodies = /** @type {any[]} */ ([]);
  const store = new Store(fields, placeAt('?tab=lesson'));
  const source = /** @type {any} */ ({
    keeps: () => true,
    answers: () => answers,
    async answer(/** @type {string} */ name, /** @type {any} */ body) {
      assert.equal(name, 'lesson_what_if');
      bodies.push(body);
      return answer(body);
    },
  });
  const page = /** @type {any} */ ({ store, source, ask: asker(source) });
  const show = async (/** @type {any} */ n = numbers()) => {
    draw(html`<${WhatIfs} ...${{ page, n, whatIf: CHANGES }} />`);
    await settle();
  };
  const press = async (/** @type {string} */ selector) => {
    root.querySelector(selector).click();
    await settle();
  };
  return { root, bodies, show, press, store };
}
const of = (/** @type {any} */ { change }) => ({
  arrays: { before: array([2], (i) => [0.75, 0.25][i]), after: array([2], (i) => [0.5, 0.125][i]) },
  facts: { change, words: ['lion', '<b>'], kind: 'probability', sentence: 'It falls.' },
});

test('nothing is asked before a chip is pressed; then the change, with its options alone', async () => {
  const { root, bodies, show, press, store } = whatIf(of);
  await show();
  assert.deepEqual([bodies, root.querySelector('.vv-card')], [[], null]);
  await press('[data-change=head]');
  assert.deepEqual(bodies, [{ model: 'odd', image: 'lion', change: 'head', layer: 1, head: 2 }]);
  assert.match(root.querySelector('.vv-lesson-what').textContent, /It falls\./);
  const rows = texts(root.querySelectorAll('.vv-changes li')).map((/** @type {string} */ one) =>
    one.replace(/\s+/g, ' '),
  );
  assert.deepEqual(rows, ['lion75% → 50%', '<b>25% → 13%']);
  const [, head] = root.querySelectorAll('select');
  head.value = '4';
  head.fire('change');
  assert.equal(store.view.head.value, 4);
  await show(numbers({ head: 4 }));
  assert.equal(bodies[1].head, 4);
  await press('[data-change=head]');
  assert.equal(root.querySelector('.vv-card'), null);
});

test('patches of another size are counted beside those that there are', async () => {
  const facts = { change: 'patch', grid: [2, 3], tokens: 8, left_out: 0, pairs: 64, sentence: 'Fewer.' };
  const { root, bodies, show, press } = whatIf(() => ({ arrays: {}, facts }));
  await show();
  await press('[data-change=patch]');
  assert.equal(bodies[0].patch, 20); // twice a side of 10
  const rows = texts(root.querySelectorAll('.vv-changes li')).map((/** @type {string} */ one) =>
    one.replace(/\s+/g, ' '),
  );
  assert.deepEqual(rows, ['tokens26 → 8', 'pairs of tokens676 → 64']);
  await press('[data-size="40"]');
  assert.equal(bodies[1].patch, 40);
});

test('without places patches keep their order, until another one is asked for', async () => {
  const { bodies, show, press } = whatIf(of);
  await show();
  await press('[data-change=positions]');
  await press('.vv-card .vv-button');
  assert.deepEqual(bodies.map(({ seed }) => seed), [0, 1]); // prettier-ignore
});

test('what a model cannot be asked is said in its sentence', async () => {
  const { root, show, press } = whatIf(() => Promise.reject(new Error('There are no places.')));
  await show();
  await press('[data-change=positions]');
  assert.match(root.querySelector('[role=alert]').textContent, /There are no places\./);
  assert.equal(root.querySelector('.vv-changes'), null);
});

test('a source that does not answer has no chips', async () => {
  const { root, show } = whatIf(of, false);
  await show();
  assert.equal(root.querySelector('button'), null);
});

test('of what folds out one panel is open, and a program is shown as it is', async () => {
  const { browser, root, draw } = place();
  const part = {
    formula: '<math>f</math>',
    letters: 'l',
    ran: [
      {
        name: 'f',
        place: 'vit.py',
        lines: [
          ['ran', {}],
          ['not', { mlp: ['swiglu'] }],
        ],
        of: {},
      },
      { name: 'g', place: 'vit.py', lines: [['its own', null]], of: { mlp: ['gelu'] } },
      { name: 'h', place: 'vit.py', lines: [['of others', {}]], of: { mlp: ['swiglu'] } },
    ],
    source: 'x = "<b>"',
    mistake: 'No.',
  };
  const fold = /** @type {any} */ ({ build: ['a', 'missing'], shapes: () => [['q', '[5, 8]', 'of a head']] });
  draw(html`<${Folds} ...${{ fold, parts: { a: part }, n: numbers() }} />`);
  const chips = root.querySelectorAll('.vv-chip');
  assert.deepEqual(texts(chips), ['Formula', 'Shapes', 'The lines that ran', 'Build it yourself']);
  for (const [i, words] of [
    'fl',
    'q[5, 8]of a head',
    'our code: f vit.pyrannotour code: g vit.pyits own',
    'x = "<b>"A common mistake No.Copy',
  ].entries()) {
    chips[i].click();
    await settle();
    const panels = root.querySelectorAll('[data-panel]');
    assert.equal(panels.length, 1);
    if (i === 2) assert.deepEqual(texts(panels[0].querySelectorAll('mark')), ['ran']);
    assert.equal(panels[0].textContent.replace(/\s*\n\s*/g, '').trim(), words);
  }
  const copy = root.querySelector('[data-panel] button');
  copy.click();
  await settle();
  assert.deepEqual([copy.textContent, browser.copied], ['Copied', 'x = "<b>"']);
  withGlobals({ navigator: {} }); // as on a page that may not write to the clipboard
  copy.click();
  await settle();
  assert.equal(copy.textContent, 'Select it to copy it');
  chips[3].click();
  await settle();
  assert.equal(root.querySelector('[data-panel]'), null);
  draw(html`<${Folds} ...${{ fold: { ...fold, build: ['missing'] }, parts: { a: part }, n: numbers() }} />`);
  assert.equal(root.querySelector('button'), null);
});
