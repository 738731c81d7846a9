// What an answer is made of, an exact sum of what embedding, heads, MLPs and biases gave to it: vit_viz/analyses/direct_parts.py and
// decomposition.py.

import { headDim, prefixOf } from '../config.js';
import { eachHead } from './attention.js';
import { dot } from './eigen.js';
import { finding } from './finding.js';
import { numbers } from './form.js';
import { cropBox, layoutOf } from './layout.js';
import { describedTarget, hasClasses, outputName, targetOf, weightsOf } from './targets.js';
/** @import { Model } from '../model.js' */
/** @import { Context } from './form.js' */
/** @import { About } from './index.js' */

const NOTE =
  'Direct parts, with the scale of the last norm held at that of this photo: what a part does through later layers is not among them.';
const POOL_NOTE =
  'The model reads its answer by a learned pool, which is its last layer: the layers before act through the pool.';
const REST = /** @type {const} */ ({
  embedding: 'embedding',
  attention: 'output biases of attention',
  norm: 'bias of the last norm',
  head: 'bias of the output layer',
});

/**
 * sum_t weights[t] (direction . z_t) of the residual stream z: one way in which the output reads it.
 * @typedef {{direction: Float64Array, weights: Float64Array}} Reading
 * @typedef {{layers: string[], terms: Float64Array[], mlps: number[], rest: Record<keyof typeof REST, number>}} Parts terms: of each
 *     layer, [heads, tokens]
 */

/** A norm of the model as numbers: wanted . norm(x) is rate * (direction . x) + bias with the scale held at that of each x. */
class HeldNorm {
  /** @param {Model} model @param {string} name @param {boolean} isThere */
  constructor({ config, parameters }, name, isThere) {
    const dim = config.embed_dim;
    this.isThere = isThere;
    this.isCentred = config.norm === 'layer';
    this.eps = config.norm_eps;
    this.gain = isThere ? parameters.vectorOf(`${name}.weight`, dim) : null;
    this.bias = isThere ? parameters.vectorOf(`${name}.bias`, dim) : null;
  }

  /** @param {Float64Array} wanted */
  direction(wanted) {
    const { gain } = this;
    if (!gain) return wanted;
    const direction = wanted.map((value, i) => value * gain[i]);
    const mean = this.isCentred ? direction.reduce((sum, value) => sum + value, 0) / direction.length : 0;
    return direction.map((value) => value - mean);
  }

  /** @param {Float64Array} wanted */
  biasOf(wanted) {
    return this.bias ? dot(wanted, this.bias) : 0;
  }

  /** @param {ArrayLike<number>} x one vector */
  statistics(x) {
    let [sum, squares] = [0, 0];
    for (let i = 0; i < x.length; i++) sum += x[i];
    const mean = this.isCentred ? sum / x.length : 0;
    for (let i = 0; i < x.length; i++) squares += (x[i] - mean) ** 2;
    return { mean, rate: 1 / Math.sqrt(squares / x.length + this.eps) };
  }

  /** @param {ArrayLike<number>} x */
  rate(x) {
    return this.isThere ? this.statistics(x).rate : 1;
  }

  /** @param {ArrayLike<number>} x @returns {Float64Array} */
  of(x) {
    const { gain, bias } = this;
    if (!gain) return Float64Array.from(x);
    const { mean, rate } = this.statistics(x);
    return Float64Array.from(x, (value, i) => (value - mean) * rate * gain[i] + (bias ? bias[i] : 0));
  }
}

/** The vectors of a stream [tokens, dim]. @param {Float32Array | Float64Array} stream @param {number} dim */
function vectorsOf(stream, dim) {
  return Array.from({ length: stream.length / dim }, (_, i) => stream.subarray(i * dim, (i + 1) * dim));
}

/** The sum of vectors, each times its weight. @param {Float64Array} weights @param {Float64Array[]} vectors */
function weighted(weights, vectors) {
  const sum = new Float64Array(vectors[0].length);
  vectors.forEach((vector, token) => {
    if (weights[token]) vector.forEach((value, i) => (sum[i] += weights[token] * value));
  });
  return sum;
}

/** The weights of the features of those of the outputs. @param {Model} model @param {string} name @param {Float64Array} weights @param {Parts['rest']} rest */
function throughHead({ config, parameters }, name, weights, rest) {
  if (!config.num_classes) return weights;
  const bias = parameters.vectorOf(`${name}.bias`, config.num_classes);
  if (bias) rest.head += dot(weights, bias);
  return columnsOf(parameters.weightOf(name), weights);
}

