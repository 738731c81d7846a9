// The attention of one layer on the machine, and what is recorded of it: queries, keys, normalisers, norms of values.

import { pairBiases } from './biases.js';
import { headDim, prefixOf } from './config.js';
import { panelsSize } from './machine.js';
import { rotaryOf } from './positions.js';
/** @import { Layer } from '../explorer/attention.js' */
/** @import { Size } from './config.js' */
/** @import { LayerEdits } from './edits.js' */
/** @import { Parameters } from './parts.js' */

const BLOCK = 64; // queries whose scores are computed together, as in heads.ts
const MOST_LAYER_BYTES = 60 * 2 ** 20; // of an attention that has to be kept as it is

/**
 * @typedef {object} Recorded
 * @property {Layer} layer for the explorer
 * @property {Float32Array} q [heads, tokens, head_dim], times the scale @property {Float32Array} k likewise, without it
 * @property {Float32Array} lse [heads, tokens], log of the sum of exp(scores) of each row
 */

/** Where tokens are, as far as scores depend on it: computed once for a grid. */
export class Places {
  /** @param {Parameters} parameters @param {Size} grid @param {number[] | null} [kept] which tokens there are, where some were removed */
  constructor(parameters, grid, kept = null) {
    const { config, machine, tables } = parameters;
    this.config = config;
    this.tables = tables;
    this.grid = grid;
    this.kept = kept;
    const rotary = rotaryOf(config, grid, headDim(config));
    const first = prefixOf(config).length;
    const patches = (kept ?? []).filter((token) => token >= first).map((token) => token - first);
    const left = (/** @type {Float32Array} */ table) =>
      machine.place(kept ? rowsOf(table, patches, headDim(config) / 2) : table);
    this.patches = kept ? patches.length : grid[0] * grid[1];
    this.rotary = rotary && {
      cosines: left(rotary.cosines),
      sines: left(rotary.sines),
      adjacent: rotary.adjacent,
    };
    const shared = tables.get('rel_pos_bias.relative_position_bias_table');
    this.shared = shared ? this.biases(shared) : null;
  }

  /** Of a table, [heads, tokens, tokens]. */
  biases(/** @type {Float32Array} */ table) {
    const all = pairBiases(this.config, table, this.grid);
    const { kept } = this;
    if (!kept) return all;
    const heads = this.config.num_heads;
    const tokens = Math.sqrt(all.length / heads);
    const pairs = Array.from({ length: heads }, (_, h) =>
      kept.flatMap((query) => kept.map((key) => (h * tokens + query) * tokens + key)),
    ).flat();
    return Float32Array.from(pairs, (pair) => all[pair]);
  }

  /** What a layer adds to its scores, [heads, tokens, tokens]; null for nothing. */
  bias(/** @type {string} */ name) {
    const table = this.tables.get(`${name}.relative_position_bias_table`);
    if (!table) return this.shared;
    const own = this.biases(table);
    return this.shared ? own.map((value, i) => value + /** @type {Float32Array} */ (this.shared)[i]) : own;
  }
}

/** Some rows of a table [rows, width]. @param {Float32Array} table @param {number[]} rows @param {number} width */
export function rowsOf(table, rows, width) {
  const chosen = new Float32Array(rows.length * width);
  rows.forEach((row, i) => chosen.set(table.subarray(row * width, (row + 1) * width), i * width));
  return chosen;
}

/** The attention of the layer `name` on the normalised stream x [tokens, dim]. */
export class Attention {
  /** @param {Parameters} parameters @param {string} name @param {Places} places @param {number} tokens */
  constructor(parameters, name, places, tokens) {
    this.parameters = parameters;
    this.machine = parameters.machine;
    this.config = parameters.config;
    this.name = name;
    this.places = places;
    this.tokens = tokens;
    this.heads = this.config.num_heads;
    this.dim = headDim(this.config);
  }

