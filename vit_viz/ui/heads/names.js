// A name for each head: the heads of each name as chips; a chip opens the numbers and thresholds that gave the name.

import { make } from '../kit/elements.js';
import { short } from '../kit/numbers.js';
import { headWords } from './words.js';

/**
 * @typedef {import('./words.js').Place} Place
 *
 * @typedef {{name: string, sentence: string, at_least: Record<string, number>, at_most: Record<string,
 *   number>}} Rule
 *
 * @typedef {Place & {name: string, label: string, sentence: string, numbers: Record<string, number>, could_be: string[],
 *   thin: boolean}} Named
 */

/** What the numbers of the rules are, with what they are shares of. */
const NUMBERS = new Map([
  ['class token', 'share of the attention on the class token'],
  ['registers and sinks', 'share of the attention on registers and outlier tokens'],
  ['neighbour', 'share of the attention on that patch'],
  ['distance', "mean distance, as a share of the photo's diagonal,"],
  ['unevenness', 'unevenness (1 - entropy)'],
  ['content', 'correlation of attention with likeness'],
  ['positional', 'share explained by position'],
]);

const MANY = 24; // chips of one name that are shown at once
const MIXED = 'Nothing stands out: no measure passes its threshold.';

/** What a number of a rule is, in words. */
export function numberWords(/** @type {string} */ number) {
  return NUMBERS.get(number) ?? number;
}

/** What a rule asks for, in words: "unevenness (1 - entropy) at most 0.13". */
export function ruleWords(/** @type {Rule} */ { at_least: least, at_most: most }) {
  const parts = [
    ...Object.entries(least).map(([name, bound]) => `${numberWords(name)} at least ${bound}`),
    ...Object.entries(most).map(([name, bound]) => `${numberWords(name)} at most ${bound}`),
  ];
  return parts.join(', ');
}

/** What a head is called, and whether that is certain. */
export function nameWords(/** @type {Named | undefined} */ named) {
  if (!named) return '';
  return named.thin && named.name !== 'mixed' ? `${named.label} (thin evidence)` : named.label;
}

/** Why the evidence for a name is thin; '' where it is not. */
export function thinWords(/** @type {Named} */ { name, could_be: others }, margin = 0.1) {
  if (!others.length) return name === 'mixed' ? 'No rule holds, so this is no name of its own.' : '';
  const percent = Math.round(100 * margin);
  return `The evidence is thin: with thresholds ${percent}% stricter or looser it would be ${others.join(' or ')}.`;
}

/**
 * The numbers of a head beside the thresholds that names ask of them, in the order in which the rules are tried.
 * @param {Named} named
 * @param {Rule[]} rules
 */
export function evidenceOf(named, rules) {
  return rules.flatMap((rule) =>
    [
      ...Object.entries(rule.at_least).map(([number, bound]) => ({ number, bound, words: 'at least' })),
      ...Object.entries(rule.at_most).map(([number, bound]) => ({ number, bound, words: 'at most' })),
    ].map(({ number, bound, words }) => {
      const value = named.numbers[number];
      const passes = words === 'at least' ? value >= bound : value <= bound;
      return { name: rule.name, number, value, bound: `${words} ${bound}`, passes };
    }),
  );
}

export class Names {
  /** @param {HTMLElement} box @param {(place: Place) => void} choose */
  constructor(box, choose) {
    this.box = box;
    this.choose = choose;
    /** @type {Rule[]} */
    this.rules = [];
    /** @type {HTMLElement[]} */
    this.chips = [];
    /** @type {Map<string, Named>} */
    this.known = new Map();
    this.open = '';
    this.margin = 0.1;
    box.addEventListener('click', (event) => this.clicked(event));
  }

  /** What a head is called. */
  of(/** @type {Place} */ { layer, head }) {
    return this.known.get(`${layer}.${head}`);
  }

  /** @param {Named[]} names @param {Rule[]} rules @param {number} margin */
  draw(names, rules, margin) {
    Object.assign(this, { rules, margin, chips: [] });
    this.known = new Map(names.map((named) => [`${named.layer}.${named.head}`, named]));
    if (!this.known.has(this.open)) this.open = '';
    const kinds = [...rules.map(({ name }) => name), 'mixed'];
    const of = (/** @type {string} */ kind) => names.filter(({ name }) => name === kind);
    const none = rules.map(({ name }) => name).filter((kind) => !of(kind).length);
    const rest =
      none.length && names.length ? [make('p', 'vv-small', `No head is called ${none.join(', ')}.`)] : [];
    this.box.replaceChildren(
      ...kinds.filter((kind) => of(kind).length).map((kind) => this.kind(kind, of(kind))),
      ...rest,
    );
    this.unfold();
  }

