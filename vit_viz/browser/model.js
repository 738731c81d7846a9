// A Vision Transformer in the page: the forward pass of vit_viz/model/vit.py, and what an explorer shows of it.

import { Attention, Places, rowsOf } from './attend.js';
import {
  checkedConfig,
  gridOf,
  headDim,
  parametersOf,
  poolMlp,
  positionedPrefix,
  prefixOf,
  tokensRead,
} from './config.js';
import { Machine, MOST_BYTES, panelsSize } from './machine.js';
import { Parameters } from './parts.js';
import { positionTable } from './positions.js';
import { BadFile, jsonOf } from './weights.js';
/** @import { Recorded } from './attend.js' */
/** @import { Config, Size } from './config.js' */
/** @import { Edits, LayerEdits } from './edits.js' */
/** @import { Wasm } from './wasm.js' */
/** @import { Weights } from './weights.js' */
/** A file's parameters in our format. @typedef {Pick<Weights, 'metadata' | 'shapes' | 'tensors'>} Source */

/**
 * @typedef {object} Input
 * @property {Float32Array} pixels normalised, [channels, height, width] @property {number} height @property {number} width
 * @property {ArrayLike<number>} [order] which patch stands at each place, where they do not stand at their own
 *
 * @typedef {object} Pass one forward pass
 * @property {Size} grid @property {string[]} prefix names of the tokens before the patches
 * @property {Recorded[]} layers
 * @property {Float32Array[]} residual the stream before the first and after each block, each [tokens, dim]
 * @property {Float32Array} logits pooled features where the model has no head
 * @property {Float32Array | null} pool weights of the tokens in attention pooling, the mean over its heads
 */

export class Model {
  /** @param {Config} config @param {Parameters} parameters */
  constructor(config, parameters) {
    this.config = config;
    this.parameters = parameters;
    this.machine = parameters.machine;
  }

  /**
   * The model of a file. Throws one sentence where the file does not hold what its configuration needs.
   * @param {Source} weights @param {Wasm} wasm @param {(read: number, all: number) => void} [progress] of bytes
   */
  static async load(weights, wasm, progress) {
    const config = checkedConfig(jsonOf(weights.metadata.config));
    checkShapes(weights.shapes(), parametersOf(config));
    checkRoom([...parametersOf(config).values()]);
    const parameters = new Parameters(await Machine.from(wasm), config);
    try {
      for await (const { name, shape, numbers } of weights.tensors(progress)) {
        checkFinite(name, numbers);
        parameters.add(name, shape, numbers);
      }
    } catch (error) {
      parameters.machine.close();
      throw error;
    }
    return new Model(config, parameters);
  }

  /**
   * @param {Input} input @param {(layer: number, depth: number) => void} [progress] told after each block
   * @returns {Pass}
   */
  run(input, progress = () => {}) {
    const { machine } = this;
    return machine.within(() => {
      const { x, grid, prefix, tokens } = this.entered(input);
      const before = {
        grid,
        prefix,
        layers: [],
        residual: [machine.read(x, tokens * this.config.embed_dim)],
      };
      return this.recorded(before, x, new Map(), progress);
    });
  }

  /** The pass under edits, from the first layer that they change. @param {Pass} pass @param {Edits} edits @returns {Pass} */
  edited(pass, edits) {
    const first = Math.min(this.config.depth, ...edits.keys());
    const { grid, prefix, layers, residual } = pass;
    const before = { grid, prefix, layers: layers.slice(0, first), residual: residual.slice(0, first + 1) };
    return this.machine.within(() =>
      this.recorded(before, this.machine.place(residual[first]), edits, () => {}),
    );
  }

