// A model on its way: its name, how far it is, and a button that ends the download ('stop'); or what went wrong, as plain text.

import { finder, showText } from '../kit/elements.js';

/**
 * @typedef {import('../kit/elements.js').Job & {amount?: string, stop?: boolean}} Loading
 */

/** @type {import('../kit/elements.js').Mount<{value: Loading | null}>} */
export function mount(element, trigger, props, watch) {
  const stop = /** @type {HTMLButtonElement} */ (finder(element)('stop'));
  stop.addEventListener('click', () => {
    stop.disabled = true;
    trigger('stop', {});
  });
  watch('value', () => draw(element, props.value || {}));
  draw(element, props.value || {});
}

/** @param {HTMLElement} element @param {Loading} value */
function draw(element, { words, amount, share, stop, error }) {
  const find = finder(element);
  const said = find('job-words');
  find('job').hidden = !words;
  if (said.textContent !== (words || '')) said.textContent = words || ''; // what is the same is not said again
  find('job-amount').textContent = amount || '';
  const progress = /** @type {HTMLProgressElement} */ (find('progress'));
  progress.hidden = share === null || share === undefined;
  progress.value = share || 0;
  const button = /** @type {HTMLButtonElement} */ (find('stop'));
  button.hidden = !stop;
  button.disabled = false;
  showText(find('error'), error);
}
