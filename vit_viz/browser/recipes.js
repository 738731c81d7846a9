// What came with a checkpoint as JSON: its preprocessing, the names of its classes, and what its outputs are, as
// vit_viz/checkpoints/recipes.py reads config.json of timm and transformers and preprocessor_config.json.

import { IMAGENET, publishedRecipe } from './families.js';
import { OUTPUTS } from './outputs.js';
import { BadFile } from './weights.js';
/** @import { About } from './checkpoint.js' */
/** @import { Config } from './config.js' */
/** @import { Evaluated } from './families.js' */
/** @import { Recipe } from './preprocess.js' */

/**
 * @typedef {Record<string, any>} Settings what config.json says, and under "preprocessor" what preprocessor_config.json says
 * @typedef {object} Processors of transformers, see the tables of the same names in recipes.py
 * @property {Record<string, any>} standard @property {Record<string, Record<string, any>>} by_name @property {Record<string, string>} by_model
 * @property {Record<string, string[]>} of_some @property {string[]} obeyed @property {string[]} without_effect
 */

const PIL_FILTERS = ['nearest', 'lanczos', 'bilinear', 'bicubic', 'box', 'hamming'];
/** transformers' `problem_type`. @type {Record<string, string>} */
const PROBLEMS = { regression: 'value', multi_label_classification: 'sigmoid' };

/**
 * How pictures become the input, and which file says so; "name": timm's weights of that name, "": the family's usual one.
 * @param {Config} config @param {About} about @param {Evaluated} usual @returns {{recipe: Recipe, origin: string}}
 */
export function recipeOf(config, { name, known, settings = {} }, usual) {
  const { preprocessor } = settings;
  const published = publishedRecipe(name, known);
  const [values, origin] = isFilled(preprocessor)
    ? [ofTransformers(preprocessor, config, settings, known.processors), 'preprocessor_config.json']
    : isFilled(timms(settings))
      ? [ofTimm(timms(settings), config), 'config.json']
      : published
        ? [ofTimm(published, config), 'name']
        : [
            {
              ...ofTimm(usual, config),
              resize_to: Math.floor(Math.min(...config.img_size) / usual.crop_pct),
            },
            '',
          ];
  const recipe = {
    ...{ input_size: config.img_size, patch_size: config.patch_size, channels: config.in_chans },
    ...{ drop_remainder: config.drop_remainder, one_size: false, rounds_down: false },
    ...values,
    ...{ mean: ofChannels(values.mean, config.in_chans), std: ofChannels(values.std, config.in_chans) },
  };
  return { recipe, origin };
}

/** Names of the classes; those of ImageNet for a thousand that have none, null where nothing names them. @param {Config} config @param {About} about */
export function labelsOf({ num_classes: count, projection }, { settings = {}, imagenet }) {
  if (!count || projection) return null;
  const names = classNames(settings);
  if (names.length === count) return names;
  return count === imagenet.length ? imagenet : null;
}

/** What one output is; undefined where nothing says it. @param {Config} config @param {About} about */
export function outputOf({ num_classes: count, projection }, { settings = {} }) {
  if (!count || projection) return undefined;
  return OUTPUTS.find((kind) => kind === settings.output) ?? PROBLEMS[settings.problem_type];
}

/** The `pretrained_cfg` of timm; its older config.json is flat. @returns {any} */
export function timms(/** @type {Settings} */ settings) {
  const isFlat = 'architecture' in settings && 'mean' in settings;
  return settings.pretrained_cfg ?? (isFlat ? settings : undefined);
}

/** @returns {string[]} */
function classNames(
  /** @type {Settings} */ { labels, label_names: keys, label_descriptions: described, id2label },
) {
  if (Array.isArray(labels)) return labels.map(String);
  if (Array.isArray(keys)) return keys.map((key) => String((isObject(described) && described[key]) ?? key));
  if (!isObject(id2label)) return [];
  const indices = Object.keys(id2label).map(Number);
  if (!indices.every(Number.isInteger))
    throw new BadFile('The class names that came with the model cannot be read.');
  const names = indices.sort((a, b) => a - b).map((index) => String(id2label[index]));
  return names.every((name, i) => name === `LABEL_${i}`) ? [] : names;
}

