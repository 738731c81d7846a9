// How alike the positions of any two places are: a small map for each place, one of them enlarged beside the same place on the photo,
// and the curve of likeness over distance. All small maps are fetched once; the pointer enlarges one without asking the server.

import { unpackHalf } from '../../explorer/attention.js';
import { cellAt, movedPatch, patchRect, placeIn, pointerIn } from '../../explorer/geometry.js';
import { bytesOf, Picture, tableIndex } from '../../explorer/paint.js';
import { askForFigure } from '../../explorer/source.js';
import { byPointer, fetched, finder, having, make, makeSvg, onArrows, onPress } from '../kit/elements.js';
import { short, showBar } from '../kit/numbers.js';
import { letReadCells } from '../kit/picture.js';
import { newStage, ringAt } from '../kit/stage.js';
/** @import { Photo } from '../kit/stage.js' */

/**
 * @typedef {[number, number]} Place row, col
 *
 * What is drawn of the positions; numbers are base64 of fp32.
 * @typedef {object} Similarity
 * @property {string} tiles where the small maps are fetched: float16 [rows / every, cols / every, rows, cols]
 * @property {number} every of how many places in either direction one has a small map
 * @property {string} unit
 * @property {number} cell width of a patch over its height, on the photo
 * @property {Photo} photo with the grid of the positions
 * @property {Place} place the one that is pinned, or in the middle
 * @property {string} row its likeness with all places
 * @property {{name: string, values: string} | null} prefix a token beside the patches that has a position
 * @property {string} title
 * @property {string} about
 * @property {string} direction
 * @property {string} mean of likeness by distance
 * @property {string} low
 * @property {string} high
 * @property {number[]} pairs
 * @property {string[]} saved addresses of the figures of all, of one, and of the prefix token
 */

/** @type {[number, number]} */
const RANGE = [-1, 1];
const MOST_TICKS = 7;
const TARGET = 600; // pixels of the longer side of all small maps

/** Numbers from base64 of little-endian fp32. */
export function readFloats(/** @type {string} */ text) {
  return new Float32Array(bytesOf(text).buffer);
}

/**
 * Paints all small maps, each cell as a square of so many pixels that together they are about as large as on the screen, a clear line
 * of one pixel between two maps.
 * @param {Picture} picture @param {Float32Array} values @param {Place} shown rows and columns of maps @param {Place} grid of each
 * @param {Uint32Array} table
 */
export function paintTiles(picture, values, [down, across], [rows, cols], table) {
  const zoom = Math.max(1, Math.round(TARGET / Math.max(down * rows, across * cols)));
  const [tall, wide] = [rows * zoom + 1, cols * zoom + 1];
  const stride = across * wide - 1;
  picture.resize(stride, down * tall - 1);
  picture.pixels.fill(0);
  for (let cell = 0; cell < values.length; cell++) {
    const [tile, place] = [Math.floor(cell / (rows * cols)), cell % (rows * cols)];
    const top = Math.floor(tile / across) * tall + Math.floor(place / cols) * zoom;
    const left = (tile % across) * wide + (place % cols) * zoom;
    const colour = table[tableIndex(values[cell], ...RANGE)];
    for (let row = top; row < top + zoom; row++)
      picture.pixels.fill(colour, row * stride + left, row * stride + left + zoom);
  }
  picture.show();
}

/** A distance in words. */
export function stepWords(/** @type {number} */ step, /** @type {number[]} */ [mean, low, high], pairs = 0) {
  const apart = step === 1 ? '1 step' : `${step} steps`;
  const ends = `a tenth below ${low.toFixed(2)}, a tenth above ${high.toFixed(2)}`;
  return `${apart} apart: ${mean.toFixed(2)} on average of ${pairs} pairs; ${ends}.`;
}

/** The similarity part of the tab. */
export class Places {
  /** @type {Similarity | null} */ told = null;
  /** @type {Float32Array | null} the small maps */ values = null;
  /** @type {Place | null} the place under the pointer */ spot = null;
  from = '';

  /**
   * @param {HTMLElement} element @param {Uint32Array} table
   * @param {(place: {row: number, col: number}) => void} pin
   */
  constructor(element, table, pin) {
    this.find = finder(element);
    this.table = table;
    this.pin = pin;
    this.tiles = this.find('places-tiles');
    this.all = new Picture(/** @type {HTMLCanvasElement} */ (this.tiles.querySelector('canvas')));
    this.ring = this.tiles.appendChild(ringAt(placeIn([0, 0, 1, 1], [0, 0, 1, 1])));
    this.one = new Picture();
    const { figure, stage } = newStage('the same place on the photo');
    this.stage = stage;
    this.photo = figure;
    having(stage.element, {
      tabindex: 0,
      role: 'application',
      'aria-label': 'The photo. Arrow keys choose a place.',
    });
    onPress(element, 'save', (which) => askForFigure(element, this.told?.saved[Number(which)] ?? ''));
    this.listen();
  }

