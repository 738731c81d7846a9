// What the model says: the most probable classes, with bars, in one line; below it what is being done and what went wrong. Plain text.

import { classLine, finder, showText } from '../kit/elements.js';

const LONGEST_BAR = 112; // pixels

/**
 * @typedef {object} Top
 * @property {string} [busy] what is being done
 * @property {string[]} [notes]
 * @property {string} [error]
 * @property {{name: string, probability: number}[]} [top]
 */

/** @type {import('../kit/elements.js').Mount<{value: Top | null}>} */
export function mount(element, _trigger, props, watch) {
  watch('value', () => draw(element, props.value));
  draw(element, props.value);
}

/** @param {HTMLElement} element @param {Top | null} value */
function draw(element, value) {
  if (!value) return;
  const find = finder(element);
  element.classList.toggle('vv-busy', Boolean(value.busy));
  showText(find('status'), value.busy || (value.notes || []).join(' '));
  showText(find('error'), value.error);
  if (value.busy) return;
  const top = value.top || [];
  find('says').hidden = !top.length;
  find('top').replaceChildren(
    ...top.map(({ name, probability }) => {
      const line = classLine(name, probability, percent(probability));
      line.style.setProperty('--bar', `${Math.max(2, LONGEST_BAR * probability)}px`);
      return line;
    }),
  );
  const isHeadless = !value.error && !top.length;
  showText(find('nothing'), isHeadless ? 'This model has no class head: it names nothing.' : '');
}

/** A probability as people say it: 96%, 3%, 0.3%; never 100% or 0% where it is not. */
export function percent(/** @type {number} */ probability) {
  const share = 100 * probability;
  if (share > 99.9 && share < 100) return '>99.9%';
  if (share > 0 && share < 0.1) return '<0.1%';
  return `${share >= 1 && share < 99.5 ? share.toFixed(0) : Number(share.toFixed(1))}%`;
}
