// What the model says of the view, or what is being done for it.

import { effect } from '../kit/preact.js';
import { theHeader } from './header.js';
import { drawTop } from './said.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

/** @type {Mount<{}>} */
export function mount(element) {
  showTop(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showTop(element, { store, facts, note, imageWords }) {
  effect(() => {
    const { state, value, error } = facts.value;
    const model = store.view.model.value || store.fields.get('model')?.usual;
    if (state === 'pending') return drawTop(element, { busy: `Running ${model} on ${imageWords.value} …` });
    if (state === 'none' || value?.refused) return;
    const notes = [note.value, ...(value?.notes ?? [])].filter(Boolean);
    drawTop(element, state === 'failed' ? { error, notes: [note.value] } : { notes, top: value.top });
  });
}
