// From numbers to pixels: colour tables, the mosaic and the big map, each one picture element per patch.
//
// These canvases hold exactly one pixel per patch, and screen.js puts them on the photo: a repaint writes a few thousand numbers,
// whatever the size on the screen, and what is on the canvas can be compared with the numbers. A table here has 256 pixels ready to
// be written, with their opacity: `layerTable` in styles.js makes it.

import { massMask } from './frame.js';
import { headColumn, shownColumns } from './state.js';
/** @import { Frame } from './frame.js' */
/** @import { View } from './state.js' */

/** What a text holds in base64. */
export function bytesOf(/** @type {string} */ text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Colours as pixels ready to be written: those of a table, or one for each patch. @param {string} text base64 of 3 bytes each */
export function decodeTable(text, opacity = 255) {
  const bytes = bytesOf(text);
  const pixels = new Uint8ClampedArray((bytes.length / 3) * 4).fill(opacity);
  for (let i = 0; 3 * i < bytes.length; i++) pixels.set(bytes.subarray(3 * i, 3 * i + 3), 4 * i);
  return new Uint32Array(pixels.buffer);
}

/** Place in a colour table, as vit_viz.figures.colormaps.indices: round(255 share), halves up; a constant map gets 128. */
export function tableIndex(/** @type {number} */ value, low = 0, high = 1) {
  if (low === high) return value === low ? 128 : value > high ? 255 : 0;
  return Math.floor(255 * Math.min(1, Math.max(0, (value - low) / (high - low))) + 0.5);
}

/**
 * Paints one map into a larger picture.
 * @param {Uint32Array} pixels @param {{at: number, stride: number, rows: number, cols: number}} place
 * @param {Float32Array} values [rows * cols]
 * @param {Uint32Array} table @param {[number, number, number]} range
 */
export function paintMap(pixels, { at, stride, rows, cols }, values, table, [low, high]) {
  if (low === high) {
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++)
        pixels[at + r * stride + c] = table[tableIndex(values[r * cols + c], low, high)];
    }
    return;
  }
  const scale = 255 / (high - low);
  for (let r = 0, i = 0; r < rows; r++) {
    for (let c = 0, o = at + r * stride; c < cols; c++, i++, o++) {
      const place = ((values[i] - low) * scale + 0.5) | 0; // values within the range: truncation is floor
      pixels[o] = table[place < 0 ? 0 : place > 255 ? 255 : place];
    }
  }
}

/** A canvas of one pixel per patch. */
export class Picture {
  constructor(canvas = document.createElement('canvas'), width = 1, height = 1) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    this.data = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.data.data.buffer);
    Object.assign(canvas, { width, height });
  }

  resize(/** @type {number} */ width, /** @type {number} */ height) {
    if (width === this.data.width && height === this.data.height) return;
    Object.assign(this.canvas, { width, height });
    this.data = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.data.data.buffer);
  }

  /** One number per patch, in the colours of a table. @param {Float32Array} map @param {Uint32Array} table @param {[number, number]} range */
  paint(map, table, [low, high]) {
    const { width: cols, height: rows } = this.data;
    paintMap(this.pixels, { at: 0, stride: cols, rows, cols }, map, table, [low, high, 0]);
    this.show();
  }

  /** One pixel per patch, ready to be written. */
  set(/** @type {Uint32Array} */ pixels) {
    this.pixels.set(pixels);
    this.show();
  }

  clear() {
    this.pixels.fill(0);
    this.show();
  }

  show() {
    this.context.putImageData(this.data, 0, 0);
  }
}

/** Gives every patch outside the top that is kept one pixel. */
function cutOut(
  /** @type {Uint32Array} */ pixels,
  /** @type {any} */ place,
  /** @type {Float32Array} */ values,
  share = 0.6,
  outside = 0,
) {
  const mask = massMask(values, share);
  for (let r = 0; r < place.rows; r++) {
    for (let c = 0; c < place.cols; c++) {
      if (!mask[r * place.cols + c]) pixels[place.at + r * place.stride + c] = outside;
    }
  }
}

/**
 * Paints every cell of the mosaic: layers downwards, heads and then the fusions that are shown to the right.
 * @param {Picture} picture @param {Frame} frame @param {View} view @param {Uint32Array} table
 * @param {number} [outside] pixel of what is not kept
 */
export function paintMosaic(picture, frame, view, table, outside = 0) {
  const { trace } = frame;
  const columns = shownColumns(view, trace.heads);
  const [rows, cols] = trace.grid;
  const stride = columns * cols;
  picture.resize(stride, trace.layers * rows);
  const { pixels } = picture;
  const shared = view.scale === 'shared' ? frame.range(view, 0, 0) : null;
  for (let l = 0; l < trace.layers; l++) {
    const top = l * rows * stride;
    if (!frame.filled[l]) pixels.fill(0, top, top + rows * stride);
    if (!frame.fresh[l]) continue; // what it showed before stays, and fades on the screen
    const range = view.scale === 'layer' ? frame.range(view, l, 0) : shared;
    for (let c = 0; c < columns; c++) {
      const place = { at: top + c * cols, stride, rows, cols };
      const values = frame.values.subarray(...frame.patchesAt(l, c));
      paintMap(pixels, place, values, table, range ?? frame.range(view, l, c));
      if (view.mask) cutOut(pixels, place, values, view.mask, outside);
    }
  }
  picture.show();
}

/**
 * Paints the chosen cell for the big map, on a scale of its own: on that of its cell, a diffuse head would be dark all over. Returns
 * the numbers at the ends of its colours, and its largest.
 * @param {Picture} picture @param {Frame} frame @param {View} view @param {Uint32Array} table
 * @param {number} [outside] pixel of what is not kept
 * @returns {[number, number, number]}
 */
export function paintBigMap(picture, frame, view, table, outside = 0) {
  const [rows, cols] = frame.trace.grid;
  const range = frame.range({ ...view, scale: 'own' }, view.layer, headColumn(view.head, frame.trace.heads));
  picture.resize(cols, rows);
  const { pixels } = picture;
  if (frame.fresh[view.layer]) {
    const place = { at: 0, stride: cols, rows, cols };
    paintMap(pixels, place, frame.map(view), table, range);
    if (view.mask) cutOut(pixels, place, frame.map(view), view.mask, outside);
  } else {
    pixels.fill(0);
  }
  picture.show();
  return range;
}

/** A repaint as a `performance.measure` entry, for tests and for the browser's own profiler. */
export function measure(/** @type {string} */ name, /** @type {number} */ start, detail = '') {
  performance.measure(name, { start, end: performance.now(), detail });
  if (performance.getEntriesByName(name).length > 600) performance.clearMeasures(name);
}
