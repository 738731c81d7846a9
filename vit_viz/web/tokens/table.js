// The table of small photos: a row for each question, a column for each layer. One photo is chosen, and is the large one.

import { finder, having, make, onArrows } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { Plate } from './plate.js';
/** @import { Room } from './room.js' */
/** @import { Measure } from './views.js' */

/** @typedef {{node: HTMLElement, small: HTMLElement, canvas: HTMLCanvasElement, words: HTMLElement, state: number, drawn: string}} Cell */

const SLICE = 8; // ms of drawing in one frame: what is left is drawn in the next

/** A short name of a column: what lies before it is told once, over all. */
const HEADS = (/** @type {number} */ column) => (column ? `after ${column - 1}` : 'input');

export class Table {
  /** @type {Map<Measure, (Cell | null)[]>} */ rows = new Map();
  plate = new Plate();
  laid = '';
  size = { width: 0, height: 0 };

  /** @param {HTMLElement} element @param {() => void} scrolled */
  constructor(element, scrolled) {
    const find = finder(element);
    this.box = find('room-scroll');
    this.heads = find('room-heads');
    /** @type {Map<Measure, HTMLElement>} */
    this.lines = new Map();
    for (const line of element.querySelectorAll('tr[data-row]'))
      this.lines.set(/** @type {any} */ (line).dataset.row, /** @type {HTMLElement} */ (line));
    this.box.addEventListener('scroll', scrolled);
    onArrows(this.box, (step, { target }) => this.walk(step, /** @type {Element | null} */ (target)));
  }

  /** One cell for each question and layer. @param {Room} room @param {number} layers @param {number} aspect width of a photo over its height */
  lay(room, layers, aspect) {
    this.box.style.setProperty('--vv-aspect', String(aspect));
    this.box.style.setProperty('--vv-count', String(layers + 1));
    const offsets = [...this.lines.keys()].map((measure) => room.offsetOf(measure));
    const laid = [layers, ...offsets].join();
    if (laid === this.laid) return; // so that the focus stays where it is
    this.laid = laid;
    const columns = Array.from({ length: layers + 1 }, (_, column) => column);
    const heads = columns.map((column) => having(make('th', '', HEADS(column)), { scope: 'col' }));
    this.heads.replaceChildren(this.heads.children[0], ...heads);
    for (const [measure, line] of this.lines) {
      const cells = columns.map((column) => newCell(measure, column - room.offsetOf(measure)));
      const places = cells.map((cell) => make('td', cell ? '' : 'vv-room-none', cell?.node ?? '–'));
      line.replaceChildren(line.children[0], ...places);
      this.rows.set(measure, cells);
    }
    this.size = { width: 0, height: 0 };
  }

  /** Gives all canvases the size that their photos have on the screen. */
  fit() {
    const cell = [...this.rows]
      .filter(([measure]) => !this.isFolded(measure))
      .flatMap(([, cells]) => cells)
      .find(Boolean);
    const box = cell?.small.getBoundingClientRect();
    if (!box || box.width < 1) return;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const size = { width: Math.round(box.width * ratio), height: Math.round(box.height * ratio) };
    if (size.width === this.size.width && size.height === this.size.height) return;
    this.size = size;
    for (const one of this.all()) {
      Object.assign(one.canvas, size);
      one.drawn = '';
    }
  }

  all() {
    return [...this.rows.values()].flat().filter((cell) => cell !== null);
  }

  /** The columns that are seen, the table being wider than its box; all where nobody knows. */
  seen() {
    const { clientWidth: width, scrollLeft: left } = this.box;
    const heads = /** @type {HTMLElement[]} */ ([...this.heads.children]);
    const fixed = heads[0].offsetWidth;
    const columns = heads.slice(1).map((_, column) => column);
    if (!width) return columns;
    return columns.filter((column) => {
      const { offsetLeft: start, offsetWidth: wide } = heads[column + 1];
      return start + wide / 2 > left + fixed && start + wide / 2 < left + width;
    });
  }

