// A picture of the visitor as the model takes it: decoded by the browser, upright, in sRGB, on white. Nothing of it leaves the page.

/** @import { Picture } from '../browser/resize.js' */

/**
 * @typedef {object} Limits
 * @property {number} most_pixels larger photos are reduced by the browser first
 * @property {number} min_side shortest side, in pixels
 * @property {number} max_aspect of the sides
 *
 * @typedef {object} Lighting as `lighting` of vit_viz/figures/styles.py
 * @property {number[]} luma @property {number} bright @property {number} bright_share @property {number} coloured @property {number} side
 *
 * @typedef {{picture: Picture, unlit: string, whole?: {part: number[], size: [number, number]}}} Photo whole: where
 *     it is a part, in pixels of its photo, and the size of that: top, left, height, width
 */

const THUMBNAIL = 96; // pixels, as those of the samples
const MIN_PART_SIDE = 32; // pixels, as vit_viz/images/part.py has it

/** A photo that cannot be looked at; the message is for the reader. */
export class BadPhoto extends Error {}

/** @param {Blob} file @param {string} name @param {Limits} limits @param {Lighting} lighting @returns {Promise<Photo>} */
export async function readPhoto(file, name, limits, lighting) {
  const bitmap = await bitmapOf(file, name, limits);
  try {
    const { width, height } = bitmap;
    const { data } = drawn(bitmap, width, height).getImageData(0, 0, width, height);
    const picture = { height, width, channels: 4, levels: data };
    return { picture, unlit: unsuitable(picture, lighting) };
  } finally {
    bitmap.close();
  }
}

/** @param {Blob} file @param {string} name @param {Limits} limits */
async function bitmapOf(file, name, { most_pixels: most, min_side: least, max_aspect: flattest }) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: 'from-image' });
  } catch {
    throw new BadPhoto(
      `${name} is no picture that this browser can read; please save it as JPEG or PNG, also a HEIC or TIFF file.`,
    );
  }
  const { width, height } = bitmap;
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  if (short < least || long > flattest * short) {
    bitmap.close();
    throw new BadPhoto(
      short < least
        ? `${name} is too small: a side has ${short} pixels, and ${least} are needed.`
        : `${name} is too narrow: its sides are ${width} x ${height} pixels, and one may be ${flattest} times the other at most.`,
    );
  }
  if (width * height <= most) return bitmap;
  const scale = Math.sqrt(most / (width * height));
  const [resizeWidth, resizeHeight] = [Math.floor(width * scale), Math.floor(height * scale)];
  bitmap.close();
  return createImageBitmap(file, {
    imageOrientation: 'from-image',
    resizeWidth,
    resizeHeight,
    resizeQuality: 'high',
  });
}

/** A canvas with a picture on white, read by the processor. @param {ImageBitmap | HTMLCanvasElement} bitmap @param {number} width @param {number} height */
function drawn(bitmap, width, height) {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext('2d', { willReadFrequently: true, colorSpace: 'srgb' })
  );
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = 'high';
  const scale = Math.max(width / bitmap.width, height / bitmap.height);
  const [w, h] = [bitmap.width * scale, bitmap.height * scale];
  context.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
  return context;
}

/**
 * A part of a photo at its own resolution, as `cut` of vit_viz/images/part.py makes it; the photo itself where no part is meant.
 * @param {Photo} photo @param {string} text as links write it @param {Lighting} lighting @returns {Photo}
 */
export function partOf(photo, text, lighting) {
  if (!text) return photo;
  const part = /^(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5})$/.exec(text)?.slice(1).map(Number) ?? [0, 0, 0, 0];
  const [top, left, height, width] = part;
  const { height: tall, width: wide, channels, levels } = photo.picture;
  if (Math.min(height, width) < MIN_PART_SIDE)
    throw new BadPhoto(
      `A part has at least ${MIN_PART_SIDE} x ${MIN_PART_SIDE} pixels of the photo, not ${height} x ${width}.`,
    );
  if (top + height > tall || left + width > wide)
    throw new BadPhoto(
      `The part ${text} (top, left, height, width) reaches beyond the photo, which has ${tall} x ${wide} pixels.`,
    );
  const cut = new Uint8ClampedArray(height * width * channels);
  for (let row = 0; row < height; row++) {
    const from = ((top + row) * wide + left) * channels;
    cut.set(levels.subarray(from, from + width * channels), row * width * channels);
  }
  const picture = { height, width, channels, levels: cut };
  return { ...photo, picture, unlit: unsuitable(picture, lighting), whole: { part, size: [tall, wide] } };
}

/** A picture with four channels as a file. @param {Picture} picture @returns {Promise<Blob>} */
export function pngOf(picture) {
  return new Promise((done) => canvasOf(picture).toBlob((file) => done(/** @type {Blob} */ (file))));
}

/** What stands for a picture in the tray. @param {Picture} picture */
export function thumbnailOf(picture) {
  return drawn(canvasOf(picture), THUMBNAIL, THUMBNAIL).canvas.toDataURL('image/jpeg', 0.8);
}

/** @param {Picture} picture with four channels */
function canvasOf({ height, width, levels }) {
  const canvas = Object.assign(document.createElement('canvas'), { height, width });
  const image = new ImageData(new Uint8ClampedArray(levels), width, height);
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).putImageData(image, 0, 0);
  return canvas;
}

/**
 * What keeps a photo from being lit: "too dark", "too gray", or "" where nothing does; judged on means of squares of pixels.
 * @param {Picture} picture @param {Lighting} lighting
 */
export function unsuitable({ height, width, channels, levels }, lighting) {
  const { luma: weights, bright, bright_share: least, coloured, side } = lighting;
  const step = Math.max(1, Math.floor(Math.max(height, width) / side));
  let [count, light, luma, colour] = [0, 0, 0, 0];
  for (let top = 0; top < height; top += step) {
    for (let left = 0; left < width; left += step) {
      const [bottom, right] = [Math.min(height, top + step), Math.min(width, left + step)];
      let [red, green, blue] = [0, 0, 0];
      for (let y = top; y < bottom; y++) {
        for (let at = (y * width + left) * channels; at < (y * width + right) * channels; at += channels) {
          red += levels[at];
          green += levels[at + 1];
          blue += levels[at + 2];
        }
      }
      const pixels = (bottom - top) * (right - left);
      red = Math.round(red / pixels); // as Pillow's `reduce` has it
      green = Math.round(green / pixels);
      blue = Math.round(blue / pixels);
      const value = weights[0] * red + weights[1] * green + weights[2] * blue;
      count += 1;
      light += Number(value > bright);
      luma += value;
      colour += Math.max(red, green, blue) - Math.min(red, green, blue);
    }
  }
  if (light / count < least) return 'too dark';
  return colour / count < coloured && luma / count < 128 ? 'too gray' : '';
}
