// Gradients through the arithmetic of kernels.ts: g, that of what a kernel has made, becomes that of what it was made of, in place.

import { fma, geluSlope, geluTanhSlope, load, quickGeluSlope, save, siluOf, siluSlope, sumOf } from './lanes';

/**
 * Through `norm` of x [rows, cols]: rate (g' - mean g' - n mean(g' n)), where n is x normalised, g' is g times the gain, and the rate 1 /
 * deviation; without mean g' where the norm is not `centred`.
 */
export function normBack(
  x: usize,
  g: usize,
  gain: usize,
  rows: i32,
  cols: i32,
  eps: f32,
  centred: i32,
): void {
  const step = (<usize>cols) << 2;
  const end = step & ~15;
  const left = cols & 3;
  const share = <f32>1 / <f32>cols;
  const lastGain = load(gain + end, left);
  for (let i = 0; i < rows; i++, x += step, g += step) {
    let sums = load(x + end, left);
    for (let at: usize = 0; at < end; at += 16) sums = f32x4.add(sums, v128.load(x + at));
    const mean = centred ? sumOf(sums) * share : 0;
    const middle = f32x4.splat(mean);
    const lastOff = f32x4.sub(load(x + end, left, mean), middle); // 0 in lanes that remain
    const lastG = f32x4.mul(load(g + end, left), lastGain);
    let squares = f32x4.mul(lastOff, lastOff);
    let total = lastG;
    let along = f32x4.mul(lastG, lastOff);
    for (let at: usize = 0; at < end; at += 16) {
      const off = f32x4.sub(v128.load(x + at), middle);
      const own = f32x4.mul(v128.load(g + at), v128.load(gain + at));
      squares = fma(off, off, squares);
      total = f32x4.add(total, own);
      along = fma(own, off, along);
    }
    const rate: f32 = 1 / sqrt(sumOf(squares) * share + eps);
    const rates = f32x4.splat(rate);
    const shift = f32x4.splat(centred ? sumOf(total) * share : 0);
    const tilt = f32x4.splat(sumOf(along) * share * rate * rate);
    for (let at: usize = 0; at < end; at += 16) {
      const off = f32x4.sub(v128.load(x + at), middle);
      const own = f32x4.mul(v128.load(g + at), v128.load(gain + at));
      const across = f32x4.sub(f32x4.sub(own, shift), f32x4.mul(off, tilt));
      v128.store(g + at, f32x4.mul(across, rates));
    }
    if (left) {
      const across = f32x4.sub(f32x4.sub(lastG, shift), f32x4.mul(lastOff, tilt));
      save(g + end, f32x4.mul(across, rates), left);
    }
  }
}

/** Through the softmax that made the weights [rows, cols]: weight (g - sum weight g). */
export function softmaxBack(weights: usize, g: usize, rows: i32, cols: i32): void {
  const step = (<usize>cols) << 2;
  const end = step & ~15;
  const left = cols & 3;
  for (let i = 0; i < rows; i++, weights += step, g += step) {
    let sums = f32x4.mul(load(weights + end, left), load(g + end, left));
    for (let at: usize = 0; at < end; at += 16) sums = fma(v128.load(weights + at), v128.load(g + at), sums);
    const middle = f32x4.splat(sumOf(sums));
    for (let at: usize = 0; at < end; at += 16)
      v128.store(g + at, f32x4.mul(v128.load(weights + at), f32x4.sub(v128.load(g + at), middle)));
    if (left) {
      const off = f32x4.sub(load(g + end, left), middle);
      save(g + end, f32x4.mul(load(weights + end, left), off), left);
    }
  }
}

/** Through the activations of x, numbers one by one: g times their slope. */
export function geluBack(x: usize, g: usize, count: i32): void {
  for (; count >= 4; count -= 4, x += 16, g += 16)
    v128.store(g, f32x4.mul(v128.load(g), geluSlope(v128.load(x))));
  if (count > 0) save(g, f32x4.mul(load(g, count), geluSlope(load(x, count))), count);
}

export function geluTanhBack(x: usize, g: usize, count: i32): void {
  for (; count >= 4; count -= 4, x += 16, g += 16)
    v128.store(g, f32x4.mul(v128.load(g), geluTanhSlope(v128.load(x))));
  if (count > 0) save(g, f32x4.mul(load(g, count), geluTanhSlope(load(x, count))), count);
}

export function quickGeluBack(x: usize, g: usize, count: i32): void {
  for (; count >= 4; count -= 4, x += 16, g += 16)
    v128.store(g, f32x4.mul(v128.load(g), quickGeluSlope(v128.load(x))));
  if (count > 0) save(g, f32x4.mul(load(g, count), quickGeluSlope(load(x, count))), count);
}

/** Through silu(gate) value, g [rows, cols] without gaps: gate and value, whose rows have a stride, become their gradients. */
export function gatedBack(gate: usize, value: usize, stride: i32, g: usize, rows: i32, cols: i32): void {
  const step = (<usize>stride) << 2;
  for (let i = 0; i < rows; i++, gate += step, value += step, g += (<usize>cols) << 2) {
    for (let j = 0; j < cols; j += 4) {
      const at = (<usize>j) << 2;
      const own = load(g + at, cols - j);
      const a = load(gate + at, cols - j);
      const b = load(value + at, cols - j);
      save(gate + at, f32x4.mul(own, f32x4.mul(b, siluSlope(a))), cols - j);
      save(value + at, f32x4.mul(own, siluOf(a)), cols - j);
    }
  }
}
