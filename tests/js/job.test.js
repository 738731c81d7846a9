// The bar of a question that takes a while.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Job } from '../../vit_viz/web/kit/job.js';
import { parse, read } from './browser.js';

const HTML = read('../../vit_viz/web/tokens/room.html');

function bar() {
  const element = /** @type {any} */ (parse(HTML).querySelector('.vv-room-job'));
  /** @type {{tell: import('../../vit_viz/web/kit/ask.js').Tell, stop: AbortSignal, done: (value: any) => void, fail: (error: Error) => void}[]} */
  const asked = [];
  const ask = (/** @type {AbortSignal} */ stop, /** @type {any} */ tell) =>
    new Promise((done, fail) => asked.push({ tell, stop, done, fail }));
  const words = () => element.querySelector('.vv-job-words').textContent;
  return { job: new Job(element), element, asked, ask, words, progress: element.querySelector('progress') };
}

test('a question says how far it is, until it is answered', async () => {
  const { job, element, asked, ask, words, progress } = bar();
  const waiting = job.follow('Comparing …', ask);
  assert.deepEqual([element.hidden, words(), progress.position], [false, 'Comparing …', -1]);
  asked[0].tell({ share: 0.256, left: 'about 3 s left' });
  assert.deepEqual([words(), progress.value], ['Comparing … 26%, about 3 s left', 0.256]);
  asked[0].tell({ share: 0, left: '' }); // nobody knows how far
  assert.deepEqual([words(), progress.position], ['Comparing …', -1]);
  asked[0].done('told');
  assert.equal(await waiting, 'told');
  assert.equal(element.hidden, true);
});

test('a question fails with its own words, is ended by its button, and by a newer one, which stays', async () => {
  const { job, element, asked, ask, words } = bar();
  const failed = assert.rejects(job.follow('w', ask), /^Error: No memory[.]$/);
  asked[0].fail(new Error('No memory.'));
  await failed;
  assert.equal(element.hidden, true);
  const stopped = assert.rejects(
    job.follow('w', ask),
    /^Error: This was stopped; nothing of it was kept[.]$/,
  );
  element.querySelector('button').click();
  assert.equal(asked[1].stop.aborted, true);
  await stopped;
  const replaced = assert.rejects(job.follow('w', ask), /^Error: Something else was asked for[.]$/);
  const newer = job.follow('newer', ask);
  await replaced;
  asked[2].tell({ share: 0.5, left: '' }); // too late
  assert.deepEqual([element.hidden, words()], [false, 'newer']);
  asked[3].done(1);
  assert.equal(await newer, 1);
  assert.equal(element.hidden, true);
});
