// Which methods agree on this photo, as a table of rank correlations; and which card to believe first, as a sentence.

import { fillTable, finder, having, make, showText } from '../../ui/kit/elements.js';
/** @import { Trust } from './card.js' */

/** @typedef {{names: string[], values: number[][], words: string}} Agreement values: rank correlations of each two */

/** How much more area the next map may have and still be said to do as well as the first. */
const AS_WELL = 1.1;

/** @param {HTMLElement} element @param {Agreement | null | undefined} agreement */
export function drawAgreement(element, agreement) {
  const find = finder(element);
  find('agree').hidden = !agreement;
  if (!agreement) return;
  const { names, values, words } = agreement;
  showText(find('agree-words'), words);
  const heads = names.map((name, i) => having(make('abbr', '', String(i + 1)), { title: name }));
  const cells = (/** @type {number} */ row) => values[row].map((value, col) => cell(value, row === col));
  fillTable(
    find('agree-table'),
    ['method', ...heads],
    names.map((name, row) => [`${row + 1} ${name}`, ...cells(row)]),
  );
}

/** A correlation; of a map with itself nothing is said. */
function cell(/** @type {number} */ value, /** @type {boolean} */ isItself) {
  const node = make('td', 'vv-number', isItself ? '' : value.toFixed(1).replace('-', '−'));
  node.style.setProperty('--agrees', `${Math.round(70 * Math.max(0, value))}%`);
  return node;
}

/**
 * Which card to believe first, and why.
 * @param {{label: string, trust: Trust | undefined}[]} cards the most faithful first
 * @param {string} of the class of the test, where it is another one than that of the maps
 */
export function firstChoice(cards, of = '') {
  const tested = cards.flatMap(({ label, trust }) =>
    trust?.place ? [{ label, ...trust.place, better: trust.better, what: trust.what }] : [],
  );
  if (!tested.length) return '';
  const [first, next] = tested.filter(({ better }) => better);
  const whose = of ? ` for ${of}` : '';
  const range = ({ low, high } = tested[0]) => `${short(low)} to ${short(high)}`;
  if (!first)
    return `Believe none first${whose}: no map tested does better than the band of random orders (${range()}).`;
  const mean = first.what ? `the mean of ${first.what}` : "the mean height of the answer's curve";
  const why = `as the best patches go, ${mean} is`;
  const beside = `random orders lie between ${range(first)}`.replace(' to ', ' and ');
  const { floor = 0 } = first;
  if (next && next.area - floor <= AS_WELL * (first.area - floor))
    return `${first.label} and ${next.label} do about equally well${whose}: ${why} ${short(first.area)} and ${short(next.area)}; ${beside}.`;
  return `Believe ${first.label} first${whose}: ${why} ${short(first.area)}; ${beside}.`;
}

/** A number with two digits that say something. */
function short(/** @type {number} */ value) {
  return String(Number(value.toPrecision(2))).replace('-', '−');
}
