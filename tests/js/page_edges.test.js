// Small parts of the page at their edges: how far a job is, and requests that fail or wait.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SERVER } from '../../vit_viz/web/look/server_source.js';
import { mount as mountAddress } from '../../vit_viz/ui/visit/address.js';
import { Browser, component, mount } from './browser.js';
import { makeTrace } from './oracle.js';
import { settle } from './visit.js';

test('the questions of the page wait for what came before them', async () => {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  browser.window.fetch = async (/** @type {string} */ target) => void asked.push(target);
  const { fetch } = browser.window;
  mount(component(mountAddress, 'ui/kit/__init__.py#Address'), null, { browser, props: { fields: '[]' } });
  assert.notEqual(browser.window.fetch, fetch);
  await browser.window.fetch('/vit_viz/layer');
  assert.deepEqual(asked, ['/vit_viz/layer']);
});

test('commas and semicolons stay legible in an address, and an empty one is no address', () => {
  const browser = new Browser('?model=mini&query=1%2C2');
  const { set } = mount(component(mountAddress, 'ui/kit/__init__.py#Address'), null, {
    browser,
    props: { fields: '[]' },
  });
  set({ set: { query: '1,2;1,3', layer: '4' }, push: true });
  assert.match(browser.visited.at(-1)?.address ?? '', /[?]model=mini&query=1,2;1,3&layer=4/);
  set({ set: { query: '1,2;1,3' }, push: true });
  assert.equal(browser.visited.length, 1); // nothing has changed
  set({ set: { query: null, layer: null, model: null }, push: false });
  assert.deepEqual([browser.visited.length, browser.visited.at(-1)?.address.includes('?')], [2, false]);
});

test('a connection that dropped is tried once more after a moment, unless nobody waits any more', async (t) => {
  const browser = new Browser();
  let tries = 0;
  const fetch = async () => {
    tries += 1;
    throw new Error('no network');
  };
  browser.install(t, { fetch });
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
