// The recipe that turns a picture into a model's input, as vit_viz/images/preprocess.py has it: fit, crop or stretch, then normalised.

import { resize } from './resize.js';
/** @import { Picture } from './resize.js' */

/**
 * @typedef {'fit' | 'crop' | 'stretch'} Mode
 * @typedef {object} Recipe `Preprocess.to_dict()`; sizes are [height, width]
 * @property {number[]} input_size
 * @property {number[]} patch_size
 * @property {number | number[]} resize_to the short side, or [height, width]
 * @property {string} interpolation
 * @property {number[]} mean
 * @property {number[]} std
 * @property {number} channels
 * @property {string} crop
 * @property {boolean} drop_remainder
 * @property {boolean} [one_size]
 * @property {boolean} [rounds_down]
 *
 * @typedef {{pixels: Float32Array, height: number, width: number, channels: number, crop: {original: number[],
 *     input: number[], region: number[]}}} Prepared pixels: [channels, height, width]; crop: as `CropBox.to_dict()`
 * @typedef {{mode?: Mode, size?: number, maxPatches?: number}} Options size: short side in patches; 0 is the recipe's own
 */

const MOST_PATCHES = 1024; // of the recipe's own size in mode fit, which is made smaller beyond it
export const MOST_CHOSEN_PATCHES = 4096; // of a size that is chosen, which is refused beyond it
const MOST_PIXELS = 2048; // of a side

