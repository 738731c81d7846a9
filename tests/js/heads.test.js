// The Heads tab: its words and its arithmetic, and its table over the store.

import assert from 'node:assert/strict';
import test from 'node:test';

import { agreement, jobWords } from '../../vit_viz/web/heads/causal.js';
import { atlasFinding, depthFinding } from '../../vit_viz/web/heads/findings.js';
import { evidenceOf, nameWords, numberWords, ruleWords, thinWords } from '../../vit_viz/web/heads/names.js';
import {
  agreementWords,
  cellText,
  endsOf,
  keyOf,
  layerMeans,
  orderOf,
  scaleWords,
  valueWords,
} from '../../vit_viz/web/heads/words.js';
import { open } from './heads_page.js';
import { settle, texts } from './room.js';

const SHARE = 'share of the attention';
const table = (/** @type {(number | null)[][]} */ values, signed = false, unit = SHARE) => ({
  values,
  unit,
  signed,
});

test('a value has its unit, and a share is in percent', () => {
  assert.equal(valueWords(0.2345, SHARE), '23.4% of the attention');
  assert.equal(valueWords(0.006, SHARE), '0.6% of the attention');
  assert.equal(valueWords(56.44, 'pixels of the model input'), '56.4 pixels of the model input');
  assert.equal(valueWords(-0.5, 'correlation'), '-0.5 correlation');
  assert.equal(valueWords(null, SHARE), 'not computed yet');
});

test('a title names the head that has most of what is measured, or says that none has much', () => {
  const beside = (/** @type {number} */ most) =>
    atlasFinding(table([[0.00006, most]]), 'attention on the left neighbour', null);
  assert.equal(
    beside(0.029),
    'No head has much attention on the left neighbour: at most 2.9%, in layer 0, head 1',
  );
  assert.equal(beside(0.71), 'Attention on the left neighbour is largest in layer 0, head 1: 71%');
  assert.equal(
    atlasFinding(table([[4, 30]], false, 'pixels'), 'distance', null),
    'Distance is largest in layer 0, head 1: 30 pixels; smallest in layer 0, head 0: 4',
  );
  assert.equal(atlasFinding(table([[4, 4]], false, 'pixels'), 'distance', null), 'Distance is 4 pixels in all heads'); // prettier-ignore
  assert.equal(atlasFinding(table([[null, null]]), 'distance', null), '');
  assert.equal(
    depthFinding(table([[0.25, 0.75], [0, 0.006]]), 'attention'),
    'Attention is highest in layer 0 (mean 50%) and lowest in layer 1 (mean 0.3%)',
  ); // prettier-ignore
});

test('which head matters most is said of those that were switched off, and an estimate is called one', () => {
  const change = 'change of the logit of class 7';
  const lion = { name: 'lion', isEstimate: false };
  const of = (/** @type {(number | null)[]} */ row, target = lion) =>
    atlasFinding(table([row, [null, 2]], true, change), 'causal effect', target);
  assert.equal(of([1, null]), '2 of 4 heads switched off: so far layer 1, head 1 matters most for lion: +2 without it'); // prettier-ignore
  const all = table([[1, -3], [0, 2]], true, change); // prettier-ignore
  assert.equal(atlasFinding(all, '', lion), 'Layer 0, head 1 matters most for lion: -3 without it');
  const guess = { ...lion, isEstimate: true };
  assert.equal(atlasFinding(all, '', guess), 'By one gradient, layer 0, head 1 matters most for lion: about -3 without it'); // prettier-ignore
  assert.equal(atlasFinding(table([[0]], true, change), '', lion), 'No head changes the answer for lion');
});

test('what is lit has its share of the attention', () => {
  assert.equal(
    scaleWords({ most: 0.0221, lit: 0.0221, sum: 0.998 }),
    "Brightest: 2.21% of its attention, this head's own scale; 99.8% falls on patches.",
  );
  assert.match(scaleWords({ most: 2e-7, lit: 2e-7, sum: 8e-6 }), /: <0.001% of .*; <0.001% falls on patches/);
  assert.match(scaleWords({ most: 5e-4, lit: 5e-4, sum: 1 }), /^Brightest: 0.05% of/);
  assert.equal(
    scaleWords({ most: 0.19, lit: 0.025, sum: 0.998 }),
    "Fully lit from 2.5% of its attention on, at most 19%, this head's own scale; 99.8% falls on patches.",
  );
});

