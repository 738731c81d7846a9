// Where a patch is, as numbers: fixed tables, rotary angles, and learned tables brought to another grid (vit_viz/model/positions.py).
//
// Tables are [rows * cols, dim], row by row as the patches are. All of it is computed once for a grid, in doubles.

import { positionedPrefix, trainedGrid } from './config.js';
import { cubic, taps } from './resize.js';
/** @import { Config, Size } from './config.js' */

/** Whose code interpolates; RADIO's is only shown beside the others. @typedef {Config['resample'] | 'radio' | 'radio_v4'} Variant */

/** What each place of an axis is made of: places of the old one with their weights. @typedef {[number, number][][]} Axis */

const CUBIC = { reach: 2, weight: (/** @type {number} */ x) => cubic(Math.abs(x), -0.5) };

/** The position embedding at a grid, [prefix + rows * cols, dim]; null where there is none to add. */
export function positionTable(
  /** @type {Config} */ config,
  /** @type {Float32Array | undefined} */ learned,
  /** @type {Size} */ grid,
) {
  const prefix = positionedPrefix(config);
  const dim = config.embed_dim;
  if (config.position === 'sinusoidal_1d') return sinusoidal1d(prefix + grid[0] * grid[1], dim);
  if (config.position === 'sinusoidal_2d') return behindZeros(sinusoidal2d(grid, dim), prefix * dim);
  if (config.position !== 'learned' || !learned) return null;
  const patches = resampled(learned.subarray(prefix * dim), dim, trainedGrid(config), grid, config.resample);
  const table = behindZeros(patches, prefix * dim);
  table.set(learned.subarray(0, prefix * dim));
  return table;
}

function behindZeros(/** @type {Float32Array} */ numbers, /** @type {number} */ zeros) {
  const all = new Float32Array(zeros + numbers.length);
  all.set(numbers, zeros);
  return all;
}

/**
 * A table [old rows * old cols, dim] at another grid, as the code that published the checkpoint interpolates it.
 * @param {Float32Array} table @param {number} dim @param {Size} old @param {Size} grid @param {Variant} variant
 */
export function resampled(table, dim, old, grid, variant) {
  if (old[0] === grid[0] && old[1] === grid[1]) return table;
  const isCut = variant === 'radio' || variant === 'radio_v4'; // from a square of the longer side
  const [down, across] = [0, 1].map((axis) =>
    axisOf(old[axis], isCut ? Math.max(...grid) : grid[axis], variant).slice(0, grid[axis]),
  );
  return interpolated(table, dim, old[1], down, across);
}

/** @param {Float32Array} table @param {number} dim @param {number} oldCols @param {Axis} down @param {Axis} across */
export function interpolated(table, dim, oldCols, down, across) {
  const result = new Float32Array(down.length * across.length * dim);
  let at = 0;
  for (const rows of down) {
    for (const cols of across) {
      for (let d = 0; d < dim; d++) {
        let sum = 0;
        for (const [row, weight] of rows) {
          let inner = 0;
          for (const [col, share] of cols) inner += share * table[(row * oldCols + col) * dim + d];
          sum += weight * inner;
        }
        result[at++] = sum;
      }
    }
  }
  return result;
}

/** @param {number} old @param {number} size @param {Variant} variant @returns {Axis} */
function axisOf(old, size, variant) {
  if (variant === 'timm' || variant === 'dinov2_reg')
    return taps(old, size, CUBIC).map(({ first, weights }) =>
      weights.map((weight, i) => [first + i, weight]),
    );
  if (variant === 'bilinear' || variant === 'radio_v4') return linearAxis(old, size);
  const aligned = size > 1 ? (old - 1) / (size - 1) : 0;
  if (variant === 'radio') return Array.from({ length: size }, (_, i) => linearTaps(aligned * i, old));
  const scale = variant === 'dino' || variant === 'dinov2' ? old / (size + 0.1) : old / size;
  return Array.from({ length: size }, (_, i) =>
    cubicTaps(variant === 'torchvision' ? aligned * i : (i + 0.5) * scale - 0.5, old),
  );
}

/** Four places around one, those beyond the edge being the last, with torch's slope of the cubic. @returns {[number, number][]} */
function cubicTaps(/** @type {number} */ place, /** @type {number} */ old) {
  const floor = Math.floor(place);
  return [-1, 0, 1, 2].map((step) => [
    Math.min(old - 1, Math.max(0, floor + step)),
    cubic(Math.abs(place - floor - step), -0.75),
  ]);
}

/** Linear interpolation between centres. @returns {Axis} */
export function linearAxis(/** @type {number} */ old, /** @type {number} */ size) {
  return Array.from({ length: size }, (_, i) => linearTaps(Math.max(0, ((i + 0.5) * old) / size - 0.5), old));
}

/** The two places around one. @param {number} place @param {number} old @returns {[number, number][]} */
function linearTaps(place, old) {
  const floor = Math.min(old - 1, Math.floor(place));
  return [
    [floor, 1 - (place - floor)],
    [Math.min(old - 1, floor + 1), place - floor],
  ];
}

/** Waves of geometrically growing length for each place in the sequence (Vaswani et al. 2017). */
function sinusoidal1d(/** @type {number} */ length, /** @type {number} */ dim) {
  return Float32Array.from({ length: length * dim }, (_, at) => {
    const [place, wave] = [Math.floor(at / dim), at % dim];
    const angle = place / 10_000 ** ((2 * Math.floor(wave / 2)) / dim);
    return wave % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** The first half of the numbers says the column, the second half the row (MAE). */
function sinusoidal2d(/** @type {Size} */ [rows, cols], /** @type {number} */ dim) {
  const quarter = dim / 4;
  return Float32Array.from({ length: rows * cols * dim }, (_, at) => {
    const [patch, number] = [Math.floor(at / dim), at % dim];
    const place = number < dim / 2 ? patch % cols : Math.floor(patch / cols);
    const within = number % (dim / 2);
    const angle = place * 10_000 ** (-(within % quarter) / quarter);
    return within < quarter ? Math.sin(angle) : Math.cos(angle);
  });
}

/**
 * Cosines and sines of the angles by which queries and keys of patches are turned, each [patches, head_dim / 2]; null for none.
 * @param {Config} config @param {Size} grid @param {number} dim of a head
 */
export function rotaryOf(config, [rows, cols], dim) {
  if (config.position !== 'rotary' && !config.rotary_grid) return null;
  const quarter = dim / 4;
  const { rotary_grid: trained, rotary_base: base } = config;
  /** The place of a patch on an axis: its centre from -1 to 1 (DINOv3), or in patches of the trained grid (EVA-02). */
  const place = (/** @type {number} */ i, /** @type {number} */ size, /** @type {number} */ axis) =>
    trained ? (i / size) * trained[axis] : 2 * Math.PI * ((2 * (i + 0.5)) / size - 1);
  const angles = Float64Array.from({ length: rows * cols * 2 * quarter }, (_, at) => {
    const [patch, number] = [Math.floor(at / (2 * quarter)), at % (2 * quarter)];
    const row = place(Math.floor(patch / cols), rows, 0);
    const col = place(patch % cols, cols, 1);
    const step = number % quarter;
    const frequency = trained ? base ** (-step / quarter) : base ** ((-2 * step) / (dim / 2));
    return (number < quarter ? row : col) * frequency;
  });
  return {
    cosines: Float32Array.from(angles, Math.cos),
    sines: Float32Array.from(angles, Math.sin),
    adjacent: trained !== null,
  };
}
