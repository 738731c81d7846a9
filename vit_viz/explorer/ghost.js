// Before anybody has done anything: a ring that visits patches of a sample, as a pointer would, to show what pointing does. It does so
// once a visit.

import { patchQuery, placeIn } from './geometry.js';
/** @import { Explorer } from './explorer.js' */
/** @import { Trace } from './geometry.js' */

export const STAY = 2000; // milliseconds at each patch, and before the first at the pinned query

const SEEN = 'vit_viz-ghost'; // in the storage of the visit

const INPUTS = ['pointerdown', 'pointermove', 'keydown', 'touchstart', 'wheel', 'scroll'];

/**
 * Sends the ghost on its tour of a sample, unless motion is unwelcome, the visitor has acted or has seen it; the first input ends it.
 * @param {Explorer} explorer
 * @param {boolean} isFirst whether this is the first picture of the visit, and no link named a query
 */
export function startTour(explorer, isFirst) {
  const { trace } = explorer;
  const hasActed = navigator.userActivation?.hasBeenActive ?? false;
  if (!isFirst || !trace?.tour?.length || hasActed) return null;
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return null;
  try {
    if (sessionStorage.getItem(SEEN)) return null;
    sessionStorage.setItem(SEEN, 'yes');
  } catch {
    // a browser that keeps nothing shows it again
  }
  return new Ghost(explorer, trace);
}

export class Ghost {
  timer = 0;

  /** @param {Explorer} explorer @param {Trace} trace */
  constructor(explorer, trace) {
    this.explorer = explorer;
    this.ring = explorer.parts.ghost;
    this.trace = trace;
    this.tour = trace.tour ?? [];
    this.next = 0; // place in the tour
    this.input = (/** @type {Event} */ event) => this.acted(event);
    this.watch = () => this.wait();
    for (const name of INPUTS) window.addEventListener(name, this.input, { capture: true, passive: true });
    document.addEventListener('visibilitychange', this.watch);
    this.wait();
  }

  /** Goes on after a while; in a tab that nobody sees it waits until somebody does. */
  wait() {
    clearTimeout(this.timer);
    if (!document.hidden) this.timer = window.setTimeout(() => this.step(), STAY);
  }

  step() {
    if (this.explorer.parts.stage.matches(':hover')) return this.stop(); // a browser tells nobody of a pointer that rests
    const patch = this.tour[this.next++];
    if (patch === undefined) return this.stop();
    this.ring.hidden = false;
    this.visit(patch);
    this.wait();
  }

  visit(/** @type {number} */ patch) {
    const [rows, cols] = this.trace.grid;
    const [row, col] = [Math.floor(patch / cols), patch % cols];
    Object.assign(this.ring.style, placeIn([row, col, row + 1, col + 1], [0, 0, rows, cols]));
    this.explorer.preview(patchQuery([patch], cols));
  }

  /** What a browser tells of a mouse that rests while the page moves under it is no input. */
  acted(/** @type {Event} */ event) {
    const { movementX, movementY } = /** @type {PointerEvent} */ (event);
    if (event.type === 'pointermove' && movementX === 0 && movementY === 0) return;
    this.stop();
  }

  /** Ends the tour for good. */
  stop() {
    clearTimeout(this.timer);
    for (const name of INPUTS) window.removeEventListener(name, this.input, { capture: true });
    document.removeEventListener('visibilitychange', this.watch);
    if (!this.ring.hidden) this.explorer.preview(null);
    this.ring.hidden = true;
  }
}
