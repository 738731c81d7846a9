// An independent, slow and obvious implementation, and small odd traces to test with: no two sizes are equal.

import { readFileSync } from 'node:fs';

/** The options as the server declares them; tests/ui/test_look.py compares the file with the declarations. */
const OPTIONS = JSON.parse(readFileSync(new URL('./options.json', import.meta.url), 'utf8'));

/** A repeatable stream of numbers in [-1, 1). */
export function random(seed = 1) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

/**
 * @param {{heads: number, tokens: number, headDim: number, scale?: number, seed?: number}} sizes
 */
export function makeLayer({ heads, tokens, headDim, scale = 0.4, seed = 1 }) {
  const next = random(seed);
  const numbers = () => Float32Array.from({ length: heads * tokens * headDim }, () => 2 * next());
  const [q, k] = [numbers(), numbers()];
  const norms = Float32Array.from({ length: heads * tokens }, () => 1.5 + next());
  const scaled = q.map((v) => v * scale);
  const attention = attentionOf(q, k, { heads, tokens, headDim, scale });
  const lse = new Float32Array(heads * tokens);
  for (let h = 0; h < heads; h++) {
    for (let i = 0; i < tokens; i++) {
      let sum = 0;
      for (let j = 0; j < tokens; j++) sum += Math.exp(scale * dot(q, k, h, i, j, tokens, headDim));
      lse[h * tokens + i] = Math.log(sum);
    }
  }
  /** @type {import('../../vit_viz/explorer/attention.js').QkLayer} */
  const layer = { kind: 'qk', heads, tokens, headDim, q: scaled, k, lse, norms };
  return { layer, q, k, attention };
}

/** @param {Float32Array} q @param {Float32Array} k */
function dot(q, k, h = 0, i = 0, j = 0, tokens = 1, dim = 1) {
  let sum = 0;
  for (let t = 0; t < dim; t++) sum += q[(h * tokens + i) * dim + t] * k[(h * tokens + j) * dim + t];
  return sum;
}

/**
 * A[h][i][j] = softmax over j, written out.
 * @param {Float32Array} q
 * @param {Float32Array} k
 * @param {{heads: number, tokens: number, headDim: number, scale: number}} sizes
 */
export function attentionOf(q, k, { heads, tokens, headDim, scale }) {
  return Array.from({ length: heads }, (_, h) =>
    Array.from({ length: tokens }, (__, i) => {
      const row = Array.from({ length: tokens }, (___, j) =>
        Math.exp(scale * dot(q, k, h, i, j, tokens, headDim)),
      );
      const sum = row.reduce((a, b) => a + b, 0);
      return row.map((v) => v / sum);
    }),
  );
}

/** A number as fp16 bits, rounded to nearest, ties to even: by searching, not by arithmetic on bits. */
export function toHalf(/** @type {number} */ value, /** @type {Float32Array} */ table) {
  let best = 0;
  for (let bits = 0; bits < 65536; bits++) {
    const error = Math.abs(table[bits] - value);
    const least = Math.abs(table[best] - value);
    if (error < least || (error === least && bits % 2 === 0)) best = bits;
  }
  return best;
}

/** A trace of a small odd model: 3 layers, 5 heads, 4 x 6 patches. */
export function makeTrace(changes = {}) {
  const trace = {
    trace: 'abc',
    model: 'mini',
    image: 'lion',
    mode: 'fit',
    layers: 3,
    heads: 5,
    tokens: 26,
    head_dim: 8,
    scales: [0.4, 0.4, 0.4],
    prefix: ['class', 'register 0'],
    suffix: [],
    grid: [4, 6],
    pooling: 'class',
    default_query: 'class',
    crop: { original: [200, 300], input: [32, 48], region: [0, 0, 200, 300] },
    photo: '/vit_viz/photo/x',
    photo_size: [200, 300],
    source: ['qk', 'qk', 'qk'],
    opening: { layer: 2, head: 'mean' },
    options: OPTIONS,
    proof: null,
    note: '',
    ...changes,
  };
  return /** @type {import('../../vit_viz/explorer/geometry.js').Trace} */ (/** @type {unknown} */ (trace));
}

/** Whether two lists of numbers agree. */
export function close(
  /** @type {ArrayLike<number>} */ a,
  /** @type {ArrayLike<number>} */ b,
  tolerance = 1e-5,
) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!(Math.abs(a[i] - b[i]) <= tolerance)) return false;
  return true;
}
