// Surgery: a switch for each head, a temperature for each layer, views that are forbidden. What is clicked is sent at once, in words.

import { ARROWS } from '../../explorer/geometry.js';
import { finder, make, showText } from '../kit/elements.js';
import { Views } from './surgery_views.js';

/** How long clicks are gathered before they are sent. */
const PAUSE = 250;
/** A temperature is 2 to the power of its slider. */
const SPAN = 3;

/**
 * @typedef {'off' | 'mean' | 'uniform' | 'on'} State
 * @typedef {object} Panel what there is to edit, and what is edited
 * @property {number} revision
 * @property {number} layers 0: nothing can be edited
 * @property {number} heads
 * @property {[number, number]} grid
 * @property {import('../../explorer/geometry.js').Trace['crop']} crop
 * @property {string} photo
 * @property {[number, number]} photo_size
 * @property {string} name
 * @property {{value: string, label: string}[]} tokens
 * @property {[number, number, State][]} off
 * @property {[number, number][]} temperatures
 * @property {string[]} forbidden
 * @property {string} error
 */

/** @type {Record<State, [string, string]>} what stands in a cell, and what is said of it */
const STATES = {
  off: ['off', 'off'],
  mean: ['mean', 'at its mean'],
  uniform: ['uni', 'uniform'],
  on: ['on', 'on'],
};

/** @type {import('../kit/elements.js').Mount<{value: Panel | null}>} */
export function mount(element, trigger, props, watch) {
  const surgery = new Surgery(element, trigger);
  watch('value', () => surgery.take(props.value));
  surgery.take(props.value);
}

/** The words of edits, as Python reads them. */
export function wordsOf(
  /** @type {Map<string, State>} */ heads,
  /** @type {Map<number, number>} */ temperatures,
  /** @type {string[]} */ forbidden,
) {
  const said = ['off', 'mean', 'uniform'].flatMap((state) => {
    const chosen = [...heads].filter(([, now]) => now === state).map(([place]) => place);
    return chosen.length ? [[state, ...chosen].join(' ')] : [];
  });
  const set = [...temperatures].filter(([, value]) => value !== 1);
  if (set.length) said.push(['temperature', ...set.map(([layer, value]) => `${layer}=${value}`)].join(' '));
  return [...said, ...forbidden.map((one) => `forbid ${one}`)].join(';');
}

/** The temperature of a slider, in three digits. */
export function temperatureOf(/** @type {number} */ power) {
  return Number((2 ** power).toPrecision(3));
}

class Surgery {
  /** @param {HTMLElement} element @param {import('../kit/elements.js').Trigger} trigger */
  constructor(element, trigger) {
    this.find = finder(element);
    this.trigger = trigger;
    /** @type {Panel | null} */ this.panel = null;
    /** @type {State} */ this.brush = 'off';
    /** @type {Map<string, State>} */ this.heads = new Map();
    /** @type {Map<number, number>} */ this.temperatures = new Map();
    /** @type {string[]} */ this.forbidden = [];
    /** @type {Map<string, HTMLElement>} the switch of each head, by its name */ this.cells = new Map();
    this.timer = 0;
    this.awaited = 0; // the first revision that knows all that was sent
    this.shape = '';
    this.views = new Views(this.find, (change) => this.viewed(change));
    this.listen();
  }

  /** What the server says; what is on its way to it comes first. */
  take(/** @type {Panel | null} */ panel) {
    if (!panel) return;
    this.find('surgery').hidden = !panel.layers;
    showText(this.find('surgery-error'), panel.error);
    if (!panel.layers || this.timer || (!panel.error && panel.revision < this.awaited)) return;
    this.awaited = 0;
    this.panel = panel;
    const there = panel.off.filter(([layer, head]) => layer < panel.layers && head < panel.heads);
    this.heads = new Map(there.map(([layer, head, state]) => [`${layer}.${head}`, state]));
    this.temperatures = new Map(panel.temperatures);
    this.forbidden = panel.forbidden;
    if (this.shape !== `${panel.layers} ${panel.heads}`) this.layOut(panel);
    this.views.take(panel);
    this.draw();
  }

  listen() {
    const { find } = this;
    find('surgery-states').addEventListener('click', (event) => {
      const state = datasetOf(event).state;
      if (state) this.choose(/** @type {State} */ (state));
    });
    const table = find('surgery-table');
    table.addEventListener('click', (event) => {
      const { place, all } = datasetOf(event);
      if (place) this.toggle([place]);
      if (all) this.toggle(Array.from({ length: this.panel?.heads ?? 0 }, (_, head) => `${all}.${head}`));
    });
    table.addEventListener('keydown', (event) => this.move(event));
    table.addEventListener('input', (event) => {
      const slider = /** @type {HTMLInputElement} */ (event.target);
      if (slider.dataset.layer) this.warm(Number(slider.dataset.layer), Number(slider.value));
    });
  }

  choose(/** @type {State} */ state) {
    this.brush = state;
    for (const button of this.find('surgery-states').querySelectorAll('button'))
      button.setAttribute('aria-pressed', String(button.dataset.state === state));
  }

