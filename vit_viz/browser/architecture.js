// The architecture of a Vision Transformer from the names and shapes of its parameters, as `infer` of vit_viz/checkpoints/families/base.py.

import { BadFile } from './weights.js';
/** @import { Config, Size } from './config.js' */

/** @typedef {Map<string, number[]>} Shapes of parameters under timm's names */

export const USUAL_EPS = 1e-6; // of norms
/** What nothing in a file says, as in vit_viz/model/config.py. */
const USUAL = {
  ...{ img_size: [224, 224], num_classes: 0, no_embed_class: false, position: 'learned', resample: 'timm' },
  ...{ class_tokens: 1, class_read: [0], position_grid: null },
  ...{ rotary_base: 100, rotary_grid: null, patch_embed: 'conv', pad: false, drop_remainder: false },
  ...{ scale: null, mlp: 'gelu', norm_eps: USUAL_EPS, pool_prefix: false, projection: false },
};
const HEAD_DIM = 64; // of nearly all that are published
const USUAL_GRID = /** @type {Size} */ ([14, 14]);

/**
 * The configuration, and what had to be assumed.
 * @param {Shapes} shapes @param {Partial<Config> & {img_size?: any}} known what does not show in shapes
 * @returns {{config: Config, assumed: string[]}}
 */
export function inferred(shapes, { img_size: size, num_heads: heads, ...known }) {
  const [dim, channels, ...patch] = needed(shapes, 'patch_embed.proj.weight', 4);
  /** @type {any} */
  const values = {
    ...USUAL,
    ...{ patch_size: patch, in_chans: channels, embed_dim: dim, depth: depthOf(shapes) },
    ...{ num_heads: heads ?? assumedHeads(dim), mlp_hidden: 4 * dim },
    ...outerParts(shapes),
    ...blockParts(shapes),
    ...known,
  };
  const prefix = Number(values.class_token) + Number(values.dist_token) + values.reg_tokens;
  Object.assign(values, positionsOf(shapes, /** @type {Size} */ (patch), size, prefix, values));
  const assumed = heads ? [] : [`${values.num_heads} heads of ${HEAD_DIM} numbers`];
  return { config: values, assumed };
}

function assumedHeads(/** @type {number} */ dim) {
  if (dim % HEAD_DIM)
    throw new BadFile(
      `No shape in this file tells how many heads share the ${dim} numbers of a token; please give it the name that timm has for it.`,
    );
  return dim / HEAD_DIM;
}

/** @param {Shapes} shapes @param {string} name @param {number} axes */
function needed(shapes, name, axes) {
  const shape = shapes.get(name);
  if (!shape) throw new BadFile(`This checkpoint cannot be opened: its parameter "${name}" is missing.`);
  if (shape.length !== axes)
    throw new BadFile(
      `This checkpoint cannot be opened: its parameter "${name}" is [${shape}], not of ${axes} axes.`,
    );
  return shape;
}

function depthOf(/** @type {Shapes} */ shapes) {
  const layers = [...shapes.keys()].map((name) => Number(/^blocks\.(\d+)\./.exec(name)?.[1] ?? -1));
  return 1 + Math.max(-1, ...layers);
}

/** Choices that show in which parameters exist outside the blocks. */
function outerParts(/** @type {Shapes} */ shapes) {
  const has = (/** @type {string} */ name) => shapes.has(name);
  const head = shapes.get('head.weight');
  const token = shapes.get('cls_token');
  const registers = shapes.get('reg_token') ?? [];
  const pooling = has('attn_pool.latent') ? 'attention' : token ? 'class' : 'mean';
  return {
    class_token: Boolean(token),
    dist_token: has('dist_token'),
    reg_tokens: registers.length === 3 ? registers[1] : 0,
    num_classes: head?.[0] ?? 0,
    head_bias: has('head.bias'),
    pool_concat: Boolean(token && head?.length === 2 && head[1] === 2 * Number(token.at(-1))),
    dist_head: has('head_dist.weight'),
    patch_bias: has('patch_embed.proj.bias'),
    patch_norm: has('patch_embed.norm.weight'),
    ...{ relative_bias: false, shared_bias: false },
    pre_norm: has('norm_pre.weight'),
    final_norm: has('norm.weight'),
    fc_norm: has('fc_norm.weight'),
    pooling: has('fc_norm.weight') && pooling === 'class' ? 'mean' : pooling,
  };
}

