// The estimate and the causal map of the Heads tab: what they cost, how far they are, and how well the one foretold the other.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Effects } from '../../vit_viz/ui/heads/causal.js';
import { of, open, options, subject, target } from './heads_page.js';
import { settle } from './visit.js';

test('the estimate is fetched once for a class and a way of switching off', async () => {
  const part = await open({ now: { ...subject, options: { ...options, measure: 'estimate' } } });
  assert.deepEqual(part.asked, ['h4ndle?kind=measures', 'h4ndle?kind=importance&how=zero&target=7']);
  assert.deepEqual(part.texts(), ['4.0', '−2.0', '.00', '1.0', '2.0', '3.0']);
  assert.deepEqual(['low', 'high', 'unit'].map(part.text), ['-4', '4', 'change of the logit of lion']);
  const bars = part.cells().map((/** @type {any} */ cell) => cell.querySelector('.vv-heads-bar'));
  const drawn = (/** @type {any} */ { style }) =>
    ['--from', '--long'].map((name) => style.getPropertyValue(name));
  assert.deepEqual(bars.slice(0, 3).map(drawn), [['50.00%', '50.00%'], ['25.00%', '25.00%'], ['50.00%', '0.00%']]); // prettier-ignore
  assert.equal(
    part.text('found'),
    'Layer 0, head 0 matters most for lion: 4 without it; 2 of 2 heads are called local',
  );
  assert.equal(part.find('causal').hidden, false);
  assert.deepEqual([part.find('start').hidden, part.find('cost').hidden], [true, true]);
  part.choose('distance');
  part.choose('estimate');
  part.element.querySelectorAll('[data-how=mean]')[0].click();
  await settle();
  assert.deepEqual(part.asked.slice(2), ['h4ndle?kind=importance&how=mean&target=7']);
  await part.set({ revision: 5, options: { ...options, measure: 'estimate', how: 'mean' }, target: { ...target, link: '' }, causal_note: 'A note.' }); // prettier-ignore
  assert.deepEqual(part.asked.slice(3), ['h4ndle?kind=importance&how=mean']);
  assert.equal(part.text('cost'), 'A note.');
  await part.set({ revision: 6, options: { ...options, measure: 'estimate' }, target: null });
  assert.equal(part.asked.length, 4);
  assert.equal(part.element.dataset.ready, '');
});

test('an estimate that comes late is not of another trace', async () => {
  /** @type {((found: any) => void)[]} */
  const held = [];
  const part = await open({
    answer: (path) => path.includes('importance') && new Promise((done) => held.push(done)),
  });
  part.choose('estimate');
  assert.deepEqual(
    [part.text('wait'), part.find('wait').hidden],
    ['One pass forwards and one back …', false],
  );
  part.element.querySelectorAll('[data-order=value]')[0].click();
  assert.equal(held.length, 1); // it is on its way
  await part.set({ revision: 5, trace: 'other', options: { ...options, measure: 'estimate' } });
  held[0](undefined);
  await settle();
  assert.equal(part.element.dataset.ready, '');
  held[1](undefined);
  await settle();
  assert.equal(part.element.dataset.ready, 'estimate');
});

test('an estimate that failed is asked for again with the next choice', async () => {
  let broken = true;
  const part = await open({
    answer: (path) => broken && path.includes('importance') && new Error('No memory.'),
  });
  part.choose('estimate');
  await settle();
  assert.equal(part.text('error'), 'No memory. Try again');
  broken = false;
  part.choose('estimate');
  await settle();
  assert.equal(part.element.dataset.ready, 'estimate');
});

