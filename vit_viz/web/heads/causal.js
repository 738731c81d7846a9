// The causal map: the button with its cost, what replaces a head, for which class, how far it is.

import { Job } from '../kit/job.js';
import { Classes, JobLine, Toggle, useJob } from '../kit/parts.js';
import { html, useLayoutEffect, useMemo, signal } from '../kit/preact.js';
import { capital, correlation, tableOf } from './words.js';
/** @import { asker } from '../kit/ask.js' */
/** @import { Target as Chosen } from '../kit/parts.js' */
/** @import { Seen } from './room.js' */
/** @import { Table } from './words.js' */

/**
 * A causal map as far as it is computed.
 * @typedef {{table?: Table, estimate?: (number | null)[][], done?: number, error?: string}} Effect
 *
 * @typedef {Chosen & {name: string, link: string, reads?: boolean}} Target reads: whether the model has a text tower
 */

const STOPPED = 'Stopped; the heads that were done are shown.';
const NOTHING = 'Stopped; no head was done.';

/** @type {[string, string, string][]} with what each does */
const HOWS = [
  ['zero', 'zero', 'The head writes nothing.'],
  ['mean', 'its mean', "Every token gets the head's mean output."],
  ['uniform', 'uniform', 'The head looks alike at all tokens that it may see.'],
];

/**
 * The causal maps of one subject and one class, by the way of switching off; of another one nothing is known yet.
 * @param {ReturnType<typeof asker>} ask @param {string} key of subject and class
 * @param {any} body what a question about them is asked with; null where none can be
 * @param {string} how the way that is seen
 */
export function useEffects(ask, key, body, how) {
  const job = useJob();
  const maps = useMemo(
    () => ({
      effects: signal(/** @type {Record<string, Effect>} */ ({})),
      cost: signal(''),
      how: '',
      stop: new AbortController(),
    }),
    [key],
  );
  const { effects, stop } = maps;
  const tell = (/** @type {string} */ of, /** @type {Effect} */ said) => {
    effects.value = { ...effects.peek(), [of]: { ...effects.peek()[of], ...said } };
  };
  useLayoutEffect(
    () => () => {
      stop.abort();
      job.end();
    },
    [maps],
  );
  const isAsked = Boolean(body);
  useLayoutEffect(() => {
    if (!isAsked || how in effects.peek()) return;
    const hear = (/** @type {any} */ said) => void (maps.cost.value = said.cost ?? '');
    ask.kept('ablation', { ...body, how }, stop.signal, hear).then(
      (answer) => answer && !(how in effects.peek()) && tell(how, whole(answer)),
      () => {}, // it can be started all the same
    );
  }, [maps, how, isAsked]);
  /** Ends what runs; the heads that are done stay. */
  const end = () => job.isRunning && job.end(effects.peek()[maps.how]?.done ? STOPPED : NOTHING);
  /** Switches off each head in this way, and follows that to its end. */
  const start = () => {
    end();
    maps.how = how;
    tell(how, { error: '' });
    const hear = {
      part: (/** @type {any} */ preview) => tell(how, partly(preview)),
      whole: (/** @type {any} */ answer) => tell(how, whole(answer)),
    };
    job
      .follow((ended, told) => ask('ablation', { ...body, how }, ended, told), hear)
      .catch(({ message }) => tell(how, { error: message }));
  };
  return {
    effect: /** @type {Effect | undefined} */ (effects.value[how]),
    job: maps.how === how ? job : new Job(),
    cost: maps.cost.value,
    ...{ start, end },
  };
}

/** A causal map of which not all is there. @param {any} preview @returns {Effect} */
function partly({ arrays, facts }) {
  const { data: known } = arrays.known;
  const done = known.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0);
  const table = tableOf(arrays['table.values'], facts.table, known);
  const estimate = facts.estimate && tableOf(arrays['estimate.values'], facts.estimate).values; // by a gradient, which not everybody has
  return { table, estimate, done };
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

/** What the estimate and the causal map are of; and of the map what it costs, and how far it is. @param {{seen: Seen}} props */
export function Causal({ seen }) {
  const { store, ask } = seen.page;
  const { measure, how, targeted } = seen.look;
  const { effect, job, target, cost, note, start, end, foretold } = seen.numbers;
  const isMeasured = measure === 'effect';
  const heads = seen.subject.layers * seen.subject.heads;
  const isDone = !job.isRunning && effect?.done === heads;
  const go = isDone || !isMeasured ? '' : effect?.done ? 'Start again' : 'Switch off each head';
  const isPriced = !isDone && !job.isRunning && cost && isMeasured;
  const price = note || (isPriced ? `${capital(cost)}.` : '');
  const far = isMeasured ? jobWords(effect, job, heads, foretold) : '';
  return html`<div class="vv-heads-causal vv-stack">
    <div class="vv-heads-classes">
      <${Classes}
        target=${{ ...target, single: true }}
        why=${(/** @type {number} */ index) => store.set({ target: String(index) })}
        find=${async (/** @type {string} */ find, /** @type {AbortSignal} */ stop) =>
          (await ask('target', { view: targeted, find }, stop)).hits}
        label="The class that is asked about"
        title=${html`<span class="vv-quiet">for</span>`}
      />
    </div>
    <div class="vv-row">
      <${Toggle}
        name="how"
        look="vv-heads-hows"
        choices=${HOWS}
        value=${how}
        choose=${(/** @type {string} */ chosen) => store.set({ how: chosen })}
        label="What replaces the output of the head"
      />
      <${JobLine}
        look="vv-heads-switching vv-row"
        ...${{ job, end, begin: start, go, words: '', amount: '' }}
        button=${{ class: 'vv-button vv-heads-start', disabled: !target }}
      />
    </div>
    <p class="vv-heads-cost vv-small" hidden=${!price}>${price}</p>
    <p class="vv-heads-job vv-small" role="status" hidden=${!far}>${far}</p>
  </div>`;
}

/** How far it is, what went wrong, and how well the estimate foretold it. */
export function jobWords(
  /** @type {Effect | undefined} */ effect,
  /** @type {{isRunning: boolean, left?: string}} */ { isRunning, left },
  /** @type {number} */ heads,
  said = '',
) {
  if (!effect) return '';
  const { done = 0, error = '' } = effect;
  const far = isRunning
    ? `${done} of ${heads} heads are done, what the estimate says matters most first${left ? `; ${left}` : ''}.`
    : '';
  return [far, error, said].filter(Boolean).join(' ');
}
