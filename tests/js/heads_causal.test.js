// The estimate and the causal map of the Heads tab: what they cost, how far they are, and how well the one foretold the other.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, partOf, tableOf } from './heads_page.js';
import { settle } from './room.js';

const COST = 'About half a pass for each head.';

test('the estimate is asked for once for a class and a way of switching off', async () => {
  const part = await open({ link: 'measure=estimate' });
  assert.deepEqual(part.asked, ['head_tables lion', 'head_names lion', 'head_importance lion zero 7']);
  assert.deepEqual(part.texts(), ['4.0', '−2.0', '.00', '1.0', '2.0', '3.0']);
  assert.deepEqual(['low', 'high', 'unit'].map(part.text), ['-4', '4', 'change of the logit of lion']);
  const bars = part.cells().map((/** @type {any} */ cell) => cell.querySelector('.vv-track'));
  const drawn = (/** @type {any} */ { style }) =>
    ['--from', '--long'].map((name) => style.getPropertyValue(name));
  assert.deepEqual(bars.slice(0, 3).map(drawn), [['50.00%', '50.00%'], ['25.00%', '25.00%'], ['50.00%', '0.00%']]); // prettier-ignore
  assert.equal(
    part.text('found'),
    'Layer 0, head 0 matters most for lion: 4 without it; 2 of 2 heads are called local',
  );
  assert.equal(part.find('causal').hidden, false);
  assert.deepEqual([part.find('start').hidden, part.find('cost').hidden], [true, true]);
  await part.choose('distance');
  await part.choose('estimate');
  await part.click(part.all('[data-how=mean]')[0]);
  await settle();
  assert.deepEqual(part.asked.slice(3), ['head_importance lion mean 7']);
  await part.set({ target: '9' });
  assert.deepEqual(part.asked.slice(4), ['head_importance lion mean 9']);
  assert.equal(part.ready(), 'estimate');
});

test('of a model without classes the estimate is about its own embedding; one without scores says why there is none', async () => {
  const own = await open({
    link: 'measure=estimate',
    answer: (name) => name === 'target' && { classes: [], words: 'It has no classes.', name: '', link: '' },
  });
  assert.ok(own.asked.includes('head_importance lion zero'));
  const none = await open({
    link: 'measure=estimate',
    answer: (name) => name === 'target' && new Error('This model returns no scores.'),
  });
  assert.equal(none.text('cost'), 'This model returns no scores.');
  assert.deepEqual(none.asked, ['head_tables lion', 'head_names lion']);
  assert.equal(none.ready(), '');
  await none.set({ measure: 'effect' });
  assert.deepEqual([none.text('cost'), none.find('start').disabled], ['This model returns no scores.', true]);
});

test('an estimate that comes late is not of another photo', async () => {
  /** @type {((found?: any) => void)[]} */
  const held = [];
  const part = await open({
    answer: (name) => name === 'head_importance' && new Promise((done) => held.push(done)),
  });
  await part.choose('estimate');
  assert.deepEqual(
    [part.text('wait'), part.find('wait').hidden],
    ['One pass forwards and one back …', false],
  );
  await part.click(part.all('[data-order=value]')[0]);
  assert.equal(held.length, 1); // it is on its way
  await part.set({ image: 'other' });
  held[0]();
  await settle();
  assert.equal(part.ready(), '');
  held[1]();
  await settle();
  assert.equal(part.ready(), 'estimate');
});

test('the estimate of one way of switching off is not shown for another', async () => {
  const part = await open({
    link: 'measure=estimate',
    answer: (name, { how }) => name === 'head_importance' && how === 'mean' && new Promise(() => {}),
  });
  assert.equal(part.texts()[0], '4.0');
  await part.set({ how: 'mean' });
  assert.deepEqual([part.texts()[0], part.ready(), part.text('role')], ['', '', '']);
});

test('an estimate that failed is asked for again with the next choice', async () => {
  let broken = true;
  const part = await open({
    answer: (name) => broken && name === 'head_importance' && new Error('No memory.'),
  });
  await part.choose('estimate');
  await settle();
  assert.equal(part.text('error'), 'No memory. Try again');
  broken = false;
  part.find('error').querySelector('button').click();
  await settle();
  assert.equal(part.ready(), 'estimate');
});

test('before a causal map is computed its table is empty, and says what it costs', async () => {
  const part = await open({ link: 'measure=effect' });
  assert.deepEqual(part.texts(), new Array(6).fill(''));
  assert.deepEqual(part.seen('bar', 'scroll', 'stop', 'progress'), ['scroll']);
  assert.equal(part.cell(0).getAttribute('aria-label'), 'layer 0, head 0: not computed yet');
  const start = part.find('start');
  assert.deepEqual([start.hidden, start.disabled, start.textContent], [false, false, 'Switch off each head']);
  assert.equal(part.text('cost'), COST);
});

/** The tab with causal maps that a test answers: of each how it is told, and what ends it. */
async function running({
  face = 'atlas',
  answer = /** @type {(name: string, body: any) => any} */ (() => undefined),
  kept = /** @type {(how: string) => any} */ (() => undefined),
} = {}) {
  /** @type {{tell: any, done: (answer: any) => Promise<void>, fail: (words: string) => Promise<void>}[]} */
  const maps = [];
  const part = await open({
    link: `measure=effect&face=${face}`,
    kept,
    answer: (name, body, tell, stop) =>
      name === 'ablation'
        ? new Promise((give) => {
            stop.addEventListener('abort', () => give(undefined));
            maps.push({
              tell,
              done: (found) => (give(found), settle()),
              fail: (words) => (give(new Error(words)), settle()),
            });
          })
        : answer(name, body),
  });
  const start = async () => (part.find('start').click(), settle());
  return { ...part, maps, start };
}
const PART = partOf([[null, -1, 2], [3, null, null]], [[0, -1, 1], [0, 0, -8]]); // prettier-ignore
const WHOLE = tableOf([[1, -1, 2], [3, 4, 5]], 'change of the logit of class 7', true); // prettier-ignore

