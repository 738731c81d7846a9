// A checkpoint that somebody else has written, as one of ours: its parameters under timm's names, its configuration and preprocessing.

import { inferred } from './architecture.js';
import { familyOf } from './families.js';
import { labelsOf, outputOf, recipeOf } from './recipes.js';
import { BadFile, jsonOf, Weights } from './weights.js';
/** @import { Shapes } from './architecture.js' */
/** @import { Config } from './config.js' */
/** @import { Family, Known } from './families.js' */
/** @import { Recipe } from './preprocess.js' */
/** @import { Settings } from './recipes.js' */

/**
 * @typedef {{name: string, known: Known, imagenet: string[], settings?: Settings}} About the file's name without ending, what is known,
 *     ImageNet's classes, and what came with the file
 */
/** @typedef {{name: string, shape: number[], numbers: Float32Array}} Tensor */

const PATCHES = 'patch_embed.proj.weight';
const PART = /^(blocks\.\d+\.attn)\.([qkv])\.(weight|bias)$/;
const REGISTERS = /(^|\.)(reg_token|register_tokens)$/;

/** A file as the engine reads it; one that says itself what its model is made of stays as it is. @param {Weights} weights @param {About} [about] */
export function inOurFormat(weights, about) {
  if (!about || isObject(jsonOrText(weights.metadata.config))) return weights;
  const own = weights.shapes();
  const family = familyOf(own, about);
  const names = new Map(
    [...own]
      .filter(([name, shape]) => !family.drop.some((pattern) => pattern.test(name)) && !isNone(name, shape))
      .map(([name]) => [name, family.rules.reduce((now, [from, to]) => now.replace(from, to), name)]),
  );
  const kept = new Map([...weights.entries].filter(([name]) => names.has(name)));
  const renamed = new Renamed(new Weights(weights.read, kept, {}), names, family.merges);
  const { config: settled, assumed = [] } = family.settled(renamed.shapes(), about);
  const { config, assumed: more } = inferred(renamed.shapes(), settled);
  checkSame(config, about.settings ?? {});
  const { recipe, origin } = recipeOf(config, about, family.recipe);
  renamed.metadata = {
    config: JSON.stringify(config),
    preprocess: JSON.stringify(recipe),
    labels: JSON.stringify(labelsOf(config, about)),
    output: JSON.stringify(outputOf(config, about) ?? null),
    notes: JSON.stringify(notesOf(family, [...more, ...assumed], recipe, origin)),
  };
  return renamed;
}

const isObject = (/** @type {unknown} */ value) => typeof value === 'object' && value !== null;

function jsonOrText(/** @type {string | undefined} */ text) {
  try {
    return jsonOf(text);
  } catch {
    return text;
  }
}

/** A model without registers may keep an empty table of them. @param {string} name @param {number[]} shape */
function isNone(name, shape) {
  return shape.includes(0) && REGISTERS.test(name);
}

/** Refuses a config.json that says other sizes than the file has. */
function checkSame(/** @type {Config} */ { embed_dim: dim, depth }, /** @type {Settings} */ settings) {
  const { hidden_size: wide, num_features: features, num_hidden_layers: deep } = settings;
  for (const [name, said, own] of /** @type {[string, any, number][]} */ ([
    ['hidden_size', wide, dim],
    ['num_features', features, dim],
    ['num_hidden_layers', deep, depth],
  ]))
    if (Number.isFinite(said) && said !== own)
      throw new BadFile(
        `The config.json beside it is of another model: its ${name} is ${said}, and that of this file ${own}.`,
      );
}

/** What a reader has to know of a file that does not say it. @param {Family} family @param {string[]} assumed @param {Recipe} recipe */
function notesOf({ name }, assumed, { mean, std }, /** @type {string} */ origin) {
  const channels = `channels less ${mean.join(', ')}, divided by ${std.join(', ')}`;
  const all = origin ? assumed : [...assumed, `a preprocessing (bicubic; ${channels})`];
  const whose = origin === 'name' ? 'timm does it for its weights of this name' : `its ${origin} says`;
  return [
    `Recognised as ${name} by the names of its parameters.`,
    ...(origin ? [`Pictures are prepared as ${whose} (${channels}).`] : []),
    ...(all.length ? [`Assumed, as the file does not say it: ${all.join('; ')}.`] : []),
  ];
}

/** A file under other names, where parameters may be joined: q, k and v; the class token and its position. */
class Renamed {
  /** @type {Record<string, string>} */ metadata = {};

  /** @param {Weights} weights @param {Map<string, string>} names @param {boolean} merges see `Family` */
  constructor(weights, names, merges) {
    this.weights = weights;
    this.names = names;
    /** @type {Shapes} */
    const shapes = new Map([...weights.shapes()].map(([name, shape]) => [String(names.get(name)), shape]));
    this.parts = wholes(shapes);
    this.isMerged = merges && hasPositionOfItsOwn(shapes);
    this.patches = flatPatches(shapes);
  }

