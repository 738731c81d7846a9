// The configuration of a Vision Transformer, `ViTConfig.to_dict()`: checked, and which parameters a model of it has.

/**
 * @typedef {[number, number]} Size height and width, or rows and columns
 * @typedef {object} Config see vit_viz/model/config.py
 * @property {Size} img_size
 * @property {Size} patch_size
 * @property {number} in_chans
 * @property {number} embed_dim
 * @property {number} depth
 * @property {number} num_heads
 * @property {number} mlp_hidden
 * @property {number} num_classes
 * @property {boolean} class_token
 * @property {1} [class_tokens]
 * @property {[0]} [class_read]
 * @property {boolean} dist_token
 * @property {number} reg_tokens
 * @property {boolean} no_embed_class
 * @property {'learned' | 'sinusoidal_1d' | 'sinusoidal_2d' | 'rotary' | 'none'} position
 * @property {null} [position_grid]
 * @property {'timm' | 'bilinear' | 'dino' | 'dinov2' | 'dinov2_reg' | 'transformers' | 'torchvision'} resample
 * @property {number} rotary_base
 * @property {Size | null} rotary_grid
 * @property {boolean} relative_bias
 * @property {boolean} shared_bias
 * @property {'conv' | 'unfold'} patch_embed
 * @property {boolean} patch_bias
 * @property {boolean} patch_norm
 * @property {boolean} pad
 * @property {boolean} drop_remainder
 * @property {boolean} qkv_bias
 * @property {boolean} proj_bias
 * @property {boolean} mlp_bias
 * @property {boolean} qk_norm
 * @property {number | null} scale
 * @property {boolean} attn_norm
 * @property {boolean} mlp_norm
 * @property {boolean} layer_scale
 * @property {'gelu' | 'quick_gelu' | 'gelu_tanh' | 'swiglu' | 'swiglu_packed'} mlp
 * @property {'layer' | 'rms'} norm
 * @property {number} norm_eps
 * @property {boolean} pre_norm
 * @property {boolean} final_norm
 * @property {'class' | 'mean' | 'attention'} pooling
 * @property {boolean} pool_prefix
 * @property {boolean} pool_concat
 * @property {boolean} fc_norm
 * @property {boolean} head_bias
 * @property {boolean} dist_head
 * @property {boolean} projection
 */

/** @type {Record<string, string[]>} */
const CHOICES = {
  position: ['learned', 'sinusoidal_1d', 'sinusoidal_2d', 'rotary', 'none'],
  resample: ['timm', 'bilinear', 'dino', 'dinov2', 'dinov2_reg', 'transformers', 'torchvision'],
  patch_embed: ['conv', 'unfold'],
  mlp: ['gelu', 'quick_gelu', 'gelu_tanh', 'swiglu', 'swiglu_packed'],
  norm: ['layer', 'rms'],
  pooling: ['class', 'mean', 'attention'],
};
/** Smallest and largest. @type {Record<string, [number, number]>} */
const COUNTS = {
  in_chans: [1, 1024],
  embed_dim: [1, 16384],
  depth: [1, 256],
  num_heads: [1, 1024],
  mlp_hidden: [1, 262144],
  num_classes: [0, 1000000],
  reg_tokens: [0, 1024],
};
const SWITCHES = [
  ...[
    'class_token',
    'dist_token',
    'no_embed_class',
    'relative_bias',
    'shared_bias',
    'patch_bias',
    'patch_norm',
  ],
  ...['pad', 'drop_remainder', 'qkv_bias', 'proj_bias', 'mlp_bias', 'qk_norm', 'attn_norm', 'mlp_norm'],
  ...['layer_scale', 'pre_norm', 'final_norm', 'pool_prefix', 'pool_concat', 'fc_norm', 'head_bias'],
  ...['dist_head', 'projection'],
];
const MOST_PIXELS = 16384; // of a side

