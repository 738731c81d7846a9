// What takes long: how far it is, until it is there, has failed, or was ended.

import { STOPPED } from '../kit/job.js';
/** @import { Ask } from '../kit/ask.js' */

/** So many places for what runs at the same time; what comes later waits for one. */
export class Places {
  /** @type {(() => void)[]} */ waiting = [];

  constructor(/** @type {number} */ free) {
    this.free = free;
  }

  /** @template Value @param {AbortSignal} stop @param {() => Promise<Value>} work not begun once it was stopped @returns {Promise<Value>} */
  async hold(stop, work) {
    if (this.free) this.free -= 1;
    else await new Promise((next) => this.waiting.push(() => next(null)));
    try {
      stop.throwIfAborted();
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free += 1;
    }
  }
}

/** One question that takes long, at most once at a time. */
export class Run {
  /** @type {AbortController | null} of what runs */ stop = null;
  share = 0;
  left = '';
  error = '';

  /** @param {Ask} ask @param {Places} places @param {() => void} changed */
  constructor(ask, places, changed) {
    this.ask = ask;
    this.places = places;
    this.changed = changed;
  }

  get isRunning() {
    return Boolean(this.stop);
  }

  /**
   * Asks, and follows that to the answer; nothing is heard of it any more once it was ended.
   * @param {string} name @param {any} body
   * @param {{part?: (value: any) => void, whole: (value: any) => void}} hear the answer, and what there is of it so far
   */
  async follow(name, body, { part, whole }) {
    if (this.stop) return;
    const stop = (this.stop = new AbortController());
    Object.assign(this, { share: 0, left: '', error: '' });
    this.changed();
    try {
      const ask = () =>
        this.ask(name, body, stop.signal, ({ share, left, preview }) => {
          if (stop.signal.aborted) return;
          Object.assign(this, { share, left });
          if (preview) part?.(preview);
          this.changed();
        });
      const answer = await this.places.hold(stop.signal, ask);
      if (stop.signal.aborted) return;
      whole(answer);
    } catch (error) {
      if (stop.signal.aborted) return;
      this.error = /** @type {Error} */ (error).message;
    }
    this.stop = null;
    this.changed();
  }

  /** Its visitor wants it no longer. */
  cancel() {
    this.end(STOPPED);
    this.changed();
  }

  /** Ends it, if it runs, and forgets what became of it. */
  end(why = '') {
    this.stop?.abort();
    Object.assign(this, { stop: null, error: why });
  }
}