  listen() {
    const pointAt = (/** @type {Place | null} */ place) => {
      if (String(place) === String(this.spot)) return;
      this.spot = place;
      this.enlarge();
    };
    const choose = (/** @type {Place | null} */ place) => place && this.pin({ row: place[0], col: place[1] });
    this.tiles.addEventListener('pointermove', (event) => pointAt(this.placeAt(event)));
    this.tiles.addEventListener('click', (event) => choose(this.placeAt(event)));
    onArrows(this.tiles, (step) => choose(this.besides(step)));
    const { element } = this.stage;
    element.addEventListener('pointermove', (event) => pointAt(this.mapped(this.stage.cellAt(event))));
    element.addEventListener('click', (event) => choose(this.stage.cellAt(event)));
    onArrows(element, (step) => choose(this.besides(step)));
    for (const part of [this.tiles, element]) part.addEventListener('pointerleave', () => pointAt(null));
  }

  /** The place of the small map under a pointer. @returns {Place | null} */
  placeAt(/** @type {PointerEvent | MouseEvent} */ event) {
    const cell = this.told && cellAt(pointerIn(event, this.tiles), this.shown());
    return cell && this.mapped(/** @type {Place} */ (cell.map((n) => n * (this.told?.every ?? 1))));
  }

  /** The nearest place that has a small map. @param {Place | null} place @returns {Place | null} */
  mapped(place) {
    const every = this.told?.every ?? 1;
    return place && /** @type {Place} */ (place.map((n) => n - (n % every)));
  }

  /** How many rows and columns of small maps there are. @returns {Place} */
  shown() {
    const { photo, every } = /** @type {Similarity} */ (this.told);
    return [Math.ceil(photo.grid[0] / every), Math.ceil(photo.grid[1] / every)];
  }

  /** The place beside the pinned one. @param {Place} step @returns {Place | null} */
  besides(step) {
    if (!this.told) return null;
    const { place, photo } = this.told;
    const [, cols] = photo.grid;
    const patch = movedPatch(place[0] * cols + place[1], step, photo.grid);
    return [Math.floor(patch / cols), patch % cols];
  }

  /** Draws what it is told; the small maps when they have come. @param {Similarity} told @param {() => boolean} isStill */
  async show(told, isStill) {
    const isKept = this.from === told.tiles;
    const buffer = isKept ? null : await (await fetched(told.tiles)).arrayBuffer();
    if (!isStill()) return;
    this.told = told;
    if (buffer) {
      this.values = unpackHalf(buffer, 0, buffer.byteLength / 2);
      this.from = told.tiles;
      paintTiles(this.all, this.values, this.shown(), told.photo.grid, this.table);
    }
    this.spot = null;
    this.words(told);
    this.pair(told);
    drawPlot(this.find('places-plot'), told, (words) => (this.find('places-step').textContent = words));
    this.enlarge();
  }

  words(/** @type {Similarity} */ { title, about, unit, every, photo, cell }) {
    const [rows, cols] = photo.grid;
    for (const part of [this.tiles, this.find('places-pair')])
      part.style.setProperty('--vv-aspect', String((cell * cols) / rows));
    showBar(this.find, ['-1', '1'], unit, this.table);
    const thinned = every > 1 ? `one in ${every} in either direction; ` : '';
    this.find('places-caption').textContent =
      `one small map per place, laid out like the photo; ${thinned}${byPointer('point at one, or choose it by a click', 'choose one by a tap')}`;
    this.find('places-title').textContent = title;
    this.find('places-about').textContent = about;
  }

  /** The enlarged map, the photo, and the map of a prefix token that has a position. */
  pair(/** @type {Similarity} */ { photo, cell, prefix }) {
    const [rows, cols] = photo.grid;
    this.one.resize(cols, rows);
    this.caption = make('span');
    const figures = [this.mapOf(this.one, 'Likeness of one place with all', cell, this.caption, 1)];
    this.stage.place(photo);
    figures.push(this.photo);
    if (prefix) {
      const words = make('span', '', `${prefix.name} with all places`);
      const picture = new Picture(make('canvas'), cols, rows);
      const values = readFloats(prefix.values);
      picture.paint(values, this.table, RANGE);
      figures.push(this.mapOf(picture, `Likeness of ${prefix.name} with all places`, cell, words, 2, values));
    }
    this.find('places-pair').replaceChildren(...figures);
    this.find('places-read').textContent = '';
  }

