// What keys go through: the patches of a photo, and a table of which one cell takes part in the tab order.

import { centreOf, movedPatch } from '../../explorer/geometry.js';
import { byKeys } from '../../ui/kit/elements.js';
import { html, useSignal } from './preact.js';
/** @import { Signal } from './preact.js' */

/**
 * Lets keys point at the patches of a photo, from the chosen one or the centre on.
 * @param {object} of
 * @param {[number, number]} of.grid
 * @param {number} [of.pinned] the chosen one
 * @param {(patch: number | null) => void} [of.point] told what is pointed at
 * @param {(patch: number | null, event: KeyboardEvent) => unknown} of.choose null: lets go of what is chosen
 * @param {Signal<number | null>} [of.cursor] holds what is pointed at, where others need it, too
 * @returns what is pointed at, what points elsewhere, and the listeners to keys
 */
export function usePointing({ grid, pinned, point, choose, cursor }) {
  const own = useSignal(/** @type {number | null} */ (null));
  const at = cursor ?? own;
  const leave = (/** @type {number | null} */ patch = null) => {
    if (at.peek() === patch) return;
    at.value = patch;
    point?.(patch);
  };
  const beside = (/** @type {[number, number]} */ step) => {
    const from = at.peek() ?? pinned;
    return from === undefined ? centreOf(grid) : movedPatch(from, step, grid);
  };
  const onKeyDown = byKeys({ at: () => at.peek(), beside, point: leave, choose });
  return { at, leave, keys: { onKeyDown, onBlur: () => leave() } };
}

/** What takes the focus in a cell. @param {Element | undefined} cell */
function seatOf(cell) {
  return /** @type {HTMLElement | null | undefined} */ (
    cell?.matches('[tabindex]') ? cell : cell?.querySelector('[tabindex]')
  );
}

/** The focus points at cells, over those that do not take it; what is a button in a cell hears Enter itself. @param {KeyboardEvent} event */
function walk(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const cell = target.closest('td');
  if (!cell) return;
  byKeys({
    at: () => target,
    beside([down, right]) {
      const rows = [.../** @type {Element} */ (cell.closest('table')).querySelectorAll('tr')];
      const line = /** @type {Element} */ (cell.parentElement);
      let [row, col] = [rows.indexOf(/** @type {any} */ (line)), [...line.children].indexOf(cell)];
      let next;
      do next = rows[(row += down)]?.children[(col += right)];
      while (next && !seatOf(next));
      return seatOf(next);
    },
    point: (place) => (place ? place.focus() : false),
    choose: () => cell === target && cell.click(),
  })(event);
}

/**
 * A table: the heading of each column, and rows of a heading and cells, which are `td`. What can be chosen has a tabindex, of which one
 * is 0; `vv-face` is what shows that it is chosen or pointed at.
 * @param {object} props
 * @param {string} [props.label]
 * @param {any} [props.corner] what the rows are
 * @param {[words: any, said?: string][]} props.columns
 * @param {{key: string | number, head: any, said?: string, cells: any, more?: Record<string, any>}[]} props.rows
 * @param {number} [props.bands] how often the headings are repeated beside each other
 * @param {string} [props.look] more classes
 * @param {Record<string, any>} [props.more] attributes and listeners
 */
export function Grid({ label, corner = 'layer', columns, rows, bands = 1, look = '', more }) {
  const headings = [[corner], ...columns].map(
    ([words, said], place) =>
      html`<th scope="col" role="columnheader" class=${place ? undefined : 'vv-corner'} aria-label=${said}>
        ${words}
      </th>`,
  );
  return html`<table class=${`vv-grid ${look}`} role="grid" aria-label=${label} onKeyDown=${walk} ...${more}>
    <thead>
      <tr role="row">
        ${Array.from({ length: bands }, () => headings)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ({ key, head, said, cells, more: about }) =>
          html`<tr role="row" key=${key} ...${about}>
            <th scope="row" role="rowheader" aria-label=${said}>${head}</th>
            ${cells}
          </tr>`,
      )}
    </tbody>
  </table>`;
}
