// What travels from the server: layers for the browser's own arithmetic, and single answers where that is not possible.

import { layerBytes, parseLayer } from './attention.js';
import { isLocal } from './geometry.js';

/**
 * @typedef {import('./attention.js').Layer} Layer
 * @typedef {import('./geometry.js').Trace} Trace
 * @typedef {import('./state.js').View} View
 */

/** All layers of a trace are kept up to this many bytes as they travel; above it, as many as fit, the chosen one first. */
export const LAYER_BUDGET = 60e6;

/** Bytes of server answers that are kept. */
const ANSWER_BUDGET = 24e6;

/** The server no longer has this trace. */
export class Gone extends Error {}

/** Address of a route, also behind a path prefix. */
export function routeUrl(/** @type {string} */ path) {
  const root = /** @type {any} */ (window).gradio_config?.root ?? '';
  return path.startsWith('/') ? `${String(root).replace(/[/]$/, '')}${path}` : path;
}

/**
 * @param {string} path
 * @param {AbortSignal} signal
 * @param {number} [tries] a dropped connection is tried once more
 * @returns {Promise<Response>}
 */
async function get(path, signal, tries = 2) {
  let answer;
  try {
    answer = await fetch(routeUrl(path), { signal, credentials: 'same-origin' });
  } catch (error) {
    if (signal.aborted || tries < 2) throw error;
    await new Promise((done) => window.setTimeout(done, 400));
    return get(path, signal, tries - 1);
  }
  if (answer.status === 404 || answer.status === 410)
    throw new Gone('The server no longer keeps this picture. Choose it again, or reload the page.');
  if (!answer.ok)
    throw new Error(`The server refused this request (${answer.status}). Reload the page to try again.`);
  return answer;
}

/** Layers and answers of one trace; everything under way stops when the trace is left. */
export class LayerStore {
  /**
   * @param {Trace} trace
   * @param {{ready: (layer: number) => void, failed: (error: Error) => void}} listener
   */
  constructor(trace, listener) {
    this.trace = trace;
    this.listener = listener;
    this.abort = new AbortController();
    /** @type {Map<number, Layer>} */
    this.layers = new Map();
    /** @type {Map<string, Float32Array>} */
    this.answers = new Map();
    this.answerBytes = 0;
    this.loading = false;
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

  /** Fetches the chosen layer, then, where all fit, the others from there on; one after the other. */
  async load(/** @type {number} */ chosen) {
    this.wanted = chosen;
    if (this.loading || this.broken) return;
    this.loading = true;
    try {
      for (let l = this.next(); l !== null; l = this.next()) {
        const layer = await this.fetchLayer(l);
        if (this.abort.signal.aborted) return;
        this.keep(l, layer);
        this.listener.ready(l);
      }
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.broken = true;
      this.listener.failed(/** @type {Error} */ (error));
    } finally {
      this.loading = false;
    }
  }

  /** @returns {number | null} the layer to fetch next */
  next() {
    const { layers } = this.trace;
    const reach = this.fitsAll ? layers : 1;
    for (let step = 0; step < reach; step++) {
      const layer = (this.wanted + layers - step) % layers; // downwards: the last layers say most
      if (!this.layers.has(layer) && this.fits(layer)) return layer;
    }
    return null;
  }

  /** @param {number} layer @returns {Promise<Layer>} */
  async fetchLayer(layer) {
    const { trace, heads, tokens, head_dim: headDim, scales, source } = this.trace;
    const answer = await get(`/vit_viz/layer/${encodeURIComponent(trace)}/${layer}`, this.abort.signal);
    const kind = answer.headers.get('X-Vit-Viz-Kind') ?? source[layer];
    return parseLayer(await answer.arrayBuffer(), { kind, heads, tokens, headDim, scale: scales[layer] });
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
      return `Large picture: layer ${chosen} answers under the pointer, the others when a query is pinned.`;
    const missing = !this.broken && this.layers.size < this.trace.layers;
    return missing ? `Fetching layers: ${this.layers.size} of ${this.trace.layers}.` : '';
  }

  /** Layers whose rows must come from the server for this view, the chosen one first. */
  unanswered(/** @type {View} */ view) {
    const { layers } = this.trace;
    const onlyServer = !isLocal(view.query, this.trace);
    if (view.norm && !(onlyServer && view.direction === 'row')) return []; // rows come without norms
    return Array.from({ length: layers }, (_, l) => (view.layer + layers - l) % layers).filter((l) => {
      const comes = this.fits(l) && (this.fitsAll || l === view.layer);
      return !this.answer(l, view) && (onlyServer || (!this.layers.has(l) && !comes));
    });
  }

  /** What the server answered for a query in a layer, [heads, tokens]; null while unknown. */
  answer(/** @type {number} */ layer, /** @type {View} */ view) {
    return this.answers.get(answerKey(layer, view)) ?? null;
  }

  /**
   * Asks the server for the rows of a query in a layer.
   * @param {number} layer
   * @param {View} view
   * @param {AbortSignal} signal
   */
  async ask(layer, view, signal) {
    const search = new URLSearchParams({ query: view.query, direction: view.direction });
    const path = `/vit_viz/rows/${encodeURIComponent(this.trace.trace)}/${layer}?${search}`;
    const rows = new Float32Array(await (await get(path, signal)).arrayBuffer());
    if (rows.length !== this.trace.heads * this.trace.tokens)
      throw new Error('The server sent too few numbers.');
    if (this.answerBytes + rows.byteLength > ANSWER_BUDGET) {
      this.answers.clear();
      this.answerBytes = 0;
    }
    this.answers.set(answerKey(layer, view), rows);
    this.answerBytes += rows.byteLength;
  }

  /**
   * The numbers of one map in fp32, as the server computes them.
   * @param {View} view
   * @param {AbortSignal} signal
   * @returns {Promise<Record<string, unknown>>}
   */
  async numbers(view, signal) {
    const search = new URLSearchParams({
      layer: String(view.layer),
      head: String(view.head),
      query: view.query,
      direction: view.direction,
    });
    if (view.norm) search.set('norm', '1');
    const path = `/vit_viz/numbers/${encodeURIComponent(this.trace.trace)}?${search}`;
    return (await get(path, signal)).json();
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
