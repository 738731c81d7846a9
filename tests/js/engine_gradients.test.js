// The engine's reverse pass: gradients by finite differences of a pass that is written out in doubles, and maps of them by hand.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { answer } from '../../vit_viz/browser/answers/index.js';
import { Backward } from '../../vit_viz/browser/backward.js';
import { parametersOf } from '../../vit_viz/browser/config.js';
import { Engine } from '../../vit_viz/browser/engine.js';
import { Machine } from '../../vit_viz/browser/machine.js';
import { Model } from '../../vit_viz/browser/model.js';
import { Parameters } from '../../vit_viz/browser/parts.js';
import { reader, Weights } from '../../vit_viz/browser/weights.js';
import { CONFIG, fileOf, RECIPE } from './engine_file.js';

const WASM = readFileSync(new URL('../../vit_viz/browser/kernels.wasm', import.meta.url));

/** @typedef {number[][]} Rows */
/** @typedef {{layer: number, head: number, query: number, key: number, by: number}} Change of one weight of attention */

/** The parameters of a file. @param {ArrayBuffer} file */
async function parametersIn(file) {
  /** @type {Map<string, {shape: number[], numbers: Float32Array}>} */
  const found = new Map();
  for await (const { name, shape, numbers } of (await Weights.open(reader(file))).tensors())
    found.set(name, { shape, numbers });
  return found;
}

/**
 * The sum of the outputs, each with its weight, in doubles: blocks, class token, head.
 * @param {any} config @param {Awaited<ReturnType<typeof parametersIn>>} parameters @param {Rows} stream @param {number[]} weights
 * @param {Change} [change]
 */
function written(config, parameters, stream, weights, change) {
  const numbersOf = (/** @type {string} */ name) => parameters.get(name)?.numbers ?? [];
  const linear = (/** @type {string} */ name, /** @type {Rows} */ rows) => {
    const [w, b] = [numbersOf(`${name}.weight`), numbersOf(`${name}.bias`)];
    return rows.map((x) =>
      Array.from({ length: w.length / x.length }, (_, to) =>
        x.reduce((sum, value, i) => sum + value * w[to * x.length + i], b[to] ?? 0),
      ),
    );
  };
  const norm = (/** @type {string} */ name, /** @type {Rows} */ rows) => {
    const [gain, shift] = [numbersOf(`${name}.weight`), numbersOf(`${name}.bias`)];
    return rows.map((x) => {
      const mean = x.reduce((sum, value) => sum + value) / x.length;
      const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
      return x.map(
        (value, i) => ((value - mean) / Math.sqrt(variance + config.norm_eps)) * gain[i] + shift[i],
      );
    });
  };
  const add = (/** @type {Rows} */ a, /** @type {Rows} */ b, /** @type {string} */ gamma) =>
    a.map((x, row) => x.map((value, i) => value + b[row][i] * numbersOf(gamma)[i]));
  const [dim, d] = [config.embed_dim, config.embed_dim / config.num_heads];
  let x = stream;
  for (let layer = 0; layer < config.depth; layer++) {
    const name = `blocks.${layer}`;
    const qkv = linear(`${name}.attn.qkv`, norm(`${name}.norm1`, x));
    const gathered = x.map(() => /** @type {number[]} */ ([]));
    for (let h = 0; h < config.num_heads; h++) {
      const [q, k, v] = [0, 1, 2].map((third) =>
        qkv.map((row) => row.slice(third * dim + h * d, third * dim + (h + 1) * d)),
      );
      const [queries, keys] = [norm(`${name}.attn.q_norm`, q), norm(`${name}.attn.k_norm`, k)];
      queries.forEach((query, i) => {
        const powers = keys.map((key) =>
          Math.exp(config.scale * key.reduce((sum, value, c) => sum + value * query[c], 0)),
        );
        const sum = powers.reduce((a, b) => a + b);
        const attention = powers.map((power) => power / sum);
        if (change && change.layer === layer && change.head === h && change.query === i)
          attention[change.key] += change.by;
        for (let c = 0; c < d; c++)
          gathered[i].push(attention.reduce((all, weight, j) => all + weight * v[j][c], 0));
      });
    }
    x = add(x, linear(`${name}.attn.proj`, norm(`${name}.attn.norm`, gathered)), `${name}.ls1.gamma`);
    const hidden = linear(`${name}.mlp.fc1`, norm(`${name}.norm2`, x)).map((row) =>
      row.map((u) => (u / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (u + 0.044715 * u ** 3)))),
    );
    x = add(x, linear(`${name}.mlp.fc2`, norm(`${name}.mlp.norm`, hidden)), `${name}.ls2.gamma`);
  }
  const [logits] = linear('head', norm('norm', x.slice(0, 1)));
  return logits.reduce((sum, logit, i) => sum + logit * weights[i], 0);
}

