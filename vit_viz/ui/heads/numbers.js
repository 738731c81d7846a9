// The numbers of the Heads tab: the measures and names of a photo, and the importance for a class. Where the attention is large the server
// computes them as a job first, whose progress is seen and which can be ended; what was there before stands dimmed meanwhile.

import { fetched, showText } from '../kit/elements.js';
import { Jobs } from '../kit/jobs.js';
import { showError } from '../kit/notes.js';
/** @import { HeadRoom, Subject, Told } from './table.js' */
/** @import { Table } from './words.js' */

/** What is known of one photo in one model. */
export class Numbers {
  /** @type {Told | null} */ told = null;
  isOld = false; // whether `told` is of what was seen before
  /** @type {Record<string, Table>} by class and way of switching off */ importance = {};
  /** @type {Set<string>} which of them are on their way */ coming = new Set();
  /** @type {Promise<void>} */ measured = Promise.resolve();
  abort = new AbortController();

  /** @param {HeadRoom} room */
  constructor(room) {
    this.room = room;
    this.jobs = new Jobs(room.find('heads-work'), room.trigger);
  }

  /** Another photo, model or size: its measures; those before stay, dimmed, where they are of as many heads. */
  begin(/** @type {Subject} */ subject) {
    this.abort.abort();
    this.abort = new AbortController();
    this.jobs.end(new Error('Another photo was chosen.'));
    const table = Object.values(this.told?.measures ?? {})[0]?.values;
    const isAlike = table?.length === subject.layers && table[0]?.length === subject.heads;
    Object.assign(this, { importance: {}, coming: new Set(), told: isAlike ? this.told : null });
    this.isOld = Boolean(this.told);
    this.measured = this.measure();
  }

  /** Fetches the measures. */
  async measure() {
    const { signal } = this.abort;
    const { tokens = 0 } = this.room.subject ?? {};
    const words = `Measuring the heads over ${tokens.toLocaleString('en')} tokens …`;
    const told = await this.get('measures', {}, this.room.subject?.long ? words : 'Measuring the heads …');
    if (signal.aborted) return;
    if (!told) return this.room.draw();
    this.told = told;
    this.isOld = false;
    this.room.names.draw(told.names, told.rules, told.margin ?? 0.1, told.unnamed || told.note);
    this.room.draw();
  }

  /** Where the importance for the chosen class is kept. */
  get key() {
    return `${this.room.subject?.target?.link ?? ''}|${this.room.options.how}`;
  }

  /** The importance for the chosen class, where it was fetched. @returns {Table | null} */
  get estimate() {
    return this.importance[this.key] ?? null;
  }

  /** Fetches the importance for the chosen class, once. */
  async fetchImportance() {
    const { room, coming, key } = this;
    const { signal } = this.abort;
    if (!room.subject?.target || key in this.importance || coming.has(key)) return;
    coming.add(key);
    /** @type {Record<string, string>} */ const asked = { how: room.options.how };
    if (room.subject.target.link) asked.target = room.subject.target.link;
    if (room.subject.long) await this.measured; // one job at a time
    if (signal.aborted) return;
    const importance = await this.get('importance', asked, 'One pass forwards and one back …');
    coming.delete(key);
    if (signal.aborted || !importance) return;
    this.importance[key] = importance;
    room.draw();
  }

  /**
   * Fetches numbers, once the server has them; says what goes wrong, and offers to try it again.
   * @param {string} kind @param {Record<string, string>} asked @param {string} words
   */
  async get(kind, asked, words) {
    const { room } = this;
    const { signal } = this.abort;
    const path = `/vit_viz/head_numbers/${room.subject?.trace}?${new URLSearchParams({ kind, ...asked })}`;
    showError(room.find('heads-error'), '');
    try {
      if (room.subject?.long) {
        showText(room.find('heads-wait'), '');
        await this.jobs.compute(path, words, kind, asked);
      } else showText(room.find('heads-wait'), words);
      return await (await fetched(path, signal)).json();
    } catch (error) {
      if (!signal.aborted)
        showError(room.find('heads-error'), wordsOf(error), { again: () => this.retry(kind) });
      return null;
    } finally {
      if (!signal.aborted) showText(room.find('heads-wait'), '');
    }
  }

  /** Tries once more what failed or was stopped. */
  retry(/** @type {string} */ kind) {
    if (kind === 'measures') {
      this.measured = this.measure();
      return;
    }
    void this.fetchImportance();
  }
}

function wordsOf(/** @type {unknown} */ error) {
  return /** @type {Error} */ (error).message;
}
