// The matrix on its canvas: cells as pixels of a hidden picture, stretched to where the panes have them, and the names beside them.

import { endsOf, paintWeights, pixelTable } from '../../explorer/matrix.js';
import { Picture } from '../../explorer/paint.js';
import { labelsOf } from './matrix_panes.js';

/**
 * @typedef {import('../../explorer/matrix.js').Axis} Axis
 * @typedef {import('../../explorer/matrix.js').Filling} Filling
 * @typedef {import('./matrix_panes.js').Panes} Panes
 */

/** Pixels beside and above the matrix, for names in a text of 12 pixels. */
const MARGIN = 64;
const TEXT = 12;

/** Paints and draws. */
export class Sheet {
  /** @param {HTMLCanvasElement} canvas @param {Uint32Array} table */
  constructor(canvas, table) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    this.table = table;
    this.cells = new Picture(document.createElement('canvas'));
    this.pixels = table;
    this.scale = ''; // that `pixels` are for
    this.painted = 0; // rows
    this.unit = 1; // how large text is against 12 pixels
  }

  get margin() {
    return MARGIN * this.unit;
  }

  /** Reads how large text is on this screen, which grows with wide ones. */
  measure() {
    this.unit = (parseFloat(getComputedStyle(this.canvas).fontSize) || TEXT) / TEXT;
  }

  /** Another matrix. */
  begin(/** @type {number} */ cells) {
    this.cells.resize(cells, cells);
    this.cells.pixels?.fill(0);
    this.cells.show();
    this.painted = 0;
  }

  /** Paints what has been computed since, or everything where the scale has changed. @param {Filling} filling @param {boolean} log */
  paint(filling, log) {
    const { data, pixels, context } = this.cells;
    if (!data || !pixels) return;
    const ends = endsOf(filling, log);
    const scale = `${ends}|${log}`;
    if (scale !== this.scale) {
      this.pixels = pixelTable(this.table, ends, log);
      this.scale = scale;
      this.painted = 0;
    }
    const { width } = data;
    if (this.painted === filling.next) return;
    paintWeights(pixels, filling.values, this.pixels, this.painted * width, filling.next * width);
    context.putImageData(data, 0, 0, 0, this.painted, width, filling.next - this.painted);
    this.painted = filling.next;
  }

  /** Draws what is in sight. @param {Panes} panes @param {Axis} axis */
  draw(panes, axis) {
    const { canvas, context, margin } = this;
    const ratio = window.devicePixelRatio || 1;
    const side = Math.max(1, Math.round((margin + panes.size) * ratio));
    if (canvas.width !== side) canvas.width = canvas.height = side;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, side, side);
    for (const down of panes.runs(0)) {
      for (const across of panes.runs(1)) {
        const [wide, tall] = [across.to - across.from, down.to - down.from];
        const [width, height] = [across.end - across.at, down.end - down.at];
        if (wide <= 0 || tall <= 0 || width <= 0 || height <= 0) continue;
        context.imageSmoothingEnabled = Math.min(width / wide, height / tall) * ratio < 1; // smaller than pixels: their means
        context.drawImage(
          this.cells.canvas,
          ...[across.from, down.from, wide, tall],
          ...[margin + across.at, margin + down.at, width, height],
        );
      }
    }
    this.write(panes, axis);
  }

  /** The names beside the rows and above the columns. @param {Panes} panes @param {Axis} axis */
  write(panes, axis) {
    const { context, canvas, margin } = this;
    const style = getComputedStyle(canvas);
    context.fillStyle = style.color;
    context.font = `${style.fontSize} ${style.fontFamily}`;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    for (const { text, at } of labelsOf(panes, axis, 0)) context.fillText(text, margin - 4, margin + at);
    context.textAlign = 'left';
    for (const { text, at } of labelsOf(panes, axis, 1)) {
      context.save();
      context.translate(margin + at, margin - 4);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    }
  }
}
