// How published Vision Transformers name their parameters: timm's ViT, DINO and DINOv2, and those that transformers saves.
//
// As vit_viz/checkpoints/families has them; other families are refused by name, and the app opens more of them.

import { isPacked, USUAL_EPS } from './architecture.js';
import { BadFile } from './weights.js';
/** @import { Shapes } from './architecture.js' */
/** @import { About } from './checkpoint.js' */
/** @import { Config } from './config.js' */
/** @import { Processors, Settings } from './recipes.js' */

/**
 * @typedef {object} Known what Python tells of published models by their names
 * @property {Record<string, any>} architectures of timm: entries of a configuration, or why it is refused
 * @property {Record<string, [string[], number]>} quick_gelu of timm: tags of weights that were trained with it, and the width of their head
 * @property {Processors} processors of transformers
 * @property {{kinds: Evaluated[], of: Record<string, number>}} recipes of timm: how weights are evaluated, and which way by the name of the
 *     architecture, with the tag where it matters
 *
 * @typedef {{mean: number[], std: number[], crop_pct: number, crop_mode?: string, interpolation?: string}} Evaluated a preprocessing, as a `pretrained_cfg` of timm
 *     says it
 * @typedef {{config: Partial<Config>, assumed?: string[]}} Settled what shapes do not say
 *
 * @typedef {object} Family
 * @property {string} name
 * @property {Evaluated} recipe that its files share
 * @property {(shapes: Shapes, file: string) => boolean} matches by its own names
 * @property {[RegExp, string][]} rules from its names to timm's
 * @property {RegExp[]} drop what only training needs
 * @property {boolean} merges whether the class token has a position beside registers that have none
 * @property {(shapes: Shapes, about: About) => Settled} settled by timm's names
 */

export const IMAGENET = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], crop_pct: 0.875 };
const PLAIN = { mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5], crop_pct: 0.9 };
const IMAGENET_CLASSES = [1000, 11821, 21841, 21843];
const FUSED = 'blocks.0.attn.qkv.weight';
const EMBEDDING = 'embeddings.patch_embeddings.projection.weight';

/** @type {[RegExp, string][]} what such a parameter belongs to; the first that fits is named */
const OTHERS = [
  [/relative_position_bias|\.attn\.q_bias$|\.attn\.q_proj\.bias$/, 'BEiT or EVA'],
  [
    /(^|\.)storage_tokens$|rope_embed\.periods$|^blocks\.0\.gamma_1$|^embeddings\.patch_embeddings\.weight$/,
    'DINOv3',
  ],
  [/^vision_model\.|^visual\./, 'CLIP or SigLIP as transformers or their authors save it'],
  [/^encoder\.layers\.encoder_layer_0\./, "torchvision's ViT"],
  [/^embeds\.proj\.weight$/, 'NaFlexViT'],
  [/\.attn\.lambda_q1$|\.attns\.0\.|^blocks\.0\.in_proj\./, 'a ViT with other blocks'],
  [/^neck\./, 'a depth model'],
  [/^layer1\.0\.conv1\./, 'a ResNet'],
  [/downsample_layers\.|^stages\.0\.blocks\.0\.conv_dw/, 'a ConvNeXt'],
  [/^layers\.0\.blocks\.0\./, 'a Swin Transformer'],
  [/lora_/, 'a LoRA adapter'],
  [/^transformer\.wte\.|^model\.embed_tokens\./, 'a language model'],
];

/** @type {Family} */
const DINO = {
  name: 'DINO / DINOv2 (original)',
  recipe: IMAGENET,
  matches: (shapes, file) => {
    if (shapes.has(`backbone.${FUSED}`)) return true;
    if (!shapes.has(FUSED) || !shapes.has('pos_embed')) return false;
    const isSecond = shapes.has('mask_token') && shapes.has('blocks.0.ls1.gamma');
    return isSecond || (file.startsWith('dino_') && !shapes.has('head.weight'));
  },
  rules: [
    [/^backbone\./, ''],
    [/\.mlp\.w12\./, '.mlp.fc1.'],
    [/\.mlp\.w3\./, '.mlp.fc2.'],
    [/^register_tokens$/, 'reg_token'],
  ],
  drop: [/^(backbone\.)?mask_token$/, /^head\.mlp\./, /^head\.last_layer\./],
  merges: true,
  settled: (shapes) => {
    const isSecond = shapes.has('blocks.0.ls1.gamma');
    const resample = isSecond ? (shapes.has('reg_token') ? 'dinov2_reg' : 'dinov2') : 'dino';
    const heads = Math.floor((shapes.get('cls_token')?.at(-1) ?? 0) / 64); // as in all that are published
    return { config: { resample, ...(heads ? { num_heads: heads } : {}) } };
  },
};

