// The matrix of the chosen head, and its strongest links on the photo beside it. Both are computed here from q and k, a few rows
// between two frames of the screen; while the pointer moves, nothing is asked of the server.

import { FUSIONS } from '../../explorer/attention.js';
import { centreOf, clamp, patchQuery, queryPatches, queryTokens } from '../../explorer/geometry.js';
import { LAYER_BUDGET, LayerStore } from '../../explorer/layers.js';
import { Axis, Filling, endsOf } from '../../explorer/matrix.js';
import { measure } from '../../explorer/paint.js';
import { byPointer, finder, make, press, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { SERVER } from '../look/server_source.js';
import { showBar } from '../../ui/kit/numbers.js';
import { LinkedPhoto, MOST_LINKS } from './links.js';
import { listen } from './matrix_listen.js';
import { Panes, Sheet } from './matrix_sheet.js';
import { matrixTitle, mostWords, pairWords, sizeWords, tooLargeWords, weightText } from './matrix_words.js';
/** @import { Trace } from '../../explorer/geometry.js' */
/** @import { Store } from '../kit/store.js' */

/**
 * @typedef {{layer: number, head: number | string, query: string}} Chosen
 * @typedef {[number, number | null]} Pair cells of the query and of the key, where there is one
 */

const BUDGET = 8; // milliseconds of a frame in which rows are computed

/** What of the matrix can be chosen, by names in links. */
export const OPTIONS = Object.freeze(['matrix_scale', 'links', 'strongest', 'zoom']);

/** The matrix in an element with room.html. @param {HTMLElement} element @param {Store} store @param {Uint32Array} table of colours */
export function matrixIn(element, store, table) {
  const matrix = new Matrix(
    /** @type {HTMLElement} */ (element.querySelector('.vv-matrix-part')),
    store,
    table,
  );
  listen(matrix);
  return matrix;
}

/** The matrix, and the photo beside it. */
export class Matrix {
  /** @type {Trace | null} */ trace = null;
  /** @type {Chosen} */ chosen = { layer: 0, head: 0, query: '' };
  /** @type {LayerStore | null} */ layers = null;
  /** @type {Filling | null} */ filling = null;
  /** @type {Pair | null} under the pointer */ pointed = null;
  axis = new Axis({ grid: [1, 1], prefix: [], suffix: [] });
  panes = new Panes(this.axis);
  wanted = ''; // layer and head that are being fetched or shown
  frame = 0;
  isRefused = false; // whether this layer cannot be shown
  isStale = false; // whether the canvas shows another place or scale
  statusTimer = 0;

  /** @param {HTMLElement} element @param {Store} store @param {Uint32Array} table */
  constructor(element, store, table) {
    this.element = element;
    this.find = finder(element);
    this.store = store;
    this.table = table;
    this.photo = new LinkedPhoto(this);
    this.isLinked = OPTIONS.some((name) => store.view[name].peek() !== store.fields.get(name)?.default); // by what opened the page
    this.sheet = new Sheet(/** @type {HTMLCanvasElement} */ (this.find('matrix-canvas')), table);
    new ResizeObserver(() => this.fit()).observe(this.find('matrix-main'));
  }

  /**
   * Another picture, another model, another head or another query; null: none of these.
   * @param {Trace | null} trace @param {Chosen} [chosen]
   */
  show(trace, chosen) {
    showError(this.find('matrix-error'), '');
    this.find('matrix-main').hidden = !trace;
    if (!trace || !chosen) return;
    if (trace.trace !== this.trace?.trace) this.begin(trace);
    this.trace = trace;
    if (this.option('zoom') !== this.panes.seen) this.panes.see(this.option('zoom'));
    this.press();
    const { layer, head, query } = chosen;
    this.chosen = { layer, head, query };
    /** @type {HTMLSelectElement} */ (this.find('matrix-layer')).value = String(layer);
    /** @type {HTMLSelectElement} */ (this.find('matrix-head')).value = String(head);
    this.start();
  }

  /** What is chosen, by its name in links. */
  option(/** @type {string} */ name) {
    return this.store.view[name].peek();
  }

  /** The photo and the axis of another trace. */
  begin(/** @type {Trace} */ trace) {
    this.layers?.close();
    this.layers = new LayerStore(trace, SERVER, { ready: () => {}, failed: () => {} });
    this.axis = new Axis(trace);
    this.panes = new Panes(this.axis);
    this.pointed = null;
    this.wanted = '';
    this.photo.stage.place(trace);
    const options = (/** @type {string} */ name, /** @type {(number | string)[]} */ values) =>
      this.find(name).replaceChildren(...values.map((value) => make('option', '', String(value))));
    const first = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i);
    options('matrix-layer', first(trace.layers));
    options('matrix-head', [...first(trace.heads), ...FUSIONS]);
    this.fit();
  }

  /** Fetches the layer that is shown and computes its matrix. */
  async start() {
    const { trace, layers, chosen } = this;
    const wanted = `${trace?.trace}|${chosen.layer}|${chosen.head}`;
    if (!trace || !layers || wanted === this.wanted) return this.redraw();
    this.wanted = wanted;
    this.filling = null;
    this.isRefused = false;
    this.element.toggleAttribute('data-refused', false);
    delete this.element.dataset.ready;
    showText(this.find('matrix-caption'), matrixTitle(chosen.layer, chosen.head));
    showText(this.find('matrix-size'), sizeWords(this.axis, chosen.head));
    try {
      const layer = await layerOf(layers, chosen.layer);
      if (wanted !== this.wanted) return;
      this.filling = new Filling(layer, chosen.head, this.axis, MOST_LINKS);
      this.sheet.begin(this.axis.cells);
      showError(this.find('matrix-error'), '');
    } catch (error) {
      if (wanted !== this.wanted || layers.abort.signal.aborted) return;
      this.isRefused = true;
      this.element.toggleAttribute('data-refused', true); // nothing empty stands below the words
      showError(this.find('matrix-error'), /** @type {Error} */ (error).message, {
        again: () => this.retry(),
      });
    }
    this.redraw();
  }

  retry() {
    this.wanted = '';
    void this.start();
  }

  /** The canvas takes the size of its place. */
  fit() {
    this.sheet.measure();
    this.find('matrix-sheet').style.setProperty('--vv-margin', `${this.sheet.margin}px`);
    this.panes.resize(this.find('matrix-plot').clientWidth, this.sheet.unit);
    this.photo.fit();
    this.redraw();
  }

  get log() {
    return this.option('matrix_scale') === 'log';
  }

  get links() {
    return this.option('links');
  }

  // --- what pointer and keys do

  /** Another scale, other links. @param {Record<string, string | number>} changed by names in links */
  set(changed) {
    this.store.set(changed, { soon: true });
    this.press();
    this.redraw();
  }

  /** Another part of the matrix is in sight. */
  seeElse() {
    this.set({ zoom: this.panes.seen });
  }

  /** The pair of cells at a point of the plot. @param {[number, number]} point @returns {[number, number] | null} */
  cellsAt([down, across]) {
    const [query, key] = [this.panes.cellAt(down, 0), this.panes.cellAt(across, 1)];
    return query === null || key === null ? null : [query, key];
  }

  cellOfPatch(/** @type {number} */ patch) {
    return this.axis.cellOf[this.axis.prefix.length + patch];
  }

  /** Points at a pair, or at a query alone. */
  point(/** @type {Pair | null} */ pair) {
    if (`${pair}` === `${this.pointed}`) return;
    this.pointed = pair;
    this.schedule();
  }

  /** Moves the pair by cells; it begins at the pinned query. @param {[number, number]} step down, right */
  movePair([down, right]) {
    const start = this.axis.cellOf[this.pinnedTokens()[0] ?? 0];
    const [query, key] = this.pointed ?? [start, start];
    const inside = (/** @type {number} */ cell) => clamp(cell, this.axis.cells - 1);
    /** @type {[number, number]} */
    const pair = this.pointed ? [inside(query + down), inside((key ?? query) + right)] : [query, start];
    this.panes.reveal(pair[0], 0);
    this.panes.reveal(pair[1], 1);
    this.point(pair);
    this.seeElse();
    clearTimeout(this.statusTimer);
    this.statusTimer = window.setTimeout(() => {
      this.find('matrix-status').textContent = this.find('matrix-readout').textContent;
    }, 400);
  }

  /** Zooms about the pair that is pointed at, or the middle; 0 shows everything. */
  zoomBy(/** @type {number} */ factor) {
    if (!factor) this.panes.whole();
    else {
      const middle = (/** @type {number | null | undefined} */ cell, /** @type {0 | 1} */ direction) => {
        const place = typeof cell === 'number' ? this.panes.placeOf(cell, direction) : null;
        return place ? (place[0] + place[1]) / 2 : this.panes.size / 2;
      };
      this.panes.zoomBy(factor, [middle(this.pointed?.[0], 0), middle(this.pointed?.[1], 1)]);
    }
    this.seeElse();
  }

  /** Chooses a cell as the query of the whole page. */
  pin(/** @type {number} */ cell) {
    const patches = this.axis.patchesOf(cell);
    if (patches.length) this.pinPatches(patches);
    else this.pinQuery(this.axis.namedOf(cell));
  }

  pinPatches(/** @type {number[]} */ patches) {
    this.pinQuery(patchQuery(patches, this.axis.grid[1]));
  }

  pinQuery(/** @type {string} */ query) {
    if (query === this.chosen.query) return;
    this.chosen = { ...this.chosen, query };
    this.store.set({ q: query }, { push: true });
    this.redraw();
  }

  /** Another layer or head, for the whole page. */
  choose() {
    const read = (/** @type {string} */ name) => /** @type {HTMLSelectElement} */ (this.find(name)).value;
    const head = read('matrix-head');
    this.chosen = {
      ...this.chosen,
      layer: Number(read('matrix-layer')),
      head: FUSIONS.includes(head) ? head : Number(head),
    };
    this.store.set({ layer: this.chosen.layer, head: this.chosen.head });
    this.start();
  }

  /** The pinned patch; of a query that is none, the middle one. */
  pinnedPatch() {
    const patches = this.trace ? queryPatches(this.chosen.query, this.trace) : [];
    return patches[0] ?? centreOf(this.axis.grid);
  }

  /** @returns {number[]} tokens of the pinned query; none of a pool that only the server knows */
  pinnedTokens() {
    const tokens = this.trace ? queryTokens(this.chosen.query, this.trace) : null;
    return Array.isArray(tokens) ? tokens : [];
  }

  // --- what is shown

  /** Which buttons are pressed, and how many links are chosen. */
  press() {
    const [scale, links, count] = OPTIONS.map((name) => this.option(name));
    const select = /** @type {HTMLSelectElement} */ (this.find('matrix-count'));
    if (![...select.options].some((option) => Number(option.value) === count))
      select.append(make('option', '', String(count))); // a link may ask for any number
    select.value = String(count);
    press(this.element, 'scale', scale);
    press(this.element, 'links', links);
  }

  /** Draws everything again in the next frame. */
  redraw() {
    this.isStale = true;
    this.schedule();
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => this.render());
  }

  /** One frame: some rows of the matrix where some are missing, the canvas where it changed, marks, links, words. */
  render() {
    this.frame = 0;
    const start = performance.now();
    const { filling, panes } = this;
    if (!this.trace || panes.size < 1) return; // not on the screen
    if (filling) this.fill(filling, start + BUDGET);
    this.find('matrix-sheet').toggleAttribute('data-zoomed', panes.zoom > 1);
    this.bands();
    this.say(this.photo.show());
    if (filling?.isDone) this.finished();
    else if (filling) this.schedule();
    measure('vit_viz:matrix', start, filling?.isDone ? 'painted' : 'filling');
  }

  /** The whole matrix is there; who followed a link to it finds it in sight. */
  finished() {
    this.element.dataset.ready = `${this.chosen.layer}.${this.chosen.head}`;
    if (this.isLinked) this.element.scrollIntoView();
    this.isLinked = false;
  }

  /** Computes rows until a time, and draws what is there. @param {Filling} filling @param {number} until */
  fill(filling, until) {
    if (!filling.isDone) this.isStale = true;
    while (!filling.isDone && performance.now() < until) filling.step();
    if (!this.isStale) return;
    this.sheet.paint(filling, this.log);
    this.sheet.draw(this.panes, this.axis);
    this.showBar(filling);
    this.isStale = false;
  }

  /** The row and column that are pointed at, and the row of the pinned query. */
  bands() {
    const [query, key] = this.pointed ?? [null, null];
    this.band('matrix-row', query, 0);
    this.band('matrix-column', key, 1);
    const pinned = this.pinnedTokens();
    this.band('matrix-pinned', pinned.length === 1 ? this.axis.cellOf[pinned[0]] : null, 0);
  }

  /** A line around a row or a column. @param {string} name @param {number | null} cell @param {0 | 1} direction */
  band(name, cell, direction) {
    const place = cell === null ? null : this.panes.placeOf(cell, direction);
    const { style } = this.find(name);
    style.display = place ? '' : 'none';
    if (!place) return;
    const [start, size] = direction === 0 ? ['top', 'height'] : ['left', 'width'];
    style.setProperty(start, `${place[0]}px`);
    style.setProperty(size, `${Math.max(1, place[1] - place[0])}px`);
  }

  /** @param {Filling} filling */
  showBar(filling) {
    const [low, high] = endsOf(filling, this.log);
    const words = filling.low < low ? `${weightText(low)} or less` : weightText(low);
    const unit = `attention weight${this.log ? ', logarithmic' : ''}`;
    showBar(this.find, [words, weightText(high)], unit, this.table);
  }

  /** @param {import('../../explorer/matrix.js').Link[]} links that are drawn */
  say(links) {
    const { filling, pointed, axis } = this;
    const readout = this.find('matrix-readout');
    if (!filling) readout.textContent = this.isRefused ? '' : 'Fetching the layer …';
    else if (pointed && pointed[1] !== null) {
      readout.dataset.weight = String(filling.at(pointed[0], pointed[1])); // with all digits, for tests
      readout.textContent = pairWords(filling, [pointed[0], pointed[1]]);
    } else if (pointed && this.links === 'query') readout.textContent = mostWords(axis, pointed[0], links[0]);
    else if (!filling.isDone) readout.textContent = `Computing: row ${filling.next} of ${axis.cells} …`;
    else
      readout.textContent = byPointer(
        'Point at the matrix or at the photo; click to choose the query.',
        'Tap the matrix or the photo to choose the query.',
      );
  }
}

/** A layer, fetched once. @param {LayerStore} store @param {number} layer */
export async function layerOf(store, layer) {
  const known = store.get(layer);
  if (known) return known;
  if (store.trace.source[layer] === 'rows' || !store.fits(layer))
    throw new Error(tooLargeWords(store.bytes(layer), LAYER_BUDGET));
  store.wanted = layer;
  const fetched = await store.fetchLayer(layer);
  store.keep(layer, fetched);
  return fetched;
}
