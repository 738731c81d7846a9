// How far to believe the chosen map: the curve of the answer while its patches go or come, beside random orders, and sentences.

import { finder, make, showText } from '../kit/elements.js';

/**
 * @typedef {object} Fall a curve, and between which values 95% of random orders lie
 * @property {number[]} x share of the patches, from 0 to 1
 * @property {number[]} y
 * @property {number[]} low
 * @property {number[]} high
 * @property {[number, number]} ends of the axis of y
 * @property {[string, string]} labels of these ends
 * @property {string[]} texts of y
 *
 * @typedef {import('./card.js').Method} Method
 * @typedef {import('./card.js').Trust} Trust
 * @typedef {'deletion' | 'insertion'} Test
 */

const ENDS = {
  deletion: ['no patch gone', 'all gone'],
  insertion: ['no patch there', 'all back'],
};
const HOW = {
  deletion: 'Here patches are painted over, in steps; on the photo they are gone for the model.',
  insertion: 'Patches are put back into a blurred photo, in steps.',
};
const UNTESTED = 'Not compared with random orders of patches yet.';

/** The lower part of the gallery. */
export class Belief {
  /** @type {Test} */ test = 'deletion';
  taken = 0; // share of the patches that the slider of the stage took away
  /** @type {Method | undefined} */ method;
  /** @type {Trust | undefined} */ trust;
  of = ''; // the class of the test, where it is another one than that of the maps

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.find = finder(element);
    this.tests = /** @type {HTMLElement[]} */ ([...element.querySelectorAll('[data-test]')]);
    for (const button of this.tests)
      button.addEventListener('click', () => this.choose(/** @type {Test} */ (button.dataset.test)));
    this.find('plot').addEventListener('pointermove', (event) => this.read(event));
    this.find('plot').addEventListener('pointerleave', () => this.read(null));
    window.addEventListener('vv-taken', (event) =>
      this.mark(Number(/** @type {CustomEvent} */ (event).detail)),
    );
  }

  /**
   * @param {Method | undefined} method that is chosen
   * @param {Trust | undefined} trust
   * @param {{weights?: string, of?: string, target?: string}} [more] what became of it when the weights were re-initialised; the class of
   *     the test, where it is another one; and the class of the map
   */
  draw(method, trust, { weights = '', of = '', target = '' } = {}) {
    this.method = method;
    this.trust = trust;
    this.of = trust ? of : '';
    this.find('belief').hidden = !method;
    if (!method) return;
    const said = trust?.error ? [trust.error] : (trust?.sentences ?? [UNTESTED]);
    const whose = this.of ? [`Measured for ${of}, not for ${target} yet.`] : [];
    const lines = [...whose, ...said, ...(weights ? [weights] : [])];
    this.find('said').replaceChildren(...lines.map((line) => make('p', '', line)));
    showText(this.find('shows'), method.shows && `Shows ${method.shows}`);
    showText(this.find('hides'), method.hides && `Does not show ${method.hides}`);
    this.drawCurve();
  }

  drawCurve() {
    const curve = this.trust?.curves?.[this.test];
    this.find('fall').hidden = !curve;
    for (const button of this.tests)
      button.setAttribute('aria-pressed', String(button.dataset.test === this.test));
    if (!curve) return;
    const way = this.test === 'deletion' ? 'as its patches go' : 'as its patches come back';
    const verb = this.test === 'insertion' ? ' rises' : this.trust?.better ? ' falls' : '';
    const title = `${this.method?.label}${this.of && ` for ${this.of}`}: the answer${verb} ${way}`;
    this.find('fall-title').textContent = title;
    this.find('curve').setAttribute('aria-label', `${title}. ${this.trust?.title ?? ''}`);
    const { x, y, low, high, ends, labels } = curve;
    const line = (/** @type {number[]} */ values) => values.map((value, i) => point(x[i], value, ends));
    this.find('line').setAttribute('d', `M${line(y).join('L')}`);
    this.find('random').setAttribute('d', `M${[...line(high), ...line(low).reverse()].join('L')}Z`);
    [this.find('bottom').textContent, this.find('top').textContent] = labels;
    [this.find('first').textContent, this.find('last').textContent] = ENDS[this.test];
    this.read(null);
    this.mark(this.taken);
  }

  choose(/** @type {Test} */ test) {
    this.test = test;
    this.drawCurve();
  }

  /** Marks how far the slider of the stage is. */
  mark(/** @type {number} */ share) {
    this.taken = share;
    const now = this.find('now');
    now.hidden = !share || this.test !== 'deletion' || Boolean(this.of);
    now.style.left = `${100 * share}%`;
  }

  /** Says the numbers under the pointer; else how the curve was made. */
  read(/** @type {PointerEvent | null} */ event) {
    const curve = this.trust?.curves?.[this.test];
    if (!curve) return;
    const words = this.find('curve-words');
    if (!event) return void (words.textContent = HOW[this.test]);
    const box = this.find('plot').getBoundingClientRect();
    const last = curve.x.length - 1;
    const place = Math.round(((event.clientX - box.left) / box.width) * last);
    const i = Math.min(last, Math.max(0, place));
    const gone = this.test === 'deletion' ? 'gone' : 'back';
    words.textContent = `${Math.round(100 * curve.x[i])}% ${gone}: ${curve.texts[i]}`;
  }
}

/** A point of the curve in a picture of 100 by 100. */
function point(
  /** @type {number} */ x,
  /** @type {number} */ y,
  /** @type {[number, number]} */ [bottom, top],
) {
  const height = 100 - (100 * (y - bottom)) / (top - bottom);
  return `${(100 * x).toFixed(2)} ${height.toFixed(2)}`;
}
