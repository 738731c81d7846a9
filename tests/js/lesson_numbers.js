// Answers to the questions of the lesson, of a model that is small and odd.

/** @import { Answer, Numbers } from '../../vit_viz/web/lesson/timeline.js' */

export const LAYERS = 3;
export const HEADS = 5;
const [HEAD_DIM, HIDDEN, ROWS, COLS, CLASSES] = [8, 56, 4, 6, 7];
const PREFIX = ['class', 'register 0'];
const DIM = HEADS * HEAD_DIM;
/** Of a model without anything unusual. */
const SHAPE = {
  ...{ mlp: 'gelu', norm: 'layer', position: 'learned', read: 'the class token', classes: CLASSES },
  ...{ final_norm: true, rotary: false, relative: false },
};
export const TOKENS = PREFIX.length + ROWS * COLS;

/** An array whose numbers are a little different everywhere. @param {number[]} shape @param {(i: number) => number} [of] */
export function array(shape, of = (i) => Math.sin(1 + i * 0.7)) {
  const size = shape.reduce((a, b) => a * b, 1);
  return { shape, data: Float32Array.from({ length: size }, (_, i) => of(i)) };
}

/** @param {Record<string, any>} arrays @param {any} facts @returns {Answer} */
const answer = (arrays, facts) => ({ arrays, facts });

/** What the scenes are drawn from, with other answers or another trace. @param {any} [more] @returns {Numbers & Record<string, any>} */
export function numbers({ trace = {}, depth = {}, facts = {}, shape = {}, ...more } = {}) {
  const names = Array.from({ length: CLASSES }, (_, i) => `class ${i}`);
  const shares = array([HEADS, TOKENS], (i) => (1 + (i % 5)) / (3 * TOKENS));
  const vector = (/** @type {number} */ by) => array([DIM], (i) => by * Math.cos(i));
  return /** @type {any} */ ({
    ...{ patch: 9, layer: 1, head: 2 },
    trace: {
      ...{ layers: LAYERS, heads: HEADS, grid: [ROWS, COLS], prefix: PREFIX, suffix: [], pooling: 'class' },
      ...{ about: { model: 'odd', image: 'lion' }, photo: '/p.png' },
      crop: { original: [40, 60], input: [40, 60], region: [0, 0, 40, 60] },
      ...trace,
    },
    tokens: answer(
      {
        ...{ pixels: array([3, 10, 10]), flat: array([300]), token: vector(3), embedded: vector(2) },
        ...{ position: vector(1), prefix: array([PREFIX.length, DIM]), places: array([ROWS, COLS]) },
      },
      { place: [1, 3], shape: { ...SHAPE, ...shape } },
    ),
    attention: answer(
      {
        ...{ query: array([HEAD_DIM]), keys: array([TOKENS, HEAD_DIM]), values: array([TOKENS, HEAD_DIM]) },
        ...{ products: array([TOKENS]), scores: array([TOKENS]), output: array([HEAD_DIM]) },
        weights: array([TOKENS], (i) => (1 + (i % 5)) / (3 * TOKENS)),
      },
      { token: PREFIX.length + 9, scale: HEAD_DIM ** -0.5, has_bias: false },
    ),
    block: answer(
      {
        ...{ weights: shares, outputs: array([HEADS, HEAD_DIM]), contributions: array([HEADS, DIM]) },
        ...{ rest: vector(0.1), before: vector(3), attended: vector(1), middle: vector(4) },
        ...{ thought: vector(2), after: vector(6), hidden: array([HIDDEN]), activated: array([HIDDEN]) },
      },
      { token: 11, layer: 1 },
    ),
    depth: answer(
      {
        stream: array([LAYERS + 1, DIM]),
        ...{
          answer_looks: array([LAYERS, TOKENS], (i) => (i % 7) / 90),
        },
        alike: array([LAYERS + 1, ROWS, COLS]),
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
