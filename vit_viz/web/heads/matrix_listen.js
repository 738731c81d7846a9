// What pointer, wheel, fingers and keys do with the matrix and its photo.

import { ARROWS } from '../../explorer/elements.js';
import { pointerIn } from '../../explorer/geometry.js';
import { onPress } from '../../ui/kit/elements.js';
/** @import { Matrix } from './matrix.js' */

const STEP = 1.5; // of a zoom by button or key
const DRAG = 4; // pixels from which a press is a drag
const REST = 300; // milliseconds without a turn of the wheel after which a new gesture begins

/** Lets a matrix answer. */
export function listen(/** @type {Matrix} */ matrix) {
  listenToSheet(matrix);
  listenToWheel(matrix);
  listenToPhoto(matrix);
  listenToControls(matrix);
}

/** The point under a pointer, in pixels of the panes: down, across. @returns {[number, number]} */
function pointOf(/** @type {Matrix} */ matrix, /** @type {MouseEvent} */ event) {
  const [down, across] = pointerIn(event, matrix.find('matrix-plot'));
  return [down * matrix.panes.size, across * matrix.panes.size];
}

/** Pointer and keys over the matrix: one pointer shows a pair or moves the matrix, two zoom. */
function listenToSheet(/** @type {Matrix} */ matrix) {
  const sheet = matrix.find('matrix-sheet');
  /** @type {Map<number, [number, number]>} */
  const down = new Map();
  let moved = 0;
  sheet.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    if (!down.size) moved = 0;
    down.set(event.pointerId, pointOf(matrix, event));
  });
  sheet.addEventListener('pointermove', (event) => {
    const point = pointOf(matrix, event);
    const before = down.get(event.pointerId);
    if (!before) return matrix.point(matrix.cellsAt(point));
    moved += Math.hypot(point[0] - before[0], point[1] - before[1]);
    if (down.size === 2) pinch(matrix, down, event.pointerId, point);
    else if (moved > DRAG && matrix.panes.zoom > 1) {
      sheet.setPointerCapture(event.pointerId);
      matrix.panes.move([point[0] - before[0], point[1] - before[1]]);
      matrix.seeElse();
    }
    down.set(event.pointerId, point);
  });
  const release = (/** @type {PointerEvent} */ event) => void down.delete(event.pointerId);
  sheet.addEventListener('pointerup', release);
  sheet.addEventListener('pointercancel', release);
  sheet.addEventListener('pointerleave', (event) => {
    release(event);
    if (event.pointerType === 'mouse') matrix.point(null);
  });
  sheet.addEventListener('click', (event) => {
    const pair = matrix.cellsAt(pointOf(matrix, event));
    if (!pair || moved > DRAG) return;
    matrix.point(pair);
    matrix.pin(pair[0]);
  });
  sheet.addEventListener('keydown', (event) => key(matrix, event));
}

/** Two fingers: their distance zooms, their middle moves. */
function pinch(
  /** @type {Matrix} */ matrix,
  /** @type {Map<number, [number, number]>} */ down,
  /** @type {number} */ id,
  /** @type {[number, number]} */ point,
) {
  const [first, second] = [...down.entries()].map(([of, at]) => ({
    before: at,
    now: of === id ? point : at,
  }));
  const distance = (/** @type {number[]} */ a, /** @type {number[]} */ b) =>
    Math.hypot(a[0] - b[0], a[1] - b[1]);
  /** @type {[number, number]} */
  const middle = [(first.now[0] + second.now[0]) / 2, (first.now[1] + second.now[1]) / 2];
  const was = [(first.before[0] + second.before[0]) / 2, (first.before[1] + second.before[1]) / 2];
  matrix.panes.move([middle[0] - was[0], middle[1] - was[1]]);
  const from = distance(first.before, second.before);
  matrix.panes.zoomBy(from > 0 ? distance(first.now, second.now) / from : 1, middle);
  matrix.seeElse();
}

/** A turn of the wheel zooms; one that began elsewhere on the page goes on scrolling the page, as does one that changes nothing. */
function listenToWheel(/** @type {Matrix} */ matrix) {
  const sheet = matrix.find('matrix-sheet');
  let elsewhere = -Infinity;
  window.addEventListener(
    'wheel',
    (event) => {
      if (!sheet.contains(/** @type {Node} */ (event.target))) elsewhere = performance.now();
    },
    { passive: true },
  );
  sheet.addEventListener(
    'wheel',
    (event) => {
      if (performance.now() - elsewhere < REST && !event.ctrlKey) {
        elsewhere = performance.now();
        return;
      }
      const before = matrix.panes.zoom;
      const pixels = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
      matrix.panes.zoomBy(Math.exp(-pixels / (event.ctrlKey ? 100 : 400)), pointOf(matrix, event));
      if (matrix.panes.zoom === before && !event.ctrlKey) return;
      event.preventDefault();
      matrix.seeElse();
    },
    { passive: false },
  );
}

/** Keys over the matrix: arrows move the pair, Enter chooses its query, + and - zoom, 0 shows everything, Escape leaves the pair. */
function key(/** @type {Matrix} */ matrix, /** @type {KeyboardEvent} */ event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = ARROWS[event.key];
  if (step) matrix.movePair(event.shiftKey ? [10 * step[0], 10 * step[1]] : step);
  else if (event.key === 'Enter' && matrix.pointed) matrix.pin(matrix.pointed[0]);
  else if (event.key === '+' || event.key === '=') matrix.zoomBy(STEP);
  else if (event.key === '-') matrix.zoomBy(1 / STEP);
  else if (event.key === '0') matrix.zoomBy(0);
  else if (event.key === 'Escape' && matrix.pointed) matrix.point(null);
  else return;
  event.preventDefault();
}

/** Pointer and keys over the photo: the patch under the pointer is the query. */
function listenToPhoto(/** @type {Matrix} */ matrix) {
  const stage = matrix.find('matrix-stage');
  stage.addEventListener('pointermove', (event) => {
    const patch = matrix.photo.stage.patchAt(event);
    matrix.point(patch === null ? null : [matrix.cellOfPatch(patch), null]);
  });
  stage.addEventListener('pointerleave', () => matrix.point(null));
  matrix.photo.stage.onChoice(
    (patch) => matrix.pinPatches([patch]),
    () => matrix.pinnedPatch(),
  );
}

/** Buttons and choosers. */
function listenToControls(/** @type {Matrix} */ matrix) {
  const { element, find } = matrix;
  onPress(element, 'zoom', (zoom) => matrix.zoomBy(zoom === 'in' ? STEP : zoom === 'out' ? 1 / STEP : 0));
  onPress(element, 'scale', (scale) => matrix.set({ matrix_scale: scale }));
  onPress(element, 'links', (links) => matrix.set({ links }));
  const count = /** @type {HTMLSelectElement} */ (find('matrix-count'));
  count.addEventListener('change', () => matrix.set({ strongest: Number(count.value) }));
  for (const name of ['matrix-layer', 'matrix-head']) {
    find(name).addEventListener('change', () => matrix.choose());
  }
}
