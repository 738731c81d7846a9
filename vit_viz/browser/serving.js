// What a worker does with its messages: loads a model, traces pictures, answers questions about them, tells of progress, and says in a
// sentence what went wrong.
//
// In: {id, kind: 'load', file, wasm, about}, {id, kind: 'trace', picture, options}, {id, kind: 'ask', name, body, pass}, or {id, kind: 'read', ...} for how it is understood; {kind: 'stop',
// id} of a question that nobody waits for, {kind: 'forget', pass} of a pass that nobody asks about. Out: {id, kind: 'progress', done, all} any number of times, then {id, kind: 'answer', value} or
// {id, kind: 'error', sentence}. One message is worked on after the other, but a model that is still being read is given up for another.
// A packed file is loaded once, however often that is asked for in a row.
// client.js is the other end.

import { answer as answerTo, understood } from './answers/index.js';
import { Engine } from './engine.js';
import { BadFile, reader, unpacked } from './weights.js';
/** @import { Answer, Request } from './answers/form.js' */
/** @import { About } from './checkpoint.js' */
/** @import { Traced } from './engine.js' */
/** @import { Options } from './preprocess.js' */
/** @import { Picture } from './resize.js' */
/** @import { Variants, Wasm } from './wasm.js' */
/** @import { Packed } from './weights.js' */

/**
 * @typedef {{id: number, kind: 'load', file: string | ArrayBuffer | Blob | Packed, wasm: Wasm | Partial<Variants>, about?: About}} Load
 *     file: an address or its bytes; wasm: as far as the worker has none of its own; about: where others may have written it
 * @typedef {{id: number, kind: 'trace', picture: Picture, options?: Options & {edits?: string}}} Trace
 * @typedef {{id: number, kind: 'ask' | 'read', name: string, body: Record<string, any>, pass: number, second?: number}} Question pass: the id of the message that
 *     traced the picture; second: of the one that traced another
 * @typedef {{config: import('./config.js').Config, recipe: import('./preprocess.js').Recipe,
 *     labels: string[] | null, output: import('./outputs.js').Output | null, notes: string[], threads: number, relaxed: boolean}} Loaded notes: sentences on what its file does not
 *     say; relaxed: with fused multiply-add, by relaxed SIMD
 * @typedef {(done: number, all: number, preview?: Answer) => void} Told preview: what of an answer is there
 * @typedef {{id: number, kind: 'progress', done: number, all: number, preview?: Answer} | {id: number, kind: 'answer', value: Loaded | Traced | Answer | Request} |
 *     {id: number, kind: 'error', sentence: string}} Reply
 * @typedef {{engine: Engine | null, loaded: Load | null, wanted: Load | null, passes: Map<number, Traced>, stopped: Set<number>,
 *     own: Partial<Variants>}} State loaded: of the engine; wanted: the last message that loads, for which reading another model ends; passes: of this model, by the messages that asked for them, until they are to be forgotten; stopped: questions that nobody waits for
 * @typedef {{postMessage: (message: Reply, transfer: ArrayBuffer[]) => void,
 *     addEventListener: (type: 'message', listener: (event: any) => void) => void}} Port
 */

const FREE = 5; // looks for what was sent meanwhile; from then on a browser makes each take 4 milliseconds
const HEARING = 50; // milliseconds from one of those to the next

/**
 * Answers the messages of a port from now on.
 * @param {Port} port @param {Partial<Variants>} [own] kernels and helpers that the worker has, where a message names none
 */
export function serve(port, own = {}) {
  /** @type {State} */
  const state = { engine: null, loaded: null, wanted: null, passes: new Map(), stopped: new Set(), own };
  let last = Promise.resolve();
  port.addEventListener('message', ({ data }) => {
    if (data.kind === 'stop') return void state.stopped.add(data.id);
    if (data.kind === 'load') state.wanted = data;
    if (data.kind === 'read') return void answer(port, state, data); // beside what takes long
    last = last.then(() =>
      data.kind === 'forget' ? void state.passes.delete(data.pass) : answer(port, state, data),
    );
  });
}

