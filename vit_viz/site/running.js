// The engine of the page: its worker, started when it is first needed, and again when it has died; and the model that it holds.

import { EngineClient } from '../browser/client.js';
/** @import { Traced } from '../browser/engine.js' */
/** @import { Options } from '../browser/preprocess.js' */
/** @import { Picture } from '../browser/resize.js' */
/** @import { Loaded } from '../browser/serving.js' */

/**
 * @typedef {{name: string, card: string, file: string, bytes: number, storage: string, notes?: string,
 *     own?: {file: Blob, about: import('../browser/checkpoint.js').About}}} ModelFacts a model that the page has; own: of the visitor
 * @typedef {(words: string, share: number) => void} Told what is being done, and how much of it is
 *
 * @typedef {object} Files
 * @property {() => Worker} start a worker of the engine
 * @property {string} [helper] address of the script of its helpers
 * @property {(model: ModelFacts) => string | Uint8Array<ArrayBuffer>} weights address or bytes of a file that is packed
 */

export class Running {
  /** @type {EngineClient | null} */ client = null;
  /** @type {{name: string, loaded: Promise<Loaded>} | null} of the worker */ model = null;

  lost = 0; // workers that have died, and what they held with them
  /** @type {Told} */ told = () => {};

  /** @param {Files} files */
  constructor(files) {
    this.files = files;
  }

  /**
   * A pass of a picture; once more where the engine dies of it for the first time.
   * @param {ModelFacts} model @param {Picture} picture @param {Options & {edits?: string}} options
   * @returns {Promise<{traced: Traced & {pass: number}, loaded: Loaded}>}
   */
  async trace(model, picture, options) {
    try {
      return await this.traceOnce(model, picture, options);
    } catch (error) {
      if (!this.client?.isLost) throw error;
      this.forget();
      return this.traceOnce(model, picture, options);
    }
  }

  /** @param {ModelFacts} model @param {Picture} picture @param {Options & {edits?: string}} options */
  async traceOnce(model, picture, options) {
    const loaded = await this.load(model);
    if (this.model?.name !== model.name) throw new Error('Another model was asked for meanwhile.');
    const client = /** @type {EngineClient} */ (this.client);
    const traced = await client.trace(picture, options, (layer, depth) =>
      this.told(`Running ${model.name}: layer ${layer} of ${depth} …`, layer / depth),
    );
    return { traced, loaded };
  }

  /** Lets the worker have a model, unless it has it or is getting it. @param {ModelFacts} model */
  load(model) {
    if (this.client?.isLost) this.forget();
    if (this.model?.name !== model.name) {
      const loaded = this.loadNow(model);
      this.model = { name: model.name, loaded };
      loaded.catch(() => this.model?.loaded === loaded && (this.model = null)); // the next one tries again
    }
    return /** @type {{loaded: Promise<Loaded>}} */ (this.model).loaded;
  }

  /** @param {ModelFacts} model @returns {Promise<Loaded>} */
  loadNow(model) {
    this.client ??= new EngineClient(this.files.start());
    const size = `${(model.bytes / 1e6).toFixed(1)} MB`;
    const told = (/** @type {number} */ share) =>
      this.told(`Reading the model ${model.name}, ${Math.round(100 * share)}% of ${size} …`, share);
    told(0);
    const { own, bytes } = model;
    const file = own ? own.file : { packed: this.files.weights(model), bytes };
    const { helper } = this.files;
    return this.client.load(file, { helper }, (done, all) => told(done / all), own?.about);
  }

  /** Nobody asks about a pass any more. @param {number} pass */
  drop(pass) {
    this.client?.forget(pass);
  }

  /** The answer to a question, see `EngineClient.answer`. @param {Parameters<EngineClient['answer']>} asked */
  answer(...asked) {
    if (!this.client || this.client.isLost)
      throw new Error('The engine of this page has ended: open the picture again.');
    return this.client.answer(...asked);
  }

  /** How a question is understood, see `EngineClient.read`. @param {Parameters<EngineClient['read']>} asked */
  read(...asked) {
    if (!this.client || this.client.isLost)
      throw new Error('The engine of this page has ended: open the picture again.');
    return this.client.read(...asked);
  }

  forget() {
    this.lost += 1;
    this.client = null;
    this.model = null;
  }
}