  /** @returns {Shapes} */
  shapes() {
    const shapes = new Map();
    for (const [own, shape] of this.weights.shapes()) {
      const name = String(this.names.get(own));
      const whole = this.wholeOf(name);
      if (whole) shapes.set(whole.name, [3 * shape[0], ...shape.slice(1)]);
      else if (this.isMerged && name === 'pos_embed') shapes.set(name, [1, shape[1] - 1, shape[2]]);
      else shapes.set(name, name === PATCHES ? (this.patches ?? shape) : shape);
    }
    return shapes;
  }

  /** The joint parameter that a parameter becomes a part of, and all its parts. */
  wholeOf(/** @type {string} */ part) {
    const [, attention, , kind] = PART.exec(part) ?? [];
    const name = `${attention}.qkv.${kind}`;
    return this.parts.has(name)
      ? { name, all: ['q', 'k', 'v'].map((one) => `${attention}.${one}.${kind}`) }
      : null;
  }

  /** All tensors as those of `Weights`. @param {(read: number, all: number) => void} [progress] @returns {AsyncGenerator<Tensor>} */
  async *tensors(progress) {
    /** @type {Map<string, Tensor>} */
    const waiting = new Map();
    for await (const { name: own, shape, numbers } of this.weights.tensors(progress)) {
      const tensor = { name: String(this.names.get(own)), shape, numbers };
      waiting.set(tensor.name, tensor);
      for (const done of this.complete(tensor, waiting)) yield done;
    }
  }

  /** What is whole now that a tensor has come; it no longer waits. @param {Tensor} tensor @param {Map<string, Tensor>} waiting */
  complete({ name }, waiting) {
    const whole = this.wholeOf(name);
    if (whole) return taken(whole.all, waiting, (three) => [joined(whole.name, three)]);
    if (this.isMerged && ['cls_token', 'pos_embed'].includes(name))
      return taken(['cls_token', 'pos_embed'], waiting, ([token, table]) => merged(token, table));
    return taken([name], waiting, ([one]) => [
      name === PATCHES && this.patches ? { ...one, shape: this.patches } : one,
    ]);
  }
}

/** @param {string[]} names @param {Map<string, Tensor>} waiting @param {(tensors: Tensor[]) => Tensor[]} then @returns {Tensor[]} */
function taken(names, waiting, then) {
  const all = names.map((name) => waiting.get(name));
  if (!all.every((one) => one !== undefined)) return [];
  for (const name of names) waiting.delete(name);
  return then(all);
}

/** Names of those joint parameters whose three parts are there, in one shape. @param {Shapes} shapes */
function wholes(shapes) {
  const found = new Set();
  for (const [name, shape] of shapes) {
    const part = PART.exec(name);
    if (!part) continue;
    const parts = ['q', 'k', 'v'].map((one) => shapes.get(`${part[1]}.${one}.${part[3]}`));
    if (parts.every((one) => one?.join() === shape.join())) found.add(`${part[1]}.qkv.${part[3]}`);
  }
  return found;
}

/** Whether the class token alone of the prefix tokens has a position: registers have none, so it goes into the token. @param {Shapes} shapes */
function hasPositionOfItsOwn(shapes) {
  const [table, token] = [shapes.get('pos_embed'), shapes.get('cls_token')];
  return shapes.has('reg_token') && !!token && table?.length === 3 && token.at(-1) === table[2];
}

/** The first files of timm have the patch embedding as a linear layer: its shape as a convolution. @param {Shapes} shapes */
function flatPatches(shapes) {
  const shape = shapes.get(PATCHES);
  if (shape?.length !== 2) return null;
  for (const channels of [3, 1]) {
    const side = Math.floor(Math.sqrt(Math.floor(shape[1] / channels)));
    if (channels * side * side === shape[1]) return [shape[0], channels, side, side];
  }
  return null;
}

/** @param {string} name @param {Tensor[]} tensors @returns {Tensor} */
function joined(name, tensors) {
  const { shape, numbers } = tensors[0];
  const all = new Float32Array(3 * numbers.length);
  tensors.forEach((tensor, i) => all.set(tensor.numbers, i * numbers.length));
  return { name, shape: [3 * shape[0], ...shape.slice(1)], numbers: all };
}

/** @param {Tensor} token @param {Tensor} table @returns {Tensor[]} */
function merged(token, table) {
  const dim = token.shape[2];
  const rest = { ...table, shape: [1, table.shape[1] - 1, dim], numbers: table.numbers.slice(dim) };
  return [{ ...token, numbers: token.numbers.map((value, i) => value + table.numbers[i]) }, rest];
}
