// What the Survey tab says: filters and numbers in words, photos as cards, classes and methods as tables. Texts are the owner's file names
// and labels: they are written with textContent only.

import { routeUrl } from '../../explorer/source.js';
import { make } from '../kit/elements.js';
import { percent, short } from '../kit/numbers.js';

/** Corners of a lasso that a filter holds at most. */
export const MOST_CORNERS = 40;

/** A column as it is read: "mean_entropy" is "mean entropy". */
export function columnWords(/** @type {string} */ name) {
  return name.replaceAll('_', ' ');
}

/** How many photos pass, and how many of those are right. */
export function countWords(
  /** @type {{count: number, labelled: number, accuracy: number | null}} */ { count, labelled, accuracy },
  /** @type {number} */ total,
) {
  const photos =
    count === total
      ? `All ${total.toLocaleString('en')} photos`
      : `${count.toLocaleString('en')} of ${total.toLocaleString('en')} photos`;
  if (accuracy === null) return `${photos}; of none is it known whether the answer is right.`;
  const labels = labelled === count ? '' : ` of the ${labelled.toLocaleString('en')} with a label`;
  return `${photos}; ${(100 * accuracy).toFixed(1)}%${labels} are right.`;
}

/** A number as a filter holds it. */
function written(/** @type {number} */ value) {
  return String(Number(value.toPrecision(5)));
}

/**
 * The expression of a box.
 * @param {string} across
 * @param {string} up
 * @param {{x: number[], y: number[]}} range
 */
export function boxFilter(across, up, { x, y }) {
  const between = (/** @type {string} */ name, /** @type {number[]} */ ends) => {
    const [low, high] = [Math.min(...ends), Math.max(...ends)].map(written);
    return `${name} BETWEEN ${low} AND ${high}`;
  };
  return `(${between(across, x)} AND ${between(up, y)})`;
}

/**
 * The expression of a lasso, with every k-th corner where there are more than a filter holds.
 * @param {string} across
 * @param {string} up
 * @param {{x: number[], y: number[]}} points
 */
export function lassoFilter(across, up, { x, y }) {
  const every = Math.max(1, Math.ceil(x.length / MOST_CORNERS));
  const corners = x
    .map((value, at) => `${written(value)} ${written(y[at])}`)
    .filter((_corner, at) => at % every === 0);
  return `inside(${across}, ${up}, '${corners.join(', ')}')`;
}

/** What was written and what was brushed, as one filter. */
export function joined(/** @type {string} */ typed, /** @type {string} */ brushed) {
  if (!typed || !brushed) return typed || brushed;
  return `(${typed}) AND ${brushed}`;
}

/**
 * A head in one line: mean, spread, name.
 * @param {{layer: number, head: number}} place
 * @param {{mean: (number | null)[][], spread: (number | null)[][], unit: string, photos: number}} atlas
 */
export function headLine({ layer, head }, { mean, spread, unit, photos }) {
  const [middle, around] = [mean[layer]?.[head], spread[layer]?.[head]];
  const begins = `Layer ${layer}, head ${head}`;
  if (middle === null || middle === undefined) return `${begins}: not known of these photos.`;
  return `${begins}: ${short(middle)} ± ${short(around ?? 0)} ${unit}, over ${photos.toLocaleString('en')} photos.`;
}

/**
 * A name with its evidence.
 * @param {{name: string, sentence: string, evidence: number | null, thin: boolean} | undefined} named
 */
export function nameLine(named) {
  if (!named) return '';
  const share =
    named.evidence === null ? '' : ` It holds in ${percent(named.evidence)} of these photos alone.`;
  return `${named.name}: ${named.sentence}${share}${named.thin ? ' The evidence is thin.' : ''}`;
}

/** A mean with its interval. */
export function intervalWords(/** @type {{mean: number, low: number, high: number} | undefined} */ one) {
  return one ? `${one.mean.toFixed(2)} (${one.low.toFixed(2)} to ${one.high.toFixed(2)})` : '';
}

