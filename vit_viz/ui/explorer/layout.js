// Sizes on the screen: the photo and the mosaic both fit the window, cells are never smaller than a finger can find.

/**
 * @typedef {import('./geometry.js').Trace} Trace
 */

/** Smallest side of a mosaic cell, in CSS pixels, without its gap. */
export const SMALLEST_CELL = 24;

/**
 * Width and height of a mosaic cell: as large as width and height allow, at the shape of the model's input, never below 24.
 * @param {{width: number, height: number, layers: number, columns: number, aspect: number}} room
 */
export function cellSize({ width, height, layers, columns, aspect }) {
  let w = Math.floor(width / columns);
  let h = w / aspect;
  if (h * layers > height) {
    h = height / layers;
    w = h * aspect;
  }
  const grow = Math.max(1, (SMALLEST_CELL + 1) / Math.min(w, h));
  return { width: Math.floor(w * grow), height: Math.max(SMALLEST_CELL + 1, Math.round(h * grow)) };
}

/** Puts the model's input where it lies on the photo. */
export function placePhoto(/** @type {Record<string, HTMLElement>} */ parts, /** @type {Trace} */ trace) {
  const [height, width] = trace.crop.original;
  const [top, left, tall, wide] = trace.crop.region;
  const share = (/** @type {number} */ part, /** @type {number} */ whole) => `${(100 * part) / whole}%`;
  parts.root.style.setProperty('--vx-aspect', String(width / height));
  Object.assign(parts.box.style, {
    top: share(top, height),
    left: share(left, width),
    width: share(wide, width),
    height: share(tall, height),
  });
  parts.box.style.setProperty('--vx-rows', String(trace.grid[0]));
  parts.box.style.setProperty('--vx-cols', String(trace.grid[1]));
  parts.rings.setAttribute('viewBox', `0 0 ${trace.grid[1]} ${trace.grid[0]}`);
  const covered = tall * wide > 0.995 * height * width;
  parts.root.toggleAttribute('data-cropped', !covered);
}

/** Fits photo and mosaic to the window. */
export function fitPanels(/** @type {Record<string, HTMLElement>} */ parts, /** @type {Trace} */ trace) {
  const narrow = parts.root.clientWidth < 820;
  const tall = Math.max(280, window.innerHeight * (narrow ? 0.55 : 0.66));
  parts.root.style.setProperty('--vx-tall', `${Math.round(tall)}px`);
  parts.root.toggleAttribute('data-slim', parts.caption.clientWidth < 640);
  const columns = trace.heads + 3;
  const label = narrow ? 34 : 44;
  const cell = cellSize({
    width: (parts.scroll.parentElement ?? parts.root).clientWidth - label - 8,
    height: Math.max(360, window.innerHeight * 0.64),
    layers: trace.layers,
    columns,
    aspect: trace.crop.region[3] / trace.crop.region[2],
  });
  const sizes = { 'cell-width': `${cell.width}px`, 'cell-height': `${cell.height}px`, label: `${label}px` };
  for (const [name, size] of Object.entries({
    ...sizes,
    columns: String(columns),
    depth: String(trace.layers),
  })) {
    parts.mosaic.style.setProperty(`--vx-${name}`, size);
  }
  const shrunk = cell.width < trace.grid[1] || cell.height < trace.grid[0];
  parts.root.toggleAttribute('data-shrunk', shrunk);
  parts.root.toggleAttribute('data-fine', parts.box.clientWidth / trace.grid[1] < 5);
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
