// The badge: it asks again while the attention is being checked, shows what it learns, and stops when nobody looks.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { follow } from '../../vit_viz/web/header/facts.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { headerPage, later } from './header_page.js';

const CHECKING = { state: 'checking', text: 'checking …', title: 'It is being checked.', trace: 'a/b' };
const PROVEN = { state: 'proven', text: 'verified', title: 'It was.' };
const honest = globalThis.fetch;
/** @type {any} */ (globalThis).window ??= globalThis;

afterEach(() => {
  globalThis.fetch = honest;
});

/** Answers of the server, one after another; the last one again and again. @param {any[]} answers */
function server(...answers) {
  /** @type {string[]} */ const asked = [];
  globalThis.fetch = /** @type {any} */ (
    async (/** @type {string} */ address) => {
      asked.push(String(address));
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Error) throw answer;
      return typeof answer === 'number'
        ? { ok: false, status: answer }
        : { ok: true, status: 200, json: async () => answer };
    }
  );
  return asked;
}

/** Follows a proof without pauses. @param {any} proof @param {AbortSignal} [signal] */
async function followed(proof, signal = new AbortController().signal) {
  /** @type {string[]} */ const shown = [];
  const window = /** @type {any} */ (globalThis.window);
  const set = window.setTimeout;
  window.setTimeout = (/** @type {() => void} */ done) => void Promise.resolve().then(done);
  try {
    await follow(
      SERVER,
      proof,
      ({ state }) => shown.push(state),
      () => shown.push('refused'),
      signal,
    );
  } finally {
    window.setTimeout = set;
  }
  return shown;
}

test('what is known already is shown and not asked for', async () => {
  const asked = server(PROVEN);
  assert.deepEqual(await followed(PROVEN), ['proven']);
  assert.deepEqual(asked, []);
});

test('it asks until the badge is known, also where single questions fail', async () => {
  const asked = server(CHECKING, 429, new TypeError('no connection'), CHECKING, PROVEN);
  assert.deepEqual(await followed(CHECKING), ['checking', 'proven']);
  assert.equal(asked.length, 5);
  assert.match(asked[0], /\/vit_viz\/proof\/a%2Fb$/);
});

test('failures are counted in a row: a check may last as long as it needs', async () => {
  const seven = Array.from({ length: 7 }, () => 503);
  const asked = server(...seven, CHECKING, ...seven, PROVEN);
  assert.deepEqual(await followed(CHECKING), ['checking', 'proven']);
  assert.equal(asked.length, 16);
});

test('where the server does not answer any more, nothing is claimed', async () => {
  const asked = server(404);
  assert.deepEqual(await followed(CHECKING), ['checking', 'open']);
  assert.equal(asked.length, 8);
});

test('a refusal is told once and nothing else is shown', async () => {
  server(CHECKING, 400);
  assert.deepEqual(await followed(CHECKING), ['checking', 'refused']);
});

test('nobody asks for a page that shows something else by now', async () => {
  const gone = new AbortController();
  const asked = server(CHECKING);
  gone.abort();
  assert.deepEqual(await followed(CHECKING, gone.signal), ['checking']);
  assert.deepEqual(asked, []);
});

test('the header shows that it is being checked, then what is known; a refusal opens the view again', async () => {
  /** @type {any} */
  let answer = { card: 'ViT', badge: CHECKING };
  const { find, browser, store, turn, settle } = headerPage({ answers: { open: () => answer } });
  const asked = server(400);
  await settle();
  assert.deepEqual([find('proof').textContent, find('proof').dataset.state], ['checking …', 'checking']);
  assert.equal(find('proof-words').textContent, 'It is being checked.');
  const other = later();
  answer = other.promise;
  store.look({ image: 'tower' });
  await settle();
  browser.pass(700);
  await settle();
  assert.deepEqual([asked.length, turn.value], [0, 0]); // nobody looks at the one before any more
  await other.give({ card: 'ViT', badge: CHECKING });
  answer = { card: 'ViT', badge: PROVEN };
  browser.pass(700);
  await settle();
  assert.deepEqual([asked.length, turn.value], [1, 1]);
  assert.deepEqual([find('proof').textContent, find('proof').dataset.state], ['verified', 'proven']);
});
