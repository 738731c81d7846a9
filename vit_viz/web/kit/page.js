// What the rooms of a page share: its store and its way to ask. It comes with the first room that is opened.

import { PLACE, fields } from '../../ui/visit/link.js';
import { asked, asker } from './ask.js';
import { signal } from './preact.js';
import { SERVER } from './server.js';
import { Store } from './store.js';

/**
 * @typedef {object} Page
 * @property {Store} store
 * @property {ReturnType<typeof asker>} ask
 * @property {import('./preact.js').Signal<number>} turn another one, and what the view is of is opened again
 */

/** @type {Promise<Page>} once Python has told what a link may hold */
export const page = fields.then((known) => ({
  store: new Store(known, PLACE),
  ask: asker(SERVER),
  turn: signal(0),
}));

/** What was known of the view is gone, or turned out to be wrong. */
export async function openAgain() {
  (await page).turn.value += 1;
}

/**
 * What a view is of, opened as long as a tab is: its tokens, where they lie on the photo, and where the server has it.
 * @param {Page} page @param {string} tab
 */
export function opened({ store, ask, turn }, tab) {
  const question = () => (store.view.tab.value === tab ? ['open', { view: store.subject() }] : null);
  return asked(ask, /** @type {() => [string, any] | null} */ (question), turn);
}
