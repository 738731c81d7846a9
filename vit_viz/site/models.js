// Checkpoints of the visitor: which files are some, and what the page says of them. They are read where they lie and sent nowhere.

import { parametersOf, trainedGrid } from '../browser/config.js';
/** @import { About } from '../browser/checkpoint.js' */
/** @import { Loaded } from '../browser/serving.js' */
/** @import { Carried } from '../ui/kit/carried.js' */
/** @import { ModelFacts } from './running.js' */

/** What Python tells of published models, see `About`. @typedef {Omit<About, 'name'>} Published */

const ENDING = /\.safetensors$/i;
const PICKLED = /\.(pth|pt|bin|ckpt)$/i;

/** The checkpoint among files, the others, and a sentence on files of weights that are not read here. @param {Carried} carried */
export function checkpointIn({ files }) {
  const all = [...files];
  const checkpoint = all.find(({ name }) => ENDING.test(name)) ?? null;
  const pickled = all.find(({ name }) => PICKLED.test(name));
  const problem = pickled
    ? `${pickled.name} is no safetensors file, which alone is read here: the app opens it.`
    : '';
  return { checkpoint, problem, others: all.filter(({ name }) => !ENDING.test(name) && !PICKLED.test(name)) };
}

/** A visitor's file as a model of the page. @param {File} file @param {ModelFacts[]} models those that the page has @param {Published} published */
export function modelOf(file, models, published) {
  const name = file.name.replace(ENDING, '');
  const taken = (/** @type {string} */ one) => models.some((model) => model.name === one);
  let own = name;
  for (let count = 2; taken(own); count++) own = `${name} (${count})`;
  const about = { ...published, name };
  return { name: own, card: '', storage: '', file: '', bytes: file.size, own: { file, about }, notes: '' };
}

/** What a model is, in the words of `LoadedModel.card`, and what its file did not say. @param {ModelFacts} model @param {Loaded} loaded */
export function describe(model, { config, notes }) {
  const { depth, num_heads: heads, patch_size: patch, img_size: size, reg_tokens: registers } = config;
  const parameters = [...parametersOf(config).values()].map((shape) => shape.reduce((a, b) => a * b, 1));
  const millions = parameters.reduce((sum, one) => sum + one, 0) / 1e6;
  model.card = [
    `${depth} layers x ${heads} heads`,
    `patch ${patch[0] === patch[1] ? patch[0] : patch.join(' x ')}`,
    `${trainedGrid(config).join(' x ')} patches at ${size.join(' x ')}`,
    ...(registers ? [`${registers} registers`] : []),
    `${millions.toFixed(1)} M parameters`,
    'from a file of yours',
  ].join(', ');
  model.storage = 'The weights are those of your file, computed with in fp32.';
  model.notes = notes.join(' ');
}
