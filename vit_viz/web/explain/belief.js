// How far to believe the maps: one test of all of them beside random orders of patches, the one on the photo first. It runs as long as the
// maps are about the same; what was tested for another class of the same photo is shown as that class's until this one is tested.

import { STOPPED } from '../kit/job.js';
import { JobLine, useAsked, useJob } from '../kit/parts.js';
import { html, signal, useComputed, useLayoutEffect, useMemo } from '../kit/preact.js';
import { Fall } from './fall.js';
import { testedOf } from './maps.js';
import { DIFFERENCE, testAll, trustOf } from './trust.js';
/** @import { Tell } from '../kit/ask.js' */
/** @import { Job } from '../kit/job.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { OfCards } from './gallery.js' */
/** @import { Of } from './maps.js' */
/** @import { Staged, ToTest } from './staged.js' */
/** @import { Trust } from './trust.js' */

/**
 * What a test found of the maps for one class; order: methods, the most trusted first.
 * @typedef {{target: string, trust: Record<string, Trust>, order: string[]}} Tested
 *
 * What is known of the maps; of: the class of the test, where it is another one than `target`; staged: the map on the photo; cost: of its
 * test, in words; go: what the button says that begins the test, '' where there is nothing to test.
 * @typedef {Tested & {of: string, staged: ToTest | null, cost: string, go: string, job: Job, begin: () => void}} Tests
 */

const UNTESTED = 'Not compared with random orders of patches yet.';
const TEST = { class: 'vv-button vv-test' };

/**
 * What was found of the maps of an answer, and what tests those that are there: of the cards, and the one on the photo.
 * @param {Pick<OfCards, 'page' | 'places' | 'answers' | 'methods'>} cards @param {Of | null} of what the maps are of
 * @param {ReadonlySignal<Staged | null>} shown on the photo
 * @returns {Tests}
 */
export function useTests({ page: { store, ask }, places, answers, methods }, of, shown) {
  const about = JSON.stringify(of?.about);
  const { name: target = '', link = '' } = of?.target ?? {};
  const key = `${about} ${link}`;
  /** @type {Signal<Map<string, Tested>>} by the keys of classes of this photo, the last tested last */
  const tests = useMemo(() => signal(new Map()), [about]);
  const job = useJob(places);
  useLayoutEffect(() => () => job.end(), [key, store.subject()]);
  // as text, so that a map that is drawn anew is the same one
  const onPhoto = useComputed(() => JSON.stringify(shown.value?.tested ?? null)).value;
  const staged = /** @type {ToTest | null} */ (JSON.parse(onPhoto));
  const optionsOf = (/** @type {string} */ name) =>
    JSON.stringify(name === DIFFERENCE ? staged?.name === name && staged.body : store.optionsOf(name));
  const { own, ...known } = knownOf(tests.value, key, target, optionsOf);
  const bodies = methods
    .filter(({ name }) => answers.value.get(name))
    .map(({ name, label }) => ({ name, label, body: testedOf(store, /** @type {Of} */ (of), name) }));
  const isNow = staged?.of === key;
  const maps = isNow && staged.name === DIFFERENCE ? [staged, ...bodies] : bodies;
  const untested = maps.filter(({ name }) => own.trust[name]?.isHalf ?? true);
  const learn = (/** @type {{cards: Record<string, Trust>, order?: string[]}} */ news) => {
    const { [key]: before, ...rest } = Object.fromEntries(tests.peek());
    const trust = { ...before?.trust, ...news.cards };
    const now = { target, trust, order: news.order ?? before?.order ?? [] };
    tests.value = new Map([...Object.entries(rest), [key, now]]);
  };
  const atHand = useAsked(
    async (name, body, stop) => {
      let cost = '';
      const kept = await ask.kept(name, body, stop, (said) => void (cost = said.cost ?? ''));
      return { kept, cost };
    },
    staged && ['trust', staged.body],
  );
  const { kept, cost: amount = '' } = atHand.value ?? {};
  useLayoutEffect(() => {
    if (!kept || !isNow) return;
    const { name } = staged;
    learn({
      cards: { [name]: { ...trustOf(kept, /** @type {Of} */ (of).target), options: optionsOf(name) } },
    });
  }, [kept]);
  const begin = () => {
    // those that were tested are known, and take their places in the order
    const all = maps.map((map) => ({ ...map, options: optionsOf(map.name) }));
    const first = () => shown.peek()?.tested.name ?? '';
    const follow = (/** @type {AbortSignal} */ stop, /** @type {Tell} */ tell) =>
      testAll(ask, all, first, /** @type {Of} */ (of).target, stop, tell);
    void job.follow(follow, { part: learn, whole: learn });
  };
  const isNext = untested.some(({ name }) => name === staged?.name);
  const rest = untested.length > 1 ? ', then the others' : '';
  const go = isNext ? `Test this map${rest}` : untested.length ? 'Test the new maps too' : '';
  const cost = amount && `Takes its patches away, beside random orders of patches; ${amount}.`;
  return { ...known, target, staged, cost, go, job, begin };
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
 * How far to believe the map on the photo: what its test found in sentences, and the curve of the answer while its patches go or come.
 * @param {{tests: Tests, weights: string, taken: ReadonlySignal<number>}} props weights: what became of the map of the card when they were
 *     re-initialised; taken: share of the patches of the map that the slider took away
 */
export function Belief({ tests, weights, taken }) {
  const { trust: all, of, target, staged, cost, go, job, begin } = tests;
  const { name, label } = /** @type {ToTest} */ (staged);
  const trust = all[name];
  const other = trust ? of : '';
  const whose = other && `Measured for ${other}, not for ${target} yet.`;
  const said = trust?.error ? [trust.error] : (trust?.sentences ?? [job.isRunning ? '' : UNTESTED]);
  const words = job.words || job.error || (!trust && cost);
  const more = name === DIFFERENCE ? '' : weights;
  return html`<section class="vv-belief">
    <h3 class="vv-title">How far to believe it${trust?.falls && `: ${trust.falls}`}</h3>
    <${Fall} ...${{ trust, name: `${label}${other && ` for ${other}`}`, taken: other ? null : taken }} />
    <${JobLine} ...${{ job, begin, go, words, end: () => job.end(STOPPED), look: 'vv-row', button: TEST }} />
    <div class="vv-said" aria-live="polite">
      ${[whose, ...said, more].filter(Boolean).map((line) => html`<p>${line}</p>`)}
    </div>
  </section>`;
}
