// How far a map is to be believed: its patches are painted over and put back, beside random orders. vit_viz/analyses/trust.py and
// faithfulness.py.

import { round } from '../preprocess.js';
import { followedOf } from './following.js';
import { numbers } from './form.js';
import { randomOrder } from './orders.js';
import { paintedScore, paintedTokens } from './painting.js';
import { hasClasses } from './targets.js';
import { fixed, isEven } from './words.js';
/** @import { Traced } from '../engine.js' */
/** @import { Followed } from './following.js' */
/** @import { Context, Numbers } from './form.js' */

const STEPS = 20;
const ORDERS = 10;
const BAND_WIDTH = 2.37; // half a 95% prediction interval in standard deviations: t(0.975, 9) * sqrt(1 + 1/10)
const BAND_SHARE = 0.7; // of the progress
const NEVER = 1e-6; // a share this far from 0 and 1 at least, since their log-odds are infinite
const SLOW = new Set(['occlusion']); // methods of many passes
const TESTS = /** @type {const} */ ([
  [
    'deletion',
    'mean',
    'share of patches painted over, best first',
    "Painted over with the preprocessing mean (0 in the model's input).",
  ],
  [
    'insertion',
    'blur',
    'share of patches put back, best first',
    'Starts from a Gaussian blur of the image with a standard deviation of one patch.',
  ],
]);

/** Scores of orders at each step, one row an order: of deletion and of insertion. @typedef {[Float64Array[], Float64Array[]]} Curves */
/** Random orders by the pass and the words of the target; all maps for a target share them. @type {WeakMap<Traced, Map<string, Curves>>} */
const BANDS = new WeakMap();

/**
 * @param {Context} context @param {{method: string, sides: string}} options @param {import('./index.js').About} about
 * @param {import('./index.js').MapOf} mapOf
 */
async function trust(context, { method, sides }, about, mapOf) {
  const { traced } = context;
  if (sides === 'difference')
    throw new Error('Maps of two classes are subtracted in the app, not in this page.');
  const followed = followedOf(context, about.target);
  const counts = stepCounts(traced.tokens - traced.prefix.length);
  const fractions = counts.map((count) => count / counts[counts.length - 1]);
  const band = await bandOf(context, followed, counts);
  const ownMap = (/** @type {Traced} */ of) =>
    mapOf(method, about, { engine: context.engine, traced: of, step: async () => {} });
  const map = await ownMap(traced);
  const values = /** @type {Float32Array} */ (map.values.data);
  if (isEven(values))
    throw new Error('This map is the same everywhere: it has no peak, and ranks no patch before another.');
  const order = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  const own = await curvesOf(context, followed, [order], counts, BAND_SHARE, 1);
  const tests = TESTS.map(([test, , label, note], i) => {
    const [low, high] = predicted(transposed(band[i]), followed.range);
    const curve = {
      ...{ x: numbers([counts.length], fractions), y: numbers([counts.length], own[i][0]) },
      ...{ x_label: label, y_label: followed.words, method: `${test} of ${map.method}`, note },
      // a pair whose parts have names, as Python's `Band`
      band: Object.assign([], { low: numbers([counts.length], low), high: numbers([counts.length], high) }),
    };
    const areas = band[i].map((scores) => area(fractions, scores));
    return {
      curve,
      auc: area(fractions, own[i][0]),
      areas,
      edges: predicted([areas], followed.range).map(([edge]) => edge),
    };
  });
  const [deletion, insertion] = tests;
  const isQuick = !SLOW.has(method);
  return {
    faithfulness: {
      ...{
        deletion: deletion.curve,
        insertion: insertion.curve,
        deletion_auc: deletion.auc,
        insertion_auc: insertion.auc,
      },
      band: {
        ...{
          fractions: doubles([counts.length], fractions),
          deletion: table(band[0]),
          insertion: table(band[1]),
        },
        ...{ baselines: ['mean', 'blur'], target: followed.words, value_range: followed.range },
      },
      ...{ removal: null, removal_auc: null, reverse: null, reverse_auc: null },
    },
    method,
    random: [mean(deletion.areas), ...deletion.edges],
    class_sensitivity: isQuick && hasClasses(context) && traced.logits.length > 1 ? 0 : null, // the quick ones here are blind to the class
    mirror:
      isQuick && !Object.keys(about.options).length
        ? await mirrorStability(context, map.values, ownMap)
        : null,
    names: [],
    unit: '',
  };
}

