// Which patches are taken away on the stage, as the link has it, and what the model says without them.

import { patchQuery } from '../../explorer/geometry.js';
import { computed, effect, signal } from '../kit/preact.js';
import { stroke } from './brush.js';
/** @import { Ask } from '../kit/ask.js' */
/** @import { ReadonlySignal } from '../kit/preact.js' */
/** @import { Store } from '../kit/store.js' */
/** @import { Cell } from './brush.js' */
/** @import { Answer, Staged } from './staged.js' */

const PATIENCE = 10_000; // milliseconds after which an answer counts as lost

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const BITS = 6; // patches in a letter
const NOTHING = { most: 0, patches: /** @type {number[]} */ ([]) };
const OTHER_GRID = 'The link takes away patches of another grid; all are here.';

/**
 * What a link says is taken away. "best.12": so many of the best patches of whatever map there is; "patches.Bg": those that were brushed over,
 * the first of them the lowest bit of the first letter. What the link may say at all its option declares (vit_viz/views/tab_options.py).
 * @param {string} text @param {number} count of the patches of the photo @returns {typeof NOTHING | null} null: patches that it does not have
 */
export function readGone(text, count) {
  const [kind, what = ''] = text.split('.');
  const [most, letters] = kind === 'best' ? [what, ''] : [0, what];
  const patches = Array.from({ length: BITS * letters.length }, (_, patch) => patch).filter(
    (patch) => (LETTERS.indexOf(letters[Math.floor(patch / BITS)]) >> (patch % BITS)) & 1,
  );
  return patches.every((patch) => patch < count) ? { most: Number(most), patches } : null;
}

/** Patches that were brushed over, as `readGone` reads them. @param {Iterable<number>} patches */
export function writeGone(patches) {
  const letters = /** @type {number[]} */ ([]);
  for (const patch of patches) letters[Math.floor(patch / BITS)] |= 1 << (patch % BITS);
  return letters.length ? `patches.${Array.from(letters, (bits = 0) => LETTERS[bits]).join('')}` : '';
}

/** @typedef {'erase' | 'restore' | 'choose'} Tool choose: of the query @typedef {ReturnType<typeof goneFrom>} Gone */

/** @param {{store: Store, ask: Ask}} page @param {ReadonlySignal<Staged | null>} photo with the map on the stage */
export function goneFrom({ store, ask }, photo) {
  const order = computed(() => photo.value?.order ?? []);
  const read = computed(() => {
    const isOf = photo.value?.subject === store.subject(); // else the link is about what is still to come
    return isOf ? readGone(store.view.gone.value, order.value.length) : NOTHING;
  });
  const most = computed(() => Math.min(read.value?.most ?? 0, Math.max(0, order.value.length - 1)));
  const patches = computed(() =>
    most.value ? order.value.slice(0, most.value) : (read.value ?? NOTHING).patches,
  );
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
  const take = (/** @type {string} */ gone) => store.set({ gone }, { soon: true });
  return {
    ...{ order, most, patches, said, cursor, tool },
    /** Why what the link says is not taken away; '' where it is. */
    problem: computed(() => (read.value ? '' : OTHER_GRID)),
    /** As a share of the patches, how many of the best are gone. */
    share: computed(() => (order.value.length ? most.value / order.value.length : 0)),
    /** Whether what is said is about other patches than those that are gone. */
    isWaiting: computed(() => question.value !== null && question.value.of !== said.value.of),
    chooseTool: (/** @type {Tool} */ name) => void (wanted.value = name),
    /** As many of the best patches of the map; 0: all are back. */
    takeMost(/** @type {number} */ count) {
      cursor.value = null;
      take(count ? `best.${count}` : '');
    },
    /** Takes or puts back what lies on the straight way between two patches. @param {Cell} from @param {Cell} to */
    brush(from, to) {
      const { grid } = /** @type {Staged} */ (photo.peek());
      const now = new Set(patches.peek());
      cursor.value = null;
      for (const patch of stroke(from, to, grid))
        if (tool.peek() === 'erase') now.add(patch);
        else now.delete(patch);
      if (now.size !== patches.peek().length) take(writeGone(now));
    },
    /** Takes a patch away, or puts it back. @param {number} patch */
    toggle(patch) {
      const now = new Set(patches.peek());
      if (!now.delete(patch)) now.add(patch);
      take(writeGone(now));
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
