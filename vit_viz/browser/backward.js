// The reverse of a forward pass: the gradient of one number of the outputs, from the last block to the first.
//
// With o = A v the gradient of a head's attention A is g v^T, where g is that of o: g and v of each layer stand for it. Gradients of the
// parameters are not needed. What a block computes between its input and its output is computed again, so that a pass keeps none of it.

import { Attention, Places } from './attend.js';
import { headDim, poolMlp, prefixOf, tokensRead } from './config.js';
import { panelsSize } from './machine.js';
import { ACTIVATIONS } from './parts.js';
/** @import { Edits } from './edits.js' */
/** @import { Model, Pass } from './model.js' */
/** @import { Packed } from './machine.js' */

/**
 * Of the attention of a layer: the gradient of what its heads gather, and their values, each [tokens, dim].
 * @typedef {{g: Float32Array, v: Float32Array}} Slopes
 */

export class Backward {
  /** @param {Model} model @param {Pick<Pass, 'grid' | 'layers' | 'residual'>} pass @param {Edits} edits of the pass */
  constructor(model, pass, edits) {
    this.model = model;
    this.parameters = model.parameters;
    this.machine = model.machine;
    this.config = model.config;
    this.pass = pass;
    this.edits = edits;
    this.tokens = pass.residual[0].length / this.config.embed_dim;
  }

  // --- blocks

  /**
   * From g, the gradient by the stream after a block, [tokens, dim], to that by what its heads gather.
   * @param {number} layer @param {Float32Array} g of which only tokens that the output is read from have some where it is not `isWhole`
   * @param {boolean} isWhole @returns {Slopes}
   */
  slopes(layer, g, isWhole) {
    return this.machine.within(() => this.throughHeads(layer, this.machine.place(g), isWhole).slopes);
  }

  /**
   * Likewise, and to the gradient by the stream before the block, `before`; `read`: what its queries, keys and values are projected from,
   * and the gradient by it, each [tokens, dim].
   * @param {number} layer @param {Float32Array} g @param {boolean} isWhole
   */
  block(layer, g, isWhole) {
    const { machine, config, pass, tokens } = this;
    const dim = config.embed_dim;
    return machine.within(() => {
      const stream = machine.place(g);
      const { slopes, attention, x, qkv, heads } = this.throughHeads(layer, stream, isWhole);
      const own = machine.within(() => this.throughAttention(layer, attention, qkv, heads));
      const back = this.linear(`blocks.${layer}.attn.qkv`, machine.place(own), tokens);
      const read = { values: machine.read(x, tokens * dim), g: machine.read(back, tokens * dim) };
      this.norm(`blocks.${layer}.norm1`, machine.place(pass.residual[layer]), back, tokens, dim);
      machine.run.add(stream, back, 0, tokens, dim);
      return { slopes, read, before: machine.read(stream, tokens * dim) };
    });
  }

  /** Changes g to the gradient by the stream between attention and MLP, and adds that by what the heads gather. @param {number} layer @param {number} g @param {boolean} isWhole */
  throughHeads(layer, g, isWhole) {
    const { machine, parameters, config, pass, tokens } = this;
    const { run } = machine;
    const [dim, name, edits] = [config.embed_dim, `blocks.${layer}`, this.edits.get(layer)];
    const rows = isWhole ? tokens : tokensRead(config, tokens);
    const scaled = (/** @type {string} */ gain) => {
      const gamma = parameters.vector(`${name}.${gain}.gamma`);
      if (!gamma) return g;
      const y = machine.place(new Float32Array(rows * dim));
      run.add(y, g, gamma, rows, dim);
      return y;
    };
    const stream = machine.place(pass.residual[layer]);
    const x = parameters.norm(`${name}.norm1`, stream, tokens, dim);
    const attention = new Attention(parameters, `${name}.attn`, new Places(parameters, pass.grid), tokens);
    const { y, qkv, gathered } = attention.run(x, edits, false, rows);
    run.add(stream, y, parameters.vector(`${name}.ls1.gamma`), rows, dim);
    const thought = this.mlp(
      `${name}.mlp`,
      parameters.norm(`${name}.norm2`, stream, rows, dim),
      scaled('ls2'),
      rows,
    );
    this.norm(`${name}.norm2`, stream, thought, rows, dim);
    run.add(g, thought, 0, rows, dim);
    const heads = machine.place(new Float32Array(tokens * dim));
    machine.within(() => {
      const back = this.linear(`${name}.attn.proj`, scaled('ls1'), rows);
      if (config.attn_norm) this.norm(`${name}.attn.norm`, gathered, back, rows, dim);
      run.copy(back, dim, heads, dim, rows, dim);
    });
    if (edits) attention.replace(heads, edits); // a mean is its own reverse
    const v = machine.room(tokens * dim);
    run.copy(qkv + 8 * dim, 3 * dim, v, dim, tokens, dim);
    const slopes = { g: machine.read(heads, tokens * dim), v: machine.read(v, tokens * dim) };
    return { slopes, attention, x, qkv, heads };
  }