  /** Heads get the state that is chosen; where all of them have it, they are on again. */
  toggle(/** @type {string[]} */ places) {
    const have = places.every((place) => (this.heads.get(place) ?? 'on') === this.brush);
    for (const place of places) {
      if (have || this.brush === 'on') this.heads.delete(place);
      else this.heads.set(place, this.brush);
    }
    this.changed();
  }

  warm(/** @type {number} */ layer, /** @type {number} */ power) {
    this.temperatures.set(layer, temperatureOf(power));
    this.changed();
  }

  viewed(/** @type {{forbid?: string, allow?: string, error?: string}} */ { forbid, allow, error }) {
    showText(this.find('surgery-error'), error);
    if (forbid) this.forbidden = [...this.forbidden.filter((one) => one !== forbid), forbid];
    if (allow) this.forbidden = this.forbidden.filter((one) => one !== allow);
    if (forbid || allow) this.changed();
  }

  /** Shows it at once, and tells the server when the clicks pause. */
  changed() {
    this.draw();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.awaited = Math.max(this.awaited, this.panel?.revision ?? 0) + 1;
      this.trigger('edit', { edits: wordsOf(this.heads, this.temperatures, this.forbidden) });
    }, PAUSE);
  }

  /** The arrows go from head to head. */
  move(/** @type {KeyboardEvent} */ event) {
    const place = datasetOf(event).place;
    if (!place || !(event.key in ARROWS) || !this.panel) return;
    event.preventDefault();
    const [down, right] = ARROWS[event.key];
    const [layer, head] = place.split('.').map(Number);
    const next = [
      Math.min(this.panel.layers - 1, Math.max(0, layer + down)),
      Math.min(this.panel.heads - 1, Math.max(0, head + right)),
    ].join('.');
    for (const [name, cell] of this.cells) cell.tabIndex = name === next ? 0 : -1;
    this.cells.get(next)?.focus();
  }

  /** A table of so many layers and heads. */
  layOut(/** @type {Panel} */ { layers, heads }) {
    this.shape = `${layers} ${heads}`;
    this.cells.clear();
    const first = make('tr');
    const names = ['layer', ...Array.from({ length: heads }, (_, head) => String(head)), 'temperature'];
    first.append(...names.map((name) => headerCell(make('span', '', name), 'col')));
    this.find('surgery-table').querySelector('thead')?.replaceChildren(first);
    const rows = Array.from({ length: layers }, (_, layer) => this.row(layer, heads));
    this.find('surgery-table')
      .querySelector('tbody')
      ?.replaceChildren(...rows);
  }

  row(/** @type {number} */ layer, /** @type {number} */ heads) {
    const [row, all] = [make('tr'), make('button', 'vv-surgery-all', String(layer))];
    all.dataset.all = String(layer);
    all.setAttribute('aria-label', `all heads of layer ${layer}`);
    row.append(headerCell(all, 'row'));
    for (let head = 0; head < heads; head += 1) {
      const [cell, button] = [make('td'), make('button', 'vv-surgery-cell')];
      button.dataset.place = `${layer}.${head}`;
      button.tabIndex = layer + head ? -1 : 0;
      this.cells.set(`${layer}.${head}`, button);
      cell.append(button);
      row.append(cell);
    }
    row.append(temperatureCell(layer));
    return row;
  }

  draw() {
    for (const [place, cell] of this.cells) {
      const [layer, head] = place.split('.');
      const state = this.heads.get(place) ?? 'on';
      if (cell.dataset.state === state) continue;
      cell.dataset.state = state;
      cell.textContent = STATES[state][0];
      cell.setAttribute('aria-label', `layer ${layer}, head ${head}: ${STATES[state][1]}`);
    }
    for (const slider of this.find('surgery-table').querySelectorAll('input')) {
      const value = this.temperatures.get(Number(slider.dataset.layer)) ?? 1;
      if (temperatureOf(Number(slider.value)) !== value) slider.value = String(Math.log2(value));
      const words = value === 1 ? '1' : `${value}, ${value < 1 ? 'sharper' : 'more even'}`;
      slider.setAttribute('aria-valuetext', words);
      if (slider.nextElementSibling) slider.nextElementSibling.textContent = String(value);
    }
    this.views.list(this.forbidden);
  }
}

/** What the button under the pointer stands for. */
function datasetOf(/** @type {Event} */ event) {
  return /** @type {HTMLElement} */ (event.target).dataset;
}

function headerCell(/** @type {HTMLElement} */ inner, /** @type {string} */ scope) {
  const cell = make('th');
  cell.setAttribute('scope', scope);
  cell.append(inner);
  return cell;
}

/** The slider of a layer's temperature, with its value. */
function temperatureCell(/** @type {number} */ layer) {
  const [cell, slider] = [make('td', 'vv-surgery-temperature'), make('input')];
  Object.assign(slider, { type: 'range', min: String(-SPAN), max: String(SPAN), step: '0.25', value: '0' });
  slider.dataset.layer = String(layer);
  slider.setAttribute('aria-label', `temperature of layer ${layer}`);
  cell.append(slider, make('output', 'vv-number', '1'));
  return cell;
}
