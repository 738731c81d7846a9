// The page's end of a worker that runs the engine: questions as promises, errors as sentences.

/** @import { Answer, Request } from './answers/form.js' */
/** @import { About } from './checkpoint.js' */
/** @import { Traced } from './engine.js' */
/** @import { Options } from './preprocess.js' */
/** @import { Picture } from './resize.js' */
/** @import { Loaded, Reply, Told } from './serving.js' */
/** @import { Variants, Wasm } from './wasm.js' */
/** @import { Packed } from './weights.js' */

/** @typedef {(done: number, all: number) => void} Progress */
/** @typedef {{resolve: (value: any) => void, reject: (error: Error) => void, progress: Told}} Waiting */

export class EngineClient {
  /** @param {{postMessage: (message: any) => void, addEventListener: (type: any, listener: (event: any) => void) => void}} worker */
  constructor(worker) {
    this.worker = worker;
    /** @type {Map<number, Waiting>} */
    this.waiting = new Map();
    this.count = 0;
    this.isLost = false; // the worker has died, and answers nothing any more
    worker.addEventListener('message', ({ data }) => this.receive(data));
    worker.addEventListener('error', () => this.fail('The engine could not be started in this page.'));
  }

  /**
   * @param {string | ArrayBuffer | Blob | Packed} file address or bytes of the weights
   * @param {Wasm | Partial<Variants>} wasm bytes of kernels.wasm, or addresses or bytes of both kernels: `{ plain, relaxed }`
   * @param {Progress} [progress] of bytes @param {About} [about] of a file that others may have written @returns {Promise<Loaded>}
   */
  load(file, wasm, progress, about) {
    return this.ask({ kind: 'load', file, wasm, about }, progress);
  }

  /**
   * @param {Picture} picture @param {Options & {edits?: string}} [options] @param {Progress} [progress] of blocks
   * @returns {Promise<Traced & {pass: number}>} pass: by which `answer` asks about it
   */
  async trace(picture, options, progress) {
    const pass = this.count + 1;
    return { ...(await this.ask({ kind: 'trace', picture, options }, progress)), pass };
  }

  /**
   * A question about a picture, or about the model alone: see answers/index.js.
   * @param {string} name @param {Record<string, any>} body @param {number} pass @param {AbortSignal} [stop]
   * @param {Told} [progress] of all the share that is done, with what of the answer is there @param {number} [second] another pass
   * @returns {Promise<Answer>}
   */
  answer(name, body, pass, stop, progress = () => {}, second = 0) {
    const id = this.count + 1;
    const answer = this.ask({ kind: 'ask', name, body, pass, second }, progress);
    const leave = () => this.worker.postMessage({ kind: 'stop', id });
    stop?.addEventListener('abort', leave);
    return answer.finally(() => stop?.removeEventListener('abort', leave));
  }

  /** How a question is understood, or why it is not possible. @param {string} name @param {Record<string, any>} body @param {number} pass @returns {Promise<Request>} */
  read(name, body, pass) {
    return this.ask({ kind: 'read', name, body, pass });
  }

  /** Nobody asks about a pass any more. @param {number} pass */
  forget(pass) {
    this.worker.postMessage({ kind: 'forget', pass });
  }

  /** @param {object} message @param {Told} [progress] @returns {Promise<any>} */
  ask(message, progress = () => {}) {
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, progress });
      this.worker.postMessage({ id, ...message });
    });
  }

  receive(/** @type {Reply} */ reply) {
    const waiting = this.waiting.get(reply.id);
    if (!waiting) return;
    if (reply.kind === 'progress') {
      const { done, all, preview } = reply;
      if (preview) waiting.progress(done, all, preview);
      else waiting.progress(done, all);
      return;
    }
    this.waiting.delete(reply.id);
    if (reply.kind === 'answer') waiting.resolve(reply.value);
    else waiting.reject(new Error(reply.sentence));
  }

  /** Whatever is waited for will not come. */
  fail(/** @type {string} */ sentence) {
    this.isLost = true;
    for (const { reject } of this.waiting.values()) reject(new Error(sentence));
    this.waiting.clear();
  }
}