/** A configuration as a file brings it. @returns {Config} */
export function checkedConfig(/** @type {any} */ values) {
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    throw new Error('This file does not say what its model is made of.');
  const known = [...Object.keys(CHOICES), ...Object.keys(COUNTS), ...SWITCHES, ...Object.keys(OTHERS)];
  const unknown = Object.keys(values).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(
      `The engine in the page does not know the entry "${unknown}" of a model's configuration.`,
    );
  for (const name of known) {
    if (!isGood(name, values[name]))
      throw new Error(
        `The engine in the page cannot compute a model whose ${name} is ${JSON.stringify(values[name])}.`,
      );
  }
  checkCombinations(values);
  return values;
}

const isSize = (/** @type {any} */ size) =>
  Array.isArray(size) && size.length === 2 && size.every((side) => isWhole(side, 1, MOST_PIXELS));
const isPositive = (/** @type {unknown} */ value) => Number.isFinite(value) && Number(value) > 0;

/** @type {Record<string, (value: any) => boolean>} */
const OTHERS = {
  img_size: isSize,
  patch_size: isSize,
  class_tokens: (value = 1) => value === 1, // files of before do not say these three
  class_read: (value = [0]) => JSON.stringify(value) === '[0]',
  position_grid: (value = null) => value === null,
  rotary_grid: (value) => value === null || isSize(value),
  rotary_base: isPositive,
  norm_eps: isPositive,
  scale: (value) => value === null || isPositive(value),
};

function isWhole(/** @type {unknown} */ value, /** @type {number} */ low, /** @type {number} */ high) {
  return Number.isInteger(value) && Number(value) >= low && Number(value) <= high;
}

function isGood(/** @type {string} */ name, /** @type {unknown} */ value) {
  if (name in CHOICES) return CHOICES[name].includes(/** @type {string} */ (value));
  if (name in COUNTS) return isWhole(value, ...COUNTS[name]);
  return name in OTHERS ? OTHERS[name](value) : typeof value === 'boolean';
}

function checkCombinations(/** @type {Config} */ config) {
  const fault = [...placeFaults(config), ...poolFaults(config)].find(([is]) => is);
  if (fault) throw new Error(`The engine in the page cannot compute a model with ${fault[1]}.`);
}

/** What excludes itself in positions and widths: whether it does, in words. @returns {[unknown, string][]} */
function placeFaults(/** @type {Config} */ config) {
  const dim = headDim(config);
  const rotary = config.position === 'rotary' || config.rotary_grid;
  const biased = config.relative_bias || config.shared_bias;
  const otherPrefix = prefixOf(config).join() !== 'class';
  return [
    [!Number.isInteger(dim), 'an embed_dim that is no multiple of num_heads'],
    [rotary && dim % 4, 'rotary positions and a head_dim that 4 does not divide'],
    [config.position === 'rotary' && config.rotary_grid, 'rotary positions of two kinds'],
    [config.position === 'sinusoidal_2d' && config.embed_dim % 4, '2-D sinusoidal positions of this width'],
    [biased && otherPrefix, 'a relative position bias for other prefix tokens than one class token'],
    [
      biased && !['timm', 'transformers'].includes(config.resample),
      `a relative position bias that is resampled as ${config.resample} does it`,
    ],
    [config.pad && config.drop_remainder, 'both pad and drop_remainder'],
    [Math.min(...trainedGrid(config)) < 1, 'an img_size without a patch'],
  ];
}

/** Likewise in the MLP, pooling and heads. @returns {[unknown, string][]} */
function poolFaults(/** @type {Config} */ config) {
  const isClass = config.pooling === 'class';
  return [
    [config.mlp === 'swiglu_packed' && config.mlp_hidden % 2, 'a packed SwiGLU of odd width'],
    [isClass && !config.class_token, 'class pooling without a class token'],
    [config.pool_concat && (!isClass || config.fc_norm || config.dist_head), 'this pool_concat'],
    [config.dist_head && !(config.dist_token && isClass), 'this distillation head'],
  ];
}

