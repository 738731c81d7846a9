// A dot for every head: a measure against depth with the mean of each layer (Dosovitskiy et al. 2021, Fig. 7), or estimate against truth.

import { having, make } from '../../ui/kit/elements.js';
import { short } from '../../ui/kit/numbers.js';
import { capital, headWords, layerMeans } from './words.js';
/** @import { Place, Table } from './words.js' */

/** @typedef {Place & {x: number, y: number}} Dot in shares of the width and height of the plot */

/** Shares of the way from one end to the other; the middle where both are one. */
function shareOf(/** @type {number} */ value, /** @type {[number, number]} */ [low, high]) {
  return high > low ? (value - low) / (high - low) : 0.5;
}

/** Every known head by layer and value. @param {Table} table @param {[number, number]} ends of the values @returns {Dot[]} */
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
 * @param {(number | null)[][]} estimate @param {Table} truth @param {[number, number]} ends @returns {Dot[]}
 */
export function agreementDots(estimate, truth, ends) {
  return depthDots(truth, ends).map((dot) => ({
    ...dot,
    x: shareOf(estimate[dot.layer][dot.head] ?? 0, ends),
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

const DIAGONAL = 'M0 100L100 0'; // on which an estimate is true

/** The plot with its axes. */
export class Plot {
  /** @param {(name: string) => HTMLElement} find */
  constructor(find) {
    this.find = find;
    /** @type {HTMLElement[]} */
    this.dots = [];
    /** @type {Dot[]} */
    this.places = [];
  }

  /** @param {string} label @param {Table} table @param {[number, number]} ends */
  drawDepth(label, table, ends) {
    const means = layerMeans(table).map((mean) => (mean === null ? 'unknown' : short(mean)));
    this.draw(depthDots(table, ends), ends, meanPath(table, ends), {
      title: `${capital(label)} by depth`,
      axis: 'layer',
      first: '0',
      last: String(table.values.length - 1),
      words: 'A dot for each head; the line is the mean of each layer.',
      said: `${label} by layer, mean over the heads: ${means.join(', ')}`,
    });
  }

  /** @param {(number | null)[][]} estimate @param {Table} truth @param {[number, number]} ends @param {string} words */
  drawAgreement(estimate, truth, ends, words) {
    this.draw(agreementDots(estimate, truth, ends), ends, DIAGONAL, {
      title: 'What was estimated, and what is true',
      axis: 'estimate',
      first: short(ends[0]),
      last: short(ends[1]),
      words:
        'A dot for each head: to the right what one gradient foretold, upwards what changed. On the line both are equal.',
      said: words || 'Estimate against causal effect',
    });
  }

  /**
   * @param {Dot[]} dots @param {[number, number]} ends @param {string} path
   * @param {Record<'title' | 'axis' | 'first' | 'last' | 'words' | 'said', string>} texts
   */
  draw(dots, [low, high], path, { title, axis, first, last, words, said }) {
    const { find } = this;
    this.places = dots;
    this.dots = dots.map((dot) => {
      const { layer, head } = dot;
      const names = { 'data-layer': layer, 'data-head': head, title: headWords(dot) };
      const node = having(make('span', 'vv-heads-dot'), names);
      node.style.left = `${100 * dot.x}%`;
      node.style.bottom = `${100 * dot.y}%`;
      return node;
    });
    find('heads-dots').replaceChildren(...this.dots);
    find('heads-plot').classList.toggle('vv-square', path === DIAGONAL);
    const zero = (100 - 100 * shareOf(0, [low, high])).toFixed(2);
    find('heads-zero').setAttribute('d', low < 0 && high > 0 ? `M0 ${zero}H100` : '');
    find('heads-mean').setAttribute('d', path);
    find('heads-plot-box').setAttribute('aria-label', said);
    const [top, bottom] = [short(high), short(low)];
    const texts = { top, bottom, axis, first, last, 'plot-title': title, 'plot-words': words };
    for (const [name, text] of Object.entries(texts)) find(`heads-${name}`).textContent = text;
  }

  /** The head that an arrow leads to: up and down the next one of its layer, to the sides the nearest one of the next layer. @param {Place} from @param {[number, number]} step */
  beside({ layer, head }, [down, right]) {
    const here = this.places.find((dot) => dot.layer === layer && dot.head === head);
    const wanted = this.places.filter((dot) => dot.layer === layer + right).sort((a, b) => a.y - b.y);
    if (!here || !right) return wanted[here ? wanted.indexOf(here) - down : 0];
    const far = (/** @type {Dot} */ { y }) => Math.abs(y - here.y);
    return wanted.sort((a, b) => far(a) - far(b))[0];
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
