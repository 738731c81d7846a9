// The numbers of the lesson, one token of one photo on its way through a model: vit_viz/analyses/lesson.py.

import { classTokens } from '../../explorer/geometry.js';
import { Attention, Places } from '../attend.js';
import { noPositions, positionedPrefix } from '../config.js';
import { patchesOf } from '../model.js';
import { shown } from '../outputs.js';
import { positionTable } from '../positions.js';
import { checkedHead, fused, gathered, ONE_HEAD } from './attention.js';
import { dot } from './eigen.js';
import { numbers } from './form.js';
import { layoutOf, queryWeights, tokenName } from './layout.js';
import { UNITS } from './lens.js';
import { vectorsAt } from './positions.js';
import { best } from './removal.js';
import { hasClasses, kindOf, outputName } from './targets.js';
import { cosines } from './tokens.js';
import { HEAD } from './what_if.js';
/** @import { Context } from './form.js' */
/** @import { About } from './index.js' */

const MOST_CLASSES = 24;

/** The token that is followed: what the answer is read from where that is a token, else the patch in the middle. @param {Context} context @param {About} about */
function tokenOf(context, { query }) {
  if (query && query !== 'pool') return queryWeights(context, query).findIndex(Boolean);
  const { prefix, pooling } = layoutOf(context);
  return pooling === 'class' ? prefix.indexOf('class') : middleOf(context);
}

function middleOf(/** @type {Context} */ context) {
  const { grid, first } = layoutOf(context);
  return first + Math.floor(grid[0] / 2) * grid[1] + Math.floor(grid[1] / 2);
}

/** @param {Context} context @param {{}} _options @param {About} about */
function lessonTokens(context, _options, about) {
  const { engine, traced } = context;
  const { config, parameters, machine } = engine.model;
  const { grid, first } = layoutOf(context);
  const [dim, token] = [config.embed_dim, tokenOf(context, about)];
  const index = (token < first ? middleOf(context) : token) - first;
  const row = (/** @type {Float32Array} */ all, /** @type {number} */ width, at = index) =>
    all.subarray(at * width, (at + 1) * width);
  const { channels, mean, std } = engine.recipe;
  const shape = [channels, ...config.patch_size];
  const size = shape.reduce((all, one) => all * one);
  const flat = row(patchesOf(config, traced.input, grid), size);
  const channel = (/** @type {number} */ i) => Math.floor((i * channels) / size);
  const pixels = flat.map((value, i) => value * std[channel(i)] + mean[channel(i)]);
  const embedded = machine.within(() => {
    const x = parameters.linear('patch_embed.proj', machine.place(flat), 1);
    return machine.read(config.patch_norm ? parameters.norm('patch_embed.norm', x, 1, dim) : x, dim);
  });
  const table = positionTable(config, parameters.tables.get('pos_embed'), grid);
  const { vectors } = noPositions(config) ? { vectors: [] } : vectorsAt(context, grid);
  const alike = vectors.map((one) => dot(one, vectors[index]));
  return {
    pixels: numbers(shape, pixels),
    flat: numbers([size], flat),
    embedded: numbers([dim], embedded),
    position: numbers(
      [dim],
      table ? row(table, dim, positionedPrefix(config) + index) : new Float32Array(dim),
    ),
    token: numbers([dim], row(traced.residual[0], dim, first + index)),
    prefix: numbers([first, dim], traced.residual[0].subarray(0, first * dim)),
    places: numbers(alike.length ? grid : [0, 0], alike),
    place: [Math.floor(index / grid[1]), index % grid[1]],
    shape: shapeOf(context),
  };
}

/** What a drawing of the model and its words depend on. */
function shapeOf(/** @type {Context} */ context) {
  const { config } = context.engine.model;
  const classes = classTokens(layoutOf(context));
  const seen = config.pool_prefix ? 'all tokens' : 'the patches';
  const pools = {
    class: classes.length > 1 ? `the tokens ${classes.join(' and ')}` : 'the class token',
    ...{ mean: `the mean of ${seen}`, attention: `what a learned query gathers from ${seen}` },
  };
  return {
    ...config,
    hidden: config.mlp_hidden / (config.mlp === 'swiglu_packed' ? 2 : 1),
    classes: hasClasses(context) ? config.num_classes : 0,
    rotary: config.position === 'rotary' || Boolean(config.rotary_grid),
    relative: config.relative_bias || config.shared_bias,
    read: config.pool_concat ? 'the class token and the mean of the patches' : pools[config.pooling],
  };
}

