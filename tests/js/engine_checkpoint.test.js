// A checkpoint that others have written: whatever is wrong with one is a sentence, and nothing is loaded of it.

import assert from 'node:assert/strict';
import { Blob } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { TextEncoder } from 'node:util';
import { Engine } from '../../vit_viz/browser/engine.js';
import { reader } from '../../vit_viz/browser/weights.js';
import { checkpointIn, describe, modelOf } from '../../vit_viz/site/models.js';
import { CONFIG, fileOf } from './engine_file.js';

const WASM = readFileSync(new URL('../../vit_viz/browser/kernels.wasm', import.meta.url));
const KNOWN = {
  architectures: { vit_odd: { num_heads: 3 }, vit_dlittle: { refused: 'differential attention' } },
  quick_gelu: {},
  recipes: { kinds: [], of: {} },
  processors: { standard: {}, by_name: {}, by_model: {}, of_some: {}, obeyed: [], without_effect: [] },
};
const SQUARE = { ...CONFIG, img_size: [12, 12] };
const UNSAID = { config: undefined, preprocess: undefined, labels: undefined };

const load = (/** @type {any} */ file, name = 'vit_odd.a_tag') =>
  Engine.load(reader(file), WASM, undefined, { name, known: KNOWN, imagenet: [] });

/** A tiny file under timm's names which says nothing of itself. @param {object} [change] of its configuration */
const unsaid = (change = {}) => fileOf({ ...SQUARE, ...change }, UNSAID);

/** The file with another header of the same tensors. @param {(header: Record<string, any>) => void} change */
function rewritten(change, file = unsaid()) {
  const size = Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(Buffer.from(file, 8, size).toString());
  change(header);
  const text = Buffer.from(JSON.stringify(header));
  const first = Buffer.alloc(8);
  first.writeBigUInt64LE(BigInt(text.length));
  const all = Buffer.concat([first, text, Buffer.from(file, 8 + size)]);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}

/** @param {string} from @param {string} to */
const renamed = (from, to) =>
  rewritten((header) => {
    header[to] = header[from];
    delete header[from];
  });

test('a file that says nothing of itself is read from its shapes and its name, from a disk as from memory', async () => {
  for (const file of [unsaid(), new Blob([unsaid()])]) {
    const { model, notes, labels } = await load(file);
    assert.deepEqual({ ...model.config, drop_remainder: false }, SQUARE);
    assert.equal(labels, null);
    assert.match(notes[0], /^Recognised as timm ViT/);
  }
});

test('what a file says of itself goes before its name', async () => {
  const { model, notes } = await load(fileOf(CONFIG), 'vit_dlittle');
  assert.deepEqual(model.config, CONFIG);
  assert.deepEqual(notes, []);
});

/** @type {[string, () => ArrayBuffer, string, RegExp][]} */
const REFUSED = [
  ['no safetensors', () => new TextEncoder().encode('PK, a zip').buffer, 'a', /no safetensors file/],
  ['empty', () => new ArrayBuffer(0), 'a', /ends before its header/],
  ['cut short', () => unsaid().slice(0, -40), 'vit_odd', /is cut short/],
  ['other numbers', () => rewritten((header) => (header['norm.bias'].dtype = 'I32')), 'vit_odd', /type I32/],
  ['heads unknown', () => unsaid(), 'model', /how many heads share the 12 numbers/],
  [
    'a grid unknown',
    () => fileOf(CONFIG, UNSAID),
    'vit_odd',
    /7 entries, which fit no square patch grid with 1/,
  ],
  ['refused by name', () => unsaid(), 'vit_dlittle.a_tag', /have differential attention/],
  ['rotary by name', () => unsaid(), 'vit_small_patch16_rope_224', /rotary positions/],
  ['another family', () => renamed('cls_token', 'storage_tokens'), 'vit_odd', /looks like DINOv3/],
  ['a stranger', () => strange(), 'a', /has 1 parameters, .* "weird"/],
  ['one too many', () => renamed('norm.bias', 'norm.other'), 'vit_odd', /lacks the parameter "norm.bias"/],
  [
    'one axis',
    () => rewritten((all) => (all.pos_embed.shape = [10, 12])),
    'vit_odd',
    /"pos_embed" is \[10,12\]/,
  ],
  [
    'not finite',
    () => spoiled(Infinity),
    'vit_odd',
    /"cls_token" of this file holds numbers that are not finite/,
  ],
  ['no number', () => spoiled(NaN), 'vit_odd', /numbers that are not finite/],
];

/** A file of one tensor that belongs to nothing. */
function strange() {
  const text = Buffer.from(JSON.stringify({ weird: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }));
  const first = Buffer.alloc(8);
  first.writeBigUInt64LE(BigInt(text.length));
  const all = Buffer.concat([first, text, Buffer.alloc(4)]);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}

/** A file one number of whose class token is another. @param {number} value */
function spoiled(value) {
  const whole = unsaid();
  const view = new DataView(whole);
  const size = Number(view.getBigUint64(0, true));
  const header = JSON.parse(Buffer.from(whole, 8, size).toString());
  view.setFloat32(8 + size + header.cls_token.data_offsets[0] + 8, value, true);
  return whole;
}

