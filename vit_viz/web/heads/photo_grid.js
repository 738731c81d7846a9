// The grid of heads as small photos, each with a dot for its name, a bar for its number and a word where it is edited.

import { clamp } from '../../explorer/geometry.js';
import { having, make } from '../../ui/kit/elements.js';
import { Grid } from './grid.js';
/** @import { Place, Table } from './words.js' */

/**
 * @typedef {'off' | 'mean' | 'uniform' | 'on'} State
 *
 * @typedef {{ends: [number, number], order: string, nameOf: (place: Place) => string, kindOf: (place: Place) => string,
 *   stateOf: (place: Place) => State}} Look
 *   ends: of the bars; nameOf: what a head is called; '' where it has no name; kindOf: the rule that named it
 */

/** What stands on a head that is edited, and what is said of it. @type {Record<State, [string, string]>} */
export const STATES = {
  off: ['off', 'off'],
  mean: ['mean', 'at its mean'],
  uniform: ['uniform', 'uniform'],
  on: ['', ''],
};

/** Where a bar begins and how long it is, in shares of its track. @param {number} value @param {[number, number]} ends */
export function barOf(value, [low, high]) {
  const at = (/** @type {number} */ x) => (high > low ? clamp((x - low) / (high - low)) : 0);
  const [from, to] = [at(0), at(value)];
  return { start: Math.min(from, to), length: Math.abs(to - from) };
}

export class PhotoGrid extends Grid {
  /** The place of the photo, on which the dot and the word stand, and the bar and the number below. */
  parts() {
    const tile = make('span', 'vv-heads-tile', make('i', 'vv-heads-kind-dot'), make('b', 'vv-heads-state'));
    const number = make('span', 'vv-heads-number');
    return [tile, make('span', 'vv-heads-foot', make('i', 'vv-heads-bar'), number)];
  }

  /** Makes the numbers of the layers buttons, or text again. */
  switchRows(/** @type {boolean} */ areButtons) {
    this.names.forEach((name, layer) => {
      if (areButtons === Boolean(name.querySelector('button'))) return;
      const said = { type: 'button', 'data-all': layer, 'aria-label': `all heads of layer ${layer}` };
      const button = having(make('button', 'vv-bare', String(layer)), said);
      name.replaceChildren(areButtons ? button : String(layer));
    });
  }

  /** @param {Table} table @param {Look} look */
  show(table, { ends, order, nameOf, kindOf, stateOf }) {
    this.each(table, order, (cell, place, value, text) => {
      const state = stateOf(place);
      const [edited, how] = STATES[state];
      const [dot, word, bar, number] = partsOf(cell);
      cell.dataset.state = state;
      dot.dataset.kind = kindOf(place);
      word.textContent = edited && `${edited} `; // a space before the number, for those who listen
      number.textContent = text;
      drawBar(bar, value, ends);
      return [[edited, text].filter(Boolean).join(' '), [nameOf(place), how]];
    });
  }
}

/** @returns {HTMLElement[]} dot, word, bar, number */
function partsOf(/** @type {HTMLElement} */ cell) {
  return [...cell.children].flatMap((part) => /** @type {HTMLElement[]} */ ([...part.children]));
}

/** @param {HTMLElement} bar @param {number | null} value @param {[number, number]} ends */
function drawBar(bar, value, ends) {
  const { start, length } = value === null ? { start: 0, length: 0 } : barOf(value, ends);
  bar.style.setProperty('--from', `${(100 * start).toFixed(2)}%`);
  bar.style.setProperty('--long', `${(100 * length).toFixed(2)}%`);
  bar.toggleAttribute('data-below', value !== null && value < 0);
}
