// Threads of the engine: the same numbers bit for bit, and whatever goes wrong in a helper ends in one sentence.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { Backward } from '../../vit_viz/browser/backward.js';
import { Engine } from '../../vit_viz/browser/engine.js';
import { Machine } from '../../vit_viz/browser/machine.js';
import { partOf, SPLITS } from '../../vit_viz/browser/split.js';
import { threadCount } from '../../vit_viz/browser/team.js';
import { withSharedMemory } from '../../vit_viz/browser/wasm.js';
import { reader } from '../../vit_viz/browser/weights.js';
import { CONFIG, fileOf, RECIPE } from './engine_file.js';

const [plain, relaxed] = ['kernels', 'kernels-relaxed'].map((name) =>
  readFileSync(new URL(`../../vit_viz/browser/${name}.wasm`, import.meta.url)),
);
setFlagsFromString('--experimental-wasm-relaxed-simd'); // which Node.js 20 knows, but not yet by itself

/** How a helper is started, and which were. @param {string} [fault] of every helper */
function starter(fault) {
  /** @type {Worker[]} */
  const workers = [];
  const startHelper = () => {
    const worker = new Worker(new URL('./engine_helper.js', import.meta.url), { workerData: fault });
    workers.push(worker);
    /** @type {import('../../vit_viz/browser/team.js').Helper} */
    const helper = {
      onmessage: null,
      onerror: null,
      postMessage: (message) => worker.postMessage(message),
      terminate: () => worker.terminate(),
    };
    worker.on('message', (data) => helper.onmessage?.({ data }));
    worker.on('error', (error) => helper.onerror?.(error));
    return helper;
  };
  return { startHelper, workers };
}

const SMALL = { ...CONFIG, embed_dim: 60, mlp_hidden: 130, num_heads: 5, img_size: [36, 44] };
const WIDE = {
  ...{ ...CONFIG, embed_dim: 96, mlp_hidden: 200, num_heads: 3, depth: 3, patch_size: [2, 4], mlp: 'swiglu' },
  ...{ img_size: [26, 52], relative_bias: true, norm: 'rms', layer_scale: true, resample: 'timm' },
};

/** Of a pass all numbers, one array after the other. @param {any} config @param {any} wasm */
async function passOf(config, wasm) {
  const [height, width] = config.img_size;
  const recipe = { ...RECIPE, input_size: [height, width], patch_size: config.patch_size };
  const { model } = await Engine.load(reader(fileOf(config, { preprocess: recipe })), wasm);
  const pixels = Float32Array.from({ length: 3 * height * width }, (_, i) => Math.sin(12.9898 * i));
  const pass = model.run({ pixels, height, width });
  const { layers, residual, logits } = pass;
  const backward = new Backward(model, pass, new Map());
  const last = config.depth - 1;
  const { g } = backward.outputs(residual[last + 1], logits);
  const { slopes, before } = backward.block(last, g, true);
  const { threads } = model.machine;
  model.machine.close();
  const recorded = layers.flatMap(({ layer, q, k, lse }) => [
    ...[q, k, lse, layer.norms],
    layer.kind === 'attention' ? layer.bits : null,
  ]);
  return { threads, numbers: [...recorded, ...residual, slopes.g, before, logits] };
}

for (const [kind, config] of Object.entries({ SMALL, WIDE })) {
  for (const variant of ['plain', 'relaxed']) {
    test(`two and three threads compute the very numbers of one (${kind}, ${variant})`, async () => {
      const wasm = variant === 'plain' ? { plain } : { plain, relaxed };
      const alone = await passOf(config, { ...wasm, threads: 1 });
      assert.ok(alone.numbers.at(-1)?.every(Number.isFinite));
      for (const threads of [2, 3]) {
        const { startHelper, workers } = starter();
        const together = await passOf(config, { ...wasm, threads, startHelper });
        assert.equal(together.threads, threads);
        assert.equal(workers.length, threads - 1);
        assert.deepEqual(together.numbers, alone.numbers);
      }
    });
  }
}

