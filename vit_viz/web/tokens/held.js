// What there is of the tokens of one photo in one model: vectors state by state, the answers to questions, and what is pointed at.

import { Picture, measure as timed } from '../../explorer/paint.js';
import { signal } from '../kit/preact.js';
/** @import { Vectors } from '../../ui/kit/numbers.js' */
/** @import { Ask, Source, Tell } from '../kit/ask.js' */
/** @import { Signal } from '../kit/preact.js' */

/**
 * What the tokens are of: the answer to 'open'.
 * @typedef {{trace: string, prefix: string[], suffix: string[], grid: [number, number], about: any, view: string}} Of
 *
 * @typedef {'tokens' | 'queries' | 'keys'} Role
 * @typedef {{arrays: Record<string, {shape: number[], data: any}>, facts: any}} Answer to a question
 *
 * A part of what a photo needs, with a text that says which: vectors of a state, or the answer to a question that is asked with options.
 * @typedef {{key: string, role: Role, state: number}} VectorsPiece
 * @typedef {{key: string, question: string, options: Record<string, string | number | boolean>}} AnswerPiece
 * @typedef {VectorsPiece | AnswerPiece} Piece
 */

/** Most bytes of vectors that are kept here, as 32-bit numbers. */
export const MOST_BYTES = 64 * 2 ** 20;

/** Fetches each thing once; another photo has another one. */
export class Held {
  /** @type {Signal<number | null>} the patch under the pointer */ pointed = signal(null);
  /** @type {Signal<number | null>} the segment that is pointed at in the legend */ lit = signal(null);
  drawing = signal(''); // the box that is being drawn
  arrived = signal(0); // counts what was fetched, and what failed

  /** @type {Map<string, Vectors>} what was fetched first before */ vectors = new Map();
  /** @type {Map<string, any>} */ answers = new Map();
  /** @type {Map<string, string>} why a row has nothing to show */ errors = new Map();
  /** @type {Map<string, {token: number, values: Float32Array, range: [number, number]}>} cosines, by role and state */ alike =
    new Map();
  /** @type {Set<string>} what is on its way */ under = new Set();
  most = Infinity; // states that there is room for, once it is known how large one is
  end = new AbortController();
  /** @type {number | null} the patch that is pointed at from the next frame on */ at = null;
  frame = 0;

  /** @param {Of} of @param {Ask} ask @param {Pick<Source, 'vectors'>} source */
  constructor(of, ask, source) {
    this.of = of;
    this.source = source;
    this.ask = ask;
    this.map = new Picture(undefined, of.grid[1], of.grid[0]); // one pixel per patch, of whatever is being drawn
  }

  /** The pointer is over a patch, or over none; that is answered once per frame. @param {number | null} patch */
  point(patch) {
    if (patch === this.at) return;
    this.at = patch;
    this.frame ||= requestAnimationFrame(() => {
      const start = performance.now();
      this.frame = 0;
      this.pointed.value = this.at;
      void Promise.resolve().then(() => timed('vit_viz:tokens', start)); // after the components
    });
  }

  /** Nothing is pointed at any more, at once. */
  leave() {
    this.at = this.pointed.value = null;
  }

  /** Vectors or an answer, where they are here. @param {Piece} piece @returns {any} */
  known({ key }) {
    void this.arrived.value;
    return this.answers.get(key) ?? this.vectors.get(key);
  }

  /** Why a row has nothing to show; '' where nothing failed. @param {string} row */
  errorOf(row) {
    void this.arrived.value;
    return this.errors.get(row) ?? '';
  }

  /** A row is tried again, if it failed. @param {string} row */
  forgive(row) {
    if (this.errors.delete(row)) this.arrived.value += 1;
  }

  /** Something was fetched for a row, or failed. @param {string} row @param {string} [error] why */
  settle(row, error) {
    if (error) this.errors.set(row, error);
    this.arrived.value += 1;
  }

  /** Fetches a piece for a row, unless it is on its way. @param {string} row @param {Piece} piece @param {Piece[]} wanted pieces, the most wanted first */
  async fetch(row, piece, wanted) {
    if (this.under.has(piece.key)) return;
    this.under.add(piece.key);
    const error = await ('role' in piece ? this.fetchVectors(piece, wanted) : this.fetchAnswer(piece)).then(
      () => '',
      ({ message }) => message,
    );
    this.under.delete(piece.key);
    this.settle(row, error);
  }

  /** Those that are not wanted make room. @param {VectorsPiece} piece @param {Piece[]} wanted */
  async fetchVectors({ key, role, state }, wanted) {
    const { trace, prefix, suffix, grid } = this.of;
    const tokens = prefix.length + grid[0] * grid[1] + suffix.length;
    const vectors = await this.source.vectors(trace, state, role, tokens, this.end.signal);
    this.vectors.set(key, vectors);
    this.most = Math.max(1, Math.floor(MOST_BYTES / vectors.data.byteLength));
    const kept = wanted.slice(0, this.most).map((one) => one.key);
    for (const old of this.vectors.keys())
      if (this.vectors.size > this.most && !kept.includes(old)) this.vectors.delete(old);
  }

  /** @param {AnswerPiece} piece @param {AbortSignal} [stop] @param {Tell} [tell] hears how far it is */
  async fetchAnswer({ key, question, options }, stop = this.end.signal, tell) {
    const { second = '', ...given } = Object.fromEntries(
      Object.entries(options).filter(([, value]) => value !== ''),
    );
    const body = { ...this.of.about, ...given };
    const alone = () => this.ask(question, body, stop, tell);
    this.answers.set(key, await (second ? this.askOfTwo(question, body, String(second), stop) : alone()));
  }

  /**
   * Asks about two photos, and where the second lies; where that is not to be had, about the first alone, with a note that says so.
   * @param {string} question @param {any} body @param {string} second @param {AbortSignal} stop
   */
  async askOfTwo(question, body, second, stop) {
    const link = new URLSearchParams(this.of.view);
    link.set('image', second);
    link.delete('part');
    try {
      const answer = this.ask(question, { ...body, second }, stop);
      const [told, place] = await Promise.all([answer, this.ask('open', { view: link.toString() }, stop)]);
      return { ...told, second: place };
    } catch (error) {
      if (stop.aborted) throw error;
      const note = /** @type {Error} */ (error).message;
      return { ...(await this.ask(question, body, stop)), note };
    }
  }
}

/** A question with the options that are not as they are by themselves. @param {string} question @param {AnswerPiece['options']} [options] @returns {AnswerPiece} */
export function asking(question, options = {}) {
  return { key: `${question} ${JSON.stringify(options)}`, question, options };
}
