// What the model would say if one of its parts were otherwise: vit_viz/analyses/what_if.py.

import { classTokens } from '../../explorer/geometry.js';
import { editsOf, unedited, withHead } from '../edits.js';
import { Model } from '../model.js';
import { outputKind, shown } from '../outputs.js';
import { Parameters } from '../parts.js';
import { checkedHead, ONE_HEAD } from './attention.js';
import { numbers } from './form.js';
import { described, layoutOf } from './layout.js';
import { UNITS } from './lens.js';
import { randomOrder } from './orders.js';
import { best, changeInWords, cosine } from './removal.js';
import { hasClasses, outputName } from './targets.js';
import { fixed } from './words.js';
/** @import { Edits, LayerEdits } from '../edits.js' */
/** @import { Context } from './form.js' */

const CHANGES = /** @type {const} */ (['shuffle', 'patch', 'positions', 'scale', 'axis', 'head', 'cut']);
const TOP = 5;
export const HEAD = { usual: 0, low: 0, high: 999, isWhole: true };

/** @typedef {{change: (typeof CHANGES)[number], layer: number, head: number, patch: number, seed: number}} Options */

/** @param {Context} context @param {Options} options */
function whatIf(context, options) {
  const { change } = options;
  if (change === 'patch') return otherPatches(context, options.patch);
  const { outputs, words } = changed(context, options);
  const { logits } = context.traced;
  if (!hasClasses(context)) {
    const now = cosine(outputs, logits);
    return {
      change,
      before: numbers([1], [1]),
      after: numbers([1], [now]),
      classes: [],
      words: ['similarity to the embedding as it is'],
      kind: 'embedding',
      unit: 'cosine similarity',
      sentence: `${words}, the embedding's cosine with what it was is ${fixed(now, 2)}.`,
    };
  }
  const kind = outputKind(context.engine.output, outputs.length);
  const scores = [logits, outputs].map((one) => shown(one, kind));
  const classes = [...new Set(scores.flatMap((one) => best(one, TOP)))];
  const [before, after] = scores.map((one) =>
    numbers(
      [classes.length],
      classes.map((index) => one[index]),
    ),
  );
  const names = classes.map((index) => outputName(context, index));
  const isValue = kind === 'value';
  return {
    change,
    before,
    after,
    classes,
    words: names,
    kind: isValue ? 'value' : 'probability',
    unit: UNITS[kind],
    sentence: `${words}, ${changeInWords(names, before.data, after.data, isValue)}.`,
  };
}

/** What the model says then, and how a sentence about it begins. @param {Context} context @param {Options} options */
function changed(context, { change, layer, head, seed }) {
  const { engine, traced } = context;
  const { residual, grid, prefix, heads, layers, scale } = traced;
  const edits = engine.editsOf(traced);
  const under = (/** @type {Edits} */ all, first = 0) =>
    engine.model.outputs(residual[first], first, grid, all);
  const inEach = (/** @type {(own: LayerEdits) => LayerEdits} */ more) =>
    under(new Map(layers.map((_, i) => [i, more(edits.get(i) ?? unedited())])));
  if (change === 'head') {
    checkedHead(context, layer, String(head));
    const outputs = under(withHead(edits, layer, head, 'off'), layer);
    return { outputs, words: `Without head ${head} of layer ${layer}` };
  }
  if (change === 'scale') {
    // scores are divided by their temperature
    const outputs = inEach((own) => ({ ...own, temperature: own.temperature * scale }));
    return { outputs, words: 'Without the scale in any layer' };
  }
  if (change === 'axis') {
    if (edits.size)
      throw new Error('With edits the softmax cannot run along the queries: take the edits back first.');
    const outputs = inEach((own) => ({ ...own, isOverQueries: true }));
    return { outputs, words: 'With the softmax along the queries' };
  }
  if (change === 'cut') {
    if (layoutOf(context).pooling !== 'class')
      throw new Error(
        'This model reads its answer from the patches: there is no class token to cut off from them.',
      );
    const reading = classTokens(layoutOf(context));
    const cut = reading.map((name) => `forbid ${name}>patches`);
    const words = [engine.origins.get(traced)?.words ?? '', ...cut].join(';');
    const outputs = under(editsOf(words, { depth: layers.length, heads, prefix, grid }));
    const names = reading.map((name) => described(context, name)).join(' and ');
    return { outputs, words: `With the ${names} cut off from all patches` };
  }
  return moved(context, change === 'positions', seed);
}

/** The same without positions or with shuffled patches, or both. @param {Context} context @param {boolean} isUnplaced @param {number} seed */
function moved({ engine, traced }, isUnplaced, seed) {
  const { input, grid } = traced;
  const { position, rotary_grid: turned, relative_bias: own, shared_bias: shared } = engine.model.config;
  if (isUnplaced && position === 'none' && !turned && !own && !shared)
    throw new Error('This model has no positions: there are none to leave out.');
  const model = isUnplaced ? withoutPositions(engine.model) : engine.model;
  const order = seed ? randomOrder(seed, 0, grid[0] * grid[1]) : undefined;
  const outputs = model.outputs(model.stream({ ...input, order }), 0, grid, engine.editsOf(traced));
  if (!isUnplaced) return { outputs, words: `With ${seed ? 'shuffled patches' : 'patches in their order'}` };
  return { outputs, words: `Without positions${seed ? ' and with shuffled patches' : ''}` };
}

/** The same parameters with nothing that says where a patch is. @param {Model} model */
function withoutPositions({ config, parameters }) {
  /** @type {import('../config.js').Config} */
  const bare = { ...config, position: 'none', rotary_grid: null };
  const { machine, matrices, vectors, grams, tables } = parameters;
  const left = [...tables].filter(([name]) => !name.endsWith('relative_position_bias_table'));
  return new Model(
    bare,
    Object.assign(new Parameters(machine, bare), { matrices, vectors, grams, tables: new Map(left) }),
  );
}

/** @param {Context} context @param {number} patch */
function otherPatches({ engine, traced }, patch) {
  const { patch_size: own, drop_remainder: drops } = engine.model.config;
  const { input, grid, prefix } = traced;
  const [height, width] = drops ? grid.map((count, i) => count * own[i]) : [input.height, input.width];
  const [rows, cols] = [height, width].map((side) => Math.floor(side / patch));
  if (!rows || !cols)
    throw new Error(
      `A patch of ${patch} x ${patch} pixels is larger than the input of ${height} x ${width}.`,
    );
  const tokens = prefix.length + rows * cols;
  const left = 1 - (rows * cols * patch ** 2) / (height * width);
  const rest = left ? `; ${fixed(100 * left, 1)}% of the pixels fit into none` : '';
  const [many, pairs] = [tokens, tokens ** 2].map((count) => count.toLocaleString('en-US'));
  return {
    change: 'patch',
    grid: [rows, cols],
    tokens,
    left_out: left,
    pairs: tokens ** 2,
    sentence: `Patches of ${patch} x ${patch} pixels would be ${rows} x ${cols}${rest}: ${many} tokens, and ${pairs} pairs of them for each head to compare.`,
  };
}

/** @type {import('./index.js').Table} */
export const WHAT_IF = {
  lesson_what_if: {
    needs: 'pass',
    options: {
      change: CHANGES,
      layer: ONE_HEAD.layer,
      head: HEAD,
      patch: { usual: 8, low: 1, high: 512, isWhole: true },
      seed: { usual: 1, low: 0, high: 999, isWhole: true },
    },
    answer: whatIf,
    says: ({ sentence }) => sentence,
  },
};