  /** What a stream of tokens, which enters the first block or a later one, becomes, with all that is recorded of it. @returns {Pass} */
  recorded(
    /** @type {Pick<Pass, 'grid' | 'prefix' | 'layers' | 'residual'>} */ { grid, prefix, layers, residual },
    /** @type {number} */ x,
    /** @type {Edits} */ edits,
    /** @type {(layer: number, depth: number) => void} */ progress,
  ) {
    const { machine, config } = this;
    const { depth, embed_dim: dim } = config;
    const tokens = residual[0].length / dim;
    const places = new Places(this.parameters, grid);
    for (let layer = layers.length; layer < depth; layer++) {
      const of = machine.within(() => this.block(layer, x, places, tokens, edits.get(layer), true));
      layers.push(/** @type {Recorded} */ (of));
      residual.push(machine.read(x, tokens * dim));
      progress(layer + 1, depth);
    }
    const { logits, pool } = this.classify(x, tokens);
    return { grid, prefix, layers, residual, logits, pool };
  }

  /**
   * What the model says of a stream of tokens that enters a layer, [tokens, dim]; nothing is recorded.
   * @param {Float32Array} stream @param {number} first the layer @param {Size} grid @param {Edits} edits
   * @param {number[] | null} [kept] the tokens that there are, where others are removed; they keep their positions
   */
  outputs(stream, first, grid, edits, kept = null) {
    const { machine, config } = this;
    const { depth, embed_dim: dim } = config;
    return machine.within(() => {
      const x = machine.place(kept ? rowsOf(stream, kept, dim) : stream);
      const tokens = kept?.length ?? stream.length / dim;
      const places = new Places(this.parameters, grid, kept);
      for (let layer = first; layer < depth; layer++)
        machine.within(() => this.block(layer, x, places, tokens, edits.get(layer), false));
      return this.classify(x, tokens).logits;
    });
  }

  /** The stream that enters the first block, [tokens, dim]. @param {Input} input */
  stream(input) {
    const { machine, config } = this;
    return machine.within(() => {
      const { x, tokens } = this.entered(input);
      return machine.read(x, tokens * config.embed_dim);
    });
  }

  /** The tokens of an input, at the address x. @param {Input} input */
  entered(input) {
    const { config } = this;
    const grid = gridOf(config, input.height, input.width);
    if (grid[0] * grid[1] === 0) throw new Error('This input is smaller than a patch.');
    if (input.pixels.length !== config.in_chans * input.height * input.width)
      throw new Error(`The model expects pixels [${config.in_chans}, height, width].`);
    const prefix = prefixOf(config);
    const tokens = prefix.length + grid[0] * grid[1];
    return { x: this.tokens(input, grid, tokens), grid, prefix, tokens };
  }

  /** The sequence that enters the first block, [tokens, dim]: prefix tokens, then patches, with their positions; its address. */
  tokens(/** @type {Input} */ input, /** @type {Size} */ grid, /** @type {number} */ tokens) {
    const { machine, config, parameters } = this;
    const dim = config.embed_dim;
    const patches = grid[0] * grid[1];
    const first = tokens - patches;
    const x = machine.room(tokens * dim);
    machine.within(() => {
      const embedded = parameters.linear(
        'patch_embed.proj',
        machine.place(patchesOf(config, input, grid)),
        patches,
      );
      if (config.patch_norm) parameters.norm('patch_embed.norm', embedded, patches, dim, embedded);
      machine.run.copy(embedded, dim, x + 4 * first * dim, dim, patches, dim);
      const table = positionTable(config, parameters.tables.get('pos_embed'), grid);
      const own = ['cls_token', 'dist_token', 'reg_token'].flatMap(
        (name) => parameters.tables.get(name) ?? [],
      );
      const prefix = machine.view(x, first * dim);
      own.reduce((at, token) => (prefix.set(token, at), at + token.length), 0);
      if (!table) return;
      const at = x + 4 * (first - positionedPrefix(config)) * dim; // prefix tokens without a position of their own get none
      machine.run.add(at, machine.place(table), 0, table.length / dim, dim);
    });
    if (config.pre_norm) parameters.norm('norm_pre', x, tokens, dim, x);
    return x;
  }

