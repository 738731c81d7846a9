// Where the patches lie on the photo: vit_viz/analyses/patches.py.

import { coveredSize, round } from '../preprocess.js';
import { numbers } from './form.js';
import { layoutOf } from './layout.js';
/** @import { Context } from './form.js' */

/** @param {Context} context */
function patches(context) {
  const { engine, traced } = context;
  const { grid, patches: count } = layoutOf(context);
  const [rows, cols] = grid;
  const [top, left, height, width] = traced.crop.region;
  const places = Array.from({ length: count }, (_, i) => {
    const [row, col] = [Math.floor(i / cols), i % cols];
    const edges = [
      (height * row) / rows,
      (width * col) / cols,
      (height * (row + 1)) / rows,
      (width * (col + 1)) / cols,
    ];
    return edges.map((edge, side) => edge + (side % 2 ? left : top));
  });
  const { channels, patch_size: size } = engine.recipe;
  const patch = [channels, ...size];
  return {
    values: numbers([rows, cols, 4], places.flat()),
    unit: 'pixels of the photo',
    shapes: {
      image: [channels, ...traced.crop.input],
      patch,
      patches: [count, patch.reduce((all, one) => all * one)],
      tokens: [traced.tokens, engine.model.config.embed_dim],
    },
    note: leftOut(context),
  };
}

/** What of the photo the model does not see, and why where its patches do not fill its own input. */
function leftOut(/** @type {Context} */ { engine, traced }) {
  const { original, input, region } = traced.crop;
  const [top, left, tall, wide] = region;
  const [down, across] = [
    Math.max(0, Math.min(top + tall, original[0]) - Math.max(top, 0)),
    Math.max(0, Math.min(left + wide, original[1]) - Math.max(left, 0)),
  ];
  const share = 1 - (down * across) / (original[0] * original[1]);
  const [own, covered] = [engine.recipe.input_size, coveredSize(engine.recipe)];
  let seen = share < 0.0005 ? 'the whole photo' : `${(100 * share).toFixed(1)}% of the photo left out`;
  if (share >= 0.0005 && input.join() === covered.join() && covered.join() !== own.join())
    seen += `: the last ${own[0] - input[0]} rows and ${own[1] - input[1]} columns of its ${own[0]} x ${own[1]} px fill no patch`;
  return `photo ${original[0]} x ${original[1]} px to input ${input[0]} x ${input[1]} px, ${seen}`;
}

/** The pixels that the model receives as a picture, their normalisation undone. @param {Context} context */
function sequence({ engine, traced }) {
  const { channels, mean, std } = engine.recipe;
  const { pixels, height, width } = traced.input;
  const values = Uint8Array.from({ length: pixels.length }, (_, at) => {
    const c = at % channels;
    const level = Math.fround(
      Math.fround(pixels[c * height * width + Math.floor(at / channels)] * Math.fround(std[c])) +
        Math.fround(mean[c]),
    );
    return Math.min(255, Math.max(0, round(Math.fround(level * 255))));
  });
  return { values: { shape: channels === 1 ? [height, width] : [height, width, channels], data: values } };
}

/** @type {import('./index.js').Table} */
export const PATCHES = {
  patches: { needs: 'pass', options: { numbers: false }, answer: patches },
  sequence: { needs: 'pass', answer: sequence },
};
