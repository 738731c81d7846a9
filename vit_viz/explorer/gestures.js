// Mouse, touch and keys on the explorer: what each means, and the actions of the explorer that it leads to.

import { attachCloser } from './closer.js';
import { ARROWS } from './elements.js';
import { cellAt, nearestCell, patchQuery, pointerIn, queryPatches, rectangle } from './geometry.js';
import { cellText, patchText, placeTip, setText } from './labels.js';
import { placeCell } from './layout.js';
import { attachFinger, isFinger } from './long_press.js';
import { columnHead, stepHead, stepQuery } from './state.js';
/** @import { Explorer } from './explorer.js' */

/** Listens to everything that a hand can do. */
export function attachHands(/** @type {Explorer} */ explorer) {
  const { parts } = explorer;
  attachStage(explorer);
  attachMosaic(explorer);
  explorer.closer = attachCloser(explorer);
  for (const part of [parts.stage, parts.mosaic])
    part.addEventListener('keydown', (event) => onKey(explorer, event));
  parts.region.addEventListener('click', () => explorer.toggleRegion());
  parts.play.addEventListener('click', () => explorer.player.toggle());
  parts.save.addEventListener('click', () => explorer.save());
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
 */
function attachStage(/** @type {Explorer} */ explorer) {
  const { stage } = explorer.parts;
  const pointer = new Pointer(explorer);
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
      explorer.preview(null);
    },
    slide: (event) => pointer.move(event),
    cancel: () => pointer.leave(),
  });
}

/** What a mouse or a finger is about to choose on the photo. */
class Pointer {
  /** @type {{from: number, kept: number[], moved: boolean} | null} */ drag = null;

  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
  }

  get cols() {
    return this.explorer.trace?.grid[1] ?? 1;
  }

  /** The patch under a pointer, or nearest to one that drags, the first of all being 0; null outside what the model received. */
  at(/** @type {PointerEvent} */ event) {
    const { trace, parts } = this.explorer;
    const cell = trace && (this.drag ? nearestCell : cellAt)(pointerIn(event, parts.box), trace.grid);
    return cell && cell[0] * this.cols + cell[1];
  }

  /** Whether what is chosen is added to what is pinned. */
  adds(/** @type {PointerEvent} */ event) {
    return event.shiftKey || this.explorer.collecting;
  }

  /** Whether the pointer reads values of the pinned map instead of asking what a patch looks at. */
  reads(/** @type {PointerEvent} */ event) {
    const inputs = this.explorer.controls.inputs('pointer');
    return event.altKey || inputs.some((input) => input.checked && input.value === 'reads');
  }

  /** The patches that a drag to here takes. */
  region(/** @type {number} */ to) {
    return this.drag ? [...this.drag.kept, ...rectangle(this.drag.from, to, this.cols)] : [to];
  }

  /** Patches of the pinned query. */
  pinned() {
    const { trace, view } = this.explorer;
    return trace && view ? queryPatches(view.query, trace) : [];
  }

  preview(/** @type {number[]} */ patches) {
    this.explorer.preview(patchQuery(patches, this.cols));
  }

  move(/** @type {PointerEvent} */ event) {
    const patch = this.at(event);
    if (this.drag && patch !== null && patch !== this.drag.from) this.drag.moved = true;
    if (this.drag?.moved && patch !== null) return this.preview(this.region(patch));
    if (this.reads(event)) return showTip(this.explorer, patch, event);
    showTip(this.explorer, null);
    return patch === null ? this.explorer.preview(null) : this.preview([patch]);
  }

  /** Begins a click or a drag; returns whether there is a patch to begin at. */
  down(/** @type {PointerEvent} */ event) {
    const patch = event.button === 0 ? this.at(event) : null;
    if (patch === null) return false;
    const adds = this.adds(event);
    this.drag = { from: patch, kept: adds ? this.pinned() : [], moved: false };
    if (!adds && !this.reads(event)) this.preview([patch]);
    return true;
  }

  up(/** @type {PointerEvent} */ event) {
    const ended = this.drag;
    const patch = this.at(event);
    const chosen = patch === null ? null : ended?.moved ? this.region(patch) : [patch];
    this.drag = null;
    if (!ended || !chosen) return;
    const patches = this.adds(event) && !ended.moved ? toggled(ended.kept, chosen[0]) : chosen;
    this.explorer.pin(patchQuery(patches, this.cols));
  }

  /** A finger asks, or reads, at one place. */
  tap(/** @type {PointerEvent} */ event) {
    if (this.reads(event)) return showTip(this.explorer, this.at(event), event);
    showTip(this.explorer, null);
    this.down(event);
    return this.up(event);
  }

  leave() {
    this.drag = null;
    this.explorer.preview(null);
    showTip(this.explorer, null);
  }
}

/** Pointing at a cell of the mosaic reads it, a click chooses its layer and head. */
function attachMosaic(/** @type {Explorer} */ explorer) {
  const { cells } = explorer.parts;
  const at = (/** @type {MouseEvent} */ event) => {
    const cell = explorer.mosaic?.find(pointerIn(event, cells)) ?? null;
    return cell && { ...cell, head: columnHead(cell.column, explorer.trace?.heads) };
  };
  cells.addEventListener('pointermove', (event) =>
    overCell(explorer, event.pointerType === 'touch' ? null : at(event)),
  );
  cells.addEventListener('pointerleave', () => overCell(explorer, null));
  cells.addEventListener('click', (event) => {
    const cell = at(event);
    if (cell) explorer.change({ layer: cell.layer, head: cell.head });
  });
}

/** @param {Explorer} explorer @param {{layer: number, column: number, head: number | string} | null} cell */
function overCell(explorer, cell) {
  const { frame, view, parts, mosaic } = explorer;
  parts.over.hidden = !cell;
  if (!cell || !frame || !view || !mosaic) return explorer.schedule();
  const { layer, column, head } = cell;
  placeCell(parts.over, mosaic, layer, column);
  return setText(parts.readout, cellText(frame, { ...view, layer, head }));
}

/** @param {Explorer} explorer @param {number | null} patch @param {PointerEvent} [event] */
function showTip(explorer, patch, event) {
  const { frame, view, parts } = explorer;
  parts.tip.hidden = patch === null || !event;
  if (patch === null || !frame || !view || !event) return;
  explorer.preview(null);
  placeTip(parts, event, patchText(frame, view, patch));
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

/** @param {Explorer} explorer @param {KeyboardEvent} event */
function onKey(explorer, event) {
  const intent = keyIntent(event);
  const { trace, view } = explorer;
  if (!intent || !trace || !view) return;
  event.preventDefault();
  event.stopPropagation();
  const [down, right] = intent.step;
  if (intent.kind === 'head') {
    explorer.setView(stepHead(view, trace, down, right));
  } else if (intent.kind === 'query') {
    explorer.pin(stepQuery(view, trace, down, right, explorer.collecting).query, false);
  } else if (intent.kind === 'reset') {
    explorer.pin(trace.default_query);
  } else if (intent.kind === 'play') {
    explorer.player.toggle();
  } else {
    explorer.toggleRegion();
  }
}
