// Random numbers as NumPy draws them, so that the page's orders and starts are those of Python: `default_rng([seed, i]).permutation(n)`.
//
// Sources: numpy/random/bit_generator.pyx (SeedSequence), O'Neill 2014 (PCG64 XSL-RR), and `Generator.shuffle` (Fisher & Yates).

const WORDS = 4; // of a seed's pool
const FACTOR = 0x2360ed051fc65da44385df649fccf645n;
const [BITS_32, BITS_64, BITS_128] = [32n, 64n, 128n].map((bits) => (1n << bits) - 1n);

/** A random order of `count` things. @param {number} seed @param {number} i which one of the orders of a seed @param {number} count */
export function randomOrder(seed, i, count) {
  const { half: draw } = generator([seed, i]);
  const order = Int32Array.from({ length: count }, (_, at) => at);
  for (let at = count - 1; at > 0; at--) {
    const other = upTo(draw, at);
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}

/** A number up to a highest one, each equally often: as many bits as that has, drawn again where they say more. @param {() => number} draw @param {number} most */
function upTo(draw, most) {
  const mask = 2 ** (32 - Math.clz32(most)) - 1;
  for (;;) {
    const number = (draw() & mask) >>> 0;
    if (number <= most) return number;
  }
}

/**
 * Draws numbers, each equally often.
 * @param {number[]} entropy
 * @returns {{half: () => number, below: (count: number) => number, share: () => number}} half: of 32 bits, the lower half of one of 64, then
 *     its upper half; below: `integers(count)`, by Lemire's products; share: `random()`, of 53 bits
 */
export function generator(entropy) {
  const words = spread(entropy).map(BigInt);
  const [high, low, upper, lower] = [0, 2, 4, 6].map((i) => words[i] | (words[i + 1] << 32n));
  const increment = ((((upper << 64n) | lower) << 1n) | 1n) & BITS_128;
  let state = (((high << 64n) | low) + increment) & BITS_128;
  const step = () => (state = (state * FACTOR + increment) & BITS_128);
  step();
  const whole = () => {
    const mixed = ((step() >> 64n) ^ state) & BITS_64;
    const turn = state >> 122n;
    return ((mixed >> turn) | (mixed << (64n - turn))) & BITS_64;
  };
  let left = -1;
  const half = () => {
    if (left >= 0) {
      const number = left;
      left = -1;
      return number;
    }
    const number = whole();
    left = Number(number >> 32n);
    return Number(number & BITS_32);
  };
  const below = (/** @type {number} */ count) => {
    for (;;) {
      const product = BigInt(half()) * BigInt(count);
      if (Number(product & BITS_32) >= 2 ** 32 % count) return Number(product >> 32n);
    }
  };
  return { half, below, share: () => Number(whole() >> 11n) * 2 ** -53 };
}

/** Eight words of 32 bits, every one of which depends on all of the entropy. @param {number[]} entropy at most four words */
function spread(entropy) {
  const mixing = hash(0x43b0d7e5, 0x931e8875);
  const pool = Array.from({ length: WORDS }, (_, i) => mixing(entropy[i] ?? 0));
  for (let from = 0; from < WORDS; from++)
    for (let to = 0; to < WORDS; to++)
      if (from !== to) {
        const sum = (Math.imul(0xca01f9dd, pool[to]) - Math.imul(0x4973f715, mixing(pool[from]))) >>> 0;
        pool[to] = (sum ^ (sum >>> 16)) >>> 0;
      }
  const drawing = hash(0x8b51f9dd, 0x58f38ded);
  return Array.from({ length: 2 * WORDS }, (_, i) => drawing(pool[i % WORDS]));
}

/** Scatters words, each with another constant. @param {number} constant @param {number} factor @returns {(word: number) => number} */
function hash(constant, factor) {
  return (word) => {
    const own = word ^ constant;
    constant = Math.imul(constant, factor);
    const product = Math.imul(own, constant) >>> 0;
    return (product ^ (product >>> 16)) >>> 0;
  };
}