/** What random orders of the patches score. @param {Context} context @param {Followed} followed @param {number[]} counts */
async function bandOf(context, followed, counts) {
  const { traced } = context;
  const known = BANDS.get(traced) ?? new Map();
  BANDS.set(traced, known);
  if (!known.has(followed.words)) {
    const patches = counts[counts.length - 1];
    const orders = Array.from({ length: ORDERS }, (_, i) => [...randomOrder(0, i, patches)]);
    known.set(followed.words, await curvesOf(context, followed, orders, counts, 0, BAND_SHARE));
  }
  return /** @type {Curves} */ (known.get(followed.words));
}

/**
 * Deletion and insertion of several orders; where none or all patches are there, they are the same for all.
 * @param {Context} context @param {Followed} followed @param {number[][]} orders @param {number[]} counts @param {number} from of the
 *     progress @param {number} to @returns {Promise<Curves>}
 */
async function curvesOf(context, followed, orders, counts, from, to) {
  const inner = counts.slice(1, -1);
  const all = 2 * (orders.length * inner.length + 2);
  let done = 0;
  const curves = [];
  for (const [test, baseline] of TESTS) {
    const painted = paintedTokens(context, baseline);
    const score = async (/** @type {(patch: number) => boolean} */ isFirst) => {
      await context.step(from + ((to - from) * done++) / all);
      return paintedScore(context, followed, painted, (patch) => isFirst(patch) === (test === 'deletion'));
    };
    const ends = [await score(() => false), await score(() => true)];
    const rows = [];
    for (const order of orders) {
      const rank = new Int32Array(order.length);
      order.forEach((patch, i) => (rank[patch] = i));
      const between = [];
      for (const count of inner) between.push(await score((patch) => rank[patch] < count));
      rows.push(Float64Array.from([ends[0], ...between, ends[1]]));
    }
    curves.push(rows);
  }
  return /** @type {Curves} */ (curves);
}

/** Rank correlation with the map of the mirrored photo, mirrored back. @param {Context} context @param {Numbers} values @param {(of: Traced) => any} mapOf */
async function mirrorStability(context, values, mapOf) {
  if (!hasClasses(context)) return null;
  const { engine, traced } = context;
  const { pixels, width } = traced.input;
  const turned = (/** @type {ArrayLike<number>} */ lines, /** @type {number} */ length) =>
    Float32Array.from(lines, (_, i) => lines[i - (i % length) + length - 1 - (i % length)]);
  const input = { ...traced.input, pixels: turned(pixels, width) };
  const mirrored = engine.traced(engine.model.run(input), input, traced.crop);
  const { words = '' } = engine.origins.get(traced) ?? {};
  const other = await mapOf(engine.edited(mirrored, words));
  return spearman(/** @type {Float32Array} */ (values.data), turned(other.values.data, values.shape[1]));
}

/** How many patches are gone after each step: 0 to all in 20 steps, or one by one if there are fewer. @param {number} patches */
function stepCounts(patches) {
  const steps = Math.min(STEPS, patches);
  return Array.from({ length: steps + 1 }, (_, i) => (i === steps ? patches : round(i * (patches / steps))));
}

/** Area under a curve by trapezoid: its mean height. @param {number[]} fractions @param {Float64Array} scores */
function area(fractions, scores) {
  return fractions
    .slice(1)
    .reduce((sum, end, i) => sum + ((end - fractions[i]) * (scores[i] + scores[i + 1])) / 2, 0);
}

/**
 * Between which values one more random order lies in 95% of cases, of rows of scores, each of all orders: on log-odds where the range ends.
 * @param {ArrayLike<number>[]} rows @param {[number, number]} range @returns {[number[], number[]]}
 */
