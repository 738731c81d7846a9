// The table of heads: a row per layer, a cell per head, painted by value. One cell takes part in the tab order; arrow keys move it.

import { clamp } from '../../explorer/geometry.js';
import { tableIndex } from '../../explorer/paint.js';
import { fillTable, having, make, onArrows } from '../../ui/kit/elements.js';
import { cellText, headWords, orderOf, valueWords } from './words.js';
/** @import { Place, Table } from './words.js' */

/**
 * @typedef {{colours: Uint32Array, ends: [number, number], order: string, nameOf: (place: Place) => string}}
 *   Look ends: of the colours; nameOf: what a head is called; '' where it has no name
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
  /** @type {HTMLElement[][]} by layer and place in the row */ cells = [];
  /** @type {HTMLElement[]} */ headings = [];
  /** @type {HTMLElement[]} of the layers */ names = [];
  /** @type {number[][]} */ orders = [];

  /** @param {HTMLElement} table */
  constructor(table) {
    this.table = table;
  }

  /** Lets a click, Enter and the space bar choose a head, and the arrow keys go from one to the next. @param {(place: Place) => void} choose */
  onChoice(choose) {
    this.table.addEventListener('click', ({ target }) => {
      const place = placeOf(target);
      if (place) choose(place);
    });
    this.table.addEventListener('keydown', (event) => {
      const place = placeOf(event.target);
      if (!place || (event.key !== 'Enter' && event.key !== ' ')) return;
      event.preventDefault();
      choose(place);
    });
    onArrows(this.table, (step, { target }) => {
      const place = placeOf(target);
      if (!place) return false;
      return void this.cellOf(this.moved(place, step))?.focus();
    });
  }

  /** @param {number} layers @param {number} heads */
  lay(layers, heads) {
    if (this.cells.length === layers && this.cells[0]?.length === heads) return;
    this.table.style.setProperty('--vv-count', String(heads));
    this.headings = Array.from({ length: heads }, () => having(make('th'), { scope: 'col' }));
    const corner = having(make('th', 'vv-heads-corner', 'layer'), { scope: 'col' });
    const newCell = () => having(make('td', '', ...this.parts()), { role: 'gridcell', tabindex: -1 });
    this.cells = Array.from({ length: layers }, () => Array.from({ length: heads }, newCell));
    this.names = Array.from({ length: layers }, (_, layer) =>
      having(make('th', '', String(layer)), { scope: 'row', 'aria-label': `layer ${layer}` }),
    );
    const rows = this.cells.map((cells, layer) => [this.names[layer], ...cells]);
    fillTable(this.table, [corner, ...this.headings], rows);
  }

  /** What stands in a cell. @returns {Node[]} */
  parts() {
    return [];
  }

  /** Puts the heads of each layer into an order. Returns whether that is by value. @param {Table} table @param {string} order */
  arrange(table, order) {
    this.orders = table.values.map((row) => orderOf(row, order));
    const isSorted = order === 'value';
    const count = this.headings.length;
    this.headings.forEach((heading, place) => {
      const ranked = place === 0 ? 'largest' : place === count - 1 ? 'smallest' : String(place + 1);
      heading.textContent = isSorted ? ranked : String(place);
      heading.setAttribute('aria-label', isSorted ? `rank ${place + 1}` : `head ${place}`);
    });
    return isSorted;
  }

  /**
   * Gives each cell its head, in an order, and lets it be drawn.
   * @param {Table} table @param {string} order
   * @param {(cell: HTMLElement, place: Place, value: number | null, text: string) => [string, string[]]} draw
   *   text: to be seen on the cell; returns what is seen there that the other words do not say, and these: what is heard of it
   */
  each(table, order, draw) {
    const isSorted = this.arrange(table, order);
    const hasRoom = this.headings.length <= 8;
    this.cells.forEach((cells, layer) =>
      cells.forEach((cell, place) => {
        const head = this.orders[layer][place];
        const value = table.values[layer][head];
        Object.assign(cell.dataset, { layer: String(layer), head: String(head) });
        cell.classList.toggle('vv-unknown', value === null);
        const text = isSorted ? (hasRoom ? `head ${head}` : String(head)) : cellText(value);
        const [seen, words] = draw(cell, { layer, head }, value, text);
        const number = `${headWords({ layer, head })}: ${valueWords(value, table.unit)}`;
        // what can be seen is part of what is heard, so that it can be spoken to
        const heard = [isSorted && seen === text ? '' : seen, number, ...words];
        cell.setAttribute('aria-label', heard.filter(Boolean).join('; '));
      }),
    );
  }

  /** @param {Table} table @param {Look} look */
  paint(table, { colours, ends, order, nameOf }) {
    this.each(table, order, (cell, place, value, text) => {
      const look = value === null ? { ground: '', ink: '' } : inkOn(colours, tableIndex(value, ...ends));
      Object.assign(cell.style, { backgroundColor: look.ground, color: look.ink });
      cell.textContent = text;
      return [text, [nameOf(place)]];
    });
  }

  /** Marks the chosen head, which is where the tab key leads, and the one under the pointer. */
  mark(/** @type {Place} */ chosen, /** @type {Place | null} */ hovered) {
    for (const cells of this.cells) {
      for (const cell of cells) {
        const is = (/** @type {Place | null} */ place) =>
          Number(cell.dataset.layer) === place?.layer && Number(cell.dataset.head) === place?.head;
        having(cell, { 'aria-selected': is(chosen), tabindex: is(hovered ?? chosen) ? 0 : -1 });
        cell.classList.toggle('vv-hovered', is(hovered));
      }
    }
  }

  /** The head some steps away, as the table stands. @returns {Place} */
  moved(/** @type {Place} */ { layer, head }, /** @type {[number, number]} */ [down, right]) {
    const to = clamp(layer + down, this.cells.length - 1);
    const row = this.orders[layer] ?? [];
    const place = clamp(row.indexOf(head) + right, row.length - 1);
    return { layer: to, head: this.orders[to][place] };
  }

  /** The cell of a head. */
  cellOf(/** @type {Place} */ { layer, head }) {
    return this.cells[layer]?.[this.orders[layer]?.indexOf(head)];
  }
}
