// The photo as one head sees it: lit where the query looks. Rows come layer by layer from the server; what is here is painted at once.

import { topOf } from '../../explorer/frame.js';
import { Picture } from '../../explorer/paint.js';
import { Gone } from '../../explorer/source.js';
import { PhotoScreen } from '../../explorer/screen.js';
import { STRENGTHS, layerTable, suited } from '../../explorer/styles.js';
import { Stage } from '../../ui/kit/stage.js';
import { SERVER } from '../look/server_source.js';
/** @import { Subject } from './room.js' */
/** @import { Place } from './words.js' */

/** Rows of all layers are fetched ahead where they are no more bytes than this. */
const AHEAD_BYTES = 16e6;

export class Lit {
  /** @type {Subject | null} */ subject = null;
  /** @type {Map<number, Float32Array>} */ rows = new Map();
  map = new Picture();
  abort = new AbortController();
  wanted = 0;
  isFetching = false;
  isGone = false; // whether the server is asked to have it again
  error = '';

  /**
   * @param {HTMLElement} stage @param {Uint32Array} table @param {() => void} arrived
   * @param {(trace: string) => boolean} gone tries to get back what the server no longer keeps; says whether that is tried
   */
  constructor(stage, table, arrived, gone) {
    this.gone = gone;
    this.stage = new Stage(stage);
    this.table = table;
    this.arrived = arrived;
    this.screen = new PhotoScreen(/** @type {HTMLCanvasElement} */ (stage.querySelector('canvas')));
    this.stage.image.addEventListener('load', () => this.arrived());
  }

  /** Another photo, model or query. */
  begin(/** @type {Subject} */ subject) {
    this.abort.abort();
    this.abort = new AbortController();
    this.rows.clear();
    this.isFetching = this.isGone = false;
    this.error = '';
    this.subject = subject;
    this.stage.place(subject);
  }

  /** Fetches the rows of a layer, then those of all others where they are few. */
  async fetch(/** @type {number} */ layer) {
    const { subject, abort } = this;
    this.wanted = layer;
    if (!subject || this.isFetching || this.isGone) return;
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
      this.isGone = error instanceof Gone && this.gone(subject.trace);
      if (this.isGone) return;
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
    return {
      values,
      most: sorted[sorted.length - 1],
      lit: topOf(sorted),
      sum: values.reduce((sum, value) => sum + value, 0),
    };
  }

  /** Lights the photo; returns what was drawn. */
  draw(/** @type {Place} */ place) {
    const map = this.mapOf(place);
    if (!map || !this.subject) {
      if (!this.error) void this.fetch(place.layer);
      return null;
    }
    lightPhoto(this, map.values, map.lit, this.subject, this.table);
    return map;
  }
}

/**
 * Lights a photo by a number per patch, fully from `top` on.
 * @param {{stage: Stage, screen: PhotoScreen, map: Picture}} on
 * @param {Float32Array} values @param {number} top @param {Subject} subject @param {Uint32Array} table
 */
export function lightPhoto({ stage, screen, map }, values, top, subject, table) {
  const [rows, cols] = subject.grid;
  const style = suited('light', subject.unlit);
  map.resize(cols, rows);
  map.paint(values, layerTable(style, STRENGTHS[style], table), [0, top]);
  const box = { width: stage.box.offsetWidth, height: stage.box.offsetHeight }; // also while it is shown smaller
  if (box.width < 1) return;
  screen.fit(box, window.devicePixelRatio || 1);
  screen.show(map.canvas, stage.image, subject, { style, smooth: true });
}
