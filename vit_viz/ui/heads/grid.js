// The table of heads: a row per layer, a cell per head, painted by value. One cell takes part in the tab order; arrow keys move it.

import { ARROWS } from '../../explorer/geometry.js';
import { tableIndex } from '../../explorer/paint.js';
import { make } from '../kit/elements.js';
import { cellText, headWords, orderOf, valueWords } from './words.js';

/**
 * @typedef {import('./words.js').Place} Place
 * @typedef {import('./words.js').Table} Table
 *
 * @typedef {object} Look
 * @property {Uint32Array} colours
 * @property {[number, number]} ends of the colours
 * @property {string} order
 * @property {(place: Place) => string} nameOf what a head is called; '' where it has no name
 */

/** A colour of a table, and black or white, whichever stands out more on it. @param {Uint32Array} colours @param {number} at */
export function inkOn(colours, at) {
  const [red, green, blue] = new Uint8ClampedArray(colours.buffer, colours.byteOffset + 4 * at, 3);
  const light = (/** @type {number} */ byte) => {
    const share = byte / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue);
  return { ground: `rgb(${red} ${green} ${blue})`, ink: luminance > 0.179 ? '#000' : '#fff' };
}

/** The head that an element of the table or of the plot stands for. @returns {Place | null} */
export function placeOf(/** @type {unknown} */ node) {
  const cell = node instanceof Element ? node.closest('[data-head]') : null;
  if (!(cell instanceof HTMLElement)) return null;
  return { layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) };
}

export class Grid {
  /** @param {HTMLElement} table */
  constructor(table) {
    this.table = table;
    /** @type {HTMLElement[][]} by layer and place in the row */
    this.cells = [];
    /** @type {number[][]} */
    this.orders = [];
  }

  /** @param {number} layers @param {number} heads */
  lay(layers, heads) {
    if (this.cells.length === layers && this.cells[0]?.length === heads) return;
    this.table.style.setProperty('--vv-count', String(heads));
    const line = make('tr');
    this.headings = Array.from({ length: heads }, () => make('th'));
    for (const heading of this.headings) heading.setAttribute('scope', 'col');
    const corner = make('th', 'vv-heads-corner', 'layer');
    corner.setAttribute('scope', 'col');
    line.append(corner, ...this.headings);
    this.cells = Array.from({ length: layers }, () => Array.from({ length: heads }, newCell));
    const rows = this.cells.map((cells, layer) => {
      const row = make('tr');
      const name = make('th', '', String(layer));
      name.setAttribute('scope', 'row');
      name.setAttribute('aria-label', `layer ${layer}`);
      row.append(name, ...cells);
      return row;
    });
    this.table.querySelector('thead')?.replaceChildren(line);
    this.table.querySelector('tbody')?.replaceChildren(...rows);
  }

  /** @param {Table} table @param {Look} look */
  paint(table, { colours, ends, order, nameOf }) {
    this.orders = table.values.map((row) => orderOf(row, order));
    const isSorted = order === 'value';
    const count = this.headings?.length ?? 0;
    this.headings?.forEach((heading, place) => {
      const ranked = place === 0 ? 'largest' : place === count - 1 ? 'smallest' : String(place + 1);
      heading.textContent = isSorted ? ranked : String(place);
      heading.setAttribute('aria-label', isSorted ? `rank ${place + 1}` : `head ${place}`);
    });
    this.cells.forEach((cells, layer) =>
      cells.forEach((cell, place) => {
        const head = this.orders[layer][place];
        const value = table.values[layer][head];
        dress(cell, value, colours, ends);
        const text = isSorted ? (count > 8 ? String(head) : `head ${head}`) : cellText(value);
        cell.textContent = text;
        cell.dataset.layer = String(layer);
        cell.dataset.head = String(head);
        const name = nameOf({ layer, head });
        const words = `${headWords({ layer, head })}: ${valueWords(value, table.unit)}${name && `; ${name}`}`;
        // what can be seen is part of what is heard, so that it can be spoken to
        cell.setAttribute('aria-label', text && !isSorted ? `${text}; ${words}` : words);
      }),
    );
  }

  /** Marks the chosen head, which is where the tab key leads, and the one under the pointer. */
  mark(/** @type {Place} */ chosen, /** @type {Place | null} */ hovered) {
    for (const cells of this.cells) {
      for (const cell of cells) {
        const is = (/** @type {Place | null} */ place) =>
          Number(cell.dataset.layer) === place?.layer && Number(cell.dataset.head) === place?.head;
        cell.setAttribute('aria-selected', String(is(chosen)));
        cell.setAttribute('tabindex', is(hovered ?? chosen) ? '0' : '-1');
        cell.classList.toggle('vv-hovered', is(hovered));
      }
    }
  }

  /** The head some steps away, as the table stands. @returns {Place} */
  moved(/** @type {Place} */ { layer, head }, /** @type {string} */ key) {
    const [down, right] = ARROWS[key];
    const last = this.cells.length - 1;
    const to = Math.max(0, Math.min(last, layer + down));
    const row = this.orders[layer] ?? [];
    const place = Math.max(0, Math.min(row.length - 1, row.indexOf(head) + right));
    return { layer: to, head: this.orders[to][place] };
  }

  /** The cell of a head. */
  cellOf(/** @type {Place} */ { layer, head }) {
    return this.cells[layer]?.[this.orders[layer]?.indexOf(head)];
  }
}

function newCell() {
  const cell = make('td');
  cell.setAttribute('role', 'gridcell');
  cell.setAttribute('tabindex', '-1');
  return cell;
}

/** @param {HTMLElement} cell @param {number | null} value @param {Uint32Array} colours @param {[number, number]} ends */
function dress(cell, value, colours, [low, high]) {
  cell.classList.toggle('vv-unknown', value === null);
  const look = value === null ? { ground: '', ink: '' } : inkOn(colours, tableIndex(value, low, high));
  cell.style.backgroundColor = look.ground;
  cell.style.color = look.ink;
}
