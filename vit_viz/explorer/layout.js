// Sizes on the screen: the photo and the mosaic both fit the window, cells are never smaller than a finger can find.

import { patchRect, placeIn } from './geometry.js';
/** @import { Trace } from './geometry.js' */

/** Smallest side of a mosaic cell, in CSS pixels, without its gap. */
export const SMALLEST_CELL = 24;

/** Longest side of a cell. */
const LARGEST_CELL = 240;

/** Longest side that the photo in a cell gets for the sake of its short side: a panorama stays flat. */
const STRETCHED = 3 * SMALLEST_CELL;

/** Side of cells that do not all fit into the window, as far as there is width: the mosaic then scrolls in its own box. */
const SCROLLED_CELL = 40;

/** Space between two cells. */
export const CELL_GAP = 4;

/** Width of the numbers of the layers. */
const LABEL = 30;

/** From the last cell of a band to the first of the next, with the numbers of its layers. */
const BETWEEN_BANDS = LABEL + 12;

/** Most bands of layers beside each other, and by how much cells must grow for one more. */
const MOST_BANDS = 4;
const WORTH_A_BAND = 1.15;

const PANORAMA = 6;

/** How a photo lies: a flat one has the whole width for itself, a narrow one no place for words. @param {number} aspect width over height */
export function shapeOf(aspect) {
  return aspect >= PANORAMA ? 'flat' : aspect * PANORAMA <= 1 ? 'narrow' : 'usual';
}

/**
 * @typedef {object} Cell a cell with the gap behind and below it
 * @property {number} width @property {number} height @property {number} gap @property {number} radius
 * @property {[number, number]} inset between the cell's left and top side and the photo in it
 * @property {number} [foot] of its height, what is left free for a line below the photo
 */

/**
 * Width and height of a mosaic cell: as large as width and height allow, at the shape of the model's input, never below 24. A photo
 * that is far from square stands in the middle of its cell.
 * @param {{width: number, height: number, layers: number, columns: number, aspect: number}} room
 * @returns {Cell}
 */
export function cellSize({ width, height, layers, columns, aspect }) {
  const room = (/** @type {number} */ length) => Math.min(LARGEST_CELL, Math.max(1, length - CELL_GAP));
  let w = room(Math.floor(width / columns));
  let h = w / aspect;
  if (h > room(height / layers)) {
    h = room(height / layers);
    w = h * aspect;
  }
  const grow = Math.max(1, Math.min(SMALLEST_CELL / Math.min(w, h), STRETCHED / Math.max(w, h)));
  const photo = [Math.floor(w * grow + 1e-9), Math.round(h * grow)];
  const [wide, tall] = photo.map((side) => Math.max(SMALLEST_CELL, side));
  const radius = Math.min(6, Math.round(Math.min(...photo) / 8));
  const inset = /** @type {[number, number]} */ ([(wide - photo[0]) / 2, (tall - photo[1]) / 2]);
  return { width: wide + CELL_GAP, height: tall + CELL_GAP, gap: CELL_GAP, radius, inset };
}

/** Where the cells of a mosaic stand: layers below each other, and those that follow in further bands beside them. */
export class Arrangement {
  /** @param {Cell} cell @param {number} layers @param {number} columns @param {number} rows layers of a band */
  constructor(cell, layers, columns, rows = layers) {
    this.cell = cell;
    this.layers = layers;
    this.columns = columns;
    this.rows = rows;
    this.bands = Math.ceil(layers / rows);
    this.shift = columns * cell.width + BETWEEN_BANDS; // from one band to the next
    this.width = this.bands * this.shift - BETWEEN_BANDS;
    this.height = rows * cell.height;
  }

  /** Left and top of a cell. */
  at(layer = 0, column = 0) {
    const { cell, rows, shift } = this;
    return [Math.floor(layer / rows) * shift + column * cell.width, (layer % rows) * cell.height];
  }

  /** Layer and column at a place, in shares of height and width; null where none is. @param {[number, number]} place */
  find([down, across]) {
    const x = across * this.width;
    const band = Math.floor(x / this.shift);
    const layer = band * this.rows + Math.floor((down * this.height) / this.cell.height);
    const column = Math.floor((x - band * this.shift) / this.cell.width);
    const isCell = across >= 0 && down >= 0 && down < 1 && column < this.columns && layer < this.layers;
    return isCell ? { layer, column } : null;
  }
}

/**
 * The arrangement with the largest cells: of few heads and many layers, in bands that fill the width beside each other; of so many
 * that they cannot all be seen, in one that scrolls.
 * @param {{width: number, height: number, layers: number, columns: number, aspect: number}} room
 */
