// What pointer and keys do in the Survey tab.

import { ARROWS } from '../../explorer/geometry.js';
import { placeOf } from '../heads/grid.js';

/** @typedef {import('./room.js').SurveyRoom} SurveyRoom */

/** Lets a room answer. */
export function listen(/** @type {SurveyRoom} */ room) {
  const { find } = room;
  listenToFilter(room);
  listenToHeads(room);
  for (const name of ['across', 'up', 'measure']) {
    const select = /** @type {HTMLSelectElement} */ (find(`survey-${name}`));
    select.addEventListener('change', () => {
      const { value } = select; // another filter draws the choice that holds until now
      if (name !== 'measure' && room.brushed) room.filter({ brushed: '' });
      room.choose({ [name]: value });
    });
  }
  find('survey-brush').addEventListener('click', (event) => {
    const { brush } = buttonOf(event)?.dataset ?? {};
    if (!brush) return;
    room.dots.use(/** @type {'select' | 'lasso' | 'off'} */ (brush));
    showBrush(room);
  });
  showBrush(room);
  find('survey-unbrush').addEventListener('click', () => {
    room.dots.forget();
    room.filter({ brushed: '' });
  });
  find('survey-which').addEventListener('click', (event) => {
    const { list } = buttonOf(event)?.dataset ?? {};
    if (!list) return;
    Object.assign(room, { list, picked: null });
    room.drawLists();
  });
  find('survey-cards').addEventListener('click', (event) => {
    const { row } = buttonOf(event)?.dataset ?? {};
    if (row) room.open(Number(row));
  });
  find('survey-class-table').addEventListener('click', (event) => {
    const { label } = buttonOf(event)?.dataset ?? {};
    if (label !== undefined) room.filter({ typed: `label = '${label.replaceAll("'", "''")}'` });
  });
}

function listenToFilter(/** @type {SurveyRoom} */ room) {
  const field = /** @type {HTMLTextAreaElement} */ (room.find('survey-where'));
  const apply = () => {
    const text = field.value.replace(/\s+/g, ' ').trim();
    if (text !== room.choice.where) {
      room.dots.forget();
      room.filter({ typed: text, brushed: '' });
    }
  };
  room.find('survey-filter').addEventListener('submit', (event) => {
    event.preventDefault();
    apply();
  });
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    apply();
  });
  const clear = (/** @type {string} */ typed) => {
    room.dots.forget();
    field.value = typed;
    room.filter({ typed, brushed: '' });
  };
  room.find('survey-clear').addEventListener('click', () => clear(''));
  room.find('survey-chips').addEventListener('click', (event) => {
    const { where } = buttonOf(event)?.dataset ?? {};
    if (where) clear(where === room.typed ? '' : where);
  });
}

function listenToHeads(/** @type {SurveyRoom} */ room) {
  const table = room.find('survey-heads');
  table.addEventListener('pointerover', (event) => room.read(placeOf(event.target) ?? room.choice));
  table.addEventListener('pointerleave', () => room.read(room.choice));
  table.addEventListener('focusin', (event) => room.read(placeOf(event.target) ?? room.choice));
  table.addEventListener('focusout', () => room.read(room.choice));
  const choose = (/** @type {EventTarget | null} */ target) => {
    const place = placeOf(target);
    if (!place) return;
    Object.assign(room, { list: 'high', picked: null });
    room.choose(place);
  };
  table.addEventListener('click', (event) => choose(event.target));
  table.addEventListener('keydown', (event) => {
    const place = placeOf(event.target);
    if (!place) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      choose(event.target);
    } else if (event.key in ARROWS) {
      event.preventDefault();
      room.grid.cellOf(room.grid.moved(place, event.key))?.focus();
    }
  });
}

function showBrush(/** @type {SurveyRoom} */ room) {
  for (const button of room.find('survey-brush').querySelectorAll('button'))
    button.setAttribute('aria-pressed', String(button.dataset.brush === room.dots.mode));
}

/** The button that was pressed. @param {Event} event */
function buttonOf(event) {
  return event.target instanceof Element ? event.target.closest('button') : null;
}
