// Principal components as colours, as `colours_of` of vit_viz/analyses/components.py has them.

/** @import { Answer } from './held.js' */

const ENDS = [0.01, 0.99]; // percentiles between which a component goes from dark to bright
const OPAQUE = 255;

/** @type {WeakMap<Answer, Uint32Array[][]>} an answer has its colours once */
const KNOWN = new WeakMap();

/** The pixels of each photo of an answer, one per patch, by photo and state. @param {Answer} answer */
export function coloursOf(answer) {
  const known = KNOWN.get(answer) ?? coloured(answer);
  KNOWN.set(answer, known);
  return known;
}

/** @param {Answer} answer */
function coloured({ arrays, facts: { whitened } }) {
  const photos = [0, 1].flatMap((photo) => {
    const maps = arrays[`maps.${photo}.values`];
    return maps ? [{ ...maps, mask: arrays[`foreground.${photo}`]?.data }] : [];
  });
  const scales = whitened ? null : [0, 1, 2].map((part) => endsOf(photos, part));
  return photos.map(({ data, shape: [states], mask }) => {
    const bytes = new Uint8ClampedArray((data.length / 3) * 4);
    for (let patch = 0; patch < data.length / 3; patch++) {
      const isKept = !mask || mask[patch];
      for (let part = 0; part < 3; part++) {
        const share = shareOf(data[3 * patch + part], scales?.[part]);
        bytes[4 * patch + part] = isKept ? OPAQUE * share : 0;
      }
      bytes[4 * patch + 3] = OPAQUE;
    }
    const pixels = new Uint32Array(bytes.buffer);
    const size = pixels.length / states;
    return Array.from({ length: states }, (_, state) => pixels.subarray(state * size, (state + 1) * size));
  });
}

/** How bright a coordinate is, in [0, 1]. @param {number} value @param {number[]} [ends] none: whitened */
function shareOf(value, ends) {
  if (!ends) return 1 / (1 + Math.exp(-2 * value));
  const [low, high] = ends;
  return Math.min(1, Math.max(0, (value - low) / (high > low ? high - low : 1)));
}

/** The ends of the scale of a component, over all that is shown of it. @param {{data: any, mask: any}[]} photos @param {number} part */
function endsOf(photos, part) {
  const values = photos.flatMap(({ data, mask }) => {
    const own = [];
    for (let patch = 0; patch < data.length / 3; patch++)
      if (!mask || mask[patch]) own.push(data[3 * patch + part]);
    return own;
  });
  const sorted = Float64Array.from(values).sort();
  return ENDS.map((share) => {
    const at = share * (sorted.length - 1);
    const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
    return low + (high - low) * (at % 1);
  });
}
