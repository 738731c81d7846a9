// A question that takes a while, and its bar.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Job, Places, STOPPED } from '../../vit_viz/web/kit/job.js';
import { JobLine } from '../../vit_viz/web/kit/parts.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { Browser, parse } from './browser.js';
import { settle } from './room.js';

/** A job, and the line that shows it. */
function bar() {
  new Browser().install();
  const element = /** @type {any} */ (parse('<div></div>'));
  /** @type {{tell: import('../../vit_viz/web/kit/ask.js').Tell, stop: AbortSignal, done: (value: any) => void, fail: (error: Error) => void}[]} */
  const asked = [];
  const ask = (/** @type {AbortSignal} */ stop, /** @type {any} */ tell) =>
    new Promise((done, fail) => asked.push({ tell, stop, done, fail }));
  const find = (/** @type {string} */ selector) => element.querySelector(selector);
  const words = () =>
    ['words', 'amount']
      .map((name) => find(`.vv-job-${name}`).textContent)
      .join(' ')
      .trim();
  let presses = 0;
  const show = (more = {}) =>
    render(
      html`<${JobLine} job=${job} begin=${() => (presses += 1)} end=${() => job.end(STOPPED)} ...${more} />`,
      element,
    );
  const job = new Job(() => show());
  show();
  const isHidden = () => find('.vv-job').hidden;
  return { job, show, find, asked, ask, words, isHidden, begun: () => presses };
}

test('a question says how far it is, until it is answered', async () => {
  const { job, find, asked, ask, words, isHidden } = bar();
  const waiting = job.follow(ask, { words: 'Comparing …' });
  assert.deepEqual([isHidden(), words(), find('progress').position], [false, 'Comparing …', -1]);
  asked[0].tell({ share: 0.256, left: 'about 3 s left' });
  assert.deepEqual([words(), find('progress').value], ['Comparing … 26%, about 3 s left', 0.256]);
  asked[0].tell({ share: 0, left: '' }); // nobody knows how far
  assert.deepEqual([words(), find('progress').position], ['Comparing …', -1]);
  asked[0].done('told');
  assert.equal(await waiting, 'told');
  assert.equal(isHidden(), true);
});

test('a question fails with its own words, is ended by its button, and by a newer one, which stays', async () => {
  const { job, find, asked, ask, words, isHidden } = bar();
  const failed = assert.rejects(job.follow(ask), /^Error: No memory[.]$/);
  asked[0].fail(new Error('No memory.'));
  await failed;
  assert.equal(isHidden(), true);
  const stopped = assert.rejects(job.follow(ask), /^Error: This was stopped; nothing of it was kept[.]$/);
  find('.vv-stop').click();
  assert.equal(asked[1].stop.aborted, true);
  await stopped;
  const replaced = assert.rejects(job.follow(ask), /^Error: Something else was asked for[.]$/);
  const newer = job.follow(ask, { words: 'newer' });
  await replaced;
  asked[2].tell({ share: 0.5, left: '' }); // too late
  assert.deepEqual([isHidden(), words()], [false, 'newer']);
  asked[3].done(1);
  assert.equal(await newer, 1);
  assert.equal(isHidden(), true);
});

test('who shows what became of a question hears its answer, what there is of it so far, and nothing once it was ended', async () => {
  const { job, asked, ask, words } = bar();
  /** @type {any[]} */
  const heard = [];
  const hear = {
    part: (/** @type {any} */ some) => heard.push(some.words),
    whole: (/** @type {any} */ all) => heard.push(all),
  };
  void job.follow(ask, hear);
  assert.equal(words(), 'Starting …');
  asked[0].tell({ share: 0, left: '', preview: { words: 'first' } });
  asked[0].tell({ share: 0.5, left: '' });
  assert.equal(words(), 'first 50%');
  job.end('Another photo was chosen.');
  assert.deepEqual([job.isRunning, job.error], [false, 'Another photo was chosen.']);
  asked[0].tell({ share: 0.75, left: '', preview: { words: 'second' } });
  asked[0].done('late');
  await settle();
  void job.follow(ask, hear);
  asked[1].done('all');
  job.end(); // before the answer was heard of
  await settle();
  void job.follow(ask, hear);
  asked[2].done('all');
  await settle();
  assert.deepEqual([heard, job.isRunning, job.error], [['first', 'all'], false, '']);
});

test('what waits for a place is not begun once it was ended', async () => {
  const { asked, ask } = bar();
  const places = new Places(1);
  const [first, second, third] = [1, 2, 3].map(() => new Job(undefined, places));
  for (const job of [first, second, third]) void job.follow(ask);
  second.end();
  first.end();
  asked[0].fail(new Error('aborted'));
  await settle();
  assert.deepEqual([asked.length, third.isRunning, second.isRunning], [2, true, false]);
});

test('a bar has a button that begins what it shows, as long as that does not run', async () => {
  const { job, show, find, asked, ask, begun, isHidden } = bar();
  const go = find('button');
  assert.deepEqual([isHidden(), go.hidden], [true, true]);
  show({ words: 'about 9 s', go: 'Compute' });
  assert.deepEqual([isHidden(), go.hidden, go.textContent.trim()], [false, false, 'Compute']);
  go.click();
  assert.equal(begun(), 1);
  void job.follow(ask);
  assert.equal(go.hidden, true);
  asked[0].done(1);
  await settle();
  assert.equal(isHidden(), true);
});
