// What the Survey tab knows: what the link says is chosen, the answers to that, and what its visitor asks for beside it.

import { fetched } from '../../ui/kit/elements.js';
import { asked } from '../kit/ask.js';
import { Job } from '../kit/job.js';
import { batch, computed, effect, signal, untracked } from '../kit/preact.js';
import { numbersOf } from './place.js';
import { parted } from './words.js';
/** @import { Answer, Answers, Ask } from '../kit/ask.js' */
/** @import { Signal } from '../kit/preact.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Place } from '../heads/words.js' */
/** @import { Card, GroupName, ListName } from './words.js' */

/**
 * @typedef {{name: string, label: string, unit: string, meaning: string}} Measure
 * @typedef {{name: string, unit: string, meaning: string, words: string[]}} Column words: its names on the screen
 * @typedef {{photos: number, model: string, layers: number, heads: number, has_boxes: boolean, has_labels:
 *   boolean, measures: Measure[], numbers: string[], columns: Column[], others: string[], figure: {data: any[],
 *   layout: any}, plotly: string}} Opened others: can be compared with; figure: the axes of the dots; plotly: its version
 *
 * @typedef {Place & {where: string, measure: string, second?: string}} Question second: the survey that this one is compared with
 * @typedef {{label: string, photos: number, accuracy: number | null, means: Record<string, number | null>}} ClassLine
 * @typedef {{measure: string, unit: string, mean: (number | null)[][], spread: (number | null)[][], photos:
 *   number, names: {name: string, sentence: string, evidence: number | null, is_thin: boolean}[], unknown:
 *   string}} Atlas
 * @typedef {{count: number, labelled: number, accuracy: number | null, bits: string, atlas: Atlas, lists:
 *   Record<GroupName, Card[]>, totals: Record<GroupName | ListName, number>, classes: ClassLine[]}} Chosen
 *
 * @typedef {{layer: number, head: number, statistic: string, words: string, unit: string, photos: number, before: number, after:
 *   number, difference: number, low: number, high: number, effect: number | null}} Moved effect: null where all photos moved alike
 * @typedef {{name: string, model: string, photos: number, changed: number | null, accuracy: string, heads: string, note?: string,
 *   moved: Moved[]}} Compared changed: null where outputs are values; note: on their kinds
 *
 * @typedef {ReturnType<typeof makeState>} State
 */

const METHODS_WAIT = 250; // milliseconds that a filter stands before the methods are resampled

/** The opened survey, which does not change; each answer says `of` what it is. @type {Answers} */
export const SOURCE = {
  keeps: (name) => !/^(beside|look)/.test(name), // those depend on models and on files
  async answer(name, body, stop) {
    const answer = await fetched(`/vit_viz/survey/${name}?${new URLSearchParams(body)}`, stop, 400);
    const value = name === 'points' ? new Float32Array(await answer.arrayBuffer()) : await answer.json();
    if (value.refused) throw new Error(value.refused);
    return { of: body, value };
  },
};

