// The pictures of this visit: the samples, and what its visitor brought.

import { effect } from '../kit/preact.js';
import { theHeader } from './header.js';
import { Tray } from './pictures.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */
/** @import { Picture } from './pictures.js' */

const GONE = 'This picture is not here any more; please bring it again.';

/** @type {Mount<{}>} */
export function mount(element) {
  showTray(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showTray(element, { store, ask, tray, image, problem, renewTray }) {
  const box = new Tray(element, async ({ id, own }) => {
    problem.value = '';
    const known = own ? (await ask('tray', { view: '' })).pictures : [{ id }];
    if (known.some((/** @type {Picture} */ one) => one.id === id)) return store.look({ image: id });
    problem.value = GONE;
    renewTray();
  });
  effect(() => {
    const { pictures, aspects } = tray.value;
    box.draw({ pictures, aspects, chosen: image.value });
  });
}
