// How far a map is to be believed: its patches are painted over and put back, beside random orders. vit_viz/analyses/trust.py and
// faithfulness.py.

import { round } from '../preprocess.js';
import { followedOf } from './following.js';
import { numbers } from './form.js';
import { randomOrder } from './orders.js';
import { paintedScore, paintedTokens } from './painting.js';
import { OF_METHOD, SLOW, twoClasses } from './shares.js';
import { hasClasses, kindOf, outputName, targetOf } from './targets.js';
import { fixed, isEven, percent } from './words.js';
/** @import { Traced } from '../engine.js' */
/** @import { Followed } from './following.js' */
/** @import { Context, Numbers } from './form.js' */
/** @import { About } from './index.js' */

const STEPS = 20;
const ORDERS = 10;
const BAND_WIDTH = 2.37; // half a 95% prediction interval in standard deviations: t(0.975, 9) * sqrt(1 + 1/10)
const BAND_SHARE = 0.7; // of the progress
const NEVER = 1e-6; // a share this far from 0 and 1 at least, since their log-odds are infinite
const BLIND = new Set(['rollout', 'value_rollout', 'attention']); // whose maps are the same for every class
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

/** The map that is tested, of another pass or another class. @typedef {(of: Traced, own?: About) => any} OwnMap */
/** Scores of orders at each step, one row an order: of deletion and of insertion. @typedef {[Float64Array[], Float64Array[]]} Curves */
/** Random orders by the pass and the words of the target; all maps for a target share them. @type {WeakMap<Traced, Map<string, Curves>>} */
const BANDS = new WeakMap();

/**
 * @param {Context} context @param {{method: string, sides: string}} options @param {import('./index.js').About} about
 * @param {import('./index.js').MapOf} mapOf
 */
async function trust(context, { method, sides }, about, mapOf) {
  const { traced } = context;
  const pair = sides === 'difference' ? twoClasses(context, about.target) : null;
  const followed = followedOf(context, pair ? pair.join('-') : about.target);
  const counts = stepCounts(traced.tokens - traced.prefix.length);
  const fractions = counts.map((count) => count / counts[counts.length - 1]);
  const band = await bandOf(context, followed, counts);
  const ownMap = (/** @type {Traced} */ of, own = about) =>
    mapOf(method, own, { engine: context.engine, traced: of, step: async () => {} });
  const map = pair ? await subtracted(context, method, pair, about, mapOf) : await ownMap(traced);
  const values = /** @type {Float32Array} */ (map.values.data);
  if (isEven(values))
    throw new Error('This map is the same everywhere: it has no peak, and ranks no patch before another.');
  const order = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  const own = await curvesOf(context, followed, [order], counts, BAND_SHARE, pair ? 0.9 : 1);
  const testOf = (
    /** @type {Float64Array} */ scores,
    /** @type {number} */ i,
    [test, label] = /** @type {string[]} */ ([TESTS[i][0], TESTS[i][2]]),
  ) => {
    const [low, high] = predicted(transposed(band[i]), followed.range);
    const curve = {
      ...{ x: numbers([counts.length], fractions), y: numbers([counts.length], scores) },
      ...{ x_label: label, y_label: followed.words, method: `${test} of ${map.method}`, note: TESTS[i][3] },
      // a pair whose parts have names, as Python's `Band`
      band: Object.assign([], { low: numbers([counts.length], low), high: numbers([counts.length], high) }),
    };
    const areas = band[i].map((random) => area(fractions, random));
    const edges = predicted([areas], followed.range).map(([edge]) => edge);
    return { curve, auc: area(fractions, scores), areas, edges };
  };
  const [deletion, insertion] = own.map(([scores], i) => testOf(scores, i));
  /** @type {{reverse: typeof deletion.curve | null, reverse_auc: number | null}} from the other end of two maps subtracted */
  let reversed = { reverse: null, reverse_auc: null };
  if (pair) {
    const [[scores]] = await curvesOf(
      context,
      followed,
      [order.reverse()],
      counts,
      0.9,
      1,
      TESTS.slice(0, 1),
    );
    const { curve, auc } = testOf(scores, 0, ['reverse', 'share of patches painted over, last first']);
    reversed = { reverse: curve, reverse_auc: auc };
  }
  const isMeasured = !pair && !SLOW.has(method);
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
      ...{ removal: null, removal_auc: null },
      ...reversed,
    },
    method,
    random: [mean(deletion.areas), ...deletion.edges],
    class_sensitivity: isMeasured ? await classSensitivity(context, BLIND.has(method), about, ownMap) : null,
    mirror: isMeasured ? await mirrorStability(context, map.values, about, ownMap) : null,
    names: (pair ?? []).map((index) => outputName(context, index)),
    unit: pair && kindOf(context) !== 'value' ? 'logits' : '',
  };
}

