// Mouse, touch and keys, turned into intentions; what they do is decided in explorer.js.

import { rectangle } from './geometry.js';

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
  const [rows, cols] = trace.grid;
  const area = box.getBoundingClientRect();
  const row = Math.floor(((event.clientY - area.top) / area.height) * rows);
  const col = Math.floor(((event.clientX - area.left) / area.width) * cols);
  return row >= 0 && row < rows && col >= 0 && col < cols ? row * cols + col : null;
}

/** Patches with one more, or one less where it is in already. */
function toggled(/** @type {number[]} */ patches, /** @type {number} */ patch) {
  const without = patches.filter((p) => p !== patch);
  return without.length < patches.length && without.length ? without : [...without, patch];
}

/**
 * Hover previews, click pins, drag takes a rectangle, Shift adds. A finger previews while it moves and pins when it lifts.
 * @param {HTMLElement} stage
 * @param {HTMLElement} box
 * @param {StageActions} actions
 */
export function attachStage(stage, box, actions) {
  /** @type {{from: number, kept: number[], moved: boolean, region: boolean} | null} */
  let drag = null;
  const at = (/** @type {PointerEvent} */ event) => {
    const trace = actions.trace();
    return trace ? patchAt(event, box, trace) : null;
  };
  const region = (/** @type {number} */ to) => {
    if (!drag) return [to];
    const cols = actions.trace()?.grid[1] ?? 1;
    return [...drag.kept, ...rectangle(drag.from, to, cols)];
  };
  stage.addEventListener('pointermove', (event) => {
    const patch = at(event);
    if (drag && patch !== null && patch !== drag.from) drag.moved = true;
    if (drag?.region && drag.moved && patch !== null) return actions.preview(region(patch));
    if (actions.reading(event)) return actions.read(patch, event);
    actions.read(null);
    return actions.preview(patch === null ? null : [patch]);
  });
  stage.addEventListener('pointerdown', (event) => {
    const patch = event.button === 0 ? at(event) : null;
    if (patch === null) return;
    stage.setPointerCapture(event.pointerId);
    const add = event.shiftKey || actions.collecting();
    const mouse = event.pointerType === 'mouse';
    drag = { from: patch, kept: add ? actions.pinned() : [], moved: false, region: mouse || add };
    if (!add && !actions.reading(event)) actions.preview([patch]);
  });
  stage.addEventListener('pointerup', (event) => {
    const patch = at(event);
    const ended = drag;
    if (!ended) return;
    const add = event.shiftKey || actions.collecting();
    const chosen = patch === null ? null : ended.moved && ended.region ? region(patch) : [patch];
    drag = null;
    if (chosen) actions.pin(add && !ended.moved ? toggled(ended.kept, chosen[0]) : chosen);
    if (event.pointerType !== 'mouse') actions.preview(null);
  });
  const leave = () => {
    drag = null;
    actions.preview(null);
    actions.read(null);
  };
  stage.addEventListener('pointercancel', leave);
  stage.addEventListener('pointerleave', leave);
}

/**
 * @param {HTMLElement} cells
 * @param {() => {layers: number, columns: number} | null} size
 * @param {(cell: {layer: number, column: number} | null) => void} over
 * @param {(cell: {layer: number, column: number}) => void} pick
 */
export function attachMosaic(cells, size, over, pick) {
  const at = (/** @type {MouseEvent} */ event) => {
    const area = cells.getBoundingClientRect();
    const grid = size();
    if (!grid || !area.width) return null;
    const layer = Math.floor(((event.clientY - area.top) / area.height) * grid.layers);
    const column = Math.floor(((event.clientX - area.left) / area.width) * grid.columns);
    const inside = layer >= 0 && layer < grid.layers && column >= 0 && column < grid.columns;
    return inside ? { layer, column } : null;
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
  const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  /** @type {Record<string, [number, number]>} */
  const letters = { w: [-1, 0], s: [1, 0], a: [0, -1], d: [0, 1] };
  const step = arrows[event.key];
  if (step) return { kind: event.shiftKey ? 'query' : 'head', step };
  const key = event.key.toLowerCase();
  if (letters[key]) return { kind: 'query', step: letters[key] };
  /** @type {Record<string, string>} */
  const commands = { escape: 'reset', ' ': 'play', r: 'region' };
  return commands[key] ? { kind: commands[key], step: /** @type {[number, number]} */ ([0, 0]) } : null;
}
