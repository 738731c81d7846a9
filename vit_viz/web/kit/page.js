// What the rooms of a page share: its store, its source, and its way to ask that.

import { PLACE } from '../../ui/visit/link.js';
import { openWithPhoto } from '../../ui/visit/photo_aspect.js';
import { asked, asker } from './ask.js';
import { Job } from './job.js';
import { computed, effect, signal } from './preact.js';
import { Store } from './store.js';

/**
 * @typedef {object} Page
 * @property {Store} store
 * @property {import('./ask.js').Source} source
 * @property {ReturnType<typeof asker>} ask that source
 * @property {import('./preact.js').Signal<number>} turn another one, and what the view is of is opened again
 */

/** @type {Page | null} */
let made = null;
/** That of this page, once it has begun. @returns {Page} */
export function thePage() {
  return /** @type {Page} */ (made);
}

/**
 * Makes the page, lays it out for the photo of the link and opens what that says, while the page is still being built.
 * @param {import('./ask.js').Source} source @returns {Promise<any>} what was opened; null where that gives way
 */
export async function begin(source) {
  openWithPhoto(source.stated('samples')?.aspects);
  const page = (made = {
    store: new Store(source.stated('fields') ?? [], PLACE),
    source,
    ask: asker(source),
    turn: signal(0),
  });
  if (!page.store.fields.size) return null;
  const { answer } = opening(page);
  return new Promise((done) => {
    const end = effect(() => {
      const { state, value } = answer.value;
      if (state !== 'done') return;
      done(value.refused ? null : value);
      void Promise.resolve().then(() => end()); // which is known by then
    });
  });
}

const OLD = 1_800_000; // milliseconds after which the addresses of what was opened may soon expire
/** @type {WeakMap<Store, ReturnType<typeof openedOf>>} what the view of a page is of, asked for once for all of the page */
const OPENED = new WeakMap();

/** What the view of a page is of, and how far the pass of that is. @param {Page} page */
export function opening(page) {
  const one = OPENED.get(page.store) ?? openedOf(page);
  OPENED.set(page.store, one);
  return one;
}

/** @param {Page} page */
function openedOf({ store, ask, turn }) {
  const told = signal(0); // how often there was news of the pass
  const pass = new Job(() => void (told.value = told.peek() + 1));
  let at = 0;
  /** @param {string} name @param {any} body */
  const follow = async (name, { view }) => {
    const link = store.place.search(); // with what is shown of the subject: not all of it may be possible there
    const value = await pass.follow((stop, tell) => ask(name, { view: link }, stop, tell));
    at = Date.now();
    return { ...value, view };
  };
  const answer = asked(follow, () => ['open', { view: store.subject() }], turn);
  effect(() => {
    void store.view.tab.value;
    if (at && Date.now() - at > OLD) turn.value = turn.peek() + 1;
  });
  return { answer, pass, told };
}

/**
 * What the view is of, as long as a tab is seen: its tokens, where they lie on the photo, and where the server has it.
 * @param {Page} page @param {string} tab
 */
export function opened(page, tab) {
  const { answer } = opening(page);
  /** @type {import('./ask.js').Answer} */
  let last = { state: 'none' };
  return computed(() => {
    if (page.store.view.tab.value !== tab) return last;
    const { value, error } = answer.value;
    if (!value?.refused) return (last = answer.value);
    const { state } = answer.value; // of a view that gives way to another one
    const isOver = state === 'done';
    return (last = {
      state: isOver ? 'failed' : state,
      value: last.value,
      error: isOver ? value.refused : error,
    });
  });
}
