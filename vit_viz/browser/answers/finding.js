// What stands out of what an answer is made of, in one sentence: `_finding` of vit_viz/analyses/decomposition.py.

import { round } from '../preprocess.js';
/** @import { Floats } from './form.js' */

/** @type {[number, string][]} */
const SHARES = [
  [0.25, 'A quarter'],
  [1 / 3, 'A third'],
  [0.5, 'Half'],
  [2 / 3, 'Two thirds'],
  [0.75, 'Three quarters'],
];

/**
 * @typedef {{terms: Floats, heads: Floats, mlps: Floats, rest: Floats, rest_names: string[], total: number, layers: string[],
 *     grid: number[], prefix: string[], about: string}} Decomposed
 * @param {Decomposed} decomposed
 */
export function finding(decomposed) {
  const { layers, about, total } = decomposed;
  const sign = total < 0 ? -1 : 1;
  const isPool = layers[0] === 'pool';
  const signed = (/** @type {Floats} */ { data }) => Array.from(data, (value) => sign * value);
  const [heads, mlps, rest] = [decomposed.heads, decomposed.mlps, decomposed.rest].map(signed);
  const most = heads.indexOf(Math.max(...heads));
  const count = decomposed.heads.shape[1];
  const [row, head] = [Math.floor(most / count), most % count];
  const last = isPool ? "the pool's MLP" : 'the last MLP';
  const best = `head ${head} of ${isPool ? 'the pool' : `layer ${layers[row]}`}`;
  const parts = /** @type {[string, number][]} */ ([
    ...mlps.map((value, i) => [i === mlps.length - 1 ? last : `the MLP of layer ${layers[i]}`, value]),
    ...rest.map((value, i) => [`the ${decomposed.rest_names[i]}`, value]),
    [best, heads[most]],
  ]);
  const [name, largest] = parts.reduce((one, other) => (other[1] > one[1] ? other : one));
  const isAlone = heads.filter((value) => value === heads[most]).length === 1;
  const share = largest / Math.max(Math.abs(total), 1e-30);
  const isShared = parts.filter(([, value]) => value === largest).length > 1 || (name === best && !isAlone);
  let first = `No single part makes up a fifth of ${about}`;
  if (share >= 0.2 && isShared) first = `No single part gives most of ${about}`;
  else if (share > 1)
    first = `${name[0].toUpperCase()}${name.slice(1)} gives more than all of ${about}, and others take away from it`;
  else if (share >= 0.2) first = `${shareWords(share)} of ${about} comes from ${name}`;
  const usual = heads.reduce((sum, value) => sum + Math.abs(value), 0) / heads.length;
  if (!isAlone || !(heads[most] > 2 * usual)) return `${first}; no head stands out`;
  const place = placeWords(decomposed, row, head, sign);
  return name === best ? `${first}${place}` : `${first}; of the heads, ${best} gave most${place}`;
}

/** A share in words, where a plain one is within three hundredths of it. @param {number} share */
function shareWords(share) {
  const [near, words] = SHARES.reduce((one, other) =>
    Math.abs(other[0] - share) < Math.abs(one[0] - share) ? other : one,
  );
  return Math.abs(near - share) <= 0.03 ? words : `${round(100 * share)}%`;
}

/**
 * Where a head took most of what it gave, in words; '' where it took it from all over, or is not kept by itself.
 * @param {Decomposed} decomposed @param {number} row @param {number} head @param {number} sign
 */
function placeWords({ terms, heads, grid: [rows, cols], prefix }, row, head, sign) {
  const [, count, tokens] = terms.shape;
  if (count !== heads.shape[1]) return '';
  const start = (row * count + head) * tokens;
  const given = Array.from(terms.data.subarray(start, start + tokens), (value) => Math.max(0, sign * value));
  const whole = given.reduce((sum, value) => sum + value, 0);
  const others = given.slice(0, prefix.length);
  const [most, at] = [Math.max(...others), others.indexOf(Math.max(...others))];
  if (most > whole / 2)
    return prefix[at].startsWith('register') ? `, from ${prefix[at]}` : `, from the ${prefix[at]} token`;
  const patches = given.slice(prefix.length);
  const cell = (/** @type {number} */ r, /** @type {number} */ c) =>
    r >= 0 && c >= 0 && r < rows && c < cols ? patches[r * cols + c] : 0;
  /** Of the nine patches around each one; `skips` leaves some out. @param {(r: number, c: number) => boolean} skips */
  const around = (skips) =>
    patches.map((_, i) => {
      let sum = 0;
      for (let r = Math.floor(i / cols) - 1; r <= Math.floor(i / cols) + 1; r++)
        for (let c = (i % cols) - 1; c <= (i % cols) + 1; c++) if (!skips(r, c)) sum += cell(r, c);
      return sum;
    });
  const sums = around(() => false);
  const best = Math.max(...sums);
  if (!(best > Math.max(0.15, (4 * 9) / sums.length) * whole)) return ''; // four times what chance gives to nine patches
  const [top, left] = [Math.floor(sums.indexOf(best) / cols), sums.indexOf(best) % cols];
  const elsewhere = around((r, c) => Math.abs(r - top) <= 1 && Math.abs(c - left) <= 1);
  if (Math.max(...elsewhere) >= best) return ''; // as much from another place
  let [down, across, window] = [0, 0, 0];
  for (const r of [-1, 0, 1])
    for (const c of [-1, 0, 1]) {
      const value = cell(top + r, left + c);
      [down, across, window] = [down + r * value, across + c * value, window + value];
    }
  return `, from around patch (${top + round(down / window)}, ${left + round(across / window)})`;
}
