// The line to a notebook's kernel: layers and answers find whoever waits for them, and numbers are those of fp32.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Kernel } from '../../vit_viz/notebook/widget.js';
import { initialView } from '../../vit_viz/explorer/state.js';
import { makeTrace } from './oracle.js';

/** A widget's model whose kernel answers when `say` is called. */
function line() {
  /** @type {any[]} */
  const sent = [];
  /** @type {Set<(...args: any[]) => void>} */
  const hears = new Set();
  const model = {
    on: (/** @type {string} */ _name, /** @type {any} */ hear) => hears.add(hear),
    off: (/** @type {string} */ _name, /** @type {any} */ hear) => hears.delete(hear),
    send: (/** @type {unknown} */ content) => sent.push(content),
  };
  const say = (/** @type {unknown} */ content, /** @type {DataView[]} */ ...views) =>
    hears.forEach((hear) => hear(content, views));
  return { kernel: new Kernel(/** @type {any} */ (model)), sent, say, hears };
}

/** An answer as the kernel sends it, in the middle of a larger buffer. @param {any} facts @param {number[]} shape @param {number[]} numbers */
function answered(facts, shape, numbers) {
  const about = { dtype: 'F32', shape, data_offsets: [0, 4 * numbers.length] };
  const head = JSON.stringify({ values: about, __metadata__: { vit_viz: JSON.stringify({ facts }) } });
  const buffer = new ArrayBuffer(3 + 8 + head.length + 4 * numbers.length);
  const view = new DataView(buffer, 3);
  view.setBigUint64(0, BigInt(head.length), true);
  new Uint8Array(buffer, 11).set(new TextEncoder().encode(head));
  numbers.forEach((number, i) => view.setFloat32(8 + head.length + 4 * i, number, true));
  return view;
}

test('a layer reaches all who wait for it, and nobody else', async () => {
  const { kernel, sent, say } = line();
  const waiting = [kernel.layer(2), kernel.layer(2)];
  assert.deepEqual(sent, [{ layer: 2 }, { layer: 2 }]);
  say({ layer: 1 }, new DataView(Uint8Array.of(5).buffer));
  say({ layer: 2 }, new DataView(Uint8Array.of(9, 7, 8).buffer, 1));
  assert.deepEqual((await Promise.all(waiting)).map(String), ['7,8', '7,8']);
});

test('answers find their questions in any order', async () => {
  const { kernel, sent, say } = line();
  const answers = [kernel.ask('look', { layer: 1 }), kernel.ask('heads', {})];
  assert.deepEqual(sent[1], { ask: 2, question: 'heads', asked: {} });
  say({ ask: 2 }, answered({ unit: 'b' }, [1, 2], [3, 4]));
  say({ ask: 1 }, answered({ unit: 'a' }, [1, 2], [1, 2]));
  const [first, second] = await Promise.all(answers);
  assert.deepEqual([first.facts.unit, second.facts.unit], ['a', 'b']);
  assert.deepEqual([...first.arrays.values.data], [1, 2]);
});

test('the numbers of a map are those of the kernel to the last bit', async () => {
  const { kernel, sent, say } = line();
  const trace = makeTrace({});
  const view = { ...initialView(trace), layer: 2, head: 3, query: '1,2', norm: true };
  const asked = kernel.exact(trace, view);
  const { layer, head, query, direction, norm } = sent[0].asked;
  assert.deepEqual([layer, head, query, direction, norm], [2, '3', '1,2', view.direction, true]);
  const facts = { prefix: { class: 0.25 }, suffix_kinds: { detection: 0.5 } };
  say({ ask: 1 }, answered(facts, [2, 3], [1, 2, 0, 1, 0.1, 2]));
  const found = await asked;
  assert.deepEqual(found?.peak, [0, 1]);
  assert.equal(found?.max, 2);
  assert.equal(found?.patches, 6 + Math.fround(0.1));
  assert.deepEqual([found?.prefix, found?.suffix], [facts.prefix, facts.suffix_kinds]);
});

test('of equal numbers the first is where a map peaks, unless all are equal', async () => {
  const { kernel, say } = line();
  const trace = makeTrace({});
  const asked = kernel.exact(trace, initialView(trace));
  say({ ask: 1 }, answered({}, [2, 2], [3, 3, 1, 3]));
  assert.deepEqual((await asked)?.peak, [0, 0]);
  const flat = kernel.exact(trace, initialView(trace));
  say({ ask: 2 }, answered({}, [2, 2], [3, 3, 3, 3]));
  assert.equal((await flat)?.peak, null);
});

test('what the kernel refuses leaves the approximate numbers', async () => {
  const { kernel, say } = line();
  const trace = makeTrace({});
  const asked = kernel.exact(trace, initialView(trace));
  const refused = kernel.ask('astrology', {});
  say({ ask: 1, error: 'No.' });
  say({ ask: 2, error: 'There is nothing called that.' });
  assert.equal(await asked, null);
  await assert.rejects(refused, { message: 'There is nothing called that.' });
});

test('a closed line hears nothing more', () => {
  const { kernel, hears, say } = line();
  void kernel.layer(1);
  kernel.close();
  assert.equal(hears.size, 0);
  say({ layer: 1 }, new DataView(Uint8Array.of(1).buffer));
  assert.equal(kernel.layers.size, 0);
});
