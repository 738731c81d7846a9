// A button that opens a part of the page that Gradio drew, by its id; a new value closes it.

import { finder } from './elements.js';
import { opens } from './popover.js';

/**
 * @typedef {object} Opener
 * @property {string} words what stands on the button
 * @property {string} label what it opens, for those who do not see it
 * @property {string} panel id of what it opens
 */

/** @type {import('./elements.js').Mount<{value: Opener | null}>} */
export function mount(element, _trigger, props, watch) {
  const button = finder(element)('opener');
  const panel = () => document.getElementById(props.value?.panel ?? '');
  const close = opens(button, panel, (shown, isOpen) => shown.classList.toggle('vv-opened', isOpen));
  const draw = () => {
    button.textContent = props.value?.words ?? '';
    button.setAttribute('aria-label', props.value?.label ?? '');
    button.title = props.value?.label ?? '';
    button.setAttribute('aria-controls', props.value?.panel ?? '');
  };
  watch('value', () => {
    draw();
    close();
  });
  draw();
}