test('before a causal map is computed its table is empty, and says what it costs', async () => {
  const part = await open({ now: { ...subject, options: { ...options, measure: 'effect' } } });
  assert.deepEqual(part.texts(), new Array(6).fill(''));
  assert.deepEqual(
    ['bar', 'plot', 'scroll'].map((of_) => part.find(of_).hidden),
    [true, true, false],
  );
  assert.equal(part.cell(0).getAttribute('aria-label'), 'layer 0, head 0: not computed yet');
  const start = part.find('start');
  assert.deepEqual([start.hidden, start.disabled, start.textContent], [false, false, 'Switch off each head']);
  assert.deepEqual([part.find('stop').hidden, part.find('progress').hidden], [true, true]);
  assert.equal(part.text('cost'), 'Switches off 6 heads.');
  await part.set({ revision: 5, options: { ...options, measure: 'effect' }, causal_note: 'Too large.', target: null }); // prettier-ignore
  assert.deepEqual([part.text('cost'), start.disabled], ['Too large.', true]);
});

test('a causal map runs, is stopped, and is done: the button, the words and the plot follow', async () => {
  const part = await open({ now: { ...subject, options: { ...options, measure: 'effect' } } });
  const start = part.find('start');
  const table = of([[null, -1, 2], [3, null, null]], 'logit of class 7', true); // prettier-ignore
  const estimate = [[0, -1, 1], [0, 0, -8]]; // prettier-ignore
  const say = async (/** @type {any} */ zero) => part.set({ key: 'k', of: { zero } }, 'causal');
  await say({ table, estimate, correlation: 0.5, done: 3, running: true, share: 0.25, seq: 1 });
  assert.deepEqual(
    [start.hidden, part.find('stop').hidden, part.find('progress').hidden],
    [true, false, false],
  );
  assert.deepEqual([part.find('progress').value, part.find('cost').hidden], [0.25, true]);
  const said = 'Estimate and truth have a rank correlation of 0.50 over the 3 of 6 heads so far.';
  assert.equal(part.text('job'), `3 of 6 heads are done, what the estimate says matters most first. ${said}`);
  assert.equal(part.find('plot-box').getAttribute('aria-label'), said);
  assert.deepEqual(['low', 'high', 'first', 'last'].map(part.text), ['-3', '3', '-8', '8']); // both on one scale
  await say({ done: 3, running: false, share: 0.25, seq: 2, error: 'Stopped.' });
  assert.deepEqual([start.hidden, start.textContent], [false, 'Start again']);
  assert.equal(part.text('job'), `Stopped. ${said}`);
  assert.equal(part.text('cost'), 'Switches off 6 heads.');
  await say({ done: 6, running: false, seq: 3, error: '' });
  assert.deepEqual([start.hidden, part.find('stop').hidden, part.find('cost').hidden], [true, true, true]);
  part.element.querySelectorAll('[data-how=mean]')[0].click();
  assert.deepEqual([start.hidden, part.find('progress').value], [false, 0]); // of another way nothing is known
  part.element.querySelectorAll('[data-how=zero]')[0].click();
  part.choose('distance');
  assert.equal(part.text('plot-title'), 'Mean distance by depth');
  part.choose('estimate');
  assert.equal(start.hidden, true);
  await settle(); // the estimate is fetched
});

test('what is known of a causal map stays for its class, with its newest number', () => {
  const effects = new Effects();
  effects.begin('k', {});
  assert.equal(effects.follow(null), false);
  assert.equal(effects.follow({ key: 'other', of: {} }), false);
  effects.follow({ key: 'k', of: { zero: { seq: 3, done: 5, share: 0.5 } } });
  effects.follow({ key: 'k', of: { zero: { seq: 3, done: 1 } } }); // no newer
  effects.follow({ key: 'k', of: { zero: { done: 2 } } });
  assert.deepEqual(effects.of.zero, { seq: 3, done: 5, share: 0.5 });
  effects.begin('k', { zero: { done: 6 } });
  assert.deepEqual(effects.of.zero, { done: 6, seq: 3 });
  effects.follow({ key: 'k', of: { zero: { seq: 4, done: 7 } } });
  assert.deepEqual(effects.of.zero, { done: 7, seq: 4 });
  effects.begin('k', {});
  assert.equal(effects.of.zero.done, 7);
  effects.begin('other', { mean: { done: 1 } });
  assert.deepEqual(effects.of, { mean: { done: 1, seq: undefined } });
});
