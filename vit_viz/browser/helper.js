// A helper's worker: it instantiates the kernels on the memory that it is sent and works on what is written on its board.

import { Shift } from './team.js';

/** @param {{wasm: WebAssembly.Module, memory: WebAssembly.Memory, thread: number}} message */
async function begin({ wasm, memory, thread }) {
  const { exports } = await WebAssembly.instantiate(wasm, { env: { memory } });
  const shift = new Shift(memory, /** @type {any} */ (exports), thread);
  self.postMessage('ready');
  shift.run();
}

self.onmessage = ({ data }) =>
  begin(data).catch((/** @type {unknown} */ error) => self.postMessage(String(error)));
