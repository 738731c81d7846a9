// A question that takes a while, and its bar.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Job, JobBar, Places, STOPPED } from '../../vit_viz/web/kit/job.js';
import { Browser, parse } from './browser.js';
import { settle } from './visit.js';

/** @param {any} t @param {string} [html] */
function bar(t, html = '<div></div>') {
  new Browser().install(t);
  const element = /** @type {any} */ (parse(html).querySelector('div'));
  /** @type {{tell: import('../../vit_viz/web/kit/ask.js').Tell, stop: AbortSignal, done: (value: any) => void, fail: (error: Error) => void}[]} */
  const asked = [];
  const ask = (/** @type {AbortSignal} */ stop, /** @type {any} */ tell) =>
    new Promise((done, fail) => asked.push({ tell, stop, done, fail }));
  const words = () =>
    ['words', 'amount']
      .map((name) => element.querySelector(`.vv-job-${name}`).textContent)
      .join(' ')
      .trim();
  let presses = 0;
  const job = new Job(() => shown.show(job));
  const shown = new JobBar(element, {
    begin: () => void (presses += 1),
    end: () => job.end(STOPPED),
  });
  return {
    job,
    shown,
    element,
    asked,
    ask,
    words,
    progress: element.querySelector('progress'),
    begun: () => presses,
  };
}

test('a question says how far it is, until it is answered', async (t) => {
  const { job, element, asked, ask, words, progress } = bar(t);
  const waiting = job.follow(ask, { words: 'Comparing …' });
  assert.deepEqual([element.hidden, words(), progress.position], [false, 'Comparing …', -1]);
  asked[0].tell({ share: 0.256, left: 'about 3 s left' });
  assert.deepEqual([words(), progress.value], ['Comparing … 26%, about 3 s left', 0.256]);
  asked[0].tell({ share: 0, left: '' }); // nobody knows how far
  assert.deepEqual([words(), progress.position], ['Comparing …', -1]);
  asked[0].done('told');
  assert.equal(await waiting, 'told');
  assert.equal(element.hidden, true);
});

test('a question fails with its own words, is ended by its button, and by a newer one, which stays', async (t) => {
  const { job, element, asked, ask, words } = bar(t);
  const failed = assert.rejects(job.follow(ask), /^Error: No memory[.]$/);
  asked[0].fail(new Error('No memory.'));
  await failed;
  assert.equal(element.hidden, true);
  const stopped = assert.rejects(job.follow(ask), /^Error: This was stopped; nothing of it was kept[.]$/);
  element.querySelector('button').click();
  assert.equal(asked[1].stop.aborted, true);
  await stopped;
  const replaced = assert.rejects(job.follow(ask), /^Error: Something else was asked for[.]$/);
  const newer = job.follow(ask, { words: 'newer' });
  await replaced;
  asked[2].tell({ share: 0.5, left: '' }); // too late
  assert.deepEqual([element.hidden, words()], [false, 'newer']);
  asked[3].done(1);
  assert.equal(await newer, 1);
  assert.equal(element.hidden, true);
});

test('who shows what became of a question hears its answer, what there is of it so far, and nothing once it was ended', async (t) => {
  const { job, asked, ask, words } = bar(t);
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

test('what waits for a place is not begun once it was ended', async (t) => {
  const { asked, ask } = bar(t);
  const places = new Places(1);
  const [first, second, third] = [1, 2, 3].map(() => new Job(undefined, places));
  for (const job of [first, second, third]) void job.follow(ask);
  second.end();
  first.end();
  asked[0].fail(new Error('aborted'));
  await settle();
  assert.deepEqual([asked.length, third.isRunning, second.isRunning], [2, true, false]);
});

test('a bar has a button that begins what it shows, which is heard only while it is seen', async (t) => {
  const { job, shown, element, asked, ask, begun } = bar(t, '<div><button></button></div>');
  const go = element.querySelector('button');
  assert.deepEqual([element.hidden, go.hidden], [true, true]);
  shown.show(job, { words: 'about 9 s', go: 'Compute' });
  assert.deepEqual([element.hidden, go.hidden, go.textContent], [false, false, 'Compute']);
  go.click();
  void job.follow(ask);
  go.click(); // a press that comes late
  assert.deepEqual([go.hidden, begun()], [true, 1]);
  asked[0].done(1);
  await settle();
  go.click();
  assert.deepEqual([element.hidden, begun()], [true, 1]);
});