for (const [what, make, name, words] of REFUSED)
  test(`a checkpoint is refused in one sentence: ${what}`, async () => {
    await assert.rejects(load(make(), name), (/** @type {Error} */ error) => {
      assert.match(error.message, words);
      assert.match(error.message, /^[A-Zv].*\.$/);
      assert.equal(error.message.includes('undefined'), false);
      return true;
    });
  });

test('a file that has been taken away is said to be', async () => {
  const gone = new Blob([unsaid()]);
  gone.slice = () =>
    /** @type {any} */ ({ arrayBuffer: () => Promise.reject(new Error('NotReadableError')) });
  await assert.rejects(load(gone), /can no longer be read/);
});

const named = (/** @type {string[]} */ ...names) => names.map((name) => new File([], name));
const json = (/** @type {any} */ said, name = 'config.json') => new File([JSON.stringify(said)], name);
const [PREPROCESSOR, CONFIG_OF_TIMM] = [{ image_mean: [0, 0, 0] }, { architecture: 'vit_odd', mean: [1] }];
const [MODEL, PHOTO] = named('b.SafeTensors', 'a.png');

/** @param {...File} files */
async function sorted(...files) {
  const { checkpoint, others, problem } = await checkpointIn({ files });
  return [checkpoint?.file.name, checkpoint?.settings, others.map(({ name }) => name), problem];
}

test('among files that are carried here a model is found, with what lies beside it', async () => {
  assert.deepEqual(await sorted(PHOTO, MODEL), ['b.SafeTensors', {}, ['a.png'], '']);
  const config = json(CONFIG_OF_TIMM, 'config (1).json');
  const both = { ...CONFIG_OF_TIMM, preprocessor: PREPROCESSOR };
  for (const files of [
    [config, json(PREPROCESSOR, 'preprocessor_config.json')],
    [json(PREPROCESSOR, 'preprocessor_config.json'), config],
    [json({ do_resize: true }), json({ image_processor: PREPROCESSOR }, 'processor_config.json'), config],
  ])
    assert.deepEqual(await sorted(...files, MODEL, PHOTO), ['b.SafeTensors', both, ['a.png'], '']);
});

/** @type {[string, File[], RegExp][]} */
const NOT_OPENED = [
  ['a pickle', named('model.pth'), /^model\.pth is no safetensors file/],
  ['two models', named('a.safetensors', 'b.safetensors'), /^a\.safetensors and b\.safetensors are several/],
  [
    'a config alone',
    [json(CONFIG_OF_TIMM)],
    /^config\.json only describes a model: please bring it together/,
  ],
  [
    'no JSON',
    [MODEL, new File(['{'], 'config.json')],
    /not opened\. config\.json cannot be read: it is not JSON\.$/,
  ],
  ['another JSON', [MODEL, json({ vocab: 1 }, 'vocab.json')], /vocab\.json describes neither a model nor/],
  ['no object', [MODEL, json(7)], /config\.json describes neither/],
];
for (const [what, files, words] of NOT_OPENED)
  test(`one sentence says why nothing is opened, and photos are taken all the same: ${what}`, async () => {
    const [name, , others, problem] = await sorted(...files, PHOTO);
    assert.deepEqual([name, others], [undefined, ['a.png']]);
    assert.match(String(problem), words);
  });

test('a config.json tells what shapes and a name do not, and one of another model is said to be', async () => {
  const beside = (/** @type {object} */ settings) =>
    Engine.load(reader(unsaid()), WASM, undefined, { name: 'a', known: KNOWN, imagenet: [], settings });
  await assert.rejects(
    beside({ architecture: 'vit_odd', num_features: 192 }),
    /is of another model: its num_features is 192, and that of this file 12\./,
  );
  await assert.rejects(beside({ architecture: 'vit_dlittle' }), /have differential attention/);
  const { model, recipe, notes } = await beside({ architecture: 'vit_odd', mean: [0.1, 0.2, 0.3] });
  assert.deepEqual([model.config.num_heads, recipe.mean], [3, [0.1, 0.2, 0.3]]);
  assert.match(notes.join(' '), /as its config\.json says \(channels less 0\.1, 0\.2, 0\.3/);
  assert.doesNotMatch(notes.join(' '), /Assumed/);
});

test('two files of one name are two models, and each is known by its own name', async () => {
  const published = { known: KNOWN, imagenet: [] };
  /** @type {any[]} */
  const models = [];
  for (let i = 0; i < 3; i++)
    models.push(
      modelOf({ file: new File([unsaid()], 'vit_odd.safetensors'), settings: {} }, models, published),
    );
  assert.deepEqual(
    models.map(({ name }) => name),
    ['vit_odd', 'vit_odd (2)', 'vit_odd (3)'],
  );
  assert.ok(models.every(({ own }) => own.about.name === 'vit_odd'));
  const { model, notes } = await load(unsaid());
  describe(models[0], /** @type {any} */ ({ config: model.config, notes }));
  assert.match(models[0].card, /^2 layers x 3 heads, patch 4, 3 x 3 patches at 12 x 12, 0\.0 M parameters/);
  assert.equal(models[0].notes, notes.join(' '));
});
