// Does jobs of the engine for tests in Python: reads jobs.json and input.bin of a folder, writes results.json and output.bin. Run: node
// engine_jobs.js FOLDER plain|relaxed (which kernels compute)
//
// Numbers lie in the two binary files, in jobs.json as [offset in bytes, count], in results.json as {at: [offset, count]}.

import { readFileSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { unpackHalf } from '../../vit_viz/explorer/attention.js';
import { answer } from '../../vit_viz/browser/answers/index.js';
import { unitVectors } from '../../vit_viz/browser/answers/vectors.js';
import { csvOf, npzOf } from '../../vit_viz/browser/files.js';
import { Backward } from '../../vit_viz/browser/backward.js';
import { editsOf } from '../../vit_viz/browser/edits.js';
import { Engine } from '../../vit_viz/browser/engine.js';
import { Model } from '../../vit_viz/browser/model.js';
import { checkedRecipe, prepare } from '../../vit_viz/browser/preprocess.js';
import { recipeOf } from '../../vit_viz/browser/recipes.js';
import { engineSource, traceValue } from '../../vit_viz/browser/source.js';
import { reader, Weights } from '../../vit_viz/browser/weights.js';
import { opening } from '../../vit_viz/site/opening.js';
import { unsuitable } from '../../vit_viz/site/photos.js';
import { positionsOf } from '../../vit_viz/site/positions.js';
import { sizesOf } from '../../vit_viz/site/sizes.js';
import { targetValue } from '../../vit_viz/site/target.js';

const folder = process.argv[2];
const input = readFileSync(`${folder}/input.bin`);
/** @type {Buffer[]} */
const output = [];
let written = 0;

/** Bytes of input.bin. */
function bytes(/** @type {[number, number]} */ [offset, count]) {
  return new Uint8ClampedArray(input.buffer, input.byteOffset + offset, count);
}

const [plain, relaxed] = ['kernels', 'kernels-relaxed'].map((name) =>
  readFileSync(new URL(`../../vit_viz/browser/${name}.wasm`, import.meta.url)),
);
setFlagsFromString('--experimental-wasm-relaxed-simd'); // which Node.js 20 knows, but not yet by itself
const WASM = process.argv[3] === 'relaxed' ? { plain, relaxed } : plain;
/** The model of the last job, so that one file can be asked for many pictures. @type {{path: string, engine: Engine | null}} */
const last = { path: '', engine: null };

/** How the file of a path is read. */
function fileOf(/** @type {string} */ path) {
  const file = readFileSync(path);
  return reader(file.buffer.slice(file.byteOffset, file.byteOffset + file.length));
}

/** @param {string} path @param {import('../../vit_viz/browser/checkpoint.js').About} [about] of a file that others have written */
async function engineOf(path, about) {
  if (last.engine && last.path === path) return last.engine;
  last.engine = await Engine.load(fileOf(path), WASM, undefined, about);
  last.path = path;
  return last.engine;
}

/** A pass as JSON. */
function described(/** @type {import('../../vit_viz/browser/model.js').Pass} */ pass) {
  const { layers, residual, logits, pool, grid, prefix } = pass;
  return {
    ...{ grid, prefix, logits: place(logits), pool: pool && place(pool), residual: residual.map(place) },
    layers: layers.map(({ layer, q, k, lse }) => ({
      ...{ kind: layer.kind, q: place(q), k: place(k), lse: place(lse) },
      norms: layer.norms && place(layer.norms),
      attention: layer.kind === 'attention' && place(attentionOf(layer.bits)),
    })),
  };
}

function attentionOf(/** @type {Uint16Array} */ bits) {
  return unpackHalf(/** @type {ArrayBuffer} */ (bits.buffer), 0, bits.length);
}

/** Where numbers lie in output.bin, from now on. */
function place(/** @type {Float32Array} */ numbers) {
  output.push(Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength));
  written += numbers.byteLength;
  return { at: [written - numbers.byteLength, numbers.length] };
}

/** The arrays of an answer, all as 32-bit numbers, with the type that each has. @param {Record<string, any>} arrays */
function placed(arrays) {
  const all = Object.entries(arrays).map(([name, { shape, data }]) => {
    const values = place(Float32Array.from(data, Number));
    return [name, { shape, kind: data.constructor.name, values }];
  });
  return Object.fromEntries(all);
}

