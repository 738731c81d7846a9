// How far maps can be trusted: what their tests beside random orders of patches found, and which to believe first.

import { fixed, number, percent } from '../../ui/kit/numbers.js';
/** @import { Target } from '../kit/parts.js' */
/** @import { Answer } from './staged.js' */

/**
 * A curve, and between which values 95% of random orders lie.
 * @typedef {object} Curve
 * @property {number[]} x share of the patches, from 0 to 1
 * @property {number[]} y
 * @property {number[]} low
 * @property {number[]} high
 * @property {[number, number]} ends of the axis of y
 * @property {[string, string]} labels of these ends
 * @property {string[]} texts of y
 *
 * @typedef {{area: number, low: number, high: number, mean: number, floor?: number}} Place the area under the map's curve, the middle of
 *     those of random orders of patches, and between which 95% of them lie; floor: where its line begins, if not at 0
 *
 * @typedef {object} Trust how far a map can be trusted
 * @property {string} [options] of the map that was tested
 * @property {string} [error]
 * @property {string} [falls] how fast the answer falls, in words
 * @property {boolean} [better] whether it falls faster than at random
 * @property {string} [title] the areas in words
 * @property {Place} [place]
 * @property {string[]} [sentences]
 * @property {boolean} [isHalf] whether it was tested as its patches go only
 * @property {Record<string, Curve>} [curves]
 * @property {string} [what] is followed, if not the answer: the lead of one class over another
 * @property {string} [axis] what the curves count
 * @property {[string, string]} [names] of two classes whose maps were subtracted
 * @property {boolean} [grows] whether the lead grows at first as the patches of the other class go
 */

/** The name of the map that is no card's: those of two classes subtracted. */
export const DIFFERENCE = 'difference';

const logits = (/** @type {number} */ value) => fixed(value, 2).replace('-', '−');

const HALF = 'Measured as its patches go, not yet as they come back.';

/**
 * What a test found of a map.
 * @param {Pick<Answer, 'arrays' | 'facts'> & {words?: string}} answer to the question `trust`, without `words` the first half of it,
 *     as patches go @param {Target} target @returns {Trust}
 */
export function trustOf({ arrays, facts, words }, { classes = [], other, chosen }) {
  const { faithfulness, random, names } = facts;
  const { deletion_auc: area, band, deletion } = faithfulness;
  const [mean, low, high] = random;
  const isUnbounded = !Number.isFinite(Number(band.value_range[0])); // a lead, or a value
  const isOfValues = classes[0]?.value !== undefined;
  const isOne = (other ?? null) === null;
  const write = !classes.length || isOfValues ? number : isOne ? percent : logits;
  const isValue = isOfValues && isOne;
  const exact = [area, mean, low, high].map((value) => number(value, 4));
  const curves = ['deletion', 'insertion', 'reverse']
    .filter((name) => faithfulness[name])
    .map((name) => [name, curveOf(arrays, name, write, !isValue)]);
  const turned = arrays['faithfulness.reverse.y']?.data;
  const floor = Math.min(...arrays['faithfulness.band.deletion'].data);
  const [one, less] = [chosen, other].map((index) => classes.find((entry) => entry.index === index)?.name);
  return {
    ...followed([one, less], deletion.y_label, isOfValues),
    falls: fallWords({ area, mean, low, high }, isUnbounded, isValue),
    better: area < low,
    place: { area, mean, high, ...(isUnbounded ? { low, floor } : { low: Math.max(low, 0) }) },
    title: `Area under the curve while patches go, the best first: ${exact[0]}. Random orders: ${exact[1]} in the mean, 95% of them from ${exact[2]} to ${exact[3]} (gray). The lower, the better.`,
    sentences: words?.split('\n') ?? [HALF],
    isHalf: !words,
    curves: Object.fromEntries(curves),
    ...(names.length && { names, grows: turned && Math.max(...turned) > turned[0] }),
  };
}

/** What the curves follow, and what their axis counts. @param {(string | undefined)[]} names @param {string} label @param {boolean} isOfValues */
function followed([one, other], label, isOfValues) {
  if (!one) return { axis: "similarity to the whole photo's embedding" };
  const kind = isOfValues ? 'value' : label.startsWith('sigmoid') ? 'sigmoid' : 'probability';
  if (!other) return { axis: `${kind} of ${one}` };
  const lead = `lead of ${one} over ${other}`;
  return { what: `the ${lead}`, axis: isOfValues ? lead : `${lead}, in logits` };
}

/** How fast the answer falls as the map's patches go. @param {Place} place @param {boolean} isUnbounded @param {boolean} isValue */
export function fallWords({ area, mean, low, high }, isUnbounded, isValue) {
  if (area >= low) return area > high ? 'falls slower than at random' : 'falls no faster than at random';
  const write = isValue ? number : logits;
  if (isUnbounded) return `mean ${isValue ? 'value' : 'lead'} ${write(area)}, at random ${write(mean)}`;
  const times = mean / Math.max(area, 1e-12);
  return `falls ${times.toFixed(times < 10 ? 1 : 0)} x faster than at random`;
}

