// The arithmetic of a forward pass, in AssemblyScript: `npm run wasm` compiles it twice, to kernels.wasm and, with fused multiply-add, to
// kernels-relaxed.wasm, with heads.ts, the attention of heads, reverse.ts, gradients, and lanes.ts.
//
// All numbers are float32 in one memory that JavaScript provides and shares out (machine.js); `usize` is an address in it. A matrix is
// row by row, and its `stride` the numbers from one row to the next. Every function works on what it is given and keeps nothing, so that
// several threads each take a part of it (split.js). Loops take four numbers at once and what is left behind them: to ask in every step
// how many are left makes the loop four times as slow.

import { exp, fma, gatedOf, geluOf, geluTanhOf, load, quickGeluOf, save, sumOf } from './lanes';

export const PANEL = 8; // columns that one step of a product computes

/**
 * Rows of W [rows, cols] for `product`: panels of 8 rows, in each the 8 numbers of a column side by side; what is missing is 0. Of a
 * matrix that lies transposed the steps are exchanged. Keys are packed as weights are: the scores are a product with them.
 */
export function pack(w: usize, rowStep: i32, colStep: i32, panels: usize, rows: i32, cols: i32): void {
  const down = rowStep << 2;
  const across = colStep << 2;
  for (let first = 0; first < rows; first += PANEL, w += PANEL * down) {
    const filled = min(PANEL, rows - first);
    for (let j = 0, column = w; j < cols; j++, column += across, panels += 4 * PANEL) {
      let at = column;
      for (let i = 0; i < filled; i++, at += down) f32.store(panels + (i << 2), f32.load(at));
      for (let i = filled; i < PANEL; i++) f32.store(panels + (i << 2), 0);
    }
  }
}

/** W [rows, cols], row by row, of its panels. */
export function unpack(panels: usize, w: usize, rows: i32, cols: i32): void {
  const down = cols << 2;
  for (let first = 0; first < rows; first += PANEL, w += PANEL * down) {
    const filled = min(PANEL, rows - first);
    for (let j = 0, column = w; j < cols; j++, column += 4, panels += 4 * PANEL)
      for (let i = 0, at = column; i < filled; i++, at += down) f32.store(at, f32.load(panels + (i << 2)));
  }
}

/** y = x W^T + bias: [rows, inner] -> [rows, cols], W in panels; address 0 stands for no bias. */
export function product(
  x: usize,
  xStride: i32,
  panels: usize,
  bias: usize,
  y: usize,
  yStride: i32,
  rows: i32,
  inner: i32,
  cols: i32,
): void {
  const step = <usize>inner * PANEL * 4;
  for (let j = 0; j < cols; j += PANEL, panels += step) {
    const left = cols - j;
    const at = (<usize>j) << 2;
    let low = f32x4.splat(0);
    let high = low;
    if (bias) {
      low = load(bias + at, left);
      high = load(bias + at + 16, left - 4);
    }
    let i = 0;
    for (; i + 4 <= rows; i += 4) {
      const from = x + ((<usize>(i * xStride)) << 2);
      fourRows(
        from,
        xStride << 2,
        panels,
        step,
        low,
        high,
        y + ((<usize>(i * yStride)) << 2) + at,
        yStride << 2,
        left,
      );
    }
    for (; i < rows; i++) {
      const from = x + ((<usize>(i * xStride)) << 2);
      oneRow(from, panels, step, low, high, y + ((<usize>(i * yStride)) << 2) + at, left);
    }
  }
}

/**
 * 4 x 8 numbers of a product: eight registers of sums, each number of x read once, each of the panel once for four rows. V8 keeps no
 * more in registers: with 6 x 8 sums, or two steps of k at once, the product takes nearly twice as long.
 */
