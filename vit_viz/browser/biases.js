// Learned biases for the offset between two patches, which some models add to their scores (vit_viz/model/positions.py).
//
// A table has for each head one bias per offset (down, across), and three for the class token: where it looks at a patch, where a patch
// looks at it, and where it looks at itself.

import { trainedGrid } from './config.js';
import { interpolated, linearAxis } from './positions.js';
/** @import { Config, Size } from './config.js' */
/** @import { Axis } from './positions.js' */

/** Biases of all pairs of tokens at a grid, [heads, tokens, tokens], of a table [offsets + 3, heads]. */
export function pairBiases(
  /** @type {Config} */ config,
  /** @type {Float32Array} */ learned,
  /** @type {Size} */ grid,
) {
  const heads = config.num_heads;
  const table = atGrid(config, learned, grid);
  const index = offsetIndex(grid);
  const biases = new Float32Array(heads * index.length);
  for (let h = 0; h < heads; h++)
    for (let i = 0; i < index.length; i++) biases[h * index.length + i] = table[index[i] * heads + h];
  return biases;
}

/** Which entry of a table is the bias of a query at a key, [1 + patches, 1 + patches]. */
function offsetIndex(/** @type {Size} */ [rows, cols]) {
  const tokens = 1 + rows * cols;
  const offsets = (2 * rows - 1) * (2 * cols - 1);
  return Int32Array.from({ length: tokens * tokens }, (_, at) => {
    const [query, key] = [Math.floor(at / tokens) - 1, (at % tokens) - 1]; // -1 is the class token
    if (query < 0) return offsets + (key < 0 ? 2 : 0);
    if (key < 0) return offsets + 1;
    const down = Math.floor(query / cols) - Math.floor(key / cols) + rows - 1;
    return down * (2 * cols - 1) + (query % cols) - (key % cols) + cols - 1;
  });
}

/** The table at another grid than that of the training; the class token's three biases stay. */
function atGrid(/** @type {Config} */ config, /** @type {Float32Array} */ table, /** @type {Size} */ grid) {
  const old = trainedGrid(config);
  if (old[0] === grid[0] && old[1] === grid[1]) return table;
  const heads = config.num_heads;
  const [down, across] = [0, 1].map((axis) => {
    const sizes = /** @type {[number, number]} */ ([2 * old[axis] - 1, 2 * grid[axis] - 1]);
    return config.resample === 'transformers' ? linearAxis(...sizes) : growingAxis(...sizes);
  });
  const own = table.length - 3 * heads;
  const offsets = interpolated(table.subarray(0, own), heads, 2 * old[1] - 1, down, across);
  const all = new Float32Array(offsets.length + 3 * heads);
  all.set(offsets);
  all.set(table.subarray(own), offsets.length);
  return all;
}

/** Old offsets at distances that grow geometrically up to the new grid's largest, as timm places them. @returns {Axis} */
function growingAxis(/** @type {number} */ old, /** @type {number} */ size) {
  const reach = Math.floor(old / 2);
  const ratio = ratioOf(reach, Math.floor(size / 2));
  const distances = [0];
  for (let i = 0; i < reach; i++) distances.push(distances[i] + ratio ** i);
  const places = [
    ...distances
      .slice(1)
      .reverse()
      .map((distance) => -distance),
    ...distances,
  ];
  return Array.from({ length: size }, (_, i) => between(places, i - Math.floor(size / 2)));
}

/** The two places around one, with their weights; beyond the outermost it is that one alone. @returns {[number, number][]} */
function between(/** @type {number[]} */ places, /** @type {number} */ wanted) {
  const last = places.length - 1;
  if (wanted <= places[0]) return [[0, 1]];
  if (wanted >= places[last]) return [[last, 1]];
  const right = places.findIndex((place) => place > wanted);
  const share = (wanted - places[right - 1]) / (places[right] - places[right - 1]);
  return [
    [right - 1, 1 - share],
    [right, share],
  ];
}

/** The ratio at which `count` steps that begin with 1 reach that far together, between 1.01 and 1.5, by bisection as timm's. */
function ratioOf(/** @type {number} */ count, /** @type {number} */ reach) {
  let [low, ratio, high] = [1.01, 1.01, 1.5];
  while (high - low > 1e-6) {
    ratio = (low + high) / 2;
    if ((1 - ratio ** count) / (1 - ratio) > reach) high = ratio;
    else low = ratio;
  }
  return ratio;
}
