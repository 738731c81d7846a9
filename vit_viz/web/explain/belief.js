// How far to believe the maps: one test of all of them beside random orders of patches, the chosen one first. It runs as long as the maps
// are about the same; what was tested for another class of the same photo is shown as that class's until this one is tested.

import { STOPPED } from '../kit/job.js';
import { JobLine, useJob } from '../kit/parts.js';
import { html, signal, useLayoutEffect, useMemo } from '../kit/preact.js';
import { Fall } from './fall.js';
import { testedOf } from './maps.js';
import { testAll } from './trust.js';
/** @import { Tell } from '../kit/ask.js' */
/** @import { Job } from '../kit/job.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { OfCards } from './gallery.js' */
/** @import { Of } from './maps.js' */
/** @import { Method } from './staged.js' */
/** @import { Trust } from './trust.js' */

/**
 * What a test found of the maps for one class; order: methods, the most trusted first.
 * @typedef {{target: string, trust: Record<string, Trust>, order: string[]}} Tested
 *
 * What is known of the maps; of: the class of the test, where it is another one than `target`; go: what the button says that begins the
 * test, '' where there is nothing to test.
 * @typedef {Tested & {of: string, go: string, job: Job, begin: () => void}} Tests
 */

const UNTESTED = 'Not compared with random orders of patches yet.';
const TEST = { class: 'vv-button vv-test' };

/**
 * What was found of the maps of an answer, and what tests those that are there.
 * @param {Pick<OfCards, 'page' | 'places' | 'answers' | 'methods'>} cards @param {Of | null} of what the maps are of @returns {Tests}
 */
export function useTests({ page: { store, ask }, places, answers, methods }, of) {
  const about = JSON.stringify(of?.about);
  const { name: target = '', link = '' } = of?.target ?? {};
  const key = `${about} ${link}`;
  /** @type {Signal<Map<string, Tested>>} by the keys of classes of this photo, the last tested last */
  const tests = useMemo(() => signal(new Map()), [about]);
  const job = useJob(places);
  useLayoutEffect(() => () => job.end(), [key, store.subject()]);
  const optionsOf = (/** @type {string} */ name) => JSON.stringify(store.optionsOf(name));
  const { own, ...known } = knownOf(tests.value, key, target, optionsOf);
  const untested = methods.filter(({ name }) => answers.value.get(name) && (own.trust[name]?.isHalf ?? true));
  const chosen = () => store.view.method.peek();
  const learn = (/** @type {{cards: Record<string, Trust>, order?: string[]}} */ news) => {
    const { [key]: before, ...rest } = Object.fromEntries(tests.peek());
    const trust = { ...before?.trust, ...news.cards };
    const now = { target, trust, order: news.order ?? before?.order ?? [] };
    tests.value = new Map([...Object.entries(rest), [key, now]]);
  };
  const begin = () => {
    // those that were tested are known, and take their places in the order
    const maps = methods.filter((one) => own.trust[one.name] || untested.includes(one));
    const bodies = maps.map(({ name, label }) => ({
      ...{ name, label, body: testedOf(store, /** @type {Of} */ (of), name) },
      options: optionsOf(name),
    }));
    const all = (/** @type {AbortSignal} */ stop, /** @type {Tell} */ tell) =>
      testAll(ask, bodies, chosen, /** @type {Of} */ (of).target, stop, tell);
    void job.follow(all, { part: learn, whole: learn });
  };
  const isNext = untested.some(({ name }) => name === store.view.method.value);
  const rest = untested.length > 1 ? ', then the others' : '';
  const go = isNext ? `Test this map${rest}` : untested.length ? 'Test the new maps too' : '';
  return { ...known, target, go, job, begin };
}

/**
 * What was found with the options that the maps have now: of this class, else of the class that was tested last, which is named then.
 * @param {Map<string, Tested>} tests @param {string} key @param {string} target @param {(name: string) => string} optionsOf
 * @returns {{own: Tested, of: string} & Omit<Tested, 'target'>}
 */
function knownOf(tests, key, target, optionsOf) {
  const ofNow = (/** @type {Tested} */ { trust, order, ...tested }) => {
    const now = Object.entries(trust).filter(([name, { options }]) => optionsOf(name) === options);
    return { ...tested, trust: Object.fromEntries(now), order };
  };
  const own = ofNow(tests.get(key) ?? { target, trust: {}, order: [] });
  const isMeasured = (/** @type {Tested} */ { trust }) => Object.values(trust).some(({ place }) => place);
  const [, other] = [...tests].filter(([one, tested]) => one !== key && isMeasured(tested)).at(-1) ?? [];
  if (Object.keys(own.trust).length || !other) return { own, of: '', ...own };
  return { own, of: other.target, ...ofNow(other) };
}

/**
 * How far to believe a map: what its test found in sentences, and the curve of the answer while its patches go or come.
 * @param {{method: Method, tests: Tests, cost: string, weights: string, taken: ReadonlySignal<number>}} props cost: of a test, in words;
 *     weights: what became of the map when they were re-initialised; taken: share of its patches that the slider took away
 */
export function Belief({ method: { name, label }, tests, cost, weights, taken }) {
  const { trust: all, of, target, go, job, begin } = tests;
  const trust = all[name];
  const other = trust ? of : '';
  const whose = other && `Measured for ${other}, not for ${target} yet.`;
  const said = trust?.error ? [trust.error] : (trust?.sentences ?? [job.isRunning ? '' : UNTESTED]);
  const words = job.words || job.error || (!trust && cost);
  return html`<section class="vv-belief">
    <h3 class="vv-title">How far to believe it${trust?.falls && `: ${trust.falls}`}</h3>
    <${JobLine} ...${{ job, begin, go, words, end: () => job.end(STOPPED), look: 'vv-row', button: TEST }} />
    <div class="vv-said" aria-live="polite">
      ${[whose, ...said, weights].filter(Boolean).map((line) => html`<p>${line}</p>`)}
    </div>
    <${Fall} ...${{ trust, name: `${label}${other && ` for ${other}`}`, taken: other ? null : taken }} />
  </section>`;
}
