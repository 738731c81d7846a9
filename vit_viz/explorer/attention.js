// Attention from queries and keys, in the browser: rows, columns, regions, head fusion and masses.
//
// Pure arithmetic without a document, so that Node tests all of it. Axes as in the Python package: heads, queries, keys,
// head_dim; tokens are the prefix tokens, then the patches row by row, then the suffix tokens. The formulas stand beside each function.

/**
 * Layer whose attention is softmax(q k^T * scale): `q` already carries the scale.
 * @typedef {object} QkLayer
 * @property {'qk'} kind
 * @property {number} heads
 * @property {number} tokens
 * @property {number} headDim
 * @property {Float32Array} q [heads, tokens, headDim], times the scale
 * @property {Float32Array} k [heads, tokens, headDim]
 * @property {Float32Array} lse [heads, tokens], log of the sum of exp(scores) of each row
 * @property {Float32Array | null} norms [heads, tokens], ||v_j W_O,h||, null where unknown
 *
 * Layer whose attention q and k do not determine (written out, masked, or with a bias for offsets); it travels as it is, in fp16.
 * @typedef {{kind: 'attention', heads: number, tokens: number, bits: Uint16Array, norms: Float32Array | null}}
 *   AttentionLayer bits: [heads, tokens, tokens]
 *
 * @typedef {QkLayer | AttentionLayer} Layer
 * @typedef {'row' | 'column'} Direction
 */

/** Names of the head fusions, in the order of the mosaic's extra columns. */
export const FUSIONS = ['mean', 'max', 'min'];

/** @type {Float32Array | null} */
let halfTable = null;

/** All 65536 fp16 values, built once: for browsers without Float16Array, and for single values. */
export function halfFloats() {
  if (halfTable) return halfTable;
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  halfTable = table;
  return table;
}

/**
 * fp16 numbers as fp32.
 * @param {ArrayBuffer} buffer
 * @param {number} offset in bytes, even
 * @param {number} count of numbers
 * @param {boolean} [native] false: use the table even where the browser has Float16Array
 * @returns {Float32Array}
 */
export function unpackHalf(buffer, offset, count, native = true) {
  const Half = /** @type {any} */ (globalThis).Float16Array;
  if (native && Half) return new Float32Array(new Half(buffer, offset, count));
  const bits = new Uint16Array(buffer, offset, count);
  const table = halfFloats();
  const out = new Float32Array(count);
  for (let i = 0; i < count; i++) out[i] = table[bits[i]];
  return out;
}

/** Bytes that a layer of this kind has on its way to the browser. */
export function layerBytes(/** @type {string} */ kind, heads = 0, tokens = 0, headDim = 0) {
  if (kind === 'qk') return heads * tokens * (8 + 4 * headDim);
  return kind === 'attention' ? heads * tokens * (4 + 2 * tokens) : Infinity;
}

/**
 * Reads what the route `layer` answers. Throws where the length is not what the header promises.
 * @param {ArrayBuffer} buffer
 * @param {{kind: string, heads: number, tokens: number, headDim: number, scale: number}} about @returns {Layer}
 */
export function parseLayer(buffer, { kind, heads, tokens, headDim, scale }) {
  const expected = layerBytes(kind, heads, tokens, headDim);
  if (buffer.byteLength !== expected) {
    throw new Error(`A layer of kind ${kind} has ${expected} bytes, not ${buffer.byteLength}.`);
  }
  const cells = heads * tokens;
  const floats = (/** @type {number} */ place) => new Float32Array(buffer, 4 * cells * place, cells).slice();
  const known = (/** @type {Float32Array} */ norms) => (norms.some((n) => n > 0) ? norms : null);
  if (kind === 'attention') {
    return { kind, heads, tokens, bits: new Uint16Array(buffer, 4 * cells), norms: known(floats(0)) };
  }
  const q = unpackHalf(buffer, 8 * cells, cells * headDim);
  const k = unpackHalf(buffer, 8 * cells + 2 * cells * headDim, cells * headDim);
  for (let i = 0; i < q.length; i++) q[i] *= scale;
  return { kind: 'qk', heads, tokens, headDim, q, k, lse: floats(0), norms: known(floats(1)) };
}

/**
 * Dot products of one vector with every token's vector of a head.
 * @param {Float32Array} out [tokens]
 * @param {Float32Array} one holds the single vector, at `at`
 * @param {number} at
 * @param {Float32Array} all holds the vectors of the head, from `base`
 * @param {number} base @param {number} dim
 */
