// How the work of a kernel is shared by threads: which argument counts its rows, columns or heads, and what a part of them is.
//
// A part is the kernel's own call with fewer of them. Each number is computed by one thread, in the same order of sums as without
// threads, so that results are the same bit for bit.

/**
 * @typedef {object} Split arguments are named by their positions
 * @property {number} count how many units there are: rows, columns, numbers, heads, blocks of queries
 * @property {number} [grain] how many units belong together
 * @property {(args: number[]) => number} work of a unit, in additions or what takes as long
 * @property {Record<number, (args: number[]) => number>} [steps] of an address: how many numbers lie between its units
 * @property {number} [first] which unit is the first, where it is counted and no address
 * @property {(args: number[]) => number} [room] numbers of room that argument 2 gives each thread
 */

const one = () => 1;
/** @param {number} position @returns {(args: number[]) => number} */
const at = (position) => (args) => args[position];
/** @type {Split} */
const NUMBERS = { count: 1, grain: 4, work: () => 4, steps: { 0: one } };
/** @type {Split} */
const SLOPES = { count: 2, grain: 4, work: () => 8, steps: { 0: one, 1: one } };

/** @type {Record<string, Split>} */
export const SPLITS = {
  product: {
    count: 8,
    grain: 8,
    work: (args) => (args[6] * args[7]) / 16,
    steps: { 2: at(7), 3: one, 4: one },
  },
  pack: { count: 4, grain: 8, work: at(5), steps: { 0: at(1), 3: at(5) } },
  unpack: { count: 2, grain: 8, work: (args) => 2 * args[3], steps: { 0: at(3), 1: at(3) } },
  softmax: { count: 1, work: (args) => 4 * args[2], steps: { 0: at(2), 3: one, 4: one } },
  norm: { count: 4, work: at(5), steps: { 0: at(5), 1: at(5) } },
  gelu: NUMBERS,
  geluTanh: NUMBERS,
  quickGelu: NUMBERS,
  scale: NUMBERS,
  gated: { count: 4, work: (args) => 4 * args[5], steps: { 0: at(2), 1: at(2), 3: at(5) } },
  add: { count: 3, work: at(4), steps: { 0: at(4), 1: at(4) } },
  splitHeads: { count: 1, first: 0, work: (args) => args[5] * args[6] },
  packHeads: { count: 1, first: 0, work: (args) => 2 * args[7] * args[8] },
  attend: {
    count: 1,
    first: 0,
    work: (args) => 64 * args[12] * (1 + args[13] / 8),
    room: (args) => 64 * args[12],
  },
  valueSquares: {
    count: 1,
    first: 0,
    work: (args) => (args[7] * args[8] ** 2) / 16,
    room: (args) => args[7] * args[8],
  },
  normBack: { count: 3, work: (args) => 4 * args[4], steps: { 0: at(4), 1: at(4) } },
  softmaxBack: { count: 2, work: (args) => 3 * args[3], steps: { 0: at(3), 1: at(3) } },
  geluBack: SLOPES,
  geluTanhBack: SLOPES,
  quickGeluBack: SLOPES,
  gatedBack: { count: 4, work: (args) => 8 * args[5], steps: { 0: at(2), 1: at(2), 3: at(5) } },
};

/**
 * The arguments of `count` units from `first` on. An address 0 stands for nothing and remains.
 * @param {Split} split @param {number[]} args @param {number} first @param {number} count @param {number} thread
 */
export function partOf(split, args, first, count, thread) {
  const own = args.slice();
  own[split.count] = count;
  if (split.first !== undefined) own[split.first] += first;
  if (split.room) own[2] += 4 * thread * split.room(args);
  for (const [position, step] of Object.entries(split.steps ?? {})) {
    const address = Number(position);
    if (args[address]) own[address] += 4 * first * step(args);
  }
  return own;
}
