// What the Tokens tab computes for a while: asked of the server as a job, which says how far it is and can be stopped.

import { showText } from '../kit/elements.js';

/**
 * @typedef {import('../kit/elements.js').Trigger} Trigger
 * @typedef {{key: string, share?: number, done?: boolean, error?: string}} Job
 */

/** At most one job: a newer one takes its place. */
export class Jobs {
  /** @param {HTMLElement} element @param {Trigger} trigger */
  constructor(element, trigger) {
    this.element = element;
    this.trigger = trigger;
    this.bar = /** @type {HTMLProgressElement} */ (element.querySelector('progress'));
    this.words = /** @type {HTMLElement} */ (element.querySelector('.vv-room-job-words'));
    /** @type {{key: string, words: string, done: () => void, failed: (error: Error) => void} | null} */
    this.waiting = null;
    element.querySelector('button')?.addEventListener('click', () => this.stop());
  }

  /**
   * Resolves once the server has the numbers.
   * @param {string} key where they can be fetched then
   * @param {string} words what is computed
   * @param {string} kind
   * @param {import('./store.js').Asked} options
   * @returns {Promise<void>}
   */
  compute(key, words, kind, options) {
    this.end(new Error('Something else was asked for.'));
    return new Promise((done, failed) => {
      this.waiting = { key, words, done, failed };
      this.show(0);
      this.trigger('compute', { key, kind, options });
    });
  }

  /** What the server said of a job. */
  hear(/** @type {Job | null} */ job) {
    if (!job || !this.waiting || job.key !== this.waiting.key) return;
    if (job.error) this.end(new Error(job.error));
    else if (job.done) this.end(null);
    else this.show(job.share ?? 0);
  }

  show(/** @type {number} */ share) {
    this.element.hidden = false;
    if (share > 0) this.bar.value = share;
    else this.bar.removeAttribute('value');
    showText(
      this.words,
      share > 0 ? `${this.waiting?.words} ${Math.round(100 * share)}%` : this.waiting?.words,
    );
  }

  stop() {
    this.trigger('stop', {});
    this.end(new Error('This was stopped; nothing of it was kept.'));
  }

  end(/** @type {Error | null} */ error) {
    const waiting = this.waiting;
    this.waiting = null;
    this.element.hidden = true;
    if (waiting && error) waiting.failed(error);
    else waiting?.done();
  }
}