function predicted(rows, [low, high]) {
  const isBounded = Number.isFinite(high - low);
  const odds = (/** @type {number} */ score) => {
    const share = Math.min(1 - NEVER, Math.max(NEVER, (score - low) / (high - low)));
    return Math.log(share / (1 - share));
  };
  const back = (/** @type {number} */ value) =>
    isBounded ? low + (high - low) / (1 + Math.exp(-value)) : value;
  const edges = rows.map((row) => {
    const values = Array.from(row, (score) => (isBounded ? odds(score) : score));
    const middle = mean(values);
    const variance = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
    const half = BAND_WIDTH * Math.sqrt(variance);
    return [back(middle - half), back(middle + half)];
  });
  return [edges.map(([edge]) => edge), edges.map(([, edge]) => edge)];
}

/** Rank correlation; equal values share their rank. @param {Float32Array} one @param {Float32Array} other */
function spearman(one, other) {
  if (one.every((value, i) => value === other[i])) return 1;
  const [a, b] = [one, other].map(centredRanks);
  const dot = (/** @type {Float64Array} */ x, /** @type {Float64Array} */ y) =>
    x.reduce((sum, value, i) => sum + value * y[i], 0);
  const norm = Math.sqrt(dot(a, a) * dot(b, b));
  return norm > 0 ? dot(a, b) / norm : 0;
}

/** @param {Float32Array} values */
function centredRanks(values) {
  const places = [...values.keys()].sort((a, b) => values[a] - values[b]);
  const ranks = new Float64Array(values.length);
  for (let first = 0, end = 0; first < places.length; first = end) {
    while (end < places.length && values[places[end]] === values[places[first]]) end++;
    for (const place of places.slice(first, end))
      ranks[place] = (first + end - 1) / 2 - (values.length - 1) / 2;
  }
  return ranks;
}

const mean = (/** @type {number[]} */ values) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** @param {number[]} shape @param {ArrayLike<number>} values @returns {Numbers} */
function doubles(shape, values) {
  return { shape, data: Float64Array.from(values) };
}

/** @param {Float64Array[]} rows */
function table(rows) {
  return doubles(
    [rows.length, rows[0].length],
    rows.flatMap((row) => [...row]),
  );
}

/** @param {Float64Array[]} rows @returns {number[][]} */
function transposed(rows) {
  return Array.from(rows[0], (_, step) => rows.map((row) => row[step]));
}

/** @param {Awaited<ReturnType<typeof trust>>} result */
function says({ faithfulness, method, class_sensitivity: sensitivity, mirror }) {
  const { fractions, deletion, insertion, value_range: range } = faithfulness.band;
  const beaten = [deletion, insertion].map((scores, i) => {
    const steps = fractions.data.length;
    const areas = Array.from({ length: ORDERS }, (_, order) =>
      area(
        Array.from(fractions.data, Number),
        /** @type {Float64Array} */ (scores.data).subarray(order * steps, (order + 1) * steps),
      ),
    );
    const own = i ? faithfulness.insertion_auc : faithfulness.deletion_auc;
    const [[low], [high]] = predicted([areas], range);
    const count = areas.filter((one) => (i ? own > one : own < one)).length;
    return { count, isOutside: i ? own > high : own < low };
  });
  const [taken, put] = beaten;
  const said = [
    taken.count === ORDERS && put.count === ORDERS
      ? `Better than each of ${ORDERS} random orders, taking away and putting back.`
      : `Better than ${taken.count} of ${ORDERS} random orders taking away, and than ${put.count} putting back.`,
  ];
  const where = ['taking away', 'putting back'].filter((_, i) => !beaten[i].isOutside);
  if (where.length) said.push(`Not outside the 95% band of random orders, ${where.join(' and ')}.`);
  if (sensitivity === 0 || !SLOW.has(method)) said.push('The same for every class.');
  if (mirror !== null) said.push(`Mirrored photo, mirrored map: ${fixed(mirror, 2)} of 1.`);
  if (SLOW.has(method))
    said.push('Whether it changes with the class or with a mirror is measured for the quick methods only.');
  return said.join('\n');
}

/** @type {import('./index.js').Table} */
export const TRUST = {
  trust: {
    needs: 'pass',
    takesQuery: true,
    takesTarget: true,
    takesOptions: true,
    options: {
      method: { usual: 'relevance', pattern: /^[a-z][a-z0-9_]*$/, sentence: "The map's method." },
      sides: ['lead', 'difference'],
    },
    answer: trust,
    says,
  },
};
