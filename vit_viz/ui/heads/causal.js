// The causal map: the button with its cost, what replaces a head, for which class, how far it is.

import { press, showShare, showText } from '../kit/elements.js';
import { agreementWords, capital } from './words.js';
/** @import { Table } from './words.js' */

/**
 * A causal map as far as it is computed.
 * @typedef {{table?: Table, estimate?: number[][], correlation?: number, done?: number, running?: boolean,
 *   share?: number, left?: string, error?: string, seq?: number}} Effect
 *
 * @typedef {{key: string, of: Record<string, Effect>}} News
 *
 * @typedef {{classes: {index: number, name: string, probability?: number, value?: number}[], chosen?: number,
 *   name: string, link: string}} Target
 */

/** What is known of the causal maps of one subject and one class, by the way of switching off. */
export class Effects {
  key = '';
  /** @type {Record<string, Effect>} */ of = {};

  /** Another subject or class: nothing of the former holds. @param {string} key @param {Record<string, Effect>} kept */
  begin(key, kept) {
    if (key !== this.key) this.of = {};
    this.key = key;
    for (const [how, effect] of Object.entries(kept)) this.of[how] = { ...effect, seq: this.of[how]?.seq };
  }

  /** News of a job; older news may come later. Returns whether there was any. */
  follow(/** @type {News | null} */ news) {
    if (!news || news.key !== this.key) return false;
    for (const [how, effect] of Object.entries(news.of)) {
      if ((effect.seq ?? 0) > (this.of[how]?.seq ?? 0)) this.of[how] = { ...this.of[how], ...effect };
    }
    return true;
  }
}

/** @param {(name: string) => HTMLElement} find */
export function drawCausal(
  find,
  /** @type {{effect: Effect | undefined, how: string, target: Target | null, cost: string, note: string, heads: number}} */
  { effect, how, target, cost, note, heads },
) {
  const isRunning = Boolean(effect?.running);
  const isDone = !isRunning && effect?.done === heads;
  const start = /** @type {HTMLButtonElement} */ (find('heads-start'));
  start.hidden = isRunning || isDone;
  start.disabled = !target;
  start.textContent = effect?.done ? 'Start again' : 'Switch off each head';
  find('heads-stop').hidden = !isRunning;
  showShare(find('heads-progress'), isRunning ? (effect?.share ?? 0) : null);
  showText(find('heads-cost'), note || (isDone || isRunning ? '' : `${capital(cost)}.`));
  showText(find('heads-job'), jobWords(effect, heads));
  press(find('heads-hows'), 'how', how);
}

/** How far it is, what went wrong, and how well the estimate foretold it. */
export function jobWords(/** @type {Effect | undefined} */ effect, /** @type {number} */ heads) {
  if (!effect) return '';
  const { done = 0, correlation = 0, running, left, error = '' } = effect;
  const far = running
    ? `${done} of ${heads} heads are done, what the estimate says matters most first${left ? `; ${left}` : ''}.`
    : '';
  return [far, error, agreementWords({ done, correlation }, heads)].filter(Boolean).join(' ');
}
