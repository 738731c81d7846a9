// Answers to the questions of the lesson, of a model that is small and odd.

/** @import { Answer, Numbers } from '../../vit_viz/web/lesson/timeline.js' */

export const LAYERS = 3;
export const HEADS = 5;
const [HEAD_DIM, HIDDEN, ROWS, COLS, CLASSES] = [8, 56, 4, 6, 7];
const PREFIX = ['class', 'register 0'];
const DIM = HEADS * HEAD_DIM;
const TOKENS = PREFIX.length + ROWS * COLS;

/** An array whose numbers are a little different everywhere. @param {number[]} shape @param {(i: number) => number} [of] */
export function array(shape, of = (i) => Math.sin(1 + i * 0.7)) {
  const size = shape.reduce((a, b) => a * b, 1);
  return { shape, data: Float32Array.from({ length: size }, (_, i) => of(i)) };
}

/** @param {Record<string, any>} arrays @param {any} facts @returns {Answer} */
const answer = (arrays, facts) => ({ arrays, facts });

/** What the scenes are drawn from, with other answers or another trace. @param {any} [more] @returns {Numbers & Record<string, any>} */
export function numbers({ trace = {}, depth = {}, facts = {}, ...more } = {}) {
  const names = Array.from({ length: CLASSES }, (_, i) => `class ${i}`);
  const shares = array([HEADS, TOKENS], (i) => (1 + (i % 5)) / (3 * TOKENS));
  const vector = (/** @type {number} */ by) => array([DIM], (i) => by * Math.cos(i));
  return /** @type {any} */ ({
    ...{
      patch: 9,
      layer: 1,
      head: 2,
      name: (/** @type {number} */ token) => PREFIX[token] ?? `patch ${token}`,
    },
    trace: {
      ...{ layers: LAYERS, heads: HEADS, grid: [ROWS, COLS], prefix: PREFIX, suffix: [], pooling: 'class' },
      ...{ about: { model: 'odd', image: 'lion' }, photo: '/p.png' },
      crop: { original: [40, 60], input: [40, 60], region: [0, 0, 40, 60] },
      ...trace,
    },
    tokens: answer({}, { shape: { mlp: 'gelu' } }),
    attention: answer({}, {}),
    block: answer(
      {
        ...{ weights: shares, outputs: array([HEADS, HEAD_DIM]), contributions: array([HEADS, DIM]) },
        ...{ rest: vector(0.1), before: vector(3), attended: vector(1), middle: vector(4) },
        ...{ thought: vector(2), after: vector(6), hidden: array([HIDDEN]), activated: array([HIDDEN]) },
      },
      { token: 11, layer: 1, activation: 'gelu', active: 0.25 },
    ),
    depth: answer(
      {
        ...{ stream: array([LAYERS + 1, DIM]), looks: array([LAYERS, TOKENS]) },
        ...{
          answer_looks: array([LAYERS, TOKENS], (i) => (i % 7) / 90),
          norms: array([LAYERS + 1], (i) => i + 2),
        },
        ...{ alike: array([LAYERS + 1, ROWS, COLS]), parts: array([LAYERS, 2]) },
        tops: array(
          [LAYERS + 1, CLASSES],
          (i) =>
            [0.1, 0.2, 0.3, 0.6][Math.floor(i / CLASSES)] /
            (1 + Math.abs((i % CLASSES) - (i < 2 * CLASSES ? 4 : 0))),
        ),
        agreement: array([LAYERS + 1], (i) => [0.2, 0.5, 0.95, 1][i]),
        ...depth,
      },
      {
        kind: 'probability',
        unit: 'probability',
        words: names,
        classes: names.map((_, i) => i),
        pooling: 'class',
        ...facts,
      },
    ),
    parts: answer(
      {
        ...{
          terms: array([LAYERS, HEADS, TOKENS]),
          heads: array([LAYERS, HEADS], (i) => (i === 7 ? 2 : 0.1)),
        },
        ...{ mlps: array([LAYERS], (i) => [-0.5, 0.25, 1][i]), rest: array([2], () => 0.05) },
      },
      { total: 4.25, about: 'lion', unit: 'logit of class 0 (lion)', layers: ['0', '1', '2'] },
    ),
    ...more,
  });
}
