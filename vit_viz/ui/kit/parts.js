// The small components of the page: what opens a part of it, and what saves a figure.

import { askForFigure } from '../../explorer/source.js';
import { currentLink } from '../visit/link.js';
import { drawValue, finder, opens } from './elements.js';
/** @import { Mount } from './elements.js' */

/**
 * @typedef {object} Opener
 * @property {string} words what stands on the button
 * @property {string} label what it opens, for those who do not see it
 * @property {string} panel id of what it opens
 */

/** @type {Mount<{value: Opener | null}>} */
export function mountOpener(element, _trigger, props, watch) {
  const button = finder(element)('opener');
  const panel = () => document.getElementById(props.value?.panel ?? '');
  const close = opens(button, panel, (shown, isOpen) => shown.classList.toggle('vv-opened', isOpen));
  drawValue(watch, () => {
    button.textContent = props.value?.words ?? '';
    button.setAttribute('aria-label', props.value?.label ?? '');
    button.title = props.value?.label ?? '';
    button.setAttribute('aria-controls', props.value?.panel ?? '');
    close();
  });
}

/**
 * Asks for the figure of what a tab shows as it stands: what the address says, and what the tab alone knows.
 * @param {Element} element @param {string} handle
 * @param {Record<string, string | number>} [more] by the names of links
 */
export function askForShown(element, handle, more = {}) {
  const link = new URLSearchParams(currentLink());
  for (const [name, value] of Object.entries({ ...more, kind: 'shown' })) link.set(name, String(value));
  return askForFigure(element, `/vit_viz/figure/${handle}?${link}`);
}