  /** @param {string} kind @param {Named[]} names */
  kind(kind, names) {
    const rule = this.rules.find(({ name }) => name === kind);
    const box = make('div', 'vv-heads-kind');
    const title = make('h3', 'vv-heads-kind-name', kind);
    title.append(make('span', 'vv-number', ` ${names.length}`));
    const words = rule ? `${rule.sentence} ${capital(ruleWords(rule))}.` : MIXED;
    const chips = make('div', 'vv-heads-chips');
    chips.append(...names.map((named) => this.chip(named)));
    const evidence = make('div', 'vv-heads-evidence vv-card vv-stack');
    evidence.hidden = true;
    box.append(title, make('p', 'vv-small', words), chips, evidence);
    if (names.length > MANY) {
      chips.dataset.few = '';
      chips.append(make('button', 'vv-button vv-heads-more', `show all ${names.length}`));
    }
    return box;
  }

  chip(/** @type {Named} */ named) {
    const { layer, head, label, name, thin } = named;
    const side = label === name ? '' : ` ${label.split(' ')[0]}`;
    const text = `${layer} \u00b7 ${head}${side}`;
    const chip = make('button', 'vv-chip', text);
    chip.dataset.layer = String(layer);
    chip.dataset.head = String(head);
    chip.classList.toggle('vv-thin', thin && name !== 'mixed');
    chip.setAttribute('aria-expanded', 'false');
    chip.setAttribute('aria-label', `${text}; ${headWords(named)}: ${nameWords(named)}`);
    this.chips.push(chip);
    return chip;
  }

  clicked(/** @type {Event} */ { target }) {
    if (!(target instanceof Element)) return;
    const more = target.closest('.vv-heads-more');
    if (more instanceof HTMLElement) return this.showAll(more);
    const chip = target.closest('.vv-chip');
    if (!(chip instanceof HTMLElement)) return;
    const place = { layer: Number(chip.dataset.layer), head: Number(chip.dataset.head) };
    const key = `${place.layer}.${place.head}`;
    this.open = this.open === key ? '' : key;
    this.unfold();
    if (this.open) this.choose(place);
  }

  /** All chips of a name in place of the first ones; the focus goes on to the first that is new. */
  showAll(/** @type {HTMLElement} */ more) {
    const chips = /** @type {HTMLElement} */ (more.parentElement);
    delete chips.dataset.few;
    more.hidden = true;
    /** @type {HTMLElement} */ (chips.children[MANY]).focus();
  }

  /** Shows the numbers of the open head under the chips of its name. */
  unfold() {
    const named = this.known.get(this.open);
    for (const chip of this.chips) {
      const isOpen = `${chip.dataset.layer}.${chip.dataset.head}` === this.open;
      chip.setAttribute('aria-expanded', String(isOpen));
      chip.toggleAttribute('data-on', isOpen);
    }
    for (const box of this.box.querySelectorAll('.vv-heads-kind')) {
      const evidence = /** @type {HTMLElement} */ (box.querySelector('.vv-heads-evidence'));
      const isHere = Boolean(named) && box.querySelector('.vv-chip[data-on]') !== null;
      evidence.hidden = !isHere;
      evidence.replaceChildren(...(named && isHere ? this.evidence(named) : []));
    }
  }

  evidence(/** @type {Named} */ named) {
    const title = make('h4', 'vv-heads-evidence-title', `${capital(headWords(named))}: ${named.label}`);
    const table = make('table', 'vv-heads-numbers vv-table');
    const line = (/** @type {string[]} */ texts, /** @type {'th' | 'td'} */ tag) => {
      const row = make('tr');
      row.append(...texts.map((text) => make(tag, '', text)));
      return row;
    };
    const rows = evidenceOf(named, this.rules).map((one) => {
      const row = line(
        [
          capital(numberWords(one.number)).replace(/,$/, ''),
          short(one.value),
          one.bound,
          one.passes ? 'yes' : 'no',
          one.name,
        ],
        'td',
      );
      row.classList.toggle('vv-passes', one.passes);
      return row;
    });
    const head = line(['number', 'this head', 'asked', 'passes', 'for the name'], 'th');
    const body = make('tbody');
    const top = make('thead');
    top.append(head);
    body.append(...rows);
    table.append(top, body);
    const parts = [title, make('p', '', named.sentence)];
    const thin = thinWords(named, this.margin);
    if (thin) parts.push(make('p', '', thin));
    const scroll = make('div', 'vv-scroll');
    scroll.append(table);
    scroll.setAttribute('tabindex', '0');
    scroll.setAttribute('role', 'group');
    scroll.setAttribute('aria-label', 'The numbers of this head beside the thresholds of all names');
    parts.push(
      scroll,
      make('p', 'vv-small', 'The rules are tried from the top; the first whose numbers pass names the head.'),
    );
    return parts;
  }
}

function capital(/** @type {string} */ text) {
  return text ? text[0].toUpperCase() + text.slice(1) : '';
}