/** @type {Family} */
const TIMM = {
  name: 'timm ViT',
  recipe: PLAIN,
  matches: (shapes) => {
    const others = ['blocks.0.gamma_1', 'mask_token', 'register_tokens'];
    return (
      shapes.has(FUSED) && shapes.has('patch_embed.proj.weight') && !others.some((name) => shapes.has(name))
    );
  },
  rules: [],
  drop: [],
  merges: false,
  settled: (shapes, about) => {
    const { name, known, settings = {} } = about;
    const own = architecture(architectureName(about), known);
    const config = { ...own, ...hubSettings(settings) };
    const head = shapes.get('head.weight');
    if (shapes.has('norm_pre.weight') && head && !IMAGENET_CLASSES.includes(head[0]))
      config.projection = true; // of CLIP; those that were trained further end in the classes of ImageNet
    if (isNativelyQuick(name, settings, head, known)) config.mlp = 'quick_gelu';
    return { config, assumed: own ? [] : ['GELU', `${USUAL_EPS} as the epsilon of the norms`] };
  },
};

/** @type {Family} */
const TRANSFORMERS = {
  name: 'transformers ViT / DeiT / DINOv2',
  recipe: IMAGENET,
  matches: (shapes) => {
    const name = [...shapes.keys()].find((one) => one.endsWith(EMBEDDING));
    const place = name?.slice(0, -EMBEDDING.length);
    return place !== undefined && /^(\w+\.)?$/.test(place) && shapes.has(`${place}embeddings.cls_token`);
  },
  rules: [
    [
      /^(vit|deit|dinov2|dinov2_with_registers|base_model|model)\.(?=embeddings|encoder|layers?\.|layernorm)/,
      '',
    ],
    [/^embeddings\.cls_token$/, 'cls_token'],
    [/^embeddings\.distillation_token$/, 'dist_token'],
    [/^embeddings\.register_tokens$/, 'reg_token'],
    [/^embeddings\.position_embeddings$/, 'pos_embed'],
    [/^embeddings\.patch_embeddings\.(projection\.)?/, 'patch_embed.proj.'],
    [/^(encoder\.|model\.)?layers?\.(\d+)\./, 'blocks.$2.'],
    [/\.attention\.attention\.([qkv])(?:uery|ey|alue)\./, '.attn.$1.'],
    [/\.attention\.output\.dense\./, '.attn.proj.'],
    [/\.attention\.([qkv])_proj\./, '.attn.$1.'],
    [/\.attention\.o_proj\./, '.attn.proj.'],
    [/\.intermediate\.dense\./, '.mlp.fc1.'],
    [/^(blocks\.\d+)\.output\.dense\./, '$1.mlp.fc2.'],
    [/\.layernorm_before\./, '.norm1.'],
    [/\.layernorm_after\./, '.norm2.'],
    [/\.layer_scale([12])\.lambda1$/, '.ls$1.gamma'],
    [/\.mlp\.weights_in\./, '.mlp.fc1.'],
    [/\.mlp\.gate_proj\./, '.mlp.fc1_g.'],
    [/\.mlp\.up_proj\./, '.mlp.fc1_x.'],
    [/\.mlp\.down_proj\./, '.mlp.fc2.'],
    [/\.mlp\.weights_out\./, '.mlp.fc2.'],
    [/^layernorm\./, 'norm.'],
    [/^(cls_)?classifier\./, 'head.'],
    [/^distillation_classifier\./, 'head_dist.'],
  ],
  drop: [/^((vit|deit|dinov2)\.)?pooler\./, /^(\w+\.)?embeddings\.mask_token$/, /^decoder\./],
  merges: true,
  settled: (shapes, { settings: said = {} }) => {
    const [fc1, fc2] = ['fc1', 'fc2'].map((name) => shapes.get(`blocks.0.mlp.${name}.weight`));
    const kind = said.model_type ?? (shapes.has('blocks.0.ls1.gamma') ? 'dinov2' : 'vit');
    const usual = ['vit', 'deit', 'dpt'].includes(kind) ? 1e-12 : 1e-6;
    const isGated = shapes.has('blocks.0.mlp.fc1_g.weight') || isPacked(fc1, fc2);
    /** @type {Partial<Config> & {img_size?: any}} */
    const config = {
      ...{ norm_eps: said.layer_norm_eps ?? usual, img_size: said.image_size },
      ...(said.num_attention_heads ? { num_heads: said.num_attention_heads } : {}),
      ...(isGated ? {} : { mlp: activation(said.hidden_act) }),
      resample: shapes.has('reg_token') ? 'dinov2_reg' : 'transformers',
    };
    if (said.model_type) return { config }; // what such a file leaves out is as transformers has it
    return { config, assumed: [...(isGated ? [] : ['GELU']), `${usual} as the epsilon of the norms`] };
  },
};

