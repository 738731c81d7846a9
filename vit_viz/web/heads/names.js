// A name for each head: the names as a legend of the grid; a name says its rule and lets the other heads fade.

import { percent as shareWords } from '../../explorer/labels.js';
import { short } from '../../ui/kit/numbers.js';
import { html } from '../kit/preact.js';
import { capital, keyOf } from './words.js';
/** @import { Place } from './words.js' */

/**
 * @typedef {{name: string, sentence: string, at_least: Record<string, number>, at_most: Record<string,
 *   number>}} Rule
 *
 * @typedef {Place & {name: string, label: string, sentence: string, numbers: Record<string, number>, could_be: string[],
 *   thin: boolean}} Named
 *
 * The names of all heads by layer and head, such as "3.1"; note: why there are none, or what is not known.
 * @typedef {{known: Map<string, Named>, note: string}} Names
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

/** What a rule asks for: a number, its bound, and how both are written; shares in percent. */
function boundsOf(/** @type {Rule} */ { at_least: least, at_most: most }) {
  const of = (/** @type {Record<string, number>} */ bounds, /** @type {string} */ words) =>
    Object.entries(bounds).map(([number, bound]) => {
      const write = /share/.test(numberWords(number)) ? shareWords : short;
      return { number, bound, write, words: `${words} ${write(bound)}` };
    });
  return [...of(least, 'at least'), ...of(most, 'at most')];
}

/** What a rule asks for, in words: "unevenness (1 - entropy) at most 0.13". */
export function ruleWords(/** @type {Rule} */ rule) {
  return boundsOf(rule)
    .map(({ number, words }) => `${numberWords(number)} ${words}`)
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
    boundsOf(rule).map(({ number, bound: limit, write, words: bound }) => {
      const value = named.numbers[number];
      const passes = number in rule.at_least ? value >= limit : value <= limit;
      return { name: rule.name, number, value, text: write(value), bound, limit, passes };
    }),
  );
}

/** Names as the room shows them. @param {any[]} heads of the answer @param {string} note @returns {Names} */
export function namesIn(heads, note) {
  const known = heads.map((head) => ({
    ...head,
    label: `${head.side} ${head.name}`.trim(),
    thin: head.name === 'mixed' || head.could_be.length > 0,
  }));
  return { known: new Map(known.map((named) => [keyOf(named), named])), note };
}

/** How many heads have each name, in the order of the rules; names that no head has are left out. @param {Names} names @param {Rule[]} rules */
export function countsOf({ known }, rules) {
  const names = [...known.values()].map(({ name }) => name);
  return [...rules.map(({ name }) => name), 'mixed']
    .map((kind) => ({ kind, count: names.filter((name) => name === kind).length }))
    .filter(({ count }) => count);
}

/** What is said below the grid: the rule of the name that stands out, or what names are. @param {Names} names @param {Rule[]} rules @param {string} kind */
export function legendWords(names, rules, kind) {
  const rule = rules.find(({ name }) => name === kind);
  if (rule) return `${rule.sentence} ${capital(ruleWords(rule))}.`;
  if (kind) return MIXED;
  if (!names.known.size) return names.note;
  const has = new Set(countsOf(names, rules).map((one) => one.kind));
  const none = rules.map(({ name }) => name).filter((name) => !has.has(name));
  const missing = none.length ? `No head is called ${none.join(', ')}.` : '';
  return [NAMES, missing, names.note].filter(Boolean).join(' ');
}

/** The dot of a name. @param {{kind: string}} props */
export function Dot({ kind }) {
  return html`<i class="vv-heads-kind-dot" data-kind=${kind}></i>`;
}

/** @param {{counts: ReturnType<typeof countsOf>, shown: string, show: (kind: string) => void}} props */
export function Legend({ counts, shown, show }) {
  return html`<div class="vv-heads-kinds vv-row" role="group" aria-label="Names of heads: the others fade">
    ${counts.map(
      ({ kind, count }) =>
        html`<button
          key=${kind}
          type="button"
          class="vv-chip"
          data-kind=${kind}
          aria-pressed=${String(kind === shown)}
          onClick=${() => show(kind === shown ? '' : kind)}
        >
          <${Dot} kind=${kind} />${kind}<span class="vv-number"> ${count}</span>
        </button>`,
    )}
  </div>`;
}
