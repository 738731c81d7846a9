// What is edited in the model, and what was clicked since, until the server has said whether that is possible.

import { computed, effect, signal } from '../kit/preact.js';
import { SUBJECT } from '../kit/store.js';
/** @import { Page } from '../kit/page.js' */

/** @typedef {ReturnType<typeof editing>} Editing */

/** How long clicks are gathered before they are sent. */
const PAUSE = 250;

/** What of edits is another place, to which Back leads: temperatures are not. @param {string} edits in words */
function placeOfEdits(edits) {
  return edits
    .split(';')
    .filter((one) => !one.startsWith('temperature '))
    .join(';');
}

/** The edits of a page, which are changed step by step. @param {Page} page */
export function editing({ store, ask }) {
  const linked = store.view.edits;
  /** What was clicked since; isPlace: whether Back is to lead to what was before. */
  const draft = signal(/** @type {{words: string, isPlace: boolean} | null} */ (null));
  const past = signal(/** @type {string[]} */ ([])); // what was before each step
  const refused = signal('');
  const words = computed(() => /** @type {string} */ (draft.value?.words ?? linked.value));
  let step = ''; // what the last step changed, so that one movement of the hand is one step
  let sure = past.peek(); // the steps before the draft
  let timer = 0;
  let asking = new AbortController();

  /** @param {string} next in words @param {boolean} isPlace */
  function draw(next, isPlace) {
    asking.abort();
    clearTimeout(timer);
    refused.value = '';
    draft.value = { words: next, isPlace: draft.peek()?.isPlace ?? isPlace };
    timer = window.setTimeout(() => void send(), PAUSE);
  }

  /** Makes the draft the edits of the page. What the model cannot have is said, and the edits are as they were. */
  async function send() {
    const { signal: stop } = (asking = new AbortController());
    const [link, { words: wanted, isPlace }] = [store.subject(), /** @type {any} */ (draft.peek())];
    try {
      const { edits } = await ask('edited', { view: link, edits: wanted }, stop);
      if (stop.aborted) return;
      if (store.subject() === link) {
        const isElsewhere = placeOfEdits(linked.peek()) !== placeOfEdits(edits);
        last = edits;
        store.set({ edits }, { push: isPlace && isElsewhere });
      } // else Back was pressed, or another photo chosen, meanwhile
    } catch (error) {
      if (stop.aborted) return; // something else was chosen meanwhile
      refused.value = /** @type {Error} */ (error).message;
      past.value = sure;
    }
    draft.value = null;
  }

  const unedited = SUBJECT.filter((name) => name !== 'edits');
  let [of, last] = [store.linkOf(unedited), linked.peek()];
  effect(() => {
    const [now, edits] = [store.linkOf(unedited), linked.value];
    if (now !== of) {
      clearTimeout(timer);
      asking.abort();
      past.value = []; // another photo or model
      draft.value = null;
      refused.value = '';
    } else if (edits !== last) past.value = [...past.peek(), last]; // edited elsewhere, or Back was pressed
    [of, last] = [now, edits];
  });

  return {
    words,
    past,
    refused,
    /** Whether what is shown is not yet that of the page. */
    isDraft: computed(() => draft.value !== null),

    /**
     * Shows it at once, and makes it that of the page when the clicks pause.
     * @param {string} next in words
     * @param {{movement?: string, isPlace?: boolean}} [how] movement: of the hand, which is one step however many changes it makes; isPlace:
     *     whether Back is to lead to what was before
     */
    change(next, { movement = '', isPlace = true } = {}) {
      if (!draft.peek()) sure = past.peek();
      if (!movement || movement !== step) past.value = [...past.peek(), words.peek()];
      step = movement;
      draw(next, isPlace);
    },

    undo() {
      const before = past.peek().at(-1);
      if (before === undefined) return;
      if (!draft.peek()) sure = past.peek();
      past.value = past.peek().slice(0, -1);
      step = '';
      draw(before, true);
    },
  };
}
