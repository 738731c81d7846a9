// Taking patches away from the stage by mouse, finger and keys; or choosing the query there, where the map follows one.

import { ARROWS } from '../../explorer/elements.js';
import { attachFinger, isFinger } from '../../explorer/long_press.js';
/** @import { Stage } from './stage.js' */

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

/** One stroke of the brush, from where the pointer went down. */
class Stroke {
  /** @type {Cell | null} patch under the pointer a moment ago, while it is down */ last = null;

  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
  }

  /** Returns whether a patch is under the pointer. */
  begin(/** @type {PointerEvent} */ event) {
    const patch = this.stage.patchAt(event);
    if (!patch) return false;
    this.stage.cursor = null;
    this.stage.brush(patch, patch);
    this.last = patch;
    return true;
  }

  move(/** @type {PointerEvent} */ event) {
    const patch = this.last && this.stage.patchAt(event);
    if (!this.last || !patch || (patch[0] === this.last[0] && patch[1] === this.last[1])) return;
    this.stage.brush(this.last, patch);
    this.last = patch;
  }

  end() {
    this.last = null;
  }
}

/** Chooses the patch under a pointer as the query. */
function pick(/** @type {Stage} */ stage, /** @type {PointerEvent} */ event) {
  const patch = stage.patchAt(event);
  if (stage.photo && patch) stage.actions.pick(stage.photo, patch[0] * stage.photo.grid[1] + patch[1]);
}

export function listenToMouse(/** @type {Stage} */ stage) {
  const marks = stage.find('play-marks');
  const brush = new Stroke(stage);
  marks.addEventListener('pointerdown', (event) => {
    if (isFinger(event) || event.button) return;
    if (stage.tool === 'choose') return pick(stage, event);
    if (!brush.begin(event)) return;
    marks.setPointerCapture(event.pointerId);
    event.preventDefault();
    stage.find('play-stage').focus({ preventScroll: true });
  });
  marks.addEventListener('pointermove', (event) => {
    if (isFinger(event)) return;
    brush.move(event);
    stage.read(brush.last ? null : event);
  });
  marks.addEventListener('pointerleave', () => stage.read(null));
  for (const name of ['pointerup', 'pointercancel']) marks.addEventListener(name, () => brush.end());
}

/** A tap takes one patch, or puts it back; a finger that rests begins to brush; a swipe scrolls the page. */
export function listenToFingers(/** @type {Stage} */ stage) {
  const brush = new Stroke(stage);
  attachFinger(stage.find('play-marks'), {
    tap: (event) => {
      if (stage.tool === 'choose') return pick(stage, event);
      brush.begin(event);
      return brush.end();
    },
    begin: (event) => void (stage.tool !== 'choose' && brush.begin(event)),
    draw: (event) => brush.move(event),
    end: () => brush.end(),
    cancel: () => brush.end(),
  });
}

export function listenToKeys(/** @type {Stage} */ stage) {
  const element = stage.find('play-stage');
  element.addEventListener('keydown', (event) => {
    const step = ARROWS[event.key];
    if (!stage.photo || (!step && event.key !== ' ')) return;
    event.preventDefault();
    if (stage.tool !== 'choose') stage.moveCursor(step);
    else if (step) stage.actions.move(stage.photo, step);
  });
  element.addEventListener('blur', () => {
    stage.cursor = null;
    stage.paint();
  });
}
