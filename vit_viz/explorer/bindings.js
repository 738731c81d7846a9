// What the user's hands do with the explorer: gestures and keys wired to its actions.

import { attachCloser } from './closer.js';
import { patchQuery, queryPatches } from './geometry.js';
import { attachMosaic, attachStage, keyIntent } from './gestures.js';
import { cellText, patchText, placeTip, setText } from './labels.js';
import { placeCell, revealCell } from './layout.js';
import { columnHead, stepHead, stepQuery } from './state.js';

/**
 * @typedef {import('./explorer.js').Explorer} Explorer
 */

/** Whether the pointer reads values of the pinned map instead of asking what a patch looks at. */
function isReading(/** @type {Explorer} */ explorer, /** @type {PointerEvent} */ event) {
  return (
    event.altKey ||
    explorer.controls.inputs('pointer').some((input) => input.checked && input.value === 'reads')
  );
}

/** Listens to everything that a hand can do. */
export function attachHands(/** @type {Explorer} */ explorer) {
  const { parts } = explorer;
  const toQuery = (/** @type {number[]} */ patches) => patchQuery(patches, explorer.trace?.grid[1] ?? 1);
  attachStage(parts.stage, parts.box, {
    trace: () => explorer.trace,
    collecting: () => explorer.collecting,
    reading: (event) => isReading(explorer, event),
    pinned: () => (explorer.trace && explorer.view ? queryPatches(explorer.view.query, explorer.trace) : []),
    preview: (patches) => explorer.preview(patches && toQuery(patches)),
    pin: (patches) => explorer.pin(toQuery(patches)),
    read: (patch, event) => showTip(explorer, patch, event),
  });
  attachMosaic(
    parts.cells,
    () => explorer.trace && { layers: explorer.trace.layers, columns: explorer.trace.heads + 3 },
    (cell) => overCell(explorer, cell),
    ({ layer, column }) => explorer.change({ layer, head: columnHead(column, explorer.trace?.heads) }),
  );
  explorer.closer = attachCloser(explorer);
  for (const part of [parts.stage, parts.mosaic])
    part.addEventListener('keydown', (event) => onKey(explorer, event));
  parts.region.addEventListener('click', () => explorer.toggleRegion());
  parts.play.addEventListener('click', () => explorer.player.toggle());
  parts.save.addEventListener('click', () => explorer.save());
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
    revealCell(explorer.parts.scroll, explorer.parts.pick);
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

/** @param {Explorer} explorer @param {{layer: number, column: number} | null} cell */
function overCell(explorer, cell) {
  const { frame, view, trace, parts } = explorer;
  parts.over.hidden = !cell;
  if (!cell || !frame || !view || !trace) return explorer.schedule();
  placeCell(parts.over, cell.layer, cell.column);
  const head = columnHead(cell.column, trace.heads);
  return setText(parts.readout, cellText(frame, { ...view, layer: cell.layer, head }));
}

/** @param {Explorer} explorer @param {number | null} patch @param {PointerEvent} [event] */
function showTip(explorer, patch, event) {
  const { frame, view, parts } = explorer;
  parts.tip.hidden = patch === null || !event;
  if (patch === null || !frame || !view || !event) return;
  explorer.preview(null);
  placeTip(parts, event, patchText(frame, view, patch));
}
