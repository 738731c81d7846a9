// From a file and a picture to what an explorer shows: a model with its preprocessing and the names of its classes.

import { inOurFormat } from './checkpoint.js';
import { checkedConfig, headDim } from './config.js';
import { Model } from './model.js';
import { OUTPUTS } from './outputs.js';
import { checkedRecipe, ofPatches, prepare } from './preprocess.js';
import { BadFile, jsonOf, Weights } from './weights.js';
/** @import { About } from './checkpoint.js' */
/** @import { Input, Pass } from './model.js' */
/** @import { Output } from './outputs.js' */
/** @import { Options, Prepared, Recipe } from './preprocess.js' */
/** @import { Picture } from './resize.js' */
/** @import { Wasm } from './wasm.js' */
/** @import { Read } from './weights.js' */

/** @typedef {Pass & {crop: Prepared['crop'], heads: number, tokens: number, headDim: number,
 *     scale: number, input: Input}} Traced */

export class Engine {
  /**
   * @param {Model} model @param {Recipe} recipe @param {string[] | null} labels names of the classes @param {string[]} notes
   * @param {Output | null} output what one output is, where its file says so
   */
  constructor(model, recipe, labels, notes, output = null) {
    this.model = model;
    this.recipe = recipe;
    this.labels = labels;
    this.output = output;
    this.notes = notes; // sentences on what the file did not say
  }

  /**
   * @param {Read} read a file @param {Wasm} wasm @param {(read: number, all: number) => void} [progress] of bytes
   * @param {About} [about] of a file that others may have written
   */
  static async load(read, wasm, progress, about) {
    const weights = inOurFormat(await Weights.open(read), about);
    const { preprocess, labels, notes } = weights.metadata;
    const recipe = checkedRecipe(jsonOf(preprocess));
    const config = checkedConfig(jsonOf(weights.metadata.config));
    if (recipe.channels !== config.in_chans)
      throw new BadFile('The preprocessing of this file gives other channels than its model takes.');
    const names = jsonOf(labels) ?? null;
    const isNames = Array.isArray(names) && names.every((name) => typeof name === 'string');
    if (names !== null && !(isNames && names.length === config.num_classes))
      throw new BadFile('This file does not have one name for each class of its model.');
    const output = OUTPUTS.find((kind) => kind === jsonOf(weights.metadata.output)) ?? null;
    return new Engine(await Model.load(weights, wasm, progress), recipe, names, jsonOf(notes) ?? [], output);
  }

  /**
   * One forward pass of a picture.
   * @param {Picture} picture @param {Options} [options] @param {(layer: number, depth: number) => void} [progress]
   * @returns {Traced}
   */
  trace(picture, options, progress) {
    const prepared = prepare(picture, this.recipe, options);
    const { config } = this.model;
    const pass = this.model.run(prepared, progress);
    const tokens = pass.prefix.length + pass.grid[0] * pass.grid[1];
    const scale = config.scale ?? headDim(config) ** -0.5;
    const crop = ofPatches(prepared.crop, pass.grid, config.patch_size);
    return {
      ...pass,
      input: prepared,
      crop,
      heads: config.num_heads,
      tokens,
      headDim: headDim(config),
      scale,
    };
  }
}
