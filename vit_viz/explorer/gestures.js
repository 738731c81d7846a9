// Mouse, touch and keys, turned into intentions; what they do is decided in explorer.js.

import { ARROWS, cellAt, pointerIn, rectangle } from './geometry.js';
import { attachFinger, isFinger } from './long_press.js';

/**
 * @typedef {import('./geometry.js').Trace} Trace
 *
 * @typedef {object} StageActions
 * @property {() => Trace | null} trace
 * @property {() => boolean} collecting whether drags and clicks add to a region
 * @property {(event: PointerEvent) => boolean} reading whether the pointer reads values instead of asking
 * @property {() => number[]} pinned patches of the pinned query
 * @property {(patches: number[] | null) => void} preview
 * @property {(patches: number[]) => void} pin
 * @property {(patch: number | null, event?: PointerEvent) => void} read
 */

/** The patch under a pointer, the first of all being 0; null outside what the model received. */
export function patchAt(
  /** @type {PointerEvent} */ event,
  /** @type {HTMLElement} */ box,
  /** @type {Trace} */ trace,
) {
  const cell = cellAt(pointerIn(event, box), trace.grid);
  return cell && cell[0] * trace.grid[1] + cell[1];
}

/** Patches with one more, or one less where it is in already. */
function toggled(/** @type {number[]} */ patches, /** @type {number} */ patch) {
  const without = patches.filter((p) => p !== patch);
  return without.length < patches.length && without.length ? without : [...without, patch];
}

/** Whether a pointer only points: a mouse, or a pen that does not touch. */
function isPointing(/** @type {PointerEvent} */ event) {
  return !isFinger(event) || (event.pointerType === 'pen' && !event.buttons);
}

/**
 * Hover previews, click pins, drag takes a rectangle, Shift adds. A finger pins where it taps, takes a rectangle once it has rested,
 * and previews where it slides sideways; up and down it scrolls the page.
 * @param {HTMLElement} stage
 * @param {HTMLElement} box
 * @param {StageActions} actions
 */
export function attachStage(stage, box, actions) {
  const pointer = new Pointer(box, actions);
  const mouse = (/** @type {string} */ name, /** @type {(event: PointerEvent) => void} */ then) =>
    stage.addEventListener(name, (event) => {
      const at = /** @type {PointerEvent} */ (event);
      if (isPointing(at)) then(at);
    });
  mouse('pointermove', (event) => pointer.move(event));
  mouse('pointerdown', (event) => {
    if (pointer.down(event)) stage.setPointerCapture(event.pointerId);
  });
  mouse('pointerup', (event) => pointer.up(event));
  mouse('pointercancel', () => pointer.leave());
  mouse('pointerleave', () => pointer.leave());
  attachFinger(stage, {
    tap: (event) => pointer.tap(event),
    begin: (event) => void pointer.down(event),
    draw: (event) => pointer.move(event),
    end: (event) => {
      pointer.up(event);
      actions.preview(null);
    },
    slide: (event) => pointer.move(event),
    cancel: () => pointer.leave(),
  });
}

/** What a mouse or a finger is about to choose on the photo. */
class Pointer {
  /** @type {{from: number, kept: number[], moved: boolean} | null} */ drag = null;

  /** @param {HTMLElement} box @param {StageActions} actions */
  constructor(box, actions) {
    this.box = box;
    this.actions = actions;
  }

  at(/** @type {PointerEvent} */ event) {
    const trace = this.actions.trace();
    return trace ? patchAt(event, this.box, trace) : null;
  }

  /** Whether what is chosen is added to what is pinned. */
  adds(/** @type {PointerEvent} */ event) {
    return event.shiftKey || this.actions.collecting();
  }

  /** The patches that a drag to here takes. */
  region(/** @type {number} */ to) {
    const cols = this.actions.trace()?.grid[1] ?? 1;
    return this.drag ? [...this.drag.kept, ...rectangle(this.drag.from, to, cols)] : [to];
  }

  move(/** @type {PointerEvent} */ event) {
    const patch = this.at(event);
    if (this.drag && patch !== null && patch !== this.drag.from) this.drag.moved = true;
    if (this.drag?.moved && patch !== null) return this.actions.preview(this.region(patch));
    if (this.actions.reading(event)) return this.actions.read(patch, event);
    this.actions.read(null);
    return this.actions.preview(patch === null ? null : [patch]);
  }

  /** Begins a click or a drag; returns whether there is a patch to begin at. */
  down(/** @type {PointerEvent} */ event) {
    const patch = event.button === 0 ? this.at(event) : null;
    if (patch === null) return false;
    const adds = this.adds(event);
    this.drag = { from: patch, kept: adds ? this.actions.pinned() : [], moved: false };
    if (!adds && !this.actions.reading(event)) this.actions.preview([patch]);
    return true;
  }

  up(/** @type {PointerEvent} */ event) {
    const ended = this.drag;
    const patch = this.at(event);
    const chosen = patch === null ? null : ended?.moved ? this.region(patch) : [patch];
    this.drag = null;
    if (!ended || !chosen) return;
    this.actions.pin(this.adds(event) && !ended.moved ? toggled(ended.kept, chosen[0]) : chosen);
  }

  /** A finger asks, or reads, at one place. */
  tap(/** @type {PointerEvent} */ event) {
    if (this.actions.reading(event)) return this.actions.read(this.at(event), event);
    this.actions.read(null);
    this.down(event);
    return this.up(event);
  }

  leave() {
    this.drag = null;
    this.actions.preview(null);
    this.actions.read(null);
  }
}

/**
 * @param {HTMLElement} cells
 * @param {() => {layers: number, columns: number} | null} size
 * @param {(cell: {layer: number, column: number} | null) => void} over
 * @param {(cell: {layer: number, column: number}) => void} pick
 */
export function attachMosaic(cells, size, over, pick) {
  const at = (/** @type {MouseEvent} */ event) => {
    const grid = size();
    const cell = grid && cellAt(pointerIn(event, cells), [grid.layers, grid.columns]);
    return cell && { layer: cell[0], column: cell[1] };
  };
  cells.addEventListener('pointermove', (event) => over(event.pointerType === 'touch' ? null : at(event)));
  cells.addEventListener('pointerleave', () => over(null));
  cells.addEventListener('click', (event) => {
    const cell = at(event);
    if (cell) pick(cell);
  });
}

/** What a key asks for: a step of the query (down, right), of layer and head, or a command; null for other keys. */
export function keyIntent(
  /** @type {Pick<KeyboardEvent, 'key' | 'shiftKey' | 'ctrlKey' | 'metaKey' | 'altKey'>} */ event,
) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  /** @type {Record<string, [number, number]>} */
  const letters = { w: [-1, 0], s: [1, 0], a: [0, -1], d: [0, 1] };
  const step = ARROWS[event.key];
  if (step) return { kind: event.shiftKey ? 'query' : 'head', step };
  const key = event.key.toLowerCase();
  if (letters[key]) return { kind: 'query', step: letters[key] };
  /** @type {Record<string, string>} */
  const commands = { escape: 'reset', ' ': 'play', r: 'region' };
  return commands[key] ? { kind: commands[key], step: /** @type {[number, number]} */ ([0, 0]) } : null;
}
