// What the rooms of a page share: its store and its way to ask. It comes with the first room that is opened.

import { PLACE, fields } from '../../ui/visit/link.js';
import { asked, asker } from './ask.js';
import { SERVER } from './server.js';
import { Store } from './store.js';

/**
 * @typedef {object} Page
 * @property {Store} store
 * @property {ReturnType<typeof asker>} ask
 */

/** @type {Promise<Page>} once Python has told what a link may hold */
export const page = fields.then((known) => ({ store: new Store(known, PLACE), ask: asker(SERVER) }));

/**
 * What a view is of, opened as long as a tab is: its tokens, where they lie on the photo, and where the server has it.
 * @param {Page} page @param {string} tab
 */
export function opened({ store, ask }, tab) {
  return asked(ask, () => (store.view.tab.value === tab ? ['open', { view: store.subject() }] : null));
}
