// What comes from the source: layers for the browser's own arithmetic, and single answers where that is not possible.

import { layerBytes } from './attention.js';
import { isLocal } from './geometry.js';
/** @import { Layer } from './attention.js' */
/** @import { Trace } from './geometry.js' */
/** @import { View } from './state.js' */

/** All layers of a trace are kept up to this many bytes as they travel; above it, as many as fit, the chosen one first. */
export const LAYER_BUDGET = 60e6;

/** Bytes of the source's answers that are kept. */
const ANSWER_BUDGET = 24e6;

/** Layers and answers of one trace; everything under way stops when the trace is left. */
export class LayerStore {
  /**
   * @param {Trace} trace @param {import('./source.js').Source} source
   * @param {{ready: (layer: number) => void, failed: (error: Error) => void}} listener
   */
  constructor(trace, source, listener) {
    this.trace = trace;
    this.source = source;
    this.listener = listener;
    this.abort = new AbortController();
    /** @type {Map<number, Layer>} */
    this.layers = new Map();
    /** @type {Map<string, Float32Array>} */
    this.answers = new Map();
    this.answerBytes = 0;
    this.loading = false;
    /** @type {Set<number>} under way */
    this.coming = new Set();
    this.wanted = 0;
    this.broken = false;
  }

  bytes(/** @type {number} */ layer) {
    const { source, heads, tokens, head_dim: headDim } = this.trace;
    return layerBytes(source[layer] ?? 'qk', heads, tokens, headDim);
  }

  /** Whether the browser can ever compute this layer itself. */
  fits(/** @type {number} */ layer) {
    return this.bytes(layer) <= LAYER_BUDGET;
  }

  /** Whether all layers can be held together. */
  get fitsAll() {
    let sum = 0;
    for (let l = 0; l < this.trace.layers; l++) sum += this.bytes(l);
    return sum <= LAYER_BUDGET;
  }

  get(/** @type {number} */ layer) {
    return this.layers.get(layer) ?? null;
  }

  /** Fetches the chosen layer, then, where all fit, the others from there on, two at a time: each two are painted once. */
  async load(/** @type {number} */ chosen) {
    this.wanted = chosen;
    if (this.loading || this.broken) return;
    this.loading = true;
    try {
      await this.fetchNext();
      const others = async () => {
        while (await this.fetchNext());
      };
      await Promise.all([others(), others()]);
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.broken = true;
      this.listener.failed(/** @type {Error} */ (error));
    } finally {
      this.loading = false;
    }
  }

  /** @returns {Promise<boolean>} whether there was a layer to fetch, and may be another one */
  async fetchNext() {
    const layer = this.next();
    if (layer === null) return false;
    this.coming.add(layer);
    const data = await this.fetchLayer(layer);
    this.coming.delete(layer);
    if (this.abort.signal.aborted || this.broken) return false;
    this.keep(layer, data);
    this.listener.ready(layer);
    return true;
  }

  /** @returns {number | null} the layer to fetch next */
  next() {
    const { layers } = this.trace;
    const reach = this.fitsAll ? layers : 1;
    for (let step = 0; step < reach; step++) {
      const layer = (this.wanted + layers - step) % layers; // downwards: the last layers say most
      if (!this.layers.has(layer) && !this.coming.has(layer) && this.fits(layer)) return layer;
    }
    return null;
  }

  /** Whether nothing is under way and nothing is left to fetch. */
  get isComplete() {
    return !this.coming.size && this.next() === null;
  }

  /** @param {number} layer @returns {Promise<Layer>} */
  fetchLayer(layer) {
    return this.source.layer(this.trace, layer, this.abort.signal);
  }

  /** @param {number} layer @param {Layer} data */
  keep(layer, data) {
    this.layers.set(layer, data);
    let sum = 0;
    for (const l of this.layers.keys()) sum += this.bytes(l);
    for (const oldest of [...this.layers.keys()]) {
      if (sum <= LAYER_BUDGET || oldest === layer || oldest === this.wanted) continue;
      sum -= this.bytes(oldest);
      this.layers.delete(oldest);
    }
  }

  /** What is still missing, in words; "" where nothing is. */
  progress(/** @type {number} */ chosen) {
    if (!this.fitsAll)
      return `Large picture: layer ${chosen} answers at once, the others when a query is pinned.`;
    const missing = !this.broken && this.layers.size < this.trace.layers;
    return missing ? `Fetching layers: ${this.layers.size} of ${this.trace.layers}.` : '';
  }

  /** Layers whose rows must come from the source for this view, the chosen one first. */
  unanswered(/** @type {View} */ view) {
    const { layers } = this.trace;
    const onlyServer = !isLocal(view.query, this.trace);
    if (view.norm && !(onlyServer && view.direction === 'row')) return []; // rows come without norms
    return Array.from({ length: layers }, (_, l) => (view.layer + layers - l) % layers).filter((l) => {
      const comes = this.fits(l) && (this.fitsAll || l === view.layer);
      return !this.answer(l, view) && (onlyServer || (!this.layers.has(l) && !comes));
    });
  }

  /** What the source answered for a query in a layer, [heads, tokens]; null while unknown. */
  answer(/** @type {number} */ layer, /** @type {View} */ view) {
    return this.answers.get(answerKey(layer, view)) ?? null;
  }

  /** Asks the source for the rows of a query in a layer. @param {number} layer @param {View} view @param {AbortSignal} signal */
  async ask(layer, view, signal) {
    const rows = await this.source.rows(this.trace, layer, view, signal);
    if (rows.length !== this.trace.heads * this.trace.tokens)
      throw new Error('Some numbers of this layer are missing.');
    if (this.answerBytes + rows.byteLength > ANSWER_BUDGET) {
      this.answers.clear();
      this.answerBytes = 0;
    }
    this.answers.set(answerKey(layer, view), rows);
    this.answerBytes += rows.byteLength;
  }

  /** The numbers of one map in fp32, where somebody has them. @param {View} view @param {AbortSignal} signal */
  numbers(view, signal) {
    return this.source.exact(this.trace, view, signal);
  }

  close() {
    this.abort.abort();
    this.layers.clear();
    this.answers.clear();
  }
}

/** @param {number} layer @param {View} view */
function answerKey(layer, view) {
  return `${layer}|${view.direction}|${view.query}`;
}
