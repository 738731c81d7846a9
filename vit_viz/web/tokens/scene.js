// What the Tokens tab shows at one link: of a subject, what is chosen, what there is of it, and what its questions say of it.

import { centreOf, queryTokens } from '../../explorer/geometry.js';
import { STRENGTHS, barPixels, layerTable, suited } from '../../explorer/styles.js';
import { QUESTIONS, outliersOf } from './questions.js';
/** @import { Style } from '../../explorer/styles.js' */
/** @import { Photo, Target } from '../kit/parts.js' */
/** @import { AnswerPiece, Held, Of, Piece, Role } from './held.js' */
/** @import { Plate } from './plate.js' */
/** @import { Drawing, Measure } from './questions.js' */

/**
 * @typedef {{token_measure: Measure, token_role: Role, token_state: number, token_scale: 'layer' | 'shared',
 *   token_foreground: boolean, token_whitened: boolean, token_second: string, token_factor: number,
 *   token_register: boolean, token_segment_role: Role, token_method: 'k-means' | 'cut',
 *   token_count: number, token_box: string, style: Style, alpha: number, smooth: boolean}} Options
 *
 * What the tokens are of: the answer to 'open', and what is chosen of it.
 * @typedef {Photo & Of & SubjectFacts} Subject
 * @typedef {object} SubjectFacts
 * @property {number} layers
 * @property {string} image its name
 * @property {string} query
 * @property {string} unlit why the photo cannot be lit; "" where it can
 * @property {Role[]} roles
 * @property {string} target index of the class of the lens; "" is the model's first
 * @property {Target | null} classes that the lens can be of; null while something else is shown, or until they are there
 * @property {{id: string, name: string}[]} pictures that can share the colours
 */

/** The questions, from the top of the table to its foot. */
export const MEASURES = /** @type {Measure[]} */ (Object.keys(QUESTIONS));

export class Scene {
  /** @param {Subject} subject @param {Options} options @param {Held} held @param {Uint32Array} colours */
  constructor(subject, options, held, colours) {
    this.subject = subject;
    const roleOf = (/** @type {Role} */ one) => (subject.roles.includes(one) ? one : 'tokens');
    /** What is chosen, as the model can show it. @type {Options} */
    this.options = {
      ...options,
      token_role: roleOf(options.token_role),
      token_segment_role: roleOf(options.token_segment_role),
    };
    this.held = held;
    this.colours = colours;
    const { grid, prefix, query, unlit } = subject;
    this.cols = grid[1];
    this.patches = grid[0] * grid[1];
    const asks = queryTokens(query, { ...subject, pooling: '' });
    /** Index of the token of the link. */
    this.pinned = Array.isArray(asks) && asks.length ? asks[0] : prefix.length + centreOf(grid);
    this.style = suited(options.style, unlit);
    this.layer = layerTable(this.style, options.alpha, colours);
    this.bar = barPixels(this.style, colours);
    const { token_measure: measure, token_state: state } = this.options;
    this.measure = measure;
    const { length } = this.namesOf(measure);
    /** The state that is over the photo. */
    this.state = state >= 0 && state < length ? state : Math.floor((2 * length) / 3);
  }

  /** The column of the table that is the large photo. */
  get column() {
    return this.state + offsetOf(this.measure, this.options);
  }

  /** The names of the states of a question. @param {Measure} measure */
  namesOf(measure) {
    const all = Array.from({ length: this.subject.layers }, (_, i) => i);
    const { role, isPerLayer } = QUESTIONS[measure];
    if (measure === 'layers' || role(this.options) !== 'tokens') return all.map((i) => `layer ${i}`);
    return [...(isPerLayer ? [] : ['input']), ...all.map((i) => `after layer ${i}`)];
  }

  /** Index of the token that all others are compared with: the one under the pointer, or that of the link. */
  get token() {
    const pointed = this.held.pointed.value;
    return pointed === null ? this.pinned : this.subject.prefix.length + pointed;
  }

  /** That token as a patch; undefined where it is none. */
  get patch() {
    return this.patchOf(this.token);
  }

  /** That token by its name; undefined where it is a patch. */
  get named() {
    const { prefix, suffix } = this.subject;
    return this.token < prefix.length
      ? prefix[this.token]
      : suffix[this.token - prefix.length - this.patches];
  }

  /** A token as a patch; undefined where it is none. @param {number} token */
  patchOf(token) {
    const patch = token - this.subject.prefix.length;
    return patch >= 0 && patch < this.patches ? patch : undefined;
  }

  /** The rows that are answered: the chosen one first, none that is folded. @param {Set<Measure>} folded */
  order(folded) {
    return [this.measure, ...MEASURES.filter((one) => one !== this.measure && !folded.has(one))];
  }

