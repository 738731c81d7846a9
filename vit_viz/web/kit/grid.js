// What arrow keys go through: a picture of cells, and a table of which one cell takes part in the tab order.

import { stepOf } from '../../ui/kit/elements.js';
import { html } from './preact.js';

/**
 * A listener that goes a step with each arrow key.
 * @param {(step: [number, number], event: KeyboardEvent) => void} go told how far down and to the right
 */
export function byArrows(go) {
  return (/** @type {KeyboardEvent} */ event) => {
    const step = stepOf(event);
    if (!step) return;
    event.preventDefault();
    go(step, event);
  };
}

/** What takes the focus in a cell. @param {Element | undefined} cell */
function seatOf(cell) {
  return /** @type {HTMLElement | null | undefined} */ (
    cell?.matches('[tabindex]') ? cell : cell?.querySelector('[tabindex]')
  );
}

/** The focus goes from cell to cell, over those that do not take it; Enter and Space press the cell itself. @param {KeyboardEvent} event */
function walk(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const cell = target.closest('td');
  if (cell && cell === target && (event.key === 'Enter' || event.key === ' ')) {
    event.preventDefault();
    cell.click();
  }
  if (!cell) return;
  byArrows(([down, right]) => {
    const rows = [.../** @type {Element} */ (cell.closest('table')).querySelectorAll('tr')];
    const line = /** @type {Element} */ (cell.parentElement);
    let [row, col] = [rows.indexOf(/** @type {any} */ (line)), [...line.children].indexOf(cell)];
    let next;
    do next = rows[(row += down)]?.children[(col += right)];
    while (next && !seatOf(next));
    (seatOf(next) ?? target).focus();
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
