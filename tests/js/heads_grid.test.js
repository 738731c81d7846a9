// The plot and the names of heads, each by itself on its part of the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  countsOf,
  evidenceOf,
  legendWords,
  namesIn,
  numberWords,
  ruleWords,
  thinWords,
} from '../../vit_viz/web/heads/names.js';
import { layoutOf } from '../../vit_viz/web/heads/maps.js';
import { besideIn, depthDots, meanLine, Plot } from '../../vit_viz/web/heads/plot.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { inkOn } from '../../vit_viz/web/survey/heads.js';
import { Browser, parse, ending } from './browser.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const GRAYS = Uint32Array.from({ length: 256 }, (_, i) => 0xff000000 + 0x10101 * i);

test('letters are black on what is lighter than the middle of lightness, else white', () => {
  const ink = (/** @type {number} */ colour) => inkOn(Uint32Array.of(0, colour), 1).ink;
  assert.deepEqual([117, 118].map((gray) => ink(0x10101 * gray)), ['#fff', '#000']); // prettier-ignore
  assert.deepEqual([ink(236), ink(237)], ['#fff', '#000']); // red
  assert.deepEqual([ink(136 << 8), ink(138 << 8)], ['#fff', '#000']); // green
  assert.equal(ink(255 << 16), '#fff'); // blue
  assert.deepEqual([ink((230 << 0) | (40 << 16)), ink((236 << 0) | (40 << 16))], ['#fff', '#000']);
  assert.equal(inkOn(GRAYS, 7).ground, 'rgb(7 7 7)');
  assert.equal(inkOn(GRAYS.subarray(5), 7).ground, 'rgb(12 12 12)');
  assert.equal(inkOn(Uint32Array.of(0x0a0b0c), 0).ground, 'rgb(12 11 10)');
});

/** The plot of a table, and its parts. */
function plotOf(/** @type {any} */ table, estimate = any(undefined), foretold = '') {
  new Browser().install();
  const root = any(parse('<div></div>'));
  const marks = { chosen: signal({ layer: 0, head: 1 }), hovered: signal(any({ layer: 1, head: 0 })) };
  const numbers = { foretold, effect: { estimate } };
  const seen = { table, label: 'mean change', look: { measure: 'effect' }, numbers, marks, choose: () => {} };
  render(html`<${Plot} seen=${seen} />`, root);
  ending.after(() => render(null, root));
  const find = (/** @type {string} */ name) => root.querySelector(`.vv-heads-${name}`);
  const dots = () => [...root.querySelectorAll('.vv-heads-dot')];
  return {
    ...{ find, dots },
    places: () =>
      dots().map(({ dataset, style }) =>
        [`${dataset.layer}.${dataset.head}`, style.left, style.bottom].join(' '),
      ),
    words: (/** @type {string[]} */ ...names) => names.map((name) => find(name).textContent),
    path: (/** @type {string} */ name) => root.querySelector(`.vv-plot-${name}`).getAttribute('d'),
    beside: () => [...root.querySelectorAll('.vv-plot > div > span')].map(({ textContent }) => textContent),
    label: () => root.querySelector('.vv-plot').getAttribute('aria-label'),
  };
}
const WORDS = ['plot-title', 'plot-words'];

test('dots stand where their numbers are, and the mean of each layer is a line', () => {
  const table = { values: [[-16, 32], [16, null], [null, null]], unit: '', signed: true }; // prettier-ignore
  const plot = plotOf(table);
  assert.deepEqual(plot.places(), ['0.0 0% 25%', '0.1 0% 100%', '1.0 50% 75%']);
  assert.deepEqual([plot.path('line'), plot.path('rules')], ['M0.00 37.50L50.00 25.00', 'M0 50.00H100']);
  assert.deepEqual(plot.beside(), ['32', '-32', '0', 'layer', '2']);
  assert.deepEqual(plot.words(...WORDS), [
    'Mean change by depth',
    'A dot for each head; the line is the mean of each layer.',
  ]);
  assert.equal(plot.label(), 'mean change by layer, mean over the heads: 8, 16, unknown');
  assert.deepEqual(plot.dots().map(({ title, className }) => [title, className.replace('vv-heads-dot', '').trim()]), [['layer 0, head 0', ''], ['layer 0, head 1', 'vv-chosen'], ['layer 1, head 0', 'vv-hovered']]); // prettier-ignore
  assert.ok(!find(plot).classList.contains('vv-square'));
  assert.equal(plotOf({ ...table, values: [[5, 30]], signed: false }).path('rules'), ''); // prettier-ignore
});

/** @param {ReturnType<typeof plotOf>} plot */
const find = (plot) => plot.find('plot');

test('what was estimated is compared with what is true on one scale for both', () => {
  const table = { values: [[-16, 32], [16, null], [null, null]], unit: '', signed: true }; // prettier-ignore
  const plot = plotOf(table, [[0, -16], [16, 32], [1, 1]], 'So well.'); // prettier-ignore
  assert.deepEqual(plot.places(), ['0.0 50% 25%', '0.1 25% 100%', '1.0 75% 75%']);
  assert.equal(plot.path('line'), 'M0.00 100.00L100.00 0.00');
  assert.deepEqual(plot.beside(), ['32', '-32', '-32', 'estimate', '32']);
  assert.deepEqual(plot.words(...WORDS), [
    'What was estimated, and what is true',
    'A dot for each head: to the right what one gradient foretold, upwards what changed. On the line both are equal.',
  ]);
  assert.equal(plot.label(), 'So well.');
  assert.ok(find(plot).classList.contains('vv-square'));
  assert.equal(plotOf(table, [[0, 0], [0, 0], [0, 0]]).label(), 'Estimate against causal effect'); // prettier-ignore
});

