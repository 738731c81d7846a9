// The worker's messages: a model is loaded, pictures are traced, progress is told, and every mistake is a sentence.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { deflateSync } from 'node:zlib';
import { EngineClient } from '../../vit_viz/browser/client.js';
import { checkedConfig, parametersOf } from '../../vit_viz/browser/config.js';
import { Model } from '../../vit_viz/browser/model.js';
import { serve } from '../../vit_viz/browser/serving.js';
import { attentionInto } from '../../vit_viz/explorer/attention.js';
import { CONFIG, fileOf as file, RECIPE } from './engine_file.js';

const WASM = readFileSync(new URL('../../vit_viz/browser/kernels.wasm', import.meta.url));

/** @param {(client: EngineClient, port: any) => Promise<void>} work port: the worker's @param {object} [own] kernels of the worker */
async function withClient(work, own) {
  const { port1, port2 } = new MessageChannel();
  serve(/** @type {any} */ (port1), own);
  const client = new EngineClient(/** @type {any} */ (port2));
  port1.start();
  port2.start();
  try {
    await work(client, port1);
  } finally {
    port1.close();
    port2.close();
  }
}

/** @param {number} height @param {number} width */
function picture(height, width) {
  const levels = Uint8ClampedArray.from({ length: height * width * 4 }, (_, i) => (i * 37) % 256);
  return { height, width, channels: 4, levels };
}

test('a model is loaded, pictures are traced in their order, and what comes back is what an explorer takes', () =>
  withClient(async (client) => {
    /** @type {number[][]} */
    const bytes = [];
    const loaded = await client.load(file(CONFIG), WASM, (...told) => bytes.push(told));
    assert.deepEqual(loaded.labels, ['a', 'b', 'c', 'd', 'e']);
    assert.deepEqual([loaded.config, loaded.recipe], [CONFIG, RECIPE]);
    assert.ok(bytes.length > 10 && bytes.every(([done], i) => i === 0 || done > bytes[i - 1][0]));
    assert.equal(bytes.at(-1)?.[0], bytes.at(-1)?.[1]);

    /** @type {number[][]} */
    const blocks = [];
    const [wide, tall] = await Promise.all([
      client.trace(picture(9, 13), { mode: 'stretch' }, (...told) => blocks.push(told)),
      client.trace(picture(20, 10)),
    ]);
    assert.deepEqual(blocks, [
      [1, 2],
      [2, 2],
    ]);
    assert.deepEqual([wide.grid, wide.tokens, wide.prefix, wide.heads], [[2, 3], 7, ['class'], 3]);
    assert.deepEqual(wide.crop, { original: [9, 13], input: [8, 12], region: [0, 0, 9, 13] });
    assert.deepEqual([tall.grid, tall.tokens, tall.logits.length], [[4, 2], 9, 5]);
    const row = new Float32Array(7);
    for (const { layer } of wide.layers) {
      attentionInto(row, layer, 2, 5, 'row');
      assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-5);
      const own = row[3];
      attentionInto(row, layer, 2, 3, 'column'); // of the same pair, by the normaliser of its row
      assert.ok(Math.abs(row[5] - own) < 1e-5 * own);
    }
  }));

test('questions are answered of the pass that they name, until it is forgotten, and refusals are sentences', () =>
  withClient(async (client) => {
    await client.load(file(CONFIG), WASM);
    const [wide, tall] = [await client.trace(picture(9, 13)), await client.trace(picture(20, 10))];
    const shapes = [];
    for (const { pass } of [wide, tall]) {
      const { question, facts, arrays } = await client.answer('token_norms', { factor: 2 }, pass);
      assert.deepEqual([question, facts.maps.names.at(-1)], ['token_norms', 'after layer 1']);
      shapes.push(arrays['maps.values'].shape);
    }
    assert.deepEqual(shapes, [
      [3, ...wide.grid],
      [3, ...tall.grid],
    ]);
    await assert.rejects(client.answer('token_norms', { factor: 0 }, tall.pass), {
      message: /is a number from/,
    });
    await assert.rejects(client.answer('attention_flow', {}, tall.pass), { message: /in the app/ });
    client.forget(wide.pass);
    await client.answer('token_change', {}, tall.pass);
    await assert.rejects(client.answer('token_change', {}, wide.pass), { message: /are gone/ });
  }));