test('a causal map runs, is stopped, and is done: the button, the words and the plot follow', async () => {
  const part = await running({ face: 'depth' });
  const button = part.find('start');
  await part.start();
  assert.equal(part.text('job'), '0 of 6 heads are done, what the estimate says matters most first.');
  part.maps[0].tell({ share: 0.25, left: 'about 3 s left', preview: PART });
  await settle();
  assert.deepEqual([button.hidden, part.seen('stop', 'progress', 'cost')], [true, ['stop', 'progress']]);
  assert.equal(part.find('progress').value, 0.25);
  const said = 'Estimate and truth have a rank correlation of 0.50 over the 3 of 6 heads so far.';
  const far = '3 of 6 heads are done, what the estimate says matters most first; about 3 s left.';
  assert.equal(part.text('job'), `${far} ${said}`);
  assert.equal(part.plot().getAttribute('aria-label'), said);
  const beside = [...part.plot().querySelectorAll(':scope > div > span')].map(
    ({ textContent }) => textContent,
  );
  assert.deepEqual(beside, ['8', '-8', '-8', 'estimate', '8']); // both on one scale
  part.maps[0].tell({ share: 0.5, left: '' });
  await settle();
  assert.equal(part.find('dots').childElementCount, 3); // what was told before stays
  await part.click(part.find('stop'));
  assert.deepEqual([button.hidden, button.textContent], [false, 'Start again']);
  assert.equal(part.text('job'), `Stopped; the heads that were done are shown. ${said}`);
  assert.equal(part.text('cost'), COST);
  await part.start();
  assert.equal(part.find('dots').childElementCount, 3);
  await part.maps[1].fail('Too many wait.');
  assert.match(part.text('job'), /^Too many wait\. Estimate and truth/);
  await part.start();
  await part.maps[2].done(WHOLE);
  assert.deepEqual([button.hidden, part.seen('stop', 'cost')], [true, []]);
  assert.match(part.text('job'), /over all 6 heads\.$/);
  await part.click(part.all('[data-how=mean]')[0]);
  assert.deepEqual([button.hidden, part.seen('progress')], [false, []]); // of another way nothing is known
  await part.click(part.all('[data-how=zero]')[0]);
  await part.choose('distance');
  assert.equal(part.text('plot-title'), 'Mean distance by depth');
  await part.choose('estimate');
  assert.equal(button.hidden, true);
  await settle(); // the estimate is asked for
});

test('a map that was told nothing of has its estimate asked for, and shows both', async () => {
  const part = await running({ face: 'depth' });
  await part.start();
  await part.maps[0].done(WHOLE);
  assert.equal(part.asked.at(-1), 'head_importance lion zero 7');
  assert.match(part.text('job'), /^Estimate and truth have a rank correlation of .* over all 6 heads\.$/);
  assert.equal(part.text('plot-title'), 'What was estimated, and what is true');
});

test('one way at a time: another one ends it, as another photo or class does, whose numbers never mix', async () => {
  const part = await running();
  await part.start();
  assert.equal(part.asked.at(-1), 'ablation lion zero 7');
  await part.click(part.all('[data-how=mean]')[0]);
  await part.start();
  await part.click(part.all('[data-how=zero]')[0]);
  assert.equal(part.text('job'), 'Stopped; no head was done.');
  await part.set({ target: '9', how: 'mean' });
  assert.deepEqual([part.text('job'), part.find('start').hidden], ['', false]);
  part.maps[1].tell({ share: 0.9, left: '', preview: PART }); // of the class before
  assert.deepEqual([part.texts().join(''), part.text('job')], ['', '']);
  await part.start();
  part.maps[2].tell({ share: 0.3, left: '', preview: PART });
  await settle();
  assert.deepEqual(part.texts(), ['', '−1.0', '2.0', '3.0', '', '']);
  assert.equal(part.text('unit'), 'change of the logit of owl');
  await part.set({ image: 'other' });
  await part.maps[2].done(WHOLE);
  assert.deepEqual([part.texts().join(''), part.find('start').hidden], ['', false]);
});

test('a map that the server has at hand is shown without being started, and is looked for once for each way', async () => {
  /** @type {Record<string, any>} */
  const there = {
    zero: WHOLE,
    mean: new Error('Gone meanwhile.'),
    uniform: { cost: 'about half a pass for each head: about 11 s' },
  };
  const part = await running({ kept: (how) => there[how] });
  assert.deepEqual([part.maps.length, part.peeked], [0, ['lion zero 7']]);
  assert.deepEqual(part.texts(), ['1.0', '−1.0', '2.0', '3.0', '4.0', '5.0']);
  await part.click(part.all('[data-how=mean]')[0]);
  assert.deepEqual([part.text('job'), part.find('start').hidden], ['', false]); // it can be started
  await part.click(part.all('[data-how=uniform]')[0]);
  assert.equal(part.text('cost'), `${COST.slice(0, -1)}: about 11 s.`);
  await part.click(part.all('[data-how=zero]')[0]);
  assert.deepEqual(part.peeked, ['lion zero 7', 'lion mean 7', 'lion uniform 7']);
});