function fourRows(
  x0: usize,
  xStep: usize,
  panel: usize,
  step: usize,
  low: v128,
  high: v128,
  y: usize,
  yStep: usize,
  left: i32,
): void {
  const x1 = x0 + xStep;
  const x2 = x1 + xStep;
  const x3 = x2 + xStep;
  let a0 = low,
    a1 = low,
    a2 = low,
    a3 = low;
  let b0 = high,
    b1 = high,
    b2 = high,
    b3 = high;
  for (let k: usize = 0, end = step >> 3, p = panel; k < end; k += 4, p += 32) {
    const a = v128.load(p);
    const b = v128.load(p, 16);
    let number = v128.load32_splat(x0 + k);
    a0 = fma(number, a, a0);
    b0 = fma(number, b, b0);
    number = v128.load32_splat(x1 + k);
    a1 = fma(number, a, a1);
    b1 = fma(number, b, b1);
    number = v128.load32_splat(x2 + k);
    a2 = fma(number, a, a2);
    b2 = fma(number, b, b2);
    number = v128.load32_splat(x3 + k);
    a3 = fma(number, a, a3);
    b3 = fma(number, b, b3);
  }
  put(y, a0, b0, left);
  put(y + yStep, a1, b1, left);
  put(y + 2 * yStep, a2, b2, left);
  put(y + 3 * yStep, a3, b3, left);
}

function oneRow(x: usize, panel: usize, step: usize, low: v128, high: v128, y: usize, left: i32): void {
  for (let k: usize = 0, end = step >> 3, p = panel; k < end; k += 4, p += 32) {
    const number = v128.load32_splat(x + k);
    low = fma(number, v128.load(p), low);
    high = fma(number, v128.load(p, 16), high);
  }
  put(y, low, high, left);
}

function put(y: usize, low: v128, high: v128, left: i32): void {
  save(y, low, left);
  save(y + 16, high, left - 4);
}

/** Each row of x [rows, cols] becomes exp(x - peak) / sum; `peaks` and `sums`, [rows], say which, so that log sum exp is known. */
export function softmax(x: usize, rows: i32, cols: i32, peaks: usize, sums: usize): void {
  const end = (<usize>(cols & ~3)) << 2;
  const left = cols & 3;
  for (let i = 0; i < rows; i++, x += (<usize>cols) << 2, peaks += 4, sums += 4) {
    let top = load(x + end, left, -Infinity);
    for (let at = x; at < x + end; at += 16) top = f32x4.pmax(top, v128.load(at));
    const pair = max(f32x4.extract_lane(top, 0), f32x4.extract_lane(top, 1));
    const peak = max(pair, max(f32x4.extract_lane(top, 2), f32x4.extract_lane(top, 3)));
    const peaked = f32x4.splat(peak);
    let total = f32x4.splat(0);
    for (let at = x; at < x + end; at += 16) {
      const value = exp(f32x4.sub(v128.load(at), peaked));
      v128.store(at, value);
      total = f32x4.add(total, value);
    }
    let sum = sumOf(total);
    if (left) {
      save(x + end, exp(f32x4.sub(load(x + end, left), peaked)), left);
      for (let k = 0; k < left; k++) sum += f32.load(x + end + ((<usize>k) << 2));
    }
    f32.store(peaks, peak);
    f32.store(sums, sum);
    const share = f32x4.splat(1 / sum);
    for (let at = x; at < x + end; at += 16) v128.store(at, f32x4.mul(v128.load(at), share));
    if (left) save(x + end, f32x4.mul(load(x + end, left), share), left);
  }
}

/** Layer norm of the rows of x [rows, cols], or RMS norm where they are not `centred`; address 0 of `shift` stands for none. */
export function norm(
  x: usize,
  y: usize,
  gain: usize,
  shift: usize,
  rows: i32,
  cols: i32,
  eps: f32,
  centred: i32,
): void {
  const step = (<usize>cols) << 2;
  const end = step & ~15;
  const left = cols & 3;
  for (let i = 0; i < rows; i++, x += step, y += step) {
    let sums = centred ? load(x + end, left) : f32x4.splat(0);
    if (centred) for (let at: usize = 0; at < end; at += 16) sums = f32x4.add(sums, v128.load(x + at));
    const mean = sumOf(sums) / <f32>cols;
    const middle = f32x4.splat(mean);
    const rest = f32x4.sub(load(x + end, left, mean), middle); // 0 in lanes that remain
    let squares = f32x4.mul(rest, rest);
    for (let at: usize = 0; at < end; at += 16) {
      const off = f32x4.sub(v128.load(x + at), middle);
      squares = fma(off, off, squares);
    }
    const factor = f32x4.splat(1 / sqrt(sumOf(squares) / <f32>cols + eps));
    for (let at: usize = 0; at < end; at += 16) {
      let value = f32x4.mul(f32x4.sub(v128.load(x + at), middle), f32x4.mul(factor, v128.load(gain + at)));
      if (shift) value = f32x4.add(value, v128.load(shift + at));
      v128.store(y + at, value);
    }
    if (left) {
      const value = f32x4.mul(rest, f32x4.mul(factor, load(gain + end, left)));
      save(y + end, shift ? f32x4.add(value, load(shift + end, left)) : value, left);
    }
  }
}