test('how a question is understood is told beside an answer that takes long, or why it is not possible', () =>
  withClient(async (client) => {
    await client.load(file(CONFIG), WASM);
    const { pass } = await client.trace(picture(20, 10));
    const order = /** @type {string[]} */ ([]);
    const long = client.answer('layer_similarity', {}, pass).then(() => order.push('answer'));
    const read = await client.read('look', { layer: -1, query: '1,1' }, pass);
    order.push('read');
    await long;
    assert.deepEqual(order, ['read', 'answer']);
    const { direction, norm, layer, head, query } = read.parameters;
    assert.deepEqual([read.question, layer, head, query], ['look', 1, 'mean', '1,1']);
    assert.deepEqual([direction, norm], ['row', false]);
    await assert.rejects(client.read('look', { query: '9,9' }, pass), { message: /does not exist/ });
    await assert.rejects(client.read('look', { query: '1,1' }, 99), { message: /are gone/ });
    await assert.rejects(client.read('logit_lens', { target: 'zz' }, pass), {
      message: /^No class is called 'zz': pass its index\.$/,
    });
    const named = await client.read('logit_lens', { target: 'C' }, pass);
    assert.equal(named.parameters.target, 2);
  }));

test('a question that nobody waits for ends between its steps, and the next one is answered', () =>
  withClient(async (client) => {
    await client.load(file(CONFIG), WASM);
    const { pass } = await client.trace(picture(20, 10));
    const end = new AbortController();
    const shares = /** @type {number[]} */ ([]);
    const left = client.answer('layer_similarity', {}, pass, end.signal, (share) => shares.push(share));
    end.abort();
    await assert.rejects(left, { message: /Nobody waits/ });
    assert.equal(shares.length, 1);
    await client.answer('layer_similarity', {}, pass, new AbortController().signal, (share) =>
      shares.push(share),
    );
    assert.equal(shares.at(-1), 1);
  }));

test('a causal map is told as it fills, from the last layer on, and one that nobody waits for ends between its passes', () =>
  withClient(async (client) => {
    await client.load(file(CONFIG), WASM);
    const { pass } = await client.trace(picture(20, 10));
    const told = /** @type {any[]} */ ([]);
    const never = new AbortController().signal;
    const whole = await client.answer('ablation', {}, pass, never, (share, _, preview) =>
      told.push([share, preview]),
    );
    assert.deepEqual(
      told.slice(0, 3).map(([share]) => share),
      [0, 1 / 6, 2 / 6],
    );
    const { facts, arrays } = told[2][1];
    assert.deepEqual([...arrays.known.data], [0, 0, 0, 1, 1, 0]);
    assert.deepEqual([facts.table, arrays['table.values'].shape], [whole.facts, [2, 3]]);
    const done = (/** @type {any} */ values) => [...values.data.slice(3, 5)];
    assert.deepEqual(done(arrays['table.values']), done(whole.arrays.values));

    const end = new AbortController();
    const shares = /** @type {number[]} */ ([]);
    const left = client.answer('trust', { method: 'rollout' }, pass, end.signal, (share) => {
      shares.push(share);
      end.abort();
    });
    await assert.rejects(left, { message: /Nobody waits/ });
    assert.ok(shares.length < 6 && Math.max(...shares) < 0.5, String(shares)); // when the message has come
    await assert.rejects(client.answer('trust', { method: 'attention_flow' }, pass), {
      message: "'attention_flow' is answered in the app, not in this page.",
    });
  }));

