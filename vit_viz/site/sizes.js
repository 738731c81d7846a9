// The sizes to choose from, as vit_viz/ui/header/sizes.py has them: how a photo becomes the model's input, in how many patches, and what
// that costs.

import { parametersOf } from '../browser/config.js';
import { gridOf, MOST_CHOSEN_PATCHES } from '../browser/preprocess.js';
/** @import { Mode } from '../browser/preprocess.js' */
/** @import { Loaded } from '../browser/serving.js' */

const FACTORS = [1.5, 2, 3, 4, 6, 8];
const COST =
  'The work is counted from the model’s shape: 2 P N + 4 N² D for N tokens of D numbers and P weights per block.';

/**
 * The sizes in each shape, as pairs of words and value, the model's own first; and what a size costs.
 * @param {Loaded} loaded @param {{height: number, width: number}} photo @param {number} present the size that is looked at
 */
export function sizesOf({ config, recipe }, photo, present) {
  const sides = /** @type {[number, number]} */ ([photo.height, photo.width]);
  const weights = [...parametersOf(config)]
    .filter(([name, shape]) => name.startsWith('blocks.0.') && shape.length === 2)
    .reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 1), 0);
  const work = (/** @type {number[]} */ [rows, cols]) => {
    const tokens = rows * cols + Number(config.class_token) + config.reg_tokens;
    return 2 * weights * tokens + 4 * tokens ** 2 * config.embed_dim;
  };
  const short = Math.min(...gridOf(recipe, sides, { mode: 'stretch' }));
  /** @param {Mode} mode @returns {[string, string][]} */
  const offered = (mode) => {
    const own = gridOf(recipe, sides, { mode });
    const many = (/** @type {number[]} */ [rows, cols]) =>
      `${rows} x ${cols} patches, ${(rows * cols).toLocaleString('en')}`;
    /** @type {Map<number, number[]>} */
    const possible = new Map();
    for (let size = short + 1; size <= Math.sqrt(MOST_CHOSEN_PATCHES); size++) {
      try {
        possible.set(size, gridOf(recipe, sides, { mode, size }));
      } catch {
        break;
      }
    }
    const wanted = [
      ...FACTORS.map((factor) => Math.round(short * factor)),
      present,
      [...possible.keys()].at(-1),
    ];
    const more = [...possible].filter(([size]) => wanted.includes(size));
    return [
      [`${many(own)}: the model's own size`, '0'],
      ...more.map(([size, grid]) => {
        const times = work(grid) / work(own);
        const of = `about ${times.toFixed(times >= 3 ? 0 : 1)} x the work of ${own[0]} x ${own[1]}`;
        return /** @type {[string, string]} */ ([`${many(grid)}: ${of}`, String(size)]);
      }),
    ];
  };
  return {
    offered: { fit: offered('fit'), crop: offered('crop'), stretch: offered('stretch') },
    cost: `Up to ${MOST_CHOSEN_PATCHES.toLocaleString('en')} patches are computed here. ${COST}`,
  };
}
