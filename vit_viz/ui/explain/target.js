// What is explained: a class ('why'), optionally set against another ('unlike'), found among the first or by its name
// ('search'). Names are untrusted text and are written with textContent only.

import { drawValue, finder, having, make, onPress, press, showText } from '../kit/elements.js';
import { amountWords, short } from '../kit/numbers.js';
/** @import { Mount, Trigger, Watch } from '../kit/elements.js' */

/**
 * @typedef {{name: string, index?: number, probability?: number | null, value?: number}} Entry
 * @typedef {{classes?: Entry[], chosen?: number, other?: number | null, words?: string, single?: boolean}}
 *   Target single: whether a class is chosen alone, with nothing to set against it
 *
 * @typedef {keyof typeof TITLES} Face
 *
 * @typedef {{seq: number, hits: {name: string, index: number}[]}} Matches
 */

const TITLES = { why: 'Why', parts: 'What it is made of' };

/** @type {Mount<{value: (Target & {face?: Face}) | null, matches: Matches | null}>} */
export function mount(element, trigger, props, watch) {
  onPress(element, 'face', (face) => trigger('face', { explain_face: face }));
  drawValue(watch, () => {
    const face = props.value?.face ?? 'why';
    press(element, 'face', face);
    finder(element)('why-title').textContent = TITLES[face];
  });
  chooseTarget(element, trigger, watch, { value: () => props.value, matches: () => props.matches });
}

/**
 * @param {HTMLElement} element @param {Trigger} trigger @param {Watch} watch
 * @param {{value: () => Target | null | undefined, matches: () => Matches | null}} now
 */
export function chooseTarget(element, trigger, watch, { value, matches }) {
  const search = new Search(element, trigger);
  watch('matches', () => search.show(matches(), value()?.single));
  drawValue(watch, () => {
    const target = value();
    if (!target) return;
    drawChips(element, trigger, target);
    search.close();
  });
}

/** @param {HTMLElement} element @param {Trigger} trigger @param {Target} value */
function drawChips(element, trigger, value) {
  const find = finder(element);
  const { chosen, other } = value;
  const classes = value.classes ?? [];
  for (const row of element.querySelectorAll('.vv-target-row'))
    /** @type {HTMLElement} */ (row).hidden = !classes.length;
  const chip = (/** @type {Entry} */ entry, /** @type {boolean} */ on, /** @type {string} */ event) =>
    makeChip(entry, on, () => trigger(event, { index: entry.index ?? null }));
  find('why').replaceChildren(...classes.map((entry) => chip(entry, entry.index === chosen, 'why')));
  showText(find('target-words'), value.words);
  if (value.single) return;
  const others = classes.filter((entry) => entry.index !== chosen);
  const hasOther = other !== null && other !== undefined;
  find('unlike').replaceChildren(
    ...others.map(({ name, index }) => chip({ name, index }, index === other, 'unlike')),
    chip({ name: 'compared with nothing' }, !hasOther, 'unlike'),
  );
}

/** @param {Entry} entry @param {boolean} chosen @param {() => void} choose */
function makeChip({ name, probability, value }, chosen, choose) {
  const node = make('button', 'vv-chip', name);
  node.setAttribute('aria-pressed', String(chosen));
  const hasAmount = typeof (value ?? probability) === 'number';
  const exact = value === undefined ? `probability ${probability?.toFixed(4)}` : `value ${short(value)}`;
  node.title = hasAmount ? `${name}, ${exact}` : name;
  if (hasAmount)
    node.append(make('span', 'vv-number', amountWords({ probability: probability ?? 0, value }, percent)));
  node.addEventListener('click', choose);
  return node;
}

/** A probability for people, as `percent` of answers.py writes it. */
function percent(/** @type {number} */ share) {
  if (share > 0 && share < 0.0005) return '<0.1%';
  return `${(100 * share).toFixed(share >= 0.0995 && share <= 0.99 ? 0 : 1)}%`;
}

/** The search for a class by its name: asks once the hand rests, and shows the answer to the newest question only. */
class Search {
  /** @param {HTMLElement} element @param {Trigger} trigger */
  constructor(element, trigger) {
    const find = finder(element);
    this.trigger = trigger;
    this.input = /** @type {HTMLInputElement} */ (find('search'));
    this.hits = find('hits');
    this.seq = 0;
    this.awaits = false;
    this.timer = 0;
    this.input.addEventListener('input', () => this.typed());
    this.input.addEventListener('keydown', (event) => this.pressed(event.key));
    this.hits.addEventListener('mousedown', (event) => event.preventDefault()); // the focus stays in the field
    find('search-box').addEventListener('focusout', (event) => {
      const next = /** @type {Node | null} */ (event.relatedTarget);
      if (!next || !find('search-box').contains(next)) this.close();
    });
  }

  /** Forgets the question too, so that an answer which is under way opens nothing. */
  close() {
    clearTimeout(this.timer);
    this.awaits = false;
    this.hits.hidden = true;
  }

  typed() {
    clearTimeout(this.timer);
    const text = this.input.value.trim().slice(0, 100);
    if (!text) return this.close();
    const ask = () => {
      this.awaits = true;
      this.trigger('search', { text, seq: ++this.seq });
    };
    this.timer = window.setTimeout(ask, 150);
  }

  pressed(/** @type {string} */ key) {
    if (key === 'Escape') this.close();
    const first = this.hits.querySelector('button');
    if (key === 'Enter' && first && !this.hits.hidden) first.click();
  }

  /** An answer of the server. */
  show(/** @type {Matches | null} */ answer, single = false) {
    if (!answer || answer.seq !== this.seq || !this.awaits) return;
    const hits = answer.hits.map((entry) => this.hit(entry, single));
    this.hits.replaceChildren(...(hits.length ? hits : [make('li', '', 'No class has this name.')]));
    this.hits.hidden = false;
  }

  hit(/** @type {Matches['hits'][number]} */ { name, index }, /** @type {boolean} */ single) {
    const words = having(make('span', 'vv-class', name), { title: `class ${index}` });
    const choice = (/** @type {string} */ label, /** @type {string} */ event) =>
      makeChip({ name: label }, false, () => this.trigger(event, { index }));
    const choices = single ? [choice('show', 'why')] : [choice('why', 'why'), choice('and not', 'unlike')];
    const line = make('li', '', words, ...choices);
    line.addEventListener('click', () => {
      this.input.value = '';
      this.close();
    });
    return line;
  }
}
