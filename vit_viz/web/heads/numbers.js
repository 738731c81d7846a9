// What the Heads tab is told: the measures and names of a photo, the class that is asked about, the estimate and the causal maps for it.
// Where there is much attention to read it is said how far that is, and it can be ended.

import { Job, STOPPED } from '../kit/job.js';
import { useAsked, useJob } from '../kit/parts.js';
import { useMemo, useRef, useSignal } from '../kit/preact.js';
import { agreement, useEffects } from './causal.js';
import { namesIn } from './names.js';
import { agreementWords, everyHead, tableOf } from './words.js';
/** @import { Answer, Ask, asker } from '../kit/ask.js' */
/** @import { Signal } from '../kit/preact.js' */
/** @import { Effect, Target } from './causal.js' */
/** @import { Names } from './names.js' */
/** @import { Look, Subject } from './room.js' */
/** @import { Table } from './words.js' */

/**
 * @typedef {{measures: Record<string, Table>, names: Names}} Told
 *
 * Asks for what may take long; words: what is computed then, '' where it does not; of: what the answer is about.
 * @typedef {(name: string, body: {about: any, words: string, of: string}, stop: AbortSignal) => Promise<any>} Get
 */

/** Measures that depend on the class. */
export const OF_THE_CLASS = ['estimate', 'effect'];

/** The question whose answer is a measure, and its options. @param {string} measure @param {string} how @returns {[name: string, options: any]} */
export function questionOf(measure, how) {
  if (measure === 'estimate') return ['head_importance', { how }];
  return measure === 'effect' ? ['ablation', { how }] : ['heads', { measure }];
}

/** Weights of attention, of all heads together, that a CPU reads in about a third of a second. */
const LONG_WEIGHTS = 2e7;

const IMPORTANCE = 'One pass forwards and one back …';
/** @type {Names} */
const NO_NAMES = { known: new Map(), note: '' };

/** Asks for what the face that is seen shows. @param {ReturnType<typeof asker>} ask @param {Subject} subject @param {Look} look @param {boolean} isOpening whether the next is on its way */
export function useNumbers(ask, subject, look, isOpening) {
  const { layers, heads, tokens } = subject;
  const { measure, how } = look;
  const retries = useSignal(0);
  const work = useJob();
  /** @type {Get} */
  const get = async (name, { about, words, of }, stop) => {
    if (!words) return { ...(await ask(name, about, stop)), of };
    stop.addEventListener('abort', () => work.end());
    return { ...(await work.follow((ended, tell) => ask(name, about, ended, tell), { words })), of };
  };
  const isSeen = look.face !== 'matrix' && layers > 0;
  const isLong = layers * heads * tokens ** 2 > LONG_WEIGHTS;
  const how_ = { get, retries, isLong };
  const told = useTold(ask, subject, isSeen, how_);
  const chosen = useClass(ask, subject, look, isSeen && !isOpening);
  const { effect: map, job: running, ...maps } = useEffects(ask, chosen.key, chosen.body, how);
  const job = measure === 'effect' ? running : new Job();
  const lacks = measure === 'estimate' || (isAlone(map) && measure === 'effect' && !job.isRunning);
  const isFree = !isOpening && !(isLong && told.isAsking); // one at a time
  const guess = useEstimate(chosen, look, lacks && isSeen, { ...how_, isFree });
  const effect = withEstimate(map, guess.table);
  const nothing = useMemo(() => emptyTable(layers, heads), [layers, heads]);
  const tables = { ...told.measures, estimate: guess.table, effect: effect?.table ?? nothing };
  return {
    ...{ ...told, ...chosen, ...maps, effect, work, job, nothing, isLong },
    /** The numbers of the chosen measure; null while they are on their way. */
    table: /** @type {Table | null} */ (tables[/** @type {'effect'} */ (measure)] ?? null),
    ...comparedWith(effect, guess.table, layers * heads),
    error: [told.error, guess.error].find(Boolean) ?? '',
    /** What is computed that does not take long. */ waits: isLong
      ? ''
      : [told.waits, guess.waits].find(Boolean),
    ...{ stop: () => work.end(STOPPED), retry: () => void (retries.value += 1) },
  };
}

/** A causal map with its estimate. @param {Effect | undefined} map @param {Table | null} estimate */
function withEstimate(map, estimate) {
  return map && estimate && isAlone(map) ? { ...map, estimate: estimate.values } : map;
}

/** Whether a causal map is there without its estimate. @param {Effect | undefined} map */
function isAlone(map) {
  return Boolean(map?.table && !map.estimate);
}

