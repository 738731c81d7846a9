// The pictures of a visit as buttons, one of them pressed. Names come from strangers and are written as plain text.

import { finder, having, make } from '../../ui/kit/elements.js';
import { expectPhoto } from '../../ui/visit/photo_aspect.js';

/**
 * @typedef {{id: string, name: string, thumbnail: string, own?: boolean}} Picture
 * @typedef {{pictures: Picture[], chosen: string, aspects?: Record<string, number>}} Pictures aspects: width over height, by id
 */

export class Tray {
  /** @type {Map<string, HTMLElement>} */ buttons = new Map();
  shown = '';

  /** @param {HTMLElement} element @param {(picture: Picture) => void} choose */
  constructor(element, choose) {
    this.box = finder(element)('samples');
    this.choose = choose;
  }

  /** @param {Pictures} value */
  draw({ pictures, chosen, aspects }) {
    const { box, buttons } = this;
    if (chosen && aspects) expectPhoto(chosen, aspects);
    const ids = pictures.map(({ id }) => id);
    for (const id of buttons.keys()) if (!ids.includes(id)) buttons.delete(id);
    for (const picture of pictures)
      if (!buttons.has(picture.id)) buttons.set(picture.id, this.button(picture));
    const wanted = ids.map((id) => /** @type {HTMLElement} */ (buttons.get(id)));
    if (wanted.length !== box.childElementCount || wanted.some((node, place) => box.children[place] !== node))
      box.replaceChildren(...wanted); // only then: the focus stays where it is
    for (const [id, node] of buttons) node.setAttribute('aria-pressed', String(id === chosen));
    if (this.shown && this.shown !== chosen)
      buttons.get(chosen)?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
    this.shown = chosen;
  }

  button(/** @type {Picture} */ picture) {
    const { name, thumbnail, own } = picture;
    const node = make('button', 'vv-sample', having(make('img'), { src: thumbnail, alt: '' }));
    having(node, { title: name, 'aria-label': own ? `Your picture ${name}` : `Sample image ${name}` });
    node.addEventListener('click', () => this.choose(picture));
    return node;
  }
}
