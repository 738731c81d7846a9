// The trust of two classes' maps subtracted, on the stage: what is asked, what runs, and the curve with its three tests.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { firstChoice } from '../../vit_viz/web/explain/agree.js';
import { endOfStrips } from '../../vit_viz/web/explain/card.js';
import { mountStage } from './stage_part.js';
import { STAGED } from './staged.js';

const curve = (/** @type {number[]} */ y) => ({
  x: [0, 0.5, 1],
  y,
  low: [3, 0, -1],
  high: [3, 2, -1],
  ends: [-1, 3],
  labels: ['−1.00', '3.00'],
  texts: y.map((value) => `${value} logits`),
});
const measured = {
  what: 'the lead of lion over cougar',
  axis: 'lead of lion over cougar, in logits',
  names: ['lion', 'cougar'],
  better: true,
  grows: true,
  title: 'Area 0.5.',
  sentences: ['It is lost when 50% are gone.'],
  curves: { deletion: curve([3, -1, -1]), insertion: curve([-1, 2, 3]), reverse: curve([3, 3, -1]) },
};
const known = { key: 'k|1-2|relevance', label: 'Relevance', question: 'Does it follow?', cost: 'about 9 s' };
const photo = {
  ...STAGED,
  target: '1-2',
  method: 'Relevance',
  grid: [1, 4],
  region: [0, 0, 60, 180],
  order: '3,0,2,1',
  is_own: false,
  lead: known,
};

function shown(/** @type {any} */ lead = known) {
  const part = mountStage({ ...photo, lead });
  const press = (/** @type {string} */ name) =>
    /** @type {any} */ (part.element.querySelector(`[data-test=${name}]`)).click();
  const labels = () =>
    part.element
      .querySelectorAll('[data-test]')
      .filter((/** @type {any} */ button) => !button.hidden)
      .map((/** @type {any} */ button) => button.textContent);
  /** Measures it, and is answered so. */
  const measure = async (/** @type {any} */ answer) => {
    part.find('measure').click();
    await part.leads.at(-1)?.answer(answer);
  };
  return { ...part, press, labels, measure };
}

test('of one map there is no lead to measure; of two a button says what it costs', () => {
  assert.ok(shown(null).find('lead').hidden);
  const { find } = shown();
  assert.deepEqual([find('lead').hidden, find('lead').dataset.state], [false, 'open']);
  assert.deepEqual(
    [find('measure').textContent, find('job-words').textContent],
    ['Does it follow?', 'about 9 s'],
  );
  assert.ok(find('fall').hidden);
});

test('what is measured says how far it is, and can be ended', async () => {
  const { find, leads } = shown();
  const far = () => ['job-words', 'job-amount'].map((name) => find(name).textContent);
  find('measure').click();
  assert.deepEqual(leads[0].data, { view: 'image=x' });
  assert.deepEqual([find('lead').dataset.state, find('job-words').textContent], ['running', 'Starting …']);
  assert.ok(find('measure').hidden && !find('stop').hidden);
  leads[0].tell({ share: 0, left: '', preview: { words: 'Random orders …' } });
  assert.equal(find('job-words').textContent, 'Random orders …');
  leads[0].tell({ share: 0.5, left: 'about 4 s left' });
  assert.equal(/** @type {any} */ (find('progress')).value, 0.5);
  assert.deepEqual(far(), ['Random orders …', '50%, about 4 s left']);
  leads[0].tell({ share: 0.75, left: '', preview: { words: 'This map …' } });
  assert.deepEqual(far(), ['This map …', '75%']);
  find('stop').click();
  assert.ok(leads[0].stop.aborted);
  const stopped = 'This was stopped; nothing of it was kept.';
  assert.deepEqual([find('job-words').textContent, find('measure').hidden], [stopped, false]);
  await leads[0].answer(measured);
  assert.deepEqual([find('job-words').textContent, find('lead').dataset.state], [stopped, 'open']);
});