  /**
   * @param {number} x @param {LayerEdits | undefined} edits @param {boolean} isRecorded
   * @param {number} [read] how many tokens, from the first, go on; all look
   * @returns {{y: number, qkv: number, gathered: number, recorded: Recorded | null}} y: what each token gathers, projected, [read, dim];
   *     gathered: the same before the projection and its norm, [tokens, dim]
   */
  run(x, edits, isRecorded, read = this.tokens) {
    const { parameters, machine, config, name, tokens, heads } = this;
    const width = config.embed_dim;
    const qkv = parameters.linear(`${name}.qkv`, x, tokens); // [tokens, 3 dim]
    const v = qkv + 8 * width;
    const q = this.operand(qkv, 'q_norm');
    const k = this.operand(qkv + 4 * width, 'k_norm');
    machine.run.scale(q, tokens * width, (config.scale ?? this.dim ** -0.5) / (edits?.temperature ?? 1));
    for (const h of edits?.uniform ?? [])
      machine.view(q + 4 * h * tokens * this.dim, tokens * this.dim).fill(0);
    const bias = this.bias(edits);
    const bits = bias && isRecorded ? machine.room(roomForAttention(heads, tokens)) : 0;
    const [peaks, sums] = [machine.room(heads * tokens), machine.room(heads * tokens)];
    const gathered = machine.room(tokens * width);
    machine.within(() =>
      edits?.isOverQueries
        ? this.attendOverQueries(q, k, v, bias, gathered)
        : this.attend(q, k, v, { bias, bits, peaks, sums, gathered }),
    );
    if (edits) this.replace(gathered, edits);
    const recorded = isRecorded ? this.record(q, k, peaks, sums, this.valueNorms(v, edits), bits) : null;
    const handed = config.attn_norm ? parameters.norm(`${name}.norm`, gathered, read, width) : gathered;
    return { y: parameters.linear(`${name}.proj`, handed, read), qkv, gathered, recorded };
  }

  /** Queries or keys, [heads, tokens, head_dim], of a third of qkv [tokens, 3 dim]. @param {number} third @param {string} norm */
  operand(third, norm) {
    const { parameters, machine, config, tokens, heads, dim } = this;
    const x = machine.room(tokens * heads * dim);
    machine.run.splitHeads(0, heads, third, 3 * config.embed_dim, x, tokens, dim);
    if (config.qk_norm) parameters.norm(`${this.name}.${norm}`, x, heads * tokens, dim, x);
    const { rotary, patches } = this.places;
    if (!rotary) return x;
    for (let h = 0; h < heads; h++) {
      const first = x + 4 * ((h + 1) * tokens - patches) * dim; // prefix tokens stay as they are
      machine.run.rotate(first, rotary.cosines, rotary.sines, patches, dim / 2, rotary.adjacent ? 1 : 0);
    }
    return x;
  }

  /**
   * softmax(q k^T + bias) v of all heads, into `gathered`.
   * @param {number} q @param {number} k @param {number} v @param {{bias: Float32Array | null, bits: number, peaks: number, sums: number,
   *     gathered: number}} parts
   */
  attend(q, k, v, { bias, bits, peaks, sums, gathered }) {
    const { machine, config, tokens, heads, dim } = this;
    const { run } = machine;
    const width = config.embed_dim;
    const keys = machine.room(heads * panelsSize(tokens, dim));
    const values = machine.room(heads * panelsSize(dim, tokens));
    run.packHeads(0, heads, k, v, 3 * width, keys, values, tokens, dim);
    const scores = machine.room(machine.threads * BLOCK * tokens);
    const added = bias ? machine.place(bias) : 0;
    const blocks = heads * Math.ceil(tokens / BLOCK);
    run.attend(0, blocks, scores, q, keys, values, added, bits, peaks, sums, gathered, width, tokens, dim);
  }

  /** The same with a softmax along the queries. @param {number} q @param {number} k @param {number} v @param {Float32Array | null} bias @param {number} gathered */
  attendOverQueries(q, k, v, bias, gathered) {
    const { machine, config, tokens, heads, dim } = this;
    const { run } = machine;
    const [width, cells] = [config.embed_dim, tokens * tokens];
    const [peaks, sums] = [machine.room(tokens), machine.room(tokens)];
    for (let h = 0; h < heads; h++)
      machine.within(() => {
        const [scores, own] = [machine.room(cells), 4 * h * tokens * dim];
        const { panels } = machine.packed(k + own, tokens, dim);
        run.product(q + own, dim, panels, 0, scores, tokens, tokens, dim, tokens);
        if (bias)
          run.add(scores, machine.place(bias.subarray(h * cells, (h + 1) * cells)), 0, tokens, tokens);
        const turned = machine.transposed(scores, tokens, tokens); // [keys, queries]
        run.softmax(turned, tokens, tokens, peaks, sums);
        const weights = machine.transposed(turned, tokens, tokens);
        const values = machine.packed(v + 4 * h * dim, dim, tokens, 1, 3 * width);
        run.product(weights, tokens, values.panels, 0, gathered + 4 * h * dim, width, tokens, tokens, dim);
      });
  }

