// What the Tokens tab has fetched of one picture in one model: vectors state by state, and the numbers of each measure.

import { fetched } from '../../ui/kit/elements.js';
import { readVectors } from '../../ui/kit/numbers.js';
/** @import { Vectors } from '../../ui/kit/numbers.js' */
/** @import { Photo } from '../../ui/kit/stage.js' */
/** @import { Ask, Tell } from '../kit/ask.js' */

/**
 * What the tokens are of: the answer to 'open'.
 * @typedef {{trace: string, prefix: string[], suffix: string[], grid: [number, number], about: any, view: string}} Of
 *
 * The answer to a question.
 * @typedef {{arrays: Record<string, {shape: number[], data: any}>, facts: any}} Answer
 *
 * @typedef {'tokens' | 'queries' | 'keys'} Role
 * @typedef {'components' | 'norms' | 'lens' | 'change' | 'layers' | 'segments' | 'register'} Kind
 * @typedef {Record<string, string | number | boolean>} Asked
 *
 * @typedef {{colours: string[], explained: number[][], overall: number[], second: (Photo & {colours: string[]}) | null, note: string}}
 *   Components second: another photo that shares the colours; note: why there is none
 * @typedef {object} Norms
 * @property {number[][]} values per state and patch
 * @property {Record<string, number[]>} others of the tokens that are no patches, per state
 * @property {number[]} thresholds norm above which a token is an outlier, per state
 * @property {number[][]} outliers patches, per state
 * @property {string[][]} named outliers that are no patches
 * @property {number[]} received share of the attention of each layer
 * @property {number[]} fair
 * @typedef {{values: number[][], unit: string, note: string, top?: number[][], top_probability?: number[][],
 *   words?: Record<string, string>, target?: string}} Lens target: what the class is called that the values are of
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

  /** @param {Of} of @param {Ask} ask */
  constructor(of, ask) {
    this.of = of;
    this.ask = ask;
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
    const { trace, prefix, suffix, grid } = this.of;
    const tokens = prefix.length + grid[0] * grid[1] + suffix.length;
    const kept = () => new Set(states.slice(0, this.most).map((state) => `${role}/${state}`));
    for (const [place, state] of states.entries()) {
      const key = `${role}/${state}`;
      if (this.vectors.has(key) || this.abort.signal.aborted) continue;
      if (place >= this.most) return;
      const path = `/vit_viz/tokens/${trace}/${state}?role=${role}`;
      const buffer = await this.once(path, async () =>
        (await fetched(path, this.abort.signal)).arrayBuffer(),
      );
      this.most = Math.max(1, Math.floor(MOST_BYTES / (2 * buffer.byteLength)));
      if (!this.vectors.has(key)) this.vectors.set(key, readVectors(buffer, tokens));
      const wanted = kept();
      for (const old of this.vectors.keys())
        if (this.vectors.size > this.most && !wanted.has(old)) this.vectors.delete(old);
      if (!arrived()) return;
    }
  }

  /** The numbers of a measure that are here. @param {Kind} kind @param {Asked} [asked] */
  known(kind, asked) {
    return this.numbers.get(keyOf(kind, asked));
  }

  /**
   * The numbers of a measure.
   * @param {Kind} kind @param {Asked} [asked] options of the question that are not as they are by themselves
   * @param {AbortSignal} [stop] @param {Tell} [tell] hears how far it is
   */
  async fetchNumbers(kind, asked = {}, stop = this.abort.signal, tell) {
    const key = keyOf(kind, asked);
    if (!this.numbers.has(key)) {
      const { question, read } = KINDS[kind];
      const { about, view } = this.of;
      const given = Object.entries(asked).filter(([, value]) => value !== '');
      const body = { ...(question === 'colours' ? { view } : about), ...Object.fromEntries(given) };
      this.numbers.set(key, read(await this.ask(question, body, stop, tell), this.of));
    }
    return this.numbers.get(key);
  }

  /** One request at a time for one thing. @param {string} key @param {() => Promise<any>} ask */
  once(key, ask) {
    const under = this.under.get(key) ?? ask().finally(() => this.under.delete(key));
    this.under.set(key, under);
    return under;
  }
}