/** w W of a matrix W [rows, cols]. @param {Float32Array} matrix @param {Float64Array} weights of its rows */
function columnsOf(matrix, weights) {
  const cols = matrix.length / weights.length;
  const sum = new Float64Array(cols);
  weights.forEach((weight, row) => {
    if (weight) for (let i = 0, at = row * cols; i < cols; i++) sum[i] += weight * matrix[at++];
  });
  return sum;
}

/** How the output reads the stream after the last block. @param {Context} context @param {Float64Array} weights of the outputs @param {Parts['rest']} rest @returns {Reading[]} */
function readingsOf({ engine, traced }, weights, rest) {
  const { model } = engine;
  const { config } = model;
  const count = traced.tokens;
  const last = vectorsOf(/** @type {Float32Array} */ (traced.residual.at(-1)), config.embed_dim);
  const [norm, fcNorm] = [
    new HeldNorm(model, 'norm', config.final_norm),
    new HeldNorm(model, 'fc_norm', config.fc_norm),
  ];
  const start = config.pool_prefix ? 0 : prefixOf(config).length;
  const place = (/** @type {number} */ token) =>
    Float64Array.from({ length: count }, (_, i) => Number(i === token));
  const mean = Float64Array.from({ length: count }, (_, i) => (i < start ? 0 : 1 / (count - start)));
  const half = weights.map((value) => value / 2);
  const whole = config.pooling === 'class' ? [place(0)] : [mean];
  const parts = /** @type {[string, Float64Array, Float64Array[]][]} */ (
    config.dist_head
      ? [
          ['head', half, [place(0)]],
          ['head_dist', half, [place(1)]],
        ]
      : [['head', weights, config.pool_concat ? [place(0), mean] : whole]]
  );
  return parts.flatMap(([head, ofOutputs, places]) => {
    let wanted = throughHead(model, head, ofOutputs, rest);
    if (fcNorm.isThere) {
      const pooled = weighted(
        places[0],
        last.map((x) => norm.of(x)),
      );
      rest.norm += fcNorm.biasOf(wanted);
      const rate = fcNorm.rate(pooled);
      wanted = fcNorm.direction(wanted).map((value) => value * rate);
    }
    return places.map((one, i) => {
      const share = wanted.subarray(i * config.embed_dim, (i + 1) * config.embed_dim);
      rest.norm += norm.biasOf(share) * one.reduce((sum, value) => sum + value, 0);
      return {
        direction: norm.direction(share),
        weights: one.map((weight, token) => (weight ? weight * norm.rate(last[token]) : 0)),
      };
    });
  });
}

/** What is read of a stream. @param {Reading} reading @param {Float32Array} stream [tokens, dim] */
function read({ direction, weights }, stream) {
  const vectors = vectorsOf(stream, direction.length);
  return weights.reduce(
    (sum, weight, token) => sum + (weight ? weight * dot(direction, vectors[token]) : 0),
    0,
  );
}

/** Each value along a direction of all heads' outputs, [heads, tokens]. @param {Float32Array} weight of the values [dim, dim] @param {Float32Array | null} bias @param {Float64Array} wanted @param {Float64Array[]} inputs @param {number} heads */
function valuesAlong(weight, bias, wanted, inputs, heads) {
  const [dim, width] = [wanted.length, wanted.length / heads];
  const along = new Float64Array(heads * inputs.length);
  for (let h = 0; h < heads; h++) {
    const direction = new Float64Array(dim);
    let more = 0;
    for (let i = h * width; i < (h + 1) * width; i++) {
      if (bias) more += wanted[i] * bias[i];
      for (let j = 0, at = i * dim; j < dim; j++) direction[j] += wanted[i] * weight[at++];
    }
    inputs.forEach((x, token) => (along[h * inputs.length + token] = dot(direction, x) + more));
  }
  return along;
}

