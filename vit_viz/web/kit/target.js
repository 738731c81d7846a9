// Which class is meant: among the first by chips, or by its name ('find'), and another that it is set against, or none. Names are
// untrusted text and are written with textContent only.

import { finder, having, make, showText } from '../../ui/kit/elements.js';
import { amountWords, short } from '../../ui/kit/numbers.js';
import { Job } from './job.js';

/**
 * @typedef {{name: string, index?: number, probability?: number | null, value?: number}} Entry
 * @typedef {{classes?: Entry[], chosen?: number | null, other?: number | null, words?: string, name?: string, single?: boolean}}
 *   Target single: whether a class is chosen alone, with nothing to set against it
 * @typedef {{name: string, index: number}[]} Hits
 *
 * What is done with a choice.
 * @typedef {object} Choices
 * @property {(index: number | null) => void} why
 * @property {(index: number | null) => void} [unlike] null: nothing
 * @property {(text: string, stop: AbortSignal) => Promise<Hits>} find
 */

/** The chips and the field of an element. */
export class TargetChooser {
  /** @param {HTMLElement} element @param {Choices} choices */
  constructor(element, choices) {
    this.element = element;
    this.choices = choices;
    this.search = new Search(element, choices);
  }

  /** Says which classes there are, and which are chosen. @param {Target} target */
  show(target) {
    const { element, choices } = this;
    this.search.isSingle = Boolean(target.single);
    this.search.close();
    drawChips(element, choices, target);
  }
}

/** @param {HTMLElement} element @param {Choices} choices @param {Target} value */
function drawChips(element, choices, value) {
  const find = finder(element);
  const { chosen, other } = value;
  const classes = value.classes ?? [];
  for (const row of element.querySelectorAll('.vv-target-row'))
    /** @type {HTMLElement} */ (row).hidden = !classes.length;
  const chip = (
    /** @type {Entry} */ entry,
    /** @type {boolean} */ on,
    /** @type {'why' | 'unlike'} */ which,
  ) => makeChip(entry, on, () => choices[which]?.(entry.index ?? null));
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
  isSingle = false;
  job = new Job(() => this.job.error && this.list([make('li', '', this.job.error)]));
  timer = 0;

  /** @param {HTMLElement} element @param {Choices} choices */
  constructor(element, choices) {
    const find = finder(element);
    this.choices = choices;
    this.input = having(make('input', 'vv-search vv-control'), {
      ...{ type: 'search', placeholder: 'another class…', autocomplete: 'off' },
      'aria-label': 'Search a class by name or number',
    });
    this.hits = make('ul', 'vv-hits');
    this.hits.hidden = true;
    find('search-box').replaceChildren(this.input, this.hits);
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
    this.job.end();
    this.hits.hidden = true;
  }

  typed() {
    clearTimeout(this.timer);
    const text = this.input.value.trim().slice(0, 100);
    if (!text) return this.close();
    this.timer = window.setTimeout(() => this.ask(text), 150);
  }

  ask(/** @type {string} */ text) {
    void this.job.follow((stop) => this.choices.find(text, stop), {
      whole: (found) => this.list(found.map((entry) => this.hit(entry))),
    });
  }

  list(/** @type {HTMLElement[]} */ lines) {
    this.hits.replaceChildren(...(lines.length ? lines : [make('li', '', 'No class has this name.')]));
    this.hits.hidden = false;
  }

  pressed(/** @type {string} */ key) {
    if (key === 'Escape') this.close();
    const first = this.hits.querySelector('button');
    if (key === 'Enter' && first && !this.hits.hidden) first.click();
  }

  hit(/** @type {Hits[number]} */ { name, index }) {
    const words = having(make('span', 'vv-class', name), { title: `class ${index}` });
    const choice = (/** @type {string} */ label, /** @type {'why' | 'unlike'} */ which) =>
      makeChip({ name: label }, false, () => this.choices[which]?.(index));
    const choices = this.isSingle
      ? [choice('show', 'why')]
      : [choice('why', 'why'), choice('and not', 'unlike')];
    const line = make('li', '', words, ...choices);
    line.addEventListener('click', () => {
      this.input.value = '';
      this.close();
    });
    return line;
  }
}
