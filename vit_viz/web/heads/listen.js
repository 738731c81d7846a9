// What pointer and keys do on the Heads tab.

import { queryPatches } from '../../explorer/geometry.js';
import { dataAt, onArrows, onPress } from '../../ui/kit/elements.js';
import { askForShown } from '../../ui/kit/parts.js';
import { placeOf } from './grid.js';
/** @import { HeadRoom } from './room.js' */
/** @import { Place } from './words.js' */

/** Lets a room answer. */
export function listen(/** @type {HeadRoom} */ room) {
  listenToTable(room);
  listenToDrags(room);
  listenToControls(room);
}

/** The grid and the dots of the plot stand for heads. */
function listenToTable(/** @type {HeadRoom} */ room) {
  const { element, find } = room;
  element.addEventListener('pointermove', (event) => {
    if (event.pointerType !== 'touch') room.hover(placeOf(event.target));
  });
  element.addEventListener('pointerleave', () => room.hover(null));
  find('heads-dots').addEventListener('click', ({ target }) => {
    const place = placeOf(target);
    if (place) room.choose(place);
  });
  onArrows(find('heads-plot-box'), (step) => {
    const place = room.plot.beside(room.chosen, step);
    if (place) room.choose(place);
  });
  room.grid.onChoice((place) => {
    if (room.isShown('surgery')) room.surgery.toggle([nameOf(place)]);
    room.choose(place);
  });
  onPress(find('heads-table'), 'all', (layer) => {
    const heads = Array.from({ length: room.subject?.heads ?? 0 }, (_, head) => `${layer}.${head}`);
    room.surgery.toggle(heads);
  });
  element.addEventListener('focusin', (event) => {
    const place = placeOf(event.target);
    if (place) room.hover(place);
  });
  element.addEventListener('focusout', () => room.hover(null));
}

function nameOf(/** @type {Place} */ { layer, head }) {
  return `${layer}.${head}`;
}

/** A drag across switches gives all of them what a click would make of the first; a finger scrolls. */
function listenToDrags(/** @type {HeadRoom} */ room) {
  const table = room.find('heads-table');
  /** @type {{first: Place, state: import('./photo_grid.js').State, isMoving: boolean} | null} */
  let drag = null;
  table.addEventListener('pointerdown', (event) => {
    const place = room.isShown('surgery') && event.pointerType !== 'touch' ? placeOf(event.target) : null;
    drag = place && { first: place, state: room.surgery.stateFor([nameOf(place)]), isMoving: false };
  });
  table.addEventListener('pointerover', (event) => {
    const place = placeOf(event.target);
    if (!drag || !place || !(event.buttons & 1)) return;
    const isFirst = nameOf(place) === nameOf(drag.first);
    if (isFirst && !drag.isMoving) return;
    if (!drag.isMoving) room.surgery.remember('heads');
    room.surgery.set(drag.isMoving ? [nameOf(place)] : [nameOf(drag.first), nameOf(place)], drag.state);
    drag.isMoving = true;
  });
  window.addEventListener('pointerup', () => (drag = null));
}

function listenToControls(/** @type {HeadRoom} */ room) {
  const { find } = room;
  const select = /** @type {HTMLSelectElement} */ (find('heads-measure'));
  select.addEventListener('change', () => room.go({ measure: select.value }));
  find('heads-save').addEventListener('click', () => {
    const { measure, how } = room.options;
    askForShown(room.element, room.subject?.trace ?? '', { tab: 'heads', face: 'atlas', measure, how });
  });
  onPress(find('heads-faces'), 'face', (face) => room.go({ face }));
  find('heads-enlarge').addEventListener('click', () => room.go({ face: 'matrix' }));
  find('heads-open').addEventListener('click', () => document.getElementById('vv-tab-look-button')?.click());
  find('heads-switch').addEventListener('click', () => {
    const place = nameOf(room.chosen);
    room.surgery.remember('heads');
    room.surgery.set([place], room.surgery.heads.has(place) ? 'on' : 'off');
    room.go({ face: 'surgery' });
  });
  find('heads-kin').addEventListener('click', (event) => {
    const kin = dataAt(event, 'kin');
    if (!kin) return;
    const [layer, head] = kin.split('.').map(Number);
    room.choose({ layer, head });
  });
  onPress(find('heads-orders'), 'order', (order) => room.store.set({ order }));
  onPress(find('heads-hows'), 'how', (how) => room.store.set({ how }));
  room.lit.stage.onChoice(
    (patch) => room.pin(patch),
    () => (room.subject ? queryPatches(room.subject.query, room.subject)[0] : undefined),
  );
}
