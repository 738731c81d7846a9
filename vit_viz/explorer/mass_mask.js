// The top of a map: the smallest set of patches that holds a share of what falls on patches; mass_mask of vit_viz/analyses/attention.py.
//
// A repaint asks for one per cell of the mosaic, so cells are not sorted: the bits of non-negative floats sort like the numbers, and
// sums by their first bits say between which two numbers the share is reached; only the few values there are sorted.

const SHIFT = 20; // leaves exponent and 3 bits: eight classes from a number to its double
const SUMS = new Float64Array(1 << (31 - SHIFT));

/** Rounding of fp32 must not ask for one patch more. */
const SLACK = 1e-7;

/**
 * The smallest set of patches that holds at least `share` of the patches' sum (DINO, Caron et al. 2021); equal values are
 * taken in order of their index. Zeros alone have an empty set.
 * @param {Float32Array} values patches only, none negative
 * @param {number} share in (0, 1]
 * @param {Uint8Array} [mask] written: 1 inside
 * @returns {Uint8Array}
 */
export function massMask(values, share, mask = new Uint8Array(values.length)) {
  const { limit, above, wanted } = split(values, share - SLACK);
  let sum = above;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    mask[i] = value > limit ? 1 : 0;
    if (value === limit && sum < wanted) {
      mask[i] = 1;
      sum += limit;
    }
  }
  return mask;
}

/**
 * The value at which the sum of the values, from the largest on, reaches a share of all: it, the sum of the larger ones, and
 * the sum that is wanted.
 * @param {Float32Array} values
 * @param {number} share
 */
function split(values, share) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  SUMS.fill(0);
  let place = 0;
  let total = 0;
  for (let i = 0; i < bits.length; i++) {
    const own = bits[i] >>> SHIFT;
    SUMS[own] += values[i];
    total += values[i];
    if (own > place) place = own;
  }
  const wanted = share * total;
  let above = 0;
  while (place > 0 && above + SUMS[place] < wanted) above += SUMS[place--];
  const few = new Float32Array(values.length);
  let at = 0;
  for (let i = 0; i < bits.length; i++) if (bits[i] >>> SHIFT === place) few[at++] = values[i];
  const count = at;
  few.subarray(0, count).sort(); // ascending: typed arrays sort by number
  while (at > 1 && above + few[at - 1] < wanted) above += few[--at];
  const limit = few[at - 1];
  for (; at < count && few[at] === limit; at++) above -= limit; // not larger, but equal
  return { limit, above, wanted };
}