test('a measurement that is refused says why, and can be asked for again', async () => {
  const { find, measure } = shown();
  await measure(new Error('The picture is gone.'));
  assert.deepEqual([find('job-words').textContent, find('measure').hidden], ['The picture is gone.', false]);
  await measure(measured);
  assert.equal(find('lead').dataset.state, 'measured');
});

test('a measurement is about one map; it goes on while another one is looked at, but not another class', async () => {
  const { find, leads, show } = shown();
  const other = { ...photo, lead: { ...known, key: 'k|1-2|legrad' } };
  find('measure').click();
  show(other);
  assert.deepEqual([find('lead').dataset.state, leads[0].stop.aborted], ['open', false]);
  show({ ...photo, lead: known });
  assert.equal(find('lead').dataset.state, 'running');
  show(other);
  find('measure').click();
  assert.ok(leads[0].stop.aborted);
  await leads[1].answer(measured);
  assert.equal(find('lead').dataset.state, 'measured');
  show({ ...photo, lead: known });
  assert.equal(find('lead').dataset.state, 'open');
  find('measure').click();
  show({ ...photo, target: '1-3', lead: { ...known, key: 'k|1-3|relevance' } });
  assert.ok(leads[2].stop.aborted);
  assert.equal(find('lead').dataset.state, 'open');
});

test('the curve is of the lead, from either end of the map, with 0 as a line and the slider on it', async () => {
  const { find, measure, press, labels, browser } = shown();
  /** @type {number[]} */
  const taken = [];
  browser.window.addEventListener('vv-taken', (/** @type {any} */ event) => taken.push(event.detail));
  await measure(measured);
  assert.equal(find('lead').dataset.state, 'measured');
  assert.equal(
    find('fall-title').textContent,
    'Relevance: the lead of lion over cougar falls as its orange patches go',
  );
  assert.equal(find('axis').textContent, 'lead of lion over cougar, in logits');
  assert.deepEqual(labels(), ['orange away', 'orange back', 'blue away']);
  assert.equal(find('line').getAttribute('d'), 'M0.00 0.00L50.00 100.00L100.00 100.00');
  assert.equal(find('zero').getAttribute('d'), 'M0.00 75.00L100.00 75.00');
  assert.equal(find('lead-said').textContent, 'It is lost when 50% are gone.');
  /** @type {any} */ (find('most')).value = '2';
  find('most').fire('input');
  assert.deepEqual([find('now').hidden, find('now').style.left], [false, '50%']);
  assert.equal(taken.at(-1), 0); // the curve of the card is of another map
  press('reverse');
  assert.equal(
    find('fall-title').textContent,
    'Relevance: the lead of lion over cougar first grows as its blue patches go',
  );
  assert.equal(find('key-words').textContent, 'most for cougar first');
  assert.ok(find('now').hidden);
  press('insertion');
  assert.equal(find('first').textContent, 'no patch there');
});

test('a curve that is at hand is shown at once', () => {
  const { find } = shown({ ...known, ...measured });
  assert.deepEqual([find('lead').dataset.state, find('job').hidden], ['measured', true]);
});

test('leads below 0 have their place on a line, and the first card is said with their mean', () => {
  const place = (/** @type {number} */ area) => ({ area, low: -0.5, high: 1, mean: 0.2, floor: -2 });
  const trust = (/** @type {number} */ area) => ({
    options: '',
    better: true,
    what: measured.what,
    place: place(area),
  });
  assert.equal(endOfStrips([trust(-1), trust(0)]), -2 + 1.6 * 3);
  assert.equal(endOfStrips([]), 0);
  const said = firstChoice([
    { label: 'A', trust: trust(-1.5) },
    { label: 'B', trust: trust(-1) },
  ]);
  assert.equal(
    said,
    'Believe A first: as the best patches go, the mean of the lead of lion over cougar is −1.5; random orders lie between −0.5 and 1.',
  );
});
