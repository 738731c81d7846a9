// Patches that a layer treats alike, as regions of the photo: vit_viz/analyses/key_segments.py.

import { checkedHead } from './attention.js';
import { dot, largestEigen } from './eigen.js';
import { indices, numbers } from './form.js';
import { cropBox, layoutOf } from './layout.js';
import { generator } from './orders.js';
import { unitVectors } from './vectors.js';
/** @import { Context } from './form.js' */
/** @import { Role } from './vectors.js' */

const ALIKE = 0.2; // cosine from which on two patches count as alike in the cut, as in TokenCut
const UNLIKE = 1e-5; // weight of patches that are not alike, so that the graph is connected
const [STARTS, STEPS] = [4, 40];
const MOST_IN_A_CUT = 1600; // patches
const SAMPLES = 16; // points of a patch along each side, by which an object covers it

/**
 * @param {Context} context @param {{layer: number, role: Role, method: 'k-means' | 'cut', count: number, seed: number, box: string}} options
 */
async function segments(context, { layer, role, method, count, seed, box }) {
  const corners = box ? cornersOf(box) : null;
  checkedHead(context, layer, 'mean');
  const { first, patches, grid } = layoutOf(context);
  const { data, dim } = unitVectors(context, role, role === 'tokens' ? layer + 1 : layer);
  const vectors = Array.from({ length: patches }, (_, i) =>
    Float64Array.from(data.subarray((first + i) * dim, (first + i + 1) * dim)),
  );
  await context.step(0);
  const strength = method === 'cut' ? normalisedCut(vectors) : null;
  const labels = bySize(strength ? strength.map((value) => Number(value > 0)) : kMeans(vectors, count, seed));
  return {
    labels: indices(grid, labels),
    method: `${method} of ${role}`,
    strength: strength && numbers(grid, strength),
    crop_box: cropBox(context.traced),
    note: '',
    overlap: corners && overlapOf(context, labels, corners),
  };
}

/** The segment of each vector: the best of some seeded starts. @param {Float64Array[]} vectors @param {number} count @param {number} seed */
function kMeans(vectors, count, seed) {
  const different = new Set(vectors.map((vector) => vector.join())).size;
  if (count > different)
    throw new Error(`${different} different patches make 1 to ${different} segments, not ${count}.`);
  const random = generator([seed]);
  let best = /** @type {{labels: number[], cost: number} | null} */ (null);
  for (let start = 0; start < STARTS; start++) {
    const found = grouped(vectors, firstMeans(vectors, count, random));
    if (found && (!best || found.cost < best.cost)) best = found;
  }
  if (!best) throw new Error(`The patches fall into fewer than ${count} segments: please choose fewer.`);
  return best.labels;
}

/** Vectors to begin with, each the likelier the farther it lies from those before (k-means++). @param {Float64Array[]} vectors @param {number} count @param {ReturnType<typeof generator>} random */
function firstMeans(vectors, count, random) {
  const means = [vectors[random.below(vectors.length)]];
  const nearest = new Float64Array(vectors.length).fill(Infinity);
  while (means.length < count) {
    const last = means[means.length - 1];
    vectors.forEach((vector, i) => (nearest[i] = Math.min(nearest[i], squareApart(vector, last))));
    const whole = nearest.reduce((sum, value) => sum + value, 0);
    const wanted = random.share();
    let [sum, at] = [nearest[0] / whole, 0];
    while (sum < wanted && at < nearest.length - 1) sum += nearest[++at] / whole;
    means.push(vectors[at]);
  }
  return means;
}

/** Steps of k-means; null where a segment runs empty. @param {Float64Array[]} vectors @param {Float64Array[]} means */
function grouped(vectors, means) {
  let labels = /** @type {number[]} */ ([]);
  for (let step = 0; step < STEPS; step++) {
    labels = vectors.map((vector) => {
      const apart = means.map((mean) => squareApart(vector, mean));
      return apart.indexOf(Math.min(...apart));
    });
    const members = means.map((_, label) => vectors.filter((__, i) => labels[i] === label));
    if (members.some((one) => !one.length)) return null;
    means = members.map((one) =>
      one[0].map((_, i) => one.reduce((sum, vector) => sum + vector[i], 0) / one.length),
    );
  }
  const cost = vectors.reduce((sum, vector, i) => sum + squareApart(vector, means[labels[i]]), 0);
  return { labels, cost };
}