/** A half goes to the even neighbour, as Python rounds. */
export function round(/** @type {number} */ value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** The recipe as a file brings it, checked. @param {any} values @returns {Recipe} */
export function checkedRecipe(values) {
  const isSide = (/** @type {unknown} */ side) =>
    Number.isInteger(side) && Number(side) >= 1 && Number(side) <= MOST_PIXELS;
  const isPair = (/** @type {unknown} */ pair) =>
    Array.isArray(pair) && pair.length === 2 && pair.every(isSide);
  const areChannels = (/** @type {any} */ numbers) =>
    Array.isArray(numbers) && numbers.length === values.channels && numbers.every(Number.isFinite);
  const good =
    isPair(values?.input_size) &&
    isPair(values.patch_size) &&
    (isSide(values.resize_to) || isPair(values.resize_to)) &&
    [1, 3].includes(values.channels) &&
    areChannels(values.mean) &&
    areChannels(values.std) &&
    values.std.every((/** @type {number} */ one) => one > 0) &&
    ['center', 'squash', 'border'].includes(values.crop);
  if (!good) throw new Error('The preprocessing that came with this model cannot be used here.');
  return values;
}

/** The recipe for another input, whose short side has `size` patches. @param {Recipe} recipe @returns {Recipe} */
export function sized(recipe, /** @type {number} */ size) {
  if (!Number.isInteger(size) || size < 0)
    throw new Error(`A size is the short side in patches, a whole number, not ${size}.`);
  const short = Math.min(...ownGrid(recipe));
  if (size === 0 || size === short) return recipe;
  const axis = ownGrid(recipe).indexOf(short);
  const covered = coveredSize(recipe);
  const scale = (size * recipe.patch_size[axis]) / covered[axis];
  const input = covered.map(
    (side, i) => Math.max(1, round((side * scale) / recipe.patch_size[i])) * recipe.patch_size[i],
  );
  if (Math.max(...input) > MOST_PIXELS)
    throw new Error(
      `A short side of ${size} patches makes the input ${input[0]} x ${input[1]} pixels; a side has at most ${MOST_PIXELS}.`,
    );
  const inProportion = (/** @type {number} */ side) =>
    Math.min(MOST_PIXELS, round((side * Math.min(...input)) / Math.min(...recipe.input_size)));
  const to = recipe.resize_to;
  return {
    ...recipe,
    input_size: input,
    resize_to: Array.isArray(to) ? to.map(inProportion) : inProportion(to),
  };
}

/**
 * The model's input for a picture.
 * @param {Picture} picture RGB, or RGB with a fourth channel that is not looked at @param {Recipe} recipe @param {Options} [options]
 * @returns {Prepared}
 */
export function prepare(picture, recipe, { mode = 'fit', size = 0, maxPatches } = {}) {
  const own = sized(recipe, size);
  const limit = chosenLimit(picture, own, mode, size, maxPatches);
  const levels = asChannels(picture, recipe.channels);
  const original = [picture.height, picture.width];
  let cutting;
  if (mode === 'crop') cutting = cropped(levels, own);
  else if (mode === 'fit' || mode === 'stretch') {
    const [height, width] = mode === 'stretch' ? own.input_size : fitSize(own, ...sides(picture), limit);
    const region = [0, 0, picture.height, picture.width];
    cutting = { cut: resize(levels, height, width, own.interpolation), region };
  } else throw new Error(`mode is "fit", "crop" or "stretch", not "${mode}".`);
  const { cut, region } = mode === 'fit' ? cutting : withoutRemainder(cutting, own);
  const { height, width, channels } = cut;
  const crop = { original, input: [height, width], region };
  return { pixels: normalised(cut, own), height, width, channels, crop };
}

/** The rows and columns of patches of a photo's input. @param {Recipe} recipe @param {[number, number]} photo its height and width @param {Options} how */
export function gridOf(recipe, [height, width], { mode = 'fit', size = 0, maxPatches }) {
  const own = sized(recipe, size);
  const limit = chosenLimit({ height, width }, own, mode, size, maxPatches);
  if (mode !== 'fit') return ownGrid(own);
  return fitSize(own, height, width, limit).map((side, i) => side / own.patch_size[i]);
}

/** How many patches there may be: those of a chosen size are counted first. */
function chosenLimit(
  /** @type {Pick<Picture, 'height' | 'width'>} */ picture,
  /** @type {Recipe} */ own,
  /** @type {Mode} */ mode,
  /** @type {number} */ size,
  /** @type {number | undefined} */ maxPatches,
) {
  if (!size) return maxPatches || MOST_PATCHES;
  const [height, width] = mode === 'fit' ? fitSize(own, ...sides(picture), MOST_PIXELS ** 2) : [0, 0];
  const [rows, cols] =
    mode === 'fit' ? [height / own.patch_size[0], width / own.patch_size[1]] : ownGrid(own);
  const most = maxPatches || MOST_CHOSEN_PATCHES;
  if (rows * cols > most)
    throw new Error(
      `This size has ${rows} x ${cols} patches, more than the ${most} that are computed here; please choose a smaller one.`,
    );
  return rows * cols;
}

/** @returns {[number, number]} */
function sides(/** @type {Pick<Picture, 'height' | 'width'>} */ { height, width }) {
  return [height, width];
}

export function coveredSize(
  /** @type {Recipe} */ { input_size: size, patch_size: patch, drop_remainder: drops },
) {
  return drops ? size.map((side, i) => side - (side % patch[i])) : size;
}

function ownGrid(/** @type {Recipe} */ recipe) {
  return coveredSize(recipe).map((side, i) => Math.ceil(side / recipe.patch_size[i]));
}

/** The input in mode fit: whole patches, at most `limit`, the shape kept as well as they can. */
function fitSize(
  /** @type {Recipe} */ { input_size: input, patch_size: patch },
  /** @type {number} */ height,
  /** @type {number} */ width,
  /** @type {number} */ limit,
) {
  const scale = Math.min(...input) / Math.min(height, width);
  const [tall, wide] = [(height * scale) / patch[0], (width * scale) / patch[1]];
  let grid = [Math.max(1, round(tall)), Math.max(1, round(wide))];
  if (grid[0] * grid[1] > limit) grid = largestGrid(tall / wide, limit);
  return [grid[0] * patch[0], grid[1] * patch[1]];
}

/** Rows and columns of at most `limit` patches, rows / cols near `aspect`; of equally near ones the larger. */
function largestGrid(/** @type {number} */ aspect, /** @type {number} */ limit) {
  const ideal = Math.sqrt(limit * aspect);
  const candidates = [];
  for (const rows of [Math.floor(ideal), Math.ceil(ideal)].map((n) => Math.max(1, n))) {
    for (const cols of [Math.floor(rows / aspect), Math.ceil(rows / aspect), Math.floor(limit / rows)]) {
      const wide = Math.max(1, cols);
      if (rows * wide <= limit)
        candidates.push([Math.abs(Math.log(rows / wide / aspect)), -rows * wide, rows, wide]);
    }
  }
  candidates.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]);
  return candidates.length ? candidates[0].slice(2) : [1, 1];
}

/** Height and width before the centre crop, by the arithmetic of torchvision's Resize and timm's ResizeKeepRatio. */
function recipeSize(/** @type {Recipe} */ recipe, /** @type {number} */ height, /** @type {number} */ width) {
  const { resize_to: to, input_size: input, crop } = recipe;
  const [tall, wide] = Array.isArray(to) ? to : input.map((side) => round((side * to) / Math.min(...input)));
  if (crop === 'squash') return [tall, wide];
  if (tall === wide && crop === 'center') {
    const long = Math.trunc((tall * Math.max(height, width)) / Math.min(height, width));
    return height <= width ? [tall, long] : [long, tall];
  }
  const ratio = (crop === 'border' ? Math.max : Math.min)(height / tall, width / wide);
  return [Math.max(1, round(height / ratio)), Math.max(1, round(width / ratio))];
}