test('the gradient by each weight of attention is its finite difference in a pass written out in doubles', async () => {
  const config = {
    ...{ ...CONFIG, qk_norm: true, attn_norm: true, mlp_norm: true, layer_scale: true },
    ...{ mlp: 'gelu_tanh', scale: 0.3 },
  };
  const file = fileOf(config);
  const parameters = await parametersIn(file);
  const { model } = await Engine.load(reader(file), WASM);
  const [height, width] = config.img_size;
  const pixels = Float32Array.from({ length: 3 * height * width }, (_, i) => Math.cos(7 * i));
  const pass = model.run({ pixels, height, width });
  const dim = config.embed_dim;
  const tokens = pass.residual[0].length / dim;
  const stream = Array.from({ length: tokens }, (_, i) => [
    ...pass.residual[0].subarray(i * dim, (i + 1) * dim),
  ]);
  const weights = [0.5, -1, 2, 0.25, 1.5];
  const whole = pass.logits.reduce((sum, logit, i) => sum + logit * weights[i], 0);
  assert.ok(Math.abs(written(config, parameters, stream, weights) - whole) < 1e-5 * Math.abs(whole));

  const backward = new Backward(model, pass, new Map());
  let { g: after } = backward.outputs(pass.residual[config.depth], weights);
  const d = dim / config.num_heads;
  for (let layer = config.depth - 1; layer >= 0; layer--) {
    const { slopes, before } = backward.block(layer, after, layer < config.depth - 1);
    after = before;
    /** @type {number[]} */
    const found = [];
    /** @type {number[]} */
    const wanted = [];
    for (let head = 0; head < config.num_heads; head++)
      for (let query = 0; query < tokens; query++)
        for (let key = 0; key < tokens; key++) {
          const [one, other] = [1e-5, -1e-5].map((by) =>
            written(config, parameters, stream, weights, { layer, head, query, key, by }),
          );
          wanted.push((one - other) / 2e-5);
          let slope = 0;
          for (let c = head * d; c < (head + 1) * d; c++)
            slope += slopes.g[query * dim + c] * slopes.v[key * dim + c];
          found.push(slope);
        }
    const largest = Math.max(...wanted.map(Math.abs));
    assert.ok(largest > 0.01);
    wanted.forEach((value, i) => assert.ok(Math.abs(found[i] - value) < 1e-5 * largest, `${layer} ${i}`));
  }
});

/** A model of one block, one head and one patch, in which the class token and the patch are the vectors (1, -1) and (-1, 1) everywhere, and
 * see both to equal parts. Its classes read 1 x + 3 y, 3 x + 1 y of the class token (x, y). */
async function byHand() {
  const config = {
    ...{ ...CONFIG, img_size: [4, 4], embed_dim: 2, depth: 1, num_heads: 1, mlp_hidden: 1, num_classes: 2 },
    ...{ position: 'none', final_norm: false, norm_eps: 1e-12 },
  };
  /** @type {Record<string, number[]>} */
  const chosen = {
    cls_token: [1, -1],
    'patch_embed.proj.bias': [-1, 1],
    'blocks.0.norm1.weight': [1, 1],
    'blocks.0.norm2.weight': [1, 1],
    'blocks.0.attn.qkv.weight': [...new Array(8).fill(0), 1, 0, 0, 1],
    'blocks.0.attn.proj.weight': [1, 0, 0, 1],
    'head.weight': [1, 3, 3, 1],
  };
  const parameters = new Parameters(await Machine.from(WASM), /** @type {any} */ (config));
  for (const [name, shape] of parametersOf(/** @type {any} */ (config))) {
    const count = shape.reduce((a, b) => a * b, 1);
    parameters.add(name, shape, Float32Array.from(chosen[name] ?? new Array(count).fill(0)));
  }
  const recipe = { ...RECIPE, input_size: [4, 4], resize_to: 4 };
  const model = new Model(/** @type {any} */ (config), parameters);
  const engine = new Engine(model, /** @type {any} */ (recipe), ['low', 'high'], []);
  const levels = new Uint8ClampedArray(64).fill(200);
  const traced = engine.trace({ height: 4, width: 4, channels: 4, levels });
  return { engine, traced, step: async () => {} };
}

test('relevance, gradient rollout and LeGrad by hand', async () => {
  const context = await byHand();
  const of = async (/** @type {string} */ name, /** @type {string} */ target) => {
    const { facts, arrays } = await answer(name, { target }, context);
    return [facts.prefix.class, ...Array.from(arrays.values.data, Number)];
  };
  // values are (1, -1) and (-1, 1), so that dA of the class token is (1 - 3, 3 - 1) for the first class and (2, -2) for the second
  const near = (/** @type {number[]} */ found, /** @type {number[]} */ wanted) =>
    wanted.forEach((value, i) => assert.ok(Math.abs(found[i] - value) < 1e-6, `${found} is not ${wanted}`));
  near(await of('relevance', 'low'), [1, 1]); // (dA * A)+ = (0, 1), added to (1, 0)
  near(await of('relevance', 'high'), [2, 0]);
  near(await of('gradient_rollout', 'low'), [0.5, 0.5]); // (0, 1) / 2 + (1, 0) / 2
  near(await of('gradient_rollout', 'high'), [1, 0]);
  near(await of('legrad', 'low'), [0, 1]); // 2 of the class token's row, nothing of the patch's: the mean of both
  near(await of('legrad', 'high'), [1, 0]);
});

test('maps of a gradient say that weights are rounded where they are', async () => {
  const context = await byHand();
  const noteOf = async () => (await answer('relevance', {}, context)).facts.note;
  assert.equal(await noteOf(), '');
  context.engine.isRounded = true;
  assert.match(await noteOf(), /int8/);
});