/** @param {Float64Array} a @param {Float64Array} b */
function squareApart(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] - b[i]) ** 2;
  return sum;
}

/** On which side of the cheapest cut each unit vector lies, above or below 0: the second solution of (D - W) y = lambda D y. @param {Float64Array[]} vectors */
function normalisedCut(vectors) {
  const count = vectors.length;
  if (count < 2 || count > MOST_IN_A_CUT)
    throw new Error(`A cut needs 2 to ${MOST_IN_A_CUT} patches, not ${count}.`);
  const weights = new Float64Array(count * count);
  const root = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) {
      const weight = dot(vectors[i], vectors[j]) > ALIKE ? 1 : UNLIKE;
      weights[i * count + j] = weight;
      root[i] += weight;
    }
  }
  root.forEach((sum, i) => (root[i] = Math.sqrt(sum)));
  const matrix = weights.map((weight, at) => weight / root[Math.floor(at / count)] / root[at % count]);
  const [, vector] = largestEigen(matrix, count, 2).vectors;
  const second = vector.map((value, i) => value / root[i]);
  const mean = second.reduce((sum, value) => sum + value, 0) / count;
  const apart = second.map((value) => value - mean);
  const largest = apart.reduce((best, value, i) => (Math.abs(value) > Math.abs(apart[best]) ? i : best), 0);
  return Array.from(apart, (value) => value * (Math.sign(apart[largest]) || 1));
}

/** The same segments, the largest as 0; of equals the one whose first patch comes first. @param {number[]} labels */
function bySize(labels) {
  const present = [...new Set(labels)];
  const sizes = new Map(present.map((label) => [label, labels.filter((one) => one === label).length]));
  const order = present.sort((a, b) => Number(sizes.get(b)) - Number(sizes.get(a)));
  return labels.map((label) => order.indexOf(label));
}

/** A box as four numbers. @param {string} box */
function cornersOf(box) {
  const [left, top, right, bottom] = box.split(',').map(Number);
  if (left < right && top < bottom) return { left, top, right, bottom };
  throw new Error(`A box is left,top,right,bottom, each side before the other, not ${box}.`);
}

/** Intersection over union of each segment with a box, in areas of patches. @param {Context} context @param {number[]} labels @param {ReturnType<typeof cornersOf>} box */
function overlapOf(context, labels, { left, top, right, bottom }) {
  const { grid } = layoutOf(context);
  const [start, side, height, width] = context.traced.crop.region;
  /** The share of each row, or column, of patches that lies between two ends. @type {(count: number, from: number, size: number, low: number, high: number) => number[]} */
  const sharesOf = (count, from, size, low, high) =>
    Array.from({ length: count }, (_, i) => {
      let inside = 0;
      for (let point = i * SAMPLES; point < (i + 1) * SAMPLES; point++) {
        const at = from + (size * (point + 0.5)) / (count * SAMPLES);
        inside += Number(low <= at && at < high) / SAMPLES;
      }
      return inside;
    });
  const down = sharesOf(grid[0], start, height, top, bottom);
  const across = sharesOf(grid[1], side, width, left, right);
  const share = labels.map((_, i) => down[Math.floor(i / grid[1])] * across[i % grid[1]]);
  const whole = share.reduce((sum, value) => sum + value, 0);
  const values = Array.from({ length: Math.max(...labels) + 1 }, (_, label) => {
    const own = [...labels.keys()].filter((i) => labels[i] === label);
    const inside = own.reduce((sum, i) => sum + share[i], 0);
    return inside / Math.max(own.length + whole - inside, 1e-12);
  });
  return numbers([values.length], values);
}

/** @type {import('./index.js').Table} */
export const SEGMENTS = {
  segments: {
    needs: 'pass',
    options: {
      layer: { usual: -1, low: -999, high: 999, isWhole: true, isLayer: true },
      role: ['keys', 'tokens', 'queries'],
      method: ['k-means', 'cut'],
      count: { usual: 4, low: 1, high: 24, isWhole: true },
      seed: { usual: 0, low: 0, high: 9999, isWhole: true },
      box: {
        usual: '',
        pattern: /^(|\d{1,6}(,\d{1,6}){3})$/,
        sentence:
          'Where an object lies, for its overlap with each segment: left,top,right,bottom in photo pixels.',
      },
    },
    answer: segments,
  },
};