test('arrows lead to the next head of a layer, and to the nearest one of the next layer', () => {
  const dots = depthDots({ values: [[-16, 32], [16, null]], unit: '', signed: true }, [-32, 32]); // prettier-ignore
  const beside = (/** @type {number[]} */ [layer, head], /** @type {[number, number]} */ step) => {
    const next = besideIn(dots, { layer, head }, step);
    return next && [next.layer, next.head];
  };
  assert.deepEqual(beside([0, 0], [-1, 0]), [0, 1]); // upwards
  assert.deepEqual(beside([0, 1], [1, 0]), [0, 0]);
  assert.deepEqual(beside([0, 0], [0, 1]), [1, 0]);
  assert.deepEqual(beside([1, 0], [0, -1]), [0, 1]); // the nearest one of two
  assert.equal(beside([0, 1], [-1, 0]), undefined);
  assert.equal(beside([0, 1], [0, -1]), undefined);
});

test('a model of one layer has its dots at the left, and where all numbers are one they are in the middle', () => {
  const table = { values: [[4, 4]], unit: '', signed: false };
  assert.deepEqual(depthDots(table, [4, 4]), [{ layer: 0, head: 0, x: 0, y: 0.5 }, { layer: 0, head: 1, x: 0, y: 0.5 }]); // prettier-ignore
  assert.deepEqual(meanLine(table, [4, 4]), [[0, 0.5]]);
  const two = { ...table, values: [[0, 2], [4, null]] }; // prettier-ignore
  assert.deepEqual(meanLine(two, [0, 4]), [[0, 0.25], [1, 1]]); // prettier-ignore
});

/** @type {import('../../vit_viz/web/heads/names.js').Rule[]} */
const RULES = [
  { name: 'neighbour', sentence: 'Beside.', at_least: { neighbour: 0.2 }, at_most: { unevenness: 0.5 } },
  { name: 'local', sentence: 'Near.', at_least: {}, at_most: { distance: 0.25 } },
  { name: 'other', sentence: 'Far.', at_least: { odd: 3, content: 0.125 }, at_most: {} },
];
const named = (/** @type {number} */ layer, /** @type {number} */ head, changes = {}) => ({
  layer,
  head,
  name: 'neighbour',
  side: 'left',
  sentence: 'It looks left.',
  numbers: { neighbour: 0.2, unevenness: 0.5, distance: 0.25, odd: 2, content: 0.125 },
  could_be: ['mixed', 'local'],
  ...changes,
});

const MIXED_ONE = { name: 'mixed', side: '', could_be: [] };

test('names are a legend in the order of the rules, and say which no head has', () => {
  const list = [named(0, 2, MIXED_ONE), named(1, 0), named(1, 1, { name: 'local', side: '', could_be: [] })];
  const names = namesIn(list, 'Not all is known.');
  assert.deepEqual(countsOf(names, RULES), ['neighbour', 'local', 'mixed'].map((kind) => ({ kind, count: 1 }))); // prettier-ignore
  assert.match(
    legendWords(names, RULES, ''),
    /^The dot on a head is its name: .* No head is called other\. Not all is known\.$/,
  );
  assert.deepEqual(['0.2', '1.0', '1.1'].map((key) => [names.known.get(key)?.label, names.known.get(key)?.thin]), [['mixed', true], ['left neighbour', true], ['local', false]]); // prettier-ignore
  assert.equal(legendWords(namesIn([], 'No names here.'), RULES, ''), 'No names here.');
  const every = namesIn([named(0, 0), named(0, 1, { name: 'local' }), named(0, 2, { name: 'other' })], '');
  assert.match(legendWords(every, RULES, ''), /thin\.$/); // every name has a head
  assert.equal(legendWords(names, RULES, 'neighbour'), 'Beside. Share of the attention on that patch at least 20%, unevenness (1 - entropy) at most 0.5.'); // prettier-ignore
  assert.equal(legendWords(names, RULES, 'mixed'), 'Nothing stands out: no measure passes its threshold.');
});

test('few heads of many layers stand in bands beside each other, where that makes their photos larger', () => {
  new Browser().install();
  const of = (/** @type {number} */ layers, /** @type {number} */ heads, width = 720) => {
    const { cell, rows, bands, shift } = layoutOf(
      any({ layers, heads, crop: { region: [0, 0, 32, 32] } }),
      width,
    );
    return { rows, bands, wide: (bands - 1) * shift + 32 + heads * cell.width, tall: rows * cell.height };
  };
  const few = of(12, 3);
  assert.deepEqual([few.rows, few.bands], [6, 2]);
  assert.ok(few.wide > 0.7 * 720 && few.wide <= 720);
  for (const [layers, heads] of [[6, 6], [12, 12], [12, 16], [24, 16]]) assert.equal(of(layers, heads).bands, 1); // prettier-ignore
  for (const [layers, heads, width] of [
    [24, 4, 720],
    [13, 3, 300],
    [5, 1, 720],
  ]) {
    // prettier-ignore
    const { rows, bands, wide, tall } = of(layers, heads, width);
    assert.ok(rows * bands >= layers && rows * (bands - 1) < layers && wide <= width && tall <= 1000);
  }
});

test('where the evidence is thin it says by how much, and a rule says what it asks for', () => {
  assert.equal(thinWords(any(named(1, 0)), 0.05).split('%')[0], 'The evidence is thin: with thresholds 5');
  assert.equal(evidenceOf(any(named(1, 0, { numbers: { neighbour: 0.1, unevenness: 0.6 } })), RULES.slice(0, 1)).some(({ passes }) => passes), false); // prettier-ignore
  assert.equal(ruleWords(RULES[2]), 'odd at least 3, correlation of attention with likeness at least 0.125');
  assert.equal(numberWords('odd'), 'odd');
});
