// Sums over the attention of a layer, from which the measures of its heads are made: vit_viz/analyses/head_sums.py.

import { eachHead } from './attention.js';
import { layoutOf } from './layout.js';
/** @import { Context } from './form.js' */

/** Pairs of patches at each offset, [2 rows - 1, 2 cols - 1], with (0, 0) in the middle. @param {number[]} grid */
export function offsetCounts([rows, cols]) {
  const [tall, wide] = [2 * rows - 1, 2 * cols - 1];
  return Float64Array.from({ length: tall * wide }, (_, i) => {
    const [down, right] = [Math.floor(i / wide) - rows + 1, (i % wide) - cols + 1];
    return (rows - Math.abs(down)) * (cols - Math.abs(right));
  });
}

/** By query and key, the index of their offset: that of the key for the first patch, less that of the query. @param {number[]} grid */
function offsetIndices([rows, cols]) {
  const wide = 2 * cols - 1;
  const at = Int32Array.from({ length: rows * cols }, (_, i) => Math.floor(i / cols) * wide + (i % cols));
  return { at, zero: (rows - 1) * wide + cols - 1 };
}

/**
 * What is summed over all queries of a head; tokens are keys, tables by offset are [2 rows - 1, 2 cols - 1].
 * @typedef {object} Sums
 * @property {number} entropy of a ln a
 * @property {Float64Array} all what each key receives, [tokens], @property {Float64Array} ofPatches from patches
 * @property {Float64Array} ofRow and from the row of the rollout that is followed
 * @property {number} diagonal @property {number} distance in pixels, weights renormalised over patches
 * @property {Float64Array} offsets @property {number} squares of the weights between patches
 * @property {number} alike of a c, with c the cosine of two patch tokens
 */

/**
 * @param {Context} context @param {number} layer @param {Float64Array} row of the rollout, before this layer
 * @param {Cosines} cosines @param {Float32Array} lengths in pixels by offset
 */
export function layerSums(context, layer, row, cosines, lengths) {
  const { first, patches, grid } = layoutOf(context);
  const { tokens } = context.traced;
  const { at: index, zero } = offsetIndices(grid);
  const offsetCount = lengths.length;
  const heads = /** @type {Sums[]} */ ([]);
  eachHead(context, layer, (attention) => {
    const [all, ofPatches, ofRow] = [0, 1, 2].map(() => new Float64Array(tokens));
    const offsets = new Float64Array(offsetCount);
    let [entropy, diagonal, distance, squares, alike] = [0, 0, 0, 0, 0];
    for (let i = 0, at = 0; i < tokens; i++) {
      const [start, weight] = [at, row[i]];
      for (let j = 0; j < tokens; j++, at++) {
        const a = attention[at];
        all[j] += a;
        if (weight) ofRow[j] += weight * a;
        if (a > 0) entropy += a * Math.log(a);
      }
      const query = i - first;
      if (query < 0) continue;
      for (let j = 0; j < tokens; j++) ofPatches[j] += attention[start + j];
      let [mass, length] = [0, 0];
      const [base, pairs] = [zero - index[query], query * patches];
      for (let key = 0, from = start + first; key < patches; key++, from++) {
        const a = attention[from];
        const offset = base + index[key];
        offsets[offset] += a;
        squares += a * a;
        mass += a;
        length += a * lengths[offset];
        alike += a * cosines.pairs[pairs + key];
      }
      diagonal += attention[start + i];
      distance += length / mass;
    }
    heads.push({ entropy, all, ofPatches, ofRow, diagonal, distance, offsets, squares, alike });
  });
  return heads;
}

/**
 * @typedef {{pairs: Float32Array, squares: number, offsets: Float64Array}} Cosines of the patch tokens that enter a layer, without their
 *     mean: [patches, patches], the sum of their squares, and their sums at each offset
 * @param {Context} context @param {number} layer @returns {Cosines}
 */
export function cosinesOf(context, layer) {
  const { traced, engine } = context;
  const { machine } = engine.model;
  const { first, patches, grid } = layoutOf(context);
  const vectors = traced.residual[layer].slice(first * engine.model.config.embed_dim);
  const dim = vectors.length / patches;
  const mean = new Float64Array(dim);
  vectors.forEach((value, i) => (mean[i % dim] += value / patches));
  for (let patch = 0; patch < patches; patch++) {
    let sum = 0;
    for (let i = 0, at = patch * dim; i < dim; i++, at++) sum += (vectors[at] -= mean[i]) ** 2;
    const size = Math.max(1e-12, Math.sqrt(sum));
    for (let i = 0, at = patch * dim; i < dim; i++, at++) vectors[at] /= size;
  }
  const pairs = machine.within(() => {
    const placed = machine.place(vectors);
    const { panels } = machine.packed(placed, patches, dim);
    const products = machine.room(patches * patches);
    machine.run.product(placed, dim, panels, 0, products, patches, patches, dim, patches);
    return machine.read(products, patches * patches);
  });
  const offsets = new Float64Array((2 * grid[0] - 1) * (2 * grid[1] - 1));
  const { at: index, zero } = offsetIndices(grid);
  let squares = 0;
  for (let i = 0, at = 0; i < patches; i++) {
    for (let j = 0; j < patches; j++, at++) {
      squares += pairs[at] * pairs[at];
      offsets[zero - index[i] + index[j]] += pairs[at];
    }
  }
  return { pairs, squares, offsets };
}
