// Which card to believe first, and which methods agree: what is said and drawn of the numbers of the server.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { firstChoice } from '../../vit_viz/web/explain/agree.js';
import { mountGallery } from './gallery_part.js';

const trust = (/** @type {number} */ area, better = true) => ({
  options: '',
  better,
  place: { area, low: 0.31, high: 0.56, mean: 0.44 },
});
const cards = (/** @type {[string, any][]} */ ...all) => all.map(([label, of]) => ({ label, trust: of }));

test('the card with the smallest area is to be believed first, with its number and the band', () => {
  assert.equal(
    firstChoice(cards(['Relevance', trust(0.0721)], ['LeGrad', trust(0.2)])),
    "Believe Relevance first: as the best patches go, the mean height of the answer's curve is 0.072; random orders lie between 0.31 and 0.56.",
  );
  assert.ok(firstChoice(cards(['A', trust(0.07)]), 'lion').startsWith('Believe A first for lion: '));
});

test('less is said where two do as well, where none beats the random orders, and where nothing was tested', () => {
  const both = firstChoice(cards(['A', trust(0.1)], ['B', trust(0.11)]));
  assert.ok(both.startsWith('A and B do about equally well: ') && both.includes(' is 0.1 and 0.11; '));
  assert.ok(firstChoice(cards(['A', trust(0.1)], ['B', trust(0.12)])).startsWith('Believe A first: '));
  const none = firstChoice(cards(['A', trust(0.4, false)], ['B', trust(0.5, false)]));
  assert.equal(
    none,
    'Believe none first: no map tested does better than the band of random orders (0.31 to 0.56).',
  );
  assert.equal(firstChoice(cards(['A', undefined], ['B', { options: '', error: 'no' }])), '');
});

test('the agreement is a table of the correlations, and goes with an error', () => {
  const part = mountGallery({
    key: 'k',
    rule: 'Each card less the mean.',
    cards: [],
    agreement: {
      names: ['A', 'B'],
      values: [
        [1, -0.26],
        [-0.26, 1],
      ],
      words: 'No two maps look alike.',
    },
  });
  assert.equal(part.find('agree-words').textContent, 'No two maps look alike.');
  assert.equal(part.find('rule-words').textContent, 'Each card less the mean.');
  const cells = part.find('agree-table').querySelectorAll('td');
  assert.deepEqual(
    [...cells].map((cell) => cell.textContent),
    ['', '−0.3', '−0.3', ''],
  );
  part.set({ error: 'gone' });
  assert.deepEqual(
    ['agree', 'rule-words', 'first-choice'].map((name) => part.find(name).hidden),
    [true, true, true],
  );
});
