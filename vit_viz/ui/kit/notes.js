// What went wrong, where it went wrong: one sentence, where there is something to do about it a button for that, and one that closes it.

import { having, make } from './elements.js';

/**
 * Says in a place with the role alert what went wrong; no words: it went well since, or is tried again. What was closed stays closed
 * until then, however often the place is drawn.
 * @param {HTMLElement} place @param {string | null | undefined} words
 * @param {{again?: () => void, stays?: boolean}} [how] again: tries it once more; stays: it stands in place of what cannot be shown
 */
export function showError(place, words, { again, stays = false } = {}) {
  if (words && place.dataset.said === words) return;
  if (!words) delete place.dataset.said;
  else place.dataset.said = words;
  place.hidden = !words;
  place.replaceChildren(words || '');
  if (!words) return;
  if (again) place.append(' ', button('vv-again', 'Try again', again));
  if (!stays) place.append(closer(place));
}

/** The button that closes a note; the keyboard goes back to where it was. @param {HTMLElement} place */
function closer(place) {
  const before = document.activeElement;
  const close = button('vv-close', '', () => {
    place.hidden = true;
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  });
  return having(close, { 'aria-label': 'Close this message', title: 'Close this message' });
}

/** @param {string} look @param {string} words @param {() => void} press */
function button(look, words, press) {
  const node = having(make('button', look, words), { type: 'button' });
  node.addEventListener('click', press);
  return node;
}