/** The photos that pass, from one bit each. @returns {Uint8Array} 1 where a photo passes */
export function readBits(/** @type {string} */ text, /** @type {number} */ count) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const passes = new Uint8Array(count);
  for (let row = 0; row < count; row++) passes[row] = (bytes[row >> 3] >> (row & 7)) & 1;
  return passes;
}

/**
 * The dots of the three traces: right, wrong, no label. A photo of which a number is not known has no dot.
 * @param {Float32Array} points [3, photos]: across, up, and 1 for right, 0 for wrong
 */
export function traceRows(points) {
  const count = points.length / 3;
  /** @type {number[][]} */
  const rows = [[], [], []];
  for (let row = 0; row < count; row++) {
    if (Number.isNaN(points[row]) || Number.isNaN(points[count + row])) continue;
    const right = points[2 * count + row];
    rows[right === 1 ? 0 : right === 0 ? 1 : 2].push(row);
  }
  return rows;
}

/** Smallest and largest mean with its spread. @param {(number | null)[][]} mean @param {(number | null)[][]} spread @returns {[number, number]} */
export function endsOf(mean, spread) {
  const known = mean.flatMap((row, layer) =>
    row.flatMap((value, head) =>
      value === null ? [] : [value - (spread[layer][head] ?? 0), value + (spread[layer][head] ?? 0)],
    ),
  );
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

/** What the numbers of the method table are. @param {{lines: Record<string, object>, resamples: number}} methods */
export function methodWords({ lines, resamples }) {
  const scores = Object.values(lines).flatMap((line) => Object.keys(line));
  if (!scores.length) return '';
  const chance = scores.some((score) => score === 'insertion' || score === 'deletion')
    ? '; in insertion and deletion 0 is chance'
    : '';
  return `Means with 95% intervals from ${resamples} bootstrap samples of the photos; higher is better${chance}.`;
}

/**
 * @typedef {object} Card
 * @property {number} row
 * @property {string} photo
 * @property {string} label
 * @property {string} answer
 * @property {number | null} confidence
 * @property {boolean | null} right
 * @property {number | null} value
 * @property {[number, number]} size
 * @property {[number, number]} peak shares of the height and the width
 *
 * @typedef {{label: string, photos: number, accuracy: number | null, means: Record<string, number | null>}} ClassLine
 * @typedef {{mean: number, low: number, high: number, photos: number}} Estimate
 * @typedef {{lines: Record<string, Record<string, Estimate>>, conclusion: string, resamples: number}} Methods
 */

/** What a score of a method is called. */
const SCORES = {
  pointing: 'points at the object',
  energy: 'map on the object',
  insertion: 'insertion over random',
  deletion: 'deletion below random',
};

/**
 * A photo that opens in Look.
 * @param {Card} card
 * @param {string} named what its value is
 */
export function photoCard(card, named) {
  const button = make('button', 'vv-survey-card');
  button.dataset.row = String(card.row);
  const stage = make('span', 'vv-survey-stage');
  const image = make('img');
  image.alt = '';
  image.loading = 'lazy';
  image.src = routeUrl(`/vit_viz/survey/thumbnail/${card.row}`);
  image.addEventListener('error', () => stage.classList.add('vv-gone'));
  const ring = make('span', 'vv-survey-ring');
  const [height, width] = card.size;
  stage.style.aspectRatio = `${width} / ${height}`;
  [ring.style.top, ring.style.left] = card.peak.map((share) => `${100 * share}%`);
  stage.append(image, ring);
  const answer = make('span', 'vv-survey-answer vv-class', card.answer || 'no answer');
  if (card.right !== null) answer.dataset.right = String(card.right);
  const words = [
    card.confidence === null ? '' : percent(card.confidence),
    card.right === false ? `is ${card.label}` : '',
  ];
  const says = make('span', 'vv-small vv-class', words.filter(Boolean).join(', '));
  const value = make(
    'span',
    'vv-small vv-class',
    card.value === null ? card.photo : `${named} ${short(card.value)}`.trim(),
  );
  const file = make('span', 'vv-survey-file');
  file.append(answer, says, value);
  button.append(stage, file);
  button.title = `Open ${card.photo} in Look`;
  return button;
}

/** Photos under a title. @param {string} title @param {Card[]} cards @param {string} named */
export function cardGroup(title, cards, named) {
  const group = make('div', 'vv-survey-group vv-stack');
  if (title) group.append(make('h4', 'vv-small', title));
  const line = make('div', 'vv-survey-line');
  line.append(...cards.map((card) => photoCard(card, named)));
  if (!cards.length) line.append(make('p', 'vv-quiet', 'No photo.'));
  group.append(line);
  return group;
}

/** Lights cards one after the other; a newer list ends it. */
export class Lighter {
  constructor() {
    this.number = 0;
  }

  /** @param {HTMLElement[]} cards @param {(row: string) => string} address */
  async light(cards, address) {
    const mine = ++this.number;
    for (const card of cards) {
      if (mine !== this.number) return;
      const lit = new Image();
      lit.src = address(card.dataset.row ?? '');
      try {
        await lit.decode();
      } catch {
        continue; // the thumbnail with its ring stays
      }
      if (mine !== this.number) return;
      lit.alt = '';
      lit.className = 'vv-survey-lit';
      const stage = /** @type {HTMLElement} */ (card.querySelector('.vv-survey-stage'));
      stage.style.aspectRatio = `${lit.naturalWidth} / ${lit.naturalHeight}`;
      stage.replaceChildren(lit);
      stage.classList.remove('vv-gone');
    }
  }

  stop() {
    this.number += 1;
  }
}

/** @param {HTMLElement} table @param {string[]} heads @param {(string | HTMLElement)[][]} lines */
function fillTable(table, heads, lines) {
  const line = make('tr');
  for (const words of heads) {
    const cell = make('th', '', words);
    cell.setAttribute('scope', 'col');
    line.append(cell);
  }
  const rows = lines.map(([first, ...others]) => {
    const row = make('tr');
    const name = make('th');
    name.setAttribute('scope', 'row');
    name.append(first);
    row.append(
      name,
      ...others.map((words) => {
        const cell = make('td');
        cell.append(words);
        return cell;
      }),
    );
    return row;
  });
  table.querySelector('thead')?.replaceChildren(line);
  table.querySelector('tbody')?.replaceChildren(...rows);
}

/** Count, accuracy and means of every class; the name filters by it. @param {HTMLElement} table @param {ClassLine[]} classes */
export function drawClasses(table, classes) {
  const known = Object.keys(classes[0]?.means ?? {}).filter((name) =>
    classes.some(({ means }) => means[name] !== null),
  );
  const lines = classes.map(({ label, photos, accuracy, means }) => {
    const name = make('button', 'vv-survey-class', label);
    name.dataset.label = label;
    name.title = `Filter by ${label}`;
    const numbers = known.map((one) => (means[one] === null ? '' : short(Number(means[one]))));
    return [name, String(photos), accuracy === null ? '' : `${(100 * accuracy).toFixed(0)}%`, ...numbers];
  });
  fillTable(table, ['label', 'photos', 'right', ...known.map(columnWords)], lines);
}

/** What each method scores. @param {HTMLElement} table @param {Methods} methods @returns {string} what its numbers are */
export function drawMethods(table, methods) {
  const { lines } = methods;
  table.hidden = !Object.keys(lines).length;
  const known = Object.keys(SCORES).filter((score) => Object.values(lines).some((line) => line[score]));
  const rows = Object.entries(lines).map(([method, line]) => [
    method,
    ...known.map((score) => intervalWords(line[score])),
  ]);
  fillTable(
    table,
    ['method', ...known.map((score) => SCORES[/** @type {keyof typeof SCORES} */ (score)])],
    rows,
  );
  return methodWords(methods);
}
