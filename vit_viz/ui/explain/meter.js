// A button that starts something long ('start'), how far it is, and a button that ends it ('stop').

import { finder } from '../kit/elements.js';

/**
 * @typedef {import('../kit/elements.js').Job & {label?: string}} Meter
 */

/** @type {import('../kit/elements.js').Mount<{value: Meter | null}>} */
export function mount(element, trigger, props, watch) {
  const find = finder(element);
  const go = /** @type {HTMLButtonElement} */ (find('go'));
  go.addEventListener('click', () => {
    go.disabled = true;
    trigger('start', {});
  });
  find('stop').addEventListener('click', () => trigger('stop', {}));
  watch('value', () => draw(element, props.value || {}));
  draw(element, props.value || {});
}

/** @param {HTMLElement} element @param {Meter} value */
function draw(element, { label, words, error, share }) {
  const find = finder(element);
  const running = share !== null && share !== undefined;
  const go = /** @type {HTMLButtonElement} */ (find('go'));
  go.textContent = label || 'Start';
  go.hidden = running;
  go.disabled = false;
  find('job-words').textContent = error || words || '';
  const progress = /** @type {HTMLProgressElement} */ (find('progress'));
  progress.hidden = find('stop').hidden = !running;
  progress.value = share || 0;
}