  /**
   * Changes the residual stream x as a block does, and returns what is recorded of its attention. Of the last block, where nothing is
   * recorded, only the tokens go on that the output is read from. @returns {Recorded | null}
   */
  block(
    /** @type {number} */ layer,
    /** @type {number} */ x,
    /** @type {Places} */ places,
    /** @type {number} */ tokens,
    /** @type {LayerEdits | undefined} */ edits,
    /** @type {boolean} */ isRecorded,
  ) {
    const { machine, parameters, config } = this;
    const dim = config.embed_dim;
    const name = `blocks.${layer}`;
    const read = isRecorded || layer < config.depth - 1 ? tokens : tokensRead(config, tokens);
    const attention = new Attention(parameters, `${name}.attn`, places, tokens);
    const { y, recorded } = attention.run(
      parameters.norm(`${name}.norm1`, x, tokens, dim),
      edits,
      isRecorded,
      read,
    );
    machine.run.add(x, y, parameters.vector(`${name}.ls1.gamma`), read, dim);
    const thought = parameters.mlp(`${name}.mlp`, parameters.norm(`${name}.norm2`, x, read, dim), read);
    machine.run.add(x, thought, parameters.vector(`${name}.ls2.gamma`), read, dim);
    return recorded;
  }

  /** Logits of the residual stream after the last block, and the weights of its pooling. */
  classify(/** @type {number} */ stream, /** @type {number} */ tokens) {
    const { machine, parameters, config } = this;
    const dim = config.embed_dim;
    const x = config.final_norm ? parameters.norm('norm', stream, tokensRead(config, tokens), dim) : stream;
    if (config.dist_head) {
      const [own, other] = ['head', 'head_dist'].map((name, i) =>
        this.head(name, this.finished(x + 4 * i * dim)),
      );
      return { logits: own.map((value, i) => (value + other[i]) / 2), pool: null };
    }
    const first = config.pool_prefix ? 0 : prefixOf(config).length;
    const patches = x + 4 * first * dim;
    if (config.pooling === 'attention') {
      const [count, heads] = [tokens - first, config.num_heads];
      const { y, weights } = this.attentionPool(patches, count);
      const pool = new Float32Array(tokens);
      machine
        .view(weights, heads * count)
        .forEach((weight, i) => (pool[first + (i % count)] += weight / heads));
      return { logits: this.head('head', this.finished(y)), pool };
    }
    if (config.pool_concat)
      return { logits: this.head('head', this.joined(x, patches, tokens - first)), pool: null };
    const pooled = config.pooling === 'class' ? x : this.mean(patches, tokens - first);
    return { logits: this.head('head', this.finished(pooled)), pool: null };
  }

  /** A pooled vector after the norm that follows pooling. */
  finished(/** @type {number} */ x) {
    return this.config.fc_norm ? this.parameters.norm('fc_norm', x, 1, this.config.embed_dim) : x;
  }

  head(/** @type {string} */ name, /** @type {number} */ x) {
    const { machine, config } = this;
    const features = config.embed_dim * (config.pool_concat ? 2 : 1);
    if (!config.num_classes) return machine.read(x, features);
    return machine.read(this.parameters.linear(name, x, 1), config.num_classes);
  }

  /** The mean of rows [rows, dim]. */
  mean(/** @type {number} */ x, /** @type {number} */ rows) {
    const dim = this.config.embed_dim;
    const sums = new Float64Array(dim);
    this.machine.view(x, rows * dim).forEach((value, i) => (sums[i % dim] += value));
    return this.machine.place(sums.map((sum) => sum / rows));
  }

  /** The class token and the mean of the patches side by side. */
  joined(/** @type {number} */ x, /** @type {number} */ patches, /** @type {number} */ count) {
    const dim = this.config.embed_dim;
    const mean = this.mean(patches, count);
    return this.machine.place([...this.machine.view(x, dim), ...this.machine.view(mean, dim)]);
  }

