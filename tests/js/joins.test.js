// A question's answer is held back for a moment; other requests are not.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { settleJoins } from '../../vit_viz/ui/visit/address.js';

/** @returns {{scope: {fetch: any}, asked: any[][]}} a window whose requests are answered at once */
function page() {
  /** @type {any[][]} */
  const asked = [];
  const scope = {
    fetch: async (/** @type {any[]} */ ...request) => {
      asked.push(request);
      if (String(request[0]).includes('broken')) throw new Error('no network');
      return 'accepted';
    },
  };
  settleJoins(scope);
  return { scope, asked };
}

for (const target of ['http://host/gradio_api/queue/join?x=1', { url: 'http://host/queue/join' }])
  test(`a question is accepted after what came before it: ${typeof target}`, async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { scope, asked } = page();
    let answer = '';
    void scope.fetch(target, { method: 'POST' }).then((/** @type {string} */ given) => (answer = given));
    await turns();
    assert.deepEqual(asked, [[target, { method: 'POST' }]]);
    context.mock.timers.tick(19);
    await turns();
    assert.equal(answer, '');
    context.mock.timers.tick(1);
    await turns();
    assert.equal(answer, 'accepted');
  });

test('what the visitor does is told in its order; what the page asks by itself, at once', async () => {
  /** @type {string[]} */
  const asked = [];
  /** @type {(() => void)[]} */
  const held = [];
  const scope = {
    fetch: (/** @type {string} */ _target, /** @type {{body: string}} */ { body }) => {
      const { data } = JSON.parse(body);
      asked.push(data);
      if (data === 'lost') return Promise.reject(new Error('no network'));
      return new Promise((done) => held.push(() => done('accepted')));
    },
  };
  settleJoins(scope);
  const ask = (/** @type {string} */ data, event_data = null) =>
    scope.fetch('http://host/queue/join', { body: JSON.stringify({ data, event_data }) });
  const act = (/** @type {string} */ data) => ask(data, /** @type {any} */ ({ tab: data }));
  const first = act('first');
  const lost = act('lost');
  act('third');
  ask('own');
  await turns();
  assert.deepEqual(asked, ['own', 'first']);
  for (const done of held) done();
  await assert.rejects(lost, /no network/);
  assert.equal(await first, 'accepted');
  assert.deepEqual(asked, ['own', 'first', 'lost', 'third']);
});

/** Lets all that is ready run. */
async function turns() {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve();
}

test('other requests, and those that fail, do not wait', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { scope } = page();
  assert.equal(await scope.fetch('http://host/vit_viz/layer/1'), 'accepted');
  assert.equal(await scope.fetch(new URL('http://host/gradio_api/queue/data')), 'accepted');
  await assert.rejects(scope.fetch('http://host/queue/join?broken'), /no network/);
});
