// The pictures of this visit: the samples, then those that the visitor brought; a click says which ('choose').

import { finder, make } from '../kit/elements.js';

/**
 * @typedef {{id: string, name: string, thumbnail: string, own?: boolean}} Picture
 * @typedef {{pictures: Picture[], chosen: string}} Pictures
 */

/** @type {import('../kit/elements.js').Mount<{value: Pictures | null}>} */
export function mount(element, trigger, props, watch) {
  const box = finder(element)('samples');
  /** @type {Map<string, HTMLElement>} */ const buttons = new Map();
  let shown = '';
  const draw = () => {
    if (!props.value) return;
    const { pictures, chosen } = props.value;
    const ids = pictures.map(({ id }) => id);
    for (const id of buttons.keys()) if (!ids.includes(id)) buttons.delete(id);
    for (const picture of pictures)
      if (!buttons.has(picture.id)) buttons.set(picture.id, button(picture, trigger));
    const wanted = ids.map((id) => /** @type {HTMLElement} */ (buttons.get(id)));
    if (wanted.length !== box.childElementCount || wanted.some((node, place) => box.children[place] !== node))
      box.replaceChildren(...wanted); // only then: the focus stays where it is
    for (const [id, node] of buttons) node.setAttribute('aria-pressed', String(id === chosen));
    if (shown && shown !== chosen)
      buttons.get(chosen)?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
    shown = chosen;
  };
  watch('value', draw);
  draw();
}

/** @param {Picture} picture @param {import('../kit/elements.js').Trigger} trigger */
function button({ id, name, thumbnail, own }, trigger) {
  const node = make('button', 'vv-sample');
  node.title = name;
  node.setAttribute('aria-label', own ? `Your picture ${name}` : `Sample image ${name}`);
  const image = make('img');
  image.src = thumbnail;
  image.alt = '';
  node.append(image);
  node.addEventListener('click', () => trigger('choose', { id }));
  return node;
}