/** @type {Record<string, (job: any) => Promise<object>>} */
const KINDS = {
  prepare: async ({ picture, recipe, options }) => {
    const { pixels, ...rest } = prepare({ ...picture, levels: bytes(picture.levels) }, recipe, options);
    return { pixels: place(pixels), ...rest };
  },
  run: async ({ path, height, width, pixels: [offset, count] }) => {
    const model = await Model.load(await Weights.open(fileOf(path)), WASM);
    const start = input.byteOffset + offset;
    const pixels = new Float32Array(input.buffer.slice(start, start + 4 * count));
    if (model.machine.isRelaxed !== (WASM !== plain))
      throw new Error('Other kernels run than were asked for.');
    const before = model.machine.top;
    const pass = model.run({ pixels, height, width });
    if (model.machine.top !== before) throw new Error('A pass has kept room of the machine.');
    return described(pass);
  },
  gradients: async ({ path, height, width, pixels: [offset, count], weights, edits }) => {
    const model = await Model.load(await Weights.open(fileOf(path)), WASM);
    const start = input.byteOffset + offset;
    const pixels = new Float32Array(input.buffer.slice(start, start + 4 * count));
    const unedited = model.run({ pixels, height, width });
    const { depth, num_heads: heads } = model.config;
    const changed = editsOf(edits, { depth, heads, prefix: unedited.prefix, grid: unedited.grid });
    const pass = model.edited(unedited, changed);
    const before = model.machine.top;
    const backward = new Backward(model, pass, changed);
    const { g: behind, pool } = backward.outputs(pass.residual[depth], weights);
    const layers = [];
    for (let layer = depth - 1, g = behind; layer >= 0; layer--) {
      const one = backward.block(layer, g, layer < depth - 1);
      layers.unshift({ g: place(one.slopes.g), v: place(one.slopes.v), before: place(one.before) });
      g = one.before;
    }
    if (model.machine.top !== before) throw new Error('Gradients have kept room of the machine.');
    return { layers, pool: pool && { weights: place(pool.weights), slopes: place(pool.slopes) } };
  },
  photo: async ({ path, picture, options, about }) => {
    const engine = await engineOf(path, about);
    const traced = engine.trace({ ...picture, levels: bytes(picture.levels) }, options);
    const value = /** @type {any} */ (traceValue(traced, engine.model.config));
    const view = /** @type {any} */ ({ query: value.default_query, direction: 'row' });
    const { signal } = new AbortController();
    const rows = await engineSource(traced).rows(value, 1, view, signal);
    const { layer, head, tour } = await opening(value, engineSource(traced));
    const { recipe, labels, notes } = engine;
    const said = { config: engine.model.config, recipe, labels, notes, output: engine.output };
    return { ...described(traced), value, rows: place(rows), opening: { layer, head, tour }, said };
  },
  recipe: async ({ config, about, usual }) => checkedRecipe(recipeOf(config, about, usual).recipe),
  answers: async ({ path, picture, second: other, options, questions }) => {
    const engine = await engineOf(path);
    const traced = engine.trace({ ...picture, levels: bytes(picture.levels) }, options);
    const second = other && engine.trace({ ...other, levels: bytes(other.levels) }, options);
    const { machine } = engine.model;
    const answers = [];
    for (const [name, body] of questions) {
      const before = machine.top;
      const told = await answer(name, body, { engine, traced, second, step: async () => {} }).catch(
        ({ message }) => ({ message }),
      );
      if (machine.top !== before) throw new Error(`${name} has kept room of the machine.`);
      answers.push('message' in told ? { refused: told.message } : { ...told, arrays: placed(told.arrays) });
    }
    return { answers };
  },
  files: async ({ path, picture, options, questions }) => {
    const engine = await engineOf(path);
    const traced = engine.trace({ ...picture, levels: bytes(picture.levels) }, options);
    const files = [];
    for (const [name, body] of questions) {
      const told = await answer(name, body, { engine, traced, step: async () => {} });
      const npz = Buffer.from(await (await npzOf(told, '{"software":"vit_viz"}')).arrayBuffer());
      files.push([csvOf(told, '{"software":"vit_viz"}'), npz.toString('base64')]);
    }
    return { files };
  },
  vectors: async ({ path, picture, options, role, state }) => {
    const engine = await engineOf(path);
    const traced = engine.trace({ ...picture, levels: bytes(picture.levels) }, options);
    const { data, ...sizes } = unitVectors({ traced }, role, state);
    return { data: place(data), ...sizes };
  },
  view: async ({ path, picture, photos, targets }) => {
    const engine = await engineOf(path);
    const { logits } = engine.trace({ ...picture, levels: bytes(picture.levels) }, { mode: 'crop' });
    const loaded = /** @type {any} */ ({ ...engine, config: engine.model.config });
    return {
      sizes: photos.map((/** @type {number[]} */ [height, width, size]) =>
        sizesOf(loaded, { height, width }, size),
      ),
      targets: targets.map((/** @type {string[]} */ [target, find]) =>
        targetValue(logits, loaded, target, find ?? undefined),
      ),
      positions: positionsOf(loaded.config),
    };
  },
  unlit: async ({ picture, lighting }) => ({
    unlit: unsuitable({ ...picture, levels: bytes(picture.levels) }, lighting),
  }),
};

const results = [];
for (const job of JSON.parse(readFileSync(`${folder}/jobs.json`, 'utf-8'))) {
  try {
    results.push(await KINDS[job.kind](job));
  } catch (error) {
    results.push({ error: error instanceof Error ? error.message : String(error) });
  }
}
writeFileSync(`${folder}/output.bin`, Buffer.concat(output));
writeFileSync(`${folder}/results.json`, JSON.stringify(results));
