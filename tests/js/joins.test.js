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
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    assert.deepEqual(asked, [[target, { method: 'POST' }]]);
    context.mock.timers.tick(19);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    assert.equal(answer, '');
    context.mock.timers.tick(1);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    assert.equal(answer, 'accepted');
  });

test('other requests, and those that fail, do not wait', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { scope } = page();
  assert.equal(await scope.fetch('http://host/vit_viz/layer/1'), 'accepted');
  assert.equal(await scope.fetch(new URL('http://host/gradio_api/queue/data')), 'accepted');
  await assert.rejects(scope.fetch('http://host/queue/join?broken'), /no network/);
});