/** @type {Record<string, [ArrayBuffer, RegExp]>} */
const BAD = {
  'of another kind': [new ArrayBuffer(100), /^This is no safetensors file/],
  'that says nothing of its model': [
    file(CONFIG, { config: undefined }),
    /^This file does not say what its model/,
  ],
  'of an unknown configuration': [
    file(CONFIG, { config: { ...CONFIG, window: 7 } }),
    /^The engine in the page does not know the entry "window" of a model's configuration\.$/,
  ],
  'of an unknown family': [
    file(CONFIG, { config: { ...CONFIG, mlp: 'mixture' } }),
    /^The engine in the page cannot compute a model whose mlp is "mixture"\.$/,
  ],
  'of a depth that asks for all memory': [
    file(CONFIG, { config: { ...CONFIG, depth: 1e9 } }),
    /whose depth is 1000000000/,
  ],
  'whose choices exclude each other': [
    file(CONFIG, { config: { ...CONFIG, num_heads: 5 } }),
    /cannot compute a model with an embed_dim that is no multiple of num_heads\.$/,
  ],
  'that lacks a parameter': [
    file(CONFIG, {}, (name) => name !== 'blocks.1.mlp.fc2.bias'),
    /^This file lacks the parameter "blocks\.1\.mlp\.fc2\.bias", which its model needs\.$/,
  ],
  'with a parameter of another shape': [
    file(CONFIG, { config: { ...CONFIG, mlp_hidden: 11 } }),
    /^The parameter "blocks\.0\.mlp\.fc1\.weight" of this file is \[10,12\], but its model needs \[11,12\]\.$/,
  ],
  'with a parameter too many': [
    file(CONFIG, { config: { ...CONFIG, depth: 1 } }),
    /^This file has a parameter "blocks\.1\.norm1\.weight", which its model does not use\.$/,
  ],
  'without preprocessing': [
    file(CONFIG, { preprocess: undefined }),
    /^The preprocessing that came with this model/,
  ],
  'with another preprocessing': [
    file(CONFIG, { preprocess: { ...RECIPE, channels: 1, mean: [0], std: [1] } }),
    /^The preprocessing of this file gives other channels/,
  ],
  'with a name too few': [file(CONFIG, { labels: ['a'] }), /one name for each class/],
};

test('every file that is no model is refused in a sentence, and the next is loaded all the same', () =>
  withClient(async (client) => {
    const none = /^There is no model yet: please load one first\.$/;
    await assert.rejects(client.trace(picture(8, 8)), { message: none });
    for (const [kind, [bytes, message]] of Object.entries(BAD)) {
      await assert.rejects(client.load(bytes, WASM), { message }, kind);
    }
    await assert.rejects(client.load(file(CONFIG), new Uint8Array(8)), {
      message: /no WebAssembly with SIMD/,
    });
    await assert.rejects(client.trace(picture(8, 8)), { message: none });
    await client.load(file(CONFIG), WASM);
    await assert.rejects(client.trace(picture(8, 8), { size: -1 }), { message: /^A size is the short side/ });
    assert.equal((await client.trace(picture(8, 8))).tokens, 5);
    const other = {
      message: /^The engine loads models, traces pictures and answers questions, nothing else\.$/,
    };
    await assert.rejects(client.ask({ kind: 'dance' }), other);
  }));

test('a model that no page can hold is refused before its numbers are read', async () => {
  const config = { ...CONFIG, embed_dim: 12288, num_heads: 96, mlp_hidden: 49152 };
  const source = {
    metadata: { config: JSON.stringify(config) },
    shapes: () => parametersOf(checkedConfig(config)),
    tensors: () => assert.fail('it is read'),
  };
  await assert.rejects(Model.load(source, WASM), {
    message: /^This model needs 14\.\d GB of memory, and a page has 4\.3: the app opens it\.$/,
  });
});

test('a model that is still being read is given up for another', () =>
  withClient(async (client) => {
    const [first, second] = [
      client.load(file(CONFIG), WASM),
      client.load(file(CONFIG, { labels: undefined }), WASM),
    ];
    await assert.rejects(first, { message: 'Another model was asked for meanwhile.' });
    assert.equal((await second).labels, null);
    assert.equal((await client.trace(picture(8, 8))).tokens, 5);
  }));

