// The explorer's three pictures: the big photo, the mosaic and the scale bar, all in the style of the view.

import { Picture, decodeTable, paintBigMap, paintMosaic } from './paint.js';
import { MosaicScreen, PhotoScreen } from './screen.js';
import { barPixels, layerTable, suited } from './styles.js';
/** @import { Frame } from './frame.js' */
/** @import { Trace } from './geometry.js' */
/** @import { View } from './state.js' */
/** @import { Style } from './styles.js' */

/**
 * @typedef {Record<string, HTMLElement>} Parts
 *
 * The numbers that the scale bar of the big map shows.
 * @typedef {object} Range
 * @property {number} low at the dark end
 * @property {number} high at the bright end of the scale
 * @property {number} most the largest value of the map
 */

/** Paints a frame; knows where the canvases are. */
export class Pictures {
  /** @param {Parts} parts @param {Record<string, string>} tables */
  constructor(parts, tables) {
    const canvas = (/** @type {string} */ name) => /** @type {HTMLCanvasElement} */ (parts[name]);
    this.photo = /** @type {HTMLImageElement} */ (parts.photo);
    this.map = new Picture(canvas('map'));
    this.atlas = new Picture(canvas('atlas'));
    this.bar = new Picture(canvas('colors'));
    this.screen = new PhotoScreen(canvas('veil'));
    this.mosaic = new MosaicScreen(canvas('lit'));
    this.tables = Object.fromEntries(Object.entries(tables).map(([name, text]) => [name, decodeTable(text)]));
    /** @type {Map<string, Uint32Array>} */
    this.layers = new Map();
    this.shownBar = '';
  }

  /** Follows the sizes that `fitPanels` found. @param {import('./layout.js').Arrangement} mosaic @param {import('./screen.js').Size} box */
  fit(mosaic, box) {
    const ratio = window.devicePixelRatio || 1;
    this.screen.fit(box, ratio);
    this.mosaic.fit(mosaic.cell, mosaic, ratio);
  }

  /** @param {Frame} frame @param {View} view @returns {Range} */
  paint(frame, view) {
    const { trace } = frame;
    const style = suited(view.style, trace.unlit);
    const outside = (/** @type {Uint32Array} */ layer) => (style === 'light' ? layer[0] : 0);
    const cells = this.layer(style, style === 'heat' ? 1 : view.alpha, view.table);
    const big = this.layer(style, view.alpha, view.table);
    paintMosaic(this.atlas, frame, view, cells, outside(cells));
    this.mosaic.smooth = view.smooth;
    this.mosaic.show(this.atlas.canvas, this.photo, frame, style);
    const [low, high, most] = paintBigMap(this.map, frame, view, big, outside(big));
    this.screen.show(this.map.canvas, this.photo, trace, { style, smooth: view.smooth });
    this.showBar(style, view.table);
    return { low, high, most };
  }

  /** The scale, drawn again where it has changed. */
  showBar(/** @type {Style} */ style, /** @type {string} */ table) {
    const key = `${style}|${table}`;
    if (key === this.shownBar) return;
    this.shownBar = key;
    const pixels = barPixels(style, this.tables[table]);
    this.bar.resize(pixels.length, 1);
    this.bar.set(pixels);
  }

  /** @param {Style} style @param {number} strength @param {string} table */
  layer(style, strength, table) {
    const key = `${style}|${strength}|${table}`;
    const known = this.layers.get(key);
    if (known) return known;
    if (this.layers.size > 60) this.layers.clear();
    const made = layerTable(style, strength, this.tables[table]);
    this.layers.set(key, made);
    return made;
  }

  /**
   * The layer over the photo at another size, for a file.
   * @param {Trace} trace @param {View} view @param {{width: number, height: number}} size
   */
  layerAt(trace, view, size) {
    const screen = new PhotoScreen(document.createElement('canvas'));
    screen.fit(size);
    const style = suited(view.style, trace.unlit);
    screen.show(this.map.canvas, this.photo, trace, { style, smooth: view.smooth });
    return screen.canvas;
  }
}
