// One method in the gallery: its map or how to get it, and its place beside random orders of patches.

import { clamp } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { having, make, showText } from '../../ui/kit/elements.js';
import { Job, JobBar } from '../kit/job.js';

/**
 * @typedef {{caption: string}} Map
 *
 * @typedef {object} Method what the server says of a method
 * @property {string} name
 * @property {string} label
 * @property {boolean} [blind] whether its map is the same for every class
 * @property {boolean} [slow] whether it is computed only where somebody asks for it
 * @property {string} [words] what it costs, or why there is no map
 * @property {string} [runs] how often the model runs for it
 * @property {string} [shows]
 * @property {string} [hides]
 * @property {Map} [map]
 * @property {string} src address of the map
 * @property {number} ratio width over height
 * @property {string} options with which the map was made
 *
 * @typedef {{area: number, low: number, high: number, mean: number, floor?: number}} Place the area under the map's curve, the middle of
 *     those of random orders of patches, and between which 95% of them lie; floor: where its line begins, if not at 0
 *
 * @typedef {object} Trust how far a map can be trusted
 * @property {string} options of the map that was tested
 * @property {string} [error]
 * @property {string} [falls] how fast the answer falls, in words
 * @property {boolean} [better] whether it falls faster than at random
 * @property {string} [title] the areas in words
 * @property {Place} [place]
 * @property {string[]} [sentences]
 * @property {Record<string, import('./fall.js').Curve>} [curves]
 * @property {string} [what] is followed, if not the answer: the lead of one class over another
 * @property {string} [axis] what the curves count
 * @property {[string, string]} [names] of two classes whose maps were subtracted
 * @property {boolean} [grows] whether the lead grows at first as the patches of the other class go
 *
 * @typedef {{job?: Job, map?: Map}} Slow what is known of a slow method
 *
 * @typedef {{open: (method: string) => void, compute: (method: string) => void, stop: (method: string) =>
 *   void}} Actions
 */

/** The element of a method, and what is shown in it. */
export class Card {
  /** @param {string} name @param {Actions} actions */
  constructor(name, actions) {
    this.title = make('span', 'vv-card-name');
    this.tag = make('span', 'vv-tag vv-small');
    this.image = having(make('img', 'vv-card-image'), { alt: '' });
    this.open = make('button', 'vv-open vv-bare', this.image);
    this.blank = new Blank(
      () => actions.compute(name),
      () => actions.stop(name),
    );
    this.strip = new Strip();
    this.falls = make('p', 'vv-falls vv-small');
    const title = make('h4', 'vv-card-title', this.title, this.tag);
    const parts = [this.open, this.blank.element, title, this.strip.element, this.falls];
    this.element = having(make('article', 'vv-way', ...parts), { 'data-method': name });
    this.open.addEventListener('click', () => actions.open(name));
    this.image.onload = () => this.element.classList.remove('vv-busy');
  }

  /**
   * @param {Method} method
   * @param {Slow} slow
   * @param {{trust: Trust | undefined, end: number, of: string, chosen: boolean}} tested how far to trust it, where all strips end, the
   *     class of the test, where it is another one, and whether the map is looked at closely
   */
  draw(method, slow, { trust, end, of, chosen }) {
    const map = method.map || slow.map; // of what is asked for now, or as it was made a moment ago
    this.title.textContent = method.label;
    showText(this.tag, method.blind ? 'same for every class' : '');
    this.element.classList.toggle('vv-chosen', chosen);
    this.open.hidden = !map;
    this.blank.element.hidden = Boolean(map);
    this.open.setAttribute('aria-label', `Show ${method.label} on the photo`);
    this.open.setAttribute('aria-pressed', String(chosen));
    if (map) this.drawMap(method, map);
    else this.blank.draw(method, slow.job);
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
    this.go = having(make('button', 'vv-go vv-bare'), { title: 'Computes this map, which takes a while.' });
    this.element = make('div', 'vv-blank vv-job', this.go);
    this.bar = new JobBar(this.element, { begin: compute, end: stop });
  }

  /** @param {Method} method @param {Job} [job] */
  draw({ ratio, words, slow, label, runs }, job = new Job()) {
    const { share, left, error } = job;
    const amount = share > 0 ? `${Math.round(100 * share)}%${left && ` (${left})`} of ${runs}` : '';
    this.element.style.aspectRatio = String(ratio || 1);
    this.go.setAttribute('aria-label', `Compute ${label}`);
    this.bar.stop.setAttribute('aria-label', `Cancel ${label}`);
    this.bar.show(job, {
      words: amount ? '' : job.words || error || words,
      amount,
      go: slow ? 'compute' : '',
    });
  }
}

/** A line that begins and ends at the same numbers for all methods: where 95% of random orders lie, and where the map is. Left is better. */
class Strip {
  band = make('span', 'vv-band');
  dot = make('span', 'vv-dot');
  element = make('div', 'vv-place', this.band, this.dot);

  draw(/** @type {Trust | undefined} */ trust, /** @type {number} */ end) {
    const place = trust?.place;
    this.band.hidden = this.dot.hidden = !place;
    this.element.title = trust?.title ?? '';
    if (!place) return;
    const { floor = 0 } = place;
    const at = (/** @type {number} */ x) => 100 * clamp((x - floor) / (end - floor));
    this.band.style.left = `${at(place.low)}%`;
    this.band.style.width = `${at(place.high) - at(place.low)}%`;
    this.dot.style.left = `${at(place.area)}%`;
  }
}

/** Where the strips of all cards end: beyond each map and well beyond the random orders; 0 while nothing is known. */
export function endOfStrips(/** @type {Trust[]} */ known) {
  const beyond = (/** @type {number} */ at, /** @type {number} */ times, floor = 0) =>
    floor + times * (at - floor);
  const ends = known.flatMap(({ place }) =>
    place ? [beyond(place.high, 1.6, place.floor), beyond(place.area, 1.05, place.floor)] : [],
  );
  return ends.length ? Math.max(...ends) : 0;
}
