// All heads as small photos in a table, with bars for each layer's heads and MLP, and the maps that they are drawn from.

import { movedPatch, placeIn } from '../../explorer/geometry.js';
import { isFinger } from '../../explorer/long_press.js';
import { Picture } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { dataAt, fillTable, having, make, onArrows } from '../../ui/kit/elements.js';
import { endOf, largestOf, paintSigned, signed } from './signed.js';
/** @import { Value } from './parts.js' */

/** What a place is called: "4.3" is head 3 of layer 4, "4" all heads of it. */
export function nameOf(/** @type {string} */ place, /** @type {string[]} */ layers) {
  const [row, head] = place.split('.');
  const layer = layers[Number(row)];
  return head === undefined ? `the heads of layer ${layer}` : `${layer} · ${head}`;
}

/** What each head took from each patch; of a head that is off, what it took before. */
export class Terms {
  /** @param {Value} value */
  constructor({ now: numbers, before: earlier, off, grid }) {
    const [now, before] = [numbers.maps, earlier.maps];
    this.now = now;
    this.before = before;
    this.numbers = numbers;
    this.earlier = earlier;
    this.rows = numbers.heads.length;
    this.heads = numbers.heads[0].length;
    this.patches = grid[0] * grid[1];
    this.off = new Set(off);
    if (now.length !== this.rows * this.heads * this.patches || now.length !== before.length)
      throw new Error('These parts do not fit the photo; please reload the page.');
    this.most = Math.max(...(before.length ? this.ends(before) : [0]));
    /** @type {Map<string, Float32Array>} sums of several heads */ this.sums = new Map();
  }

  /** Where the scale of each head would end. */
  ends(/** @type {Float32Array} */ values) {
    const { rows, heads, patches } = this;
    return Array.from({ length: rows * heads }, (_, i) =>
      endOf(values.subarray(i * patches, (i + 1) * patches)),
    );
  }

  has(/** @type {string} */ place) {
    const [row, head] = place.split('.').map(Number);
    return row < this.rows && (head === undefined || head < this.heads);
  }

  /** Whether a head is off, or all heads of a layer are. */
  isOff(/** @type {string} */ place) {
    return this.places(place).every((one) => this.off.has(one));
  }

  places(/** @type {string} */ place) {
    if (place.includes('.')) return [place];
    return Array.from({ length: this.heads }, (_, head) => `${place}.${head}`);
  }

  /** One number per patch. @param {string | null} place null: of all heads, as they are now */
  map(place) {
    if (place?.includes('.')) {
      const at = this.at(place);
      return (this.off.has(place) ? this.before : this.now).subarray(at, at + this.patches);
    }
    const known = this.sums.get(place ?? '');
    if (known) return known;
    const [first, last] = place === null ? [0, this.rows] : [Number(place), Number(place) + 1];
    const sum = new Float32Array(this.patches);
    for (let i = first * this.heads * this.patches; i < last * this.heads * this.patches; i++)
      sum[i % this.patches] += this.now[i];
    this.sums.set(place ?? '', sum);
    return sum;
  }

  at(/** @type {string} */ place) {
    const [row, head] = place.split('.').map(Number);
    return (row * this.heads + head) * this.patches;
  }

  /** What a head gave, from all tokens; of one that is off, before. @param {string | null} place */
  sum(place) {
    if (place === null) return total(this.numbers.heads.flat());
    const [row, head] = place.split('.').map(Number);
    if (head === undefined) return total(this.numbers.heads[row]);
    return (this.off.has(place) ? this.earlier : this.numbers).heads[row][head];
  }

  /** The head that gave most of what a patch gave. @param {number} patch @param {number} sign */
  strongestAt(patch, sign) {
    let most = null;
    for (let i = 0; i < this.rows * this.heads; i++) {
      const value = this.now[i * this.patches + patch];
      if (sign * value > (most ? sign * most.value : 0))
        most = { place: `${Math.floor(i / this.heads)}.${i % this.heads}`, value };
    }
    return most;
  }
}

function total(/** @type {number[]} */ values) {
  return values.reduce((sum, value) => sum + value, 0);
}

