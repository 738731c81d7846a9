// What the Tokens tab says of the tokens: for each measure its words.

import { percent, short } from '../../ui/kit/numbers.js';
/** @import { Change, Components, Lens, Norms, Register, Segments } from './fetched.js' */

/** What a measure says of one patch in one state. @typedef {{state: number, patch: number, cols: number, name: string}} Spot */

/** A patch in words. */
export function patchName(/** @type {Pick<Spot, 'patch' | 'cols'>} */ { patch, cols }) {
  return `patch (${Math.floor(patch / cols)}, ${patch % cols})`;
}

/** A token that is no patch, in words. */
export function namedToken(/** @type {string} */ name) {
  return /\d$/.test(name) ? name : `${name} token`;
}

/** What they add up to. */
function sum(/** @type {number[]} */ values) {
  return values.reduce((total, value) => total + value, 0);
}

/** How much each of the three colours holds. */
export function componentWords(/** @type {Components} */ told, /** @type {number} */ state) {
  const shares = told.explained[state];
  const [red, green, blue] = shares.map(percent);
  return `Red ${red}, green ${green}, blue ${blue} of what differs here; in all layers together ${percent(sum(told.overall))}. Brightness is the photo's own`;
}

/** How many outliers a state has, and what they receive in the layer that they enter. */
export function outlierWords(
  /** @type {Norms} */ norms,
  /** @type {number} */ state,
  /** @type {number} */ factor,
) {
  const patches = norms.outliers[state].length;
  const names = norms.named[state];
  if (!patches && !names.length) return `No token is longer than ${factor} medians.`;
  const parts = [
    ...(patches ? [`${patches} ${patches === 1 ? 'patch' : 'patches'}`] : []),
    ...names.map((name) => (/\d$/.test(name) ? name : `the ${name} token`)),
  ];
  const last = state >= norms.received.length;
  const share = last
    ? ''
    : `, which get ${percent(norms.received[state])} of the next layer's attention (an even share would be ${percent(norms.fair[state])})`;
  return `Longer than ${factor} medians: ${parts.join(' and ')}${share}.`;
}

/** What became of the outlier patches when a register was added. */
export function registerWords(/** @type {Register} */ { patches: [before, after], state, name, neurons }) {
  const layers = [...new Set(neurons.map(([layer]) => layer))].sort((a, b) => a - b);
  const where = layers.length === 1 ? `layer ${layers[0]}` : `layers ${layers.join(', ')}`;
  return `After layer ${state - 1}, ${before} ${before === 1 ? 'patch was an outlier' : 'patches were outliers'}; with ${name} added there ${after === 1 ? 'is' : 'are'} ${after}. It took over ${neurons.length} neurons of ${where}, without training.`;
}

/** What the head says of a patch. */
export function lensWords(/** @type {Lens} */ lens, /** @type {Spot} */ spot) {
  const { state, patch } = spot;
  const value = lens.values[state][patch];
  if (!lens.top || !lens.top_probability || !lens.words) {
    return `${patchName(spot)}: ${short(value)}, ${lens.unit}`;
  }
  const first = lens.words[lens.top[state][patch]];
  const share = percent(lens.top_probability[state][patch]);
  return `${patchName(spot)}: ${first} ${share}${first === lens.target ? '' : `, ${lens.target} ${percent(value)}`}`;
}

/** The class that most patches of a state come out as. */
export function commonest(/** @type {Lens} */ { top, words }, /** @type {number} */ state) {
  if (!top || !words) return '';
  const counts = new Map();
  for (const index of top[state]) counts.set(index, (counts.get(index) ?? 0) + 1);
  const [index] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
  return words[index];
}

/** How far a patch and the other tokens stayed as they were. */
export function changeWords(
  /** @type {Change} */ told,
  /** @type {number} */ state,
  /** @type {Spot | null} */ spot,
) {
  const others = Object.entries(told.others).map(([name, row]) => `${namedToken(name)} ${short(row[state])}`);
  const patch = spot ? [`${patchName(spot)} ${short(told.values[state][spot.patch])}`] : [];
  return `Cosine with itself before the layer (1: only the length changed): ${[...patch, ...others.slice(0, 5)].join('; ')}`;
}

/** The segment of a patch; null where none is meant. */
export function spotSegment(/** @type {Segments} */ { labels }, /** @type {number | null} */ patch) {
  return patch === null ? null : (labels[patch] ?? null);
}

/** Which segment a patch belongs to. */
export function segmentWords(/** @type {Segments} */ told, /** @type {Spot} */ spot) {
  const segment = told.labels[spot.patch];
  const overlap = told.overlap ? `; overlap with the box ${short(told.overlap[segment])}` : '';
  return `${patchName(spot)}: segment ${segment}, ${percent(told.shares[segment])} of the patches${overlap}`;
}