function dotsInto(out, one, at, all, base, dim) {
  const vector = new Float64Array(dim); // doubles: no conversion in the inner loop
  for (let t = 0; t < dim; t++) vector[t] = one[at + t];
  const whole = out.length - (out.length % 4);
  let j = 0;
  for (let p = base; j < whole; j += 4) {
    const q = p + dim; // four tokens at a time: each number of the vector is read once for all four
    const r = q + dim;
    const s = r + dim;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let t = 0; t < dim; t++) {
      const factor = vector[t];
      a += factor * all[p + t];
      b += factor * all[q + t];
      c += factor * all[r + t];
      d += factor * all[s + t];
    }
    out[j] = a;
    out[j + 1] = b;
    out[j + 2] = c;
    out[j + 3] = d;
    p = s + dim;
  }
  for (; j < out.length; j++) {
    let sum = 0;
    for (let t = 0, o = base + j * dim; t < dim; t++) sum += vector[t] * all[o + t];
    out[j] = sum;
  }
}

const STEPS = 32; // of the table, for each unit
const REACH = 104; // exp(-104) is 0 in fp32
const DECAY = Float64Array.from({ length: STEPS * REACH + 1 }, (_, i) => Math.exp(-i / STEPS));

/**
 * exp(-y), with a relative error of less than 3e-9 and in half the time of Math.exp for y from 0 to 104: the nearest entry of a
 * table times the first terms of the series for what is left.
 */
export function decay(/** @type {number} */ y) {
  if (!(y >= 0 && y < REACH)) return Math.exp(-y);
  const i = (y * STEPS + 0.5) | 0;
  const rest = i / STEPS - y; // at most 1/64 in size
  return DECAY[i] * (1 + rest * (1 + rest * (0.5 + rest / 6)));
}

/** Scores to weights that sum to 1, in place. */
export function softmax(/** @type {Float32Array} */ scores) {
  let top = -Infinity;
  for (let j = 0; j < scores.length; j++) if (scores[j] > top) top = scores[j];
  let sum = 0;
  for (let j = 0; j < scores.length; j++) sum += scores[j] = decay(top - scores[j]);
  const scale = 1 / sum;
  for (let j = 0; j < scores.length; j++) scores[j] *= scale;
}

/**
 * One row A[token, :] (what the token looks at) or column A[:, token] (who looks at it) of one head.
 * @param {Float32Array} out [tokens]
 * @param {Layer} layer @param {number} head @param {number} token @param {Direction} direction
 * @param {boolean} [weighted] by ||v_j W_O,h|| of the key (Kobayashi et al. 2020); ignored where norms are unknown
 */
export function attentionInto(out, layer, head, token, direction, weighted = false) {
  const n = layer.tokens;
  if (layer.kind === 'attention') {
    const table = halfFloats();
    const first = head * n * n + (direction === 'row' ? token * n : token);
    const step = direction === 'row' ? 1 : n;
    for (let j = 0; j < n; j++) out[j] = table[layer.bits[first + j * step]];
  } else {
    const base = head * n * layer.headDim;
    const at = base + token * layer.headDim;
    if (direction === 'row') {
      dotsInto(out, layer.q, at, layer.k, base, layer.headDim);
      softmax(out);
    } else {
      dotsInto(out, layer.k, at, layer.q, base, layer.headDim);
      for (let i = 0; i < n; i++) out[i] = decay(layer.lse[head * n + i] - out[i]);
    }
  }
  if (weighted && layer.norms) {
    const norms = layer.norms;
    for (let j = 0; j < n; j++) out[j] *= norms[head * n + (direction === 'row' ? j : token)];
  }
}

/**
 * Mean of the rows (or columns) of a set of tokens, all heads of a layer; grows and shrinks with the set, so that
 * dragging a region costs only the patches that changed.
 */
export class QueryMean {
  /** @param {Layer} layer @param {Direction} direction @param {boolean} weighted */
  constructor(layer, direction, weighted) {
    this.layer = layer;
    this.direction = direction;
    this.weighted = weighted;
    this.sum = new Float32Array(layer.heads * layer.tokens);
    this.row = new Float32Array(layer.tokens);
    /** @type {Set<number>} */
    this.tokens = new Set();
  }

