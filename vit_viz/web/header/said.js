// What the model says, as lines with a bar each, what is being done, and what went wrong. Names are untrusted text.

import { classLine, finder, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { amountWords } from '../../ui/kit/numbers.js';
/** @import { Amount } from '../../ui/kit/numbers.js' */

const LONGEST_BAR = 112; // pixels

/**
 * @typedef {Amount & {name: string, alone?: boolean}} Line alone: whether its probability is a sigmoid of its own
 * @typedef {{busy?: string, notes?: string[], error?: string, top?: Line[]}} Top busy: what is being done
 */

/** @param {HTMLElement} element @param {Top} value */
export function drawTop(element, value) {
  const find = finder(element);
  element.classList.toggle('vv-busy', Boolean(value.busy));
  showError(find('status'), value.busy || (value.notes || []).join(' '), { stays: Boolean(value.busy) });
  showError(find('error'), value.error);
  if (value.busy) return;
  const top = value.top || [];
  const { says, meaning, title } = meaningOf(top[0]);
  showText(find('says'), top.length ? says : '');
  find('says').title = title;
  find('top').replaceChildren(
    ...top.map((one) => {
      const line = answerLine(one);
      const bar = one.probability === undefined ? 0 : Math.max(2, LONGEST_BAR * one.probability);
      line.style.setProperty('--bar', `${bar}px`);
      return line;
    }),
  );
  find('top').setAttribute('aria-label', meaning);
  const isHeadless = !value.error && !top.length;
  showText(find('nothing'), isHeadless ? 'This model has no class head: it names nothing.' : '');
}

/** What numbers of this kind are called, by the first of them. */
function meaningOf(/** @type {Line | undefined} */ line) {
  if (line?.value !== undefined)
    return { says: SAYS, meaning: 'Values that the model returns, the largest first', title: '' };
  if (!line?.alone) return { says: SAYS, meaning: 'Most probable classes with their probability', title: '' };
  return {
    says: 'The model says, of each by itself',
    meaning: 'Most probable classes, each with a probability of its own',
    title: 'Several classes may hold at once: each has a sigmoid of its own, and they do not sum to 100%.',
  };
}

const SAYS = 'The model says';

/** The line of a class with its probability, or of a value, which has no bar. */
export function answerLine(/** @type {Line} */ one) {
  return classLine(one.name, one.probability ?? 0, amountWords(one, percent));
}

/** A probability as people say it: 96%, 3%, 0.3%; never 100% or 0% where it is not. */
export function percent(/** @type {number} */ probability) {
  const share = 100 * probability;
  if (share > 99.9 && share < 100) return '>99.9%';
  if (share > 0 && share < 0.1) return '<0.1%';
  return `${share >= 1 && share < 99.5 ? share.toFixed(0) : Number(share.toFixed(1))}%`;
}
