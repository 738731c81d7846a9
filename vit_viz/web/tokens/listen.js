// What pointer and keys do in the Tokens tab; a box on the photo is drawn, or typed as left,top,right,bottom.

import { cellAt, clamp, pointerIn } from '../../explorer/geometry.js';
import { listenToOptions } from '../../ui/kit/controls.js';
import { onPress } from '../../ui/kit/elements.js';
import { askForShown } from '../../ui/kit/parts.js';
/** @import { Room } from './room.js' */
/** @import { Measure } from './views.js' */

/** Lets a room answer. */
export function listen(/** @type {Room} */ room) {
  const { element } = room;
  listenToOptions(element, (chosen) => room.choose(chosen));
  const wasDrawn = listenToBox(room);
  element.addEventListener('pointermove', (event) => hover(room, event));
  element.addEventListener('pointerleave', () => {
    room.hovered = null;
    room.repaint();
  });
  room.big.onChoice(
    (patch, { type }) => (type === 'keydown' || !wasDrawn()) && room.pinPatch(patch),
    () => room.patchOf(room.pinned),
  );
  room
    .find('room-save')
    .addEventListener('click', () => askForShown(element, room.subject?.trace ?? '', room.shown));
  onPress(room.find('room-named'), 'token', (name) => room.pin(name));
  room.find('room-likeliest').addEventListener('click', () => room.page.store.set({ target: '' }));
  listenToTable(room);
}

/** Lets a small photo become the large one, and rows be folded. */
function listenToTable(/** @type {Room} */ room) {
  const { table } = room;
  onPress(table.box, 'cell', (cell) => {
    const [token_measure, state] = /** @type {[Measure, string]} */ (cell.split(' '));
    room.choose({ token_measure, token_state: Number(state) });
  });
  onPress(table.box, 'fold', (name) => {
    const measure = /** @type {Measure} */ (name);
    table.fold(measure, !table.isFolded(measure));
    room.load();
  });
  window.addEventListener('resize', () => {
    table.fit();
    room.repaint();
  });
}

/** The patch under the pointer, over the photo or over a small one. */
function hover(/** @type {Room} */ room, /** @type {PointerEvent} */ event) {
  const patch = patchAt(room, event);
  if (patch === room.hovered) return;
  room.hovered = patch;
  room.repaint();
}

function patchAt(/** @type {Room} */ room, /** @type {PointerEvent} */ event) {
  if (!room.subject || !(event.target instanceof Element)) return null;
  const small = event.target.closest('.vv-room-small');
  const cell = small && cellAt(pointerIn(event, small), room.subject.grid);
  if (small) return cell && cell[0] * room.subject.grid[1] + cell[1];
  return event.target.closest('.vv-room-main-stage') ? room.big.patchAt(event) : null;
}

const TEXT = /^\d{1,6}(,\d{1,6}){3}$/;

/** The box of a text, top, left, bottom, right; null where it is none. @returns {number[] | null} */
export function readBox(/** @type {string} */ text) {
  if (!TEXT.test(text)) return null;
  const [left, top, right, bottom] = text.split(',').map(Number);
  return left < right && top < bottom ? [top, left, bottom, right] : null;
}

/**
 * The text of a box between two points, within the photo.
 * @param {[number, number]} from y, x in pixels of the original
 * @param {[number, number]} to
 * @param {[number, number]} size height, width
 */
export function boxText(from, to, size) {
  const ends = (/** @type {0 | 1} */ axis) =>
    [from[axis], to[axis]].sort((a, b) => a - b).map((at) => Math.round(clamp(at, size[axis])));
  const [[top, bottom], [left, right]] = [ends(0), ends(1)];
  return left < right && top < bottom ? [left, top, right, bottom].join(',') : '';
}

/**
 * Lets a box be drawn while the button for it is on.
 * @returns {() => boolean} whether the last press on the photo began a box: its click chooses no patch
 */
export function listenToBox(/** @type {Room} */ room) {
  const stage = room.big.element;
  const button = room.find('room-draw');
  /** @type {[number, number] | null} */
  let from = null;
  let wasDrawn = false;
  const isOn = () => button.getAttribute('aria-pressed') === 'true';
  const turn = (/** @type {boolean} */ on) => {
    button.setAttribute('aria-pressed', String(on));
    stage.classList.toggle('vv-drawing', on);
  };
  const drawn = (/** @type {PointerEvent} */ event) =>
    from && room.subject ? boxText(from, room.big.pointAt(event), room.subject.crop.original) : '';
  button.addEventListener('click', () => turn(!isOn()));
  room.find('room-no-box').addEventListener('click', () => room.choose({ token_box: '' }));
  stage.addEventListener('pointerdown', (event) => {
    wasDrawn = isOn();
    if (!wasDrawn) return;
    event.preventDefault();
    stage.setPointerCapture(event.pointerId);
    from = room.big.pointAt(event);
  });
  stage.addEventListener('pointermove', (event) => {
    if (!from) return;
    room.drawing = drawn(event);
    room.repaint();
  });
  const end = (/** @type {PointerEvent} */ event) => {
    if (!from) return;
    const text = event.type === 'pointerup' ? drawn(event) : '';
    from = null;
    room.drawing = '';
    if (!text) return room.repaint();
    turn(false);
    room.choose({ token_box: text });
  };
  stage.addEventListener('pointerup', end);
  stage.addEventListener('pointercancel', end);
  return () => wasDrawn;
}
