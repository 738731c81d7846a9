// The badge of an edited model: what is changed in it, what that changes in the answer, and what takes it back.

import { finder, having, make, onPress, opens, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { asked } from '../kit/ask.js';
import { effect } from '../kit/preact.js';
import { theHeader } from './header.js';
import { answerLine } from './said.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */
/** @import { Line } from './said.js' */

/**
 * @typedef {{words: string, each: {said: string, left: string}[], before?: Line[], after?: Line[], moved?: string,
 *   error?: string}} Edited words: in short, "" where nothing is changed; left: the edits without this one; moved: of a model without classes
 */

/** @type {Mount<{}>} */
export function mount(element) {
  showEdited(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showEdited(element, { store, ask }) {
  const find = finder(element);
  const close = opens(find('edited-badge'), () => find('edited-panel'));
  const changed = asked(ask, () => (store.view.edits.value ? ['edited', { view: store.subject() }] : null));
  find('edited-undo').addEventListener('click', () => store.set({ edits: '' }));
  onPress(find('edited-each'), 'left', (edits) => store.set({ edits }));
  effect(() => {
    const { value, error } = changed.value;
    const isEdited = Boolean(store.view.edits.value);
    drawEdited(find, isEdited && (value ?? (error && { words: store.view.edits.value, each: [], error })));
    if (!isEdited) close();
  });
}

/** @param {(name: string) => HTMLElement} find @param {Edited | false | undefined | ''} value */
function drawEdited(find, value) {
  find('edited').hidden = !value || !value.words;
  if (!value || !value.words) return;
  find('edited-words').textContent = value.words;
  showError(find('edited-error'), value.error);
  showText(find('edited-moved'), value.moved);
  find('edited-answers').hidden = !value.before;
  find('edited-before').replaceChildren(...lines(value.before));
  find('edited-after').replaceChildren(...lines(value.after));
  find('edited-each').replaceChildren(
    ...value.each.map(({ said, left }) => {
      const undo = make('button', 'vv-button vv-plain', 'Undo');
      return make('li', '', said, having(undo, { 'data-left': left, 'aria-label': `Undo: ${said}` }));
    }),
  );
}

function lines(/** @type {Line[]} */ top = []) {
  return top.map(answerLine);
}
