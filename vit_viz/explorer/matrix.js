// The whole matrix of one head, every query against every key, computed row by row; its axis, its colours, its strongest links.
//
// Pure arithmetic without a document, so that Node tests all of it. Both axes are alike: the prefix tokens, the patches row by row,
// the suffix tokens. A cell is one token; above MOST_CELLS cells, neighbouring patches of a row share one, and a cell of the matrix
// is the mean of its block.

import { attentionInto } from './attention.js';
import { placeWords, queryWords } from './geometry.js';
/** @import { Layer } from './attention.js' */
/** @import { Trace } from './geometry.js' */

/** @typedef {{query: number, key: number, weight: number}} Link tokens by their index */

/** Cells of an axis at most, as far as blocks of patches can keep to it. */
export const MOST_CELLS = 2000;

/** Weights below this share of the largest have the lowest colour of a logarithmic scale. */
export const DECADES = 1e-5;

/** An axis of the matrix: which tokens each cell stands for. */
export class Axis {
  /** @param {Pick<Trace, 'grid' | 'prefix' | 'suffix'>} trace @param {number} [most] */
  constructor({ grid, prefix, suffix }, most = MOST_CELLS) {
    const [rows, cols] = grid;
    this.grid = grid;
    this.prefix = prefix;
    this.suffix = suffix;
    this.patches = rows * cols;
    this.tokens = prefix.length + this.patches + suffix.length;
    this.block = 1;
    const across = () => Math.ceil(cols / this.block);
    while (this.block < cols && prefix.length + rows * across() + suffix.length > most) this.block += 1;
    this.perRow = across();
    this.patchCells = rows * this.perRow;
    this.cells = prefix.length + this.patchCells + suffix.length;
    this.starts = this.cellStarts();
    this.cellOf = new Int32Array(this.tokens);
    for (let c = 0; c < this.cells; c++) this.cellOf.fill(c, this.starts[c], this.starts[c + 1]);
  }

  /** The first token of each cell, and behind them the number of tokens. */
  cellStarts() {
    const { prefix, suffix, grid, block, perRow } = this;
    const starts = prefix.map((_, i) => i);
    for (let r = 0; r < grid[0]; r++) {
      for (let b = 0; b < perRow; b++) starts.push(prefix.length + r * grid[1] + b * block);
    }
    const after = prefix.length + this.patches;
    suffix.forEach((_, i) => starts.push(after + i));
    return Int32Array.from([...starts, this.tokens]);
  }

  /** The tokens of a cell. */
  tokensOf(/** @type {number} */ cell) {
    const [from, to] = [this.starts[cell], this.starts[cell + 1]];
    return Array.from({ length: to - from }, (_, i) => from + i);
  }

  /** The patches of a cell by their index; none of a cell that is another token. */
  patchesOf(/** @type {number} */ cell) {
    const first = this.prefix.length;
    if (cell < first || cell >= first + this.patchCells) return [];
    return this.tokensOf(cell).map((token) => token - first);
  }

  /** What a cell is called: "patch (3, 4)", "patches (3, 4) to (3, 6)", "class token", "register 0". */
  nameOf(/** @type {number} */ cell) {
    const patches = this.patchesOf(cell);
    const cols = this.grid[1];
    const [first, last] = [patches[0], patches[patches.length - 1]].map((patch) => placeWords(patch, cols));
    if (patches.length > 1) return `patches ${first} to ${last}`;
    return patches.length ? `patch ${first}` : tokenWords(this.namedOf(cell));
  }

  /** The name of a cell that is no patch, as queries write it; '' of a patch. */
  namedOf(/** @type {number} */ cell) {
    const first = this.prefix.length;
    return cell < first ? this.prefix[cell] : (this.suffix[cell - first - this.patchCells] ?? '');
  }
}

/** A token that is no patch, in words. */
function tokenWords(/** @type {string} */ name) {
  const nothing = { prefix: [name], suffix: [], grid: [1, 1], pooling: '' };
  return queryWords(name, /** @type {Trace} */ (/** @type {unknown} */ (nothing)));
}

/**
 * One row of a head, or of the mean, maximum or minimum over heads.
 * @param {Float32Array} out [tokens]
 * @param {Layer} layer @param {number | string} head @param {number} token
 * @param {Float32Array} spare [tokens], overwritten
 */
export function rowInto(out, layer, head, token, spare) {
  if (typeof head === 'number') return attentionInto(out, layer, head, token, 'row');
  out.fill(head === 'min' ? Infinity : 0);
  for (let h = 0; h < layer.heads; h++) {
    attentionInto(spare, layer, h, token, 'row');
    for (let j = 0; j < out.length; j++) {
      if (head === 'mean') out[j] += spare[j] / layer.heads;
      else out[j] = head === 'max' ? Math.max(out[j], spare[j]) : Math.min(out[j], spare[j]);
    }
  }
}

/** The strongest links between patches, the strongest first; a patch's link to itself is left out. Of equals the first that came. */
export class Strongest {
  /** @param {number} most @param {Axis} axis */
  constructor(most, axis) {
    this.first = axis.prefix.length;
    this.end = this.first + axis.patches;
    this.weights = new Float32Array(most);
    this.queries = new Int32Array(most);
    this.keys = new Int32Array(most);
    this.count = 0;
    this.pairs = 0; // that were compared
    this.total = 0; // their weight
  }

