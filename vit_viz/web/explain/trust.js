// How far maps can be trusted, as the server measured it: beside random orders of patches, and which to believe first.

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
 * @property {string} options of the map that was tested
 * @property {string} [error]
 * @property {string} [falls] how fast the answer falls, in words
 * @property {boolean} [better] whether it falls faster than at random
 * @property {string} [title] the areas in words
 * @property {Place} [place]
 * @property {string[]} [sentences]
 * @property {Record<string, Curve>} [curves]
 * @property {string} [what] is followed, if not the answer: the lead of one class over another
 * @property {string} [axis] what the curves count
 * @property {[string, string]} [names] of two classes whose maps were subtracted
 * @property {boolean} [grows] whether the lead grows at first as the patches of the other class go
 */

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
