// What the Tokens tab has fetched of one picture in one model: vectors state by state, and the numbers of each measure.

import { fetched, showText } from '../kit/elements.js';
import { readVectors } from '../kit/numbers.js';

/**
 * @typedef {import('../kit/numbers.js').Vectors} Vectors
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
 * @typedef {object} Lens
 * @property {number[][]} values
 * @property {string} unit
 * @property {string} title
 * @property {string} target the class that the maps are of; "" without classes
 * @property {string} note
 * @property {number[][]} [top]
 * @property {number[][]} [top_probability]
 * @property {Record<string, string>} [words]
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

/** Fetches each thing once; a newer picture has a store of its own. */
export class Store {
  /** @param {string} handle @param {number} tokens */
  constructor(handle, tokens) {
    this.handle = handle;
    this.tokens = tokens;
    this.abort = new AbortController();
    /** @type {Map<Role, (Vectors | undefined)[]>} */
    this.vectors = new Map();
    /** @type {Map<string, any>} */
    this.numbers = new Map();
    /** @type {Map<string, Promise<any>>} */
    this.under = new Map();
  }

  /** The vectors of a role that are here, by state. */
  have(/** @type {Role} */ role) {
    return this.vectors.get(role) ?? [];
  }

  /**
   * Fetches the vectors of all states of a role, one after the other, the chosen one first.
   * @param {Role} role
   * @param {number[]} order
   * @param {() => void} arrived
   */
  async fetchVectors(role, order, arrived) {
    const known = this.vectors.get(role) ?? [];
    this.vectors.set(role, known);
    for (const state of order) {
      if (known[state] || this.abort.signal.aborted) continue;
      const path = `/vit_viz/tokens/${this.handle}/${state}?role=${role}`;
      const buffer = await this.once(path, async () =>
        (await fetched(path, this.abort.signal)).arrayBuffer(),
      );
      known[state] ??= readVectors(buffer, this.tokens);
      arrived();
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

  drop() {
    this.abort.abort();
  }
}

/**
 * @typedef {import('../kit/elements.js').Trigger} Trigger
 * @typedef {{key: string, share?: number, done?: boolean, error?: string}} Job
 */

/** At most one job: a newer one takes its place. */
export class Jobs {
  /** @param {HTMLElement} element @param {Trigger} trigger */
  constructor(element, trigger) {
    this.element = element;
    this.trigger = trigger;
    this.bar = /** @type {HTMLProgressElement} */ (element.querySelector('progress'));
    this.words = /** @type {HTMLElement} */ (element.querySelector('.vv-room-job-words'));
    /** @type {{key: string, words: string, done: () => void, failed: (error: Error) => void} | null} */
    this.waiting = null;
    element.querySelector('button')?.addEventListener('click', () => this.stop());
  }

  /**
   * Resolves once the server has the numbers.
   * @param {string} key where they can be fetched then
   * @param {string} words what is computed
   * @param {string} kind
   * @param {import('./store.js').Asked} options
   * @returns {Promise<void>}
   */
  compute(key, words, kind, options) {
    this.end(new Error('Something else was asked for.'));
    return new Promise((done, failed) => {
      this.waiting = { key, words, done, failed };
      this.show(0);
      this.trigger('compute', { key, kind, options });
    });
  }

  /** What the server said of a job. */
  hear(/** @type {Job | null} */ job) {
    if (!job || !this.waiting || job.key !== this.waiting.key) return;
    if (job.error) this.end(new Error(job.error));
    else if (job.done) this.end(null);
    else this.show(job.share ?? 0);
  }

  show(/** @type {number} */ share) {
    this.element.hidden = false;
    if (share > 0) this.bar.value = share;
    else this.bar.removeAttribute('value');
    showText(
      this.words,
      share > 0 ? `${this.waiting?.words} ${Math.round(100 * share)}%` : this.waiting?.words,
    );
  }

  stop() {
    this.trigger('stop', {});
    this.end(new Error('This was stopped; nothing of it was kept.'));
  }

  end(/** @type {Error | null} */ error) {
    const waiting = this.waiting;
    this.waiting = null;
    this.element.hidden = true;
    if (waiting && error) waiting.failed(error);
    else waiting?.done();
  }
}
