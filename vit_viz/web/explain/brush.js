// Taking patches away from the stage: which lie on a stroke, and how mouse and finger draw one; or choosing the query there.

import { attachFinger, isFinger } from '../../explorer/long_press.js';

/** @typedef {[number, number]} Cell row, col */

const FINE = 24; // rows or columns from which on the brush is three patches wide

/**
 * Every patch on the straight way between two, so that a fast stroke leaves no gaps; three patches wide on fine grids.
 * @param {Cell} from @param {Cell} to
 * @param {[number, number]} grid rows, cols
 */
export function stroke(from, to, [rows, cols]) {
  const steps = Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]), 1);
  const wide = Math.max(rows, cols) >= FINE ? 1 : 0;
  const patches = [];
  for (let i = 0; i <= steps; i += 1) {
    const row = Math.round(from[0] + ((to[0] - from[0]) * i) / steps);
    const col = Math.round(from[1] + ((to[1] - from[1]) * i) / steps);
    for (let r = Math.max(0, row - wide); r <= Math.min(rows - 1, row + wide); r += 1)
      for (let c = Math.max(0, col - wide); c <= Math.min(cols - 1, col + wide); c += 1)
        patches.push(r * cols + c);
  }
  return patches;
}

/**
 * What a pointer over the stage does.
 * @typedef {object} Pointer
 * @property {(event: PointerEvent) => Cell | null} cellAt null: outside of what the model received
 * @property {() => boolean} isChoosing whether it chooses the query
 * @property {(cell: Cell) => void} choose
 * @property {(from: Cell, to: Cell) => void} brush
 * @property {(event: PointerEvent | null) => void} read what is under it; null: nothing
 */

/**
 * Listens to mouse and fingers. A tap takes one patch, or puts it back; a finger that rests begins to brush; a swipe scrolls the page.
 * @param {SVGElement} element in the stage @param {() => Pointer} now
 */
export function listenToPointers(element, now) {
  /** @type {Cell | null} under the pointer a moment ago, while it is down */
  let last = null;
  const begin = (/** @type {PointerEvent} */ event) => {
    last = now().cellAt(event);
    if (last) now().brush(last, last);
  };
  const move = (/** @type {PointerEvent} */ event) => {
    const cell = last && now().cellAt(event);
    if (!last || !cell || (cell[0] === last[0] && cell[1] === last[1])) return;
    now().brush(last, cell);
    last = cell;
  };
  const end = () => void (last = null);
  const choose = (/** @type {PointerEvent} */ event) => {
    const cell = now().cellAt(event);
    if (cell) now().choose(cell);
  };
  attachFinger(element, {
    tap(event) {
      if (now().isChoosing()) return choose(event);
      begin(event);
      end();
    },
    begin: (event) => now().isChoosing() || begin(event),
    draw: move,
    end,
    cancel: end,
  });
  element.addEventListener('pointerdown', (event) => {
    if (isFinger(event) || event.button) return;
    if (now().isChoosing()) return choose(event);
    begin(event);
    if (!last) return;
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
    /** @type {HTMLElement} */ (element.parentElement).focus({ preventScroll: true });
  });
  element.addEventListener('pointermove', (event) => {
    if (isFinger(event)) return;
    move(event);
    now().read(last ? null : event);
  });
  element.addEventListener('pointerleave', () => now().read(null));
  for (const name of ['pointerup', 'pointercancel']) element.addEventListener(name, end);
}
