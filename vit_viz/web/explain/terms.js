// What each head took from each patch, as maps that are drawn and numbers that are written.

import { endOf } from '../kit/signed.js';
/** @import { Made } from './made.js' */

/** What a place is called: "4.3" is head 3 of layer 4, "4" all heads of it. */
export function nameOf(/** @type {string} */ place, /** @type {string[]} */ layers) {
  const [row, head] = place.split('.');
  const layer = layers[Number(row)];
  return head === undefined ? `the heads of layer ${layer}` : `${layer} · ${head}`;
}

export const total = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0);

/** What each head took from each patch; of a head that is off, what it took before. */
export class Terms {
  /** @type {Map<string, Float32Array>} sums of several heads */ sums = new Map();

  /** @param {Pick<Made, 'now' | 'before' | 'off'>} made @param {[number, number]} grid */
  constructor({ now, before, off }, grid) {
    this.now = now;
    this.before = before;
    this.rows = now.heads.length;
    this.heads = now.heads[0].length;
    this.patches = grid[0] * grid[1];
    this.off = new Set(off);
    const count = this.rows * this.heads;
    if (now.maps.length !== count * this.patches || now.maps.length !== before.maps.length)
      throw new Error('These parts do not fit the photo; please reload the page.');
    const ends = Array.from({ length: count }, (_, head) => endOf(this.part(before.maps, head)));
    this.most = Math.max(0, ...ends);
  }

  /** The map of a head by its number. @param {Float32Array} maps @param {number} head */
  part(maps, head) {
    return maps.subarray(head * this.patches, (head + 1) * this.patches);
  }

  has(/** @type {string} */ place) {
    const [row, head] = place.split('.').map(Number);
    return row < this.rows && (head === undefined || head < this.heads);
  }

  /** A head, or all heads of a layer. @param {string} place */
  places(place) {
    if (place.includes('.')) return [place];
    return Array.from({ length: this.heads }, (_, head) => `${place}.${head}`);
  }

  /** Whether a head is off, or all heads of a layer are. */
  isOff(/** @type {string} */ place) {
    return this.places(place).every((one) => this.off.has(one));
  }

  /** One number per patch. @param {string | null} place null: of all heads, as they are now */
  map(place) {
    if (place?.includes('.')) {
      const [row, head] = place.split('.').map(Number);
      return this.part((this.off.has(place) ? this.before : this.now).maps, row * this.heads + head);
    }
    const known = this.sums.get(place ?? '');
    if (known) return known;
    const [first, last] = place === null ? [0, this.rows] : [Number(place), Number(place) + 1];
    const sum = new Float32Array(this.patches);
    for (let i = first * this.heads * this.patches; i < last * this.heads * this.patches; i++)
      sum[i % this.patches] += this.now.maps[i];
    this.sums.set(place ?? '', sum);
    return sum;
  }

  /** What a head gave, from all tokens; of one that is off, before. @param {string | null} place */
  sum(place) {
    if (place === null) return total(this.now.heads.flat());
    const [row, head] = place.split('.').map(Number);
    if (head === undefined) return total(this.now.heads[row]);
    return (this.off.has(place) ? this.before : this.now).heads[row][head];
  }

  /** The head that gives most; null where several give as much. */
  best() {
    const all = this.now.heads.flat();
    const place = all.indexOf(Math.max(...all));
    return all.indexOf(all[place], place + 1) < 0
      ? `${Math.floor(place / this.heads)}.${place % this.heads}`
      : null;
  }

  /** The head that gave most of what a patch gave; null where several gave as much. @param {number} patch @param {number} sign */
  strongestAt(patch, sign) {
    const values = Array.from(
      { length: this.rows * this.heads },
      (_, head) => sign * this.now.maps[head * this.patches + patch],
    );
    const most = Math.max(...values);
    const head = values.indexOf(most);
    if (!(most > 0) || values.indexOf(most, head + 1) >= 0) return null;
    return { place: `${Math.floor(head / this.heads)}.${head % this.heads}`, value: sign * most };
  }
}
