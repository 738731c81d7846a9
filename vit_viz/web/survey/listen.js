// What pointer and keys do in the Survey tab.

import { wholeAddress } from '../../ui/visit/link.js';
import { placeOf } from '../heads/grid.js';
import { onPress, press, showText } from '../../ui/kit/elements.js';
import { selectionLink } from './lists.js';
/** @import { ListName } from './groups.js' */
/** @import { SurveyRoom } from './room.js' */

/** Lets a room answer. */
export function listen(/** @type {SurveyRoom} */ room) {
  const { find } = room;
  listenToFilter(room);
  listenToHeads(room);
  listenToComparison(room);
  for (const name of ['across', 'up', 'measure']) {
    const select = /** @type {HTMLSelectElement} */ (find(`survey-${name}`));
    select.addEventListener('change', () => {
      const { value } = select; // another filter draws the choice that holds until now
      if (name !== 'measure' && room.brushed) room.filter({ brushed: '' });
      room.choose({ [name]: value });
    });
  }
  const showBrush = () => press(find('survey-brush'), 'brush', room.dots.mode);
  onPress(find('survey-brush'), 'brush', (mode) => {
    room.dots.use(/** @type {'select' | 'lasso' | 'off'} */ (mode));
    showBrush();
  });
  showBrush();
  find('survey-unbrush').addEventListener('click', () => {
    room.dots.forget();
    room.filter({ brushed: '' });
  });
  onPress(find('survey-which'), 'list', (list) => {
    room.picked = null;
    if (list === room.choice.list) room.drawLists();
    else room.choose({ list: /** @type {ListName} */ (list) });
  });
  onPress(find('survey-cards'), 'row', (row) => room.open(Number(row)));
  onPress(find('survey-cards'), 'more', (name) => void room.more(/** @type {'high'} */ (name)));
  find('survey-link').addEventListener('click', () => void copySelection(room));
  room.element.dataset.shows = 'heads';
  onPress(find('survey-faces'), 'face', (face) => {
    room.element.dataset.shows = face;
    press(find('survey-faces'), 'face', face);
  });
  onPress(find('survey-class-table'), 'label', (label) =>
    room.filter({ typed: `label = '${label.replaceAll("'", "''")}'` }),
  );
}

/** Copies the address of the photos that are listed, and says so on the button. */
async function copySelection(/** @type {SurveyRoom} */ room) {
  const button = room.find('survey-link');
  const link = selectionLink(wholeAddress(), room.choice);
  await navigator.clipboard.writeText(link).then(
    () => (button.textContent = 'Copied'),
    () => showText(room.find('survey-note'), link), // not every page may write to the clipboard
  );
}

function listenToFilter(/** @type {SurveyRoom} */ room) {
  const field = /** @type {HTMLTextAreaElement} */ (room.find('survey-where'));
  const apply = () => {
    // within quotes spaces are part of a label
    const text = field.value.replace(/('[^']*'|"[^"]*")|\s+/g, (_, quoted) => quoted ?? ' ').trim();
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
  onPress(room.find('survey-chips'), 'where', (where) => clear(where === room.typed ? '' : where));
}

function listenToHeads(/** @type {SurveyRoom} */ room) {
  const table = room.find('survey-heads');
  table.addEventListener('pointerover', (event) => room.read(placeOf(event.target) ?? room.choice));
  table.addEventListener('pointerleave', () => room.read(room.choice));
  table.addEventListener('focusin', (event) => room.read(placeOf(event.target) ?? room.choice));
  table.addEventListener('focusout', () => room.read(room.choice));
  room.grid.onChoice((place) => chooseHead(room, place));
}

/** Another head: its exemplars, or the photos that changed their answer, now lit by it. @param {SurveyRoom} room @param {{layer: number, head: number}} place */
function chooseHead(room, place) {
  room.picked = null;
  if (!['high', 'changed'].includes(room.choice.list)) room.choose({ list: 'high' });
  room.choose(place);
}

function listenToComparison(/** @type {SurveyRoom} */ room) {
  const { find } = room;
  const select = /** @type {HTMLSelectElement} */ (find('survey-second'));
  select.addEventListener('change', async () => {
    const { value: second } = select;
    if (!second) void room.comparison.show('');
    else if (!(await room.comparison.ask(second))) return;
    room.picked = null;
    room.choose({ second, list: second ? 'changed' : 'high' });
  });
  find('survey-moved-more').addEventListener('click', () => room.comparison.more());
  onPress(find('survey-moved-table'), 'moved', (place) => {
    const [layer, head, statistic] = place.split('/');
    if (statistic !== room.choice.measure && room.survey.measures.some(({ name }) => name === statistic))
      room.choose({ measure: statistic });
    chooseHead(room, { layer: Number(layer), head: Number(head) });
  });
}