  /**
   * What is to be fetched now: of the first row that lacks something, and has not failed.
   * @param {Set<Measure>} folded @param {number[]} seen columns of the table
   * @returns {{row: Measure, piece: Piece, wanted: Piece[]} | null}
   */
  next(folded, seen) {
    const { held } = this;
    for (const row of this.order(folded)) {
      if (held.errorOf(row)) continue;
      const all = this.statesOf(row, seen).map((state) => QUESTIONS[row].piece(this, state));
      const wanted = 'role' in all[0] ? all.slice(0, held.most) : all;
      const piece = wanted.find((one) => !held.known(one));
      if (piece) return { row, piece, wanted };
    }
    return null;
  }

  /** The states of a question: the large one, then those that the table shows, then the others. @param {Measure} measure @param {number[]} seen */
  statesOf(measure, seen) {
    const all = [...this.namesOf(measure).keys()];
    const looked = [this.column, ...seen].map((column) => column - offsetOf(measure, this.options));
    return [...new Set([...looked.filter((state) => all.includes(state)), ...all])];
  }

  /** What there is of a photo, where it is here. @param {Measure} measure @param {number} state */
  told(measure, state) {
    const { told, piece } = QUESTIONS[measure];
    return told ? told(this, state) : this.held.known(piece(this, state));
  }

  /**
   * What a question says of a photo; '' until it is here.
   * @param {'title' | 'readout' | 'words'} how @param {Measure} [measure] @param {number} [state]
   */
  say(how, measure = this.measure, state = this.state) {
    const told = this.told(measure, state);
    return told ? (QUESTIONS[measure][how]?.(told, this, state) ?? '') : '';
  }

  /** What a photo depends on; "" until it is here. @param {Measure} measure @param {number} state */
  keyOf(measure, state) {
    const { key, piece } = QUESTIONS[measure];
    const { alpha, smooth, token_scale: scale } = this.options;
    const one = piece(this, state);
    if (!this.held.known(one)) return '';
    return [one.key, state, scale, key?.(this), this.subject.photo, this.style, alpha, smooth].join('|');
  }

  /** What lies over a photo; null until it is here. @param {Measure} [measure] @param {number} [state] @param {boolean} [isLarge] @returns {Drawing | null} */
  drawing(measure = this.measure, state = this.state, isLarge = true) {
    const told = this.told(measure, state);
    return told ? QUESTIONS[measure].draw(told, this, state, isLarge) : null;
  }

  /** What the chosen row needs beside its photos, which takes a while. */
  get more() {
    return QUESTIONS[this.measure].more?.(this) ?? null;
  }

  /** The patches of the large photo that stand out. */
  outliers() {
    const told = this.measure === 'norms' && this.told('norms', this.state);
    return told ? outliersOf(this, told.facts, this.state) : [];
  }

  /** Draws one photo at any size. @param {HTMLCanvasElement} canvas @param {Plate} plate @param {Drawing} drawing */
  drawOn(canvas, plate, drawing) {
    const { map } = this.held;
    const { smooth } = this.options;
    if ('pixels' in drawing) {
      map.set(drawing.pixels);
      plate.draw(canvas, map.canvas, drawing.how, smooth && drawing.how === 'colours');
    } else {
      map.paint(drawing.values, this.layer, drawing.range);
      plate.draw(canvas, map.canvas, this.style, smooth);
    }
  }

  /** The question of the chosen row, and its body. @returns {import('../../explorer/source.js').Saved} */
  get saved() {
    const { saved, more, piece } = QUESTIONS[this.measure];
    const own = /** @type {AnswerPiece} */ (saved?.(this) ?? more?.(this)?.piece ?? piece(this, this.state));
    return [own.question, { ...this.subject.about, ...own.options }];
  }
}

/** The columns before a question's first photo. @param {Measure} measure @param {Options} options */
export function offsetOf(measure, options) {
  const { isPerLayer, role } = QUESTIONS[measure];
  return isPerLayer || role(options) !== 'tokens' ? 1 : 0;
}

/** What is chosen with a choice: another style has its own strength, and another question keeps the column. @param {Scene} scene @param {Partial<Options>} chosen */
export function withChoice({ options, column }, chosen) {
  const all = { ...chosen };
  if (chosen.style) all.alpha = STRENGTHS[chosen.style];
  const asksOther = 'token_measure' in chosen || 'token_role' in chosen || 'token_segment_role' in chosen;
  if (asksOther && !('token_state' in chosen)) {
    const next = { ...options, ...chosen };
    all.token_state = Math.max(0, column - offsetOf(next.token_measure, next));
  }
  return all;
}
