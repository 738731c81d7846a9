// What is said of the matrix and of its links.

import { headWords } from '../../explorer/labels.js';
import { percent } from '../../ui/kit/numbers.js';
/** @import { Axis, Filling, Link } from '../../explorer/matrix.js' */

/** An attention weight in two digits that count. */
export function weightText(/** @type {number} */ weight) {
  if (weight === 0) return '0';
  return weight < 1e-4 ? weight.toExponential(1) : String(Number(weight.toPrecision(2)));
}

/** The pair under the pointer. @param {Filling} filling @param {[number, number]} pair query, key */
export function pairWords(filling, [query, key]) {
  const { axis } = filling;
  const value = filling.at(query, key);
  const isBlock = [query, key].some((cell) => axis.patchesOf(cell).length > 1);
  const number = Number.isNaN(value) ? 'not computed yet' : `${isBlock ? 'mean ' : ''}${weightText(value)}`;
  return `${axis.nameOf(query)} ${verb(axis, query)} at ${axis.nameOf(key)}: ${number}`;
}

function verb(/** @type {Axis} */ axis, /** @type {number} */ cell) {
  return axis.patchesOf(cell).length > 1 ? 'look' : 'looks';
}

/** Where a query looks most. @param {Axis} axis @param {number} query @param {Link | undefined} link its strongest */
export function mostWords(axis, query, link) {
  const name = axis.nameOf(query);
  if (!link) return name;
  return `${name} ${verb(axis, query)} most at ${axis.nameOf(axis.cellOf[link.key])}: ${weightText(link.weight)}`;
}

/** What the matrix is of. @param {number} layer @param {number | string} head */
export function matrixTitle(layer, head) {
  return `Layer ${layer}, ${headWords(head)}: every token against every token`;
}

/** Whether the rows of a head, or of heads fused, sum to 1. */
function sumsToOne(/** @type {number | string} */ head) {
  return typeof head === 'number' || head === 'mean';
}

/** Its size, and what a cell is where it is not one token. @param {Axis} axis @param {number | string} head */
export function sizeWords({ tokens, cells, block }, head) {
  const count = (/** @type {number} */ value) => value.toLocaleString('en');
  const size = `Rows are queries, columns are keys: ${count(tokens)} x ${count(tokens)} tokens${sumsToOne(head) ? ', and each row sums to 1' : ''}.`;
  if (block === 1) return size;
  return `${size} Drawn as ${count(cells)} x ${count(cells)} cells: each is the mean of a block of up to ${block} x ${block} neighbouring tokens.`;
}

/**
 * What the drawn links hold of the attention.
 * @param {Link[]} links @param {{total: number, pairs: number}} strongest
 * @param {{query: string, tokens: number, isPlaced: boolean} | null} of the query in words and its number of tokens; null for the whole head
 * @param {number | string} head
 */
export function linkWords(links, { total, pairs }, of, head) {
  if (!links.length) return 'There is no link between two patches here.';
  const sum = links.reduce((all, { weight }) => all + weight, 0);
  const left = "A patch's link to itself is left out.";
  if (!of) {
    const share = percent(total > 0 ? sum / total : 0);
    return `The ${links.length} strongest of ${pairs.toLocaleString('en')} links between patches hold ${share} of their weight. ${left}`;
  }
  const places = of.isPlaced ? '' : ' It has no place on the photo: dots mark where it looks.';
  const share = sumsToOne(head)
    ? ` hold ${percent(sum / of.tokens)} of its attention`
    : ` by the ${headWords(head)}`;
  const said = `The ${links.length} strongest links of ${of.query} to patches${share}.`;
  return of.isPlaced ? `${said} ${left}` : `${said}${places}`;
}

/** Why a matrix is not drawn, and what there is instead. @param {number} bytes of the layer @param {number} most */
export function tooLargeWords(bytes, most) {
  const megabytes = (/** @type {number} */ count) => `${Math.ceil(count / 1e6)} MB`;
  const size = bytes > most ? ` (${megabytes(bytes)}, and it takes at most ${megabytes(most)})` : '';
  return (
    `This layer is too large for the browser to compute its matrix${size}. Choose a smaller size to see it; the table above ` +
    'and the Look tab show this head as it is.'
  );
}