/** @typedef {{cut: Picture, region: number[]}} Cutting region: top, left, height and width, in pixels of the original */

/** @param {Picture} picture @param {Recipe} recipe @returns {Cutting} */
function cropped(picture, recipe) {
  const [height, width] = recipeSize(recipe, picture.height, picture.width);
  const [tall, wide] = recipe.input_size;
  const [top, left] = [centre(height, tall, recipe), centre(width, wide, recipe)];
  const [down, across] = [picture.height / height, picture.width / width];
  const resized = resize(picture, height, width, recipe.interpolation);
  const border = recipe.crop === 'border' ? recipe.mean.map((value) => round(255 * value)) : [0];
  return {
    cut: part(resized, top, left, tall, wide, border),
    region: [top * down, left * across, tall * down, wide * across],
  };
}

/** Where a centre crop starts; negative where the picture is padded. */
function centre(/** @type {number} */ size, /** @type {number} */ crop, /** @type {Recipe} */ recipe) {
  if (crop > size) return -Math.floor((crop - size) / 2);
  return recipe.rounds_down ? Math.floor((size - crop) / 2) : round((size - crop) / 2);
}

/** A part of a picture; where it reaches beyond, the levels of the border, one for all channels or one for each. @returns {Picture} */
function part(
  /** @type {Picture} */ { height, width, channels, levels },
  /** @type {number} */ top,
  /** @type {number} */ left,
  /** @type {number} */ tall,
  /** @type {number} */ wide,
  border = [0],
) {
  const result = new Uint8ClampedArray(tall * wide * channels);
  if (border.some(Boolean)) result.forEach((_, i) => (result[i] = border[i % border.length]));
  const [first, end] = [Math.max(0, left), Math.min(width, left + wide)];
  for (let y = Math.max(0, top); y < Math.min(height, top + tall); y++) {
    const row = levels.subarray((y * width + first) * channels, (y * width + end) * channels);
    result.set(row, ((y - top) * wide + first - left) * channels);
  }
  return { height: tall, width: wide, channels, levels: result };
}

/** Without the pixels that no patch covers. @param {Cutting} cutting @param {Recipe} recipe @returns {Cutting} */
function withoutRemainder({ cut, region }, recipe) {
  const [tall, wide] = coveredSize(recipe);
  if (cut.height === tall && cut.width === wide) return { cut, region };
  const [top, left, height, width] = region;
  return {
    cut: part(cut, 0, 0, tall, wide),
    region: [top, left, height * (tall / cut.height), width * (wide / cut.width)],
  };
}

/**
 * The same input by what its patches cover, which is more where the model pads it.
 * @param {Prepared['crop']} crop @param {number[]} grid @param {number[]} patch height, width
 */
export function ofPatches({ original, input, region: [top, left, height, width] }, grid, patch) {
  const [tall, wide] = grid.map((count, i) => count * patch[i]);
  const region = [top, left, height * (tall / input[0]), width * (wide / input[1])];
  return { original, input: [tall, wide], region };
}

/** RGB, or the luminance as Pillow's convert("L") has it. @param {Picture} picture @returns {Picture} */
function asChannels({ height, width, channels: from, levels }, /** @type {number} */ channels) {
  if (from === channels) return { height, width, channels, levels };
  const result = new Uint8ClampedArray(height * width * channels);
  for (let i = 0, at = 0; i < levels.length; i += from) {
    const [r, g, b] = [levels[i], levels[i + 1], levels[i + 2]];
    if (channels === 1) result[at++] = (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
    else {
      result[at++] = r;
      result[at++] = g;
      result[at++] = b;
    }
  }
  return { height, width, channels, levels: result };
}

/** (level / 255 - mean) / std in float32, [channels, height, width]. @param {Picture} picture @param {Recipe} recipe */
function normalised({ height, width, channels, levels }, { mean, std }) {
  const pixels = new Float32Array(levels.length);
  const { fround } = Math;
  for (let c = 0, at = 0; c < channels; c++) {
    const [middle, spread] = [fround(mean[c]), fround(std[c])];
    for (let i = 0; i < height * width; i++)
      pixels[at++] = fround(fround(fround(levels[i * channels + c] / 255) - middle) / spread);
  }
  return pixels;
}
