// What the Survey tab says: filters and numbers in words, photos as cards, classes and methods as tables. Texts are the owner's file names
// and labels: they are written with textContent only.

import { bytesOf } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { fillTable, having, make } from '../../ui/kit/elements.js';
import { percent, short } from '../../ui/kit/numbers.js';

/** Filters that are often asked for. @type {[string, string, 'labels' | 'boxes'][]} */
export const OFTEN = [
  ['right', 'is_right', 'labels'],
  ['wrong', 'not is_right', 'labels'],
  ['wrong and sure', 'not is_right and confidence > 0.5', 'labels'],
  ['looks outside the boxes', 'outside_box > 0.5', 'boxes'],
];

/** Corners of a lasso that a filter holds at most. */
export const MOST_CORNERS = 40;

export const PAGE = 12; // photos that the server adds to a list

/**
 * The address that opens the same photos again.
 * @param {string} address @param {{layer: number, head: number, where: string, across: string, up: string, measure: string, list: string,
 *   second: string}} choice
 */
export function selectionLink(address, { measure, list, second, ...choice }) {
  const link = new URL(address);
  for (const [name, value] of Object.entries({ tab: 'survey', ...choice, of_heads: measure, photos: list }))
    link.searchParams.set(name, String(value));
  if (second) link.searchParams.set('compared_with', second);
  else link.searchParams.delete('compared_with');
  return link.href;
}

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

/** The expression of a box. @param {string} across @param {string} up @param {{x: number[], y: number[]}} range */
export function boxFilter(across, up, { x, y }) {
  const between = (/** @type {string} */ name, /** @type {number[]} */ ends) => {
    const [low, high] = [Math.min(...ends), Math.max(...ends)].map(written);
    return `${name} BETWEEN ${low} AND ${high}`;
  };
  return `(${between(across, x)} AND ${between(up, y)})`;
}

/**
 * The expression of a lasso, with every k-th corner where there are more than a filter holds.
 * @param {string} across @param {string} up @param {{x: number[], y: number[]}} points
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
  const bytes = bytesOf(text);
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
 * @typedef {{kind: string, was: string, now: string, confidences: [number, number]}} Change
 * @typedef {{row: number, photo: string, label: string, answer: string, confidence: number | null,
 *   right: boolean | null, value: number | null, size: [number, number], peak: [number, number],
 *   small: boolean, there: boolean, change?: Change, number?: number}}
 *   Card number: the value that is the answer; peak: shares of the height and the width; small: whether a small picture is kept; there: whether its file is
 *
 * @typedef {{label: string, photos: number, accuracy: number | null, means: Record<string, number | null>}} ClassLine
 * @typedef {{mean: number, low: number, high: number, photos: number}} Estimate
 * @typedef {{lines: Record<string, Record<string, Estimate>>, scores: Record<string, string>, conclusion: string,
 *   resamples: number}} Methods scores: what each is called
 */

/** The small picture of a photo with its ring, or words where none is kept: what is not there is not asked for. */
function cardStage(/** @type {Card} */ { row, size: [height, width], peak, small, there }) {
  const stage = make('span', 'vv-survey-stage');
  stage.style.aspectRatio = `${width} / ${height}`;
  if (!small) {
    const words = there ? 'no small picture was kept' : 'no picture: its file is gone';
    stage.append(make('span', 'vv-survey-none vv-small', words));
    return stage;
  }
  const src = routeUrl(`/vit_viz/survey/thumbnail/${row}`);
  const image = having(make('img'), { alt: '', loading: 'lazy', src });
  image.addEventListener('error', () => stage.classList.add('vv-gone'));
  const ring = make('span', 'vv-survey-ring');
  [ring.style.top, ring.style.left] = peak.map((share) => `${100 * share}%`);
  stage.append(image, ring);
  return stage;
}

/** What became of an answer: "was lion, is now cougar", how sure it was and is, and what it should be where both are wrong. */
export function changeWords(/** @type {Card} */ { change, label }) {
  if (!change) return [];
  const { kind, was, now, confidences } = change;
  const sure = confidences.map((share) => percent(share)).join(', then ');
  const isNeither = kind === 'other class' && label && label !== was && label !== now;
  return [`was ${was}, is now ${now}`, isNeither ? `${sure}; neither is right: ${label}` : sure];
}

/** What a card says below its photo, the answer first. @param {Card} card @param {string} named */
function cardWords(card, named) {
  const gone = card.there || !card.small ? [] : ['its file is gone'];
  if (card.change) return [...changeWords(card), ...gone];
  const sure = [
    card.confidence === null ? '' : percent(card.confidence),
    card.number === undefined ? '' : short(card.number),
    card.right === false ? `is ${card.label}` : '',
  ];
  const value = card.value === null ? card.photo : `${named} ${short(card.value)}`.trim();
  return [card.answer || 'no answer', sure.filter(Boolean).join(', '), value, ...gone];
}

