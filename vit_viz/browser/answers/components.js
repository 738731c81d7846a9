// By what the patches differ most: vit_viz/analyses/components.py.

import { largestEigen } from './eigen.js';
import { flags, numbers } from './form.js';
import { layoutOf, tokenMaps } from './layout.js';
import { stateNames } from './tokens.js';
import { ROLE, tokenStates } from './vectors.js';
/** @import { Context } from './form.js' */
/** @import { Role } from './vectors.js' */

const COUNT = 3;

/**
 * Along which directions vectors differ most: unit vectors, of which the entry with the largest absolute value is positive.
 * @param {Float64Array[]} vectors centred already @param {number} dim of each @param {number} count
 * @returns {{components: Float64Array[], variances: number[], total: number}} total: variance in all directions together
 */
export function principalComponents(vectors, dim, count) {
  if (count < 1 || count > dim)
    throw new Error(`Vectors of ${dim} numbers have no ${count} principal components.`);
  const products = new Float64Array(dim * dim);
  for (const vector of vectors) {
    for (let i = 0; i < dim; i++) {
      const factor = vector[i];
      for (let j = 0, at = i * dim; j <= i; j++) products[at++] += factor * vector[j];
    }
  }
  const scale = 1 / Math.max(1, vectors.length);
  let total = 0;
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j <= i; j++) products[j * dim + i] = products[i * dim + j] *= scale;
    total += products[i * dim + i];
  }
  const { values, vectors: found } = largestEigen(products, dim, count);
  const components = found.map((one) => {
    const largest = one.reduce((best, value, i) => (Math.abs(value) > Math.abs(one[best]) ? i : best), 0);
    return one[largest] < 0 ? one.map((value) => -value) : one;
  });
  return { components, variances: values.map((value) => Math.max(0, value)), total };
}

/** @param {Context} context @param {{role: Role, balanced: boolean, foreground: boolean, whitened: boolean, second: string}} options */
async function tokenComponents(context, { role, balanced, foreground, whitened, second }) {
  const photos = [context.traced, ...(second ? [secondOf(context)] : [])].map((traced) => {
    const one = { ...context, traced };
    return { one, ...layoutOf(one), states: tokenStates(one, role) };
  });
  const dim = photos[0].states[0].length / context.traced.tokens;
  let centred = photos[0].states.map((_, s) => {
    const vectors = photos.flatMap(({ first, patches, states }) =>
      Array.from({ length: patches }, (__, i) =>
        Float64Array.from(states[s].subarray((first + i) * dim, (first + i + 1) * dim)),
      ),
    );
    const apart = withoutMean(vectors);
    const size = balanced ? Math.sqrt(squares(apart) / vectors.length) : 1;
    return apart.map((vector) => vector.map((value) => (size > 0 ? value / size : 0)));
  });
  let kept = centred.map((state) => Array(state.length).fill(true));
  if (foreground) {
    await context.step(0);
    const [axis] = principalComponents(centred.flat(), dim, 1).components;
    const isBorder = photos.flatMap(({ grid }) => borderOf(grid));
    kept = centred.map((state) =>
      inside(
        state.map((vector) => along(vector, axis)),
        isBorder,
      ),
    );
    centred = centred.map((state, s) => withoutMean(state, kept[s]));
  }
  await context.step(0.5);
  const all = centred.flatMap((state, s) => state.filter((_, i) => kept[s][i]));
  const { components, variances, total } = principalComponents(all, dim, COUNT);
  const zero = new Float64Array(COUNT);
  const coordinates = centred.map((state, s) =>
    state.map((vector, i) => (kept[s][i] ? components.map((axis) => along(vector, axis)) : zero)),
  );
  const explained = coordinates.flatMap((state, s) => {
    const whole = squares(centred[s].filter((_, i) => kept[s][i]));
    return components.map((_, c) =>
      whole > 0 ? state.reduce((sum, one) => sum + one[c] ** 2, 0) / whole : 0,
    );
  });
  const scales = variances.map((variance) => (whitened ? 1 / Math.max(1e-12, Math.sqrt(variance)) : 1));
  let start = 0;
  const parts = photos.map(({ one, first, patches, grid }) => {
    const [from, to] = [start, (start += patches)];
    const prefixed = coordinates.map((state) => [
      ...Array(first * COUNT).fill(0),
      ...state.slice(from, to).flatMap((place) => Array.from(place, (value, c) => value * scales[c])),
    ]);
    const maps = tokenMaps(
      one,
      prefixed,
      stateNames(one, role),
      {
        unit: whitened ? 'standard deviations' : 'coordinate along the component',
        range: [-Infinity, Infinity],
        method: 'principal components',
        signed: true,
        note: 'One basis for all states; the sign of each component is that of its largest entry.',
      },
      COUNT,
    );
    const mask = kept.flatMap((state) => state.slice(from, to));
    return { maps: { ...maps, named: {} }, mask: flags([kept.length, ...grid], mask) };
  });
  return {
    maps: parts.map(({ maps }) => maps),
    explained: numbers([centred.length, COUNT], explained),
    overall: numbers(
      [COUNT],
      variances.map((variance) => (total > 0 ? variance / total : 0)),
    ),
    foreground: foreground ? parts.map(({ mask }) => mask) : [],
    whitened,
  };
}

/** The pass of the photo that shares the colours. @param {Context} context */
function secondOf({ second }) {
  if (!second) throw new Error('The numbers of the second picture are gone: choose it again.');
  return second;
}

/** Vectors without the mean of those that count. @param {Float64Array[]} vectors @param {boolean[]} [kept] */
function withoutMean(vectors, kept) {
  const counted = kept ? vectors.filter((_, i) => kept[i]) : vectors;
  const mean = new Float64Array(vectors[0].length);
  for (const vector of counted) for (let i = 0; i < mean.length; i++) mean[i] += vector[i] / counted.length;
  return vectors.map((vector) => vector.map((value, i) => value - mean[i]));
}

/** @param {Float64Array} vector @param {Float64Array} axis */
function along(vector, axis) {
  let sum = 0;
  for (let i = 0; i < axis.length; i++) sum += vector[i] * axis[i];
  return sum;
}

function squares(/** @type {Float64Array[]} */ vectors) {
  let sum = 0;
  for (const vector of vectors) for (const value of vector) sum += value * value;
  return sum;
}

/** Whether a patch lies at the border of its photo. @param {number[]} grid */
function borderOf([rows, cols]) {
  return Array.from({ length: rows * cols }, (_, i) => {
    const [row, col] = [Math.floor(i / cols), i % cols];
    return row === 0 || col === 0 || row === rows - 1 || col === cols - 1;
  });
}

/** Which patches lie on the side of 0 that fewer border patches lie on; all where one side is empty. @param {number[]} values @param {boolean[]} isBorder */
function inside(values, isBorder) {
  const above = values.map((value) => value > 0);
  const share = (/** @type {boolean} */ border) => {
    const of = above.filter((_, i) => isBorder[i] === border);
    return of.filter(Boolean).length / of.length;
  };
  const kept = above.map((one) => (share(false) >= share(true) ? one : !one));
  return kept.some(Boolean) ? kept : kept.map(() => true);
}

/** @type {import('./index.js').Table} */
export const COMPONENTS = {
  token_components: {
    needs: 'pass',
    options: {
      role: ROLE,
      balanced: true,
      foreground: false,
      whitened: false,
      second: {
        usual: '',
        pattern: /^[\p{L}\p{N}_ .-]{0,200}$/u,
        sentence: 'A photo to share the colours with.',
      },
    },
    answer: tokenComponents,
  },
};
