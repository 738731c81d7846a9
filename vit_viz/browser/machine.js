// The kernels with their memory: numbers are placed there, and products, norms and activations are computed on them in place.

import { helpersOf, Team, threadCount } from './team.js';
import { chosenWasm, withSharedMemory } from './wasm.js';
/** @import { Wasm } from './wasm.js' */

/**
 * @typedef {object} Kernels the functions of kernels.ts, heads.ts and reverse.ts; addresses are in bytes
 * @property {(w: number, rowStep: number, colStep: number, panels: number, rows: number, cols: number) => void} pack
 * @property {(panels: number, w: number, rows: number, cols: number) => void} unpack
 * @property {(x: number, xStride: number, panels: number, bias: number, y: number, yStride: number, rows: number, inner: number,
 *     cols: number) => void} product
 * @property {(x: number, rows: number, cols: number, peaks: number, sums: number) => void} softmax
 * @property {(x: number, y: number, gain: number, shift: number, rows: number, cols: number, eps: number, centred: number) => void} norm
 * @property {(x: number, count: number) => void} gelu
 * @property {(x: number, count: number) => void} geluTanh
 * @property {(x: number, count: number) => void} quickGelu
 * @property {(gate: number, value: number, stride: number, y: number, rows: number, cols: number) => void} gated
 * @property {(x: number, y: number, gamma: number, rows: number, cols: number) => void} add
 * @property {(x: number, count: number, factor: number) => void} scale
 * @property {(x: number, xStride: number, y: number, yStride: number, rows: number, cols: number) => void} copy
 * @property {(x: number, cosines: number, sines: number, rows: number, half: number, adjacent: number) => void} rotate
 * @property {(first: number, heads: number, x: number, stride: number, y: number, tokens: number, dim: number) => void} splitHeads
 * @property {(first: number, heads: number, k: number, v: number, stride: number, keys: number, values: number, tokens: number,
 *     dim: number) => void} packHeads
 * @property {(first: number, blocks: number, scores: number, q: number, keys: number, values: number, bias: number, bits: number,
 *     peaks: number, sums: number, y: number, width: number, tokens: number, dim: number) => void} attend
 * @property {(x: number, y: number, count: number) => void} halves
 * @property {(first: number, heads: number, turned: number, v: number, stride: number, grams: number, squares: number, tokens: number,
 *     dim: number) => void} valueSquares
 * @property {(x: number, g: number, gain: number, rows: number, cols: number, eps: number, centred: number) => void} normBack
 * @property {(weights: number, g: number, rows: number, cols: number) => void} softmaxBack
 * @property {(x: number, g: number, count: number) => void} geluBack
 * @property {(x: number, g: number, count: number) => void} geluTanhBack
 * @property {(x: number, g: number, count: number) => void} quickGeluBack
 * @property {(gate: number, value: number, stride: number, g: number, rows: number, cols: number) => void} gatedBack
 */

const PAGE = 65536;
const ALIGNMENT = 32; // also the slack behind what is placed: eight numbers may be read where fewer are left
const MOST_PAGES = 65536; // all that 32-bit addresses reach
export const MOST_BYTES = MOST_PAGES * PAGE;

/** Address of a matrix in panels, see `pack` of kernels.ts. @typedef {{panels: number, rows: number, cols: number}} Packed */

/** A memory from which room is taken from the bottom up; what a pass needs is given back at its end, all at once. */
export class Machine {
  /**
   * @param {WebAssembly.Memory} memory @param {Kernels} kernels @param {{isRelaxed: boolean, team?: Team | null}} how
   */
  constructor(memory, kernels, { isRelaxed, team = null }) {
    this.memory = memory;
    this.run = team ? team.shared() : kernels;
    this.team = team;
    this.threads = team ? team.helpers.length + 1 : 1;
    this.isRelaxed = isRelaxed;
    this.top = PAGE; // below lie the constants of the kernels and the board of the team
  }

