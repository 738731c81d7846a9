// The numbers of the Heads tab: the measures and names of a photo, and the importance for a class. Where there is much attention to read
// it is said how far they are, and that can be ended; what was there before stands dimmed meanwhile.

import { showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { Job, JobBar, STOPPED } from '../kit/job.js';
/** @import { HeadRoom, Subject } from './room.js' */
/** @import { Named } from './names.js' */
/** @import { Table } from './words.js' */

/** Weights of attention, of all heads together, that a CPU reads in about a third of a second. */
const LONG_WEIGHTS = 2e7;

/**
 * What is told of one photo; note: what is not known, or why no head has a name.
 * @typedef {{measures: Record<string, Table>, names: Named[], note: string}} Told
 */

/**
 * An array of an answer as a table of heads; null where there is no number.
 * @param {{shape: number[], data: ArrayLike<number>}} array [layers, heads] @param {{unit: string, signed: boolean}} facts
 * @param {ArrayLike<number>} [known] which heads are there; all where it is left out
 * @returns {Table}
 */
export function tableOf({ shape: [layers, heads], data }, { unit, signed }, known) {
  const value = (/** @type {number} */ at) =>
    (known && !known[at]) || !Number.isFinite(data[at]) ? null : Number(data[at].toPrecision(5));
  const row = (/** @type {number} */ layer) =>
    Array.from({ length: heads }, (_, head) => value(layer * heads + head));
  return { values: Array.from({ length: layers }, (_, layer) => row(layer)), unit, signed };
}

/** Names as the room shows them. @param {any[]} heads of the answer @returns {Named[]} */
function namedIn(heads) {
  return heads.map((head) => ({
    ...head,
    label: `${head.side} ${head.name}`.trim(),
    thin: head.name === 'mixed' || head.could_be.length > 0,
  }));
}

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
    this.job = new Job(() => bar.show(this.job));
    const bar = new JobBar(room.find('heads-work'), { end: () => this.job.end(STOPPED) });
  }

  /** Another photo, model or size: its measures; those before stay, dimmed, where they are of as many heads. */
  begin(/** @type {Subject} */ subject) {
    this.abort.abort();
    this.abort = new AbortController();
    this.job.end('Another photo was chosen.');
    const table = Object.values(this.told?.measures ?? {})[0]?.values;
    const isAlike = table?.length === subject.layers && table[0]?.length === subject.heads;
    Object.assign(this, { importance: {}, coming: new Set(), told: isAlike ? this.told : null });
    this.isOld = Boolean(this.told);
    this.measured = this.measure();
  }

  /** Whether there is so much attention to read that it is said how far that is. */
  get isLong() {
    const { layers = 0, heads = 0, tokens = 0 } = this.room.subject ?? {};
    return layers * heads * tokens ** 2 > LONG_WEIGHTS;
  }

  /** Asks for the measures, and then for the names that are made of them. */
  async measure() {
    const { room } = this;
    const { signal } = this.abort;
    const { tokens = 0, about } = /** @type {Subject} */ (room.subject);
    const words = `Measuring the heads over ${tokens.toLocaleString('en')} tokens …`;
    const answer = await this.get('head_tables', about, this.isLong ? words : 'Measuring the heads …');
    if (signal.aborted) return;
    if (!answer) return room.draw();
    const { tables, note } = answer.facts;
    const measures = Object.fromEntries(
      Object.keys(tables).map((name) => [
        name,
        tableOf(answer.arrays[`tables.${name}.values`], tables[name]),
      ]),
    );
    const named = await room.ask('head_names', about, signal).then(
      ({ facts }) => ({ names: namedIn(facts.heads), note }),
      (/** @type {Error} */ error) => ({ names: [], note: error.message }), // why no head has a name
    );
    if (signal.aborted) return;
    this.told = { measures, ...named };
    this.isOld = false;
    room.names.draw(named.names, named.note);
    room.draw();
  }

  /** Where the importance for the chosen class is kept. */
  get key() {
    return `${this.room.target?.link ?? ''}|${this.room.options.how}`;
  }

  /** The importance for the chosen class, where it is known. @returns {Table | null} */
  get estimate() {
    return this.importance[this.key] ?? null;
  }

  /** Asks for the importance for the chosen class, once. */
  async askImportance() {
    const { room, coming, key } = this;
    const { signal } = this.abort;
    if (!room.target || key in this.importance || coming.has(key)) return;
    coming.add(key);
    const body = room.ofClass;
    if (this.isLong) await this.measured; // one at a time
    if (signal.aborted) return;
    const answer = await this.get('head_importance', body, 'One pass forwards and one back …');
    if (signal.aborted) return;
    coming.delete(key);
    if (!answer) return;
    this.importance[key] = tableOf(answer.arrays.values, answer.facts);
    room.draw();
  }

  /**
   * The answer to a question; says what goes wrong, and offers to try it again.
   * @param {string} name @param {any} body @param {string} words what is computed
   */
  async get(name, body, words) {
    const { room } = this;
    const { signal } = this.abort;
    showError(room.find('heads-error'), '');
    try {
      if (this.isLong) {
        showText(room.find('heads-wait'), '');
        return await this.job.follow((stop, tell) => room.ask(name, body, stop, tell), { words });
      }
      showText(room.find('heads-wait'), words);
      return await room.ask(name, body, signal);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (!signal.aborted) showError(room.find('heads-error'), message, { again: () => this.retry(name) });
      return null;
    } finally {
      if (!signal.aborted) showText(room.find('heads-wait'), '');
    }
  }

  /** Tries once more what failed or was stopped. */
  retry(/** @type {string} */ name) {
    if (name === 'head_tables') this.measured = this.measure();
    else void this.askImportance();
  }
}
