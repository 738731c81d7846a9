// What pointer and keys do in the Heads tab.

import { ARROWS, movedPatch, queryPatches } from '../../explorer/geometry.js';
import { placeOf } from './grid.js';

/** @typedef {import('./table.js').HeadRoom} HeadRoom */

/** Lets a room answer. */
export function listen(/** @type {HeadRoom} */ room) {
  listenToTable(room);
  listenToControls(room);
  listenToPhoto(room);
}

/** The table, the dots of the plot and the chips of names all stand for heads. */
function listenToTable(/** @type {HeadRoom} */ room) {
  const { element, find } = room;
  element.addEventListener('pointermove', (event) => {
    if (event.pointerType !== 'touch') room.hover(placeOf(event.target));
  });
  element.addEventListener('pointerleave', () => room.hover(null));
  for (const part of ['heads-table', 'heads-dots'])
    find(part).addEventListener('click', (event) => {
      const place = placeOf(event.target);
      if (place) room.choose(place);
    });
  element.addEventListener('focusin', (event) => {
    const place = placeOf(event.target);
    if (place) room.hover(place);
  });
  element.addEventListener('focusout', () => room.hover(null));
  find('heads-table').addEventListener('keydown', (event) => {
    const place = placeOf(event.target);
    if (!place) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      room.choose(place);
    } else if (event.key in ARROWS) {
      event.preventDefault();
      room.grid.cellOf(room.grid.moved(place, event.key))?.focus();
    }
  });
}

function listenToControls(/** @type {HeadRoom} */ room) {
  const { find } = room;
  const select = /** @type {HTMLSelectElement} */ (find('heads-measure'));
  select.addEventListener('change', () => room.set({ measure: select.value }));
  find('heads-start').addEventListener('click', () => room.trigger('start', { how: room.options.how }));
  find('heads-stop').addEventListener('click', () => room.trigger('stop', {}));
  for (const part of ['heads-orders', 'heads-hows'])
    find(part).addEventListener('click', (event) => {
      const button = event.target instanceof Element ? event.target.closest('button') : null;
      const { order, how } = button?.dataset ?? {};
      if (order) room.set({ head_order: order });
      if (how) room.set({ how });
    });
}

function listenToPhoto(/** @type {HeadRoom} */ room) {
  const stage = room.find('heads-stage');
  stage.addEventListener('click', (event) => {
    const patch = room.lit.stage.patchAt(event);
    if (patch !== null) room.pin(patch);
  });
  stage.addEventListener('keydown', (event) => {
    if (!(event.key in ARROWS) || !room.subject) return;
    event.preventDefault();
    const { grid, query } = room.subject;
    const [patch] = queryPatches(query, room.subject);
    const centre = Math.floor(grid[0] / 2) * grid[1] + Math.floor(grid[1] / 2);
    room.pin(patch === undefined ? centre : movedPatch(patch, ARROWS[event.key], grid));
  });
}
