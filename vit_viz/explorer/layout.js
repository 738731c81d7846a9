// Sizes on the screen: the photo and the mosaic both fit the window, cells are never smaller than a finger can find.

import { patchRect, placeIn } from './geometry.js';

/**
 * @typedef {import('./geometry.js').Trace} Trace
 */

/** Smallest side of a mosaic cell, in CSS pixels, without its gap. */
export const SMALLEST_CELL = 24;

/** Space between two cells. */
export const CELL_GAP = 4;

/** @typedef {{width: number, height: number, gap: number, radius: number}} Cell a cell with the gap behind and below it */

/**
 * Width and height of a mosaic cell: as large as width and height allow, at the shape of the model's input, never below 24.
 * @param {{width: number, height: number, layers: number, columns: number, aspect: number}} room
 * @returns {Cell}
 */
export function cellSize({ width, height, layers, columns, aspect }) {
  let w = Math.floor(width / columns) - CELL_GAP;
  let h = w / aspect;
  if ((h + CELL_GAP) * layers > height) {
    h = height / layers - CELL_GAP;
    w = h * aspect;
  }
  const grow = Math.max(1, SMALLEST_CELL / w, SMALLEST_CELL / h);
  const [wide, tall] = [Math.floor(w * grow + 1e-9), Math.max(SMALLEST_CELL, Math.round(h * grow))];
  const radius = Math.min(6, Math.round(Math.min(wide, tall) / 8));
  return { width: wide + CELL_GAP, height: tall + CELL_GAP, gap: CELL_GAP, radius };
}

/** Puts the model's input where it lies on the photo. */
export function placePhoto(/** @type {Record<string, HTMLElement>} */ parts, /** @type {Trace} */ trace) {
  const [height, width] = trace.crop.original;
  const region = patchRect(trace.crop, 0, 0, [1, 1]);
  parts.root.style.setProperty('--vx-aspect', String(width / height));
  Object.assign(parts.box.style, placeIn(region, [0, 0, height, width]));
  parts.box.style.setProperty('--vx-rows', String(trace.grid[0]));
  parts.box.style.setProperty('--vx-cols', String(trace.grid[1]));
  parts.rings.setAttribute('viewBox', `0 0 ${trace.grid[1]} ${trace.grid[0]}`);
  const [, , tall, wide] = trace.crop.region;
  const covered = tall * wide > 0.995 * height * width;
  parts.root.toggleAttribute('data-cropped', !covered);
}

/**
 * Fits photo and mosaic to the window.
 * @returns {{cell: Cell, box: {width: number, height: number}}} sizes in pixels of CSS
 */
export function fitPanels(/** @type {Record<string, HTMLElement>} */ parts, /** @type {Trace} */ trace) {
  const narrow = parts.root.clientWidth < 820;
  const tall = Math.max(280, window.innerHeight * (narrow ? 0.55 : 0.62));
  parts.root.style.setProperty('--vx-tall', `${Math.round(tall)}px`);
  parts.root.toggleAttribute('data-slim', parts.caption.clientWidth < 480);
  const columns = trace.heads + 3;
  const label = 30;
  const cell = cellSize({
    width: (parts.scroll.parentElement ?? parts.root).clientWidth - label - 8,
    height: Math.max(360, window.innerHeight * 0.64),
    layers: trace.layers,
    columns,
    aspect: trace.crop.region[3] / trace.crop.region[2],
  });
  const sizes = {
    'cell-width': `${cell.width}px`,
    'cell-height': `${cell.height}px`,
    'cell-gap': `${cell.gap}px`,
    'cell-radius': `${cell.radius}px`,
    label: `${label}px`,
    columns: String(columns),
    depth: String(trace.layers),
  };
  for (const [name, size] of Object.entries(sizes)) parts.mosaic.style.setProperty(`--vx-${name}`, size);
  parts.root.toggleAttribute('data-fine', parts.box.clientWidth / trace.grid[1] < 5);
  const { width, height } = parts.box.getBoundingClientRect();
  return { cell, box: { width, height } };
}

/** Moves a frame over a cell of the mosaic. */
export function placeCell(/** @type {HTMLElement} */ frame, layer = 0, column = 0) {
  frame.style.transform = `translate(calc(var(--vx-cell-width) * ${column}), calc(var(--vx-cell-height) * ${layer}))`;
}

/** Scrolls the mosaic in its own box, never the page, until a cell is visible beside the labels. */
export function revealCell(/** @type {HTMLElement} */ scroll, /** @type {HTMLElement} */ cell) {
  const box = scroll.getBoundingClientRect();
  const area = cell.getBoundingClientRect();
  const by = (
    /** @type {number} */ start,
    /** @type {number} */ end,
    /** @type {number} */ from,
    /** @type {number} */ to,
  ) => (start < from ? start - from : end > to ? end - to : 0);
  scroll.scrollLeft += by(area.left, area.right, box.left + 48, box.right);
  scroll.scrollTop += by(area.top, area.bottom, box.top + 24, box.bottom);
}