test('a worker that fails fails whatever is waited for', async () => {
  /** @type {Record<string, (event: any) => void>} */
  const listeners = {};
  const addEventListener = (/** @type {string} */ type, /** @type {(event: any) => void} */ listener) =>
    void (listeners[type] = listener);
  const client = new EngineClient({ postMessage() {}, addEventListener });
  const waiting = client.trace(picture(8, 8));
  listeners.message({ data: { id: 99, kind: 'answer', value: 1 } }); // to a question that nobody waits for
  listeners.error({});
  await assert.rejects(waiting, { message: 'The engine could not be started in this page.' });
});

test('a configuration whose every choice is possible is let through', () => {
  assert.equal(checkedConfig(CONFIG), CONFIG);
});

test('a configuration of before there were several class tokens is let through, and one with several is not', () => {
  const { class_tokens: count, class_read: read, position_grid: grid, ...before } = CONFIG;
  assert.deepEqual([count, read, grid], [1, [0], null]);
  assert.equal(checkedConfig(before), before);
  for (const change of [{ class_tokens: 2 }, { class_read: [1] }, { position_grid: [3, 4] }])
    assert.throws(() => checkedConfig({ ...CONFIG, ...change }), /cannot compute a model whose/);
});

test('a packed file is unpacked by a worker that has kernels of its own', () =>
  withClient(
    async (client) => {
      const packed = new Uint8Array(deflateSync(new Uint8Array(file(CONFIG))));
      const bytes = packed.length;
      /** @type {number[][]} */
      const told = [];
      const loaded = await client.load({ packed, bytes }, {}, (...far) => told.push(far));
      assert.deepEqual(loaded.config, CONFIG);
      assert.deepEqual(told.at(-1), [bytes, bytes]);
      const broken = { packed: packed.map((byte) => byte ^ 0x55), bytes };
      await assert.rejects(client.load(broken, {}), { message: /is damaged or cut short/ });
    },
    { plain: WASM },
  ));

test('a packed file is loaded once, but where that failed, and whoever asks last hears how far it is', async (context) => {
  const packed = deflateSync(new Uint8Array(file(CONFIG)));
  /** @type {string[]} */
  const fetched = [];
  let isThere = false;
  let isHeard = Promise.resolve();
  context.mock.method(globalThis, 'fetch', async (/** @type {string} */ address) => {
    fetched.push(address);
    await isHeard;
    return isThere ? new Response(packed) : new Response('', { status: 404 });
  });
  await withClient(async (client, port) => {
    const from = (/** @type {string} */ address) => ({ packed: address, bytes: packed.length });
    client.worker.postMessage({ id: 0, kind: 'load', file: from('a.bin'), wasm: WASM });
    await assert.rejects(client.load(from('a.bin'), WASM), { message: /the server answered 404/ });
    isThere = true;
    assert.deepEqual((await client.load(from('a.bin'), WASM)).config, CONFIG);
    assert.deepEqual(fetched, ['a.bin', 'a.bin', 'a.bin']);
    const { pass } = await client.trace(picture(9, 13));
    await client.load(from('a.bin'), WASM);
    await client.answer('token_norms', {}, pass); // which belongs to the model that is there
    /** Answers wait until the worker has heard of two more loads. */
    const holdBack = () => {
      let count = 0;
      isHeard = new Promise((done) => {
        port.addEventListener('message', () => void (++count === 2 && done()));
      });
    };
    holdBack();
    client.worker.postMessage({ id: 0, kind: 'load', file: from('b.bin'), wasm: WASM });
    /** @type {number[][]} */
    const told = [];
    await client.load(from('b.bin'), WASM, (...far) => told.push(far));
    assert.deepEqual(told.at(-1), [packed.length, packed.length]);
    holdBack();
    const given = client.load(from('c.bin'), WASM);
    await Promise.all([
      assert.rejects(given, { message: 'Another model was asked for meanwhile.' }),
      client.load(from('d.bin'), WASM),
    ]);
    assert.deepEqual(fetched.slice(3), ['b.bin', 'c.bin', 'd.bin']);
  });
});