  /** Scrolls a column into sight, within the table. */
  reveal(/** @type {number} */ column) {
    const [fixed, ...heads] = /** @type {HTMLElement[]} */ ([...this.heads.children]);
    const head = heads[column];
    if (!head || this.seen().includes(column)) return;
    this.box.scrollLeft =
      head.offsetLeft + head.offsetWidth / 2 - (this.box.clientWidth + fixed.offsetWidth) / 2;
  }

  isFolded(/** @type {Measure} */ measure) {
    return this.lines.get(measure)?.dataset.folded !== undefined;
  }

  fold(/** @type {Measure} */ measure, folded = true) {
    const line = this.lines.get(measure);
    line?.toggleAttribute('data-folded', folded);
    line?.querySelector('[data-fold]')?.setAttribute('aria-expanded', String(!folded));
  }

  /** Why a question has no answer, in its own row. @param {Measure} measure @param {string} [words] */
  tell(measure, words = '') {
    const place = this.lines.get(measure)?.querySelector('.vv-room-row');
    place?.querySelector('.vv-error')?.remove();
    const note = make('p', 'vv-small vv-error');
    showError(note, words);
    if (words) place?.append(note);
  }

  /** Which cell is chosen, and what stands under each. */
  say(/** @type {Room} */ room) {
    for (const [measure, cells] of this.rows) {
      if (this.isFolded(measure)) continue;
      cells.forEach((cell) => {
        if (!cell) return;
        const chosen = measure === room.options.token_measure && cell.state === room.state;
        const words = room.wordsOf(measure, cell.state);
        if (cell.words.textContent !== words) cell.words.textContent = cell.words.title = words;
        if (cell.node.getAttribute('aria-pressed') === String(chosen)) return;
        having(cell.node, { 'aria-pressed': chosen, tabindex: chosen ? 0 : -1 });
      });
    }
  }

  /** What each cell is, for those who do not see it. */
  name(/** @type {Room} */ room) {
    for (const [measure, cells] of this.rows) {
      const label = this.lines.get(measure)?.querySelector('[data-value]')?.textContent;
      cells.forEach((cell) => {
        if (!cell) return;
        cell.canvas.setAttribute('aria-label', `${label}, ${room.namesOf(measure)[cell.state]}`);
      });
    }
  }

  /**
   * Draws every small photo that is seen and shows something else by now.
   * @param {Room} room @param {number[]} seen columns @param {number} start of this frame @returns {boolean} whether nothing is left to be drawn
   */
  draw(room, seen, start) {
    const { plate } = this;
    if (!room.subject || !plate.prepare(room.big.image, room.subject.crop, this.size)) return true;
    for (const measure of room.order) {
      const cells = this.rows.get(measure) ?? [];
      for (const column of seen) {
        const cell = cells[column];
        const key = cell && room.keyOf(measure, cell.state);
        if (!cell || !key || cell.drawn === key) continue;
        room.large.drawOn(cell.canvas, plate, room.drawingOf(measure, cell.state));
        cell.drawn = key;
        if (performance.now() - start > SLICE) return false; // one at least, so that it ends
      }
    }
    return true;
  }

  /** Lets the arrow keys go from photo to photo, over what is folded or empty. */
  walk(/** @type {[number, number]} */ step, /** @type {Element | null} */ target) {
    const from = target?.closest('[data-cell]');
    if (!from) return false;
    const rows = [...this.rows].filter(([measure]) => !this.isFolded(measure)).map(([, cells]) => cells);
    let row = rows.findIndex((cells) => cells.some((cell) => cell?.node === from));
    let column = rows[row].findIndex((cell) => cell?.node === from);
    do {
      row += step[0];
      column += step[1];
    } while (rows[row]?.[column] === null);
    return void rows[row]?.[column]?.node.focus();
  }
}

/** @param {Measure} measure @param {number} state @returns {Cell | null} none where a question has no answer before the first layer */
function newCell(measure, state) {
  if (state < 0) return null;
  const canvas = having(make('canvas'), { role: 'img' });
  const small = make('span', 'vv-room-small', canvas);
  const words = make('span', 'vv-room-words');
  const node = make('button', 'vv-bare vv-room-choice', small, words);
  having(node, { 'data-cell': `${measure} ${state}`, 'aria-pressed': false, tabindex: -1 });
  return { node, small, canvas, words, state, drawn: '' };
}
