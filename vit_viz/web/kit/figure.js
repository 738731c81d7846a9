// A picture of a room with its caption, and what saves what a room shows.

import { askForFigure, routeUrl } from '../../explorer/source.js';
import { currentLink } from '../../ui/visit/link.js';
import { html } from './preact.js';

/**
 * A figure; `save` is the address of what is saved of it, in a format and size to choose.
 * @param {{id: string, caption: string, save: string, children: any}} props
 */
export function Figure({ id, caption, save, children }) {
  const ask = (/** @type {MouseEvent} */ event) => {
    if (askForFigure(/** @type {Element} */ (event.currentTarget), save)) event.preventDefault();
  };
  return html`<figure id=${id} class="vv-sheet">
    ${children}
    <figcaption class="vv-caption-line">
      <span class="vv-caption">${caption}</span>
      <a class="vv-save" data-save download href=${routeUrl(save)} onClick=${ask}>Save</a>
    </figcaption>
  </figure>`;
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
