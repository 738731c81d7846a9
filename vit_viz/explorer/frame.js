// One query answered by all layers and heads: the numbers behind one repaint.

import { extent, fuseHeads, FUSIONS, prefixMass, Quantile, QueryMean } from './attention.js';
import { isLocal, queryTokens, suffixKinds } from './geometry.js';
import { headColumn } from './state.js';
/** @import { Layer } from './attention.js' */
/** @import { Trace } from './geometry.js' */
/** @import { View } from './state.js' */

const SHIFT = 20; // leaves exponent and 3 bits: eight classes from a number to its double
const SUMS = new Float64Array(1 << (31 - SHIFT));

/** Rounding of fp32 must not ask for one patch more. */
const SLACK = 1e-7;

/**
 * The smallest set of patches that holds at least `share` of the patches' sum (DINO, Caron et al. 2021); equal values are
 * taken in order of their index. Zeros alone have an empty set.
 * @param {Float32Array} values patches only, none negative
 * @param {number} share in (0, 1]
 * @param {Uint8Array} [mask] written: 1 inside
 * @returns {Uint8Array}
 */
export function massMask(values, share, mask = new Uint8Array(values.length)) {
  const { limit, above, wanted } = split(values, share - SLACK);
  let sum = above;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    mask[i] = value > limit ? 1 : 0;
    if (value === limit && sum < wanted) {
      mask[i] = 1;
      sum += limit;
    }
  }
  return mask;
}

/**
 * The value at which the sum of the values, from the largest on, reaches a share of all: it, the sum of the larger ones, and
 * the sum that is wanted.
 * @param {Float32Array} values @param {number} share
 */
function split(values, share) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  SUMS.fill(0);
  let place = 0;
  let total = 0;
  for (let i = 0; i < bits.length; i++) {
    const own = bits[i] >>> SHIFT;
    SUMS[own] += values[i];
    total += values[i];
    if (own > place) place = own;
  }
  const wanted = share * total;
  let above = 0;
  while (place > 0 && above + SUMS[place] < wanted) above += SUMS[place--];
  const few = new Float32Array(values.length);
  let at = 0;
  for (let i = 0; i < bits.length; i++) if (bits[i] >>> SHIFT === place) few[at++] = values[i];
  const count = at;
  few.subarray(0, count).sort(); // ascending: typed arrays sort by number
  while (at > 1 && above + few[at - 1] < wanted) above += few[--at];
  const limit = few[at - 1];
  for (; at < count && few[at] === limit; at++) above -= limit; // not larger, but equal
  return { limit, above, wanted };
}

/** Share of the values that a clipped scale shows in its last colour. */
export const CLIPPED = 0.01;

/** From where on the values of a map are all drawn alike; its largest where nearly all are 0. @param {Float32Array} sorted */
export function topOf(sorted) {
  const last = sorted.length - 1;
  return sorted[Math.round((1 - CLIPPED) * last)] || sorted[last];
}

