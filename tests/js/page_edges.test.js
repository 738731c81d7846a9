// Requests that fail or wait.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser } from './browser.js';
import { makeTrace } from './oracle.js';
import { settle } from './room.js';

test('a connection that dropped is tried once more after a moment, unless nobody waits any more', async () => {
  const browser = new Browser();
  let tries = 0;
  const fetch = async () => {
    tries += 1;
    throw new Error('no network');
  };
  browser.install({ fetch });
  const trace = makeTrace({});
  const waiting = new AbortController();
  const failed = assert.rejects(SERVER.layer(trace, 1, waiting.signal), /no network/);
  await settle();
  browser.pass(399);
  await settle();
  assert.equal(tries, 1);
  browser.pass(1);
  await failed;
  assert.equal(tries, 2);
  waiting.abort();
  await assert.rejects(SERVER.layer(trace, 1, waiting.signal), /no network/);
  assert.equal(tries, 3);
});
