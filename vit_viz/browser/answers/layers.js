// How alike the layers are, by linear centred kernel alignment (CKA) of the patches: vit_viz/analyses/layer_similarity.py.

import { dot } from './eigen.js';
import { numbers } from './form.js';
import { layoutOf } from './layout.js';
import { stateNames } from './tokens.js';
import { ROLE, tokenStates } from './vectors.js';
/** @import { Context } from './form.js' */
/** @import { Role } from './vectors.js' */

const FORMS = /** @type {const} */ (['as patches need', 'biased', 'without bias']);
const MOST_GRAM = 4096; // patches whose matrix of pairs is formed

/** @param {Context} context @param {{role: Role, form: (typeof FORMS)[number]}} options */
async function layerSimilarity(context, { role, form }) {
  const { first, patches: count } = layoutOf(context);
  const whole = tokenStates(context, role);
  const dim = whole[0].length / context.traced.tokens;
  const isUnbiased = form === 'as patches need' ? count < dim : form === 'without bias';
  if (count < 4 || (isUnbiased && count > MOST_GRAM))
    throw new Error(`Layers are compared over 4 to ${MOST_GRAM} patches, not ${count}.`);
  const states = whole.map((state) => centred(state.subarray(first * dim, (first + count) * dim), dim));
  const size = states.length;
  const products = Array.from({ length: size }, () => new Float64Array(size));
  const grams = isUnbiased || count <= dim ? states.map((one) => gram(one, count, dim, isUnbiased)) : null;
  const rows = isUnbiased ? grams?.map((one) => rowSums(one, count)) : null;
  const turned = grams ? [] : states.map((one) => transposed(one, dim));
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let product = grams ? dot(grams[i], grams[j]) : crossed(context, turned[i], states[j], dim);
      if (rows) {
        const [mine, others] = [rows[i], rows[j]].map((one) => one.reduce((sum, value) => sum + value, 0));
        product += (mine * others) / ((count - 1) * (count - 2)) - (2 / (count - 2)) * dot(rows[i], rows[j]);
      }
      products[i][j] = products[j][i] = product;
    }
    await context.step((i + 1) / size);
  }
  const sizes = products.map((row, i) => Math.sqrt(Math.max(0, row[i])));
  const values = products.flatMap((row, i) =>
    Array.from(row, (value, j) =>
      sizes[i] * sizes[j] > 0 ? Math.min(1, Math.max(-1, value / (sizes[i] * sizes[j]))) : 0,
    ),
  );
  const names = stateNames(context, role);
  return {
    values: numbers([size, size], values),
    names,
    unit: isUnbiased ? 'linear CKA, without bias' : 'linear CKA',
    value_range: [isUnbiased ? -1 : 0, 1],
    method: 'layer similarity',
    others: names,
    note: `Over ${count} patches of ${dim} numbers.`,
  };
}

/** Vectors [count, dim] without their mean, divided by their largest number, which changes nothing but keeps squares small. @param {Float32Array} vectors @param {number} dim */
function centred(vectors, dim) {
  const mean = new Float64Array(dim);
  const apart = new Float64Array(vectors);
  const count = vectors.length / dim;
  for (let at = 0; at < apart.length;) for (let i = 0; i < dim; i++) mean[i] += apart[at++] / count;
  let most = 1e-30;
  for (let at = 0; at < apart.length;)
    for (let i = 0; i < dim; i++) most = Math.max(most, Math.abs((apart[at++] -= mean[i])));
  for (let at = 0; at < apart.length; at++) apart[at] /= most;
  return apart;
}

/** X X^T, [count, count], with or without its diagonal. @param {Float64Array} x @param {number} count @param {number} dim @param {boolean} isHollow */
function gram(x, count, dim, isHollow) {
  const pairs = new Float64Array(count * count);
  for (let i = 0; i < count; i++) {
    for (let j = isHollow ? i + 1 : i; j < count; j++) {
      let sum = 0;
      for (let a = i * dim, b = j * dim, end = a + dim; a < end; a++, b++) sum += x[a] * x[b];
      pairs[i * count + j] = pairs[j * count + i] = sum;
    }
  }
  return pairs;
}

/** @param {Float64Array} pairs @param {number} count */
function rowSums(pairs, count) {
  const sums = new Float64Array(count);
  pairs.forEach((value, i) => (sums[Math.floor(i / count)] += value));
  return sums;
}

/** Vectors [count, dim] as [dim, count]. @param {Float64Array} vectors @param {number} dim */
function transposed(vectors, dim) {
  const count = vectors.length / dim;
  const turned = new Float32Array(vectors.length);
  for (let row = 0, at = 0; row < count; row++)
    for (let i = 0; i < dim; i++) turned[i * count + row] = vectors[at++];
  return turned;
}

/** ||Y^T X||_F^2. @param {Context} context @param {Float32Array} turned X^T @param {Float64Array} y @param {number} dim */
function crossed({ engine: { model } }, turned, y, dim) {
  const { machine } = model;
  const count = y.length / dim;
  return machine.within(() => {
    const [rows, products] = [machine.place(turned), machine.room(dim * dim)];
    const { panels } = machine.packed(machine.place(y), dim, count, 1, dim);
    machine.run.product(rows, count, panels, 0, products, dim, dim, count, dim);
    const sums = machine.view(products, dim * dim);
    return dot(sums, sums);
  });
}

/** @type {import('./index.js').Table} */
export const LAYERS = {
  layer_similarity: { needs: 'pass', options: { role: ROLE, form: FORMS }, answer: layerSimilarity },
};