test('parts of a kernel make its whole, whatever their number, and keep an address that stands for nothing', async () => {
  const machine = await Machine.from(plain);
  const [rows, inner, cols] = [3, 5, 21];
  const fill = (/** @type {number} */ count) =>
    Float32Array.from({ length: count }, (_, i) => Math.cos(7 * i));
  const x = machine.place(fill(rows * inner));
  const { panels } = machine.placeMatrix(fill(cols * inner), cols, inner);
  for (const bias of [0, machine.place(fill(cols))]) {
    const [whole, parts] = [machine.room(rows * cols), machine.room(rows * cols)];
    machine.run.product(x, inner, panels, bias, whole, cols, rows, inner, cols);
    for (const first of [0, 8, 16]) {
      const args = [x, inner, panels, bias, parts, cols, rows, inner, cols];
      const part = partOf(SPLITS.product, args, first, Math.min(8, cols - first), 1);
      assert.equal(part[3] === 0, bias === 0);
      /** @type {any} */ (machine.run).product(...part);
    }
    assert.deepEqual(machine.read(parts, rows * cols), machine.read(whole, rows * cols));
  }
  const args = [4, 2, 1024, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0];
  assert.deepEqual(partOf(SPLITS.attend, args, 3, 1, 2).slice(0, 3), [7, 1, 1024 + 2 * 4 * 64 * 7]);
});

/** A machine whose helpers go wrong, and a product with work for all, from the packing of its matrix on. @param {string} fault */
async function brokenMachine(fault) {
  const { startHelper, workers } = starter(fault);
  const machine = await Machine.from({ plain, threads: 3, startHelper });
  const [rows, inner, cols] = [400, 300, 304];
  const product = () =>
    machine.within(() => {
      const { panels } = machine.placeMatrix(new Float32Array(inner * cols).fill(1), cols, inner);
      const [x, y] = [machine.place(new Float32Array(rows * inner).fill(1)), machine.room(rows * cols)];
      machine.run.product(x, inner, panels, 0, y, cols, rows, inner, cols);
    });
  return { machine, product, workers };
}

/** Until a helper has met a job: it may sleep while the first are done without it. @param {() => void} product */
function untilMet(product) {
  for (let i = 0; i < 100; i++) product();
}

for (const fault of ['kernel', 'death']) {
  test(`a helper that goes wrong (${fault}) ends in one sentence, and nothing is computed afterwards`, async () => {
    const { machine, product, workers } = await brokenMachine(fault);
    const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
    if (machine.team) machine.team.patience = 5;
    const message = {
      message: 'A helper of the engine has failed in this page; please load the model again.',
    };
    assert.throws(() => untilMet(product), message);
    assert.throws(product, message);
    await Promise.all(ended); // no helper is left behind
  });
}

test('helpers that do not start leave one thread, which computes', async () => {
  const { machine, product, workers } = await brokenMachine('start');
  assert.deepEqual([machine.threads, machine.team, workers.length], [1, null, 2]);
  product();
});

test('a browser without room for a shared memory computes with one thread', async () => {
  const { Memory } = WebAssembly;
  /** @type {any} */ (WebAssembly).Memory = function memory(
    /** @type {WebAssembly.MemoryDescriptor} */ options,
  ) {
    if (options.shared) throw new RangeError('could not allocate memory');
    return new Memory(options);
  };
  try {
    assert.equal((await Machine.from({ plain, threads: 4 })).threads, 1);
  } finally {
    WebAssembly.Memory = Memory;
  }
});

test('what is not our module is not made to share memory', () => {
  assert.throws(() => withSharedMemory(new Uint8Array(50)), { message: /is not what it was built as/ });
});

test('threads are as many as the processor has, up to four, where the page is isolated', () => {
  const page = /** @type {any} */ (globalThis);
  const own = Object.getOwnPropertyDescriptor(page, 'navigator');
  try {
    for (const [isolated, cores, threads] of [
      [false, 8, 1],
      [true, 8, 4],
      [true, 3, 3],
      [true, undefined, 1],
    ]) {
      page.crossOriginIsolated = isolated;
      Object.defineProperty(page, 'navigator', { value: { hardwareConcurrency: cores }, configurable: true });
      assert.equal(threadCount(), threads);
    }
  } finally {
    delete page.crossOriginIsolated;
    if (own) Object.defineProperty(page, 'navigator', own);
    else delete page.navigator;
  }
});
