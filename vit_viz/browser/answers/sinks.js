// Whether a head that looks at one token alone writes nothing with it, or the same everywhere: vit_viz/analyses/sink_kinds.py.

import { headDim } from '../config.js';
import { eachHead } from './attention.js';
import { dot, largestEigen } from './eigen.js';
import { numbers } from './form.js';
import { tokenName } from './layout.js';
import { KINDS_OF_SINKS as KINDS } from './names.js';
import { lengths as lengthsOf } from './vectors.js';
/** @import { Machine } from '../machine.js' */
/** @import { Context } from './form.js' */

const [WEIGHT, QUERIES] = [0.5, 0.9]; // a sink is where so many queries put so much weight on one token
const [NO_OP, BROADCAST] = [0.2, 0.5]; // of what the head's other tokens would write
const STABLE_RANK = 1.5; // of a broadcast, at most
const NUMBERS = /** @type {const} */ ([
  'received',
  'queries',
  'ratio',
  'value_ratio',
  'stable_rank',
  'written',
]);

/** @param {Context} context */
async function sinkKinds(context) {
  const { layers, heads } = context.traced;
  const found = /** @type {ReturnType<typeof ofLayer>} */ ([]);
  for (let layer = 0; layer < layers.length; layer++) {
    found.push(...ofLayer(context, layer));
    await context.step((layer + 1) / layers.length);
  }
  const inLayers = (/** @type {string[]} */ words) =>
    layers.map((_, layer) => words.slice(layer * heads, (layer + 1) * heads));
  const shape = [layers.length, heads];
  const arrays = NUMBERS.map((name) => [
    name,
    numbers(
      shape,
      found.map((one) => one[name]),
    ),
  ]);
  return {
    kinds: inLayers(found.map(kindOf)),
    tokens: inLayers(found.map(({ place }) => tokenName(context, place))),
    ...Object.fromEntries(arrays),
  };
}

/** @param {Record<(typeof NUMBERS)[number], number>} found of a head */
function kindOf({ queries, ratio, stable_rank: rank }) {
  if (queries < QUERIES) return KINDS[0];
  if (ratio <= NO_OP) return KINDS[1];
  return ratio >= BROADCAST && rank <= STABLE_RANK ? KINDS[2] : KINDS[3];
}

/** The place of each head's sink and its numbers. @param {Context} context @param {number} layer */
function ofLayer(context, layer) {
  const { engine, traced } = context;
  const { machine, parameters, config } = engine.model;
  const { tokens } = traced;
  const [dim, width, name] = [config.embed_dim, headDim(config), `blocks.${layer}`];
  if (config.attn_norm)
    throw new Error(`The output projection of layer ${layer} is not known: kinds of sinks need it.`);
  const qkv = machine.within(() => {
    const normed = parameters.norm(`${name}.norm1`, machine.place(traced.residual[layer]), tokens, dim);
    return machine.read(parameters.linear(`${name}.attn.qkv`, normed, tokens), 3 * dim * tokens);
  });
  const weight = parameters.weightOf(`${name}.attn.proj`);
  const gamma = parameters.vectorOf(`${name}.ls1.gamma`, dim);
  const found = /** @type {(Record<(typeof NUMBERS)[number], number> & {place: number})[]} */ ([]);
  eachHead(context, layer, (attention, h) => {
    const values = new Float32Array(tokens * width);
    for (let token = 0; token < tokens; token++) {
      const from = token * 3 * dim + 2 * dim + h * width;
      values.set(qkv.subarray(from, from + width), token * width);
    }
    const received = new Float64Array(tokens);
    for (let query = 0, at = 0; query < tokens; query++)
      for (let key = 0; key < tokens; key++) received[key] += attention[at++];
    const place = received.indexOf(Math.max(...received));
    let onIt = 0;
    for (let at = place; at < attention.length; at += tokens) onIt += Number(attention[at] >= WEIGHT);
    const written = machine.within(() => {
      const { panels } = machine.packed(machine.place(values), width, tokens, 1, width);
      const sums = machine.room(tokens * width);
      machine.run.product(attention.byteOffset, tokens, panels, 0, sums, width, tokens, tokens, width);
      return machine.read(sums, tokens * width);
    });
    const projected = gramOf(machine, weight.subarray(h * width), dim, width, dim, gamma);
    const lengths = (/** @type {Float32Array} */ vectors) =>
      lengthsBehind(machine, vectors, projected, width);
    found.push({
      place,
      received: received[place] / tokens,
      queries: onIt / tokens,
      ratio: ratioAt(lengths(values), place),
      value_ratio: ratioAt(lengthsOf(values, tokens), place),
      stable_rank: stableRank(gramOf(machine, written, tokens, width, width), projected, width),
      written: lengths(written).reduce((sum, size) => sum + size, 0) / tokens,
    });
  });
  return found;
}