/** @param {Port} port @param {State} state @param {Load | Trace | Question} message */
async function answer(port, state, message) {
  const { id } = message;
  /** @type {Told} */
  const progress = (done, all, preview) => {
    const heard = message.kind === 'load' ? /** @type {Load} */ (state.wanted) : message;
    if (message.kind === 'load' && heard !== message && !isOfSameFile(message, state.wanted))
      throw new Error('Another model was asked for meanwhile.');
    port.postMessage({ id: heard.id, kind: 'progress', done, all, ...(preview && { preview }) }, []);
  };
  try {
    const value = await answerOf(state, message, progress);
    port.postMessage({ id, kind: 'answer', value }, 'arrays' in value ? buffersOf(value) : []);
  } catch (error) {
    port.postMessage({ id, kind: 'error', sentence: sentenceOf(error) }, []);
  } finally {
    state.stopped.delete(id);
  }
}

/**
 * @param {State} state @param {Load | Trace | Question} message @param {Told} progress
 * @returns {Promise<Loaded | Traced | Answer | Request>}
 */
async function answerOf(state, message, progress) {
  const { engine, passes } = state;
  if (message.kind === 'trace' || message.kind === 'ask' || message.kind === 'read') {
    if (!engine) throw new Error('There is no model yet: please load one first.');
    if (message.kind !== 'trace') {
      const reply = message.kind === 'ask' ? answerTo : understood;
      return reply(message.name, message.body, contextOf(state, message, engine, progress));
    }
    const traced = engine.trace(message.picture, message.options, progress);
    passes.set(message.id, traced);
    return traced;
  }
  if (message.kind !== 'load')
    throw new Error('The engine loads models, traces pictures and answers questions, nothing else.');
  if (!engine || !isOfSameFile(message, state.loaded)) await load(state, message, progress);
  const { model, recipe, labels, output, notes } = /** @type {Engine} */ (state.engine);
  const { threads, isRelaxed: relaxed } = model.machine;
  return { config: model.config, recipe, labels, output, notes, threads, relaxed };
}

/** @param {State} state @param {Load} message @param {Told} progress */
async function load(state, message, progress) {
  state.engine?.model.machine.close();
  state.passes.clear();
  state.engine = null; // two models at once may be more than there is memory for
  const { file, wasm, about } = message;
  const areBytes = wasm instanceof ArrayBuffer || ArrayBuffer.isView(wasm);
  const how = /** @type {Variants} */ ({ ...state.own, ...(areBytes ? { plain: wasm } : wasm) });
  const isPacked = typeof file === 'object' && 'packed' in file;
  const bytes = isPacked ? await unpacked(file, progress) : file;
  state.engine = await Engine.load(reader(bytes), how, isPacked ? undefined : progress, about);
  state.loaded = message;
}

/** Whether two messages load the packed file of one address. @param {Load} one @param {Load | null} other */
function isOfSameFile({ file }, other) {
  const addressOf = (/** @type {any} */ { packed }) => (typeof packed === 'string' ? packed : null);
  return addressOf(file) !== null && addressOf(file) === addressOf(other?.file ?? '');
}

/**
 * What a question is answered from.
 * @param {State} state @param {Question} message @param {Engine} engine @param {Told} progress
 * @returns {import('./answers/form.js').Context}
 */
function contextOf(state, { id, pass, second = 0 }, engine, progress) {
  let [count, heard] = [0, 0];
  return {
    engine,
    second: state.passes.get(second),
    get traced() {
      const traced = state.passes.get(pass);
      if (!traced) throw new Error('The numbers of this picture are gone: open it again.');
      return traced;
    },
    async step(share, preview) {
      count += 1;
      if (count > FREE && share < 1 && performance.now() - heard < HEARING) return;
      progress(share, 1, preview?.());
      await new Promise((resume) => setTimeout(resume)); // what was sent meanwhile is heard
      heard = performance.now();
      if (state.stopped.has(id)) throw new Error('Nobody waits for this answer any more.');
    },
  };
}

/** The memory of all numbers of an answer, each once: it moves to the page without being copied. @returns {ArrayBuffer[]} */
function buffersOf(/** @type {Answer} */ { arrays }) {
  const all = Object.values(arrays).map(({ data }) => /** @type {ArrayBuffer} */ (data.buffer));
  return [...new Set(all)];
}

/** Our own errors are sentences; of others the reason is told behind one. */
function sentenceOf(/** @type {unknown} */ error) {
  if (error instanceof BadFile) return error.message;
  if (error instanceof WebAssembly.CompileError)
    return 'This browser cannot compute the model: it has no WebAssembly with SIMD.';
  if (error instanceof Error && error.constructor === Error) return error.message;
  return `The model could not be computed in the page (${String(error)}).`;
}