/** The maps of a method for two classes, subtracted. @param {Context} context @param {string} method @param {[number, number]} pair @param {About} about @param {import('./index.js').MapOf} mapOf */
function subtracted(context, method, pair, about, mapOf) {
  const options = { method, ...(Object.keys(about.options).length && { options: about.options }) };
  return mapOf('class_difference', { ...about, query: null, target: pair.join('-'), options }, context);
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
async function curvesOf(context, followed, orders, counts, from, to, tests = TESTS.slice()) {
  const inner = counts.slice(1, -1);
  const all = tests.length * (orders.length * inner.length + 2);
  let done = 0;
  const curves = [];
  for (const [test, baseline] of tests) {
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

/**
 * 1 - the rank correlation of the maps for the first two classes; null where one of them is the same everywhere.
 * @param {Context} context @param {boolean} isBlind @param {About} about @param {OwnMap} mapOf
 */
async function classSensitivity(context, isBlind, about, mapOf) {
  const { traced } = context;
  const { logits } = traced;
  if (!hasClasses(context) || logits.length < 2) return null;
  if (isBlind) return 0;
  const maps = [];
  for (const index of [...logits.keys()].sort((a, b) => logits[b] - logits[a]).slice(0, 2))
    maps.push(
      (await mapOf(traced, { ...about, query: null, options: {}, target: String(index) })).values.data,
    );
  const [first, second] = maps;
  return isEven(first) || isEven(second) ? null : 1 - spearman(first, second);
}

/** Rank correlation with the map of the mirrored photo for the same class, mirrored back. @param {Context} context @param {Numbers} values @param {About} about @param {OwnMap} mapOf */
async function mirrorStability(context, values, about, mapOf) {
  if (!hasClasses(context) || Object.keys(about.options).length) return null;
  const { engine, traced } = context;
  const target = about.target ?? String(targetOf(context, null).index);
  const { pixels, width } = traced.input;
  const turned = (/** @type {ArrayLike<number>} */ lines, /** @type {number} */ length) =>
    Float32Array.from(lines, (_, i) => lines[i - (i % length) + length - 1 - (i % length)]);
  const input = { ...traced.input, pixels: turned(pixels, width) };
  const mirrored = engine.traced(engine.model.run(input), input, traced.crop);
  const { words = '' } = engine.origins.get(traced) ?? {};
  const other = await mapOf(engine.edited(mirrored, words), { ...about, target });
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
function says({ faithfulness, method, class_sensitivity: sensitivity, mirror, names, random, unit }) {
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
  if (names.length) said.unshift(...leadWords(faithfulness, names, random, unit && ` ${unit}`));
  if (BLIND.has(method)) said.push('The same for every class.');
  else if (sensitivity !== null) said.push(`Changes with the class: ${fixed(sensitivity, 2)} of 1.`);
  if (mirror !== null) said.push(`Mirrored photo, mirrored map: ${fixed(mirror, 2)} of 1.`);
  if (SLOW.has(method))
    said.push('Whether it changes with the class or with a mirror is measured for the quick methods only.');
  return said.join('\n');
}

/**
 * Of two maps subtracted: where the curves begin and end, where the lead is lost, and what the other class's patches do to it.
 * @param {Awaited<ReturnType<typeof trust>>['faithfulness']} faithfulness @param {string[]} names @param {number[]} random @param {string} unit
 */
function leadWords(
  { deletion, reverse, deletion_auc: own, reverse_auc: other, band },
  [one, two],
  random,
  unit,
) {
  const lead = (/** @type {number} */ value) => fixed(value, 2).replace('-', '−');
  const x = Array.from(band.fractions.data, Number);
  const lost = (/** @type {ArrayLike<number>} */ y) => {
    const gone = Array.from(y).findIndex((value) => value <= 0);
    return gone < 0 ? 'is never lost' : `is lost when ${percent(x[gone])} are gone`;
  };
  const [y, turned] = [deletion, reverse].map((curve) => curve?.y.data ?? new Float32Array(1));
  const leads = y[0] > 0 ? `${one} leads ${two} by` : `${one} does not lead ${two}: the lead is`;
  const said = [
    `On the whole photo ${leads} ${lead(y[0])}${unit}; with every patch painted over it is ${lead(y[y.length - 1])}.`,
  ];
  const rows = Array.from(band.deletion.data, Number);
  const chance = x.map((_, step) => mean(rows.filter((__, i) => i % x.length === step)));
  if (y[0] > 0)
    said.push(
      `With ${one}'s patches first, the lead ${lost(y)}; in random orders, in the mean, it ${lost(chance)}.`,
    );
  const [middle, low, high] = random.map(lead);
  said.push(
    `In the mean over the curve the lead is ${lead(own)}, with ${two}'s patches first ${lead(other ?? 0)}; in random orders ${middle}, 95% of them from ${low} to ${high}.`,
  );
  const most = turned.indexOf(Math.max(...turned));
  said.push(
    most
      ? `With ${two}'s patches first it grows to ${lead(turned[most])}, when ${percent(x[most])} are gone.`
      : `With ${two}'s patches first it never grows.`,
  );
  return said;
}

/** @type {import('./index.js').Table} */
export const TRUST = {
  trust: {
    needs: 'pass',
    takesQuery: true,
    takesTarget: true,
    takesOptions: true,
    options: {
      ...OF_METHOD,
      sides: ['lead', 'difference'],
    },
    answer: trust,
    says,
  },
};
