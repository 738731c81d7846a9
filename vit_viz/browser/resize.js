// A picture brought to another size as Pillow does it, level for level: antialiased filters in fixed-point arithmetic of 8 bits.
//
// First along the rows, then along the columns, each rounded to 0..255. Source: Pillow, src/libImaging/Resample.c (`precompute_coeffs`,
// `normalize_coeffs_8bpc`, `ImagingResampleHorizontal_8bpc`) and Geometry.c (`ImagingScaleAffine`) for "nearest".

/** @typedef {{height: number, width: number, channels: number, levels: Uint8ClampedArray}} Picture levels: row by row, the channels of
 *     a pixel side by side */

const PRECISION = 2 ** 22; // 32 bits, less 8 for the level and 2 for sums beyond it

/** The filters by name: the reach in pixels of the source, and the weight at a distance. @type {Record<string, Filter>} */
const FILTERS = {
  box: { reach: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { reach: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: { reach: 1, weight: hamming },
  bicubic: { reach: 2, weight: (x) => cubic(Math.abs(x), -0.5) },
  lanczos: { reach: 3, weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

/** @typedef {{reach: number, weight: (x: number) => number}} Filter */

/** Keys' cubic at a distance from 0 on; `a` is the slope at 1. */
export function cubic(/** @type {number} */ x, /** @type {number} */ a) {
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

function sinc(/** @type {number} */ x) {
  return x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI);
}

function hamming(/** @type {number} */ x) {
  if (x === 0) return 1;
  return Math.abs(x) >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * Math.cos(x * Math.PI));
}

/**
 * What each pixel of an axis is made of: the first pixel of the source, and a weight for it and for those after it; they sum to 1.
 * @param {number} old @param {number} size @param {Filter} filter @returns {{first: number, weights: number[]}[]}
 */
export function taps(old, size, { reach, weight }) {
  const scale = old / size;
  const stretch = Math.max(1, scale); // the filter is widened where the picture becomes smaller
  return Array.from({ length: size }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - reach * stretch + 0.5));
    const end = Math.min(old, Math.trunc(centre + reach * stretch + 0.5));
    const weights = [];
    let sum = 0;
    for (let x = first; x < end; x++) {
      weights.push(weight((x - centre + 0.5) * (1 / stretch)));
      sum += weights[x - first];
    }
    return { first, weights: weights.map((value) => (sum === 0 ? value : value / sum)) };
  });
}

/** @param {Picture} picture @param {number} height @param {number} width @param {string} name of the filter @returns {Picture} */
export function resize(picture, height, width, name) {
  if (picture.height === height && picture.width === width) return picture;
  if (name === 'nearest') return nearest(picture, height, width);
  const filter = FILTERS[name];
  if (!filter) throw new Error(`There is no filter "${name}" to resize with.`);
  const wide = picture.width === width ? picture : alongRows(picture, width, filter);
  return wide.height === height ? wide : alongColumns(wide, height, filter);
}

/** The taps of an axis with whole-numbered weights. @param {number} old @param {number} size @param {Filter} filter */
function wholeTaps(old, size, filter) {
  const whole = (/** @type {number} */ value) => Math.trunc(value * PRECISION + (value < 0 ? -0.5 : 0.5));
  return taps(old, size, filter).map(({ first, weights }) => ({ first, weights: weights.map(whole) }));
}

/** @param {Picture} picture @param {number} width @param {Filter} filter @returns {Picture} */
function alongRows({ height, width: old, channels, levels }, width, filter) {
  const result = new Uint8ClampedArray(height * width * channels);
  wholeTaps(old, width, filter).forEach(({ first, weights }, x) => {
    for (let y = 0; y < height; y++) {
      for (let c = 0; c < channels; c++) {
        const at = (y * old + first) * channels + c;
        result[(y * width + x) * channels + c] = weighted(levels, at, channels, weights);
      }
    }
  });
  return { height, width, channels, levels: result };
}

/** @param {Picture} picture @param {number} height @param {Filter} filter @returns {Picture} */
function alongColumns({ height: old, width, channels, levels }, height, filter) {
  const row = width * channels;
  const result = new Uint8ClampedArray(height * row);
  wholeTaps(old, height, filter).forEach(({ first, weights }, y) => {
    for (let x = 0; x < row; x++) result[y * row + x] = weighted(levels, first * row + x, row, weights);
  });
  return { height, width, channels, levels: result };
}

/** A weighted sum of levels, rounded; the array that takes it clamps it to 0..255. */
function weighted(
  /** @type {Uint8ClampedArray} */ levels,
  /** @type {number} */ at,
  /** @type {number} */ step,
  /** @type {number[]} */ weights,
) {
  let sum = PRECISION / 2;
  for (let i = 0; i < weights.length; i++, at += step) sum += levels[at] * weights[i];
  return Math.floor(sum / PRECISION);
}

/** The pixel under each centre; places are added up, as Pillow does. @param {Picture} picture @returns {Picture} */
function nearest(
  { height: old, width: oldWidth, channels, levels },
  /** @type {number} */ height,
  /** @type {number} */ width,
) {
  const places = (/** @type {number} */ count, /** @type {number} */ size) => {
    const step = count / size;
    let at = step * 0.5;
    return Array.from({ length: size }, () => {
      const place = Math.trunc(at);
      at += step;
      return place;
    });
  };
  const columns = places(oldWidth, width);
  const result = new Uint8ClampedArray(height * width * channels);
  let at = 0;
  for (const y of places(old, height))
    for (const x of columns)
      for (let c = 0; c < channels; c++) result[at++] = levels[(y * oldWidth + x) * channels + c];
  return { height, width, channels, levels: result };
}
