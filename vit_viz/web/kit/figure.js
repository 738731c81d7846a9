// A picture of a room with its caption, and what saves it.

import { askForFigure, routeUrl } from '../../explorer/source.js';
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
