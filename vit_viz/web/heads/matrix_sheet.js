// The matrix on its canvas: which part of it is in sight (Panes), and cells as pixels with the names beside them (Sheet).

import { clamp } from '../../explorer/geometry.js';
import { endsOf, paintWeights, pixelTable } from '../../explorer/matrix.js';
import { Picture } from '../../explorer/paint.js';
/** @import { Axis, Filling } from '../../explorer/matrix.js' */

/**
 * A run of cells on the screen: cells `from` to `to`, parts of cells included, from pixel `at` to pixel `end`.
 * @typedef {{from: number, to: number, at: number, end: number}} Run
 */

const NAMED = 14; // pixels of a named token, so that its name fits beside it
const NAMED_SHARE = 0.3; // of the length, which all named tokens take together at most
const GAP = 6;
const LARGEST = 48; // pixels of a patch's cell
const TIGHTEST = 12; // pixels from one label to the next

/** Both directions of a square matrix: 0 is down, 1 is across. */
export class Panes {
  /** @param {{prefix: string[], suffix: string[], patchCells: number}} axis */
  constructor({ prefix, suffix, patchCells }) {
    this.before = prefix.length;
    this.after = suffix.length;
    this.cells = patchCells;
    this.size = 0;
    this.unit = 1; // how large text is against 12 pixels
    this.zoom = 1;
    /** Cells of patches that are moved out at the top and at the left. @type {[number, number]} */
    this.offset = [0, 0];
  }

  resize(/** @type {number} */ size, unit = 1) {
    this.size = size;
    this.unit = unit;
    this.clamp();
  }

  /** Pixels of a named token. */
  get named() {
    const count = this.before + this.after;
    return count ? Math.min(NAMED * this.unit, (NAMED_SHARE * this.size) / count) : 0;
  }

  /** First and last pixel of the patches. @returns {[number, number]} */
  get inner() {
    const start = this.before ? this.before * this.named + GAP : 0;
    return [start, this.size - (this.after ? this.after * this.named + GAP : 0)];
  }

  /** Pixels of the patches. */
  get room() {
    return Math.max(1, this.inner[1] - this.inner[0]);
  }

  /** Pixels of a patch's cell. */
  get cell() {
    return (this.zoom * this.room) / this.cells;
  }

  get largestZoom() {
    return Math.max(1, (LARGEST * this.cells) / this.room);
  }

  clamp() {
    this.zoom = clamp(this.zoom, this.largestZoom, 1);
    const most = this.cells - this.room / this.cell;
    this.offset = [clamp(this.offset[0], Math.max(0, most)), clamp(this.offset[1], Math.max(0, most))];
  }

  /** Zooms about a point, which stays where it is. @param {number} factor @param {[number, number]} [point] down, across */
  zoomBy(factor, point = [this.size / 2, this.size / 2]) {
    const start = this.inner[0];
    const under = point.map((pixel, i) => this.offset[i] + (pixel - start) / this.cell);
    this.zoom = clamp(this.zoom * factor, this.largestZoom, 1);
    this.offset = [under[0] - (point[0] - start) / this.cell, under[1] - (point[1] - start) / this.cell];
    this.clamp();
  }

  /** Moves the patches by pixels. @param {[number, number]} by down, across */
  move([down, across]) {
    this.offset = [this.offset[0] - down / this.cell, this.offset[1] - across / this.cell];
    this.clamp();
  }

  whole() {
    this.zoom = 1;
    this.offset = [0, 0];
  }

  /** What is in sight, for the address: "4.5,0.25,0.5" is 4.5 times as large, a quarter above it and half left of it; '' is all. */
  get seen() {
    if (this.zoom === 1) return '';
    const shares = this.offset.map((cells) => Number((cells / this.cells).toFixed(4)));
    return [Number(this.zoom.toFixed(2)), ...shares].join(',');
  }

  /** Shows what an address says is in sight. */
  see(/** @type {string} */ seen) {
    const [zoom, down, across] = seen ? seen.split(',').map(Number) : [1, 0, 0];
    this.zoom = zoom;
    this.offset = [down * this.cells, across * this.cells];
    this.clamp();
  }

  /** Moves just so far that a cell is in sight. @param {number} cell @param {0 | 1} direction */
  reveal(cell, direction) {
    const patch = cell - this.before;
    if (patch < 0 || patch >= this.cells) return;
    const seen = this.room / this.cell;
    const at = this.offset[direction];
    if (patch < at) this.offset[direction] = patch;
    else if (patch + 1 > at + seen) this.offset[direction] = patch + 1 - seen;
    this.clamp();
  }

