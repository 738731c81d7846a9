// A server that does not answer: what is asked of it waits, one bar says so, and the page opens again when it is back.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Connection, makeBar } from '../../vit_viz/ui/visit/connection.js';
import { mount } from '../../vit_viz/ui/visit/address.js';
import { PAGE_NAME } from '../../vit_viz/ui/visit/link.js';
import { Browser, parse } from './browser.js';
import { settle } from './room.js';

/** A page whose server is there or not. */
function begin() {
  const browser = new Browser();
  browser.window.gradio_config = { root: '', app_id: 7 };
  const server = { id: /** @type {number | null} */ (7), status: 200, asked: /** @type {string[]} */ ([]) };
  const own = async (/** @type {any} */ target) => {
    server.asked.push(String(target));
    if (server.id === null) throw new TypeError('no network');
    return { ok: server.status === 200, status: server.status, json: async () => ({ app_id: server.id }) };
  };
  const scope = { fetch: /** @type {any} */ (own) };
  browser.install();
  /** @type {boolean[]} */ const shown = [];
  let reopened = 0;
  const connection = new Connection(
    scope,
    (isLost) => shown.push(isLost),
    () => void reopened++,
  );
  return { browser, server, scope, connection, shown, reopened: () => reopened };
}

test('what is asked of a lost server waits, and the page opens again once it answers', async () => {
  const { browser, server, scope, connection, shown, reopened } = begin();
  assert.equal((await scope.fetch('/vit_viz/layer')).status, 200);
  server.id = null;
  const leaving = new AbortController();
  let ended = '';
  void scope.fetch('/vit_viz/numbers').finally(() => (ended += 'numbers'));
  void scope
    .fetch('/vit_viz/rows', { signal: leaving.signal })
    .catch((/** @type {Error} */ e) => (ended += e.name));
  await settle();
  assert.deepEqual([ended, shown.length > 0, connection.isLost], ['', true, true]);
  leaving.abort();
  await settle();
  assert.equal(ended, 'AbortError');
  const before = server.asked.length;
  browser.pass(1000);
  await settle();
  assert.equal(server.asked.length, before + 1); // one question a second, whoever waits
  server.status = 502; // of a proxy before it
  server.id = 7;
  browser.pass(1000);
  await settle();
  assert.equal(reopened(), 0);
  server.status = 200;
  browser.pass(1000);
  await settle();
  browser.pass(10_000);
  assert.deepEqual([reopened(), ended], [1, 'AbortError']);
});

test('a request that fails by itself fails, and one that ends with its page says nothing', async () => {
  const { server, scope, connection, shown } = begin();
  const { ask } = connection;
  connection.ask = async (target) => {
    if (String(target.url ?? target).includes('broken')) throw new TypeError('no network');
    return ask(target, {});
  };
  await assert.rejects(scope.fetch('/broken'), /no network/);
  server.status = 429; // somebody is there
  await assert.rejects(scope.fetch({ url: '/broken' }), /no network/);
  server.id = null;
  connection.isLeaving = true;
  await assert.rejects(scope.fetch('/vit_viz/layer'), /no network/);
  assert.deepEqual(shown, []);
});

test('another server in its place is noticed at the next question', async () => {
  const { server, connection, shown, reopened } = begin();
  assert.equal(await connection.answers(), true);
  server.id = 8;
  assert.equal(await connection.answers(), false);
  assert.deepEqual([shown, reopened()], [[], 1]);
});

test('the bar stands above the page or in the dialog over it, and its button asks', () => {
  const browser = new Browser();
  const [page, dialog] = [parse('<p></p>'), parse('<p></p>')];
  /** @type {any[]} */ const dialogs = [];
  const document = Object.assign(browser.globals.document, {
    querySelector: () => page,
    querySelectorAll: () => dialogs,
  });
  browser.install({ document });
  let asked = 0;
  const { bar, show } = makeBar(() => void asked++);
  show();
  assert.equal(bar.parentElement, page);
  assert.match(bar.textContent ?? '', /^The server does not answer.*Reload$/);
  dialogs.push(dialog);
  show();
  assert.equal(bar.parentElement, dialog);
  bar.querySelector('button')?.click();
  show();
  assert.match(bar.textContent ?? '', /^Still no answer/);
  assert.equal(asked, 1);
});

test('a page asks now and then whether its server answers, but not while nobody sees it', async () => {
  const browser = new Browser();
  const { window } = browser;
  window.gradio_config = { root: '', app_id: 7 };
  /** @type {string[]} */ const asked = [];
  window.fetch = async (/** @type {string} */ target) => {
    asked.push(target);
    return { ok: true, status: 200, json: async () => ({ app_id: 7 }) };
  };
  /** @type {(() => void)[]} */ const ticks = [];
  window.setInterval = (/** @type {() => void} */ tick) => ticks.push(tick);
  browser.install();
  mount(/** @type {any} */ (null), {});
  assert.match(PAGE_NAME, /^[0-9a-f]{32}$/);
  ticks[0]();
  await settle();
  assert.deepEqual(asked, ['/gradio_api/app_id']);
  /** @type {any} */ (globalThis).document.hidden = true;
  ticks[0]();
  await settle();
  assert.equal(asked.length, 1);
});
