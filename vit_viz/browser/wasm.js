// Which of the compiled kernels run here: with fused multiply-add where relaxed SIMD is known, and with shared memory for threads.

import { BadFile } from './weights.js';

/** An address, or what lies there. @typedef {string | BufferSource} Source */
/**
 * @typedef {object} Variants
 * @property {Source} plain kernels.wasm @property {Source} [relaxed] kernels-relaxed.wasm, for browsers that know relaxed SIMD
 * @property {number} [threads] how many compute, where it is not what `threadCount` says
 * @property {string} [helper] address of helper.js as one script, for a worker that is none of the modules here
 * @property {() => import('./team.js').Helper} [startHelper] a helper's worker, where it does not lie at that address
 */
/** kernels.wasm alone, or all of them. @typedef {BufferSource | Variants} Wasm */

// (func (result v128) (f32x4.relaxed_madd (zero) (zero) (zero))), where zero is (i32x4.splat (i32.const 0))
const ZERO = [0x41, 0, 0xfd, 0x11];
const RELAXED_MADD = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
  ...[1, 5, 1, 0x60, 0, 1, 0x7b], // one type: () -> v128
  ...[3, 2, 1, 0], // one function of that type
  ...[10, 19, 1, 17, 0, ...ZERO, ...ZERO, ...ZERO, 0xfd, 0x85, 0x02, 0x0b], // its code
]);

export function hasRelaxedSimd() {
  return WebAssembly.validate(RELAXED_MADD);
}

/** What is to be compiled. @param {Wasm} wasm @returns {Promise<{bytes: Uint8Array<ArrayBuffer>, isRelaxed: boolean}>} */
export async function chosenWasm(wasm) {
  const { plain, relaxed } = 'plain' in wasm ? wasm : { plain: wasm, relaxed: undefined };
  const isRelaxed = relaxed !== undefined && hasRelaxedSimd();
  return { bytes: await bytesOf(isRelaxed ? relaxed : plain), isRelaxed };
}

/** A copy of the bytes of a source. @param {Source} source @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function bytesOf(source) {
  if (typeof source === 'string') {
    const response = await fetch(source).catch(() => null);
    if (!response?.ok) throw new BadFile('The engine of this page could not be fetched; please try again.');
    return new Uint8Array(await response.arrayBuffer());
  }
  if (source instanceof ArrayBuffer) return new Uint8Array(source.slice(0));
  const { buffer, byteOffset, byteLength } = source;
  return new Uint8Array(buffer, byteOffset, byteLength).slice();
}

/**
 * The module with its memory declared as shared, which is one bit: so one file does with and without threads. Our modules import the
 * memory and nothing else (the compiler writes its types, section 1, and imports, section 2, first).
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export function withSharedMemory(bytes) {
  const text = [3, ...new TextEncoder().encode('env'), 6, ...new TextEncoder().encode('memory'), 2, 1];
  const start = bytes.findIndex((_, i) => text.every((byte, j) => bytes[i + j] === byte));
  if (start < 0) throw new Error('The engine of this page is not what it was built as.');
  const shared = bytes.slice();
  shared[start + text.length - 1] |= 2; // from "has a maximum" to "has a maximum and is shared"
  return shared;
}