/**
 * The measures and names; those before stay where they are of as many heads.
 * @param {Ask} ask @param {Subject} subject @param {boolean} isSeen @param {{get: Get, isLong: boolean, retries: Signal<number>}} how
 */
function useTold(ask, { about, trace, tokens, layers, heads }, isSeen, { get, isLong, retries }) {
  const words = isLong ? `Measuring the heads over ${tokens.toLocaleString('en')} tokens …` : '';
  const tables = useAsked(get, isSeen && ['head_tables', { about, words, of: trace }], retries);
  const names = useAsked(ask, isSeen && tables.state === 'done' && ['head_names', about]);
  const isTold = tables.state === 'done' && ['done', 'failed'].includes(names.state);
  const told = useMemo(
    () => (isTold ? toldIn(tables.value, names) : null),
    [isTold, tables.value, names.value, names.error],
  );
  const last = useRef(/** @type {Told | null} */ (null));
  last.current = told ?? last.current;
  if (!isOf(last.current, layers, heads)) last.current = null;
  const isAsking = isSeen && tables.state === 'pending';
  return {
    ...(last.current ?? { measures: null, names: NO_NAMES }),
    ...{ isOld: Boolean(last.current) && !told, isAsking, waits: isAsking ? 'Measuring the heads …' : '' },
    error: (isSeen && tables.error) || '',
  };
}

/** Whether measures are of a model of this shape. @param {Told | null} told @param {number} layers @param {number} heads */
function isOf(told, layers, heads) {
  const [table] = Object.values(told?.measures ?? {});
  return table?.values.length === layers && table.values[0]?.length === heads;
}

/**
 * The estimate of the causal map for a class, by one gradient.
 * @param {ReturnType<typeof useClass>} chosen @param {Look} look @param {boolean} lacks whether it is needed
 * @param {{get: Get, isLong: boolean, isFree: boolean, retries: Signal<number>}} how isFree: whether it can be asked for now
 */
function useEstimate({ key, body }, { how }, lacks, { get, isLong, isFree, retries }) {
  const of = `${key}|${how}`;
  const about = body && { ...body, how };
  const words = isLong ? IMPORTANCE : '';
  const { state, value, error } = useAsked(
    get,
    lacks && isFree && about && ['head_importance', { about, words, of }],
    retries,
  );
  const table = useMemo(
    () => (value?.of === of ? tableOf(value.arrays.values, value.facts) : null),
    [value, of],
  );
  return { table, error: (lacks && error) || '', waits: lacks && state === 'pending' ? IMPORTANCE : '' };
}

/** @param {any} tables @param {Answer} names @returns {Told} */
function toldIn({ arrays, facts }, names) {
  const measures = Object.keys(facts.tables).map((name) => [
    name,
    tableOf(arrays[`tables.${name}.values`], facts.tables[name]),
  ]);
  const said = names.value ? namesIn(names.value.facts.heads, facts.note) : namesIn([], names.error ?? ''); // why no head has a name
  return { measures: Object.fromEntries(measures), names: said };
}

/** The class that is asked about. @param {Ask} ask @param {Subject} subject @param {Look} look @param {boolean} isAsking */
function useClass(ask, { about, trace }, { targeted }, isAsking) {
  const get = async (
    /** @type {string} */ name,
    /** @type {any} */ { view, of },
    /** @type {AbortSignal} */ stop,
  ) => ({ ...(await ask(name, { view }, stop)), of });
  const { state, value, error } = useAsked(get, isAsking && ['target', { view: targeted, of: trace }]);
  const target = /** @type {Target | null} */ (state !== 'failed' && value?.of === trace ? value : null);
  return {
    target,
    key: `${trace}|${target?.link}`,
    /** What a question about it is asked with. */
    body: target && { ...about, ...(target.link && { target: target.link }) },
    /** Why there is nothing to ask of a class. */ note: error ?? '',
  };
}

/** What was estimated, and how well that foretold a causal map; '' where there is none of either. @param {Effect | undefined} effect @param {Table | null} guess @param {number} heads */
function comparedWith(effect, guess, heads) {
  const { table, estimate = guess?.values, done = 0 } = effect ?? {};
  const isBoth = table && effect?.estimate;
  return {
    estimate,
    foretold: isBoth ? agreementWords({ done, correlation: agreement(isBoth, table) }, heads) : '',
  };
}

/** A table of which nothing is known yet. @param {number} layers @param {number} heads @returns {Table} */
function emptyTable(layers, heads) {
  return { values: everyHead(layers, heads, () => null), unit: '', signed: true };
}
