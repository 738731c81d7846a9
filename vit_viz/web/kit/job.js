// A question that takes a while: what is computed, how far it is, how long it will still take, and a button that ends it.

import { showText } from '../../ui/kit/elements.js';
/** @import { Tell } from './ask.js' */

export const STOPPED = 'This was stopped; nothing of it was kept.';

/** A share and the time that is left, as they stand behind what is computed: " 50%, about 3 s left"; "" at the beginning. */
export function farWords(/** @type {number} */ share, left = '') {
  return share > 0 ? ` ${Math.round(100 * share)}%${left && `, ${left}`}` : '';
}

/** At most one at a time: a newer one takes its place. */
export class Job {
  stop = new AbortController();

  /** @param {HTMLElement} element with a bar, words and a button */
  constructor(element) {
    this.element = element;
    this.bar = /** @type {HTMLProgressElement} */ (element.querySelector('progress'));
    this.words = /** @type {HTMLElement} */ (element.querySelector('.vv-job-words'));
    element.querySelector('button')?.addEventListener('click', () => this.end(STOPPED));
  }

  /**
   * Follows a question to its answer.
   * @template Value
   * @param {string} words what is computed @param {(stop: AbortSignal, tell: Tell) => Promise<Value>} ask @returns {Promise<Value>}
   */
  async follow(words, ask) {
    this.end('Something else was asked for.');
    const stop = (this.stop = new AbortController());
    const show = (/** @type {number} */ share, left = '') => {
      if (stop !== this.stop) return;
      this.element.hidden = false;
      if (share > 0) this.bar.value = share;
      else this.bar.removeAttribute('value');
      showText(this.words, `${words}${farWords(share, left)}`);
    };
    show(0);
    const ended = new Promise((_, failed) =>
      stop.signal.addEventListener('abort', () => failed(stop.signal.reason)),
    );
    try {
      return await Promise.race([
        ask(stop.signal, ({ share, left }) => show(share, left)),
        /** @type {Promise<never>} */ (ended),
      ]);
    } finally {
      if (stop === this.stop) this.element.hidden = true;
    }
  }

  /** Ends it for a reason, in a sentence. */
  end(/** @type {string} */ why) {
    this.stop.abort(new Error(why));
  }
}