/** What is asked, as one text. @param {Kind} kind @param {Asked} [asked] */
export function keyOf(kind, asked = {}) {
  return `${kind} ${JSON.stringify(asked)}`;
}

/** The parts of an array along its first axis. @param {{shape: number[], data: any}} array @returns {number[][]} */
function rows({ shape, data }) {
  const size = data.length / shape[0];
  return Array.from({ length: shape[0] }, (_, i) =>
    Array.from(data.subarray(i * size, (i + 1) * size), Number),
  );
}

/** One map per state, and a number per state for each token that is no patch. @param {Answer['arrays']} arrays @param {string} [under] */
function maps(arrays, under = '') {
  const named = `${under}named.`;
  const others = Object.entries(arrays).filter(([name]) => name.startsWith(named));
  return {
    values: rows(arrays[`${under}values`]),
    others: Object.fromEntries(others.map(([name, { data }]) => [name.slice(named.length), [...data]])),
  };
}

/** @param {Answer} answer @param {Of} of @param {string} [under] what its names begin with @param {number} [first] index of the first patch @returns {Norms} */
function readNorms({ arrays, facts }, { prefix, grid }, under = '', first = prefix.length) {
  const { values, others } = maps(arrays, `${under}maps.`);
  const of = (/** @type {string} */ name) => [...arrays[under + name].data];
  const thresholds = of('thresholds');
  return {
    ...{ values, others, thresholds, received: of('received'), fair: of('fair') },
    outliers: facts.outliers.map((/** @type {number[]} */ tokens) =>
      tokens.map((token) => token - first).filter((patch) => patch >= 0 && patch < grid[0] * grid[1]),
    ),
    named: thresholds.map((threshold, state) =>
      Object.keys(others).filter((name) => others[name][state] > threshold),
    ),
  };
}

/** @param {Answer} answer @returns {Lens} */
function readLens({ arrays, facts: { maps: facts, words } }) {
  const { top, top_probability: sure } = arrays;
  const told = { values: maps(arrays, 'maps.').values, unit: facts.unit, note: facts.note };
  return top ? { ...told, top: rows(top), top_probability: rows(sure), words } : told;
}

/** @param {Answer} answer @returns {Segments} */
function readSegments({ arrays: { labels, overlap }, facts: { method } }) {
  const numbers = Array.from(labels.data, Number);
  const shares = Array.from({ length: 1 + Math.max(...numbers) }, (_, segment) => {
    return numbers.filter((label) => label === segment).length / numbers.length;
  });
  return { labels: numbers, shares, overlap: overlap ? [...overlap.data] : null, method };
}

/** @param {Answer} answer @param {Of} of @returns {Register} */
function readRegister({ arrays, facts }, of) {
  const { before, after, outlier_patches: patches, state, name, neurons } = facts;
  const first = of.prefix.length;
  return {
    norms: [
      readNorms({ arrays, facts: before }, of, 'before.', first),
      readNorms({ arrays, facts: after }, of, 'after.', first + 1),
    ],
    attention: [[...arrays['attention.0.values'].data], [...arrays['attention.1.values'].data]],
    ...{ patches, state, name },
    neurons: neurons.map((/** @type {{layer: number, neuron: number}} */ one) => [one.layer, one.neuron]),
  };
}

/** The question of each kind of numbers, and how its answer is read; the page's own are read already. @type {Record<Kind, {question: string, read: (answer: any, of: Of) => any}>} */
const KINDS = {
  components: { question: 'colours', read: (told) => told },
  norms: { question: 'token_norms', read: readNorms },
  lens: { question: 'logit_lens', read: readLens },
  change: {
    question: 'token_change',
    read: ({ arrays, facts }) => ({ ...maps(arrays), unit: facts.unit }),
  },
  layers: {
    question: 'layer_similarity',
    read: ({ arrays, facts: { names, unit, note } }) => ({ matrix: rows(arrays.values), names, unit, note }),
  },
  segments: { question: 'segments', read: readSegments },
  register: { question: 'added_register', read: readRegister },
};