  /** A learned query looks at all patches; y: what it gathers and thinks, gathered: before it thinks, weights: of the patches, [heads, count]. */
  attentionPool(/** @type {number} */ x, /** @type {number} */ count) {
    const { machine, parameters, config } = this;
    const { run } = machine;
    const [dim, d, heads] = [config.embed_dim, headDim(config), config.num_heads];
    const latent = /** @type {Float32Array} */ (parameters.tables.get('attn_pool.latent'));
    const q = parameters.linear('attn_pool.q', machine.place(latent), 1);
    run.scale(q, dim, d ** -0.5);
    const kv = parameters.linear('attn_pool.kv', x, count); // [count, 2 dim]
    const [sums, weights, peak, sum] = [dim, heads * count, 1, 1].map((size) => machine.room(size));
    const values = machine.room(panelsSize(d, count));
    for (let h = 0; h < heads; h++) {
      const scores = weights + 4 * h * count;
      const keys = machine.packed(kv + 4 * h * d, count, d, 2 * dim).panels;
      run.pack(kv + 4 * (dim + h * d), 1, 2 * dim, values, d, count);
      run.product(q + 4 * h * d, d, keys, 0, scores, count, 1, d, count);
      run.softmax(scores, 1, count, peak, sum);
      run.product(scores, count, values, 0, sums + 4 * h * d, d, 1, count, d);
    }
    const gathered = parameters.linear('attn_pool.proj', sums, 1);
    const y = parameters.mlp(
      'attn_pool.mlp',
      parameters.norm('attn_pool.norm', gathered, 1, dim),
      1,
      poolMlp(config),
    );
    run.add(y, gathered, 0, 1, dim);
    return { y, gathered, q, kv, weights };
  }
}

/** @param {Map<string, number[]>} own @param {Map<string, number[]>} wanted */
function checkShapes(own, wanted) {
  for (const [name, shape] of wanted) {
    const there = own.get(name);
    if (!there) throw new BadFile(`This file lacks the parameter "${name}", which its model needs.`);
    if (there.join() !== shape.join())
      throw new BadFile(
        `The parameter "${name}" of this file is [${there}], but its model needs [${shape}].`,
      );
  }
  const more = [...own.keys()].find((name) => !wanted.has(name));
  if (more !== undefined)
    throw new BadFile(`This file has a parameter "${more}", which its model does not use.`);
}

/** Refuses a model that no page can hold, before its numbers are read. @param {number[][]} shapes */
function checkRoom(shapes) {
  const gigabytes = shapes.reduce((sum, shape) => sum + 4 * shape.reduce((a, b) => a * b, 1), 0) / 1e9;
  if (gigabytes * 1e9 > MOST_BYTES)
    throw new BadFile(
      `This model needs ${gigabytes.toFixed(1)} GB of memory, and a page has ${(MOST_BYTES / 1e9).toFixed(1)}: the app opens it.`,
    );
}

/** @param {string} name @param {Float32Array} numbers */
function checkFinite(name, numbers) {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += 0 * numbers[i]; // of what is not finite, it is no number
  if (sum !== 0) throw new BadFile(`The parameter "${name}" of this file holds numbers that are not finite.`);
}

/** The pixels of each patch, [patches, channels * tall * wide]; zeros beyond the edge. */
export function patchesOf(
  /** @type {Config} */ config,
  /** @type {Input} */ { pixels, height, width, order },
  /** @type {Size} */ [rows, cols],
) {
  const [tall, wide] = config.patch_size;
  const patches = new Float32Array(rows * cols * config.in_chans * tall * wide);
  let at = 0;
  for (let place = 0; place < rows * cols; place++) {
    const patch = order?.[place] ?? place;
    const [row, col] = [Math.floor(patch / cols), patch % cols];
    for (let c = 0; c < config.in_chans; c++) {
      for (let y = row * tall; y < (row + 1) * tall; y++, at += wide) {
        const start = (c * height + y) * width + col * wide;
        if (y < height) patches.set(pixels.subarray(start, start + Math.min(wide, width - col * wide)), at);
      }
    }
  }
  return patches;
}
