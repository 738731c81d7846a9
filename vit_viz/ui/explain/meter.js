// A button for something long, how far that is, and a button that ends it.

import { drawValue, finder, showJob } from '../kit/elements.js';
/** @import { Job, Mount } from '../kit/elements.js' */

/** @typedef {Job & {label?: string}} Meter */

/** @type {Mount<{value: Meter | null}>} */
export function mount(element, trigger, props, watch) {
  const find = finder(element);
  const go = /** @type {HTMLButtonElement} */ (find('go'));
  go.addEventListener('click', () => {
    go.disabled = true;
    trigger('start', {});
  });
  find('stop').addEventListener('click', () => trigger('stop', {}));
  drawValue(watch, () => {
    const { label, ...job } = props.value || {};
    go.textContent = label || 'Start';
    go.hidden = showJob(find, job);
    go.disabled = false;
  });
}
