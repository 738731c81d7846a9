// A model's file for tests of the engine: a tiny configuration, its preprocessing, and numbers that repeat themselves in every run.

import { parametersOf } from '../../vit_viz/browser/config.js';

const SWITCHED_ON = [
  'class_token',
  'patch_bias',
  'qkv_bias',
  'proj_bias',
  'mlp_bias',
  'final_norm',
  'head_bias',
];
const SWITCHED_OFF = [
  ...['dist_token', 'no_embed_class', 'relative_bias', 'shared_bias', 'patch_norm', 'pad', 'drop_remainder'],
  ...['qk_norm', 'attn_norm', 'mlp_norm', 'layer_scale', 'pre_norm', 'pool_prefix', 'pool_concat', 'fc_norm'],
  ...['dist_head', 'projection'],
];
export const CONFIG = {
  ...{
    img_size: [8, 12],
    patch_size: [4, 4],
    in_chans: 3,
    embed_dim: 12,
    depth: 2,
    num_heads: 3,
    mlp_hidden: 10,
  },
  ...{
    num_classes: 5,
    class_tokens: 1,
    class_read: [0],
    position_grid: null,
    reg_tokens: 0,
    position: 'learned',
    resample: 'timm',
    rotary_base: 100,
    rotary_grid: null,
  },
  ...{ patch_embed: 'conv', scale: null, mlp: 'gelu', norm: 'layer', norm_eps: 1e-6, pooling: 'class' },
  ...Object.fromEntries(SWITCHED_ON.map((name) => [name, true])),
  ...Object.fromEntries(SWITCHED_OFF.map((name) => [name, false])),
};
export const RECIPE = {
  ...{
    input_size: [8, 12],
    patch_size: [4, 4],
    resize_to: 8,
    interpolation: 'bicubic',
    channels: 3,
    crop: 'center',
  },
  ...{ mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5], drop_remainder: false },
};

/** A file of weights. @param {any} config @param {Record<string, any>} [metadata] @param {(name: string) => boolean} [kept] */
export function fileOf(config, metadata = {}, kept = () => true) {
  /** @type {Record<string, any>} */
  const header = {};
  let at = 0;
  for (const [name, shape] of parametersOf(config)) {
    if (!kept(name)) continue;
    const end = at + 4 * shape.reduce((a, b) => a * b);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, end] };
    at = end;
  }
  const texts = { config, preprocess: RECIPE, labels: ['a', 'b', 'c', 'd', 'e'], ...metadata };
  const known = Object.entries(texts).filter(([, value]) => value !== undefined);
  header.__metadata__ = Object.fromEntries(known.map(([name, value]) => [name, JSON.stringify(value)]));
  const text = Buffer.from(JSON.stringify(header));
  const first = Buffer.alloc(8);
  first.writeBigUInt64LE(BigInt(text.length));
  const numbers = Float32Array.from({ length: at / 4 }, (_, i) => Math.sin(12.9898 * i));
  const all = Buffer.concat([first, text, Buffer.from(numbers.buffer)]);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}
