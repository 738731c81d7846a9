// Surgery: a switch for each head, a temperature for each layer, views that are forbidden. What is clicked is the page's at once, in words.

import { onPress, optionOf, press, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { Views } from './surgery_views.js';
/** @import { State } from './photo_grid.js' */
/** @import { Answer } from './findings.js' */

/** How long clicks are gathered before they are sent. */
const PAUSE = 250;

/**
 * What there is to edit, and what is edited; of: the trace that it is seen in; trace: of the unedited model, whose answers are `before`.
 * @typedef {{layers: number, heads: number, tokens: {value: string, label: string}[], off: [number, number, State][],
 *   temperatures: [number, number][], forbidden: string[], of: string, trace: string, before: Answer[], now: Answer[]} &
 *   import('../../ui/kit/stage.js').Photo} Panel
 */

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

/** @typedef {{heads: Map<string, State>, temperatures: Map<number, number>, forbidden: string[]}} Edits */

/** Edits as text that is equal for equal edits. */
function sorted(/** @type {Edits} */ { heads, temperatures, forbidden }) {
  const warm = [...temperatures].filter(([, value]) => value !== 1);
  return JSON.stringify([[...heads].sort(), warm.sort(), [...forbidden].sort()]);
}

/** What is edited, which the switches of the grid and the controls beside it change, step by step. */
export class Surgery {
  /** @type {Panel | null} */ panel = null;
  /** @type {State} */ brush = 'off';
  /** @type {Map<string, State>} by layer and head, such as "3.1" */ heads = new Map();
  /** @type {Map<number, number>} */ temperatures = new Map();
  /** @type {string[]} */ forbidden = [];
  /** @type {Edits[]} what was before each step */ past = [];
  step = ''; // what the last step changed, so that one movement of a slider is one step
  timer = 0;
  /** @type {AbortController | null} of what is being asked whether it is possible */ asking = null;
  layer = 0; // whose temperature is shown

  /**
   * @param {(name: string) => HTMLElement} find
   * @param {(words: string, stop: AbortSignal) => Promise<void>} edit makes edits in words those of the page, where that is possible
   * @param {() => Panel | null} latest what is edited; null while it is on its way
   * @param {() => void} drawn
   */
  constructor(find, edit, latest, drawn) {
    this.find = find;
    this.edit = edit;
    this.latest = latest;
    this.drawn = drawn;
    this.views = new Views(find, (change) => this.viewed(change));
    this.listen();
  }

  /** Whether answers are of another state of the switches. */
  get isWaiting() {
    return Boolean(this.timer || this.asking || !this.latest());
  }

  /** Takes what is edited; what is chosen here and on its way comes first. */
  take() {
    const panel = this.latest();
    if (!panel || panel === this.panel || this.timer || this.asking) return;
    const isKnown = panel.trace === this.panel?.trace;
    if (!isKnown) this.past = []; // another photo or model
    const before = this.edits;
    this.put(panel);
    if (isKnown && sorted(before) !== sorted(this)) this.remember('elsewhere', before);
    showError(this.find('surgery-error'), '');
    this.views.take(panel);
    this.offerLayers(panel.layers);
    this.draw();
  }

  /** @param {Panel} panel */
  put(panel) {
    this.panel = panel;
    const there = panel.off.filter(([layer, head]) => layer < panel.layers && head < panel.heads);
    this.heads = new Map(there.map(([layer, head, state]) => [`${layer}.${head}`, state]));
    this.temperatures = new Map(panel.temperatures);
    this.forbidden = panel.forbidden;
  }

  listen() {
    const { find } = this;
    onPress(find('surgery-states'), 'state', (state) => this.choose(/** @type {State} */ (state)));
    find('surgery-undo').addEventListener('click', () => this.undo());
    find('surgery-all').addEventListener('click', () => this.clear());
    const slider = this.slider;
    slider.addEventListener('input', () => this.warm(this.layer, Number(slider.value)));
    const layers = /** @type {HTMLSelectElement} */ (find('surgery-layer'));
    layers.addEventListener('change', () => this.see(Number(layers.value)));
    window.addEventListener('keydown', (event) => this.key(event));
  }

  /** Ctrl+Z takes the last step back, where the switches are seen and nothing is typed. */
  key(/** @type {KeyboardEvent} */ event) {
    const { key, ctrlKey, metaKey, shiftKey, altKey, target } = event;
    if (key.toLowerCase() !== 'z' || !(ctrlKey || metaKey) || shiftKey || altKey) return;
    const isTyping = target instanceof Element && target.closest('input:not([type=range]), textarea, select');
    if (isTyping || !this.find('surgery').clientWidth || !this.past.length) return;
    event.preventDefault();
    this.undo();
  }

  get slider() {
    return /** @type {HTMLInputElement} */ (this.find('surgery-warmth'));
  }

  get words() {
    return wordsOf(this.heads, this.temperatures, this.forbidden);
  }

  /** @returns {Edits} a copy */
  get edits() {
    const { heads, temperatures, forbidden } = this;
    return { heads: new Map(heads), temperatures: new Map(temperatures), forbidden };
  }

  /** Keeps what is about to change. @param {string} step what changes it @param {Edits} edits */
  remember(step, edits = this.edits) {
    if (!step.startsWith('warm') || step !== this.step) this.past.push(edits);
    this.step = step;
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.step = '';
    Object.assign(this, before);
    this.changed();
  }

  /** All heads on, all temperatures as they were, every view allowed. */
  clear() {
    if (!this.words) return;
    this.remember('clear');
    Object.assign(this, { heads: new Map(), temperatures: new Map(), forbidden: [] });
    this.changed();
  }

  choose(/** @type {State} */ state) {
    this.brush = state;
    press(this.find('surgery-states'), 'state', state);
  }

  /** What a click makes of heads: the state that is chosen; where all of them have it, they are on again. @returns {State} */
  stateFor(/** @type {string[]} */ places) {
    return places.every((place) => (this.heads.get(place) ?? 'on') === this.brush) ? 'on' : this.brush;
  }

  /** Heads get the state that is chosen; where all of them have it, they are on again. */
  toggle(/** @type {string[]} */ places) {
    const state = this.stateFor(places);
    this.remember('heads');
    this.set(places, state);
  }

  /** @param {string[]} places @param {State} state */
  set(places, state) {
    for (const place of places) {
      if (state === 'on') this.heads.delete(place);
      else this.heads.set(place, state);
    }
    this.changed();
  }

  warm(/** @type {number} */ layer, /** @type {number} */ power) {
    this.remember(`warm ${layer}`);
    this.temperatures.set(layer, temperatureOf(power));
    this.changed();
  }

  /** Shows the temperature of another layer. */
  see(/** @type {number} */ layer) {
    this.layer = Math.max(0, Math.min(layer, (this.panel?.layers ?? 1) - 1));
    this.drawTemperature();
  }

  viewed(/** @type {{forbid?: string, allow?: string, error?: string}} */ { forbid, allow, error }) {
    showError(this.find('surgery-error'), error);
    if (!forbid && !allow) return;
    this.remember('view');
    if (forbid) this.forbidden = [...this.forbidden.filter((one) => one !== forbid), forbid];
    if (allow) this.forbidden = this.forbidden.filter((one) => one !== allow);
    this.changed();
  }

  /** Shows it at once, and makes it that of the page when the clicks pause. */
  changed() {
    this.asking?.abort();
    this.asking = null;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.send();
    }, PAUSE);
    this.draw();
  }

  /** What the model cannot have is said, and the switches are as they were. */
  async send() {
    const asking = (this.asking = new AbortController());
    let refused = '';
    try {
      await this.edit(this.words, asking.signal);
    } catch (error) {
      refused = /** @type {Error} */ (error).message;
    }
    if (asking !== this.asking) return; // something else was chosen meanwhile
    this.asking = null;
    if (refused) {
      this.past.pop(); // the step that was refused
      if (this.panel) this.put(this.panel);
    }
    this.take();
    showError(this.find('surgery-error'), refused);
    this.draw();
  }

  offerLayers(/** @type {number} */ layers) {
    const select = this.find('surgery-layer');
    if (select.children.length !== layers) {
      const names = Array.from({ length: layers }, (_, layer) => optionOf(String(layer)));
      select.replaceChildren(...names);
      this.see(this.layer);
    }
  }

  draw() {
    /** @type {HTMLButtonElement} */ (this.find('surgery-undo')).disabled = !this.past.length;
    /** @type {HTMLButtonElement} */ (this.find('surgery-all')).disabled = !this.words;
    this.drawTemperature();
    this.views.list(this.forbidden);
    this.drawn();
  }

  /** The slider of the layer that is seen, and every layer whose temperature is another. */
  drawTemperature() {
    const { slider, layer } = this;
    const value = this.temperatures.get(layer) ?? 1;
    /** @type {HTMLSelectElement} */ (this.find('surgery-layer')).value = String(layer);
    if (temperatureOf(Number(slider.value)) !== value) slider.value = String(Math.log2(value));
    const words = value === 1 ? '1' : `${value}, ${value < 1 ? 'sharper' : 'more even'}`;
    slider.setAttribute('aria-valuetext', words);
    this.find('surgery-degree').textContent = words;
    const others = [...this.temperatures].filter(([, degree]) => degree !== 1).sort(([a], [b]) => a - b);
    const said = others.map(([one, degree]) => `layer ${one}: ${degree}`).join(', ');
    showText(this.find('surgery-warm'), said && `Temperatures: ${said}.`);
  }
}