  /** The gradient by queries, keys and values, [tokens, 3 dim]. @param {number} layer @param {Attention} attention @param {number} qkv @param {number} g by what the heads gather */
  throughAttention(layer, attention, qkv, g) {
    const { machine, config, pass, tokens } = this;
    const { run } = machine;
    const [dim, d, edits] = [config.embed_dim, headDim(config), this.edits.get(layer)];
    const { places, name } = attention;
    const recorded = pass.layers[layer];
    const result = machine.place(new Float32Array(3 * tokens * dim));
    const scale = (config.scale ?? d ** -0.5) / (edits?.temperature ?? 1);
    const sines = places.rotary && machine.room((places.patches * d) / 2);
    if (places.rotary && sines) {
      run.copy(places.rotary.sines, 0, sines, 0, 1, (places.patches * d) / 2);
      run.scale(sines, (places.patches * d) / 2, -1); // it is turned back
    }
    attention.eachHead(recorded, edits, (weights, h) => {
      const own = (/** @type {Float32Array} */ all) =>
        machine.place(all.subarray(h * tokens * d, (h + 1) * tokens * d));
      /** The rows of what is weighted by a matrix, from those that weigh: weights^T x. */
      const weighed = (/** @type {number} */ by, /** @type {number} */ x, /** @type {number} */ stride) => {
        const { panels } = machine.packed(by, tokens, tokens, 1, tokens);
        const y = machine.room(d * tokens);
        run.product(
          machine.transposed(x, tokens, d, stride),
          tokens,
          panels,
          0,
          y,
          tokens,
          d,
          tokens,
          tokens,
        );
        return machine.transposed(y, d, tokens);
      };
      /** Through what became of a third of qkv on its way to the scores. */
      const back = (/** @type {number} */ third, /** @type {string} */ norm, /** @type {number} */ y) => {
        if (places.rotary) {
          const first = y + 4 * (tokens - places.patches) * d;
          const { cosines, adjacent } = places.rotary;
          run.rotate(first, cosines, Number(sines), places.patches, d / 2, adjacent ? 1 : 0);
        }
        const at = 4 * (third * dim + h * d);
        if (config.qk_norm) {
          const x = machine.room(tokens * d);
          run.copy(qkv + at, 3 * dim, x, d, tokens, d);
          this.norm(`${name}.${norm}`, x, y, tokens, d);
        }
        run.copy(y, d, result + at, 3 * dim, tokens, d);
      };
      const v = weighed(weights, g + 4 * h * d, dim);
      run.copy(v, d, result + 4 * (2 * dim + h * d), 3 * dim, tokens, d);
      const scores = slopesOf(this.model, tokens, h, g, qkv + 8 * dim, 3 * dim);
      run.softmaxBack(weights, scores, tokens, tokens);
      if (edits?.uniform.includes(h)) return; // its scores depend on nothing
      const { panels } = machine.packed(own(recorded.k), d, tokens, 1, d);
      const q = machine.room(tokens * d);
      run.product(scores, tokens, panels, 0, q, d, tokens, tokens, d);
      run.scale(q, tokens * d, scale);
      back(0, 'q_norm', q);
      back(1, 'k_norm', weighed(scores, own(recorded.q), d)); // the recorded queries have the scale
    });
    return machine.read(result, 3 * tokens * dim);
  }

