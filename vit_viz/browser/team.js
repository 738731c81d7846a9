// Threads that share the work of kernels: one memory, in it a board on which the engine's worker writes a kernel and its arguments.
//
// Every thread takes part after part until none is left, so that a slow one holds nobody up; a helper that wakes up late finds the job
// closed. The engine's worker waits only for helpers that are at work.

import { partOf, SPLITS } from './split.js';
/** @import { Kernels } from './machine.js' */

/**
 * @typedef {{postMessage: (message: any) => void, terminate: () => unknown, onmessage: ((event: any) => void) | null,
 *     onerror: ((event: any) => void) | null}} Helper a worker that runs helper.js
 */

const BOARD = 8192; // address of the board, in the page of memory that machine.js leaves free; the compiler's constants lie below
const [JOBS, OPEN, ACTIVE, NEXT, FAILED, KERNEL, COUNT, CHUNK] = [0, 1, 2, 3, 4, 5, 6, 7];
const LEAST_WORK = 2 ** 15; // additions: with less to do, helpers would take longer to wake up
const PARTS = 4; // of a job for each thread
const SPINS = 5000; // looks at the board before a thread goes to sleep, some ten microseconds
const PATIENCE = 500; // milliseconds of a wait, of which STILL may pass in which no helper finishes
const STILL = 20;
const NAMES = Object.keys(SPLITS);

/** What threads share. */
class Board {
  /** @param {WebAssembly.Memory} memory */
  constructor(memory) {
    this.state = new Int32Array(memory.buffer, BOARD, 8);
    this.args = new Float64Array(memory.buffer, BOARD + 64, 16);
  }

  /** Works on parts of the job that is written here until none is left. @param {Kernels} kernels @param {number} thread */
  work(kernels, thread) {
    const { state } = this;
    const name = NAMES[state[KERNEL]];
    const kernel = /** @type {(...args: number[]) => void} */ (kernels[/** @type {keyof Kernels} */ (name)]);
    const args = Array.from(this.args).slice(0, kernel.length);
    const [count, chunk] = [state[COUNT], state[CHUNK]];
    for (;;) {
      const first = Atomics.add(state, NEXT, chunk);
      if (first >= count) return;
      kernel(...partOf(SPLITS[name], args, first, Math.min(chunk, count - first), thread));
    }
  }
}

/** A helper's life: it sleeps until there is a job and works on it, until its worker is terminated. */
export class Shift {
  /** @param {WebAssembly.Memory} memory @param {Kernels} kernels @param {number} thread 1, 2, ... */
  constructor(memory, kernels, thread) {
    this.board = new Board(memory);
    this.kernels = kernels;
    this.thread = thread;
    this.seen = Atomics.load(this.board.state, JOBS);
  }

  run() {
    for (;;) this.next();
  }

  next() {
    const { state } = this.board;
    for (let i = 0; i < SPINS && Atomics.load(state, JOBS) === this.seen; i++);
    Atomics.wait(state, JOBS, this.seen);
    this.seen = Atomics.load(state, JOBS);
    Atomics.add(state, ACTIVE, 1);
    try {
      if (Atomics.load(state, OPEN)) this.board.work(this.kernels, this.thread);
    } catch {
      Atomics.store(state, FAILED, 1);
    }
    Atomics.sub(state, ACTIVE, 1);
    Atomics.notify(state, ACTIVE);
  }
}

/** The engine's worker and its helpers. */
export class Team {
  /** @param {WebAssembly.Memory} memory shared @param {Kernels} kernels of this thread @param {Helper[]} helpers that are ready */
  constructor(memory, kernels, helpers, patience = PATIENCE) {
    this.board = new Board(memory);
    this.kernels = kernels;
    this.helpers = helpers;
    this.patience = patience;
    this.broken = false;
  }

  /** The kernels, whose work is shared where there is enough of it. @returns {Kernels} */
  shared() {
    /** @type {Record<string, any>} */
    const shared = { ...this.kernels };
    for (const name of NAMES) shared[name] = (/** @type {number[]} */ ...args) => this.run(name, args);
    return /** @type {Kernels} */ (shared);
  }

  /** @param {string} name @param {number[]} args */
  run(name, args) {
    const { board, helpers } = this;
    const { state } = board;
    const { count, grain = 1, work } = SPLITS[name];
    if (this.broken) this.fail();
    if (args[count] * work(args) < LEAST_WORK || args[count] <= grain) {
      /** @type {any} */ (this.kernels)[name](...args);
      return;
    }
    board.args.set(args);
    state[KERNEL] = NAMES.indexOf(name);
    state[COUNT] = args[count];
    state[CHUNK] = Math.max(1, Math.floor(args[count] / ((helpers.length + 1) * PARTS * grain))) * grain;
    Atomics.store(state, NEXT, 0);
    Atomics.store(state, OPEN, 1);
    Atomics.add(state, JOBS, 1);
    Atomics.notify(state, JOBS);
    try {
      board.work(this.kernels, 0);
    } finally {
      Atomics.store(state, OPEN, 0);
      this.gather();
    }
    if (Atomics.load(state, FAILED)) this.fail();
  }

  /** Waits until no helper is at work. */
  gather() {
    const { state } = this.board;
    for (let i = 0; i < SPINS && Atomics.load(state, ACTIVE); i++);
    let still = 0;
    for (let active = Atomics.load(state, ACTIVE); active; active = Atomics.load(state, ACTIVE)) {
      if (Atomics.wait(state, ACTIVE, active, this.patience) !== 'timed-out') still = 0;
      else if (++still === STILL) this.fail(); // a computer that slept in between is no more than one wait
    }
  }

  /** @returns {never} */
  fail() {
    this.broken = true;
    this.close();
    throw new Error('A helper of the engine has failed in this page; please load the model again.');
  }

  close() {
    for (const helper of this.helpers) helper.terminate();
  }
}

/** How many threads compute: as many as the processor has, up to four, in a page that is isolated; else one. */
export function threadCount() {
  return globalThis.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency || 1) : 1;
}

/**
 * Helpers that are ready; none where one of them does not start.
 * @param {number} count @param {() => Helper} start @param {object} message for helper.js
 */
export async function helpersOf(count, start, message) {
  /** @type {Helper[]} */
  const helpers = [];
  try {
    const ready = Array.from({ length: count }, (_, i) => {
      const helper = start();
      helpers.push(helper);
      return new Promise((resolve, reject) => {
        helper.onmessage = ({ data }) => (data === 'ready' ? resolve(helper) : reject(new Error(data)));
        helper.onerror = reject;
        helper.postMessage({ ...message, thread: i + 1 });
      });
    });
    await Promise.all(ready);
    return helpers;
  } catch {
    for (const helper of helpers) helper.terminate();
    return [];
  }
}