/** @returns {Pick<Recipe, 'input_size' | 'resize_to' | 'interpolation' | 'crop' | 'mean' | 'std'>} */
function ofTimm(/** @type {Partial<Evaluated>} */ values, /** @type {Config} */ config) {
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value)); // an empty one is the usual one
  const all = { input_size: [config.in_chans, ...config.img_size], ...IMAGENET, ...given };
  const size = read(all, 'input_size', (shape) => (Array.isArray(shape) ? shape.slice(1) : undefined));
  const share = read(all, 'crop_pct', number);
  const target = size.map((/** @type {number} */ side) => Math.floor(side / share));
  const { crop_mode: crop = 'center', interpolation = 'bicubic' } = /** @type {Partial<Evaluated>} */ (given);
  if (!['center', 'squash', 'border'].includes(crop)) throw refused('crop_mode', crop);
  if (!PIL_FILTERS.includes(interpolation)) throw refused('interpolation', interpolation);
  return {
    ...{ input_size: size, resize_to: new Set(size).size === 1 ? target[0] : target, interpolation, crop },
    ...{ mean: read(all, 'mean', numbers), std: read(all, 'std', numbers) },
  };
}

/** Resize, perhaps a centre crop, rescale and normalise; keys beyond that are refused by name. */
function ofTransformers(
  /** @type {Record<string, any>} */ written,
  /** @type {Config} */ config,
  /** @type {Settings} */ settings,
  /** @type {Processors} */ processors,
) {
  const { kind, isNamed } = processorOf(written, settings, processors);
  const present = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== null));
  const passed = [...processors.obeyed, ...processors.without_effect];
  for (const [name, value] of Object.entries(present))
    if (value !== false && !name.startsWith('_') && !passed.includes(name)) throw refused(name, value);
  for (const [name, owners] of Object.entries(processors.of_some))
    if (isNamed && present[name] && !owners.includes(kind))
      throw refused(name, present[name], `, and not read by ${kind}ImageProcessor`);
  const [height, width] = config.img_size;
  /** @type {Record<string, any>} */
  const values = {
    ...{ do_resize: true, do_rescale: true, do_normalize: true, size: { height, width } },
    ...processors.standard,
    ...processors.by_name[kind],
    ...present,
  };
  const shape = shapeOf(values);
  const interpolation = read(values, 'resample', (filter) => PIL_FILTERS[filter]);
  if (kind === 'DINOv3ViT' && ['bicubic', 'lanczos'].includes(interpolation))
    throw refused(
      'resample',
      values.resample,
      ', whose overshoots this processor keeps and pictures cannot hold',
    );
  const fits = (/** @type {number} */ side, /** @type {number} */ i) =>
    config.drop_remainder ? side >= config.patch_size[i] : side > 0 && side % config.patch_size[i] === 0;
  if (!shape.input_size.every(fits))
    throw refused(
      'size',
      shape.input_size,
      `: patches of ${config.patch_size.join(' x ')} pixels do not divide it`,
    );
  const padded = { pad_size: shape.input_size, ...values };
  if (values.do_pad && read(padded, 'pad_size', sides).join() !== shape.input_size.join())
    throw refused('pad_size', values.pad_size);
  return { ...shape, interpolation, ...statisticsOf(values) };
}

/** Which processor it is, "" where nothing tells, and whether the file names it. */
function processorOf(
  /** @type {Record<string, any>} */ values,
  /** @type {Settings} */ settings,
  /** @type {Processors} */ { by_name: byName, by_model: byModel },
) {
  const name = values.image_processor_type || values.feature_extractor_type;
  if (!name) {
    const [model] = String(settings.model_type ?? '')
      .replaceAll('-', '_')
      .split('_');
    return { kind: Object.hasOwn(byModel, model) ? byModel[model] : '', isNamed: false };
  }
  const kind = String(name).replace(/(ImageProcessor|FeatureExtractor)(Fast|Pil)?$/, '');
  if (!Object.hasOwn(byName, kind)) throw refused('image_processor_type', name);
  return { kind, isNamed: true };
}

