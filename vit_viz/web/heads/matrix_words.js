// What is said of the matrix and of its links.

import { massMask } from '../../explorer/frame.js';
import { headOf, headWords, percent } from '../../explorer/labels.js';
/** @import { Axis, Filling, Link } from '../../explorer/matrix.js' */

/** The pair under the pointer. @param {Filling} filling @param {[number, number]} pair query, key */
export function pairWords(filling, [query, key]) {
  const { axis } = filling;
  const value = filling.at(query, key);
  const isBlock = [query, key].some((cell) => axis.patchesOf(cell).length > 1);
  const number = Number.isNaN(value) ? 'not computed yet' : `${isBlock ? 'mean ' : ''}${percent(value)}`;
  return `${axis.nameOf(query)} ${verb(axis, query)} at ${axis.nameOf(key)}: ${number}`;
}

function verb(/** @type {Axis} */ axis, /** @type {number} */ cell) {
  return axis.patchesOf(cell).length > 1 ? 'look' : 'looks';
}

/** Where a query looks most. @param {Axis} axis @param {number} query @param {Link | undefined} link its strongest */
export function mostWords(axis, query, link) {
  const name = axis.nameOf(query);
  if (!link) return name;
  return `${name} ${verb(axis, query)} most at ${axis.nameOf(axis.cellOf[link.key])}: ${percent(link.weight)}`;
}

const MUCH = 0.1; // mean share of the attention from which on a place is named
const PLACES = /** @type {[number, number, string][]} */ ([
  [0, 0, 'themselves'],
  [0, -1, 'their left neighbour'],
  [0, 1, 'their right neighbour'],
  [-1, 0, 'their upper neighbour'],
  [1, 0, 'their lower neighbour'],
]);

/** Where all tokens together look, of a matrix that is computed: the place or the token that gets most, else how many get half. @param {number} layer @param {Filling} filling */
export function matrixFinding(layer, { axis, head, values }) {
  const { cells, block, grid, patches, prefix } = axis;
  const start = headOf({ layer, head });
  if (block > 1 || !sumsToOne(head)) return `${start}: every token against every token`;
  const first = prefix.length;
  const places = PLACES.map(([down, right, name]) => {
    let [sum, count] = [0, 0];
    for (let patch = 0; patch < patches; patch++) {
      const [row, col] = [Math.floor(patch / grid[1]) + down, (patch % grid[1]) + right];
      if (row < 0 || row >= grid[0] || col < 0 || col >= grid[1]) continue;
      sum += values[(first + patch) * cells + first + row * grid[1] + col];
      count += 1;
    }
    return { name, share: sum / Math.max(1, count) };
  });
  const place = places.reduce((best, one) => (one.share > best.share ? one : best));
  const received = new Float32Array(cells);
  for (let at = 0; at < values.length; at++) received[at % cells] += values[at] / cells;
  const most = received.reduce((best, share, key) => (share > received[best] ? key : best), 0);
  if (place.share >= Math.max(MUCH, received[most]))
    return `${start}: patches look most at ${place.name}, ${percent(place.share)} on average`;
  if (received[most] >= MUCH)
    return `${start}: tokens look most at ${axis.nameOf(most)}, ${percent(received[most])} on average`;
  const few = massMask(received, 0.5).reduce((all, one) => all + one, 0);
  return `${start}: half of the attention falls on ${few} of ${cells} tokens`;
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
