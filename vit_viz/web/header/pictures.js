// The pictures of a visit as buttons, one of them pressed. Names come from strangers: Preact writes them as text.

import { revealCell } from '../../explorer/layout.js';
import { html, useLayoutEffect, useRef } from '../kit/preact.js';

/**
 * @typedef {{id: string, name: string, thumbnail: string, own?: boolean}} Picture
 * @typedef {{pictures: Picture[], chosen: string, aspects?: Record<string, number>}} Pictures aspects: width over height, by id
 */

/** @param {{pictures: Picture[], chosen: string, choose: (picture: Picture) => void}} props */
export function Tray({ pictures, chosen, choose }) {
  const row = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    const shown = row.current.querySelector('[aria-pressed=true]');
    if (shown) revealCell(row.current, shown, [0, 0]);
  }, [chosen, pictures]);
  return html`<div class="vv-samples" role="group" aria-label="Pictures" ref=${row}>
    ${pictures.map((picture) => {
      const { id, name, thumbnail, own } = picture;
      return html`<button
        key=${id}
        type="button"
        class="vv-sample"
        title=${name}
        aria-label=${own ? `Your picture ${name}` : `Sample image ${name}`}
        aria-pressed=${String(id === chosen)}
        onClick=${() => choose(picture)}
      >
        <img src=${thumbnail} alt="" />
      </button>`;
    })}
  </div>`;
}
