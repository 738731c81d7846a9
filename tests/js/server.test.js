// What the explorer asks its server, and when.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Asker, Player } from '../../vit_viz/explorer/server.js';
import { Browser } from './browser.js';
import { settle } from './room.js';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

test('what failed is told unless nobody asks any more', async () => {
  const browser = new Browser();
  browser.install();
  /** @type {any[]} */
  const heard = [];
  const asker = new Asker({
    answered: () => heard.push('answered'),
    numbers: (_view, numbers) => heard.push(numbers),
    failed: (error) => heard.push(error.message),
  });
  let fails = false;
  const store = any({
    unanswered: () => [2, 0],
    ask: async () => {
      if (fails) throw new Error('no');
    },
    numbers: async () => 'numbers',
  });
  const ask = async (/** @type {number} */ layer) => {
    browser.pass(40);
    asker.ask(store, any({ layer }));
    await settle();
    return heard.splice(0);
  };
  assert.deepEqual(await ask(2), ['answered', 'numbers', 'answered']);
  assert.deepEqual(await ask(1), ['numbers', 'answered', 'answered']); // the shown layer needs no answer
  fails = true;
  assert.deepEqual(await ask(2), ['no']);
  browser.pass(40);
  asker.ask(store, any({ layer: 2 }));
  asker.cancel();
  browser.pass(100);
  await settle();
  assert.deepEqual(heard, []);
});

test('the first choice is asked at once, and of those that follow closely the last, when the hand rests', async () => {
  const browser = new Browser();
  browser.install();
  /** @type {number[]} */
  const asked = [];
  const asker = new Asker({ answered: () => {}, numbers: () => {}, failed: () => {} });
  const store = any({
    unanswered: () => [],
    numbers: async (/** @type {any} */ view) => void asked.push(view.layer),
  });
  const ask = (/** @type {number} */ layer) => asker.ask(store, any({ layer }));
  ask(1);
  await settle();
  assert.deepEqual(asked, [1]);
  for (const layer of [2, 3, 4]) {
    browser.pass(39);
    ask(layer);
  }
  browser.pass(39);
  await settle();
  assert.deepEqual(asked, [1]);
  browser.pass(1);
  await settle();
  assert.deepEqual(asked, [1, 4]);
  ask(5); // it rested
  await settle();
  assert.deepEqual(asked, [1, 4, 5]);
  ask(6);
  asker.cancel(); // the picture is left
  ask(7);
  browser.pass(100);
  await settle();
  assert.deepEqual(asked, [1, 4, 5, 7]);
});

test('numbers of a question that a newer one has overtaken are not told, and neither is what is not there', async () => {
  const browser = new Browser();
  browser.install();
  /** @type {any[]} */
  const heard = [];
  const asker = new Asker({
    answered: () => heard.push('answered'),
    numbers: (view, numbers) => heard.push([view.layer, numbers]),
    failed: (error) => heard.push(error.message),
  });
  /** @type {((numbers: any) => void)[]} */
  const open = [];
  const store = any({
    unanswered: () => [],
    ask: async () => {},
    numbers: () => new Promise((done) => open.push(done)),
  });
  asker.ask(store, any({ layer: 1 }));
  browser.pass(40);
  await settle();
  asker.ask(store, any({ layer: 2 }));
  browser.pass(40);
  await settle();
  assert.equal(open.length, 2);
  open[1]('new');
  open[0]('old'); // comes although nobody asks for it any more
  await settle();
  assert.deepEqual(heard, [[2, 'new']]);
  asker.ask(store, any({ layer: 3 }));
  browser.pass(40);
  await settle();
  open[2](null);
  await settle();
  assert.deepEqual(heard, [[2, 'new']]);
});

test('playing steps at its pace until it is stopped', () => {
  const browser = new Browser();
  browser.install();
  let steps = 0;
  /** @type {boolean[]} */
  const changed = [];
  const player = new Player(
    () => (steps += 1),
    (playing) => changed.push(playing),
    100,
  );
  player.stop();
  player.toggle();
  browser.pass(350);
  assert.deepEqual([steps, player.playing], [3, true]);
  player.toggle();
  browser.pass(350);
  assert.deepEqual([steps, player.playing, changed], [3, false, [true, false]]);
  browser.still = true;
  player.toggle();
  assert.deepEqual([steps, player.playing], [4, false]);
});
