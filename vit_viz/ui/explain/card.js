// One method in the gallery: its map or how to get it, and its place beside random orders of patches.

import { routeUrl } from '../../explorer/source.js';
import { make, showText } from '../kit/elements.js';

/**
 * @typedef {{caption: string}} Map
 *
 * @typedef {object} Method what the server says of a method
 * @property {string} name
 * @property {string} label
 * @property {boolean} [blind] whether its map is the same for every class
 * @property {boolean} [chosen]
 * @property {boolean} [slow] whether it is computed only where somebody asks for it
 * @property {string} [words] what it costs, or why there is no map
 * @property {string} [shows]
 * @property {string} [hides]
 * @property {Map} [map]
 * @property {string} src address of the map
 * @property {number} ratio width over height
 * @property {string} options with which the map was made
 *
 * @typedef {{area: number, low: number, high: number, mean: number}} Place the area under the map's curve, the middle of those of random
 *     orders of patches, and between which 95% of them lie
 *
 * @typedef {object} Trust how far a map can be trusted
 * @property {string} options of the map that was tested
 * @property {string} [error]
 * @property {string} [falls] how fast the answer falls, in words
 * @property {boolean} [better] whether it falls faster than at random
 * @property {string} [title] the areas in words
 * @property {Place} [place]
 * @property {string[]} [sentences]
 * @property {Record<string, import('./belief.js').Fall>} [curves]
 *
 * @typedef {import('../kit/elements.js').Job & {map?: Map}} Slow what is known of a slow method
 *
 * @typedef {{open: (method: string) => void, compute: (method: string) => void, stop: (method: string) =>
 *   void}} Actions
 */

/** The element of a method, and what is shown in it. */
export class Card {
  /** @param {string} name @param {Actions} actions */
  constructor(name, actions) {
    this.name = name;
    this.element = make('article', 'vv-way');
    this.element.dataset.method = name;
    this.title = make('span', 'vv-card-name');
    this.tag = make('span', 'vv-tag vv-small');
    this.open = make('button', 'vv-open');
    this.image = make('img', 'vv-card-image');
    this.blank = new Blank(
      () => actions.compute(name),
      () => actions.stop(name),
    );
    this.strip = new Strip();
    this.falls = make('p', 'vv-falls vv-small');
    this.assemble();
    this.open.addEventListener('click', () => actions.open(name));
    this.image.onload = () => this.element.classList.remove('vv-busy');
  }

  assemble() {
    const title = make('h4', 'vv-card-title');
    title.append(this.title, this.tag);
    this.image.alt = '';
    this.open.append(this.image);
    this.element.append(this.open, this.blank.element, title, this.strip.element, this.falls);
  }

  /**
   * @param {Method} method
   * @param {Slow} slow
   * @param {{trust: Trust | undefined, end: number, of: string}} tested how far to trust it, where all strips end, and the class of the
   *     test, where it is another one
   */
  draw(method, slow, { trust, end, of }) {
    const map = method.map || slow.map; // of what is asked for now, or as it was made a moment ago
    this.title.textContent = method.label;
    showText(this.tag, method.blind ? 'same for every class' : '');
    this.element.classList.toggle('vv-chosen', Boolean(method.chosen));
    this.open.hidden = !map;
    this.blank.element.hidden = Boolean(map);
    this.open.setAttribute('aria-label', `Show ${method.label} on the photo`);
    this.open.setAttribute('aria-pressed', String(Boolean(method.chosen)));
    if (map) this.drawMap(method, map);
    else this.blank.draw(method, slow);
    this.strip.draw(end ? trust : undefined, end);
    this.strip.element.hidden = !end;
    const falls = trust && (trust.error || trust.falls);
    showText(this.falls, falls && of ? `for ${of}: ${falls}` : falls);
    this.element.classList.toggle('vv-of-other', Boolean(of));
    this.falls.dataset.better = String(Boolean(trust?.better));
  }

  /** @param {Method} method @param {Map} map */
  drawMap({ src, ratio }, { caption }) {
    const source = routeUrl(src);
    if (this.image.getAttribute('src') !== source) {
      this.element.classList.add('vv-busy');
      this.image.setAttribute('src', source);
    }
    this.image.style.aspectRatio = String(ratio);
    this.image.alt = caption;
    this.open.title = caption;
  }
}

/** What stands where there is no map: what it costs or why there is none, a button that computes it, and how far that is. */
class Blank {
  /** @param {() => void} compute @param {() => void} stop */
  constructor(compute, stop) {
    this.element = make('div', 'vv-blank');
    this.words = make('p', 'vv-blank-words');
    this.go = make('button', 'vv-go');
    this.progress = make('progress', 'vv-progress');
    this.progress.max = 1;
    this.stop = make('button', 'vv-stop vv-button', 'Cancel');
    this.go.addEventListener('click', compute);
    this.stop.addEventListener('click', stop);
    this.element.append(this.words, this.go, this.progress, this.stop);
  }

  /** @param {Method} method @param {Slow} job */
  draw(method, { share, error, words }) {
    const isRunning = share !== null && share !== undefined && !error;
    this.element.style.aspectRatio = String(method.ratio || 1);
    showText(this.words, error || (isRunning ? words : method.words));
    showText(this.go, method.slow && !isRunning ? 'compute' : '');
    this.go.setAttribute('aria-label', `Compute ${method.label}`);
    this.progress.hidden = this.stop.hidden = !isRunning;
    this.stop.setAttribute('aria-label', `Cancel ${method.label}`);
    this.progress.value = share || 0;
  }
}

/** A line from 0 to the same end for all methods: where 95% of random orders lie, and where the map is. Left is better. */
class Strip {
  constructor() {
    this.element = make('div', 'vv-place');
    this.band = make('span', 'vv-band');
    this.dot = make('span', 'vv-dot');
    this.element.append(this.band, this.dot);
  }

  draw(/** @type {Trust | undefined} */ trust, /** @type {number} */ end) {
    const place = trust?.place;
    this.band.hidden = this.dot.hidden = !place;
    this.element.title = trust?.title ?? '';
    if (!place) return;
    const at = (/** @type {number} */ x) => 100 * Math.min(1, Math.max(0, x / end));
    this.band.style.left = `${at(place.low)}%`;
    this.band.style.width = `${at(place.high) - at(place.low)}%`;
    this.dot.style.left = `${at(place.area)}%`;
  }
}

/** Where the strips of all cards end: beyond each map and well beyond the random orders; 0 while nothing is known. */
export function endOfStrips(/** @type {Trust[]} */ known) {
  const ends = known.flatMap(({ place }) => (place ? [1.6 * place.high, 1.05 * place.area] : []));
  return Math.max(0, ...ends);
}