export function arrange({ width, height, layers, columns, aspect }) {
  const photoOf = (/** @type {Cell} */ cell) =>
    Math.max(cell.width - 2 * cell.inset[0], cell.height - 2 * cell.inset[1]);
  const inBands = (/** @type {number} */ rows, most = height) => {
    const bands = Math.ceil(layers / rows);
    const room = { width: width - (bands - 1) * BETWEEN_BANDS, height: most, aspect };
    return new Arrangement(
      cellSize({ ...room, layers: rows, columns: columns * bands }),
      layers,
      columns,
      rows,
    );
  };
  const isInside = (/** @type {Arrangement} */ one) =>
    one.width <= width && one.height <= height + one.rows / 2; // sides of cells are rounded
  let best = inBands(layers);
  for (let bands = 2; bands <= MOST_BANDS; bands++) {
    const next = inBands(Math.ceil(layers / bands));
    if (isInside(next) && photoOf(next.cell) >= WORTH_A_BAND * photoOf(best.cell)) best = next;
  }
  if (isInside(best)) return best;
  return inBands(layers, layers * (SCROLLED_CELL / Math.max(1, aspect) + CELL_GAP));
}

/** Puts the model's input where it lies on the photo. */
export function placePhoto(/** @type {Record<string, HTMLElement>} */ parts, /** @type {Trace} */ trace) {
  const [height, width] = trace.crop.original;
  const region = patchRect(trace.crop, 0, 0, [1, 1]);
  parts.root.style.setProperty('--vv-aspect', String(width / height));
  parts.root.dataset.shape = shapeOf(width / height);
  Object.assign(parts.box.style, placeIn(region, [0, 0, height, width]));
  parts.box.style.setProperty('--vx-rows', String(trace.grid[0]));
  parts.box.style.setProperty('--vx-cols', String(trace.grid[1]));
  parts.rings.setAttribute('viewBox', `0 0 ${trace.grid[1]} ${trace.grid[0]}`);
  const [, , tall, wide] = trace.crop.region;
  const covered = tall * wide > 0.995 * height * width;
  parts.root.toggleAttribute('data-cropped', !covered);
}

/**
 * Fits photo and mosaic to the window, in pixels of CSS.
 * @param {Record<string, HTMLElement>} parts @param {Trace} trace @param {number} columns of the mosaic
 */
export function fitPanels(parts, trace, columns) {
  parts.root.toggleAttribute('data-slim', parts.caption.clientWidth < 480);
  const mosaic = arrange({
    width: (parts.scroll.parentElement ?? parts.root).clientWidth - LABEL - 8,
    height: Math.max(240, window.innerHeight * 0.64),
    layers: trace.layers,
    columns,
    aspect: trace.crop.region[3] / trace.crop.region[2],
  });
  const { cell, shift, width: wide, height: high } = mosaic;
  const sizes = {
    'cell-width': cell.width,
    'cell-height': cell.height,
    'cell-gap': cell.gap,
    'cell-radius': cell.radius,
    label: LABEL,
    between: BETWEEN_BANDS,
    shift,
    width: wide,
    height: high,
  };
  for (const [name, size] of Object.entries(sizes))
    parts.mosaic.style.setProperty(`--vx-${name}`, `${size}px`);
  parts.root.toggleAttribute('data-fine', parts.box.clientWidth / trace.grid[1] < 5);
  const { offsetWidth: width, offsetHeight: height } = parts.box; // also while it is shown smaller
  return { mosaic, box: { width, height } };
}

/** Moves a frame over a cell of the mosaic. @param {HTMLElement} frame @param {Arrangement} mosaic */
export function placeCell(frame, mosaic, layer = 0, column = 0) {
  const [x, y] = mosaic.at(layer, column);
  frame.style.transform = `translate(${x}px, ${y}px)`;
}

/**
 * Scrolls a box, never the page, until a part of it is visible beside its labels.
 * @param {HTMLElement} scroll @param {HTMLElement} cell @param {[number, number]} [labels] width and height: those of the mosaic
 */
export function revealCell(scroll, cell, labels = [48, 24]) {
  const box = scroll.getBoundingClientRect();
  const area = cell.getBoundingClientRect();
  const by = (
    /** @type {number} */ start,
    /** @type {number} */ end,
    /** @type {number} */ from,
    /** @type {number} */ to,
  ) => (start < from ? start - from : end > to ? end - to : 0);
  scroll.scrollLeft += by(area.left, area.right, box.left + labels[0], box.right);
  scroll.scrollTop += by(area.top, area.bottom, box.top + labels[1], box.bottom);
}
