// Which patches are taken away on the stage, and what the model says without them.

import { patchQuery } from '../../explorer/geometry.js';
import { computed, effect, signal } from '../kit/preact.js';
import { stroke } from './brush.js';
/** @import { Ask } from '../kit/ask.js' */
/** @import { ReadonlySignal } from '../kit/preact.js' */
/** @import { Cell } from './brush.js' */
/** @import { Answer, Staged } from './staged.js' */

const PATIENCE = 10_000; // milliseconds after which an answer counts as lost

/**
 * What was taken by hand; key: of the photo that it is of. `most` are as many of the best patches of whatever map there is; where it
 * is 0, it is the patches that were brushed over.
 */
const NOTHING = { key: '', most: 0, patches: /** @type {number[]} */ ([]) };

/** @typedef {'erase' | 'restore' | 'choose'} Tool choose: of the query @typedef {ReturnType<typeof goneFrom>} Gone */

/** @param {ReadonlySignal<Staged | null>} photo with the map on the stage @param {Ask} ask */
export function goneFrom(photo, ask) {
  const taken = signal(NOTHING);
  const hand = computed(() => (taken.value.key === photo.value?.key ? taken.value : NOTHING));
  const order = computed(() => photo.value?.order ?? []);
  const most = computed(() => Math.min(hand.value.most, Math.max(0, order.value.length - 1)));
  const patches = computed(() => (most.value ? order.value.slice(0, most.value) : hand.value.patches));
  const question = computed(() => {
    if (!photo.value || !patches.value.length) return null;
    const { key, about, target, grid } = photo.value;
    const [of, gone] = [`${key} ${target.link}`, patchQuery(patches.value, grid[1])];
    return { about: of, of: `${of} ${gone}`, body: { ...about, target: target.link || null, gone } };
  });
  const said = newest(ask, question);
  const cursor = signal(/** @type {number | null} */ (null)); // the patch that the keys point at
  const wanted = signal(/** @type {Tool} */ ('erase'));
  const tool = computed(() =>
    wanted.value === 'choose' && !photo.value?.method.pick ? 'erase' : wanted.value,
  );
  const take = (/** @type {Partial<typeof NOTHING>} */ change) =>
    void (taken.value = { ...NOTHING, key: photo.peek()?.key ?? '', ...change });
  return {
    ...{ order, most, patches, said, cursor, tool },
    /** As a share of the patches, how many of the best are gone. */
    share: computed(() => (order.value.length ? most.value / order.value.length : 0)),
    /** Whether what is said is about other patches than those that are gone. */
    isWaiting: computed(() => question.value !== null && question.value.of !== said.value.of),
    chooseTool: (/** @type {Tool} */ name) => void (wanted.value = name),
    /** As many of the best patches of the map; 0: all are back. */
    takeMost(/** @type {number} */ count) {
      cursor.value = null;
      take({ most: count });
    },
    /** Takes or puts back what lies on the straight way between two patches. @param {Cell} from @param {Cell} to */
    brush(from, to) {
      const { grid } = /** @type {Staged} */ (photo.peek());
      const now = new Set(patches.peek());
      cursor.value = null;
      for (const patch of stroke(from, to, grid))
        if (tool.peek() === 'erase') now.add(patch);
        else now.delete(patch);
      if (now.size !== patches.peek().length) take({ patches: [...now] });
    },
    /** Takes a patch away, or puts it back. @param {number} patch */
    toggle(patch) {
      const now = new Set(patches.peek());
      if (!now.delete(patch)) now.add(patch);
      take({ patches: [...now] });
    },
  };
}

/** @typedef {{about: string, of: string, body: any}} Question */
const UNSAID = { of: '', answer: /** @type {Answer | null} */ (null), error: '' };

/**
 * The last answer: one question is under way at a time; of those that come up meanwhile the last one is asked. Of the whole photo
 * it is known what the model says.
 * @param {Ask} ask @param {ReadonlySignal<Question | null>} question
 */
function newest(ask, question) {
  const said = signal(UNSAID);
  /** @type {{about: string, since: number, stop: AbortController} | null} */
  let underWay = null;

  const begin = (/** @type {Question} */ { about, of, body }) => {
    const stop = new AbortController();
    underWay = { about, since: window.performance.now(), stop };
    const hear = (/** @type {Partial<typeof UNSAID>} */ news) => {
      if (stop.signal.aborted) return;
      underWay = null;
      said.value = { ...said.peek(), error: '', ...news, of };
      follow(question.peek());
    };
    ask('without_patches', body, stop.signal).then(
      (answer) => hear({ answer }),
      ({ message }) => hear({ error: message }),
    );
  };
  const follow = (/** @type {Question | null} */ now) => {
    const isOver = underWay && window.performance.now() - underWay.since >= PATIENCE;
    if (underWay && (isOver || now?.about !== underWay.about)) {
      underWay.stop.abort();
      underWay = null;
    }
    if (!now) said.value = UNSAID;
    else if (!underWay && said.peek().of !== now.of) begin(now);
  };
  effect(() => follow(question.value));
  return said;
}