/**
 * X^T X of vectors X [count, width], each times its weight, [width, width].
 * @param {Machine} machine @param {Float32Array} vectors that lie `stride` numbers apart @param {number} count @param {number} width @param {number} stride @param {Float32Array | null} [weights]
 */
function gramOf(machine, vectors, count, width, stride, weights) {
  const columns = new Float32Array(width * count);
  for (let i = 0; i < count; i++) {
    const weight = weights ? weights[i] : 1;
    for (let j = 0, at = i * stride; j < width; j++) columns[j * count + i] = weight * vectors[at++];
  }
  return machine.within(() => {
    const [rows, gram] = [machine.place(columns), machine.room(width * width)];
    const { panels } = machine.packed(rows, width, count);
    machine.run.product(rows, count, panels, 0, gram, width, width, count, width);
    return machine.read(gram, width * width);
  });
}

/** The length of each vector [tokens, width] behind a projection. @param {Machine} machine @param {Float32Array} vectors @param {Float32Array} gram of the projection @param {number} width */
function lengthsBehind(machine, vectors, gram, width) {
  const tokens = vectors.length / width;
  return machine.within(() => {
    const { panels } = machine.packed(machine.place(gram), width, width);
    const [rows, images] = [machine.place(vectors), machine.room(vectors.length)];
    machine.run.product(rows, width, panels, 0, images, width, tokens, width, width);
    const image = machine.view(images, vectors.length);
    return Float64Array.from({ length: tokens }, (_, token) => {
      let sum = 0;
      for (let at = token * width, end = at + width; at < end; at++) sum += vectors[at] * image[at];
      return Math.sqrt(Math.max(0, sum));
    });
  });
}

/** The length at a place over the mean of those at all others. @param {Float64Array} sizes @param {number} place */
function ratioAt(sizes, place) {
  const others = sizes.reduce((sum, size) => sum + size, 0) - sizes[place];
  return sizes[place] / (others / (sizes.length - 1)) || 0;
}

/** ||U||_F^2 / sigma_1^2 of what a head writes, of U^T U = P (A v)^T (A v). @param {Float32Array} gram (A v)^T (A v) @param {Float32Array} projected P @param {number} width */
function stableRank(gram, projected, width) {
  const root = rootOf(projected, width);
  const images = root.map((vector) =>
    vector.map((_, i) => dot(vector, gram.subarray(i * width, (i + 1) * width))),
  );
  const turned = Float64Array.from(root.flatMap((vector) => images.map((image) => dot(vector, image))));
  let trace = 0;
  for (let i = 0; i < width; i++) trace += turned[i * width + i];
  const [largest] = largestEigen(turned, width, 1).values;
  return trace / largest || 0;
}

/** The columns of L, of a matrix L L^T: Cholesky's. @param {Float32Array} matrix [size, size] @param {number} size */
function rootOf(matrix, size) {
  const columns = Array.from({ length: size }, () => new Float64Array(size));
  for (let i = 0; i < size; i++)
    for (let j = 0; j <= i; j++) {
      let rest = matrix[i * size + j];
      for (let k = 0; k < j; k++) rest -= columns[k][i] * columns[k][j];
      columns[j][i] = i === j ? Math.sqrt(Math.max(0, rest)) : columns[j][j] && rest / columns[j][j];
    }
  return columns;
}

/** @type {import('./index.js').Table} */
export const SINKS = { sink_kinds: { needs: 'pass', answer: sinkKinds } };
