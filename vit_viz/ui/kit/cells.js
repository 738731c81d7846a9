// A picture of cells that can be read one by one: by the pointer, or by the arrow keys.

import { ARROWS, cellAt, movedPatch, pointerIn } from '../../explorer/geometry.js';
import { make } from './elements.js';

/**
 * Lets each cell of a picture be read; a ring shows which one is meant.
 * @param {HTMLElement} element the picture, which the ring is put into
 * @param {[number, number]} grid rows, cols
 * @param {string} label what the picture is
 * @param {(row: number, col: number) => void} read
 */
export function letReadCells(element, grid, label, read) {
  const [rows, cols] = grid;
  const ring = make('span', 'vv-ring');
  let at = 0;
  ring.hidden = true;
  const show = (/** @type {number} */ cell) => {
    at = cell;
    const [row, col] = [Math.floor(cell / cols), cell % cols];
    const style = { top: row / rows, left: col / cols, width: 1 / cols, height: 1 / rows };
    for (const [name, share] of Object.entries(style)) ring.style.setProperty(name, `${100 * share}%`);
    ring.hidden = false;
    read(row, col);
  };
  element.classList.add('vv-cells');
  element.tabIndex = 0;
  element.setAttribute('role', 'application');
  element.setAttribute('aria-label', label);
  element.append(ring);
  element.addEventListener('pointermove', (event) => {
    const cell = cellAt(pointerIn(event, element), grid);
    if (cell) show(cell[0] * cols + cell[1]);
  });
  element.addEventListener('keydown', (event) => {
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    show(movedPatch(at, step, grid));
  });
}