/**
 * @typedef {{button: HTMLElement, picture: Picture, number: HTMLElement}} Cell
 *
 * What the table tells: which head the pointer or the keyboard is on, and which is pressed.
 * @typedef {{show: (place: string) => void, press: (place: string) => void}} Actions
 */

export class HeadsTable {
  /** @type {Map<string, Cell>} */ cells = new Map();
  /** @type {Value | null} */ value = null;
  /** @type {Terms | null} */ terms = null;
  /** @type {string | null} */ chosen = null;
  shape = '';

  /** @param {HTMLElement} element @param {Actions} actions */
  constructor(element, actions) {
    this.element = element;
    element.addEventListener('pointerover', (event) => {
      const place = isFinger(event) ? null : dataAt(event, 'place');
      if (place !== null && place !== this.chosen) actions.show(place);
    });
    element.addEventListener('focusin', (event) => {
      const place = dataAt(event, 'place');
      const isSeen = /** @type {Element} */ (event.target).matches(':focus-visible');
      if (isSeen && place !== null && place !== this.chosen) actions.show(place);
    });
    element.addEventListener('click', (event) => {
      const place = dataAt(event, 'place');
      if (place === null) return;
      // a finger has not seen the head before: its first tap shows it
      if (isFinger(/** @type {PointerEvent} */ (event)) && place !== this.chosen) actions.show(place);
      else actions.press(place);
    });
    onArrows(element, (step, event) => this.move(step, dataAt(event, 'place')));
  }

  fill(/** @type {Value} */ value, /** @type {Terms} */ terms) {
    this.value = value;
    this.terms = terms;
    const shape = `${terms.rows} ${terms.heads} ${value.now.layers.join()} ${value.whyNot}`;
    if (shape !== this.shape) this.layOut(value, terms);
    this.shape = shape;
    const [height, width] = value.crop.original;
    const [top, left, tall, wide] = value.crop.region;
    const { style } = this.element;
    style.setProperty('--photo', `url("${routeUrl(value.photo)}")`);
    style.setProperty('--heads', String(terms.heads));
    style.setProperty('--vv-aspect', String(width / height));
    const place = placeIn([top, left, top + tall, left + wide], [0, 0, height, width]);
    for (const [name, text] of Object.entries(place)) style.setProperty(`--box-${name}`, text);
    const [rows, cols] = value.grid;
    for (const [name, { picture }] of this.cells) {
      picture.resize(cols, rows);
      paintSigned(picture, terms.map(name), terms.most);
    }
    this.fillBars(value);
    this.read(null);
  }

  layOut(/** @type {Value} */ { now, whyNot }, /** @type {Terms} */ { rows, heads }) {
    this.cells.clear();
    const numbers = Array.from({ length: heads }, (_, head) => head);
    const names = ['layer', ...numbers.map(String), 'heads', 'MLP'];
    const lines = Array.from({ length: rows }, (_, row) => [
      make('span', '', now.layers[row]),
      ...numbers.map((head) => this.cell(row, head)),
      bar(String(row), !whyNot),
      bar(`mlp-${row}`, false),
    ]);
    fillTable(
      this.element,
      names.map((name) => make('span', '', name)),
      lines,
    );
  }

  cell(/** @type {number} */ row, /** @type {number} */ head) {
    const canvas = make('canvas', 'vv-layer');
    const number = make('span', 'vv-number');
    const thumb = make('span', 'vv-parts-thumb', make('span', 'vv-box', canvas, make('span', 'vv-parts-at')));
    const button = having(make('button', 'vv-bare vv-parts-cell', thumb, number), {
      'data-place': `${row}.${head}`,
      tabindex: row + head ? -1 : 0,
    });
    this.cells.set(`${row}.${head}`, { button, picture: new Picture(canvas), number });
    return button;
  }

