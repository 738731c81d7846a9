// What a worker does with its messages: loads a model, traces pictures, tells of progress, and says in a sentence what went wrong.
//
// In: {id, kind: 'load', file, wasm, about} or {id, kind: 'trace', picture, options}. Out: {id, kind: 'progress', done, all} any number of times,
// then {id, kind: 'answer', value} or {id, kind: 'error', sentence}. One message is worked on after the other, but a model that is still
// being read is given up for another. client.js is the other end.

import { Engine } from './engine.js';
import { BadFile, reader } from './weights.js';
/** @import { About } from './checkpoint.js' */
/** @import { Traced } from './engine.js' */
/** @import { Options } from './preprocess.js' */
/** @import { Picture } from './resize.js' */
/** @import { Wasm } from './wasm.js' */

/**
 * @typedef {{id: number, kind: 'load', file: string | ArrayBuffer | Blob, wasm: Wasm, about?: About}} Load file: an address or its bytes;
 *     about: where others may have written it
 * @typedef {{id: number, kind: 'trace', picture: Picture, options?: Options}} Trace
 * @typedef {{config: import('./config.js').Config, recipe: import('./preprocess.js').Recipe,
 *     labels: string[] | null, output: import('./outputs.js').Output | null, notes: string[], threads: number, relaxed: boolean}} Loaded notes: sentences on what its file does not
 *     say; relaxed: with fused multiply-add, by relaxed SIMD
 * @typedef {{id: number, kind: 'progress', done: number, all: number} | {id: number, kind: 'answer', value: Loaded | Traced} |
 *     {id: number, kind: 'error', sentence: string}} Reply
 * @typedef {{engine: Engine | null, wanted: number, startHelper?: () => import('./team.js').Helper}} State wanted: the last message
 *     that loads, for which reading the model of another ends
 * @typedef {{postMessage: (message: Reply, transfer: ArrayBuffer[]) => void,
 *     addEventListener: (type: 'message', listener: (event: any) => void) => void}} Port
 */

/**
 * Answers the messages of a port from now on.
 * @param {Port} port @param {() => import('./team.js').Helper} [startHelper] a helper's worker, where a message names none
 */
export function serve(port, startHelper) {
  /** @type {State} */
  const state = { engine: null, wanted: 0, startHelper };
  let last = Promise.resolve();
  port.addEventListener('message', ({ data }) => {
    if (data.kind === 'load') state.wanted = data.id;
    last = last.then(() => answer(port, state, data));
  });
}

/** @param {Port} port @param {State} state @param {Load | Trace} message */
async function answer(port, state, message) {
  const { id } = message;
  const progress = (/** @type {number} */ done, /** @type {number} */ all) => {
    if (message.kind === 'load' && state.wanted !== id)
      throw new Error('Another model was asked for meanwhile.');
    port.postMessage({ id, kind: 'progress', done, all }, []);
  };
  try {
    const value = await answerOf(state, message, progress);
    port.postMessage({ id, kind: 'answer', value }, 'layers' in value ? buffersOf(value) : []);
  } catch (error) {
    port.postMessage({ id, kind: 'error', sentence: sentenceOf(error) }, []);
  }
}

/**
 * @param {State} state @param {Load | Trace} message @param {(done: number, all: number) => void} progress
 * @returns {Promise<Loaded | Traced>}
 */
async function answerOf(state, message, progress) {
  if (message.kind === 'trace') {
    if (!state.engine) throw new Error('There is no model yet: please load one first.');
    return state.engine.trace(message.picture, message.options, progress);
  }
  if (message.kind !== 'load') throw new Error('The engine loads models and traces pictures, nothing else.');
  state.engine?.model.machine.close();
  state.engine = null; // two models at once may be more than there is memory for
  const { wasm } = message;
  const how = { startHelper: state.startHelper, ...('plain' in wasm ? wasm : { plain: wasm }) };
  state.engine = await Engine.load(reader(message.file), how, progress, message.about);
  const { model, recipe, labels, output, notes } = state.engine;
  const { threads, isRelaxed: relaxed } = model.machine;
  return { config: model.config, recipe, labels, output, notes, threads, relaxed };
}

/** The memory of all numbers of a pass, each once: it moves to the page without being copied. @returns {ArrayBuffer[]} */
function buffersOf(/** @type {Traced} */ { layers, residual, logits, pool }) {
  const arrays = layers.flatMap(({ layer, q, k, lse }) => [
    ...[q, k, lse, layer.norms],
    layer.kind === 'attention' ? layer.bits : null,
  ]);
  const all = [...arrays, ...residual, logits, pool].filter((array) => array !== null);
  return [...new Set(all.map(({ buffer }) => /** @type {ArrayBuffer} */ (buffer)))];
}

/** Our own errors are sentences; of others the reason is told behind one. */
function sentenceOf(/** @type {unknown} */ error) {
  if (error instanceof BadFile) return error.message;
  if (error instanceof WebAssembly.CompileError)
    return 'This browser cannot compute the model: it has no WebAssembly with SIMD.';
  if (error instanceof Error && error.constructor === Error) return error.message;
  return `The model could not be computed in the page (${String(error)}).`;
}