export function headDim(/** @type {Config} */ config) {
  return config.embed_dim / config.num_heads;
}

/** What the MLP of attention pooling computes: it has no gate, whatever the blocks have. @returns {Config['mlp']} */
export function poolMlp(/** @type {Config} */ { mlp }) {
  return mlp === 'swiglu' || mlp === 'swiglu_packed' ? 'gelu' : mlp;
}

/** Names of the tokens before the patches. */
export function prefixOf(/** @type {Config} */ config) {
  const registers = Array.from({ length: config.reg_tokens }, (_, i) => `register ${i}`);
  return [
    ...(config.class_token ? ['class'] : []),
    ...(config.dist_token ? ['distillation'] : []),
    ...registers,
  ];
}

/** Names of the class and distillation tokens that the output does not read, where it reads another of them. */
export const unreadOf = (/** @type {Config} */ { pooling, dist_token, dist_head }) =>
  pooling === 'class' && dist_token && !dist_head ? ['distillation'] : [];

/** How many of so many tokens, from the first, the output is read from after the last block. */
export function tokensRead(
  /** @type {Config} */ { pooling, pool_concat, dist_head },
  /** @type {number} */ tokens,
) {
  if (pooling !== 'class' || pool_concat) return tokens;
  return dist_head ? 2 : 1;
}

/** How many prefix tokens have a position of their own. */
export function positionedPrefix(/** @type {Config} */ config) {
  const none = config.no_embed_class || config.position === 'rotary' || config.position === 'none';
  return none ? 0 : prefixOf(config).length;
}

/** Why positions of a model cannot be compared, in a sentence; '' where they can. */
export function noPositions(
  /** @type {Config} */ { position, rotary_grid: turned, relative_bias: own, shared_bias: shared },
) {
  if (position !== 'none' || turned) return '';
  return own || shared
    ? 'This model has no position embedding: its layers add a learned number to the scores for the offset of two patches.'
    : 'This model has no position embedding: it knows where a patch is only from what the patches show.';
}

/** Rows and columns of the patches of `img_size`. @returns {Size} */
export function trainedGrid(/** @type {Config} */ { img_size: size, patch_size: patch, pad }) {
  const whole = pad ? Math.ceil : Math.floor;
  return [whole(size[0] / patch[0]), whole(size[1] / patch[1])];
}

/** Rows and columns of the patches of an input. @returns {Size} */
export function gridOf(
  /** @type {Config} */ config,
  /** @type {number} */ height,
  /** @type {number} */ width,
) {
  const [tall, wide] = config.patch_size;
  if (config.drop_remainder) return [Math.floor(height / tall), Math.floor(width / wide)];
  if ((height % tall || width % wide) && !config.pad)
    throw new Error(
      `An input of ${height} x ${width} pixels cannot be cut into patches of ${tall} x ${wide}.`,
    );
  return [Math.ceil(height / tall), Math.ceil(width / wide)];
}

/** Names and shapes of all parameters. @returns {Map<string, number[]>} */
export function parametersOf(/** @type {Config} */ config) {
  const dim = config.embed_dim;
  const [rows, cols] = trainedGrid(config);
  const table = [(2 * rows - 1) * (2 * cols - 1) + 3, config.num_heads];
  const named = new Naming(config);
  named.embedding(rows * cols);
  if (config.shared_bias) named.add('rel_pos_bias.relative_position_bias_table', table);
  if (config.pre_norm) named.norm('norm_pre', dim);
  for (let layer = 0; layer < config.depth; layer++) named.block(`blocks.${layer}`, table);
  if (config.final_norm) named.norm('norm', dim);
  if (config.pooling === 'attention') named.pool('attn_pool', dim);
  if (config.fc_norm) named.norm('fc_norm', dim);
  const features = config.pool_concat ? 2 * dim : dim;
  for (const head of config.dist_head ? ['head', 'head_dist'] : ['head']) {
    if (config.num_classes) named.linear(head, features, config.num_classes, config.head_bias);
  }
  return named.shapes;
}