/** x (1 + erf(x / sqrt 2)) / 2, in place. */
export function gelu(x: usize, count: i32): void {
  for (; count >= 4; count -= 4, x += 16) v128.store(x, geluOf(v128.load(x)));
  if (count > 0) save(x, geluOf(load(x, count)), count);
}

/** x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, in place. */
export function geluTanh(x: usize, count: i32): void {
  for (; count >= 4; count -= 4, x += 16) v128.store(x, geluTanhOf(v128.load(x)));
  if (count > 0) save(x, geluTanhOf(load(x, count)), count);
}

/** x sigmoid(1.702 x), in place. */
export function quickGelu(x: usize, count: i32): void {
  for (; count >= 4; count -= 4, x += 16) v128.store(x, quickGeluOf(v128.load(x)));
  if (count > 0) save(x, quickGeluOf(load(x, count)), count);
}

/** y = silu(gate) value, [rows, cols], y without gaps between its rows. */
export function gated(gate: usize, value: usize, stride: i32, y: usize, rows: i32, cols: i32): void {
  const step = (<usize>stride) << 2;
  const end = (<usize>(cols & ~3)) << 2;
  const left = cols & 3;
  for (let i = 0; i < rows; i++, gate += step, value += step, y += (<usize>cols) << 2) {
    for (let at: usize = 0; at < end; at += 16)
      v128.store(y + at, gatedOf(v128.load(gate + at), v128.load(value + at)));
    if (left) save(y + end, gatedOf(load(gate + end, left), load(value + end, left)), left);
  }
}

/** x += y, [rows, cols], or x += y * gamma with a factor for each column; address 0 of `gamma` stands for none. */
export function add(x: usize, y: usize, gamma: usize, rows: i32, cols: i32): void {
  const step = (<usize>cols) << 2;
  const end = step & ~15;
  const left = cols & 3;
  for (let i = 0; i < rows; i++, x += step, y += step) {
    for (let at: usize = 0; at < end; at += 16) {
      const value = v128.load(y + at);
      const added = gamma ? f32x4.mul(value, v128.load(gamma + at)) : value;
      v128.store(x + at, f32x4.add(v128.load(x + at), added));
    }
    if (left) {
      const value = load(y + end, left);
      const added = gamma ? f32x4.mul(value, load(gamma + end, left)) : value;
      save(x + end, f32x4.add(load(x + end, left), added), left);
    }
  }
}

export function scale(x: usize, count: i32, factor: f32): void {
  const factors = f32x4.splat(factor);
  for (; count >= 4; count -= 4, x += 16) v128.store(x, f32x4.mul(v128.load(x), factors));
  if (count > 0) save(x, f32x4.mul(load(x, count), factors), count);
}

/** y = x, [rows, cols], each with a stride of its own. */
export function copy(x: usize, xStride: i32, y: usize, yStride: i32, rows: i32, cols: i32): void {
  const size = (<usize>cols) << 2;
  for (let i = 0; i < rows; i++, x += (<usize>xStride) << 2, y += (<usize>yStride) << 2)
    memory.copy(y, x, size);
}

/**
 * Rotary positions: the pairs of each row of x [rows, 2 half] turned by their angles, in place. Pair j is (j, j + half), or
 * (2 j, 2 j + 1) where pairs are `adjacent`; cosines and sines are [rows, half].
 */
export function rotate(x: usize, cosines: usize, sines: usize, rows: i32, half: i32, adjacent: i32): void {
  const apart: usize = adjacent ? 4 : (<usize>half) << 2;
  const step: usize = adjacent ? 8 : 4;
  for (let i = 0; i < rows; i++, x += (<usize>half) << 3) {
    for (let j = 0, at = x; j < half; j++, at += step, cosines += 4, sines += 4) {
      const first = f32.load(at);
      const second = f32.load(at + apart);
      const c = f32.load(cosines);
      const s = f32.load(sines);
      f32.store(at, first * c - second * s);
      f32.store(at + apart, second * c + first * s);
    }
  }
}