/** The size of the input, and how a picture gets it. */
function shapeOf(/** @type {Record<string, any>} */ values) {
  if (!values.do_resize)
    throw refused('do_resize', false, ', and the model does not take pictures of every size');
  const isCropped = Boolean(values.do_center_crop);
  const isShort = Number.isInteger(values.size) && !values.default_to_square;
  const size = isShort ? { shortest_edge: values.size } : values.size;
  const said = isObject(size) ? Object.keys(size).filter((name) => size[name] !== null) : [];
  const byShortSide = said.join() === 'shortest_edge';
  if (values.crop_pct && (isCropped || !byShortSide))
    throw refused('crop_pct', values.crop_pct, ', beside another crop or size');
  let target;
  if (byShortSide) {
    const short = read(size, 'shortest_edge', whole);
    if (!isCropped && !('crop_pct' in values))
      throw refused('size', size, ', without do_center_crop, since inputs then have many shapes');
    if (!isCropped) return convnext(short, read(values, 'crop_pct', number));
    target = [short, short];
  } else target = read({ size }, 'size', sides);
  const cut = isCropped ? read(values, 'crop_size', sides) : target;
  const areSquares = target[0] === target[1] && cut[0] === cut[1];
  return {
    ...{ input_size: cut, resize_to: areSquares ? target[0] : target },
    ...{ crop: byShortSide ? 'center' : 'squash', rounds_down: true },
  };
}

/** A crop of the middle below 384 pixels, and from there on the whole picture, as ConvNextImageProcessor has it. */
function convnext(/** @type {number} */ side, /** @type {number} */ share) {
  const to =
    side < 384
      ? { resize_to: Math.trunc(side / share), crop: 'center' }
      : { resize_to: side, crop: 'squash' };
  return { input_size: [side, side], rounds_down: true, ...to };
}

/** Mean and deviation of levels / 255 that do what rescaling and normalising do to levels. */
function statisticsOf(/** @type {Record<string, any>} */ values) {
  const rescales = values.do_rescale;
  const scale = rescales ? 255 * read(values, 'rescale_factor', number) : 255;
  const offset = rescales && values.rescale_offset ? 1 : 0;
  const normalises = values.do_normalize;
  const mean = normalises ? read(values, 'image_mean', numbers) : [0];
  let std = normalises ? read(values, 'image_std', numbers) : [1];
  if (values.include_top) {
    // divided by the deviation once more
    const again = read(values, 'image_std', numbers);
    std = normalises ? again.map((/** @type {number} */ one) => one ** 2) : again;
  }
  return {
    mean: mean.map((/** @type {number} */ one) => (one + offset) / scale),
    std: std.map((/** @type {number} */ one) => one / scale),
  };
}

/** One number stands for all channels; a model of one channel has the mean of them. */
function ofChannels(/** @type {number[]} */ values, /** @type {number} */ channels) {
  if (channels === 1) return [values.reduce((sum, one) => sum + one, 0) / values.length];
  return values.length === 1 ? Array.from({ length: channels }, () => values[0]) : values;
}

const isObject = (/** @type {any} */ value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isFilled = (/** @type {any} */ value) => isObject(value) && Object.keys(value).length > 0;
const number = (/** @type {any} */ value) => (Number.isFinite(value) ? value : undefined);
const whole = (/** @type {any} */ value) => (Number.isInteger(value) ? value : undefined);

function numbers(/** @type {any} */ value) {
  const all = Array.isArray(value) ? value : [value];
  return all.length && all.every(Number.isFinite) ? all : undefined;
}

/** Height and width of a size as transformers writes it: a number for both, a pair, or both by name. */
function sides(/** @type {any} */ value) {
  let pair = Array.isArray(value) ? value : [value, value];
  if (isObject(value)) {
    const { height, width, ...others } = value;
    pair = [height, width, ...Object.values(others).filter((other) => other !== null)];
  }
  return pair.length === 2 && pair.every(Number.isInteger) ? pair : undefined;
}

/** One value of a recipe; undefined of `convert` means that it cannot be read. @param {Record<string, any>} values @param {string} name */
function read(values, name, /** @type {(value: any) => any} */ convert) {
  const value = convert(values[name]);
  if (value === undefined) throw refused(name, values[name]);
  return value;
}

function refused(/** @type {string} */ name, /** @type {unknown} */ value, why = '') {
  return new BadFile(
    `The preprocessing that came with the model cannot be followed here: ${name} is ${value === undefined ? 'missing' : JSON.stringify(value).slice(0, 60)}${why}. Please correct it in its file, or leave that file out.`,
  );
}
