// The sizes to choose from, as vit_viz/ui/header/sizes.py has them: how a photo becomes the model's input, in how many patches, and what
// that costs.

import { fixed } from '../browser/answers/words.js';
import { parametersOf, prefixOf } from '../browser/config.js';
import { gridOf, MOST_CHOSEN_PATCHES, round } from '../browser/preprocess.js';
/** @import { Mode } from '../browser/preprocess.js' */
/** @import { Loaded } from '../browser/serving.js' */

const FACTORS = [1.5, 2, 3, 4, 6, 8];
const PAPER = 60; // patches on each side of the photos of 480 px in the figures of the DINO paper, arXiv:2104.14294
const COST =
  "The work is counted from the model's shape: 2 P N + 4 N² D for N tokens of D numbers and P weights per block.";

/**
 * The sizes in each shape, as pairs of words and value, the model's own first; and what a size costs.
 * @param {Pick<Loaded, 'config' | 'recipe'>} loaded @param {{height: number, width: number}} photo @param {number} present the size that is looked at
 */
export function sizesOf({ config, recipe }, photo, present) {
  const sides = /** @type {[number, number]} */ ([photo.height, photo.width]);
  const weights = [...parametersOf(config)]
    .filter(([name, shape]) => name.startsWith('blocks.0.') && shape.length === 2)
    .reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 1), 0);
  const work = (/** @type {number[]} */ [rows, cols]) => {
    const tokens = rows * cols + prefixOf(config).length;
    return 2 * weights * tokens + 4 * tokens ** 2 * config.embed_dim;
  };
  const isOfDino =
    recipe.patch_size.every((side) => side === 8) && recipe.input_size[0] === recipe.input_size[1];
  const isPaper = (/** @type {number[]} */ grid) => isOfDino && grid.every((side) => side === PAPER);
  const short = Math.min(...gridOf(recipe, sides, { mode: 'stretch' }));

  /** The largest size above the model's own; beyond the first that is too large all are. @param {Mode} mode */
  const largest = (mode) => {
    let [last, end] = [short, Math.floor(Math.sqrt(MOST_CHOSEN_PATCHES)) + 1];
    while (end - last > 1) {
      const size = Math.floor((last + end) / 2);
      try {
        gridOf(recipe, sides, { mode, size });
        last = size;
      } catch {
        end = size;
      }
    }
    return last;
  };
  const many = (/** @type {number[]} */ [rows, cols]) => `${rows} x ${cols} patches, ${grouped(rows * cols)}`;
  /** @param {Mode} mode @param {number} size */
  const words = (mode, size) => {
    const [own, grid] = [gridOf(recipe, sides, { mode }), gridOf(recipe, sides, { mode, size })];
    const times = work(grid) / work(own);
    const of = `about ${fixed(times, times >= 3 ? 0 : 1)} x the work of ${own[0]} x ${own[1]}`;
    return `${many(grid)}: ${of}${isPaper(grid) ? `; ${8 * PAPER} px, as in the figures of DINO` : ''}`;
  };
  /** @param {Mode} mode @returns {[string, string][]} */
  const offered = (mode) => {
    const last = largest(mode);
    const wanted = [...FACTORS.map((factor) => round(short * factor)), present, last];
    if (isOfDino) wanted.push(PAPER);
    const sizes = [...new Set(wanted)].filter((size) => size > short && size <= last).sort((a, b) => a - b);
    const more = sizes.map((size) => /** @type {[string, string]} */ ([words(mode, size), String(size)]));
    const isThere = last >= PAPER && isPaper(gridOf(recipe, sides, { mode, size: PAPER }));
    if (isOfDino && !isThere && largest('stretch') >= PAPER)
      more.push([`${words('stretch', PAPER)}; stretched to a square`, 'dino']);
    return [[`${many(gridOf(recipe, sides, { mode }))}: the model's own size`, '0'], ...more];
  };
  return {
    offered: { fit: offered('fit'), crop: offered('crop'), stretch: offered('stretch') },
    cost: `Up to ${grouped(MOST_CHOSEN_PATCHES)} patches are computed here. ${COST}`,
  };
}

/** A number with a comma before each three digits; to have the browser write one reads all that it knows of languages. */
function grouped(/** @type {number} */ count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}
