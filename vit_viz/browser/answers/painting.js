// Patches that are painted over in the input, and the target then: vit_viz/analyses/removal.py and occlusion of attribution.py.
//
// A patch is embedded by itself, so an input some of whose patches are painted over is made of the tokens of two inputs.

import { patchMap, mapWords } from './attention.js';
import { scoreOf } from './following.js';
/** @import { Context } from './form.js' */
/** @import { Followed } from './following.js' */

/** @typedef {'mean' | 'blur'} Baseline what stands in for patches: the preprocessing mean, or the picture with a blur of one patch */

/** The tokens of an input in which all patches are painted over, [tokens, dim]. @param {Context} context @param {Baseline} baseline */
export function paintedTokens({ engine, traced }, baseline) {
  const { input } = traced;
  const { in_chans: channels, patch_size: patch } = engine.model.config;
  const pixels =
    baseline === 'mean' ? new Float32Array(input.pixels.length) : blurred(input, channels, patch);
  return engine.model.stream({ ...input, pixels });
}

/**
 * The target with the patches of a set painted over.
 * @param {Context} context @param {Followed} followed @param {Float32Array} painted tokens, see `paintedTokens`
 * @param {(patch: number) => boolean} isGone
 */
export function paintedScore({ engine, traced }, { of }, painted, isGone) {
  const { residual, grid, prefix, tokens } = traced;
  const [stream, dim] = [residual[0].slice(), painted.length / tokens];
  for (let token = prefix.length; token < tokens; token++)
    if (isGone(token - prefix.length))
      stream.set(painted.subarray(token * dim, (token + 1) * dim), token * dim);
  return of(engine.model.outputs(stream, 0, grid, engine.editsOf(traced)));
}

/** @param {Context} context @param {{}} _options @param {{target: string | null}} about */
async function occlusion(context, _options, { target }) {
  const { prefix, tokens, logits } = context.traced;
  const score = scoreOf(context, target);
  const painted = paintedTokens(context, 'mean');
  const values = new Float64Array(tokens);
  for (let token = prefix.length; token < tokens; token++) {
    await context.step((token - prefix.length) / (tokens - prefix.length));
    const isGone = (/** @type {number} */ patch) => patch === token - prefix.length;
    values[token] = score.of(logits) - paintedScore(context, score, painted, isGone);
  }
  const map = patchMap(context, values, {
    ...{ unit: 'change of the target', range: [-Infinity, Infinity], signed: true },
    ...{ method: 'occlusion', classBlind: false, caption: `occlusion, towards the ${score.words}` },
  });
  return { ...map, prefix: {} };
}

/** A Gaussian blur with a standard deviation for each axis; the border repeats its last pixel. @param {import('../model.js').Input} input */
function blurred(
  { pixels, height, width },
  /** @type {number} */ channels,
  /** @type {number[]} */ [tall, wide],
) {
  const plane = height * width;
  const down = along(pixels, channels * width, height, tall, (line) => [
    Math.floor(line / width) * plane + (line % width),
    width,
  ]);
  return along(down, channels * height, width, wide, (line) => [line * width, 1]);
}

/**
 * Lines of numbers, each blurred. @param {Float32Array} numbers @param {number} lines @param {number} length @param {number} sigma
 * @param {(line: number) => [start: number, step: number]} place
 */
function along(numbers, lines, length, sigma, place) {
  const radius = Math.ceil(3 * sigma);
  const weights = Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp(-((i - radius) ** 2) / (2 * sigma ** 2)),
  );
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const result = new Float32Array(numbers.length);
  for (let line = 0; line < lines; line++) {
    const [start, step] = place(line);
    for (let i = 0; i < length; i++) {
      let value = 0;
      for (let j = -radius; j <= radius; j++)
        value += weights[j + radius] * numbers[start + step * Math.min(length - 1, Math.max(0, i + j))];
      result[start + step * i] = value / sum;
    }
  }
  return result;
}

/** @type {import('./index.js').Table} */
export const PAINTING = {
  occlusion: { needs: 'pass', takesTarget: true, answer: occlusion, says: mapWords },
};
