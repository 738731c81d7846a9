// A picture with its caption, colour bar and rings around the pinned patches. The picture comes from the server by its address.

import { cellAt, movedPatch, placeIn, pointerIn } from '../../explorer/geometry.js';
import { askForFigure, routeUrl } from '../../explorer/source.js';
import { finder, having, onArrows, showText } from './elements.js';
import { showBar } from './numbers.js';
import { cellUnder, ringAt } from './stage.js';
/** @import { ColourBar } from './elements.js' */

/**
 * @typedef {[number, number, number, number]} Rect top, left, bottom, right in pixels of the original photo
 *
 * @typedef {object} Drawn
 * @property {string} src
 * @property {string} alt
 * @property {string} [save] address of the file to save
 * @property {string} [figure] address of the same as a figure, in a format and size to choose
 * @property {string} [caption]
 * @property {string} [note]
 * @property {boolean} [pick] whether it can be clicked
 * @property {Rect} area what of the photo it shows
 * @property {Rect[] | null} [rings]
 * @property {ColourBar & {unit: string}} [bar]
 * @property {{grid: [number, number], region: [number, number, number, number], texts: string[]}} [cells] what each patch says
 */

const NOT_FETCHED = 'This picture could not be fetched; please reload the page.';

/** Says the number under the pointer. @param {ReturnType<typeof finder>} find @param {PointerEvent} event @param {Drawn} value */
export function showTip(find, event, { cells, area }) {
  const tip = find('tip');
  const cell = cells && cellUnder(event, find('image'), area, cells.region, cells.grid);
  if (!cells || !cell) return;
  const [row, col] = cell;
  const box = find('frame').getBoundingClientRect();
  const near = event.clientX - box.left > box.width - 230;
  tip.textContent = `row ${row}, column ${col}: ${cells.texts[row * cells.grid[1] + col]}`;
  tip.style.left = near ? '' : `${event.clientX - box.left + 14}px`;
  tip.style.right = near ? `${box.right - event.clientX + 14}px` : '';
  tip.style.top = `${Math.max(0, event.clientY - box.top - 30)}px`;
  tip.hidden = false;
}

/** What the component shows. */
export class Picture {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.find = finder(element);
    this.image = /** @type {HTMLImageElement} */ (this.find('image'));
    this.figure = '';
    /** @type {Drawn | null} what is shown, unless another is on its way */
    this.drawn = null;
    this.find('save').addEventListener('click', (event) => {
      if (this.figure && askForFigure(element, this.figure)) event.preventDefault();
    });
  }

  /** Another one is on its way. */
  wait() {
    this.drawn = null;
    this.element.classList.add('vv-busy');
  }

  /** @param {Drawn} value */
  show(value) {
    this.wait();
    this.drawn = value;
    this.fetch(value);
    this.size(value);
    this.label(value);
  }

  /** Says in a sentence why there is none. @param {string} words */
  fail(words) {
    this.drawn = null;
    this.element.classList.remove('vv-busy');
    this.image.hidden = true;
    this.find('rings').replaceChildren();
    this.bar(undefined);
    showText(this.find('caption'), '');
    this.find('save').hidden = true;
    showText(this.find('empty'), words);
  }

  /** Lets the browser fetch the picture; until it is there the old one stays, dimmed. @param {Drawn} value */
  fetch(value) {
    const { image } = this;
    const { src, rings, area } = value;
    const isNewest = () => value === this.drawn;
    const loaded = () => {
      if (!isNewest()) return;
      this.element.classList.remove('vv-busy');
      this.find('rings').replaceChildren(...(rings ?? []).map((rect) => ringAt(placeIn(rect, area))));
    };
    image.onload = loaded;
    const failed = () => isNewest() && this.fail(NOT_FETCHED);
    // a server that does not answer is told of once, for the whole page: then this request waits
    image.onerror = () => void fetch(routeUrl(src), { credentials: 'same-origin' }).then(failed, failed);
    image.hidden = false;
    if (image.getAttribute('src') === routeUrl(src)) loaded();
    else image.setAttribute('src', routeUrl(src));
  }

  size(/** @type {Drawn} */ { area }) {
    const ratio = area ? (area[3] - area[1]) / (area[2] - area[0]) : 0;
    this.image.style.aspectRatio = ratio ? String(ratio) : '';
    this.find('frame').style.width = ratio ? `calc(${ratio} * var(--vv-tallest))` : '100%';
  }

  label(/** @type {Drawn} */ { alt, pick, caption, note, bar, save: file, figure }) {
    const stage = this.find('frame');
    this.image.alt = alt;
    stage.setAttribute('role', pick ? 'application' : 'img');
    stage.setAttribute('aria-label', alt + (pick ? ' Arrow keys move the query.' : ''));
    stage.classList.toggle('vv-pickable', Boolean(pick));
    showText(this.find('empty'), '');
    showText(this.find('caption'), caption);
    showText(this.find('note'), note);
    this.bar(bar);
    const save = /** @type {HTMLAnchorElement} */ (this.find('save'));
    save.hidden = !file;
    save.textContent = figure ? 'Save' : 'Save PNG';
    this.figure = figure ?? '';
    if (file) save.href = routeUrl(file);
  }

  bar(/** @type {Drawn['bar']} */ scale) {
    this.find('bar').hidden = !scale;
    if (!scale) return;
    showBar(this.find, [scale.low, scale.high], scale.unit, scale.stops);
  }
}

/**
 * Lets each cell of a picture be read; a ring shows which one is meant.
 * @param {HTMLElement} element the picture, which the ring is put into
 * @param {[number, number]} grid rows, cols
 * @param {string} label what the picture is
 * @param {(row: number, col: number) => void} read
 */
export function letReadCells(element, grid, label, read) {
  const [rows, cols] = grid;
  const marker = ringAt(placeIn([0, 0, 1, 1], [0, 0, rows, cols]));
  let at = 0;
  marker.hidden = true;
  const show = (/** @type {number} */ cell) => {
    at = cell;
    const [row, col] = [Math.floor(cell / cols), cell % cols];
    Object.assign(marker.style, placeIn([row, col, row + 1, col + 1], [0, 0, rows, cols]));
    marker.hidden = false;
    read(row, col);
  };
  element.classList.add('vv-cells');
  having(element, { tabindex: 0, role: 'application', 'aria-label': label }).append(marker);
  element.addEventListener('pointermove', (event) => {
    const cell = cellAt(pointerIn(event, element), grid);
    if (cell) show(cell[0] * cols + cell[1]);
  });
  onArrows(element, (step) => show(movedPatch(at, step, grid)));
}