/** @param {Context} context @param {{layer: number, head: number}} options @param {About} about */
function lessonAttention(context, { layer, head }, about) {
  const { engine, traced } = context;
  const { tokens, layers, headDim: width, grid } = traced;
  const token = tokenOf(context, about);
  checkedHead(context, layer, String(head));
  const { machine, parameters } = engine.model;
  const edits = engine.editsOf(traced).get(layer);
  const bias = machine.within(() =>
    new Attention(parameters, `blocks.${layer}.attn`, new Places(parameters, grid), tokens).bias(edits),
  );
  const cells = tokens * tokens;
  const added = bias?.subarray(head * cells, (head + 1) * cells) ?? new Float32Array(cells);
  const size = tokens * width;
  const ofHead = (/** @type {Float32Array} */ all) => all.subarray(head * size, (head + 1) * size);
  const [queries, keys] = [layers[layer].q, layers[layer].k].map(ofHead); // queries times the scale
  const scale = traced.scale / (edits?.temperature ?? 1);
  const query = queries.subarray(token * width, (token + 1) * width).map((value) => value / scale);
  const products = Float64Array.from({ length: tokens }, (_, key) =>
    dot(query, keys.subarray(key * width, (key + 1) * width)),
  );
  const row = added.subarray(token * tokens, (token + 1) * tokens);
  const scores = products.map((product, key) => product * scale + row[key]);
  const { values, outputs } = insideAttention(context, layer, token);
  return {
    query: numbers([width], query),
    keys: numbers([tokens, width], keys),
    values: numbers([tokens, width], ofHead(values)),
    products: numbers([tokens], products),
    scores: numbers([tokens], scores),
    weights: numbers([tokens], shown(scores, 'softmax')),
    output: numbers([width], outputs.subarray(head * width, (head + 1) * width)),
    token,
    name: tokenName(context, token),
    layer,
    head,
    scale,
    has_bias: row.some((one) => Number.isFinite(one) && one !== 0),
  };
}

/** In the attention of a layer: the values of all tokens, [heads, tokens, head_dim], and what all heads gather for one of them, [dim]. @param {Context} context @param {number} layer @param {number} token */
function insideAttention({ engine, traced }, layer, token) {
  const { machine, parameters, config } = engine.model;
  const { residual, grid, tokens } = traced;
  const [dim, name] = [config.embed_dim, `blocks.${layer}`];
  return machine.within(() => {
    const x = parameters.norm(`${name}.norm1`, machine.place(residual[layer]), tokens, dim);
    const attention = new Attention(parameters, `${name}.attn`, new Places(parameters, grid), tokens);
    const { qkv, gathered: all } = attention.run(x, engine.editsOf(traced).get(layer), false, 1);
    const values = machine.room(tokens * dim);
    machine.run.splitHeads(0, attention.heads, qkv + 8 * dim, 3 * dim, values, tokens, attention.dim);
    return { values: machine.read(values, tokens * dim), outputs: machine.read(all + 4 * token * dim, dim) };
  });
}

/** One token in one block. @param {Context} context @param {number} layer @param {number} token */
function insideBlock(context, layer, token) {
  const { engine, traced } = context;
  const { machine, parameters, config } = engine.model;
  const { heads, headDim: width } = traced;
  const [dim, name] = [config.embed_dim, `blocks.${layer}`];
  const { outputs } = insideAttention(context, layer, token);
  const before = traced.residual[layer].subarray(token * dim, (token + 1) * dim);
  const mixed = config.attn_norm
    ? machine.within(() =>
        machine.read(parameters.norm(`${name}.attn.norm`, machine.place(outputs), 1, dim), dim),
      )
    : outputs;
  const [first, second] = ['ls1', 'ls2'].map((part) => parameters.vectorOf(`${name}.${part}.gamma`, dim));
  const projection = parameters.weightOf(`${name}.attn.proj`);
  const contributions = new Float64Array(heads * dim);
  for (let h = 0, at = 0; h < heads; h++)
    for (let i = 0; i < dim; i++, at++)
      for (let j = h * width; j < (h + 1) * width; j++)
        contributions[at] += projection[i * dim + j] * mixed[j] * (first?.[i] ?? 1);
  const bias = parameters.vectorOf(`${name}.attn.proj.bias`, dim) ?? new Float32Array(dim);
  const rest = bias.map((value, i) => value * (first?.[i] ?? 1));
  const attended = Float64Array.from(rest);
  contributions.forEach((value, at) => (attended[at % dim] += value));
  const middle = before.map((value, i) => value + attended[i]);
  const { hidden, activated, mlp } = machine.within(() => {
    const x = parameters.norm(`${name}.norm2`, machine.place(middle), 1, dim);
    const { gate, value, width: count } = parameters.hidden(`${name}.mlp`, x, 1, config.mlp);
    const inputs = machine.read(gate, count);
    return {
      hidden: inputs,
      activated: value
        ? inputs.map((one) => one / (1 + Math.exp(-one)))
        : machine.read(parameters.activated(gate, 0, 1, count, config.mlp), count),
      mlp: machine.read(parameters.mlp(`${name}.mlp`, x, 1), dim),
    };
  });
  const thought = mlp.map((value, i) => value * (second?.[i] ?? 1));
  const after = middle.map((value, i) => value + thought[i]);
  return { outputs, contributions, rest, before, attended, middle, thought, after, hidden, activated };
}

