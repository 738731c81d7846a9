// A picture of a room with its caption, and what saves it.

import { askForFigure } from '../../explorer/source.js';
import { html } from './preact.js';
/** @import { Saved } from '../../explorer/source.js' */

/**
 * A figure; `save` is what is saved of it, in a format and size to choose.
 * @param {{id: string, caption: string, save: Saved, children: any}} props
 */
export function Figure({ id, caption, save, children }) {
  return html`<figure id=${id} class="vv-sheet">
    ${children}
    <figcaption class="vv-caption-line">
      <span class="vv-caption">${caption}</span>
      <${SaveLink} save=${save} />
    </figcaption>
  </figure>`;
}

/** What saves the picture above it. @param {{save: Saved, hidden?: boolean}} props */
export function SaveLink({ save, hidden }) {
  const ask = (/** @type {any} */ { currentTarget }) => askForFigure(currentTarget, save);
  return html`<button type="button" class="vv-save vv-bare" data-save hidden=${hidden} onClick=${ask}>
    Save
  </button>`;
}
