// A name for each head: the names as a legend of the grid; a name says its rule and lets the other heads fade.

import { having, make, onPress, showText } from '../../ui/kit/elements.js';
import { capital } from './words.js';
/** @import { Place } from './words.js' */

/**
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

const NAMES =
  'The dot on a head is its name: the first whose numbers pass their thresholds, on this photo alone. A hollow dot lies so close to a ' +
  'threshold that the evidence is thin.';
const MIXED = 'Nothing stands out: no measure passes its threshold.';

/** What a number of a rule is, in words. */
export function numberWords(/** @type {string} */ number) {
  return NUMBERS.get(number) ?? number;
}

/** What a rule asks for: a number, and its bound in words. */
function boundsOf(/** @type {Rule} */ { at_least: least, at_most: most }) {
  return [
    ...Object.entries(least).map(([number, bound]) => ({ number, bound, words: 'at least' })),
    ...Object.entries(most).map(([number, bound]) => ({ number, bound, words: 'at most' })),
  ];
}

/** What a rule asks for, in words: "unevenness (1 - entropy) at most 0.13". */
export function ruleWords(/** @type {Rule} */ rule) {
  return boundsOf(rule)
    .map(({ number, bound, words }) => `${numberWords(number)} ${words} ${bound}`)
    .join(', ');
}

/** What a head is called, and whether that is certain. */
export function nameWords(/** @type {Named | undefined} */ named) {
  if (!named) return '';
  return named.thin && named.name !== 'mixed' ? `${named.label} (thin evidence)` : named.label;
}

/** Why the evidence for a name is thin; '' where it is not. */
export function thinWords(/** @type {Named} */ { name, could_be: others }, /** @type {number} */ margin) {
  if (!others.length) return name === 'mixed' ? 'No rule holds, so this is no name of its own.' : '';
  const percent = Math.round(100 * margin);
  return `The evidence is thin: with thresholds ${percent}% stricter or looser it would be ${others.join(' or ')}.`;
}

/**
 * The numbers of a head beside the thresholds that names ask of them, in the order in which the rules are tried.
 * @param {Named} named @param {Rule[]} rules
 */
export function evidenceOf(named, rules) {
  return rules.flatMap((rule) =>
    boundsOf(rule).map(({ number, bound, words }) => {
      const value = named.numbers[number];
      const passes = words === 'at least' ? value >= bound : value <= bound;
      return { name: rule.name, number, value, bound: `${words} ${bound}`, limit: bound, passes };
    }),
  );
}

export class Names {
  /** @type {Map<string, Named>} */ known = new Map();
  shown = ''; // the name whose heads stand out
  note = '';

  /**
   * @param {HTMLElement} box @param {HTMLElement} words
   * @param {{rules: Rule[], margin: number}} declared margin: by what share a threshold is moved to see whether another name holds
   * @param {() => void} changed
   */
  constructor(box, words, { rules, margin }, changed) {
    this.rules = rules;
    this.margin = margin;
    this.box = box;
    this.words = words;
    onPress(box, 'kind', (kind) => {
      this.shown = this.shown === kind ? '' : kind;
      this.press();
      changed();
    });
  }

  /** What a head is called. */
  of(/** @type {Place} */ { layer, head }) {
    return this.known.get(`${layer}.${head}`);
  }

  /** How many heads have each name, in the order of the rules; names that no head has are left out. */
  counts() {
    const names = [...this.known.values()].map(({ name }) => name);
    return [...this.rules.map(({ name }) => name), 'mixed']
      .map((kind) => ({ kind, count: names.filter((name) => name === kind).length }))
      .filter(({ count }) => count);
  }

  /** @param {Named[]} names @param {string} note why there are none, or what is not known */
  draw(names, note) {
    this.note = note;
    this.known = new Map(names.map((named) => [`${named.layer}.${named.head}`, named]));
    const counts = this.counts();
    if (!counts.some(({ kind }) => kind === this.shown)) this.shown = '';
    this.box.replaceChildren(
      ...counts.map(({ kind, count }) => {
        const dot = having(make('i', 'vv-heads-kind-dot'), { 'data-kind': kind });
        const number = make('span', 'vv-number', ` ${count}`);
        return having(make('button', 'vv-chip', dot, kind, number), { type: 'button', 'data-kind': kind });
      }),
    );
    this.press();
  }

  /** Marks the name that stands out, and says its rule. */
  press() {
    for (const chip of this.box.children)
      chip.setAttribute('aria-pressed', String(chip.getAttribute('data-kind') === this.shown));
    showText(this.words, this.sentence());
  }

  sentence() {
    const rule = this.rules.find(({ name }) => name === this.shown);
    if (rule) return `${rule.sentence} ${capital(ruleWords(rule))}.`;
    if (this.shown) return MIXED;
    if (!this.known.size) return this.note;
    const has = new Set(this.counts().map(({ kind }) => kind));
    const none = this.rules.map(({ name }) => name).filter((kind) => !has.has(kind));
    return [NAMES, none.length ? `No head is called ${none.join(', ')}.` : '', this.note]
      .filter(Boolean)
      .join(' ');
  }

  /** Heads of other names than the one that stands out fade; thin evidence is marked. @param {import('./room.js').HeadRoom} room */
  fade(room) {
    for (const cell of room.grid.cells.flat()) {
      const named = this.of({ layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) });
      const isOther = this.shown && room.isShown('atlas') && named?.name !== this.shown;
      cell.classList.toggle('vv-faded', Boolean(isOther));
      cell.classList.toggle('vv-thin', Boolean(named?.thin && named.name !== 'mixed'));
    }
  }
}
