// Forward passes of the engine in the page and of ONNX Runtime Web, taking turns in one process of Node.js. Run: node benchmarks/browser.js
// FILE [--threads 1] [--passes 10] [--onnxruntime FOLDER --onnx FILE]
//
// FILE: of `vit_viz.browser.write_weights`. Prints JSON for benchmarks/browser.py: milliseconds of each pass, of loading, and the memory.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';

import { Engine } from '../vit_viz/browser/engine.js';
import { reader } from '../vit_viz/browser/weights.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    threads: { type: 'string', default: '1' },
    passes: { type: 'string', default: '10' },
    onnxruntime: { type: 'string' },
    onnx: { type: 'string', default: '' },
  },
});
const threads = Number(values.threads);
const PAUSE = 20; // milliseconds, in which threads that wait for more work of the one before go to sleep

setFlagsFromString('--experimental-wasm-relaxed-simd'); // which Node.js 20 knows, but not yet by itself
const [plain, relaxed] = ['kernels', 'kernels-relaxed'].map((name) =>
  readFileSync(new URL(`../vit_viz/browser/${name}.wasm`, import.meta.url)),
);

/** A worker of Node.js as a browser's. */
const HELPER = `
const { parentPort } = require('node:worker_threads');
globalThis.self = { postMessage: (message) => parentPort.postMessage(message) };
parentPort.once('message', async (data) => { await import(${JSON.stringify(
  new URL('../vit_viz/browser/helper.js', import.meta.url).href,
)}); self.onmessage({ data }); });`;

function startHelper() {
  const worker = new Worker(HELPER, { eval: true });
  /** @type {import('../vit_viz/browser/team.js').Helper} */
  const helper = {
    onmessage: null,
    onerror: null,
    postMessage: (message) => worker.postMessage(message),
    terminate: () => worker.terminate(),
  };
  worker.on('message', (data) => helper.onmessage?.({ data }));
  worker.on('error', (error) => helper.onerror?.(error));
  return helper;
}

const file = readFileSync(positionals[0]);
const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
const start = performance.now();
const engine = await Engine.load(reader(bytes), { plain, threads, startHelper });
const loaded = performance.now() - start;
const fused = await Engine.load(reader(bytes), { plain, relaxed, threads, startHelper });
for (const { model } of [engine, fused])
  if (model.machine.threads !== threads) throw new Error('The helpers have not started.');

const { channels, input_size } = engine.recipe;
const [height, width] = input_size;
const pixels = Float32Array.from({ length: channels * height * width }, (_, i) => Math.sin(12.9898 * i));

/** Each yields logits. @type {Record<string, () => Promise<Float32Array>>} */
const turns = {
  engine: async () => engine.model.run({ pixels, height, width }).logits,
  fused: async () => fused.model.run({ pixels, height, width }).logits,
  ...(values.onnxruntime && { onnxruntime: await onnxruntime(values.onnxruntime) }),
};

/** @param {string} folder where onnxruntime-web is installed @returns {Promise<() => Promise<Float32Array>>} */
async function onnxruntime(folder) {
  const runtime = await import(
    pathToFileURL(`${folder}/node_modules/onnxruntime-web/dist/ort.node.min.mjs`).href
  );
  runtime.env.wasm.numThreads = threads;
  const session = await runtime.InferenceSession.create(readFileSync(values.onnx), {
    executionProviders: ['wasm'],
    graphOptimizationLevel: 'all',
  });
  const input = new runtime.Tensor('float32', pixels, [1, channels, height, width]);
  return async () => (await session.run({ [session.inputNames[0]]: input }))[session.outputNames[0]].data;
}

/** @type {Record<string, number[]>} */
const times = Object.fromEntries(Object.keys(turns).map((name) => [name, []]));
const expected = await turns.engine();
for (let pass = 0; pass < Number(values.passes); pass++) {
  for (const [name, run] of Object.entries(turns)) {
    await setTimeout(PAUSE);
    const before = performance.now();
    const logits = await run();
    times[name].push(performance.now() - before);
    const apart = Math.max(...logits.map((value, i) => Math.abs(value - expected[i])));
    if (!(apart < 1e-4 * Math.max(...expected.map(Math.abs))))
      throw new Error(`${name} computes something else.`);
  }
}
console.log(JSON.stringify({ loaded, times, memory: engine.model.machine.memory.buffer.byteLength }));
process.exit();
