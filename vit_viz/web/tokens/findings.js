// What was found in this photo, as one sentence for each question; and what stands under a small photo.

import { percent, short } from '../../ui/kit/numbers.js';
import { commonest, namedToken, patchName } from './measures.js';
/** @import { Subject } from './room.js' */
/** @import { Lens, Norms, Role } from './fetched.js' */

const SAME = Math.SQRT1_2; // cosine of 45 degrees
const CLEAR = 0.1; // probability from which on the head is said to say something

/** A token in words. @param {Pick<Subject, 'prefix' | 'suffix' | 'grid'>} subject @param {number} token */
export function tokenName({ prefix, suffix, grid: [rows, cols] }, token) {
  const patch = token - prefix.length;
  if (patch >= 0 && patch < rows * cols) return patchName({ patch, cols });
  return namedToken([...prefix, ...suffix][patch < 0 ? token : token - rows * cols]);
}

/** A vector in words: "Patch (7, 7) after layer 4". @param {string} token @param {Role} role @param {string} state */
export function whose(token, role, state) {
  const name = token.startsWith('patch') ? `P${token.slice(1)}` : `The ${token}`;
  if (role !== 'tokens') return `${name}, by the ${role} of ${state}`;
  return state === 'input' ? `${name} before the first layer` : `${name} ${state}`;
}

/** The largest of some numbers: where it is, leaving one out. @param {ArrayLike<number>} values @param {number} [without] */
export function largestAt(values, without) {
  let best = -1;
  for (let i = 0; i < values.length; i++)
    if (i !== without && (best < 0 || values[i] > values[best])) best = i;
  return best;
}

/** @param {ArrayLike<number>} values */
export function meanOf(values) {
  return Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * From the average patch up to the one that is most alike, the patch itself left out: what is lit stands out from the average.
 * @param {Float32Array} values @param {number} [self] @returns {[number, number]}
 */
export function standOut(values, self) {
  let [sum, count, high] = [0, 0, -Infinity];
  for (let i = 0; i < values.length; i++) {
    if (i === self) continue;
    sum += values[i];
    count += 1;
    high = Math.max(high, values[i]);
  }
  return count ? [Math.min(high, sum / count), high] : [values[0], values[0]];
}

/** How many other patches point the same way. @param {string} who @param {Float32Array} values @param {number} [self] */
export function alikeFinding(who, values, self) {
  const others = values.length - (self === undefined ? 0 : 1);
  let same = 0;
  values.forEach((value, i) => (same += i !== self && value >= SAME ? 1 : 0));
  const other = self === undefined ? 'patch' : 'other patch';
  if (!same) return `${who}: no ${other} carries the same direction`;
  if (same === others) return `${who}: all patches carry the same direction`;
  if (same > others / 2) return `${who}: most patches carry the same direction, ${same} of ${others}`;
  return `${who}: ${same} ${same === 1 ? 'patch carries' : 'patches carry'} the same direction`;
}

/** Which patch is most alike, and how alike the others are. @param {Float32Array} values @param {number} cols @param {number} [self] */
export function alikeWords(values, cols, self) {
  const best = largestAt(values, self);
  if (best < 0) return 'There is one patch alone';
  const most = `Most alike is ${patchName({ patch: best, cols })}, cosine ${short(values[best])}`;
  return `${most}; the average patch ${short(standOut(values, self)[0])}`;
}

/** @param {string} who @param {Norms} norms @param {number} state @param {number | undefined} length @param {number} factor */
export function normFinding(who, norms, state, length, factor) {
  const times = timesMedian(norms, state, length, factor);
  if (times === null) return `${who}: how long the tokens are`;
  const outlier = times > factor ? 'an outlier, ' : '';
  return `${who}: ${outlier}${Number(times.toPrecision(2))} times as long as the median`;
}

/** A length beside the median; null where that is 0, or there is no length. @param {Norms} norms @param {number} state @param {number | undefined} length @param {number} factor */
export function timesMedian(norms, state, length, factor) {
  const median = norms.thresholds[state] / factor;
  return median > 0 && length !== undefined ? length / median : null;
}

/** @param {string} who @param {Lens} lens @param {number} state @param {number | undefined} patch */
export function lensFinding(who, lens, state, patch) {
  const { top, top_probability: sure, words } = lens;
  if (!top || !sure || !words) {
    const value = patch === undefined ? meanOf(lens.values[state]) : lens.values[state][patch];
    if (lens.unit.startsWith('value'))
      return `${who}: ${lens.unit} ${short(value)}${patch === undefined ? ' on average' : ''}`;
    return `${who}: cosine ${short(value)} with the photo's own embedding`;
  }
  if (patch === undefined) return `${who}: of the patches most would be called ${commonest(lens, state)}`;
  const said = `${words[top[state][patch]]}, ${percent(sure[state][patch])}`;
  return sure[state][patch] < CLEAR
    ? `${who}: the head would say nothing clear (${said})`
    : `${who}: the head would say ${said}`;
}

/** The patch of which the head is most sure. @param {Lens} lens @param {number} state @param {number} cols */
export function surestWords({ top, top_probability: sure, words }, state, cols) {
  if (!top || !sure || !words) return '';
  const best = largestAt(sure[state]);
  return `It is surest of ${patchName({ patch: best, cols })}: ${words[top[state][best]]}, ${percent(sure[state][best])}`;
}

/** How far a vector turned, from its cosine with itself before. */
export function degrees(/** @type {number} */ cosine) {
  return (180 / Math.PI) * Math.acos(Math.min(1, Math.max(-1, cosine)));
}

/** @param {string} layer @param {ArrayLike<number>} turned in degrees @param {number} cols @param {number} [patch] */
export function changeFinding(layer, turned, cols, patch) {
  const mean = Math.round(meanOf(turned));
  if (patch === undefined) return `${layer} turned the patches by ${mean}° on average`;
  return `${layer} turned ${patchName({ patch, cols })} by ${Math.round(turned[patch])}°, the average patch by ${mean}°`;
}