  /**
   * Moves to another set of tokens and writes the mean, [heads, tokens], from `offset` of `out` on.
   * @param {number[]} tokens @param {Float32Array} out @param {number} offset
   */
  into(tokens, out, offset) {
    if (tokens.length === 1) return this.onlyInto(tokens[0], out, offset);
    const wanted = new Set(tokens);
    const added = tokens.filter((t) => !this.tokens.has(t));
    const removed = [...this.tokens].filter((t) => !wanted.has(t));
    if (added.length + removed.length >= tokens.length) {
      this.sum.fill(0);
      for (const token of wanted) this.add(token, 1);
    } else {
      for (const token of added) this.add(token, 1);
      for (const token of removed) this.add(token, -1);
    }
    this.tokens = wanted;
    const share = 1 / wanted.size;
    for (let i = 0; i < this.sum.length; i++) out[offset + i] = Math.max(0, this.sum[i] * share);
  }

  /** As `into`, for one token: nothing to add up; the sum stays that of the set before. */
  onlyInto(/** @type {number} */ token, /** @type {Float32Array} */ out, /** @type {number} */ offset) {
    const { layer, direction, weighted } = this;
    for (let head = 0, at = offset; head < layer.heads; head++, at += layer.tokens) {
      attentionInto(out.subarray(at, at + layer.tokens), layer, head, token, direction, weighted);
    }
  }

  /** @param {number} token @param {number} sign */
  add(token, sign) {
    const n = this.layer.tokens;
    for (let head = 0; head < this.layer.heads; head++) {
      attentionInto(this.row, this.layer, head, token, this.direction, this.weighted);
      for (let j = 0, o = head * n; j < n; j++, o++) this.sum[o] += sign * this.row[j];
    }
  }
}

/**
 * Mean, maximum and minimum over heads, written behind the heads: [heads, tokens] becomes [heads + 3, tokens].
 * @param {Float32Array} cells
 * @param {number} offset where the first head starts
 * @param {number} heads @param {number} tokens
 */
export function fuseHeads(cells, offset, heads, tokens) {
  const behind = offset + heads * tokens;
  for (let j = 0; j < tokens; j++) {
    let sum = 0;
    let high = -Infinity;
    let low = Infinity;
    for (let h = 0, o = offset + j; h < heads; h++, o += tokens) {
      const value = cells[o];
      sum += value;
      if (value > high) high = value;
      if (value < low) low = value;
    }
    cells[behind + j] = sum / heads;
    cells[behind + tokens + j] = high;
    cells[behind + 2 * tokens + j] = low;
  }
}

/** Smallest and largest of values[start..end). @param {Float32Array} values @returns {[number, number]} */
export function extent(values, start = 0, end = values.length) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = start; i < end; i++) {
    const value = values[i];
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/**
 * Where the top `share` of many non-negative values begins, to within 1.6%: counted by the leading bits of the floats, which
 * sort like the numbers, so that nothing is sorted in a repaint.
 */
export class Quantile {
  constructor() {
    this.counts = new Uint32Array(1 << 14);
    this.bits = new Uint32Array(1);
    this.float = new Float32Array(this.bits.buffer);
    this.last = 0;
    this.total = 0;
  }

  binOf(/** @type {number} */ value) {
    this.float[0] = value;
    return this.bits[0] >>> 17;
  }

  /** Starts again for values between `low` and `high`. */
  reset(/** @type {number} */ low, /** @type {number} */ high) {
    this.last = this.binOf(high);
    this.counts.fill(0, this.binOf(low), this.last + 1);
    this.total = 0;
  }

  /** @param {Uint32Array} bits of the floats @param {number} start @param {number} end */
  add(bits, start, end) {
    const { counts } = this;
    for (let i = start; i < end; i++) counts[bits[i] >>> 17]++;
    this.total += end - start;
  }

  /** @param {number} share */
  top(share) {
    let left = Math.floor(share * this.total);
    let at = this.last;
    while (at > 0 && left >= this.counts[at]) left -= this.counts[at--];
    this.bits[0] = (at + 1) << 17; // upper edge of the bin
    return this.float[0];
  }
}

/**
 * What falls on each prefix token, on the suffix tokens of each kind, and on all patches together.
 * @param {Float32Array} cells
 * @param {number} offset where the token axis starts
 * @param {number} numPrefix @param {number} numPatches
 * @param {Iterable<number[]>} [kinds] token indices of the suffix tokens of each kind
 * @returns {number[]} [prefix + kinds + 1]
 */
export function prefixMass(cells, offset, numPrefix, numPatches, kinds = []) {
  const sum = (/** @type {number[]} */ tokens) => tokens.reduce((total, j) => total + cells[offset + j], 0);
  let patches = 0;
  for (let j = numPrefix; j < numPrefix + numPatches; j++) patches += cells[offset + j];
  const prefix = Array.from({ length: numPrefix }, (_, j) => cells[offset + j]);
  return [...prefix, ...Array.from(kinds, sum), patches];
}
