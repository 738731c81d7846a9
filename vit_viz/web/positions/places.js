// How alike the positions of any two places are: a small map for each place, one of them enlarged beside the same place on the photo,
// and the curve of likeness over distance. All small maps are fetched once; the pointer enlarges one without asking the server.

import { unpackHalf } from '../../explorer/attention.js';
import { cellAt, movedPatch, patchRect, placeIn, pointerIn } from '../../explorer/geometry.js';
import { Picture, tableIndex } from '../../explorer/paint.js';
import { askForFigure } from '../../explorer/source.js';
import {
  byPointer,
  fetched,
  finder,
  having,
  make,
  makeSvg,
  onArrows,
  onPress,
} from '../../ui/kit/elements.js';
import { short, showBar } from '../../ui/kit/numbers.js';
import { letReadCells } from '../../ui/kit/picture.js';
import { newStage, ringAt } from '../../ui/kit/stage.js';
/** @import { Photo } from '../../ui/kit/stage.js' */

/**
 * @typedef {[number, number]} Grid rows, cols
 * @typedef {{arrays: Record<string, {shape: number[], data: Float32Array}>, facts: any}} Answer
 * @typedef {(name: string, body: any, stop: AbortSignal) => Promise<Answer>} Ask
 *
 * What is drawn, and of what.
 * @typedef {object} Of
 * @property {string} model
 * @property {string} trace where the server has the view
 * @property {import('../../ui/kit/stage.js').Photo} photo with the grid of its patches
 * @property {string[]} prefix
 * @property {{questions: string[], grid: Grid | null, prefix: string[], why: string}} positions what the model has of them; why: there
 *     are none to compare
 * @property {boolean} isTrained whether the grid is that of the training, and not that of the photo
 * @property {string} query
 *
 * @typedef {[number, number]} Place row, col
 *
 * What is drawn of the positions.
 * @typedef {object} Similarity
 * @property {Float32Array} values the small maps, [rows / every, cols / every, rows, cols]
 * @property {number} every of how many places in either direction one has a small map
 * @property {string} unit
 * @property {number} cell width of a patch over its height, on the photo
 * @property {Photo} photo with the grid of the positions
 * @property {Place} place the one that is pinned, or in the middle
 * @property {Float32Array} row its likeness with all places
 * @property {{name: string, values: Float32Array} | null} prefix a token beside the patches that has a position
 * @property {string} title
 * @property {string} about
 * @property {string} direction
 * @property {Float32Array} mean of likeness by distance
 * @property {Float32Array} low
 * @property {Float32Array} high
 * @property {number[]} pairs
 * @property {string[]} saved addresses of the figures of all, of one, and of the prefix token
 */

/** @type {[number, number]} */
const RANGE = [-1, 1];
const MOST_TICKS = 7;
const TARGET = 600; // pixels of the longer side of all small maps

/** The grid that positions are shown on. @param {Of} of @returns {Grid} */
export function shownGrid({ isTrained, positions: known, photo }) {
  return (isTrained && known.grid) || photo.grid;
}

/** A grid as a question takes it; 0 is the one of the training. @param {Of} of */
export function gridAsked({ isTrained, photo: { grid } }) {
  return isTrained ? { rows: 0, cols: 0 } : { rows: grid[0], cols: grid[1] };
}

/** The place that a query pins, on the grid that is shown; else the one in the middle. @param {Of} of @returns {Grid} */
export function placeOf(of) {
  const grid = shownGrid(of);
  const { grid: own } = of.photo;
  const place = /^\s*(\d+),(\d+)/.exec(of.query)?.slice(1).map(Number);
  const along = (/** @type {0 | 1} */ axis) =>
    place ? Math.min(Math.floor((place[axis] * grid[axis]) / own[axis]), grid[axis] - 1) : grid[axis] >> 1;
  return [along(0), along(1)];
}

/**
 * Asks for all that is drawn of the positions.
 * @param {Ask} ask @param {Of} of @param {AbortSignal} stop @returns {Promise<Similarity>}
 */