/** What each head of a block took from each token, [heads, tokens], and what the biases behind the heads add. @param {Context} context @param {number} layer @param {Reading[]} readings */
function ofAttention(context, layer, readings) {
  const { engine, traced } = context;
  const { model } = engine;
  const { config, parameters } = model;
  const { heads, tokens } = traced;
  const dim = config.embed_dim;
  const name = `blocks.${layer}`;
  const norm = new HeldNorm(model, `${name}.norm1`, true);
  const inputs = vectorsOf(traced.residual[layer], dim).map((x) => norm.of(x));
  const weight = parameters.weightOf(`${name}.attn.qkv`).subarray(2 * dim * dim);
  const bias = parameters.vectorOf(`${name}.attn.qkv.bias`, 3 * dim)?.subarray(2 * dim) ?? null;
  const gamma = parameters.vectorOf(`${name}.ls1.gamma`, dim);
  const projection = parameters.weightOf(`${name}.attn.proj`);
  const projectionBias = parameters.vectorOf(`${name}.attn.proj.bias`, dim);
  const inner = new HeldNorm(model, `${name}.attn.norm`, config.attn_norm);
  const outputs = config.attn_norm ? vectorsOf(handedOn(context, layer, inputs, weight, bias), dim) : null;
  const terms = new Float64Array(heads * tokens);
  let biases = 0;
  for (const { direction, weights } of readings) {
    const wanted = gamma ? direction.map((value, i) => value * gamma[i]) : direction;
    const along = columnsOf(projection, wanted);
    const total = weights.reduce((sum, value) => sum + value, 0);
    biases += ((projectionBias ? dot(wanted, projectionBias) : 0) + inner.biasOf(along)) * total;
    const queries = weights.map((one, token) => (one && outputs ? one * inner.rate(outputs[token]) : one));
    const values = valuesAlong(weight, bias, inner.direction(along), inputs, heads);
    eachHead(context, layer, (attention, h) => {
      queries.forEach((one, query) => {
        if (one)
          for (let key = 0, at = query * tokens; key < tokens; key++)
            terms[h * tokens + key] += one * attention[at++] * values[h * tokens + key];
      });
    });
  }
  return { terms, biases };
}

/** What all heads hand on together, [tokens, dim]. @param {Context} context @param {number} layer @param {Float64Array[]} inputs @param {Float32Array} weight @param {Float32Array | null} bias */
function handedOn(context, layer, inputs, weight, bias) {
  const { tokens } = context.traced;
  const dim = inputs[0].length;
  const width = headDim(context.engine.model.config);
  const values = inputs.map((x) =>
    vectorsOf(weight, dim).map((row, i) => dot(row, x) + (bias ? bias[i] : 0)),
  );
  const outputs = new Float64Array(tokens * dim);
  eachHead(context, layer, (attention, h) => {
    for (let query = 0, at = 0; query < tokens; query++)
      for (let key = 0; key < tokens; key++, at++)
        for (let i = h * width; i < (h + 1) * width; i++)
          outputs[query * dim + i] += attention[at] * values[key][i];
  });
  return outputs;
}

/** The parts of what is read of the stream. @param {Context} context @param {Float64Array} weights of the outputs @returns {Promise<Parts>} */
async function ofStream(context, weights) {
  const { residual, layers } = context.traced;
  const rest = { embedding: 0, attention: 0, norm: 0, head: 0 };
  const readings = readingsOf(context, weights, rest);
  const states = residual.map((state) => readings.reduce((sum, one) => sum + read(one, state), 0));
  rest.embedding = states[0];
  const [terms, mlps] = [/** @type {Float64Array[]} */ ([]), /** @type {number[]} */ ([])];
  for (let layer = 0; layer < layers.length; layer++) {
    const { terms: ofHeads, biases } = ofAttention(context, layer, readings);
    terms.push(ofHeads);
    // whatever of the block is not its attention
    mlps.push(states[layer + 1] - states[layer] - ofHeads.reduce((sum, value) => sum + value, 0) - biases);
    rest.attention += biases;
    await context.step((layer + 1) / layers.length);
  }
  return { layers: layers.map((_, layer) => String(layer)), terms, mlps, rest };
}

