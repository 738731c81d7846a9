// Photos as cards, classes and methods as tables. Texts are the owner's file names and labels: they are written with textContent only.

import { routeUrl } from '../../explorer/url.js';
import { make } from '../kit/elements.js';
import { percent, short } from '../tokens/vectors.js';
import { columnWords, intervalWords, methodWords } from './words.js';

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
