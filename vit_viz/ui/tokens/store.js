// What the Tokens tab has fetched of one picture in one model: vectors state by state, and the numbers of each measure.

import { fetched } from '../kit/elements.js';
import { readVectors } from '../kit/numbers.js';
/** @import { Vectors } from '../kit/numbers.js' */

/**
 * @typedef {'tokens' | 'queries' | 'keys'} Role
 * @typedef {'components' | 'norms' | 'lens' | 'change' | 'layers' | 'segments' | 'register'} Kind
 * @typedef {Record<string, string | number | boolean>} Asked
 *
 * @typedef {{colours: string[], second: string[] | null, explained: number[][], overall: number[]}} Components
 * @typedef {object} Norms
 * @property {number[][]} values per state and patch
 * @property {Record<string, number[]>} others of the tokens that are no patches, per state
 * @property {number[]} thresholds norm above which a token is an outlier, per state
 * @property {number[][]} outliers patches, per state
 * @property {string[][]} named outliers that are no patches
 * @property {number[]} received share of the attention of each layer
 * @property {number[]} fair
 * @typedef {{values: number[][], unit: string, title: string, target: string, note: string, top?: number[][],
 *   top_probability?: number[][], words?: Record<string, string>}}
 *   Lens target: the class that the maps are of; "" without classes
 * @typedef {{values: number[][], others: Record<string, number[]>, unit: string}} Change
 * @typedef {{matrix: number[][], names: string[], unit: string, note: string}} Layers
 * @typedef {{labels: number[], shares: number[], overlap: number[] | null, method: string}} Segments
 * @typedef {object} Register
 * @property {[Norms, Norms]} norms before and after
 * @property {[number[], number[]]} attention
 * @property {[number, number]} patches how many are outliers, before and after
 * @property {number} state in which outliers were looked for
 * @property {string} name of the added token
 * @property {[number, number][]} neurons layer and index
 */

/** Most bytes of vectors that are kept here, as 32-bit numbers. */
export const MOST_BYTES = 64 * 2 ** 20;

/** Fetches each thing once; a newer picture has a store of its own. */
export class Store {
  abort = new AbortController();
  /** @type {Map<string, Vectors>} by role and state, what was fetched first before */ vectors = new Map();
  /** @type {Map<string, any>} */ numbers = new Map();
  /** @type {Map<string, Promise<any>>} */ under = new Map();

  most = Infinity; // states that there is room for, once it is known how large one is

  /** @param {string} handle @param {number} tokens */
  constructor(handle, tokens) {
    this.handle = handle;
    this.tokens = tokens;
  }

  /** The vectors of a state, where they are here. @param {Role} role @param {number} state */
  vectorsOf(role, state) {
    return this.vectors.get(`${role}/${state}`);
  }

  /**
   * Fetches the vectors of states, one after the other, as many as there is room for; those of other roles and states make room.
   * @param {Role} role @param {number[]} states the most wanted first @param {() => boolean} arrived whether to go on
   */
  async fetchVectors(role, states, arrived) {
    const kept = () => new Set(states.slice(0, this.most).map((state) => `${role}/${state}`));
    for (const [place, state] of states.entries()) {
      const key = `${role}/${state}`;
      if (this.vectors.has(key) || this.abort.signal.aborted) continue;
      if (place >= this.most) return;
      const path = `/vit_viz/tokens/${this.handle}/${state}?role=${role}`;
      const buffer = await this.once(path, async () =>
        (await fetched(path, this.abort.signal)).arrayBuffer(),
      );
      this.most = Math.max(1, Math.floor(MOST_BYTES / (2 * buffer.byteLength)));
      if (!this.vectors.has(key)) this.vectors.set(key, readVectors(buffer, this.tokens));
      const wanted = kept();
      for (const old of this.vectors.keys())
        if (this.vectors.size > this.most && !wanted.has(old)) this.vectors.delete(old);
      if (!arrived()) return;
    }
  }

  /** Where the numbers of a measure are. @param {Kind} kind @param {Asked} asked */
  pathOf(kind, asked = {}) {
    const given = Object.entries(asked).filter(([, value]) => value !== '');
    const words = given.map(([name, value]) => `&${name}=${encodeURIComponent(String(value))}`);
    return `/vit_viz/token_numbers/${this.handle}?kind=${kind}${words.join('')}`;
  }

  /** The numbers of a measure that are here. @param {Kind} kind @param {Asked} [asked] */
  known(kind, asked) {
    return this.numbers.get(this.pathOf(kind, asked));
  }

  /** The numbers of a measure. @param {Kind} kind @param {Asked} [asked] */
  async fetchNumbers(kind, asked) {
    const path = this.pathOf(kind, asked);
    if (!this.numbers.has(path)) {
      const told = await this.once(path, async () => (await fetched(path, this.abort.signal)).json());
      this.numbers.set(path, told);
    }
    return this.numbers.get(path);
  }

  /** One request at a time for one address. @param {string} path @param {() => Promise<any>} ask */
  once(path, ask) {
    const under = this.under.get(path) ?? ask().finally(() => this.under.delete(path));
    this.under.set(path, under);
    return under;
  }
}
