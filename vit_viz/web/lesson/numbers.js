// What the lesson is told: the answers to its questions, of the photo, patch, layer and head that the link names.

import { centreOf, patchQuery, queryPatches } from '../../explorer/geometry.js';
import { asked } from '../kit/ask.js';
import { opened } from '../kit/page.js';
import { computed } from '../kit/preact.js';
/** @import { Page } from '../kit/page.js' */
/** @import { AnswerName, Numbers } from './timeline.js' */

/** @typedef {{query: string, layer: number, head: number}} Options */

/** The questions, and which options each takes. @type {Record<AnswerName, [string, (of: Options) => Partial<Options>]>} */
const QUESTIONS = {
  tokens: ['lesson_tokens', ({ query }) => ({ query })],
  attention: ['lesson_attention', (of) => of],
  block: ['lesson_block', ({ query, layer }) => ({ query, layer })],
  depth: ['lesson_depth', ({ query }) => ({ query })],
  parts: ['decomposition', () => ({})],
};
const NAMES = /** @type {AnswerName[]} */ (Object.keys(QUESTIONS));

/**
 * The numbers of what the page looks at, each null until it is there; null altogether until the photo is opened. An answer is never one
 * of another patch, layer or photo.
 * @param {Page} page @param {string} tab @param {import('../kit/preact.js').Signal<AnswerName[]>} near those that are asked for
 */
export function numbersOf(page, tab, near) {
  const { store, ask } = page;
  const open = opened(page, tab);
  const of = computed(() => {
    const { state, value } = open.value;
    if (state !== 'done') return null;
    const { layer, head, q } = store.view;
    return { trace: value, patch: followed(value, q.value), ...pointOf(value, layer.value, head.value) };
  });
  const questions = NAMES.map((name) => {
    const [question, options] = QUESTIONS[name];
    const body = computed(() => {
      if (!of.value) return null;
      const { trace, patch, layer, head } = of.value;
      return { ...trace.about, ...options({ query: patchQuery([patch], trace.grid[1]), layer, head }) };
    });
    const isSeen = () => store.view.tab.value === tab && near.value.includes(name);
    const answer = asked(
      async (one, about, stop) => ({ ...(await ask(one, about, stop)), of: JSON.stringify(about) }),
      () => (isSeen() && body.value ? [question, body.value] : null),
    );
    return computed(() => {
      const { state, value, error } = answer.value;
      const isIt = state === 'done' && value.of === JSON.stringify(body.value);
      return { value: isIt ? value : null, error: state === 'failed' ? error : '' };
    });
  });
  const error = computed(
    () => open.value.error ?? questions.find((one) => one.value.error)?.value.error ?? '',
  );
  const numbers = computed(() => {
    if (!of.value) return null;
    const answers = questions.map((one, place) => [NAMES[place], one.value.value]);
    return /** @type {Numbers} */ ({ ...of.value, ...Object.fromEntries(answers) });
  });
  return { numbers, error };
}

/** The patch that is followed: that of the query, else one that is worth it, else the middle one. @param {any} trace @param {string} query */
function followed(trace, query) {
  const [patch] = query ? queryPatches(query, trace) : [];
  return patch ?? trace.opening.patch ?? centreOf(trace.grid);
}

/** One layer and one head: those of the link, else those where a first look begins. @param {any} trace @param {number | null} layer @param {number | string} head */
function pointOf({ opening, layers, heads }, layer, head) {
  const one = typeof head === 'number' ? head : opening.head;
  return {
    layer: Math.min(layer ?? opening.layer, layers - 1),
    head: typeof one === 'number' ? Math.min(one, heads - 1) : 0,
  };
}