  /**
   * The attention of heads, [queries, keys], as it was recorded: one after the other, all at one address.
   * @param {Recorded} recorded @param {LayerEdits | undefined} edits @param {(weights: number, head: number) => void} see
   * @param {number} [only] the head; else all
   */
  eachHead({ q, k }, edits, see, only) {
    const { machine, tokens, heads, dim } = this;
    const [size, cells] = [tokens * dim, tokens * tokens];
    const bias = this.bias(edits);
    const [weights, peaks, sums] = [cells, tokens, tokens].map((count) => machine.room(count));
    for (let h = only ?? 0; h < (only === undefined ? heads : only + 1); h++) {
      machine.within(() => {
        const [queries, keys] = [q, k].map((all) => machine.place(all.subarray(h * size, (h + 1) * size)));
        const { panels } = machine.packed(keys, tokens, dim);
        machine.run.product(queries, dim, panels, 0, weights, tokens, tokens, dim, tokens);
        const added = bias?.subarray(h * cells, (h + 1) * cells);
        if (added) machine.run.add(weights, machine.place(added), 0, tokens, tokens);
        machine.run.softmax(weights, tokens, tokens, peaks, sums);
      });
      machine.within(() => see(weights, h));
    }
  }

  /** What is added to the scores: with edits some heads look alike at all tokens, and some tokens no longer see others. @param {LayerEdits | undefined} edits */
  bias(edits) {
    const { tokens, heads, places, name } = this;
    if (!edits) return places.bias(name);
    const { uniform, forbidden } = edits;
    const cells = tokens * tokens;
    const bias = places.bias(name)?.slice() ?? (forbidden ? new Float32Array(heads * cells) : null);
    for (const h of bias ? uniform : []) bias?.fill(0, h * cells, (h + 1) * cells);
    if (bias && forbidden)
      for (let i = 0; i < bias.length; i++) if (forbidden[i % cells]) bias[i] = -Infinity;
    return bias;
  }

  /** Heads at their mean, and those that are off, in what all gather, [tokens, heads * head_dim]. @param {number} gathered @param {LayerEdits} edits */
  replace(gathered, { mean, off }) {
    const { machine, tokens, dim, config } = this;
    const width = config.embed_dim;
    const all = machine.view(gathered, tokens * width);
    for (const column of mean.flatMap((h) => columnsOf(h, dim))) {
      let sum = 0;
      for (let at = column; at < all.length; at += width) sum += all[at];
      for (let at = column; at < all.length; at += width) all[at] = sum / tokens;
    }
    for (const column of off.flatMap((h) => columnsOf(h, dim)))
      for (let at = column; at < all.length; at += width) all[at] = 0;
  }

  /**
   * ||v_j W_O,h||, [heads, tokens]: the root of v_j G_h v_j^T; null where no linear layer reads the attention directly. A head that is
   * off, or says the same to every token, moves nothing.
   * @param {number} v @param {LayerEdits} [edits]
   */
  valueNorms(v, edits) {
    const { parameters, machine, config, tokens, heads, dim } = this;
    const grams = parameters.grams.get(this.name);
    if (grams === undefined) return null;
    return machine.within(() => {
      const squares = machine.room(heads * tokens);
      const turned = machine.room(machine.threads * tokens * dim);
      machine.run.valueSquares(0, heads, turned, v, 3 * config.embed_dim, grams, squares, tokens, dim);
      const norms = machine.read(squares, heads * tokens).map((square) => Math.sqrt(Math.max(0, square)));
      for (const h of edits ? [...edits.off, ...edits.mean] : []) norms.fill(0, h * tokens, (h + 1) * tokens);
      return norms;
    });
  }

  /**
   * @param {number} qAt @param {number} kAt @param {number} peaks @param {number} sums @param {Float32Array | null} norms
   * @param {number} bitsAt @returns {Recorded}
   */
  record(qAt, kAt, peaks, sums, norms, bitsAt) {
    const { machine, tokens, heads, dim } = this;
    const [q, k] = [qAt, kAt].map((at) => machine.read(at, heads * tokens * dim));
    const lse = machine.read(peaks, heads * tokens);
    machine.view(sums, heads * tokens).forEach((sum, i) => (lse[i] += Math.log(sum)));
    const cells = heads * tokens * tokens;
    const bits = bitsAt ? new Uint16Array(machine.memory.buffer, bitsAt, cells).slice() : null;
    /** @type {Layer} */
    const layer = bits
      ? { kind: 'attention', heads, tokens, bits, norms }
      : { kind: 'qk', heads, tokens, headDim: dim, q, k, lse, norms };
    return { layer, q, k, lse };
  }
}

/** The columns of a head in what all gather. @param {number} head @param {number} dim */
function columnsOf(head, dim) {
  return Array.from({ length: dim }, (_, i) => head * dim + i);
}

/** Of fp16, in numbers of float32. */
function roomForAttention(/** @type {number} */ heads, /** @type {number} */ tokens) {
  if (2 * heads * tokens * tokens > MOST_LAYER_BYTES)
    throw new Error(
      `The attention of this model between ${tokens} tokens is too large to be kept in the page; please choose a smaller size.`,
    );
  return (heads * tokens * tokens) / 2;
}