/** The parts of a learned pool, which is the last layer. @param {Context} context @param {Float64Array} weights @returns {Parts} */
function ofPool({ engine, traced }, weights) {
  const { model } = engine;
  const { config, parameters, machine } = model;
  const { heads, tokens } = traced;
  const dim = config.embed_dim;
  const rest = { embedding: 0, attention: 0, norm: 0, head: 0 };
  const norm = new HeldNorm(model, 'norm', config.final_norm);
  const inputs = vectorsOf(/** @type {Float32Array} */ (traced.residual.at(-1)), dim).map((x) => norm.of(x));
  const first = config.pool_prefix ? 0 : prefixOf(config).length;
  const count = tokens - first;
  const { shares, gathered, whole } = machine.within(() => {
    const patches = machine.place(Float32Array.from(inputs.slice(first).flatMap((x) => [...x])));
    const pool = model.attentionPool(patches, count);
    return {
      shares: machine.read(pool.weights, heads * count),
      gathered: machine.read(pool.gathered, dim),
      whole: machine.read(pool.y, dim),
    };
  });
  let wanted = throughHead(model, 'head', weights, rest);
  const fcNorm = new HeldNorm(model, 'fc_norm', config.fc_norm);
  rest.norm = fcNorm.biasOf(wanted);
  const rate = fcNorm.rate(whole);
  wanted = fcNorm.direction(wanted).map((value) => value * rate);
  const projectionBias = parameters.vectorOf('attn_pool.proj.bias', dim);
  rest.attention = projectionBias ? dot(wanted, projectionBias) : 0;
  const weight = parameters.weightOf('attn_pool.kv').subarray(dim * dim);
  const bias = parameters.vectorOf('attn_pool.kv.bias', 2 * dim)?.subarray(dim) ?? null;
  const along = columnsOf(parameters.weightOf('attn_pool.proj'), wanted);
  const values = valuesAlong(weight, bias, along, inputs, heads);
  const terms = values.map((value, i) => {
    const patch = (i % tokens) - first;
    return patch < 0 ? 0 : value * shares[Math.floor(i / tokens) * count + patch];
  });
  return { layers: ['pool'], terms: [terms], mlps: [dot(wanted, whole) - dot(wanted, gathered)], rest };
}

/** @param {Context} context @param {{maps: 'heads' | 'layers'}} options @param {About} about */
async function decomposition(context, { maps }, { target }) {
  const { traced, engine } = context;
  const { grid, prefix } = layoutOf(context);
  const { logits, heads, tokens } = traced;
  const chosen = targetOf(context, target);
  const weights = weightsOf(context, chosen);
  const isPool = engine.model.config.pooling === 'attention';
  const parts = isPool ? ofPool(context, weights) : await ofStream(context, weights);
  const rows = parts.layers.length;
  const ofHeads = parts.terms.flatMap((terms) =>
    Array.from({ length: heads }, (_, h) =>
      terms.subarray(h * tokens, (h + 1) * tokens).reduce((sum, value) => sum + value, 0),
    ),
  );
  const names = /** @type {(keyof typeof REST)[]} */ (Object.keys(REST)).filter((name) => parts.rest[name]);
  const rest = names.map((name) => parts.rest[name]);
  const total = [...ofHeads, ...parts.mlps, ...rest].reduce((sum, value) => sum + value, 0);
  const terms = parts.terms.flatMap((one) => (maps === 'heads' ? [...one] : sumOfHeads(one, tokens)));
  const about = aboutWords(context, chosen, total < 0);
  const shown = {
    terms: numbers([rows, maps === 'heads' ? heads : 1, tokens], terms),
    heads: numbers([rows, heads], ofHeads),
    mlps: numbers([rows], parts.mlps),
    rest: numbers([rest.length], rest),
    rest_names: names.map((name) => REST[name]),
    total,
    output: dot(weights, logits),
    layers: parts.layers,
    grid,
    prefix,
    about,
    unit: describedTarget(context, chosen),
    crop_box: cropBox(traced),
    note: isPool ? `${POOL_NOTE} ${NOTE}` : NOTE,
    suffix: [],
  };
  return { ...shown, finding: finding(shown) };
}

/** @param {Float64Array} terms [heads, tokens] @param {number} tokens */
function sumOfHeads(terms, tokens) {
  return Array.from({ length: tokens }, (_, token) => {
    let sum = 0;
    for (let at = token; at < terms.length; at += tokens) sum += terms[at];
    return sum;
  });
}

/** What is explained, in a few words; of a number below 0, what makes it so. @param {Context} context @param {ReturnType<typeof targetOf>} target @param {boolean} isNegative */
function aboutWords(context, target, isNegative) {
  const { index, other } = target;
  if (other !== null) {
    const [first, second] = (isNegative ? [other, index] : [index, other]).map((one) =>
      outputName(context, one),
    );
    return `the lead of ${first} over ${second}`;
  }
  const what = hasClasses(context) ? outputName(context, index) : describedTarget(context, target);
  return isNegative ? `what speaks against ${what}` : what;
}

/** @type {import('./index.js').Table} */
export const DECOMPOSITION = {
  decomposition: {
    needs: 'pass',
    takesTarget: true,
    options: { maps: ['heads', 'layers'] },
    answer: decomposition,
  },
};