  /** The runs of cells that are in sight. @param {0 | 1} direction @returns {Run[]} */
  runs(direction) {
    const { before, after, cells, named, offset, room } = this;
    const [start, end] = this.inner;
    const at = offset[direction];
    const seen = Math.min(cells, at + room / this.cell);
    const last = before + cells;
    return [
      ...(before ? [{ from: 0, to: before, at: 0, end: before * named }] : []),
      { from: before + at, to: before + seen, at: start, end },
      ...(after ? [{ from: last, to: last + after, at: this.size - after * named, end: this.size }] : []),
    ];
  }

  /** The cell at a pixel; null in a gap and outside. @param {number} pixel @param {0 | 1} direction */
  cellAt(pixel, direction) {
    for (const { from, to, at, end } of this.runs(direction)) {
      if (pixel < at || pixel >= end) continue;
      const cell = Math.floor(from + ((pixel - at) / (end - at)) * (to - from));
      return Math.min(cell, Math.ceil(to) - 1);
    }
    return null;
  }

  /** First and last pixel of a cell, cut off at the edge of its run; null where it is out of sight. */
  placeOf(/** @type {number} */ cell, /** @type {0 | 1} */ direction) {
    for (const { from, to, at, end } of this.runs(direction)) {
      if (cell + 1 <= from || cell >= to) continue;
      const pixel = (end - at) / (to - from);
      const first = at + (cell - from) * pixel;
      return /** @type {[number, number]} */ ([Math.max(at, first), Math.min(end, first + pixel)]);
    }
    return null;
  }
}

/**
 * What stands beside a direction: the names of named tokens, rows of patches, and each patch where there is room.
 * @param {Panes} panes @param {Axis} axis @param {0 | 1} direction
 * @returns {{text: string, at: number}[]} with the pixel of the middle
 */
export function labelsOf(panes, axis, direction) {
  const placed = (/** @type {{text: string, cell: number}[]} */ labels) =>
    labels.flatMap(({ text, cell }) => {
      const place = panes.placeOf(cell, direction);
      return place ? [{ text, at: (place[0] + place[1]) / 2 }] : [];
    });
  const patches = placed(patchLabels(panes, axis, direction));
  const tightest = TIGHTEST * panes.unit;
  /** @type {{text: string, at: number}[]} */
  const apart = []; // without a cell that is cut off at an edge and too near its neighbour
  patches.forEach((label, i) => {
    const neighbour = i === 0 ? patches[1] : apart[apart.length - 1];
    if (!neighbour || Math.abs(neighbour.at - label.at) >= tightest - 1e-6) apart.push(label);
  });
  return [...placed(namedLabels(panes, axis)), ...apart];
}

/** @param {Panes} panes @param {Axis} axis */
function namedLabels({ named, before, cells, unit }, { prefix, suffix }) {
  const step = Math.max(1, Math.ceil((TIGHTEST * unit) / Math.max(named, 1e-9)));
  const some = (/** @type {string[]} */ names, /** @type {number} */ first) =>
    names.map((text, i) => ({ text, cell: first + i })).filter((_, i) => i % step === 0);
  return [...some(prefix, 0), ...some(suffix, before + cells)];
}

/** @param {Panes} panes @param {Axis} axis @param {0 | 1} direction */
function patchLabels(panes, axis, direction) {
  const { before, cell, offset, room } = panes;
  const tightest = TIGHTEST * panes.unit;
  const [first, last] = [Math.floor(offset[direction]), Math.ceil(offset[direction] + room / cell)];
  const each = cell >= tightest ? 1 : axis.perRow * Math.max(1, Math.ceil(tightest / (axis.perRow * cell)));
  const labels = [];
  for (let c = Math.ceil(first / each) * each; c < Math.min(last, axis.patchCells); c += each) {
    const row = Math.floor(c / axis.perRow);
    const text = each === 1 ? `(${row}, ${(c % axis.perRow) * axis.block})` : `row ${row}`;
    labels.push({ text, cell: before + c });
  }
  return labels;
}

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
    this.cells = new Picture();
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
    this.cells.clear();
    this.painted = 0;
  }

  /** Paints what has been computed since, or everything where the scale has changed. @param {Filling} filling @param {boolean} log */
  paint(filling, log) {
    const { data, pixels, context } = this.cells;
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