/** @param {Page} page @param {Ask} ask @param {Opened} survey */
export function makeState(page, ask, survey) {
  const { store } = page;
  const { view } = store;
  const { layers, heads, measures } = survey;

  /** What the link says is chosen, as this survey has it. */
  const linked = () => {
    const [layer, head, measure] = [view.layer.value, view.head.value, view.of_heads.value];
    return {
      layer: Math.min(layer ?? layers - 1, layers - 1),
      head: typeof head === 'number' ? Math.min(head, heads - 1) : 0,
      measure: measures.some(({ name }) => name === measure) ? measure : measures[0].name,
      where: /** @type {string} */ (view.where.value),
      across: /** @type {string} */ (view.across.value),
      up: /** @type {string} */ (view.up.value),
      list: /** @type {ListName} */ (view.photos.value),
      second: /** @type {string} */ (view.compared_with.value),
      model: view.model.value, // the page's, as its edits
      edits: view.edits.value,
    };
  };
  /** @type {ReturnType<typeof linked> | null} */
  let last = null; // while another tab is open it stays, and nothing is asked
  const choice = computed(() => {
    const now = view.tab.value === 'survey' ? linked() : last;
    return JSON.stringify(now) === JSON.stringify(last) ? last : (last = now);
  });
  const brush = computed(() => parted(choice.value?.where ?? ''));

  /** @param {(now: ReturnType<typeof linked>) => [string, any] | null} question */
  const answerTo = (question) => asked(ask, () => choice.value && question(choice.value));

  // --- a second survey: one that is chosen comes into the link once it could be compared

  const compared = signal(/** @type {Compared | null} */ (null));
  const comparing = signal({ name: '', isRunning: false, error: '' });
  const job = new Job(() => {
    const { isRunning, error } = job;
    comparing.value = { ...comparing.peek(), isRunning, error };
  });
  const compare = (/** @type {string} */ name, link = {}) => {
    comparing.value = { ...comparing.peek(), name };
    const whole = (/** @type {{value: Compared}} */ { value }) =>
      batch(() => {
        compared.value = value;
        store.set(link);
      });
    void job.follow((stop) => ask('compared', { second: name }, stop), { whole });
  };
  const second = computed(() => choice.value?.second ?? '');
  effect(() => {
    const name = second.value;
    untracked(() => {
      job.end();
      if (name === (compared.value?.name ?? '')) return;
      compared.value = null;
      if (name) compare(name);
    });
  });

  // --- answers

  const answers = answerTo(({ where, layer, head, measure, second: name }) => {
    const isCompared = name && compared.value?.name === name;
    return ['chosen', { where, layer, head, measure, ...(isCompared && { second: name }) }];
  });
  /** @type {Signal<{of: Question, value: Chosen} | undefined>} */
  const chosen = lastOf(answers);
  /** The two numbers, and of which head they are, where they are of one. @param {ReturnType<typeof linked>} choice */
  const axesIn = ({ across, up, layer, head }) => {
    const isOfHead = [across, up].some((name) => name.startsWith('head_'));
    return { across, up, ...(isOfHead && { layer, head }) };
  };
  const pointsAnswer = answerTo((now) => ['points', axesIn(now)]);
  const beside = answerTo(({ model, edits }) => ['beside', { model, edits }]);
  const mine = numbersOf(page, () => {
    const read = beside.value.value?.value.read;
    return choice.value && read ? { ...axesIn(choice.value), read } : null;
  });
  const rested = signal(/** @type {Partial<Question> | null} */ (null));
  effect(() => {
    const { state, value } = answers.value;
    rested.value = null;
    if (state !== 'done') return;
    const { where, layer, head } = value.of;
    const timer = setTimeout(() => (rested.value = { where, layer, head }), METHODS_WAIT);
    return () => clearTimeout(timer);
  });

  // --- what is asked for beside: shown with the choice or the answer that it is of

  const failure = signal({ words: '', of: choice.peek() });
  const attempt = (/** @type {() => Promise<void>} */ work) =>
    void work().catch((error) => (failure.value = { words: error.message, of: choice.peek() }));
  const longer = signal(/** @type {{of?: typeof chosen.value, lists?: Chosen['lists']}} */ ({})); // lists, with photos that came later
  const lists = computed(() =>
    longer.value.of === chosen.value ? longer.value.lists : chosen.value?.value.lists,
  );
  const pickedOf = computed(() => {
    const { where, layer, head, list, second: name } = choice.value ?? {};
    return JSON.stringify([where, layer, head, list, name]);
  });
  const picked = signal({ of: '', card: /** @type {Card | null} */ (null) });
  const field = { current: /** @type {HTMLTextAreaElement | null} */ (null) };

  return {
    ...{ store, survey, choice, brush, compared, comparing, chosen, lists, field },
    points: lastOf(pointsAnswer),
    ...{ beside, mine },
    methods: answerTo(() => rested.value && ['methods', rested.value]),
    isBusy: computed(() => answers.value.state === 'pending'),
    refusal: computed(() => answers.value.error),
    error: computed(
      () =>
        answers.value.error ??
        pointsAnswer.value.error ??
        (failure.value.of === choice.value ? failure.value.words : ''),
    ),
    /** The photo whose dot was pressed. */
    picked: computed(() => (picked.value.of === pickedOf.value ? picked.value.card : null)),

    /** Another filter: what was written, and what was brushed on top of it. */
    filter(/** @type {string} */ typed, brushed = '') {
      const where = typed && brushed ? `(${typed}) AND ${brushed}` : typed || brushed;
      if (field.current) field.current.value = where;
      store.set({ where });
    },

    list(/** @type {ListName} */ photos) {
      picked.value = { of: '', card: null };
      store.set({ photos });
    },

    /** Another head: its exemplars, or the photos that changed their answer, now lit by it. @param {Place} place @param {string} [measure] */
    head({ layer, head }, measure) {
      const isKnown = measures.some(({ name }) => name === measure);
      const photos = choice.value?.list === 'changed' ? 'changed' : 'high';
      store.set({ layer, head, photos, ...(isKnown && { of_heads: measure }) });
    },

    compareWith(/** @type {string} */ name) {
      if (name) return compare(name, { compared_with: name, photos: 'changed' });
      job.end();
      store.set({ compared_with: '', photos: 'high' });
    },

    /** The next photos of a list. */
    goOn: (/** @type {GroupName} */ name) =>
      attempt(async () => {
        const [of, shown] = [chosen.value, lists.value?.[name] ?? []];
        const { value: next } = await ask('cards', { ...of?.of, list: name, from: shown.length });
        if (chosen.value === of)
          longer.value = {
            of,
            lists: { .../** @type {Chosen['lists']} */ (lists.value), [name]: [...shown, ...next] },
          };
      }),

    pick: (/** @type {number} */ row) =>
      attempt(async () => {
        const [of, { layer, head } = /** @type {any} */ ({})] = [pickedOf.value, choice.value ?? undefined];
        picked.value = { of, card: (await ask(`photo/${row}`, { layer, head })).value };
      }),

    /** A photo in Look, as the survey's model received it, with the head under the outline; Back leads to the survey as it is. */
    open: (/** @type {number} */ row) =>
      attempt(async () => {
        const shown = (/** @type {string} */ name) =>
          view[name].peek() || (store.fields.get(name)?.usual ?? view[name].peek());
        const { layer, head } = /** @type {Place} */ (choice.value);
        const { value: subject } = await ask(`look/${row}`, { model: shown('model') });
        const place = { layer, head, tab: 'look' };
        if (Object.entries(subject).some(([name, value]) => shown(name) !== value))
          store.look({ ...subject, ...place });
        else store.set(place);
      }),
  };
}

/** The last answer that came, while the next one is on its way and where that fails. @param {Signal<Answer>} answer @returns {Signal<any>} */
function lastOf(answer) {
  /** @type {any} */
  let last;
  return /** @type {any} */ (computed(() => (last = answer.value.value ?? last)));
}