/** The family whose names these are; throws a sentence where there is none. @param {Shapes} shapes @param {About} about */
export function familyOf(shapes, about) {
  refuse(architectureName(about), about.known);
  const family = [DINO, TIMM, TRANSFORMERS].find((one) => one.matches(shapes, about.name));
  const names = [...shapes.keys()];
  const other = OTHERS.find(([pattern]) => names.some((name) => pattern.test(name)));
  if (family && !other) return family;
  const like = other
    ? `looks like ${other[1]}`
    : `has ${names.length} parameters, of which the first is "${names.sort()[0]?.slice(0, 60)}"`;
  throw new BadFile(
    `This file ${like}; the page opens checkpoints under the names of timm's ViT, DINO, DINOv2 and DeiT, and the app more of them.`,
  );
}

/** Throws a sentence for a name of timm whose model the engine does not compute. */
function refuse(/** @type {string} */ file, /** @type {Known} */ known) {
  const why = architecture(file, known)?.refused;
  if (why) throw new BadFile(`${file} is no plain Vision Transformer: its blocks have ${why}.`);
  if (/^(vit_pe_|vit_\w*_rope_)/.test(file))
    throw new BadFile(`${file} has rotary positions that the engine in the page does not compute.`);
}

function architecture(/** @type {string} */ file, /** @type {Known} */ { architectures }) {
  const name = file.split('.')[0];
  return Object.hasOwn(architectures, name) ? architectures[name] : undefined;
}

/** How timm evaluates its weights of that name; undefined where it has none. @returns {Evaluated | undefined} */
export function publishedRecipe(/** @type {string} */ file, /** @type {Known} */ { recipes: { kinds, of } }) {
  const [name, tag] = file.split('.');
  return kinds[of[`${name}.${tag}`] ?? of[name]];
}

/** What timm calls the architecture: as config.json says, else by the name of the file. @param {About} about @returns {string} */
function architectureName({ name, settings }) {
  return typeof settings?.architecture === 'string' ? settings.architecture : name;
}

/** What a config.json of timm says beyond the name of the architecture. @param {Settings} settings */
function hubSettings({ pretrained_cfg: recipe, input_size: flat, model_args: own, global_pool: pool }) {
  const size = typeof recipe === 'object' && recipe ? recipe.input_size : flat;
  const pooling = { token: 'class', avg: 'mean', map: 'attention' }[String(pool)];
  return {
    ...(Array.isArray(size) && size.length === 3 ? { img_size: size.slice(1) } : {}),
    ...(own?.img_size ? { img_size: own.img_size } : {}),
    ...(own?.num_heads ? { num_heads: own.num_heads } : {}),
    .../** @type {Partial<Config>} */ (pooling ? { pooling } : {}),
  };
}

/** Our name for an activation, from its name in configurations of transformers. @returns {Config['mlp']} */
function activation(/** @type {unknown} */ name) {
  /** @type {Record<string, Config['mlp']>} */
  const names = {
    ...{ gelu: 'gelu', quick_gelu: 'quick_gelu' },
    ...{ gelu_pytorch_tanh: 'gelu_tanh', gelu_new: 'gelu_tanh' },
  };
  const own = String(name ?? 'gelu');
  if (!Object.hasOwn(names, own))
    throw new BadFile(
      `The activation "${own.slice(0, 40)}" of this model is not supported; GELU, its tanh form and quick GELU are.`,
    );
  return names[own];
}

/** Whether weights were trained with quick GELU although their architecture says GELU. @param {number[] | undefined} head */
function isNativelyQuick(
  /** @type {string} */ file,
  /** @type {Settings} */ { architecture: named, pretrained_cfg: recipe },
  head,
  /** @type {Known} */ { quick_gelu: published },
) {
  const names = [named, file].filter((name) => typeof name === 'string').map((name) => name.split('.'));
  const base = names.find(([name]) => Object.hasOwn(published, name))?.[0] ?? '';
  const tag = [recipe?.tag, ...names.filter(([name]) => name === base).map(([, one]) => one)].find(Boolean);
  const [tags, width] = published[base] ?? [[], recipe?.num_classes];
  const isNoted = [recipe?.notes].flat().some((note) => /natively quickgelu/i.test(String(note)));
  return (tags.includes(tag) || isNoted) && (!head || head[0] === width);
}