  /** The sums of each layer on one scale; a tick marks what a bar was before heads were switched off. */
  fillBars(/** @type {Value} */ { now, before, decimals, off }) {
    const ofHeads = now.heads.map(total);
    const earlier = before.heads.map(total);
    const most = largestOf([...ofHeads, ...earlier, ...now.mlps, ...before.mlps]) || 1;
    now.layers.forEach((layer, row) => {
      for (const [name, value, was, words] of /** @type {const} */ ([
        [String(row), ofHeads[row], earlier[row], `all heads of layer ${layer}`],
        [`mlp-${row}`, now.mlps[row], before.mlps[row], `MLP of layer ${layer}`],
      ])) {
        const element = /** @type {HTMLElement} */ (this.element.querySelector(`[data-bar="${name}"]`));
        const [track, number] = /** @type {HTMLElement[]} */ ([...element.children]);
        const [fill, tick] = /** @type {HTMLElement[]} */ ([...track.children]);
        fill.className = `vv-parts-bar ${value < 0 ? 'vv-is-against' : 'vv-is-for'}`;
        fill.style.setProperty('--share', `${(100 * Math.abs(value)) / most}%`);
        tick.hidden = !off.length;
        tick.style.left = `${(100 * Math.abs(was)) / most}%`;
        number.textContent = signed(value, decimals);
        number.className = `vv-number ${value < 0 ? 'vv-is-against' : 'vv-is-for'}`;
        const label = `${words}: ${signed(value, decimals)}${off.length ? `, before ${signed(was, decimals)}` : ''}`;
        having(element, { 'aria-label': label, title: label });
      }
    });
  }

  /** The number under each head: its part, or what it took from one patch. @param {number | null} patch */
  read(patch) {
    const { value, terms } = this;
    if (!value || !terms) return;
    const { style } = this.element;
    style.setProperty('--at', patch === null ? 'none' : 'block');
    if (patch !== null) {
      const [rows, cols] = value.grid;
      style.setProperty('--at-top', `${(100 * Math.floor(patch / cols)) / rows}%`);
      style.setProperty('--at-left', `${(100 * (patch % cols)) / cols}%`);
      style.setProperty('--at-height', `${100 / rows}%`);
      style.setProperty('--at-width', `${100 / cols}%`);
    }
    for (const [place, { button, number }] of this.cells) {
      const isOff = terms.off.has(place);
      const gave = patch === null ? terms.sum(place) : terms.map(place)[patch];
      const text = signed(gave, value.decimals);
      number.textContent = isOff ? 'off' : text;
      number.className = `vv-number ${gave < 0 ? 'vv-is-against' : 'vv-is-for'}`;
      if (patch !== null) continue;
      button.classList.toggle('vv-parts-off', isOff);
      const [row, head] = place.split('.');
      const words = `layer ${value.now.layers[Number(row)]}, head ${head}: ${isOff ? `off, was ${text}` : text}`;
      having(button, { 'aria-label': words, title: words, 'aria-pressed': isOff });
    }
  }

  choose(/** @type {string | null} */ place) {
    this.chosen = place;
    for (const button of this.element.querySelectorAll('[data-place]'))
      button.classList.toggle('vv-chosen', button.getAttribute('data-place') === place);
  }

  /** The arrows go from head to head. */
  move(/** @type {[number, number]} */ step, /** @type {string | null} */ place) {
    if (!place?.includes('.') || !this.terms) return false;
    const { rows, heads } = this.terms;
    const [row, head] = place.split('.').map(Number);
    const to = movedPatch(row * heads + head, step, [rows, heads]);
    const next = `${Math.floor(to / heads)}.${to % heads}`;
    for (const [name, { button }] of this.cells) button.tabIndex = name === next ? 0 : -1;
    this.cells.get(next)?.button.focus();
    return true;
  }
}

/** A bar with its number; one that stands for all heads of a layer can be pressed. @param {string} name @param {boolean} isButton */
function bar(name, isButton) {
  const track = make('span', 'vv-parts-track', make('span', 'vv-parts-bar'), make('span', 'vv-parts-tick'));
  const parts = [track, make('span', 'vv-number')];
  if (!isButton) return having(make('span', 'vv-parts-sumbar', ...parts), { 'data-bar': name, role: 'img' });
  const places = { 'data-bar': name, 'data-place': name };
  return having(make('button', 'vv-bare vv-parts-sumbar', ...parts), places);
}
