// Which words a head writes: of which models it is there, when it is asked for, what is said, and what becomes of one that fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open } from './heads_page.js';
import { settle, texts } from './room.js';

const SCORES = [0.05, 0.04, -0.004, -0.1];
const FACTS = {
  names: ['dog', 'cat', 'snow', 'stone'],
  note: 'They explain 40%.',
  unit: 'part of the cosine',
};
const ANSWER = { arrays: { scores: { shape: [4], data: Float32Array.from(SCORES) } }, facts: FACTS };
const TARGET = { classes: [{ index: 7, name: 'lion', probability: 0.5 }], chosen: 7, name: 'lion', link: '7', words: '' }; // prettier-ignore

/** The tab of a model with a text tower, or without; `words` answers what the head writes. */
async function ofModel({
  reads = true,
  has = true,
  words = /** @type {(...of: any[]) => any} */ (() => ANSWER),
} = {}) {
  const part = await open({
    answer: (name, body, tell, stop) =>
      name === 'target' ? { ...TARGET, reads } : name === 'head_words' ? words(body, tell, stop) : undefined,
    has: (name) => has || name !== 'head_words',
  });
  const fold = part.root.querySelector('.vv-heads-written');
  const unfold = async () => {
    fold.open = true;
    await part.fire(fold, 'toggle');
  };
  const asked = () => part.posted.filter(([name]) => name === 'head_words').map(([, { layer, head, model }]) => [model, layer, head]); // prettier-ignore
  return { ...part, fold, unfold, asked, rows: () => texts(part.all('.vv-heads-written li')) };
}

test('without a text tower, or where nobody answers, there is nothing to open', async () => {
  assert.equal((await ofModel({ reads: false })).fold, null);
  assert.equal((await ofModel({ has: false })).fold, null);
  assert.ok((await ofModel()).fold);
});

test('it is asked for once it is open, and again for each head that is chosen', async () => {
  const part = await ofModel();
  assert.deepEqual([part.asked(), part.rows()], [[], []]);
  await part.unfold();
  assert.deepEqual(part.asked(), [['mini', 1, 2]]);
  assert.deepEqual(part.rows().map((row) => row.replace(/\s+/g, ' ')), [
    ...['dog+0.0500', 'cat+0.0400', 'snow−0.0040', 'stone−0.1000'],
  ]); // prettier-ignore
  assert.equal(part.text('written-words'), 'They explain 40%.');
  assert.match(part.fold.textContent, /Part of the cosine\./);
  await part.click(part.cell(0));
  assert.deepEqual(part.asked().at(-1), ['mini', 0, 0]);
});

test('what is said is of the head that is chosen: while another is on its way there is none', async () => {
  /** @type {(value: any) => void} */
  let answered = () => {};
  const part = await ofModel({
    words: async ({ head }, tell) => {
      await null; // whoever asked listens from now on
      tell({ share: 0.25, left: 'about 3 s left' });
      return head === 2 ? ANSWER : new Promise((found) => (answered = found));
    },
  });
  await part.unfold();
  await part.click(part.cell(0));
  assert.deepEqual(part.rows(), []);
  assert.match(part.fold.textContent, /Reading the list of words ….*25%, about 3 s left/s);
  answered({ ...ANSWER, facts: { ...FACTS, note: 'Weak.' } });
  await settle();
  assert.equal(part.text('written-words'), 'Weak.');
});

test('what went wrong, and what was stopped, is said', async () => {
  const failed = await ofModel({ words: () => new Error('It writes nothing.') });
  await failed.unfold();
  assert.equal(failed.text('written-error'), 'It writes nothing.');
  const slow = await ofModel({ words: () => new Promise(() => {}) });
  await slow.unfold();
  await slow.click('.vv-heads-written .vv-stop');
  assert.match(slow.text('written-error'), /^This was stopped/);
});
