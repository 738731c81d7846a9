// Where the cells of the matrix are on the screen. As in a table with fixed headings, the tokens that are no patches keep their place
// and size at the edges, behind a gap; the patches between them zoom and move. Lengths are pixels of the page, the first being 0.

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
    this.zoom = Math.min(this.largestZoom, Math.max(1, this.zoom));
    const most = this.cells - this.room / this.cell;
    this.offset = [this.inside(this.offset[0], most), this.inside(this.offset[1], most)];
  }

  inside(/** @type {number} */ value, /** @type {number} */ most) {
    return Math.min(Math.max(0, most), Math.max(0, value));
  }

  /** Zooms about a point, which stays where it is. @param {number} factor @param {[number, number]} [point] down, across */
  zoomBy(factor, point = [this.size / 2, this.size / 2]) {
    const start = this.inner[0];
    const under = point.map((pixel, i) => this.offset[i] + (pixel - start) / this.cell);
    this.zoom = Math.min(this.largestZoom, Math.max(1, this.zoom * factor));
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
 * @param {Panes} panes
 * @param {import('../../explorer/matrix.js').Axis} axis
 * @param {0 | 1} direction
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

/** @param {Panes} panes @param {import('../../explorer/matrix.js').Axis} axis */
function namedLabels({ named, before, cells, unit }, { prefix, suffix }) {
  const step = Math.max(1, Math.ceil((TIGHTEST * unit) / Math.max(named, 1e-9)));
  const some = (/** @type {string[]} */ names, /** @type {number} */ first) =>
    names.map((text, i) => ({ text, cell: first + i })).filter((_, i) => i % step === 0);
  return [...some(prefix, 0), ...some(suffix, before + cells)];
}

/** @param {Panes} panes @param {import('../../explorer/matrix.js').Axis} axis @param {0 | 1} direction */
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
