// Mouse, touch and keys on the explorer: what each means, and the actions of the explorer that it leads to.

import { attachCloser } from './closer.js';
import { byKeys, KEY_WORDS } from './elements.js';
import { cellAt, nearestCell, patchQuery, pointerIn, queryPatches, rectangle } from './geometry.js';
import { cellText, patchText, placeTip, setText } from './labels.js';
import { placeCell } from './layout.js';
import { attachFinger, isFinger } from './long_press.js';
import { besideQuery, columnHead, stepHead } from './state.js';
/** @import { Explorer } from './explorer.js' */

/** Listens to everything that a hand can do. */
export function attachHands(/** @type {Explorer} */ explorer) {
  const { parts } = explorer;
  attachStage(explorer);
  attachMosaic(explorer);
  explorer.closer = attachCloser(explorer);
  attachKeys(explorer);
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
  reads(altKey = false) {
    const inputs = this.explorer.controls.inputs('pointer');
    return altKey || inputs.some((input) => input.checked && input.value === 'reads');
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
    if (this.reads(event.altKey)) return showTip(this.explorer, patch, event);
    showTip(this.explorer, null);
    return patch === null ? this.explorer.preview(null) : this.preview([patch]);
  }

  /** Begins a click or a drag; returns whether there is a patch to begin at. */
  down(/** @type {PointerEvent} */ event) {
    const patch = event.button === 0 ? this.at(event) : null;
    if (patch === null) return false;
    const adds = this.adds(event);
    this.drag = { from: patch, kept: adds ? this.pinned() : [], moved: false };
    if (!adds && !this.reads(event.altKey)) this.preview([patch]);
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
    if (this.reads(event.altKey)) return showTip(this.explorer, this.at(event), event);
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

/** @param {Explorer} explorer @param {number | null} patch @param {Pick<MouseEvent, 'clientX' | 'clientY'>} [event] */
function showTip(explorer, patch, event) {
  const { frame, view, parts } = explorer;
  parts.tip.hidden = patch === null || !event;
  explorer.read(event ? patch : null);
  if (patch === null || !frame || !view || !event) return;
  explorer.preview(null);
  placeTip(parts, event, patchText(frame, view, patch));
}

/** Where on the screen a patch is. @param {Explorer} explorer @param {number} patch */
function middleOf({ trace, parts }, patch) {
  const [rows, cols] = trace?.grid ?? [1, 1];
  const { left, top, width, height } = parts.box.getBoundingClientRect();
  const [row, col] = [Math.floor(patch / cols), patch % cols];
  return { clientX: left + ((col + 0.5) / cols) * width, clientY: top + ((row + 0.5) / rows) * height };
}

/** The keys point at patches of the photo, or read them, Shift and Enter add one; and at heads of the mosaic. @param {Explorer} explorer */
function attachKeys(explorer) {
  const { stage, mosaic, keys } = explorer.parts;
  setText(keys, KEY_WORDS);
  for (const part of [stage, mosaic])
    part.setAttribute('aria-label', `${part.getAttribute('aria-label')} ${KEY_WORDS}`);
  const pointer = new Pointer(explorer);
  const pointed = () =>
    explorer.spot === null ? explorer.hovered : patchQuery([explorer.spot], pointer.cols);
  const onPatches = byKeys({
    at: pointed,
    beside(step) {
      const { trace, view } = explorer;
      return trace && view && besideQuery(pointed() ?? view.query, trace, step);
    },
    point(query) {
      const { trace } = explorer;
      const patch = trace && query !== null && pointer.reads() ? queryPatches(query, trace)[0] : null;
      if (patch === null) showTip(explorer, null);
      else showTip(explorer, patch, middleOf(explorer, patch));
      explorer.preview(patch === null ? query : null);
      explorer.speak();
    },
    choose(query, { shiftKey }) {
      const { trace, view, collecting } = explorer;
      if (!trace || !view || (query ?? trace.default_query) === view.query) return false;
      const adds = query !== null && (shiftKey || collecting);
      const [kept, [patch]] = [view.query, query ?? ''].map((one) => queryPatches(one, trace));
      return void explorer.pin(
        adds ? patchQuery(toggled(kept, patch), trace.grid[1]) : (query ?? trace.default_query),
      );
    },
  });
  const onHeads = byKeys({
    at: () => explorer.reached,
    beside([down, right]) {
      const { trace, view, reached } = explorer;
      if (!trace || !view) return null;
      const { layer, head } = stepHead({ ...view, ...reached }, trace, down, right);
      return { layer, head };
    },
    point: (place) => explorer.reach(place),
    choose: (place) => place !== null && void explorer.change({ ...place }),
  });
  stage.addEventListener('keydown', onPatches);
  stage.addEventListener('blur', () => pointer.leave());
  mosaic.addEventListener('keydown', onHeads);
  mosaic.addEventListener('blur', () => explorer.reach(null));
}
