// "Look closer": a rectangle drawn on the photo, by mouse, finger or keys, becomes the picture.

import { ARROWS } from './elements.js';
import { clamp, placeIn, pointerIn } from './geometry.js';
import { setText } from './labels.js';
import { placePhoto } from './layout.js';
/** @import { Trace } from './geometry.js' */
/** @import { Explorer } from './explorer.js' */

/**
 * A rectangle as shares of a picture's height and width: top, left, bottom, right.
 * @typedef {[number, number, number, number]} Shares
 *
 * @typedef {object} Base what is on the stage, in pixels of the original photo
 * @property {[number, number]} corner top and left of the picture on the stage
 * @property {[number, number]} size its height and width
 */

/** Pixels of the original on each side of a part, as the server asks for them (vit_viz/images/part.py). */
export const MIN_SIDE = 32;

const HINT =
  'Draw a rectangle on the photo. With keys: arrows move it, Shift and arrows change its size, Enter looks closer, Escape cancels.';
const KEY_STEP = 0.05;

/** The rectangle between two points, each (down, across) in shares, cut off at the edges. @returns {Shares} */
export function between(/** @type {number[]} */ one, /** @type {number[]} */ other) {
  const ends = (/** @type {0 | 1} */ axis) =>
    [one[axis], other[axis]].map((share) => clamp(share)).sort((a, b) => a - b);
  const [[top, bottom], [left, right]] = [ends(0), ends(1)];
  return [top, left, bottom, right];
}

/**
 * A rectangle in whole pixels of the original photo, as links write it; null where it is too small.
 * @param {Shares} shares @param {Base} base
 */
export function partText([top, left, bottom, right], { corner, size }) {
  const [first, last] = [
    [Math.round(top * size[0]), Math.round(left * size[1])],
    [Math.round(bottom * size[0]), Math.round(right * size[1])],
  ];
  const sides = [last[0] - first[0], last[1] - first[1]];
  if (Math.min(...sides) < MIN_SIDE) return null;
  return [corner[0] + first[0], corner[1] + first[1], ...sides].join(',');
}

/** A rectangle moved, or made larger or smaller at its bottom and right. @returns {Shares} */
export function steppedShares(
  /** @type {Shares} */ [top, left, bottom, right],
  /** @type {[number, number]} */ [down, across],
  /** @type {boolean} */ resize,
) {
  const [y, x] = [down * KEY_STEP, across * KEY_STEP];
  if (resize) return [top, left, clamp(bottom + y, 1, top + KEY_STEP), clamp(right + x, 1, left + KEY_STEP)];
  const [moveY, moveX] = [clamp(y, 1 - bottom, -top), clamp(x, 1 - right, -left)];
  return [top + moveY, left + moveX, bottom + moveY, right + moveX];
}

/** Draws a part on a stage while it is switched on; then nothing else hears of pointer and keys there. */
export class Closer {
  /** @type {Shares | null} */ shares = null;
  /** @type {number[] | null} */ from = null;
  active = false;

  /** @param {Explorer} explorer */
  constructor(explorer) {
    const { stage, cut } = explorer.parts;
    this.explorer = explorer;
    this.stage = stage;
    this.frame = cut; // shows the rectangle
    const hears = (/** @type {string} */ name, /** @type {(event: any) => void} */ hear) =>
      stage.addEventListener(name, (event) => this.active && this.take(event, hear), { capture: true });
    hears('pointerdown', (event) => this.begin(event));
    hears('pointermove', (event) => this.extend(event));
    hears('pointerup', (event) => this.end(event));
    hears('pointercancel', () => this.drop());
    hears('pointerleave', () => {});
    hears('click', () => {});
    hears('keydown', (event) => this.key(event));
  }

  /** @param {Event} event @param {(event: any) => void} hear */
  take(event, hear) {
    if (/** @type {KeyboardEvent} */ (event).key === 'Tab') return;
    event.stopImmediatePropagation();
    event.preventDefault();
    hear(event);
  }

  toggle() {
    if (this.active) return this.stop('');
    if (!this.explorer.trace) return;
    this.active = true;
    this.shares = null;
    this.show();
    this.stage.focus({ preventScroll: true });
    this.say(HINT);
  }

