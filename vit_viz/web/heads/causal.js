// The causal map: the button with its cost, what replaces a head, for which class, how far it is.

import { press, showText } from '../../ui/kit/elements.js';
import { Job } from '../kit/job.js';
import { correlation } from './detail.js';
import { tableOf } from './numbers.js';
import { agreementWords, capital } from './words.js';
/** @import { Ask } from '../kit/ask.js' */
/** @import { JobBar } from '../kit/job.js' */
/** @import { Table } from './words.js' */

/**
 * A causal map as far as it is computed.
 * @typedef {{table?: Table, estimate?: (number | null)[][], correlation?: number, done?: number, error?: string}} Effect
 *
 * @typedef {{classes: {index: number, name: string, probability?: number, value?: number}[], chosen?: number,
 *   name: string, link: string, words?: string}} Target
 */

const STOPPED = 'Stopped; the heads that were done are shown.';
const NOTHING = 'Stopped; no head was done.';

/** What is known of the causal maps of one subject and one class, by the way of switching off. */
export class Effects {
  key = '';
  /** @type {any} what a question about it is asked with */ body = null;
  /** @type {Record<string, Effect>} */ of = {};
  job = new Job(() => this.running === this.of && this.changed());
  /** @type {Record<string, Effect> | null} those that it is about */ running = null;
  how = ''; // the way that it is about
  /** @type {Set<string>} ways whose map is at hand, and was asked for */ kept = new Set();
  left = new AbortController(); // of what is at hand

  /** @param {Ask} ask @param {() => void} changed */
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
  }

  /** Another subject or class: what runs about the former ends, and nothing of it holds. @param {string} key @param {any} body */
  begin(key, body) {
    if (key === this.key) return;
    this.left.abort();
    Object.assign(this, { key, body, of: {}, kept: new Set(), left: new AbortController() });
    this.job.end();
  }

  /** Shows those that the server has at hand. @param {string[]} hows */
  keep(hows) {
    const { of, body, left, kept } = this;
    for (const how of hows.filter((one) => !(one in of) && !kept.has(one))) {
      kept.add(how);
      this.ask('ablation', { ...body, how }, left.signal).then(
        (answer) => of === this.of && !of[how] && this.tell(how, whole(answer)),
        () => {}, // it was not at hand any more, and can be started
      );
    }
  }

  /** Switches off each head in a way, and follows that to its end. @param {string} how */
  start(how) {
    this.end();
    const { of, body } = this;
    Object.assign(this, { running: of, how });
    const tell = (/** @type {Effect} */ said) => void (of === this.of && this.tell(how, said));
    tell({ error: '' });
    const hear = {
      part: (/** @type {any} */ preview) => tell(partly(preview)),
      whole: (/** @type {any} */ answer) => tell(whole(answer)),
    };
    this.job
      .follow((stop, told) => this.ask('ablation', { ...body, how }, stop, told), hear)
      .catch(({ message }) => tell({ error: message }));
  }

  /** Ends what runs; the heads that are done stay. */
  end() {
    if (this.job.isRunning) this.job.end(this.of[this.how]?.done ? STOPPED : NOTHING);
  }

  /** How far the causal map of a way is. @param {string} how */
  jobOf(how) {
    return this.running === this.of && this.how === how ? this.job : new Job();
  }

  /** @param {string} how @param {Effect} said */
  tell(how, said) {
    this.of[how] = { ...this.of[how], ...said };
    this.changed();
  }
}

/** A causal map of which not all is there. @param {any} preview @returns {Effect} */
function partly({ arrays, facts }) {
  const { data: known } = arrays.known;
  const done = known.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0);
  const table = tableOf(arrays['table.values'], facts.table, known);
  return { table, estimate: tableOf(arrays['estimate.values'], facts.estimate).values, done };
}

/** A causal map that is computed. @param {any} answer @returns {Effect} */
function whole({ arrays, facts }) {
  return { table: tableOf(arrays.values, facts), done: arrays.values.data.length };
}

/** The rank of each number; equal ones share theirs. @param {number[]} numbers */
function ranks(numbers) {
  const places = numbers.map((_, i) => i).sort((a, b) => numbers[a] - numbers[b]);
  const rank = new Float32Array(numbers.length);
  for (let first = 0, next = 0; first < places.length; first = next) {
    while (next < places.length && numbers[places[next]] === numbers[places[first]]) next++;
    for (const place of places.slice(first, next)) rank[place] = (first + next - 1) / 2;
  }
  return rank;
}

/**
 * Spearman's correlation of what was estimated and what is true, over the heads that are computed.
 * @param {(number | null)[][]} estimate @param {Table} truth
 */
export function agreement(estimate, { values }) {
  const pairs = values.flatMap((row, layer) =>
    row.flatMap((value, head) =>
      value === null ? [] : [/** @type {[number, number]} */ ([estimate[layer][head] ?? 0, value])],
    ),
  );
  return correlation(ranks(pairs.map(([guess]) => guess)), ranks(pairs.map(([, value]) => value)));
}

/**
 * @param {(name: string) => HTMLElement} find @param {JobBar} bar
 * @param {{effect: Effect | undefined, job: Job, how: string, target: Target | null, cost: string, note: string, heads: number}} known
 */
export function drawCausal(find, bar, { effect, job, how, target, cost, note, heads }) {
  const { isRunning: running, left } = job;
  const isDone = !running && effect?.done === heads;
  const go = isDone ? '' : effect?.done ? 'Start again' : 'Switch off each head';
  bar.show(job, { words: '', amount: '', go });
  /** @type {HTMLButtonElement} */ (find('heads-start')).disabled = !target;
  showText(find('heads-cost'), note || (isDone || running || !cost ? '' : `${capital(cost)}.`));
  showText(find('heads-job'), jobWords(effect && { ...effect, running, left }, heads));
  press(find('heads-hows'), 'how', how);
}

/** How far it is, what went wrong, and how well the estimate foretold it. */
export function jobWords(
  /** @type {(Effect & {running: boolean, left?: string}) | undefined} */ effect,
  /** @type {number} */ heads,
) {
  if (!effect) return '';
  const { done = 0, correlation: rank = 0, running, left, error = '' } = effect;
  const far = running
    ? `${done} of ${heads} heads are done, what the estimate says matters most first${left ? `; ${left}` : ''}.`
    : '';
  return [far, error, effect.estimate && agreementWords({ done, correlation: rank }, heads)]
    .filter(Boolean)
    .join(' ');
}
