// A question that takes a while: whether it runs, how far it is and what became of it.

/** @import { Tell } from './ask.js' */

export const STOPPED = 'This was stopped; nothing of it was kept.';
const OVER = { isRunning: false, words: '', share: 0, left: '' };

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

/** At most one question at a time: a newer one takes its place, and nothing is heard of one that was ended. */
export class Job {
  isRunning = false;
  words = ''; // what is done while it runs
  share = 0;
  left = ''; // the time that is left
  /** @type {any} what there is of the answer so far */ preview = null;
  error = ''; // why it failed or was ended
  stop = new AbortController();

  /** @param {() => void} [changed] @param {Places} [places] */
  constructor(changed = () => {}, places) {
    this.changed = changed;
    this.places = places;
  }

  /**
   * Asks, and follows that to the answer.
   * @template Value
   * @param {(stop: AbortSignal, tell: Tell) => Promise<Value>} ask whose previews may have other `words`
   * @param {{words?: string, part?: (preview: any) => void, whole?: (answer: Value) => void}} [hear] the answer, and what there is of it so far
   * @returns {Promise<Value>} fails with a sentence, also where it was ended; who shows `error` needs not hear of that
   */
  follow(ask, { words = 'Starting …', part, whole } = {}) {
    this.stop.abort(new Error('Something else was asked for.'));
    const stop = (this.stop = new AbortController());
    const { signal } = stop;
    this.tell({ ...OVER, isRunning: true, words, preview: null, error: '' });
    const work = () =>
      ask(signal, ({ share, left, preview }) => {
        if (signal.aborted) return;
        if (preview) part?.(preview);
        this.tell({ share, left, ...(preview && { preview, words: preview.words ?? this.words }) });
      });
    /** @type {Promise<never>} */
    const ended = new Promise((_, failed) => signal.addEventListener('abort', () => failed(signal.reason)));
    const answer = Promise.race([this.places ? this.places.hold(signal, work) : work(), ended]).then(
      (value) => {
        signal.throwIfAborted();
        whole?.(value);
        this.tell(OVER);
        return value;
      },
      (error) => {
        if (!signal.aborted) this.tell({ ...OVER, error: error.message });
        throw error;
      },
    );
    answer.catch(() => {});
    return answer;
  }

  /** Ends it, if it runs, for a reason in a sentence, and forgets what became of it. */
  end(why = '') {
    this.stop.abort(new Error(why));
    if (this.isRunning || this.error !== why) this.tell({ ...OVER, error: why });
  }

  /** @param {Partial<Job>} news */
  tell(news) {
    Object.assign(this, news);
    this.changed();
  }
}