/** Values of every cell of the mosaic for the present query, recomputed in place. */
export class Frame {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.columns = trace.heads + FUSIONS.length;
    this.patches = trace.grid[0] * trace.grid[1];
    this.kinds = suffixKinds(trace);
    this.values = new Float32Array(trace.layers * this.columns * trace.tokens);
    this.bits = new Uint32Array(this.values.buffer);
    this.quantile = new Quantile();
    /** Smallest and largest patch value of each cell, [layers, columns, 2]. */
    this.extents = new Float32Array(trace.layers * this.columns * 2);
    /** 1 where the layer shows the present query, 0 where it is behind. */
    this.fresh = new Uint8Array(trace.layers);
    /** 1 where the layer shows some query at all. */
    this.filled = new Uint8Array(trace.layers);
    /** @type {(QueryMean | null)[]} */
    this.means = Array(trace.layers).fill(null);
  }

  /** Where the values of a cell start. */
  at(/** @type {number} */ layer, /** @type {number} */ column) {
    return (layer * this.columns + column) * this.trace.tokens;
  }

  /** Where the patches of a cell start and end. */
  patchesAt(/** @type {number} */ layer, /** @type {number} */ column) {
    const start = this.at(layer, column) + this.trace.prefix.length;
    return /** @type {[number, number]} */ ([start, start + this.patches]);
  }

  /**
   * Answers the query of `view` with the layers that are at hand.
   * @param {View} view @param {(layer: number) => Layer | null} layerOf
   * @param {(layer: number) => Float32Array | null} rowsOf what the server answered for this query, [heads, tokens]
   */
  compute(view, layerOf, rowsOf) {
    const tokens = isLocal(view.query, this.trace) ? queryTokens(view.query, this.trace) : null;
    for (let l = 0; l < this.trace.layers; l++) {
      const layer = layerOf(l);
      const rows = rowsOf(l);
      this.fresh[l] = 0;
      if (layer && Array.isArray(tokens))
        this.meanOf(l, layer, view).into(tokens, this.values, this.at(l, 0));
      else if (rows && !view.norm) this.values.set(rows, this.at(l, 0));
      else if (rows && layer?.norms && view.direction === 'row') this.setWeighted(l, rows, layer.norms);
      else continue;
      this.finish(l);
    }
  }

  /** @param {number} l @param {Float32Array} rows [heads, tokens] @param {Float32Array} norms [heads, tokens] */
  setWeighted(l, rows, norms) {
    const at = this.at(l, 0);
    for (let i = 0; i < rows.length; i++) this.values[at + i] = rows[i] * norms[i];
  }

  /** @param {number} l @param {Layer} layer @param {View} view */
  meanOf(l, layer, view) {
    let mean = this.means[l];
    if (!mean || mean.layer !== layer || mean.direction !== view.direction || mean.weighted !== view.norm) {
      mean = new QueryMean(layer, view.direction, view.norm);
      this.means[l] = mean;
    }
    return mean;
  }

  /** Fused columns and extents of a layer whose heads have just been written. */
  finish(/** @type {number} */ l) {
    const { heads, tokens } = this.trace;
    fuseHeads(this.values, this.at(l, 0), heads, tokens);
    for (let c = 0; c < this.columns; c++) {
      this.extents.set(extent(this.values, ...this.patchesAt(l, c)), 2 * (l * this.columns + c));
    }
    this.fresh[l] = 1;
    this.filled[l] = 1;
  }

  /**
   * The numbers at the two ends of the colours of a cell, and the largest value that is drawn on the same scale.
   * @param {View} view @param {number} layer @param {number} column @returns {[number, number, number]}
   */
  range({ scale, clip }, layer, column) {
    const cells = this.sharing(scale, layer, column);
    let low = Infinity;
    let high = -Infinity;
    for (const cell of cells) {
      low = Math.min(low, this.extents[2 * cell]);
      high = Math.max(high, this.extents[2 * cell + 1]);
    }
    if (low > high) return [0, 1, 1];
    if (!clip) return [low, high, high];
    this.quantile.reset(low, high);
    for (const cell of cells) this.quantile.add(this.bits, ...this.patchesAt(0, cell));
    return [low, Math.max(low, Math.min(high, this.quantile.top(CLIPPED))), high];
  }

  /**
   * The cells that are drawn on the same scale as this one, with the fusions that the mosaic may leave out: a switch changes no colours.
   * @param {View['scale']} scale @param {number} layer @param {number} column
   */
  sharing(scale, layer, column) {
    const cells = [];
    for (let l = 0; l < this.trace.layers; l++) {
      if (!this.fresh[l] || (scale !== 'shared' && l !== layer)) continue;
      for (let c = 0; c < this.columns; c++) {
        if (scale !== 'own' || c === column) cells.push(l * this.columns + c);
      }
    }
    return cells;
  }

  /** Patch values of the chosen cell, [rows * cols]; a view into the frame, not a copy. */
  map(/** @type {View} */ view) {
    return this.values.subarray(...this.patchesAt(view.layer, headColumn(view.head, this.trace.heads)));
  }

  /**
   * What falls on each prefix token, on the suffix tokens of each kind and, last, on all patches, in the chosen cell. Rows are
   * shares that sum to 1 (a maximum, a minimum and weighted rows are renormalised); columns are raw weights.
   */
  mass(/** @type {View} */ view) {
    const at = this.at(view.layer, headColumn(view.head, this.trace.heads));
    const parts = prefixMass(this.values, at, this.trace.prefix.length, this.patches, this.kinds.values());
    const sum = view.direction === 'row' ? parts.reduce((a, b) => a + b, 0) : 1;
    return parts.map((part) => part / (sum || 1));
  }
}
