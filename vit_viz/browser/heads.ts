// The attention of heads, made of the arithmetic of kernels.ts. Functions work on `heads`, or blocks of queries, from `first` on, so that
// threads share them.

import { add, copy, pack, PANEL, product, softmax } from './kernels';
import { fma, load, sumOf } from './lanes';

const BLOCK = 64; // queries whose scores are computed together: they stay in the cache

/** Numbers of a matrix [rows, cols] in panels. */
function packedSize(rows: i32, cols: i32): i32 {
  return ((rows + PANEL - 1) / PANEL) * PANEL * cols;
}

/** out[i] = the dot product of row i of a and row i of b, [rows, cols], each with a stride of its own. */
function rowDots(a: usize, aStride: i32, b: usize, bStride: i32, out: usize, rows: i32, cols: i32): void {
  const end = (<usize>(cols & ~3)) << 2;
  const left = cols & 3;
  for (let i = 0; i < rows; i++, a += (<usize>aStride) << 2, b += (<usize>bStride) << 2, out += 4) {
    let sums = f32x4.mul(load(a + end, left), load(b + end, left));
    for (let at: usize = 0; at < end; at += 16) sums = fma(v128.load(a + at), v128.load(b + at), sums);
    f32.store(out, sumOf(sums));
  }
}

/** Heads from `first` on, of x [tokens, heads * dim] with a stride, each by itself: y [heads, tokens, dim]. */
export function splitHeads(
  first: i32,
  heads: i32,
  x: usize,
  stride: i32,
  y: usize,
  tokens: i32,
  dim: i32,
): void {
  for (let h = first; h < first + heads; h++)
    copy(x + ((<usize>(h * dim)) << 2), stride, y + ((<usize>(h * tokens * dim)) << 2), dim, tokens, dim);
}

/** Keys [heads, tokens, dim] and values, [tokens, heads * dim] with a stride, of heads from `first` on, in panels for `attend`. */
export function packHeads(
  first: i32,
  heads: i32,
  k: usize,
  v: usize,
  stride: i32,
  keys: usize,
  values: usize,
  tokens: i32,
  dim: i32,
): void {
  for (let h = first; h < first + heads; h++) {
    const ownKeys = keys + ((<usize>(h * packedSize(tokens, dim))) << 2);
    pack(k + ((<usize>(h * tokens * dim)) << 2), dim, 1, ownKeys, tokens, dim);
    const ownValues = values + ((<usize>(h * packedSize(dim, tokens))) << 2);
    pack(v + ((<usize>(h * dim)) << 2), 1, stride, ownValues, dim, tokens);
  }
}

/**
 * softmax(q k^T + bias) v of blocks of queries from `first` on, counted through the heads, into y [tokens, heads * dim]. `scores` is room
 * for one block, [64, tokens]. Bias and `bits`, where the weights are kept as fp16, are [heads, tokens, tokens], or 0 for none.
 */
export function attend(
  first: i32,
  blocks: i32,
  scores: usize,
  q: usize,
  keys: usize,
  values: usize,
  bias: usize,
  bits: usize,
  peaks: usize,
  sums: usize,
  y: usize,
  width: i32,
  tokens: i32,
  dim: i32,
): void {
  const each = (tokens + BLOCK - 1) / BLOCK; // blocks of a head
  for (let block = first; block < first + blocks; block++) {
    const h = block / each;
    const i = (block % each) * BLOCK;
    const rows = min(BLOCK, tokens - i);
    const row = <usize>(h * tokens + i);
    const ownKeys = keys + ((<usize>(h * packedSize(tokens, dim))) << 2);
    const ownValues = values + ((<usize>(h * packedSize(dim, tokens))) << 2);
    product(q + ((row * <usize>dim) << 2), dim, ownKeys, 0, scores, tokens, rows, dim, tokens);
    const cells = row * <usize>tokens;
    if (bias) add(scores, bias + (cells << 2), 0, 1, rows * tokens);
    softmax(scores, rows, tokens, peaks + (row << 2), sums + (row << 2));
    if (bits) halves(scores, bits + (cells << 1), rows * tokens);
    const at = y + ((<usize>(i * width + h * dim)) << 2);
    product(scores, tokens, ownValues, 0, at, width, rows, tokens, dim);
  }
}

/** Numbers from 0 to 1 as fp16, the nearest, a tie to the even one. */
export function halves(x: usize, y: usize, count: i32): void {
  for (let i = 0; i < count; i++, x += 4, y += 2) {
    const value = f32.load(x);
    const own = i32.load(x);
    const isNormal = value >= 6.103515625e-5; // else its last bit is 2^-24, to which it is rounded
    const bits = isNormal
      ? ((own + 0xfff + ((own >> 13) & 1)) >> 13) - (112 << 10)
      : <i32>nearest(value * 16777216);
    store<u16>(y, <u16>bits);
  }
}

/** v_j G_h v_j^T of heads from `first` on: v [tokens, heads * dim] with a stride, G in panels, `turned` room for [tokens, dim]. */
export function valueSquares(
  first: i32,
  heads: i32,
  turned: usize,
  v: usize,
  stride: i32,
  grams: usize,
  squares: usize,
  tokens: i32,
  dim: i32,
): void {
  for (let h = first; h < first + heads; h++) {
    const own = v + ((<usize>(h * dim)) << 2);
    product(
      own,
      stride,
      grams + ((<usize>(h * packedSize(dim, dim))) << 2),
      0,
      turned,
      dim,
      tokens,
      dim,
      dim,
    );
    rowDots(own, stride, turned, dim, squares + ((<usize>(h * tokens)) << 2), tokens, dim);
  }
}
