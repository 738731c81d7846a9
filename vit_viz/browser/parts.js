// The parts of a model on the machine: its parameters by name, and the layers that blocks and pooling are made of.

import { headDim } from './config.js';
import { panelsSize } from './machine.js';
/** @import { Config } from './config.js' */
/** @import { Machine, Packed } from './machine.js' */

/** Names of kernels. @type {Record<string, 'gelu' | 'quickGelu' | 'geluTanh'>} */
export const ACTIVATIONS = { gelu: 'gelu', quick_gelu: 'quickGelu', gelu_tanh: 'geluTanh' };

/** A matrix in panels, the address of a vector, or numbers that are worked with in JavaScript: tokens and tables. */
export class Parameters {
  /** @param {Machine} machine @param {Config} config */
  constructor(machine, config) {
    this.machine = machine;
    this.config = config;
    /** @type {Map<string, Packed>} */
    this.matrices = new Map();
    /** @type {Map<string, number>} */
    this.vectors = new Map();
    /** @type {Map<string, Float32Array>} */
    this.tables = new Map();
    /** @type {Map<string, number>} */
    this.grams = new Map();
  }

  /** @param {string} name @param {number[]} shape @param {Float32Array} numbers */
  add(name, shape, numbers) {
    const { machine } = this;
    if (shape.length === 1) this.vectors.set(name, machine.place(numbers));
    else if (name.endsWith('.weight')) {
      const matrix = machine.placeMatrix(numbers, shape[0], numbers.length / shape[0]);
      this.matrices.set(name.slice(0, -'.weight'.length), matrix);
    } else this.tables.set(name, numbers);
    if (name.endsWith('.attn.proj.weight') && !this.config.attn_norm)
      this.grams.set(name.slice(0, -'.proj.weight'.length), this.gramsOf(numbers));
  }

  /** Address of W_O,h^T W_O,h of each head, in panels, of an output projection [dim, heads * head_dim]: see `valueSquares` of heads.ts. */
  gramsOf(/** @type {Float32Array} */ weight) {
    const { machine, config } = this;
    const [dim, d] = [config.embed_dim, headDim(config)];
    const size = panelsSize(d, d);
    const grams = machine.room(config.num_heads * size);
    for (let h = 0; h < config.num_heads; h++) {
      machine.within(() => {
        const slice = Float32Array.from({ length: d * dim }, (_, at) => {
          const [a, row] = [Math.floor(at / dim), at % dim];
          return weight[row * dim + h * d + a]; // transposed: [head_dim, dim]
        });
        const [columns, square] = [machine.place(slice), machine.room(d * d)];
        const { panels } = machine.packed(columns, d, dim);
        machine.run.product(columns, dim, panels, 0, square, d, d, dim, d);
        machine.run.pack(square, d, 1, grams + 4 * h * size, d, d);
      });
    }
    return grams;
  }

  /** Address of a vector, 0 where the model has none of that name. */
  vector(/** @type {string} */ name) {
    return this.vectors.get(name) ?? 0;
  }

  /** The numbers [to, from] of a linear layer. @param {string} name */
  weightOf(name) {
    return this.machine.unpacked(/** @type {Packed} */ (this.matrices.get(name)));
  }

  /** The numbers of a vector, null where the model has none of that name. @param {string} name @param {number} count */
  vectorOf(name, count) {
    const at = this.vector(name);
    return at ? this.machine.read(at, count) : null;
  }

  /** x W^T + b: [rows, from] -> [rows, to]; address of the result. @param {string} name @param {number} x @param {number} rows */
  linear(name, x, rows) {
    const { panels, rows: to, cols: from } = /** @type {Packed} */ (this.matrices.get(name));
    const y = this.machine.room(rows * to);
    this.machine.run.product(x, from, panels, this.vector(`${name}.bias`), y, to, rows, from, to);
    return y;
  }

  /** The normalised rows of x [rows, dim]. @param {string} name @param {number} x @param {number} rows @param {number} dim */
  norm(name, x, rows, dim, y = this.machine.room(rows * dim)) {
    const { norm, norm_eps: eps } = this.config;
    const [gain, shift] = [this.vector(`${name}.weight`), this.vector(`${name}.bias`)];
    this.machine.run.norm(x, y, gain, shift, rows, dim, eps, norm === 'layer' ? 1 : 0);
    return y;
  }

  /** [rows, dim] -> [rows, dim]; address of the result. @param {string} name @param {number} x @param {number} rows */
  mlp(name, x, rows, kind = this.config.mlp) {
    const { gate, value, width } = this.hidden(name, x, rows, kind);
    const y = this.activated(gate, value, rows, width, kind);
    if (this.config.mlp_norm) this.norm(`${name}.norm`, y, rows, width, y);
    return this.linear(`${name}.fc2`, y, rows);
  }

  /** What an MLP activates: addresses of [rows, width] numbers, with the stride mlp_hidden, and of what they gate, 0 where they gate nothing. @param {string} name @param {number} x @param {number} rows @param {Config['mlp']} kind */
  hidden(name, x, rows, kind) {
    const { mlp_hidden: all } = this.config;
    if (kind === 'swiglu')
      return {
        gate: this.linear(`${name}.fc1_g`, x, rows),
        value: this.linear(`${name}.fc1_x`, x, rows),
        width: all,
      };
    const gate = this.linear(`${name}.fc1`, x, rows);
    if (kind !== 'swiglu_packed') return { gate, value: 0, width: all };
    return { gate, value: gate + 2 * all, width: all / 2 }; // its first half is the gate
  }

  /** Activated numbers without gaps, in their own place where they gate nothing. */
  activated(
    /** @type {number} */ gate,
    /** @type {number} */ value,
    /** @type {number} */ rows,
    /** @type {number} */ width,
    /** @type {Config['mlp']} */ kind,
  ) {
    const { machine, config } = this;
    const y = value ? machine.room(rows * width) : gate;
    if (value) machine.run.gated(gate, value, config.mlp_hidden, y, rows, width);
    else machine.run[ACTIVATIONS[kind]](y, rows * width);
    return y;
  }
}