  /** @param {string} text said instead of the hint */
  stop(text) {
    if (!this.active) return;
    this.active = false;
    this.drop();
    this.say(text);
  }

  /** What to do next, or why not. @param {string} text */
  say(text) {
    const { hint, closer } = this.explorer.parts;
    closer.setAttribute('aria-pressed', String(this.active));
    setText(hint, text);
  }

  drop() {
    this.from = null;
    this.shares = null;
    this.show();
  }

  /** @param {PointerEvent} event */
  begin(event) {
    if (event.button !== 0) return;
    this.stage.setPointerCapture(event.pointerId);
    this.from = pointerIn(event, this.stage);
  }

  /** @param {PointerEvent} event */
  extend(event) {
    if (!this.from) return;
    this.shares = between(this.from, pointerIn(event, this.stage));
    this.show();
  }

  /** @param {PointerEvent} event */
  end(event) {
    if (!this.from) return;
    this.extend(event);
    this.from = null;
    this.choose();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = ARROWS[event.key];
    if (step) {
      this.shares = this.shares ? steppedShares(this.shares, step, event.shiftKey) : [0.25, 0.25, 0.75, 0.75];
      this.show();
    } else if (event.key === 'Enter') this.choose();
    else if (event.key === 'Escape') this.stop('');
  }

  /** The rectangle becomes the picture, unless it is too small. */
  choose() {
    const { trace } = this.explorer;
    if (!trace || !this.shares) return;
    const part = partText(this.shares, baseOf(trace));
    if (part === null) {
      this.drop();
      this.say(`A part has at least ${MIN_SIDE} x ${MIN_SIDE} pixels of the photo; draw a larger rectangle.`);
      return;
    }
    this.stop('');
    this.explorer.host.closer(part);
  }

  /** Shows the rectangle, and the rest of the photo dimmed. */
  show() {
    this.stage.toggleAttribute('data-drawing', this.active);
    this.frame.hidden = !this.shares;
    if (!this.shares) return;
    Object.assign(this.frame.style, placeIn(this.shares, [0, 0, 1, 1]));
  }
}

/** Where the picture on the stage lies in the original photo. @param {Trace} trace @returns {Base} */
export function baseOf({ crop, part, whole }) {
  const numbers = part && crop !== whole?.crop ? part.split(',').map(Number) : [0, 0];
  return { corner: [numbers[0], numbers[1]], size: crop.original };
}

/**
 * The trace of a part as it lies on the whole photo, or as it is; the numbers are the same.
 * @param {Trace} trace @param {boolean} onWhole @returns {Trace}
 */
export function placed(trace, onWhole) {
  const { whole } = trace;
  if (!whole) return trace;
  const { crop, photo, photo_size: size } = onWhole ? whole : (trace.alone ?? trace);
  const alone = trace.alone ?? { crop: trace.crop, photo: trace.photo, photo_size: trace.photo_size };
  return { ...trace, crop, photo, photo_size: size, alone };
}

/** Puts the map where it lies: on the picture, or where that is a part, on the whole photo if that is wanted. */
export function place(/** @type {Explorer} */ explorer) {
  const { parts } = explorer;
  if (!explorer.trace) return;
  const trace = placed(explorer.trace, /** @type {HTMLInputElement} */ (parts.onwhole).checked);
  explorer.trace = trace;
  if (explorer.frame) explorer.frame.trace = trace;
  parts.root.toggleAttribute('data-part', Boolean(trace.part));
  /** @type {HTMLImageElement} */ (parts.photo).src = explorer.source.photo(trace.photo);
  placePhoto(parts, trace);
  explorer.fit();
}

/**
 * Lets an explorer draw a part, go back to the whole, and show a part's map where it lies on the whole photo.
 * @param {Explorer} explorer
 */
export function attachCloser(explorer) {
  const { parts } = explorer;
  const closer = new Closer(explorer);
  const onWhole = /** @type {HTMLInputElement} */ (parts.onwhole);
  parts.closer.addEventListener('click', () => closer.toggle());
  parts.whole.addEventListener('click', () => explorer.host.closer(''));
  onWhole.addEventListener('change', () => place(explorer));
  for (const control of [parts.closer, parts.whole])
    control.addEventListener('keydown', (event) => event.key === 'Escape' && closer.stop(''));
  return closer;
}