/** Whether the answer is right; of one that changed, whether it is now; null where that is not known or neither. */
function isRight(/** @type {Card} */ { change, right }) {
  if (!change) return right;
  return change.kind === 'other class' ? null : change.kind === 'wrong to right';
}

/** A photo that opens in Look. @param {Card} card @param {string} named what its value is */
export function photoCard(card, named) {
  const [first, ...says] = cardWords(card, named);
  const answer = make('span', 'vv-survey-answer vv-class', first);
  const right = isRight(card);
  if (right !== null) answer.dataset.right = String(right);
  const lines = says.map((line) => make('span', 'vv-small vv-class', line));
  const file = make('span', 'vv-survey-file', answer, ...lines);
  const button = make('button', 'vv-survey-card vv-bare', cardStage(card), file);
  button.toggleAttribute('data-changed', Boolean(card.change));
  button.toggleAttribute('data-gone', !card.there);
  const title = card.there ? `Open ${card.photo} in Look` : `${card.photo}: its file is gone`;
  return having(button, { 'data-row': card.row, title });
}

/** What more of a list is offered by. */
export function moreWords(/** @type {number} */ shown, /** @type {number} */ total) {
  return `${Math.min(PAGE, total - shown)} more (${shown} of ${total.toLocaleString('en')} shown)`;
}

/** Adds photos to a group, the first of them in focus. @param {HTMLElement} group @param {Card[]} cards @param {string} named @param {number} shown @param {number} total */
export function growGroup(group, cards, named, shown, total) {
  const nodes = cards.map((card) => photoCard(card, named));
  group.querySelector('.vv-survey-line')?.append(...nodes);
  nodes[0]?.focus();
  const button = /** @type {HTMLElement} */ (group.querySelector('.vv-survey-more'));
  button.textContent = moreWords(shown, total);
  button.hidden = shown >= total;
}

/**
 * Photos under a title, with a button for the next ones where the list is longer.
 * @param {string} title @param {Card[]} cards @param {string} named @param {{name: string, total: number}} [list]
 */
export function cardGroup(title, cards, named, list) {
  const photos = cards.length
    ? cards.map((card) => photoCard(card, named))
    : [make('p', 'vv-quiet', 'No photo.')];
  const line = make('div', 'vv-survey-line', ...photos);
  const group = make('div', 'vv-survey-group vv-stack', title && make('h4', 'vv-small', title), line);
  if (!list || list.total <= cards.length) return group;
  const more = make('button', 'vv-button vv-plain vv-survey-more', moreWords(cards.length, list.total));
  group.append(having(more, { 'data-more': list.name }));
  return having(group, { 'data-group': list.name });
}

/** Lights cards one after the other; a newer list ends it. */
export class Lighter {
  number = 0;

  /** @param {HTMLElement[]} cards @param {(row: string) => string} address */
  async light(cards, address) {
    const mine = ++this.number;
    for (const card of cards) {
      if (mine !== this.number) return;
      if (card.hasAttribute('data-gone') || card.querySelector('.vv-survey-lit')) continue;
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

/** Count, accuracy and means of every class; the name filters by it. @param {HTMLElement} table @param {ClassLine[]} classes */
export function drawClasses(table, classes) {
  const known = Object.keys(classes[0]?.means ?? {}).filter((name) =>
    classes.some(({ means }) => means[name] !== null),
  );
  const lines = classes.map(({ label, photos, accuracy, means }) => {
    const says = { 'data-label': label, title: `Filter by ${label}` };
    const name = having(make('button', 'vv-survey-class vv-bare', label), says);
    const numbers = known.map((one) => (means[one] === null ? '' : short(Number(means[one]))));
    return [name, String(photos), accuracy === null ? '' : `${(100 * accuracy).toFixed(0)}%`, ...numbers];
  });
  fillTable(table, ['label', 'photos', 'right', ...known.map(columnWords)], lines);
}

/** What each method scores. @param {HTMLElement} table @param {Methods} methods @returns {string} what its numbers are */
export function drawMethods(table, methods) {
  const { lines, scores } = methods;
  table.hidden = !Object.keys(lines).length;
  const known = Object.keys(scores).filter((score) => Object.values(lines).some((line) => line[score]));
  const rows = Object.entries(lines).map(([method, line]) => [
    method,
    ...known.map((score) => intervalWords(line[score])),
  ]);
  fillTable(table, ['method', ...known.map((score) => scores[score])], rows);
  return methodWords(methods);
}

/** A line in a cell. @param {HTMLElement} cell @param {number | null} mean @param {number | null} spread @param {[number, number]} ends */
export function drawSpread(cell, mean, spread, [low, high]) {
  const at = (/** @type {number} */ value) => `${(100 * (value - low)) / (high - low || 1)}%`;
  cell.style.setProperty('--from', mean === null ? '0%' : at(mean - (spread ?? 0)));
  cell.style.setProperty('--to', mean === null ? '0%' : at(mean + (spread ?? 0)));
}