test('a cell has room for three letters and a sign', () => {
  const values = [114.4, 9.97, 7.16, 0.997, 0.234, 0, -0.05, -3.43, -0.001, null];
  const expected = ['114', '10', '7.2', '1.0', '.23', '.00', '−.05', '−3.4', '.00', ''];
  const written = (/** @type {(number | null)[]} */ some, unit = '') =>
    some.map((one) => cellText(one, unit));
  assert.deepEqual(written(values), expected);
  assert.deepEqual(written([0.006, 0.0994, 0.0996, 0.71, 1, 0, null], SHARE), ['0.6%', '9.9%', '10%', '71%', '100%', '0.0%', '']); // prettier-ignore
});

test('colours go from the smallest to the largest value, and as far below zero as above where values have signs', () => {
  assert.deepEqual(endsOf(table([[3, 1], [null, 2]])), [1, 3]); // prettier-ignore
  assert.deepEqual(endsOf(table([[0.5, -2]], true)), [-2, 2]);
  assert.deepEqual(endsOf(table([[0, 0]], true)), [-1, 1]);
  assert.deepEqual([endsOf(table([[null]])), endsOf(table([[null]], true))], [[0, 1], [-1, 1]]); // prettier-ignore
});

test('of all heads the largest come first, equal ones in their order, and the unknown last', () => {
  const keys = (/** @type {any} */ of, /** @type {string} */ order) =>
    orderOf(of, order).map((row) => row.map(keyOf).join(' '));
  const some = table([[0.1, null, 0.7], [0.1, 0.9, null]]); // prettier-ignore
  assert.deepEqual(keys(some, 'value'), ['1.1 0.2 0.0', '1.0 0.1 1.2']);
  assert.deepEqual(keys(some, 'head'), ['0.0 0.1 0.2', '1.0 1.1 1.2']);
  const changes = table([[1, -3], [0, 2]], true, 'change of the logit'); // prettier-ignore
  assert.deepEqual(keys(changes, 'value'), ['0.1 1.1', '0.0 1.0']); // by what they change in either direction
  assert.deepEqual(keys({ ...changes, unit: 'correlation' }, 'value'), ['1.1 0.0', '1.0 0.1']);
});

test('the mean of a layer is over the heads that are known', () => {
  const means = layerMeans(table([[1, 2, null], [null, null, null]])); // prettier-ignore
  assert.deepEqual(means, [1.5, null]);
});

test('agreement is told over the heads that are done', () => {
  assert.equal(agreementWords({ done: 2, correlation: 1 }, 36), '');
  const so = 'Estimate and truth have a rank correlation of 0.67 over';
  assert.equal(agreementWords({ done: 9, correlation: 0.668 }, 36), `${so} the 9 of 36 heads so far.`);
  assert.equal(agreementWords({ done: 36, correlation: 0.668 }, 36), `${so} all 36 heads.`);
});

/** @type {import('../../vit_viz/web/heads/names.js').Rule[]} */
const RULES = [
  { name: 'neighbour', sentence: 'Beside.', at_least: { neighbour: 0.2 }, at_most: {} },
  { name: 'local', sentence: 'Near.', at_least: {}, at_most: { distance: 0.2 } },
];
const named = {
  layer: 1,
  head: 0,
  name: 'neighbour',
  label: 'left neighbour',
  sentence: 'Beside. Neighbour 0.21 (at least 0.2).',
  numbers: { neighbour: 0.21, distance: 0.3 },
  could_be: ['mixed'],
  thin: true,
};

test('a name has its evidence: every number beside its threshold', () => {
  assert.equal(ruleWords(RULES[1]), "mean distance, as a share of the photo's diagonal, at most 20%");
  assert.deepEqual(evidenceOf(named, RULES), [
    {
      name: 'neighbour',
      number: 'neighbour',
      value: 0.21,
      text: '21%',
      bound: 'at least 20%',
      limit: 0.2,
      passes: true,
    },
    {
      name: 'local',
      number: 'distance',
      value: 0.3,
      text: '30%',
      bound: 'at most 20%',
      limit: 0.2,
      passes: false,
    },
  ]);
  assert.equal(numberWords('unevenness'), 'unevenness (1 - entropy)');
  assert.equal(nameWords(named), 'left neighbour (thin evidence)');
  assert.equal(nameWords({ ...named, thin: false }), 'left neighbour');
  assert.equal(nameWords(undefined), '');
});

test('where evidence is thin it says so', () => {
  assert.equal(
    thinWords(named, 0.1),
    'The evidence is thin: with thresholds 10% stricter or looser it would be mixed.',
  );
  assert.equal(thinWords({ ...named, could_be: [] }, 0.1), '');
  assert.match(thinWords({ ...named, name: 'mixed', could_be: [] }, 0.1), /No rule holds/);
});

