// Eigenvectors of symmetric matrices, in double precision.

const GUARD = 16; // further directions that are followed, so that those that count converge fast
const MOST_ROUNDS = 300;

/**
 * The largest eigenvalues of a symmetric matrix, and their vectors, the largest first; few negative ones may be larger in size.
 *
 * Subspace iteration: directions are multiplied, made orthogonal, and turned into the eigenvectors within their span, until those that
 * count stay the same.
 * @param {Float64Array} matrix [size, size] @param {number} size @param {number} count
 * @returns {{values: number[], vectors: Float64Array[]}}
 */
export function largestEigen(matrix, size, count) {
  const width = Math.min(size, count + GUARD);
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5;
  let vectors = Array.from({ length: width }, () => Float64Array.from({ length: size }, random));
  for (let round = 0; ; round++) {
    orthonormalise(vectors);
    const images = vectors.map((vector) => times(matrix, vector));
    const inner = vectors.flatMap((vector) => images.map((image) => dot(vector, image)));
    const { values, vectors: turns } = symmetricEigen(Float64Array.from(inner), width);
    const found = turns.slice(0, count).map((turn) => combined(vectors, turn));
    const turned = turns.map((turn) => combined(images, turn));
    const errors = found.map((vector, i) => {
      let sum = 0;
      for (let j = 0; j < size; j++) sum += (turned[i][j] - values[i] * vector[j]) ** 2;
      return Math.sqrt(sum);
    });
    const isDone = width === size || Math.max(...errors) <= 1e-11 * Math.abs(values[0]);
    if (isDone || round === MOST_ROUNDS) return { values: values.slice(0, count), vectors: found };
    vectors = turned;
  }
}

/**
 * All eigenvalues of a small symmetric matrix and their vectors, the largest first, by Jacobi's rotations.
 * @param {Float64Array} matrix [size, size] @param {number} size @returns {{values: number[], vectors: Float64Array[]}}
 */
export function symmetricEigen(matrix, size) {
  const a = matrix.slice();
  const turns = Array.from({ length: size }, (_, i) =>
    Float64Array.from({ length: size }, (__, j) => Number(i === j)),
  );
  const whole = Math.sqrt(dot(a, a));
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) off += a[i * size + j] ** 2;
    if (Math.sqrt(off) <= 1e-14 * whole) break;
    for (let i = 1; i < size; i++) for (let j = 0; j < i; j++) rotate(a, turns, size, j, i);
  }
  const order = [...turns.keys()].sort((i, j) => a[j * size + j] - a[i * size + i]);
  return { values: order.map((i) => a[i * size + i]), vectors: order.map((i) => turns[i]) };
}

/** Turns rows and columns p and q so that their common entry becomes 0. @param {Float64Array} a @param {Float64Array[]} turns @param {number} size @param {number} p @param {number} q */
function rotate(a, turns, size, p, q) {
  const shared = a[p * size + q];
  if (shared === 0) return;
  const half = (a[q * size + q] - a[p * size + p]) / (2 * shared);
  const tangent = Math.sign(half || 1) / (Math.abs(half) + Math.hypot(half, 1));
  const cosine = 1 / Math.hypot(tangent, 1);
  const sine = tangent * cosine;
  const turn = (/** @type {Float64Array} */ x, /** @type {number} */ i, /** @type {number} */ j) => {
    const one = x[i];
    x[i] = cosine * one - sine * x[j];
    x[j] = sine * one + cosine * x[j];
  };
  for (let k = 0; k < size; k++) turn(a, k * size + p, k * size + q);
  for (let k = 0; k < size; k++) turn(a, p * size + k, q * size + k);
  for (let k = 0; k < size; k++) {
    const one = turns[p][k];
    turns[p][k] = cosine * one - sine * turns[q][k];
    turns[q][k] = sine * one + cosine * turns[q][k];
  }
}

/** Each vector without its parts along those before it, of length 1; done twice, since once leaves what rounding left. */
function orthonormalise(/** @type {Float64Array[]} */ vectors) {
  for (let i = 0; i < vectors.length; i++) {
    for (let twice = 0; twice < 2; twice++) {
      for (let j = 0; j < i; j++) {
        const share = dot(vectors[i], vectors[j]);
        for (let k = 0; k < vectors[i].length; k++) vectors[i][k] -= share * vectors[j][k];
      }
      const size = Math.sqrt(dot(vectors[i], vectors[i])) || 1;
      for (let k = 0; k < vectors[i].length; k++) vectors[i][k] /= size;
    }
  }
}

/** @param {Float64Array} matrix @param {Float64Array} vector */
function times(matrix, vector) {
  const size = vector.length;
  return Float64Array.from(vector, (_, row) => {
    let sum = 0;
    for (let i = 0, at = row * size; i < size; i++) sum += matrix[at++] * vector[i];
    return sum;
  });
}

/** @param {Float64Array[]} vectors @param {Float64Array} factors */
function combined(vectors, factors) {
  const sum = new Float64Array(vectors[0].length);
  vectors.forEach((vector, i) => {
    for (let k = 0; k < sum.length; k++) sum[k] += factors[i] * vector[k];
  });
  return sum;
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
