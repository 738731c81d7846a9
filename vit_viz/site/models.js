// Checkpoints of the visitor: which files are some, and what the page says of them. They are read where they lie and sent nowhere.

import { parametersOf, trainedGrid } from '../browser/config.js';
/** @import { About } from '../browser/checkpoint.js' */
/** @import { Loaded } from '../browser/serving.js' */
/** @import { Carried } from '../ui/kit/carried.js' */
/** @import { ModelFacts } from './running.js' */

/** @import { Settings } from '../browser/recipes.js' */

/** What Python tells of published models, see `About`. @typedef {Omit<About, 'name' | 'settings'>} Published */
/** @typedef {{file: File, settings: Settings}} Checkpoint a file of weights, and what came with it as JSON */

const ENDING = /\.safetensors$/i;
const PICKLED = /\.(pth|pt|bin|ckpt)$/i;
const SAID = /\.json$/i;
const MOST_BYTES = 10_000_000; // of a configuration
const OF_PREPROCESSOR =
  /^(image_(mean|std|processor_type)|feature_extractor_type|do_(resize|rescale|normalize|center_crop))$/;
const OF_CONFIG = /^(architectures?|model_type|pretrained_cfg|label_names|id2label)$/;

/** The checkpoint among files with what came with it, the other files, and a sentence on those that are not read here. @param {Carried} carried */
export async function checkpointIn({ files }) {
  const all = [...files];
  const named = (/** @type {RegExp} */ ending) => all.filter(({ name }) => ending.test(name));
  const [weights, pickled, said] = [ENDING, PICKLED, SAID].map(named);
  const others = all.filter((file) => ![weights, pickled, said].flat().includes(file));
  const names = weights.map(({ name }) => name).join(' and ');
  /** @type {{checkpoint: Checkpoint | null, problem: string, others: File[]}} */
  const found = { checkpoint: null, problem: '', others };
  if (weights.length > 1)
    return { ...found, problem: `${names} are several models: please bring one at a time.` };
  if (said.length && !weights.length && !pickled.length) {
    const problem = `${said[0].name} only describes a model: please bring it together with the safetensors file that it is about.`;
    return { ...found, problem };
  }
  if (pickled.length)
    found.problem = `${pickled[0].name} is no safetensors file, which alone is read here: the app opens it.`;
  if (!weights.length) return found;
  try {
    found.checkpoint = { file: weights[0], settings: await settingsIn(said) };
  } catch (error) {
    found.problem = `${names} was not opened. ${/** @type {Error} */ (error).message}`;
  }
  return found;
}

/** What JSON files say together: config.json, and under "preprocessor" preprocessor_config.json or what transformers 5 has instead of it. */
async function settingsIn(/** @type {File[]} */ files) {
  /** @type {Settings} */
  let settings = {};
  for (const file of files) {
    const { name } = file;
    if (file.size > MOST_BYTES) throw new Error(`${name} is larger than any configuration.`);
    let said;
    try {
      said = JSON.parse(await file.text());
    } catch {
      throw new Error(`${name} cannot be read: it is not JSON.`);
    }
    const keys = typeof said === 'object' && said ? Object.keys(said) : [];
    const has = (/** @type {RegExp} */ some) => keys.some((key) => some.test(key));
    if (keys.includes('image_processor')) settings.preprocessor = said.image_processor;
    else if (has(OF_PREPROCESSOR)) settings.preprocessor ??= said;
    else if (has(OF_CONFIG)) settings = { ...said, ...settings };
    else throw new Error(`${name} describes neither a model nor how its pictures are prepared.`);
  }
  return settings;
}

/** A visitor's file as a model of the page. @param {Checkpoint} checkpoint @param {ModelFacts[]} models those that the page has @param {Published} published */
export function modelOf({ file, settings }, models, published) {
  const name = file.name.replace(ENDING, '');
  const taken = (/** @type {string} */ one) => models.some((model) => model.name === one);
  let own = name;
  for (let count = 2; taken(own); count++) own = `${name} (${count})`;
  const about = { ...published, name, settings };
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
