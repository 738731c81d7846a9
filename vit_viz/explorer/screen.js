// What is seen: maps of one pixel per patch, put on the photo at the size of the screen.
//
// `paint.js` writes for each patch the colour and the opacity of the layer that a style lays over the photo (styles.js). Here that
// layer is enlarged, gets the dimmed photo for its colour where the style is light, and lies over the photo. The photo's part is
// drawn once per size; a repaint is a handful of copies, which the browser makes without the script.

import { dimmed } from './styles.js';
/** @import { Trace } from './geometry.js' */
/** @import { Style } from './styles.js' */
/** @import { Frame } from './frame.js' */

/** @typedef {{width: number, height: number}} Size */

/** Most pixels of one canvas: what a repaint copies in a few milliseconds also without a graphics processor. */
const MOST = 2.4e6;

/** Pixels of a canvas for one pixel of CSS: those of the device, fewer where the canvas would have too many. */
export function sharpness(/** @type {Size} */ { width, height }, ratio = 1) {
  return Math.min(ratio, Math.sqrt(MOST / Math.max(1, width * height)));
}

/** @returns {CanvasRenderingContext2D} of a canvas that is not on the page */
function sheet() {
  return contextOf(document.createElement('canvas'));
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
}

/** Sets the size of a canvas, which empties it. */
function resize(/** @type {HTMLCanvasElement} */ canvas, /** @type {Size} */ { width, height }) {
  canvas.width = width;
  canvas.height = height;
}

/** @typedef {{key: string, plain: CanvasRenderingContext2D, dark: CanvasRenderingContext2D}} Drawn key: of what, and how large */

/** What was drawn of a photo, the last first: canvases of one size share it. @type {WeakMap<HTMLImageElement, Drawn[]>} */
const drawn = new WeakMap();
const MOST_DRAWN = 4; // of a photo

/** The part of a photo that the model received, at one size: as it is, and dimmed. */
export class Tile {
  constructor() {
    this.plain = sheet();
    this.dark = sheet();
    this.key = '';
  }

  /**
   * Draws the photo, once per photo and size, whatever it is for.
   * @param {HTMLImageElement | null} photo @param {Trace['crop']} crop @param {Size} size
   * @param {number} [radius] of its corners
   * @returns {boolean} whether there is a photo
   */
  prepare(photo, crop, size, radius = 0) {
    if (!photo?.complete || !photo.naturalWidth || size.width < 1 || size.height < 1) return false;
    const key = [photo.src, size.width, size.height, radius, ...crop.region].join('|');
    if (key === this.key) return true;
    const all = drawn.get(photo) ?? [];
    const one = all.find((other) => other.key === key) ?? { key, ...drawnOf(photo, crop, size, radius) };
    drawn.set(photo, [one, ...all.filter((other) => other !== one)].slice(0, MOST_DRAWN));
    Object.assign(this, one);
    return true;
  }
}

/** @param {HTMLImageElement} photo @param {Trace['crop']} crop @param {Size} size @param {number} radius */
function drawnOf(photo, crop, size, radius) {
  const [plain, dark] = [sheet(), sheet()];
  for (const { canvas } of [plain, dark]) resize(canvas, size);
  drawRegion(plain, photo, crop, size);
  if (radius) round(plain, size, radius);
  const pixels = plain.getImageData(0, 0, size.width, size.height);
  pixels.data.set(dimmed(pixels.data));
  dark.putImageData(pixels, 0, 0);
  return { plain, dark };
}

/**
 * The part of the photo that the model received; nothing where it reaches beyond the photo.
 * @param {CanvasRenderingContext2D} context @param {HTMLImageElement} photo @param {Trace['crop']} crop
 * @param {Size} size
 */
function drawRegion(context, photo, { original, region }, { width, height }) {
  const [top, left, tall, wide] = region;
  const down = height / tall;
  const across = width / wide;
  context.imageSmoothingQuality = 'high';
  context.drawImage(photo, -left * across, -top * down, original[1] * across, original[0] * down);
}

/** @param {CanvasRenderingContext2D} context @param {Size} size @param {number} radius */
function round(context, { width, height }, radius) {
  context.globalCompositeOperation = 'destination-in';
  context.beginPath();
  if (context.roundRect) context.roundRect(0, 0, width, height, radius);
  else context.rect(0, 0, width, height);
  context.fill();
  context.globalCompositeOperation = 'source-over';
}

/** The layer over the big photo. */
export class PhotoScreen {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = contextOf(canvas);
    this.tile = new Tile();
    /** @type {Size} */
    this.size = { width: 0, height: 0 };
  }

  /** @param {Size} size in pixels of CSS @param {number} [ratio] pixels of the device for one of them */
  fit(size, ratio = 1) {
    const scale = sharpness(size, ratio);
    const fitted = { width: Math.round(size.width * scale), height: Math.round(size.height * scale) };
    if (fitted.width === this.size.width && fitted.height === this.size.height) return;
    this.size = fitted;
    resize(this.canvas, fitted);
  }

  /**
   * @param {HTMLCanvasElement} map one pixel per patch: the layer of the style
   * @param {HTMLImageElement | null} photo @param {Trace} trace @param {{style: Style, smooth: boolean}} how
   */
  show(map, photo, { crop }, { style, smooth }) {
    const { context, size, tile } = this;
    const { width, height } = size;
    context.clearRect(0, 0, width, height);
    if (style === 'light' && !tile.prepare(photo, crop, size)) return;
    context.imageSmoothingEnabled = smooth || width < map.width;
    context.drawImage(map, 0, 0, width, height);
    if (style !== 'light') return;
    context.globalCompositeOperation = 'source-in';
    context.drawImage(tile.dark.canvas, 0, 0);
    context.globalCompositeOperation = 'source-over';
  }
}

