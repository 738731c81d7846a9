// What a site says in place of the server: sizes, classes and edits, in the words that Python has for them, and what it answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TABLE } from '../../vit_viz/browser/answers/index.js';
import { NAMES } from '../../vit_viz/browser/answers/names.js';
import { saidOf } from '../../vit_viz/site/edited.js';
import { targetValue } from '../../vit_viz/site/target.js';
import { editsIn } from '../../vit_viz/web/kit/edits.js';

test('a page knows the names of all questions that its engine answers', () => {
  assert.deepEqual([...NAMES].sort(), Object.keys(TABLE).sort());
});

/** A model of five classes. */
const loaded = /** @type {any} */ ({
  config: { num_classes: 5 },
  labels: ['great grey owl', 'owlet', 'barn-owl', 'lion', 'howler'],
  output: null,
});
const logits = Float32Array.from([0, 3, 1, 4, 2]);

test('the classes that a link names are listed behind the first three, and what is not possible is said', () => {
  const { classes, chosen, other, name, link, words } = /** @type {any} */ (
    targetValue(logits, loaded, '0-1')
  );
  assert.deepEqual(classes.map((/** @type {any} */ one) => one.index), [3, 1, 4, 0]); // prettier-ignore
  assert.ok(Math.abs(classes[0].probability - 0.6364) < 1e-4);
  assert.deepEqual([chosen, other, name, link, words], [0, 1, 'great grey owl and not owlet', '0-1', '']);
  const first = /** @type {any} */ (targetValue(logits, loaded, ''));
  assert.deepEqual([first.chosen, first.other, first.link], [3, null, '3']);
  assert.match(
    /** @type {any} */ (targetValue(logits, loaded, '9')).words,
    /has classes 0-4; its first class/,
  );
  assert.match(/** @type {any} */ (targetValue(logits, loaded, '2-2')).words, /cannot be set against itself/);
});

test('a class is found by its number, and by its name before names that begin so or hold it', () => {
  const found = (/** @type {string} */ text) =>
    /** @type {any} */ (targetValue(logits, loaded, '', text)).hits.map(
      (/** @type {any} */ one) => one.index,
    );
  assert.deepEqual([found('owl'), found('2'), found('Lion '), found('')], [[1, 0, 2, 4], [2], [3], []]); // prettier-ignore
});

test('edits are said in a few words, and each with those that are left without it', () => {
  const { words, each } = saidOf(editsIn('off 1.2 0.3;mean 2.1;temperature 7=0.5;forbid class>2,3'));
  assert.equal(words, '2 heads off, 1 head at its mean, temperature of layer 7, 1 view forbidden');
  assert.deepEqual(each.map(({ said }) => said).slice(0, 4), [
    'layer 1, head 2: off',
    'layer 0, head 3: off',
    'layer 2, head 1: at its mean',
    'layer 7: temperature 0.5, sharper',
  ]);
  assert.equal(each[0].left, 'off 0.3;mean 2.1;temperature 7=0.5;forbid class>2,3');
  assert.equal(each[3].left, 'off 0.3 1.2;mean 2.1;forbid class>2,3');
});
