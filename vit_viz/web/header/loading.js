// A model on its way, or a pass through it: what is done, how far that is, and a button that ends it.

import { finder, showShare } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { effect } from '../kit/preact.js';
import { theHeader } from './header.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

/** @type {Mount<{}>} */
export function mount(element) {
  showLoading(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showLoading(element, { far, problem }) {
  const find = finder(element);
  find('stop').addEventListener('click', () => far.peek()?.stop());
  effect(() => {
    const { words = '', amount = '', share } = far.value ?? {};
    find('job').hidden = !words;
    const said = find('job-words');
    if (said.textContent !== words) said.textContent = words; // what is the same is not said again
    find('job-amount').textContent = amount;
    showShare(find('progress'), share);
  });
  effect(() => showError(find('error'), problem.value));
}
