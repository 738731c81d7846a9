// The photo as one head sees it: lit where the query looks. Rows come layer by layer from the server; what is here is painted at once.

import { CLIPPED } from '../../explorer/frame.js';
import { Picture, paintMap } from '../../explorer/paint.js';
import { PhotoScreen } from '../../explorer/screen.js';
import { STRENGTHS, layerTable, suited } from '../../explorer/styles.js';
import { Stage } from '../kit/stage.js';
import { SERVER } from '../look/server_source.js';

/**
 * @typedef {import('./words.js').Place} Place
 * @typedef {import('./table.js').Subject} Subject
 */

/** Rows of all layers are fetched ahead where they are no more bytes than this. */
const AHEAD_BYTES = 4e6;

export class Lit {
  /** @param {HTMLElement} stage @param {Uint32Array} table @param {() => void} arrived */
  constructor(stage, table, arrived) {
    this.stage = new Stage(stage);
    this.table = table;
    this.arrived = arrived;
    this.screen = new PhotoScreen(/** @type {HTMLCanvasElement} */ (stage.querySelector('canvas')));
    this.map = new Picture(document.createElement('canvas'));
    /** @type {Map<number, Float32Array>} */
    this.rows = new Map();
    this.abort = new AbortController();
    this.wanted = 0;
    this.isFetching = false;
    this.error = '';
    /** @type {Subject | null} */
    this.subject = null;
    this.stage.image.addEventListener('load', () => this.arrived());
  }

  /** Another photo, model or query. */
  begin(/** @type {Subject} */ subject) {
    this.abort.abort();
    this.abort = new AbortController();
    this.rows.clear();
    this.isFetching = false;
    this.error = '';
    this.subject = subject;
    this.stage.place(subject);
  }

  /** Fetches the rows of a layer, then those of all others where they are few. */
  async fetch(/** @type {number} */ layer) {
    const { subject, abort } = this;
    this.wanted = layer;
    if (!subject || this.isFetching) return;
    this.isFetching = true;
    try {
      for (let next = this.next(subject); next !== null; next = this.next(subject)) {
        const view = /** @type {any} */ ({ query: subject.query, direction: 'row' });
        const rows = await SERVER.rows(subject, next, view, abort.signal);
        if (abort.signal.aborted) return;
        this.rows.set(next, rows);
        this.arrived();
      }
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = /** @type {Error} */ (error).message;
      this.arrived();
    } finally {
      if (!abort.signal.aborted) this.isFetching = false;
    }
  }

  /** @returns {number | null} the layer to fetch next */
  next(/** @type {Subject} */ { layers, heads, tokens }) {
    if (!this.rows.has(this.wanted)) return this.wanted;
    if (4 * layers * heads * tokens > AHEAD_BYTES) return null;
    const all = Array.from({ length: layers }, (_, layer) => layer);
    return all.find((layer) => !this.rows.has(layer)) ?? null;
  }

  /** What a head gives each patch, and all patches together; null while it is on its way. */
  mapOf(/** @type {Place} */ { layer, head }) {
    const rows = this.rows.get(layer);
    if (!rows || !this.subject) return null;
    const { tokens, prefix, grid } = this.subject;
    const first = head * tokens + prefix.length;
    const values = rows.subarray(first, first + grid[0] * grid[1]);
    const sorted = values.slice().sort();
    const most = sorted[sorted.length - 1];
    const lit = sorted[Math.round((1 - CLIPPED) * (sorted.length - 1))]; // from here on all is fully lit, as on the Look tab
    return { values, most, lit: lit || most, sum: values.reduce((sum, value) => sum + value, 0) };
  }

  /** Lights the photo; returns what was drawn. */
  draw(/** @type {Place} */ place) {
    const map = this.mapOf(place);
    if (!map || !this.subject || !this.map.pixels) {
      if (!this.error) void this.fetch(place.layer);
      return null;
    }
    const [rows, cols] = this.subject.grid;
    const style = suited('light', this.subject.unlit);
    this.map.resize(cols, rows);
    const colours = layerTable(style, STRENGTHS[style], this.table);
    paintMap(this.map.pixels, { at: 0, stride: cols, rows, cols }, map.values, colours, [0, map.lit, 0]);
    this.map.show();
    const box = this.stage.box.getBoundingClientRect();
    if (box.width < 1) return map;
    this.screen.fit(box, window.devicePixelRatio || 1);
    this.screen.show(this.map.canvas, this.stage.image, this.subject, { style, smooth: true });
    return map;
  }
}