export async function similarity(ask, of, stop) {
  const { model, trace, photo, positions } = of;
  if (positions.why) throw new Error(positions.why);
  const { rows, cols } = gridAsked(of);
  const [grid, place] = [shownGrid(of), placeOf(of)];
  const own = positions.prefix;
  const name = own.includes(of.query) ? of.query : own[0];
  const placeAlone = (/** @type {string} */ one) =>
    ask('positions', { model, grid: rows ? `${rows},${cols}` : '', place: one }, stop);
  const link = new URLSearchParams({
    ...(of.isTrained && { places: 'trained' }),
    ...(of.query && { q: of.query }),
  });
  const [distance, row, prefix, values] = await Promise.all([
    ask('position_distance', { model, rows, cols }, stop),
    placeAlone(place.join(',')),
    name ? placeAlone(name) : null,
    tilesAt(`/vit_viz/positions/${trace}?places=${of.isTrained ? 'trained' : 'image'}`, stop),
  ]);
  const [, , height, width] = photo.crop.region;
  const [title, ...rest] = distance.facts.note.split(/[.] |[.]$/);
  return {
    values,
    every: everyIn(values.length, grid),
    unit: row.facts.unit,
    cell: width / photo.grid[1] / (height / photo.grid[0]),
    photo: { ...photo, grid },
    place,
    row: row.arrays.values.data,
    prefix: prefix && { name, values: prefix.arrays.values.data },
    title,
    about: aboutWords(of, grid, row.facts.note),
    direction: rest
      .filter(Boolean)
      .map((/** @type {string} */ one) => `${one}.`)
      .join(' '),
    mean: distance.arrays.y.data,
    low: distance.arrays['band.low'].data,
    high: distance.arrays['band.high'].data,
    pairs: pairsIn(grid),
    saved: ['positions', 'position', ...(prefix ? ['prefix'] : [])].map(
      (kind) => `/vit_viz/figure/${trace}?kind=${kind}&${link}`,
    ),
  };
}

/** The small maps that were fetched last. @type {{address: string, values: Float32Array} | null} */
let kept = null;

/** @param {string} address @param {AbortSignal} stop */
async function tilesAt(address, stop) {
  if (kept?.address === address) return kept.values;
  const buffer = await (await fetched(address, stop)).arrayBuffer();
  kept = { address, values: unpackHalf(buffer, 0, buffer.byteLength / 2) };
  return kept.values;
}

/** Of how many places in either direction one has a small map. @param {number} count of all numbers @param {Place} grid */
export function everyIn(count, [rows, cols]) {
  let every = 1;
  while (
    every < Math.max(rows, cols) &&
    Math.ceil(rows / every) * Math.ceil(cols / every) * rows * cols > count
  )
    every += 1;
  return every;
}

/** How many pairs of places are so many steps apart, in a straight line, by the steps. @param {Place} grid */
export function pairsIn([rows, cols]) {
  /** @type {number[]} */
  const pairs = [];
  for (let down = 0; down < rows; down++)
    for (let across = down ? 1 - cols : 0; across < cols; across++) {
      const steps = Math.round(Math.hypot(down, across));
      pairs[steps] = (pairs[steps] ?? 0) + (rows - down) * (cols - Math.abs(across));
    }
  return pairs;
}

/** Where the positions come from, and who has none, in sentences. @param {Of} of @param {Place} grid @param {string} note */
export function aboutWords({ photo, prefix, positions }, grid, note) {
  const [here, shown] = [photo.grid.join(' x '), grid.join(' x ')];
  const isOwn = positions.questions.includes('resampling') && positions.grid?.join(' x ') === shown;
  const rest = here === shown ? 'this photo uses them as they are' : `this photo has ${here} patches`;
  const trained = isOwn ? `The positions were trained at ${shown}; ${rest}.` : '';
  const without = prefix.length && !positions.prefix.length ? withoutWords(prefix) : '';
  return [trained, note, without].filter(Boolean).join(' ');
}

/** Who has no position, in a sentence. @param {string[]} prefix names of tokens */
function withoutWords(prefix) {
  /** @type {Map<string, number>} */
  const kinds = new Map();
  for (const name of prefix) {
    const kind = name.replace(/[ 0-9]+$/, '');
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const names = [...kinds].map(
    ([kind, count]) => `the ${kind}${count > 1 ? 's' : ''}${kind === 'register' ? '' : ' token'}`,
  );
  const words = names.join(' and ');
  const rest = prefix.length > 1 ? 'have no position of their own' : 'has no position of its own';
  return `${words[0].toUpperCase()}${words.slice(1)} ${rest}.`;
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
  /** @type {Of | null} */ of = null;

  /**
   * @param {HTMLElement} element @param {Uint32Array} table
   * @param {(place: {row: number, col: number}, of: Of) => void} pin
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
    const choose = (/** @type {Place | null} */ place) =>
      place && this.of && this.pin({ row: place[0], col: place[1] }, this.of);
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

  /** Draws what it is told. @param {Similarity} told @param {Of} of */
  show(told, of) {
    const isKept = this.values === told.values;
    this.told = told;
    this.of = of;
    this.values = told.values;
    if (!isKept) paintTiles(this.all, this.values, this.shown(), told.photo.grid, this.table);
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
      const { values } = prefix;
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
    if (!this.spot || !this.values) return told.row;
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
  const { mean, low, high } = told;
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