/** Rows of the same length as one array. @param {ArrayLike<number>[]} rows */
function stacked(rows, shape = [rows.length, rows[0].length]) {
  return numbers(
    shape,
    rows.flatMap((row) => Array.from(row)),
  );
}

/** @param {Context} context @param {{layer: number}} options @param {About} about */
function lessonBlock(context, { layer }, about) {
  const { heads, headDim: width, tokens } = context.traced;
  const token = tokenOf(context, about);
  checkedHead(context, layer, 'mean');
  const { outputs, contributions, hidden, activated, ...stream } = insideBlock(context, layer, token);
  const alone = Float64Array.from({ length: tokens }, (_, i) => Number(i === token));
  const dim = heads * width;
  const vectors = Object.entries(stream).map(([name, values]) => [name, numbers([dim], values)]);
  return {
    weights: stacked(gathered(context, layer, alone, 'row')),
    outputs: numbers([heads, width], outputs),
    contributions: numbers([heads, dim], contributions),
    ...Object.fromEntries(vectors),
    hidden: numbers([hidden.length], hidden),
    activated: numbers([hidden.length], activated),
    token,
    name: tokenName(context, token),
    layer,
  };
}

/** @param {Context} context @param {{}} _options @param {About} about */
async function lessonDepth(context, _options, about) {
  const { engine, traced } = context;
  const { machine, config } = engine.model;
  const { residual, tokens, layers } = traced;
  const { grid, first, patches, pooling } = layoutOf(context);
  const [token, dim, states] = [tokenOf(context, about), config.embed_dim, residual.length];
  const own = residual.map((state) => state.subarray(token * dim, (token + 1) * dim));
  const read =
    pooling === 'class'
      ? queryWeights(context, 'pool')
      : Float64Array.from({ length: tokens }, (_, i) => Number(config.pool_prefix || i >= first));
  const whole = read.reduce((sum, one) => sum + one, 0);
  const weights = read.map((one) => one / whole);
  const answerLooks = /** @type {ArrayLike<number>[]} */ ([]);
  for (let layer = 0; layer < layers.length; layer++) {
    answerLooks.push(fused(gathered(context, layer, weights, 'row'), 'mean'));
    await context.step((layer + 1) / layers.length);
  }
  const said = residual.map((state) =>
    machine.within(() => engine.model.classify(machine.place(state), tokens).logits),
  );
  const kind = hasClasses(context) ? kindOf(context) : null;
  const told = kind ? said.map((one) => shown(one, kind)) : [];
  const [last, ...earlier] = told.map((_, i) => told[states - 1 - i]);
  const followed = told.length ? [...best(last, 5), ...earlier.flatMap((one) => best(one, 3))] : [];
  const classes = [...new Set(followed)].slice(0, MOST_CLASSES);
  const alike = residual.map((state, i) => cosines(state, own[i], tokens).subarray(first, first + patches));
  const agreement = said.map((one) => cosines(one, said[states - 1], 1)[0]);
  return {
    stream: stacked(own),
    answer_looks: stacked(answerLooks),
    alike: stacked(alike, [states, ...grid]),
    tops: stacked(said.map((_, state) => classes.map((index) => told[state][index]))),
    agreement: numbers([states], agreement),
    token,
    name: tokenName(context, token),
    classes,
    words: classes.map((index) => outputName(context, index)),
    kind: kind === null ? 'embedding' : kind === 'value' ? 'value' : 'probability',
    unit: kind ? UNITS[kind] : '',
  };
}

/** @type {import('./index.js').Table} */
export const LESSON = {
  lesson_tokens: { needs: 'pass', takesQuery: true, answer: lessonTokens },
  lesson_attention: {
    ...{ needs: 'pass', takesQuery: true, answer: lessonAttention },
    options: { layer: ONE_HEAD.layer, head: HEAD },
  },
  lesson_block: {
    ...{ needs: 'pass', takesQuery: true, answer: lessonBlock },
    options: { layer: ONE_HEAD.layer },
  },
  lesson_depth: { needs: 'pass', takesQuery: true, answer: lessonDepth },
};