/** Choices that show in the parameters of the first block. */
function blockParts(/** @type {Shapes} */ shapes) {
  const shape = (/** @type {string} */ name) => shapes.get(`blocks.0.${name}`);
  const has = (/** @type {string} */ name) => shape(name) !== undefined;
  const [fc1, fc2, gate] = ['fc1', 'fc2', 'fc1_g'].map((name) => shape(`mlp.${name}.weight`));
  return {
    qkv_bias: has('attn.qkv.bias'),
    proj_bias: has('attn.proj.bias'),
    mlp_bias: has('mlp.fc2.bias'),
    qk_norm: has('attn.q_norm.weight'),
    attn_norm: has('attn.norm.weight'),
    mlp_norm: has('mlp.norm.weight'),
    layer_scale: has('ls1.gamma'),
    norm: has('norm1.bias') || !has('norm1.weight') ? 'layer' : 'rms',
    ...(gate ? { mlp: 'swiglu', mlp_hidden: gate[0] } : {}),
    ...(fc1 && !gate ? { mlp_hidden: fc1[0] } : {}),
    ...(fc1 && !gate && isPacked(fc1, fc2) ? { mlp: 'swiglu_packed' } : {}),
  };
}

/** Whether half of what the first layer of an MLP yields is a gate. @param {number[] | undefined} fc1 @param {number[] | undefined} fc2 */
export function isPacked(fc1, fc2) {
  return fc1 !== undefined && fc2?.length === 2 && fc1[0] === 2 * fc2[1];
}

/**
 * The input's size and which tokens have positions, from the length of the table; `size` decides where it fits.
 * @param {Shapes} shapes @param {Size} patch @param {any} size @param {number} prefix @param {Config} values
 */
function positionsOf(shapes, patch, size, prefix, values) {
  const hinted = hintedGrid(size, patch);
  if (!shapes.has('pos_embed')) {
    const position = values.position === 'learned' ? 'none' : values.position;
    return { position, ...inputSize(hinted ?? USUAL_GRID, patch, size) };
  }
  const length = needed(shapes, 'pos_embed', 3)[1];
  for (const [patches, isPatchesOnly] of /** @type {[number, boolean][]} */ ([
    [length - prefix, false],
    [length, true],
  ])) {
    const grid = hinted && hinted[0] * hinted[1] === patches ? hinted : square(patches);
    if (grid) return { ...inputSize(grid, patch, size), no_embed_class: isPatchesOnly && prefix > 0 };
  }
  throw new BadFile(
    `The position table of this file has ${length} entries, which fit no square patch grid with ${prefix} prefix tokens.`,
  );
}

/** @param {any} size @param {Size} patch @returns {Size | null} */
function hintedGrid(size, patch) {
  const sides = Array.isArray(size) ? size : [size, size];
  if (sides.length !== 2 || !sides.every((side) => Number.isInteger(side) && side > 0)) return null;
  const [rows, cols] = [Math.floor(sides[0] / patch[0]), Math.floor(sides[1] / patch[1])];
  return rows && cols ? [rows, cols] : null;
}

/** The input of a position table: the known one, with the pixels that fill no patch, where it has this grid. */
function inputSize(/** @type {Size} */ grid, /** @type {Size} */ patch, /** @type {any} */ size) {
  const whole = [grid[0] * patch[0], grid[1] * patch[1]];
  if (hintedGrid(size, patch)?.join() !== grid.join()) return { img_size: whole };
  const sides = Array.isArray(size) ? size : [size, size];
  return { img_size: sides, drop_remainder: sides.join() !== whole.join() };
}

/** @returns {Size | null} */
function square(/** @type {number} */ patches) {
  const side = Math.floor(Math.sqrt(Math.max(patches, 0)));
  return side && side * side === patches ? [side, side] : null;
}
