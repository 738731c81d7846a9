// A computation that takes a while, which the server does for a room: what is computed, how far it is, how long it will still take, and a
// button that ends it. The room stands dimmed meanwhile.

import { showText } from './elements.js';
/** @import { Trigger } from './elements.js' */

/**
 * What the server says of one; left: the time that is left, in words.
 * @typedef {{key: string, share?: number, left?: string, done?: boolean, error?: string}} Job
 */

export const STOPPED = 'This was stopped; nothing of it was kept.';

/** A share and the time that is left, as they stand behind what is computed: " 50%, about 3 s left"; "" at the beginning. */
export function farWords(/** @type {number} */ share, left = '') {
  return share > 0 ? ` ${Math.round(100 * share)}%${left && `, ${left}`}` : '';
}

/** At most one job: a newer one takes its place. */
export class Jobs {
  /** @param {HTMLElement} element @param {Trigger} trigger */
  constructor(element, trigger) {
    this.element = element;
    this.trigger = trigger;
    this.bar = /** @type {HTMLProgressElement} */ (element.querySelector('progress'));
    this.words = /** @type {HTMLElement} */ (element.querySelector('.vv-job-words'));
    /** @type {{key: string, words: string, done: () => void, failed: (error: Error) => void} | null} */
    this.waiting = null;
    element.querySelector('button')?.addEventListener('click', () => this.stop());
  }

  /**
   * Resolves once the server has the numbers.
   * @param {string} key where they can be fetched then
   * @param {string} words what is computed
   * @param {string} kind @param {Record<string, string | number | boolean>} options @returns {Promise<void>}
   */
  compute(key, words, kind, options) {
    this.end(new Error('Something else was asked for.'));
    return new Promise((done, failed) => {
      this.waiting = { key, words, done, failed };
      this.show({ key });
      this.trigger('compute', { key, kind, options });
    });
  }

  /** What the server said of a job. */
  hear(/** @type {Job | null} */ job) {
    if (!job || !this.waiting || job.key !== this.waiting.key) return;
    if (job.error) this.end(new Error(job.error));
    else if (job.done) this.end(null);
    else this.show(job);
  }

  show(/** @type {Job} */ { share = 0, left }) {
    this.element.hidden = false;
    if (share > 0) this.bar.value = share;
    else this.bar.removeAttribute('value');
    showText(this.words, `${this.waiting?.words}${farWords(share, left)}`);
  }

  stop() {
    this.trigger('stop', { job: 'compute' });
    this.end(new Error(STOPPED));
  }

  end(/** @type {Error | null} */ error) {
    const waiting = this.waiting;
    this.waiting = null;
    this.element.hidden = true;
    if (waiting && error) waiting.failed(error);
    else waiting?.done();
  }
}