/** How much of a row stays that answers an earlier query, or none yet. */
const BEHIND = 0.25;

/** The mosaic: one photo per cell. */
export class MosaicScreen {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = contextOf(canvas);
    this.tile = new Tile();
    this.plain = sheet();
    this.dark = sheet();
    /** @type {number[]} */ this.across = [];
    /** @type {number[]} */ this.down = [];
    /** @type {number[]} */ this.aside = [];
    this.key = '';
    this.cell = { width: 0, height: 0 };
    this.radius = 0;
    this.smooth = false; // between the centres of patches, where these are larger than a pixel; patches as they are otherwise
  }

  /**
   * @param {import('./layout.js').Cell} cell in pixels of CSS
   * @param {{layers: number, columns: number, rows?: number, shift?: number}} grid rows: layers of a band; shift: from one band to the
   *     next, in pixels of CSS
   * @param {number} [ratio] pixels of the device for one of them
   */
  fit(cell, { layers, columns, rows = layers, shift = 0 }, ratio = 1) {
    const { width, height, gap, radius, inset: [left, top] = [0, 0], foot = 0 } = cell;
    const all = { width: width * columns + shift * (Math.ceil(layers / rows) - 1), height: height * rows };
    const scale = sharpness(all, ratio);
    const key = [width, height, left, top, foot, layers, columns, rows, scale].join('|');
    if (key === this.key) return;
    this.key = key;
    this.tile.key = '';
    const px = (/** @type {number} */ length) => Math.round(length * scale);
    this.cell = { width: px(width - gap - 2 * left), height: px(height - gap - foot - 2 * top) };
    this.radius = radius * scale;
    this.across = Array.from({ length: columns }, (_, c) => px(c * width + left));
    this.down = Array.from({ length: layers }, (_, l) => px((l % rows) * height + top));
    this.aside = Array.from({ length: layers }, (_, l) => px(Math.floor(l / rows) * shift));
    const size = { width: px(all.width), height: px(all.height) };
    for (const { canvas } of [this, this.plain, this.dark]) resize(canvas, size);
  }

  /** Draws the photo, and the dimmed photo, into every cell; once per photo and size. */
  prepare(/** @type {HTMLImageElement | null} */ photo, /** @type {Trace} */ { crop }) {
    const before = this.tile.key;
    if (!this.tile.prepare(photo, crop, this.cell, this.radius)) return false;
    if (before === this.tile.key) return true;
    for (const name of /** @type {const} */ (['plain', 'dark'])) {
      this[name].clearRect(0, 0, this.canvas.width, this.canvas.height);
      this.down.forEach((y, l) => {
        for (const x of this.across) this[name].drawImage(this.tile[name].canvas, x + this.aside[l], y);
      });
    }
    return true;
  }

  /**
   * @param {HTMLCanvasElement} atlas one pixel per patch, cells side by side: the layer of the style
   * @param {HTMLImageElement | null} photo @param {Frame} frame @param {Style} style
   */
  show(atlas, photo, frame, style) {
    const { context, canvas } = this;
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!this.prepare(photo, frame.trace)) return;
    this.enlarge(atlas, frame.trace);
    const [over, shape] = style === 'light' ? ['source-in', this.dark] : ['destination-in', this.plain];
    context.globalCompositeOperation = /** @type {GlobalCompositeOperation} */ (over);
    context.drawImage(/** @type {CanvasRenderingContext2D} */ (shape).canvas, 0, 0);
    context.globalCompositeOperation = 'destination-over';
    context.drawImage(this.plain.canvas, 0, 0);
    this.fade(frame);
    context.globalCompositeOperation = 'source-over';
  }

  /** @param {HTMLCanvasElement} atlas @param {Trace} trace */
  enlarge(atlas, { grid: [rows, cols] }) {
    const { context, across, down, aside } = this;
    const { width, height } = this.cell;
    context.imageSmoothingEnabled = this.smooth || width < cols || height < rows;
    for (let l = 0; l < down.length; l++) {
      for (let c = 0; c < across.length; c++)
        context.drawImage(
          atlas,
          c * cols,
          l * rows,
          cols,
          rows,
          aside[l] + across[c],
          down[l],
          width,
          height,
        );
    }
  }

  /** Lets the layers fade that do not answer the present query (yet). */
  fade(/** @type {Frame} */ frame) {
    const { context, across, down, aside, cell } = this;
    context.globalCompositeOperation = 'destination-out';
    context.fillStyle = `rgb(0 0 0 / ${1 - BEHIND})`;
    for (let l = 0; l < down.length; l++)
      if (!frame.fresh[l])
        context.fillRect(aside[l], down[l], (across.at(-1) ?? 0) + cell.width, cell.height);
  }
}
