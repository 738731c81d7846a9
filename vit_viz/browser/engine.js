// From a file and a picture to what an explorer shows: a model with its preprocessing and the names of its classes.

import { inOurFormat } from './checkpoint.js';
import { checkedConfig, headDim } from './config.js';
import { editsOf } from './edits.js';
import { Model } from './model.js';
import { OUTPUTS } from './outputs.js';
import { checkedRecipe, ofPatches, prepare } from './preprocess.js';
import { BadFile, jsonOf, Weights } from './weights.js';
/** @import { About } from './checkpoint.js' */
/** @import { Edits } from './edits.js' */
/** @import { Input, Pass } from './model.js' */
/** @import { Output } from './outputs.js' */
/** @import { Options, Prepared, Recipe } from './preprocess.js' */
/** @import { Picture } from './resize.js' */
/** @import { Wasm } from './wasm.js' */
/** @import { Read } from './weights.js' */

/** @typedef {Pass & {crop: Prepared['crop'], heads: number, tokens: number, headDim: number,
 *     scale: number, input: Input}} Traced */

export class Engine {
  /** What edited passes are of. @type {WeakMap<Traced, {plain: Traced, words: string, edits: Edits}>} */
  origins = new WeakMap();
  /** Of passes without edits the last edited one. @type {WeakMap<Traced, Traced>} */
  variants = new WeakMap();

  /**
   * @param {Model} model @param {Recipe} recipe @param {string[] | null} labels names of the classes @param {string[]} notes
   * @param {Output | null} output what one output is, where its file says so @param {boolean} isRounded whether its weights were rounded to int8
   */
  constructor(model, recipe, labels, notes, output = null, isRounded = false) {
    this.model = model;
    this.recipe = recipe;
    this.labels = labels;
    this.output = output;
    this.isRounded = isRounded;
    this.notes = notes; // sentences on what the file did not say
  }

  /**
   * @param {Read} read a file @param {Wasm} wasm @param {(read: number, all: number) => void} [progress] of bytes
   * @param {About} [about] of a file that others may have written
   */
  static async load(read, wasm, progress, about) {
    const file = await Weights.open(read);
    const weights = inOurFormat(file, about);
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
    const isRounded = [...file.entries.values()].some(({ type }) => type === 'I8');
    const model = await Model.load(weights, wasm, progress);
    return new Engine(model, recipe, names, jsonOf(notes) ?? [], output, isRounded);
  }

  /**
   * One forward pass of a picture.
   * @param {Picture} picture @param {Options & {edits?: string}} [options] @param {(layer: number, depth: number) => void} [progress]
   * @returns {Traced}
   */
  trace(picture, options, progress) {
    const prepared = prepare(picture, this.recipe, options);
    const traced = this.traced(this.model.run(prepared, progress), prepared, prepared.crop);
    return this.edited(traced, options?.edits ?? '');
  }

  /** @param {Pass} pass @param {Input} input @param {Prepared['crop']} cut @returns {Traced} */
  traced(pass, input, cut) {
    const { config } = this.model;
    const tokens = pass.prefix.length + pass.grid[0] * pass.grid[1];
    const scale = config.scale ?? headDim(config) ** -0.5;
    const crop = ofPatches(cut, pass.grid, config.patch_size);
    return { ...pass, input, crop, heads: config.num_heads, tokens, headDim: headDim(config), scale };
  }

  /** A pass as it is under these edits and no others; kept for the next question. @param {Traced} traced @param {string} words of edits, '' for none */
  edited(traced, words) {
    const { plain } = this.origins.get(traced) ?? { plain: traced };
    const last = this.variants.get(plain);
    for (const known of [traced, plain, last])
      if (known && words === (this.origins.get(known)?.words ?? '')) return known;
    const { depth, num_heads: heads } = this.model.config;
    const edits = editsOf(words, { depth, heads, prefix: plain.prefix, grid: plain.grid });
    const variant = { ...plain, ...this.model.edited(plain, edits) };
    this.origins.set(variant, { plain, words, edits });
    this.variants.set(plain, variant);
    return variant;
  }

  /** What is edited in a pass. @param {Traced} traced @returns {Edits} */
  editsOf(traced) {
    return this.origins.get(traced)?.edits ?? new Map();
  }
}