  /** Compares the links of one query to all patches. @param {number} query @param {Float32Array} row [tokens] */
  add(query, row) {
    const most = this.weights.length;
    for (let key = this.first; key < this.end; key++) {
      if (key === query) continue;
      const weight = row[key];
      this.total += weight;
      this.pairs += 1;
      if (this.count < most || weight > this.weights[most - 1]) this.insert({ query, key, weight });
    }
  }

  /** @param {Link} link */
  insert({ query, key, weight }) {
    let at = Math.min(this.count, this.weights.length - 1);
    for (; at > 0 && this.weights[at - 1] < weight; at--) {
      this.weights[at] = this.weights[at - 1];
      this.queries[at] = this.queries[at - 1];
      this.keys[at] = this.keys[at - 1];
    }
    this.weights[at] = weight;
    this.queries[at] = query;
    this.keys[at] = key;
    this.count = Math.min(this.count + 1, this.weights.length);
  }

  /** The best `count` links. @param {number} count @returns {Link[]} */
  best(count) {
    return Array.from({ length: Math.min(count, this.count) }, (_, i) => ({
      query: this.queries[i],
      key: this.keys[i],
      weight: this.weights[i],
    }));
  }
}

/** The matrix of one head while it is being computed: one row of cells per step, so that a page can paint between two. */
export class Filling {
  next = 0; // the row of cells that comes next
  high = 0;
  low = Infinity; // of the weights above 0

  /** @param {Layer} layer @param {number | string} head @param {Axis} axis @param {number} most links that are kept */
  constructor(layer, head, axis, most) {
    this.layer = layer;
    this.head = head;
    this.axis = axis;
    this.values = new Float32Array(axis.cells * axis.cells);
    this.strongest = new Strongest(most, axis);
    this.row = new Float32Array(axis.tokens);
    this.spare = new Float32Array(axis.tokens);
  }

  get isDone() {
    return this.next === this.axis.cells;
  }

  /** Computes the next row of cells. */
  step() {
    const { axis, row, strongest, values } = this;
    const [from, to] = [axis.starts[this.next], axis.starts[this.next + 1]];
    const out = values.subarray(this.next * axis.cells, (this.next + 1) * axis.cells);
    const isPatch = this.next >= axis.prefix.length && this.next < axis.prefix.length + axis.patchCells;
    for (let token = from; token < to; token++) {
      rowInto(row, this.layer, this.head, token, this.spare);
      if (isPatch) strongest.add(token, row);
      if (axis.block === 1) out.set(row);
      else this.addMeans(out, to - from);
    }
    this.measure(out);
    this.next += 1;
  }

  /** Adds a row's share to the means over blocks. @param {Float32Array} out [cells] @param {number} queries of the block */
  addMeans(out, queries) {
    const { starts, cells } = this.axis;
    for (let c = 0; c < cells; c++) {
      let sum = 0;
      for (let j = starts[c]; j < starts[c + 1]; j++) sum += this.row[j];
      out[c] += sum / ((starts[c + 1] - starts[c]) * queries);
    }
  }

  /** Takes note of the smallest and largest weight. */
  measure(/** @type {Float32Array} */ row) {
    for (let j = 0; j < row.length; j++) {
      if (row[j] > this.high) this.high = row[j];
      if (row[j] < this.low && row[j] > 0) this.low = row[j];
    }
  }

  /** The weight in a cell; NaN where it is not computed yet. */
  at(/** @type {number} */ query, /** @type {number} */ key) {
    return query < this.next ? this.values[query * this.axis.cells + key] : NaN;
  }
}

/**
 * The ends of the colours: from 0 to the largest weight, or on a logarithmic scale from the smallest weight, but at most five
 * powers of ten below the largest.
 * @param {{low: number, high: number}} filling @param {boolean} log @returns {[number, number]}
 */
export function endsOf({ low, high }, log) {
  if (!log) return [0, high];
  return [Math.min(Math.max(low, high * DECADES), high), high];
}

/** Where a weight lies on a scale, from 0 to 1. */
export function shareOnScale(
  /** @type {number} */ value,
  /** @type {[number, number]} */ [low, high],
  log = false,
) {
  if (high <= low) return value >= high ? 1 : 0;
  const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(1, Math.max(0, share));
}

/**
 * A pixel for every weight there is, found by the leading 16 bits of its float behind the sign: no logarithm for each cell.
 * @param {Uint32Array} table 256 colours
 * @param {[number, number]} ends @param {boolean} log
 */
export function pixelTable(table, ends, log) {
  const pixels = new Uint32Array(65536).fill(table[0]);
  const [first, last] = [binOf(ends[0]), binOf(ends[1])];
  const bits = new Uint32Array(1);
  const value = new Float32Array(bits.buffer);
  for (let bin = first; bin <= last; bin++) {
    bits[0] = (bin << 15) | 0x4000; // the middle of what the bin stands for
    pixels[bin] = table[Math.round(255 * shareOnScale(value[0], ends, log))];
  }
  return pixels.fill(table[255], last + 1);
}

/** The leading 16 bits of a weight behind its sign. */
function binOf(/** @type {number} */ weight) {
  return new Uint32Array(Float32Array.of(weight).buffer)[0] >>> 15;
}

/**
 * Paints values[from..to) with the pixels of `pixelTable`.
 * @param {Uint32Array} pixels
 * @param {Float32Array} values at least 0
 * @param {Uint32Array} table @param {number} from @param {number} to
 */
export function paintWeights(pixels, values, table, from, to) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = from; i < to; i++) pixels[i] = table[(bits[i] >>> 15) & 0xffff];
}
