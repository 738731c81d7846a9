// How far to believe the chosen map: the curve of the answer while its patches go or come, beside random orders, and sentences.

import { finder, make, showText } from '../../ui/kit/elements.js';
import { Fall } from './fall.js';
/** @import { Method, Trust } from './card.js' */

const UNTESTED = 'Not compared with random orders of patches yet.';

/** The lower part of the gallery. */
export class Belief {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.find = finder(element);
    this.fall = new Fall(this.find('fall'));
    window.addEventListener('vv-taken', (event) =>
      this.fall.mark(Number(/** @type {CustomEvent} */ (event).detail)),
    );
  }

  /**
   * @param {Method | undefined} method that is chosen
   * @param {Trust | undefined} trust
   * @param {{weights?: string, of?: string, target?: string}} [more] what became of it when the weights were re-initialised; the class of
   *     the test, where it is another one; and the class of the map
   */
  draw(method, trust, { weights = '', of = '', target = '' } = {}) {
    const other = trust ? of : ''; // the class of the test, where it is another one than that of the maps
    this.find('belief').hidden = !method;
    if (!method) return;
    const said = trust?.error ? [trust.error] : (trust?.sentences ?? [UNTESTED]);
    const whose = other ? [`Measured for ${other}, not for ${target} yet.`] : [];
    const lines = [...whose, ...said, ...(weights ? [weights] : [])];
    this.find('said').replaceChildren(...lines.map((line) => make('p', '', line)));
    showText(this.find('shows'), method.shows && `Shows ${method.shows}`);
    showText(this.find('hides'), method.hides && `Does not show ${method.hides}`);
    this.fall.draw(trust, `${method.label}${other && ` for ${other}`}`, !other);
  }
}
