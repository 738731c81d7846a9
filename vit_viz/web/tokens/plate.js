// A map on the photo, in a canvas of any size: lit, tinted or covered as everywhere on the page, or multiplied by the photo's own
// lightness, so that colours leave the photo readable.

import { LUMA } from '../../explorer/styles.js';
import { Tile } from '../../explorer/screen.js';
/** @import { Trace } from '../../explorer/geometry.js' */
/** @import { Style } from '../../explorer/styles.js' */

/** How bright a colour stays where the photo is black. */
export const LIFT = 0.35;

/** Gray pixels that colours are multiplied by: from LIFT where the photo is black to 1 where it is white. */
export function lightness(/** @type {Uint8ClampedArray} */ pixels) {
  const out = new Uint8ClampedArray(pixels.length);
  for (let i = 0; i < pixels.length; i += 4) {
    const luma = LUMA[0] * pixels[i] + LUMA[1] * pixels[i + 1] + LUMA[2] * pixels[i + 2];
    out[i] = out[i + 1] = out[i + 2] = 255 * LIFT + (1 - LIFT) * luma;
    out[i + 3] = pixels[i + 3];
  }
  return out;
}

/** The photo at one size, for all maps of that size. */
export class Plate {
  tile = new Tile();
  gray = document.createElement('canvas');
  key = '';

  /** @param {HTMLImageElement} photo @param {Trace['crop']} crop @param {{width: number, height: number}} size */
  prepare(photo, crop, size) {
    if (!this.tile.prepare(photo, crop, size)) return false;
    if (this.key === this.tile.key) return true;
    this.key = this.tile.key;
    const { width, height } = size;
    Object.assign(this.gray, { width, height });
    const context = /** @type {CanvasRenderingContext2D} */ (this.gray.getContext('2d'));
    context.drawImage(this.tile.plain.canvas, 0, 0);
    const pixels = context.getImageData(0, 0, width, height);
    pixels.data.set(lightness(pixels.data));
    context.putImageData(pixels, 0, 0);
    return true;
  }

  /**
   * @param {HTMLCanvasElement} canvas of the size of the plate
   * @param {HTMLCanvasElement} map one pixel per patch: the layer of a style, or colours
   * @param {Style | 'colours'} how @param {boolean} smooth
   */
  draw(canvas, map, how, smooth) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    const { width, height } = canvas;
    const over = (/** @type {GlobalCompositeOperation} */ mode, /** @type {HTMLCanvasElement} */ what) => {
      context.globalCompositeOperation = mode;
      context.drawImage(what, 0, 0, width, height);
    };
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = smooth || width < map.width;
    over('source-over', map);
    if (how === 'light') over('source-in', this.tile.dark.canvas);
    if (how === 'colours') over('multiply', this.gray);
    else over('destination-over', this.tile.plain.canvas);
    context.globalCompositeOperation = 'source-over';
  }
}

// --- segments

const TURN = 137.508; // degrees: the golden angle, so that neighbours in number are far apart in hue

/** The colour of a segment as red, green and blue. @returns {[number, number, number]} */
export function segmentColour(/** @type {number} */ segment) {
  const hue = (35 + TURN * segment) % 360;
  const light = [0.6, 0.42, 0.75][segment % 3];
  const spread = 0.72 * Math.min(light, 1 - light);
  const channel = (/** @type {number} */ shift) => {
    const k = (shift + hue / 30) % 12;
    return Math.round(255 * (light - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

/** Regions as pixels. @param {number[]} labels @param {(segment: number) => number} [opacity] */
export function segmentPixels(labels, opacity = () => 255) {
  const pixels = new Uint8ClampedArray(4 * labels.length);
  labels.forEach((segment, i) => pixels.set([...segmentColour(segment), opacity(segment)], 4 * i));
  return new Uint32Array(pixels.buffer);
}