/**
 * A curve of a test, with the numbers at the ends of its axis, which begins at 0 but for a value: that may be far from 0 on every photo.
 * @param {Answer['arrays']} arrays @param {string} name @param {(value: number) => string} write @param {boolean} fromZero @returns {Curve}
 */
function curveOf(arrays, name, write, fromZero) {
  const [x, y, low, high] = ['x', 'y', 'band.low', 'band.high'].map((part) =>
    Array.from(arrays[`faithfulness.${name}.${part}`].data, Number),
  );
  const [least, most] = [Math.min(...y, ...low, ...high), Math.max(...y, ...low, ...high)];
  /** @type {[number, number]} */
  const ends = fromZero ? [Math.min(0, least), Math.max(most, 1e-6)] : [least, Math.max(most, least + 1e-6)];
  const written = (/** @type {number} */ value) => (value === 0 ? '0' : write(value));
  return { x, y, low, high, ends, labels: [written(ends[0]), written(ends[1])], texts: y.map(written) };
}

const BAND = 0.7; // of the progress of all tests: ten random orders, against one order of each map

/**
 * Tests maps one after the other, the chosen one next; what is known of each is told at once. A map that cannot be tested says why.
 * @param {import('../kit/ask.js').Ask} ask @param {{name: string, label: string, body: any, options: string}[]} maps
 * @param {() => string} chosen the name of the map that somebody looks at @param {Target} target
 * @param {AbortSignal} stop @param {import('../kit/ask.js').Tell} tell
 * @returns {Promise<{cards: Record<string, Trust>, order: string[]}>} order: the most faithful first
 */
export async function testAll(ask, maps, chosen, target, stop, tell) {
  /** @type {Record<string, Trust>} */
  const cards = {};
  const left = [...maps];
  const step = (1 - BAND) / maps.length;
  while (left.length) {
    const next = left.findIndex(({ name }) => name === chosen());
    const [{ name, label, body, options }] = left.splice(Math.max(next, 0), 1);
    const end = BAND + step * (maps.length - left.length);
    const isFirst = maps.length === left.length + 1; // it makes the random orders for all
    const begin = isFirst ? 0 : end - step;
    const words = isFirst ? `${label} and random orders of patches …` : `${label} …`;
    const hear = (/** @type {Parameters<typeof tell>[0]} */ { share, left: time, preview }) => {
      if (preview) cards[name] = { ...trustOf(preview, target), options };
      const far = { share: begin + (end - begin) * share, left: time };
      tell(preview ? { ...far, preview: { words, cards: { ...cards } } } : far);
    };
    tell({ share: begin, left: '', preview: { words, cards: { ...cards } } });
    try {
      cards[name] = { ...trustOf(await ask('trust', body, stop, hear), target), options };
    } catch (error) {
      stop.throwIfAborted();
      cards[name] = { error: /** @type {Error} */ (error).message, options };
    }
  }
  const area = (/** @type {string} */ name) => cards[name].place?.area ?? 0;
  const order = Object.keys(cards)
    .filter((name) => name !== DIFFERENCE && cards[name].place)
    .sort((a, b) => area(a) - area(b));
  return { cards, order };
}

/** How much more area the next map may have and still be said to do as well as the first. */
const AS_WELL = 1.1;

/** Where the strips of all cards end: beyond each map and well beyond the random orders; 0 while nothing is known. */
export function endOfStrips(/** @type {Trust[]} */ known) {
  const beyond = (/** @type {number} */ at, /** @type {number} */ times, floor = 0) =>
    floor + times * (at - floor);
  const ends = known.flatMap(({ place }) =>
    place ? [beyond(place.high, 1.6, place.floor), beyond(place.area, 1.05, place.floor)] : [],
  );
  return ends.length ? Math.max(...ends) : 0;
}

/**
 * Which card to believe first, and why.
 * @param {{label: string, trust: Trust | undefined}[]} cards the most faithful first
 * @param {string} of the class of the test, where it is another one than that of the maps
 */
export function firstChoice(cards, of = '') {
  const tested = cards.flatMap(({ label, trust }) =>
    trust?.place ? [{ label, ...trust.place, better: trust.better, what: trust.what }] : [],
  );
  if (!tested.length) return '';
  const [first, next] = tested.filter(({ better }) => better);
  const whose = of ? ` for ${of}` : '';
  const range = ({ low, high } = tested[0]) => `${short(low)} to ${short(high)}`;
  if (!first)
    return `Believe none first${whose}: no map tested does better than the band of random orders (${range()}).`;
  const mean = first.what ? `the mean of ${first.what}` : "the mean height of the answer's curve";
  const why = `as the best patches go, ${mean} is`;
  const beside = `random orders lie between ${range(first)}`.replace(' to ', ' and ');
  const { floor = 0 } = first;
  if (next && next.area - floor <= AS_WELL * (first.area - floor))
    return `${first.label} and ${next.label} do about equally well${whose}: ${why} ${short(first.area)} and ${short(next.area)}; ${beside}.`;
  return `Believe ${first.label} first${whose}: ${why} ${short(first.area)}; ${beside}.`;
}

/** A number with two digits that say something. */
function short(/** @type {number} */ value) {
  return String(Number(value.toPrecision(2))).replace('-', '−');
}