  // --- from the outputs

  /**
   * The gradient of the sum of the outputs, each with its weight, by a stream of tokens from which they are read, [tokens, dim]; pool: of the
   * weights of attention pooling that of each head and token, and the gradient by it, [heads, tokens], its query, [dim], and the keys, [tokens, dim].
   * @param {Float32Array} stream @param {ArrayLike<number>} weights
   */
  outputs(stream, weights) {
    const { machine, parameters, config, tokens } = this;
    const dim = config.embed_dim;
    const count = tokensRead(config, tokens);
    return machine.within(() => {
      const before = machine.place(stream);
      const x = config.final_norm ? parameters.norm('norm', before, count, dim) : before;
      const g = machine.place(new Float32Array(tokens * dim));
      const first = config.pool_prefix ? 0 : prefixOf(config).length;
      const patches = tokens - first;
      const [ofPatches, all] = [4 * first * dim, Array.from(weights)];
      const spread = (/** @type {number} */ one) => {
        const share = machine.view(one, dim).map((value) => value / patches);
        for (let i = 0; i < patches; i++) machine.view(g + ofPatches + 4 * i * dim, dim).set(share);
      };
      let pool = null;
      if (config.dist_head) {
        const halves = all.map((weight) => weight / 2);
        ['head', 'head_dist'].forEach((name, i) =>
          machine.run.copy(this.pooled(name, x + 4 * i * dim, halves), dim, g + 4 * i * dim, dim, 1, dim),
        );
      } else if (config.pooling === 'attention')
        pool = this.attentionPool(x + ofPatches, g + ofPatches, all, first);
      else if (config.pool_concat) {
        const both = this.head('head', all);
        spread(both + 4 * dim);
        machine.run.copy(both, dim, g, dim, 1, dim);
      } else if (config.pooling === 'class')
        machine.run.copy(this.pooled('head', x, all), dim, g, dim, 1, dim);
      else spread(this.pooled('head', this.model.mean(x + ofPatches, patches), all));
      if (config.final_norm) this.norm('norm', before, g, count, dim);
      return { g: machine.read(g, tokens * dim), pool };
    });
  }

  /** By a pooled vector. @param {string} name @param {number} x @param {number[]} weights */
  pooled(name, x, weights) {
    const g = this.head(name, weights);
    if (this.config.fc_norm) this.norm('fc_norm', x, g, 1, this.config.embed_dim);
    return g;
  }

  /** By the features. @param {string} name @param {number[]} weights */
  head(name, weights) {
    const g = this.machine.place(weights);
    return this.config.num_classes ? this.linear(name, g, 1) : g;
  }

  /** Into g, the gradient by the patches x of a learned pool. @param {number} x @param {number} g @param {number[]} weights @param {number} first token that is pooled */
  attentionPool(x, g, weights, first) {
    const { machine, parameters, config, tokens } = this;
    const { run } = machine;
    const [dim, d, heads, count] = [config.embed_dim, headDim(config), config.num_heads, tokens - first];
    const { y, gathered, q, kv, weights: shares } = this.model.attentionPool(x, count);
    const own = this.pooled('head', y, weights);
    const normed = parameters.norm('attn_pool.norm', gathered, 1, dim);
    const thought = this.mlp('attn_pool.mlp', normed, own, 1, poolMlp(config));
    this.norm('attn_pool.norm', gathered, thought, 1, dim);
    run.add(own, thought, 0, 1, dim);
    const sums = this.linear('attn_pool.proj', own, 1);
    const [back, slopes] = [machine.room(2 * count * dim), machine.room(heads * count)];
    const values = machine.room(panelsSize(count, d));
    for (let h = 0; h < heads; h++) {
      const at = slopes + 4 * h * count;
      run.pack(kv + 4 * (dim + h * d), 2 * dim, 1, values, count, d);
      run.product(sums + 4 * h * d, d, values, 0, at, count, 1, d, count);
    }
    const pool = {
      ...{ weights: new Float32Array(heads * tokens), slopes: new Float32Array(heads * tokens) },
      ...{ query: machine.read(q, dim), keys: new Float32Array(tokens * dim) },
    };
    for (let token = 0; token < count; token++)
      pool.keys.set(machine.view(kv + 8 * token * dim, dim), (first + token) * dim);
    const [read, found] = [shares, slopes].map((at) => machine.read(at, heads * count));
    for (let h = 0; h < heads; h++) {
      pool.weights.set(read.subarray(h * count, (h + 1) * count), h * tokens + first);
      pool.slopes.set(found.subarray(h * count, (h + 1) * count), h * tokens + first);
    }
    run.softmaxBack(shares, slopes, heads, count);
    const [scores, all] = [machine.view(slopes, heads * count), machine.view(back, 2 * count * dim)];
    const [queries, gs] = [machine.view(q, dim), machine.view(sums, dim)];
    for (let token = 0; token < count; token++)
      for (let i = 0; i < dim; i++) {
        const at = Math.floor(i / d) * count + token;
        all[2 * token * dim + i] = scores[at] * queries[i];
        all[(2 * token + 1) * dim + i] = read[at] * gs[i];
      }
    run.copy(this.linear('attn_pool.kv', back, count), dim, g, dim, count, dim);
    return pool;
  }

