// Signed maps on the gray photo: orange speaks for, blue against, and the photo is seen where a patch says nothing.

import { topOf } from '../../explorer/frame.js';
/** @import { Picture } from '../../explorer/paint.js' */

/** The colours at the two ends. */
export const AGAINST = [44, 96, 200];
export const FOR = [236, 128, 0];

/** How much of the photo the colour hides at the ends of the scale. */
const STRONGEST = 0.85;

/** 256 pixels from against to for; their opacity grows with the value. @param {number} [strength] */
export function signedTable(strength = 1) {
  const bytes = new Uint8ClampedArray(1024);
  for (let i = 0; i < 256; i++) {
    const value = (2 * i) / 255 - 1;
    bytes.set([...(value < 0 ? AGAINST : FOR), 255 * strength * STRONGEST * Math.abs(value)], 4 * i);
  }
  return new Uint32Array(bytes.buffer);
}

/** The same as colours of a bar, on middle gray. */
export function signedStops() {
  return Array.from({ length: 17 }, (_, i) => {
    const value = i / 8 - 1;
    const share = STRONGEST * Math.abs(value);
    const colour = (value < 0 ? AGAINST : FOR).map((part) => Math.round(128 + share * (part - 128)));
    return `rgb(${colour.join(' ')})`;
  });
}

const TABLE = signedTable();

/** The largest size among values. @param {ArrayLike<number>} values */
export function largestOf(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]));
  return most;
}

/** Where the scale of a map ends: its strongest patches, one in a hundred, are all drawn alike. @param {Float32Array} values */
export function endOf(values) {
  return topOf(values.map(Math.abs).sort());
}

/**
 * Paints a map, one pixel per patch, on a scale with 0 in its middle.
 * @param {Picture} picture @param {Float32Array} values @param {number} most at the ends of the scale
 */
export function paintSigned(picture, values, most) {
  if (most > 0) picture.paint(values, TABLE, [-most, most]);
  else picture.clear();
}

/** A number with its sign, as people write it; what rounds to zero has none. */
export function signed(/** @type {number} */ value, /** @type {number} */ decimals) {
  const text = Math.abs(value).toFixed(decimals);
  if (!Number(text)) return text;
  return `${value < 0 ? '−' : '+'}${text}`;
}
