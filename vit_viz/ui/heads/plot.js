// A dot for every head: a measure against depth with the mean of each layer (Dosovitskiy et al. 2021, Fig. 7), or estimate against truth.

import { make } from '../kit/elements.js';
import { short } from '../kit/numbers.js';
import { headWords, layerMeans } from './words.js';

/**
 * @typedef {import('./words.js').Place} Place
 * @typedef {import('./words.js').Table} Table
 * @typedef {Place & {x: number, y: number}} Dot in shares of the width and height of the plot
 */

/** Shares of the way from one end to the other; the middle where both are one. */
function shareOf(/** @type {number} */ value, /** @type {[number, number]} */ [low, high]) {
  return high > low ? (value - low) / (high - low) : 0.5;
}

/**
 * Every known head by layer and value.
 * @param {Table} table
 * @param {[number, number]} ends of the values
 * @returns {Dot[]}
 */
export function depthDots({ values }, ends) {
  const deepest = Math.max(1, values.length - 1);
  return values.flatMap((row, layer) =>
    row.flatMap((value, head) =>
      value === null ? [] : [{ layer, head, x: layer / deepest, y: shareOf(value, ends) }],
    ),
  );
}

/**
 * Every known head by what was estimated and what is true, on one scale for both.
 * @param {number[][]} estimate
 * @param {Table} truth
 * @param {[number, number]} ends
 * @returns {Dot[]}
 */
export function agreementDots(estimate, truth, ends) {
  return depthDots(truth, ends).map((dot) => ({
    ...dot,
    x: shareOf(estimate[dot.layer][dot.head], ends),
  }));
}

/** A path through the mean of each layer. @param {Table} table @param {[number, number]} ends */
export function meanPath(table, ends) {
  const deepest = Math.max(1, table.values.length - 1);
  const points = layerMeans(table).flatMap((mean, layer) =>
    mean === null
      ? []
      : [`${((100 * layer) / deepest).toFixed(2)} ${(100 - 100 * shareOf(mean, ends)).toFixed(2)}`],
  );
  return points.length ? `M${points.join('L')}` : '';
}

/** The plot with its axes. */
export class Plot {
  /** @param {(name: string) => HTMLElement} find */
  constructor(find) {
    this.find = find;
    /** @type {HTMLElement[]} */
    this.dots = [];
  }

  /** @param {string} label @param {Table} table @param {[number, number]} ends */
  drawDepth(label, table, ends) {
    const means = layerMeans(table);
    this.find('heads-plot').classList.toggle('vv-square', false);
    this.place(depthDots(table, ends), ends);
    this.line('mean', meanPath(table, ends));
    this.write({
      title: `${label[0].toUpperCase()}${label.slice(1)} by depth`,
      axis: 'layer',
      first: '0',
      last: String(table.values.length - 1),
      words: 'A dot for each head; the line is the mean of each layer.',
      said: `${label} by layer, mean over the heads: ${means.map((mean) => (mean === null ? 'unknown' : short(mean))).join(', ')}`,
    });
  }

  /** @param {number[][]} estimate @param {Table} truth @param {[number, number]} ends @param {string} words */
  drawAgreement(estimate, truth, ends, words) {
    this.find('heads-plot').classList.toggle('vv-square', true);
    this.place(agreementDots(estimate, truth, ends), ends);
    this.line('mean', 'M0 100L100 0');
    this.write({
      title: 'What was estimated, and what is true',
      axis: 'estimate',
      first: short(ends[0]),
      last: short(ends[1]),
      words:
        'A dot for each head: to the right what one gradient foretold, upwards what changed. On the line both are equal.',
      said: words || 'Estimate against causal effect',
    });
  }

  /** @param {Dot[]} dots @param {[number, number]} ends */
  place(dots, [low, high]) {
    this.dots = dots.map((dot) => {
      const node = make('span', 'vv-heads-dot');
      node.dataset.layer = String(dot.layer);
      node.dataset.head = String(dot.head);
      node.title = headWords(dot);
      node.style.left = `${100 * dot.x}%`;
      node.style.bottom = `${100 * dot.y}%`;
      return node;
    });
    this.find('heads-dots').replaceChildren(...this.dots);
    this.find('heads-top').textContent = short(high);
    this.find('heads-bottom').textContent = short(low);
    const zero = (100 - 100 * shareOf(0, [low, high])).toFixed(2);
    this.line('zero', low < 0 && high > 0 ? `M0 ${zero}H100` : '');
  }

  line(/** @type {string} */ name, /** @type {string} */ path) {
    this.find(`heads-${name}`).setAttribute('d', path);
  }

  /** @param {Record<'title' | 'axis' | 'first' | 'last' | 'words' | 'said', string>} texts */
  write({ title, axis, first, last, words, said }) {
    this.find('heads-plot-title').textContent = title;
    this.find('heads-axis').textContent = axis;
    this.find('heads-first').textContent = first;
    this.find('heads-last').textContent = last;
    this.find('heads-plot-words').textContent = words;
    this.find('heads-plot-box').setAttribute('aria-label', said);
  }

  /** Marks the chosen head and the one under the pointer. */
  mark(/** @type {Place} */ chosen, /** @type {Place | null} */ hovered) {
    for (const dot of this.dots) {
      const is = (/** @type {Place | null} */ place) =>
        Number(dot.dataset.layer) === place?.layer && Number(dot.dataset.head) === place?.head;
      dot.classList.toggle('vv-chosen', is(chosen));
      dot.classList.toggle('vv-hovered', is(hovered));
    }
  }
}