  // --- parts

  /** Through x W^T: [rows, to] -> [rows, from]; address of the result. @param {string} name @param {number} g @param {number} rows */
  linear(name, g, rows) {
    const { machine } = this;
    const { panels, rows: to, cols: from } = /** @type {Packed} */ (this.parameters.matrices.get(name));
    const y = machine.room(rows * from);
    machine.within(() => {
      const w = machine.room(to * from);
      machine.run.unpack(panels, w, to, from);
      const { panels: turned } = machine.packed(w, from, to, 1, from);
      machine.run.product(g, to, turned, 0, y, from, rows, to, from);
    });
    return y;
  }

  /** Through the norm of x, in place. @param {string} name @param {number} x @param {number} g @param {number} rows @param {number} dim */
  norm(name, x, g, rows, dim) {
    const { norm, norm_eps: eps } = this.config;
    const gain = this.parameters.vector(`${name}.weight`);
    this.machine.run.normBack(x, g, gain, rows, dim, eps, norm === 'layer' ? 1 : 0);
  }

  /** Through an MLP, of what it was given, x [rows, dim], and the gradient by what it returned; address of the result. @param {string} name @param {number} x @param {number} g @param {number} rows */
  mlp(name, x, g, rows, kind = this.config.mlp) {
    const { machine, parameters, config } = this;
    const { run } = machine;
    const { mlp_hidden: stride } = config;
    const { gate, value, width } = parameters.hidden(name, x, rows, kind);
    const back = this.linear(`${name}.fc2`, g, rows);
    if (config.mlp_norm) {
      const own = value ? gate : machine.place(machine.read(gate, rows * width)); // it is activated in place
      const y = parameters.activated(own, value, rows, width, kind);
      this.norm(`${name}.norm`, y, back, rows, width);
    }
    if (value) run.gatedBack(gate, value, stride, back, rows, width);
    else run[/** @type {'geluBack'} */ (`${ACTIVATIONS[kind]}Back`)](gate, back, rows * width);
    if (kind !== 'swiglu') return this.linear(`${name}.fc1`, value ? gate : back, rows);
    const y = this.linear(`${name}.fc1_g`, gate, rows);
    run.add(y, this.linear(`${name}.fc1_x`, value, rows), 0, rows, config.embed_dim);
    return y;
  }
}

/**
 * Address of the gradient by a head's attention, g v^T, [tokens, tokens], from those by what it gathers, [tokens, dim], and its values, whose rows have a stride.
 * @param {Model} model @param {number} tokens @param {number} h the head @param {number} g @param {number} v @param {number} stride
 */
export function slopesOf({ machine, config }, tokens, h, g, v, stride) {
  const [dim, d] = [config.embed_dim, headDim(config)];
  const slopes = machine.room(tokens * tokens);
  machine.within(() => {
    const { panels } = machine.packed(v + 4 * h * d, tokens, d, stride, 1);
    machine.run.product(g + 4 * h * d, dim, panels, 0, slopes, tokens, tokens, d, tokens);
  });
  return slopes;
}
