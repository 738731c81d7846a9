// Four numbers at once: how they are read, written and summed, and the functions that activations are made of. See kernels.ts.

/** Four numbers, or as many as are left, with `fill` in the lanes that remain. */
export function load(at: usize, left: i32, fill: f32 = 0): v128 {
  if (left >= 4) return v128.load(at);
  let lanes = f32x4.splat(fill);
  if (left > 0) lanes = f32x4.replace_lane(lanes, 0, f32.load(at));
  if (left > 1) lanes = f32x4.replace_lane(lanes, 1, f32.load(at, 4));
  if (left > 2) lanes = f32x4.replace_lane(lanes, 2, f32.load(at, 8));
  return lanes;
}

export function save(at: usize, lanes: v128, left: i32): void {
  if (left >= 4) {
    v128.store(at, lanes);
    return;
  }
  if (left > 0) f32.store(at, f32x4.extract_lane(lanes, 0));
  if (left > 1) f32.store(at, f32x4.extract_lane(lanes, 1), 4);
  if (left > 2) f32.store(at, f32x4.extract_lane(lanes, 2), 8);
}

export function sumOf(lanes: v128): f32 {
  const low = f32x4.extract_lane(lanes, 0) + f32x4.extract_lane(lanes, 1);
  return low + (f32x4.extract_lane(lanes, 2) + f32x4.extract_lane(lanes, 3));
}

/** a b + c, rounded once where relaxed SIMD is compiled in and the processor has it, else twice. */
export function fma(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

// Constants lie in memory: V8 builds one of four lanes anew wherever it is written, which takes longer than to load it.
const ONE = memory.data<f32>([1]);
const HALF = memory.data<f32>([0.5]);
const LEAST = memory.data<f32>([-87.3]); // exp of less is 0, to float32's normal numbers
const MOST = memory.data<f32>([88.3]);
const LOG2_E = memory.data<f32>([1.4426950408889634]);
const ROUNDER = memory.data<f32>([12582912]); // 1.5 x 2^23: a sum with it has no fraction, and that whole number in its lowest bits
const MINUS_LN2 = memory.data<f32>([-0.693359375, 2.1219444e-4]); // in two parts
const EXP = memory.data<f32>([
  1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5,
]);
const ERF_T = memory.data<f32>([0.3275911]);
const ERF = memory.data<f32>([1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592]);
const ROOT_HALF = memory.data<f32>([0.7071067811865476]);
const CUBIC = memory.data<f32>([0.044715]);
const ROOT_8_PI = memory.data<f32>([1.5957691216057308]); // 2 sqrt(2 / pi)
const QUICK = memory.data<f32>([1.702]);
const CUBIC_3 = memory.data<f32>([0.134145]); // 3 x 0.044715
const ROOT_2_PI = memory.data<f32>([0.3989422804014327]); // 1 / sqrt(2 pi)

/** A constant in all lanes. */
function four(at: usize, i: usize = 0): v128 {
  return v128.load32_splat(at + (i << 2));
}

/** exp(x) to about one part in 10^7: 2^n times a polynomial of what is left (Cephes, expf). */
export function exp(x: v128): v128 {
  x = f32x4.pmin(f32x4.pmax(x, four(LEAST)), four(MOST));
  const shifted = fma(x, four(LOG2_E), four(ROUNDER));
  const n = f32x4.sub(shifted, four(ROUNDER));
  const r = fma(n, four(MINUS_LN2, 1), fma(n, four(MINUS_LN2), x)); // x - n ln 2
  let p = four(EXP);
  p = fma(p, r, four(EXP, 1));
  p = fma(p, r, four(EXP, 2));
  p = fma(p, r, four(EXP, 3));
  p = fma(p, r, four(EXP, 4));
  p = fma(p, r, four(EXP, 5));
  p = f32x4.add(fma(p, f32x4.mul(r, r), r), four(ONE));
  return i32x4.add(p, i32x4.shl(shifted, 23)); // n is added to the exponent
}

function sigmoid(x: v128): v128 {
  return f32x4.div(four(ONE), f32x4.add(four(ONE), exp(f32x4.neg(x))));
}

/** erf(x) to 1.5 parts in 10^7 (Abramowitz & Stegun 7.1.26). */
function erf(x: v128): v128 {
  const size = f32x4.abs(x);
  const t = f32x4.div(four(ONE), fma(size, four(ERF_T), four(ONE)));
  let p = four(ERF);
  p = fma(p, t, four(ERF, 1));
  p = fma(p, t, four(ERF, 2));
  p = fma(p, t, four(ERF, 3));
  p = fma(p, t, four(ERF, 4));
  const tail = f32x4.mul(f32x4.mul(p, t), exp(f32x4.neg(f32x4.mul(x, x))));
  return v128.or(f32x4.sub(four(ONE), tail), v128.xor(x, size)); // with the sign of x
}

/** x (1 + erf(x / sqrt 2)) / 2 */
export function geluOf(x: v128): v128 {
  const half = f32x4.mul(x, four(HALF));
  return fma(half, erf(f32x4.mul(x, four(ROOT_HALF))), half);
}

/** x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: (1 + tanh u) / 2 = sigmoid(2 u). */
export function geluTanhOf(x: v128): v128 {
  const cubic = fma(f32x4.mul(x, x), four(CUBIC), four(ONE));
  return f32x4.mul(x, sigmoid(f32x4.mul(f32x4.mul(x, cubic), four(ROOT_8_PI))));
}

/** x sigmoid(1.702 x) */
export function quickGeluOf(x: v128): v128 {
  return f32x4.mul(x, sigmoid(f32x4.mul(x, four(QUICK))));
}

/** silu(gate) value */
export function gatedOf(gate: v128, value: v128): v128 {
  return f32x4.mul(siluOf(gate), value);
}

/** The slope of x (1 + erf(x / sqrt 2)) / 2: what x is multiplied by there, and x times the normal density. */
export function geluSlope(x: v128): v128 {
  const half = four(HALF);
  const density = exp(f32x4.neg(f32x4.mul(f32x4.mul(x, x), half)));
  const below = fma(half, erf(f32x4.mul(x, four(ROOT_HALF))), half);
  return fma(f32x4.mul(x, four(ROOT_2_PI)), density, below);
}

/** The slope of x s(u), where s is the sigmoid and u a function of x with that slope: s + x s (1 - s) u'. */
function slopeThrough(x: v128, u: v128, uSlope: v128): v128 {
  const e = exp(f32x4.neg(u));
  const s = f32x4.div(four(ONE), f32x4.add(four(ONE), e));
  const sSlope = f32x4.mul(f32x4.mul(e, s), f32x4.mul(s, uSlope)); // 1 - s would be rounded where s is almost 1
  return fma(x, sSlope, s);
}

export function geluTanhSlope(x: v128): v128 {
  const square = f32x4.mul(x, x);
  const u = f32x4.mul(f32x4.mul(x, fma(square, four(CUBIC), four(ONE))), four(ROOT_8_PI));
  return slopeThrough(x, u, f32x4.mul(fma(square, four(CUBIC_3), four(ONE)), four(ROOT_8_PI)));
}

export function quickGeluSlope(x: v128): v128 {
  return slopeThrough(x, f32x4.mul(x, four(QUICK)), four(QUICK));
}

export function siluOf(x: v128): v128 {
  return f32x4.mul(x, sigmoid(x));
}

export function siluSlope(x: v128): v128 {
  return slopeThrough(x, x, four(ONE));
}
