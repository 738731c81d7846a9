// A model on its way, or a pass through it: what is done, how far that is, and a button that ends it.

import { finder } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { Job, JobBar } from '../kit/job.js';
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
  const bar = new JobBar(find('job'), { end: () => far.peek()?.stop() });
  effect(() => bar.show(far.value ?? new Job(), { amount: far.value?.amount }));
  effect(() => showError(find('error'), problem.value));
}