  /** With the kernels that suit this browser, and with helpers where it lets threads share memory. @param {Wasm} wasm @returns {Promise<Machine>} */
  static async from(wasm) {
    const { bytes, isRelaxed } = await chosenWasm(wasm);
    const { threads = threadCount(), helper, startHelper: own } = 'plain' in wasm ? wasm : {};
    const start = own ?? (helper === undefined ? null : () => new Worker(helper));
    const memory = start && threads > 1 ? sharedMemory() : null;
    if (!memory) {
      const alone = new WebAssembly.Memory({ initial: 1, maximum: MOST_PAGES });
      const { instance } = await WebAssembly.instantiate(bytes, { env: { memory: alone } });
      return new Machine(alone, /** @type {any} */ (instance.exports), { isRelaxed });
    }
    const { module, instance } = await WebAssembly.instantiate(withSharedMemory(bytes), { env: { memory } });
    const kernels = /** @type {any} */ (instance.exports);
    const helpers = await helpersOf(threads - 1, /** @type {() => any} */ (start), { wasm: module, memory });
    const team = helpers.length ? new Team(memory, kernels, helpers) : null;
    return new Machine(memory, kernels, { isRelaxed, team });
  }

  /** Ends the helpers; nothing can be computed afterwards. */
  close() {
    this.team?.close();
  }

  /** Address of room for that many numbers. Throws where there is no memory left. */
  room(/** @type {number} */ count) {
    const at = this.top;
    const top = at + Math.ceil((4 * count) / ALIGNMENT + 1) * ALIGNMENT;
    const missing = Math.ceil((top - this.memory.buffer.byteLength) / PAGE);
    if (missing > 0) this.grow(missing);
    this.top = top;
    return at;
  }

  grow(/** @type {number} */ pages) {
    try {
      this.memory.grow(pages);
    } catch {
      throw new Error('This browser has not enough memory for this model and size of picture.');
    }
  }

  /** Runs `work`, whose room is free again afterwards. @template T @param {() => T} work @returns {T} */
  within(work) {
    const { top } = this;
    try {
      return work();
    } finally {
      this.top = top;
    }
  }

  /** The numbers at an address, valid until room is taken again. */
  view(/** @type {number} */ at, /** @type {number} */ count) {
    return new Float32Array(this.memory.buffer, at, count);
  }

  /** A copy of the numbers at an address. */
  read(/** @type {number} */ at, /** @type {number} */ count) {
    return this.view(at, count).slice();
  }

  /** Address of a copy of numbers. */
  place(/** @type {ArrayLike<number>} */ numbers) {
    const at = this.room(numbers.length);
    this.view(at, numbers.length).set(numbers);
    return at;
  }

  /**
   * W [rows, cols], which lies at an address, in panels; `rowStep` and `colStep`: how far its rows and columns lie apart.
   * @param {number} w @param {number} rows @param {number} cols @returns {Packed}
   */
  packed(w, rows, cols, rowStep = cols, colStep = 1) {
    const panels = this.room(panelsSize(rows, cols));
    this.run.pack(w, rowStep, colStep, panels, rows, cols);
    return { panels, rows, cols };
  }

  /** The numbers [rows, cols] of a matrix in panels. @param {Packed} matrix */
  unpacked({ panels, rows, cols }) {
    return this.within(() => {
      const w = this.room(rows * cols);
      this.run.unpack(panels, w, rows, cols);
      return this.read(w, rows * cols);
    });
  }

  /** Address of x [rows, cols] with rows and columns exchanged; `stride`: from one row of x to the next. @param {number} x @param {number} rows @param {number} cols */
  transposed(x, rows, cols, stride = cols) {
    const y = this.room(rows * cols);
    this.within(() => this.run.unpack(this.packed(x, cols, rows, 1, stride).panels, y, cols, rows));
    return y;
  }

  /** Numbers as a matrix [rows, cols] in panels; what they were copied to is free again. @returns {Packed} */
  placeMatrix(/** @type {Float32Array} */ numbers, /** @type {number} */ rows, /** @type {number} */ cols) {
    const panels = this.room(panelsSize(rows, cols));
    this.within(() => this.run.pack(this.place(numbers), cols, 1, panels, rows, cols));
    return { panels, rows, cols };
  }
}

/** How many numbers a matrix [rows, cols] has in panels. @param {number} rows @param {number} cols */
export function panelsSize(rows, cols) {
  return Math.ceil(rows / 8) * 8 * cols;
}

/** Memory for threads; null where this browser has no room for so many addresses. */
function sharedMemory() {
  try {
    return new WebAssembly.Memory({ initial: 1, maximum: MOST_PAGES, shared: true });
  } catch {
    return null;
  }
}