test('estimate and truth are compared by their ranks over the heads that are computed; equal ones share a rank', () => {
  const truth = (/** @type {(number | null)[]} */ ...row) => table([row], true);
  assert.ok(Math.abs(agreement([[1, 2, 3, 9]], truth(10, 20, 1000, null)) - 1) < 1e-6);
  assert.ok(Math.abs(agreement([[3, 2, 1]], truth(-1, 0, 5)) + 1) < 1e-6);
  assert.ok(Math.abs(agreement([[1, 1, 2, 3]], truth(1, 2, 3, 4)) - 0.9486833) < 1e-6); // scipy.stats.spearmanr
  assert.equal(agreement([[1, 1]], truth(2, 3)), 0);
});

test('a job says how far it is', () => {
  assert.equal(jobWords(undefined, { isRunning: false }, 36), '');
  assert.equal(
    jobWords({ done: 2 }, { isRunning: true }, 36),
    '2 of 36 heads are done, what the estimate says matters most first.',
  );
  assert.equal(jobWords({ done: 1, error: 'Stopped.' }, { isRunning: false }, 36), 'Stopped.');
});

// --- the table

test('the table has a row for each layer with the numbers of the measure, and marks the chosen head', async () => {
  const part = await open();
  assert.deepEqual(part.texts(), ['10', '20', '30', '6.0', '5.0', '4.0']);
  const label = part.cell(5).getAttribute('aria-label');
  assert.equal(label, '4.0; layer 1, head 2: 4 pixels; local (thin evidence)');
  assert.equal(part.selected(), 5);
  const reached = part.cells().filter((/** @type {any} */ cell) => cell.getAttribute('tabindex') === '0');
  assert.equal(reached.length, 1);
  assert.deepEqual(['low', 'high'].map(part.text), ['0', '30']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: patch (0, 1) looks at all patches alike');
  assert.equal(part.text('readout'), 'mean distance: 4 pixels');
  assert.deepEqual(part.asked, ['head_tables lion', 'head_names lion']);
  assert.ok(part.lit.some((path) => path.includes('/rows/h4ndle/1?query=0%2C1')));
  assert.ok(part.text('scale').startsWith('Brightest: 12.5% of its attention'));
  assert.ok(part.text('scale').endsWith('75% falls on patches.'));
});

test('measures that this model does not have cannot be chosen', async () => {
  const tables = { distance: { unit: 'pixels', signed: false } };
  const values = { shape: [2, 3], data: new Float32Array(6) };
  const part = await open({
    answer: (name) =>
      name === 'head_tables' && { arrays: { 'tables.distance.values': values }, facts: { tables, note: '' } },
  });
  const options = part.find('measure').querySelectorAll('option');
  assert.deepEqual(
    options.map((/** @type {any} */ one) => one.disabled),
    [false, true, false, false],
  );
});

test('a head that is chosen is in the link, and one that is chosen elsewhere is marked', async () => {
  const part = await open();
  await part.click(part.cell(0));
  await part.click(part.cell(4));
  assert.deepEqual([part.selected(), part.says('layer'), part.says('head')], [4, '1', '1']);
  assert.ok(part.written.every(([, push]) => !push));
  await part.set({ layer: 0, head: 2 });
  assert.equal(part.selected(), 2);
  await part.set({ head: 'mean' }); // of the Look tab: here it is the first
  assert.equal(part.selected(), 0);
  await part.set({ layer: null, head: 'mean' }); // nobody has chosen: where a first look begins
  assert.equal(part.selected(), 1);
});

test('any class can be searched for, and the one that is chosen is in the link', async () => {
  const part = await open({ link: 'measure=effect' });
  assert.deepEqual(texts(part.find('why').children), ['lion50%']);
  const field = part.find('search');
  field.value = 'owl';
  field.fire('input');
  await part.pass(200);
  assert.deepEqual(part.posted.at(-1), ['target', { view: 'image=lion', find: 'owl' }]);
  part.find('hits').querySelectorAll('button')[0].click();
  await settle();
  assert.deepEqual(part.written.at(-1), [{ target: '24' }, false]);
  await part.click(part.find('start'));
  assert.equal(part.asked.at(-1), 'ablation lion zero 24');
});

test('what cannot be shown is one sentence, and what is chosen instead is shown', async () => {
  const part = await open({
    link: 'model=none',
    answer: (name, { view }) => name === 'open' && view.includes('none') && new Error('No such model.'),
  });
  assert.equal(part.text('error'), 'No such model.');
  assert.deepEqual([part.find('main').hidden, part.find('wait').hidden], [true, true]);
  await part.set({ model: '' });
  assert.deepEqual([part.text('error'), part.find('main').hidden], ['', false]);
});
