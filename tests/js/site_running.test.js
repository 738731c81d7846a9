// The engine of a page: one model at a time, whichever arrives first; a worker that dies is started again, once.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Running } from '../../vit_viz/site/running.js';
import { settle } from './room.js';

const model = (/** @type {string} */ name) => ({ name, card: '', file: name, bytes: 1, storage: '' });
const PICTURE = /** @type {any} */ ({});

/** Workers that have loaded a model when a test says so, and say which one they hold; `deaths` of them die of a picture. */
function engine({ deaths = 0 } = {}) {
  /** @type {Record<string, ((error?: Error) => void)[]>} */
  const arriving = {};
  /** @type {any[]} */
  const workers = [];
  class FakeWorker {
    held = '';
    /** @type {Record<string, (event: any) => void>} */ listeners = {};
    isDead = workers.length < deaths;
    addEventListener(/** @type {string} */ name, /** @type {(event: any) => void} */ listener) {
      this.listeners[name] = listener;
    }
    postMessage(/** @type {any} */ { id, kind, file }) {
      const reply = (/** @type {any} */ data) => this.listeners.message({ data: { id, ...data } });
      const loaded = (/** @type {Error | undefined} */ error) => {
        if (error) return reply({ kind: 'error', sentence: error.message });
        this.held = file.packed;
        reply({ kind: 'answer', value: { held: this.held } });
      };
      if (kind === 'load') return void (arriving[file.packed] ??= []).push(loaded);
      void Promise.resolve().then(() => {
        if (this.isDead) this.listeners.error({});
        else reply({ kind: 'answer', value: { model: this.held } });
      });
    }
  }
  const running = new Running({
    start: () => {
      const worker = new FakeWorker();
      workers.push(worker);
      return /** @type {any} */ (worker);
    },
    weights: ({ file }) => file,
  });
  const trace = async (/** @type {string} */ name) =>
    /** @type {any} */ ((await running.trace(model(name), PICTURE, {})).traced).model;
  return { running, trace, arriving, workers };
}

test('of two models at once each picture is traced by the one it was asked of', async () => {
  const { trace, arriving } = engine();
  const [first, second] = [trace('slow'), trace('quick')];
  arriving.slow[0](); // as the worker heard of the other one too late
  await assert.rejects(first, /Another model was asked for meanwhile/);
  arriving.quick[0]();
  assert.equal(await second, 'quick');
  assert.equal(await trace('quick'), 'quick');
});

test('a model is fetched once for pictures that come while it is on its way', async () => {
  const { trace, arriving } = engine();
  const asked = [trace('one'), trace('one')];
  assert.equal(arriving.one.length, 1);
  arriving.one[0]();
  assert.deepEqual(await Promise.all(asked), ['one', 'one']);
});

test('weights that did not arrive are asked for again', async () => {
  const { trace, arriving } = engine();
  const first = trace('one');
  arriving.one[0](new Error('A part of this page is missing (404).'));
  await assert.rejects(first, /missing/);
  const second = trace('one');
  arriving.one[1]();
  assert.equal(await second, 'one');
});

test('a worker that dies of a picture is started again, and of the same picture not for ever', async () => {
  for (const [deaths, lives] of [
    [1, true],
    [2, false],
  ]) {
    const { trace, arriving, workers } = engine({ deaths: Number(deaths) });
    const asked = trace('one');
    arriving.one[0]();
    await settle();
    arriving.one[1]();
    if (lives) assert.equal(await asked, 'one');
    else await assert.rejects(asked, /engine could not be started/);
    assert.equal(workers.length, 2);
  }
});
