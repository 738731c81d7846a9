// What pointer and keys do in the Tokens tab.

import { ARROWS, cellAt, pointerIn } from '../../explorer/geometry.js';
import { listenToBox } from './box.js';
import { listenToOptions } from './options.js';

/** @typedef {import('./room.js').Room} Room */

/** Lets a room answer. */
export function listen(/** @type {Room} */ room) {
  const { element, stage } = room;
  listenToOptions(element, (chosen) => room.choose(chosen));
  const wasDrawn = listenToBox(room);
  element.addEventListener('pointermove', (event) => hover(room, event));
  element.addEventListener('pointerleave', () => {
    room.hovered = null;
    room.repaint();
  });
  stage.addEventListener('click', (event) => {
    const cell = room.big.patchAt(event);
    if (cell && room.subject && !wasDrawn()) room.pin(cell[0] * room.subject.grid[1] + cell[1]);
  });
  stage.addEventListener('keydown', (event) => {
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    room.step(step);
  });
  room.find('room-strip').addEventListener('click', (event) => {
    const tile = /** @type {Element} */ (event.target).closest('.vv-room-tile');
    if (tile instanceof HTMLElement) room.choose({ token_state: Number(tile.dataset.state) });
  });
}

/** The patch under the pointer, over the photo or over a small map. */
function hover(/** @type {Room} */ room, /** @type {PointerEvent} */ event) {
  const cell = patchAt(room, event);
  const patch = cell && room.subject ? cell[0] * room.subject.grid[1] + cell[1] : null;
  if (patch === room.hovered) return;
  room.hovered = patch;
  room.repaint();
}

function patchAt(/** @type {Room} */ room, /** @type {PointerEvent} */ event) {
  if (!room.subject || !(event.target instanceof Element)) return null;
  const small = event.target.closest('.vv-room-small');
  if (small) return cellAt(pointerIn(event, small), room.subject.grid);
  return event.target.closest('.vv-room-main-stage') ? room.big.patchAt(event) : null;
}
