// A helper of the engine in a worker of Node.js, which the tests start in a browser's stead.
//
// `workerData` may say what goes wrong: 'start' (the kernels are not instantiated), 'kernel' (they fail), 'death' (the thread ends at work).

import { parentPort, workerData } from 'node:worker_threads';

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
const page = /** @type {any} */ (globalThis);
page.self = { postMessage: (/** @type {unknown} */ message) => port.postMessage(message) };
await import('../../vit_viz/browser/helper.js');

const { instantiate } = WebAssembly;
/** @type {any} */ (WebAssembly).instantiate = async (
  /** @type {any} */ wasm,
  /** @type {any} */ imports,
) => {
  if (workerData === 'start') throw new Error('no start');
  const { exports } = /** @type {any} */ (await instantiate(wasm, imports));
  if (!workerData) return { exports };
  const kernels = Object.entries(exports).map(([name, kernel]) => [name, faulty(kernel)]);
  return { exports: Object.fromEntries(kernels) };
};

/** A kernel that goes wrong, with as many arguments. @param {any} kernel */
function faulty(kernel) {
  const fault = () => {
    if (workerData === 'death') process.exit();
    throw new Error('no kernel');
  };
  return Object.defineProperty(fault, 'length', { value: kernel.length });
}

port.on('message', (data) => page.self.onmessage({ data }));