  /**
   * A map whose cells can be read, and the button that saves it.
   * @param {Picture} picture @param {string} label @param {number} cell @param {HTMLElement} caption @param {number} save
   * @param {Float32Array} [values] those of the enlarged place where there are none
   */
  mapOf(picture, label, cell, caption, save, values) {
    const { photo, unit } = /** @type {Similarity} */ (this.told);
    const [rows, cols] = photo.grid;
    const cells = make('div', 'vv-cells', picture.canvas);
    cells.style.aspectRatio = String((cell * cols) / rows);
    letReadCells(cells, photo.grid, label, (row, col) => {
      const value = (values ?? this.enlarged())[row * cols + col];
      const from = values ? '' : `place (${this.chosen().join(', ')}) `;
      this.find('places-read').textContent = `${from}with place (${row}, ${col}): ${unit} ${short(value)}`;
    });
    const button = having(make('button', 'vv-button', 'Save'), { type: 'button', 'data-save': save });
    return make('figure', 'vv-stack', cells, make('figcaption', 'vv-small', caption, button));
  }

  /** The place that is enlarged. */
  chosen() {
    return this.spot ?? /** @type {Similarity} */ (this.told).place;
  }

  /** Its likeness with all places. */
  enlarged() {
    const told = /** @type {Similarity} */ (this.told);
    if (!this.spot || !this.values) return readFloats(told.row);
    const [, across] = this.shown();
    const count = told.photo.grid[0] * told.photo.grid[1];
    const tile = (this.spot[0] / told.every) * across + this.spot[1] / told.every;
    return this.values.subarray(tile * count, (tile + 1) * count);
  }

  /** Draws the chosen place: its map, and rings where it lies among the small maps and on the photo. */
  enlarge() {
    if (!this.told) return;
    const { photo, every } = this.told;
    const [row, col] = this.chosen();
    const [down, across] = this.shown();
    this.one.paint(this.enlarged(), this.table, RANGE);
    const [top, left] = [Math.floor(row / every), Math.floor(col / every)];
    Object.assign(this.ring.style, placeIn([top, left, top + 1, left + 1], [0, 0, down, across]));
    this.stage.ring([], [[patchRect(photo.crop, row, col, photo.grid), 'vv-ring']]);
    if (this.caption) this.caption.textContent = `place (${row}, ${col}) with all places`;
  }
}

/**
 * The curve of likeness over distance: the mean, and the band that eight in ten pairs lie in.
 * @param {HTMLElement} place @param {Similarity} told @param {(words: string) => void} tell
 */
export function drawPlot(place, told, tell) {
  const [mean, low, high] = [told.mean, told.low, told.high].map(readFloats);
  const count = mean.length;
  const floor = Math.min(...low) < 0 ? -1 : 0;
  const at = (/** @type {number} */ step, /** @type {number} */ value) =>
    `${(100 * (step + 0.5)) / count},${(100 * (1 - value)) / (1 - floor)}`;
  const line = (/** @type {Float32Array} */ values) => Array.from(values, (value, step) => at(step, value));
  const picture = makeSvg('svg', {
    viewBox: '0 0 100 100',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  const zero = at(0, 0).split(',')[1];
  picture.append(
    makeSvg('polygon', {
      class: 'vv-places-band',
      points: [...line(high), ...line(low).reverse()].join(' '),
    }),
    makeSvg('line', { class: 'vv-places-zero', x1: 0, x2: 100, y1: zero, y2: zero }),
    makeSvg('polyline', { class: 'vv-places-mean', points: line(mean).join(' ') }),
  );
  const curve = make('div', 'vv-places-curve', /** @type {any} */ (picture));
  const caption = `steps of a patch, in a straight line; line: mean of all pairs, band: 10% to 90% of them. ${told.direction}`;
  letReadCells(curve, [1, count], 'Likeness by distance. Arrow keys read it.', (_row, step) =>
    tell(stepWords(step, [mean[step], low[step], high[step]], told.pairs[step])),
  );
  const values = floor ? ['1', '0', '-1'] : ['1', '0'];
  const scale = make('div', 'vv-places-scale vv-small', ...values.map((value) => make('span', '', value)));
  place.replaceChildren(scale, curve, ticksOf(count), make('p', 'vv-places-key vv-small', caption));
  tell('');
}

/** Numbers below the curve, so few that they stay apart. */
function ticksOf(/** @type {number} */ count) {
  const every = Math.ceil(count / MOST_TICKS);
  const ticks = [];
  for (let step = 0; step < count; step += every) {
    const tick = make('span', '', String(step));
    tick.style.left = `${(100 * (step + 0.5)) / count}%`;
    ticks.push(tick);
  }
  return make('div', 'vv-places-steps vv-small', ...ticks);
}