/** Shapes of the parameters of parts. */
class Naming {
  constructor(/** @type {Config} */ config) {
    this.config = config;
    /** @type {Map<string, number[]>} */
    this.shapes = new Map();
  }

  add(/** @type {string} */ name, /** @type {number[]} */ shape) {
    this.shapes.set(name, shape);
  }

  norm(/** @type {string} */ name, /** @type {number} */ dim) {
    this.add(`${name}.weight`, [dim]);
    if (this.config.norm === 'layer') this.add(`${name}.bias`, [dim]);
  }

  /** @param {string} name @param {number} from @param {number} to @param {boolean} bias */
  linear(name, from, to, bias) {
    this.add(`${name}.weight`, [to, from]);
    if (bias) this.add(`${name}.bias`, [to]);
  }

  /** The patch embedding and all tokens and positions that are learned. */
  embedding(/** @type {number} */ patches) {
    const { config } = this;
    const dim = config.embed_dim;
    const patch = [config.in_chans, ...config.patch_size];
    const flat = patch.reduce((a, b) => a * b);
    this.add('patch_embed.proj.weight', config.patch_embed === 'conv' ? [dim, ...patch] : [dim, flat]);
    if (config.patch_bias) this.add('patch_embed.proj.bias', [dim]);
    if (config.patch_norm) this.norm('patch_embed.norm', dim);
    if (config.class_token) this.add('cls_token', [1, 1, dim]);
    if (config.dist_token) this.add('dist_token', [1, 1, dim]);
    if (config.reg_tokens) this.add('reg_token', [1, config.reg_tokens, dim]);
    const positions = positionedPrefix(config) + patches;
    if (config.position === 'learned') this.add('pos_embed', [1, positions, dim]);
  }

  /** @param {string} name @param {number[]} table */
  block(name, table) {
    const { config } = this;
    const dim = config.embed_dim;
    this.norm(`${name}.norm1`, dim);
    this.linear(`${name}.attn.qkv`, dim, 3 * dim, config.qkv_bias);
    if (config.qk_norm) this.norm(`${name}.attn.q_norm`, headDim(config));
    if (config.qk_norm) this.norm(`${name}.attn.k_norm`, headDim(config));
    if (config.relative_bias) this.add(`${name}.attn.relative_position_bias_table`, table);
    if (config.attn_norm) this.norm(`${name}.attn.norm`, dim);
    this.linear(`${name}.attn.proj`, dim, dim, config.proj_bias);
    this.norm(`${name}.norm2`, dim);
    this.mlp(`${name}.mlp`, dim, config.mlp);
    if (config.layer_scale) this.add(`${name}.ls1.gamma`, [dim]);
    if (config.layer_scale) this.add(`${name}.ls2.gamma`, [dim]);
  }

  /** @param {string} name @param {number} dim @param {Config['mlp']} mlp */
  mlp(name, dim, mlp) {
    const { mlp_hidden: hidden, mlp_bias: bias, mlp_norm: norm } = this.config;
    for (const part of mlp === 'swiglu' ? ['fc1_g', 'fc1_x'] : ['fc1'])
      this.linear(`${name}.${part}`, dim, hidden, bias);
    const inner = mlp === 'swiglu_packed' ? hidden / 2 : hidden;
    if (norm) this.norm(`${name}.norm`, inner);
    this.linear(`${name}.fc2`, inner, dim, bias);
  }

  /** @param {string} name @param {number} dim */
  pool(name, dim) {
    this.add(`${name}.latent`, [1, 1, dim]);
    this.linear(`${name}.q`, dim, dim, true);
    this.linear(`${name}.kv`, dim, 2 * dim, true);
    this.linear(`${name}.proj`, dim, dim, true);
    this.norm(`${name}.norm`, dim);
    this.mlp(`${name}.mlp`, dim, poolMlp(this.config));
  }
}
