// What the rooms of a page share: its store and its way to ask. Whoever owns the address bar begins it.

import { asked, asker } from './ask.js';
import { SERVER } from './server.js';
import { Store } from './store.js';

/**
 * @typedef {object} Page
 * @property {Store} store
 * @property {ReturnType<typeof asker>} ask
 */

/** @type {(page: Page) => void} */
let resolve = () => {};
/** @type {Promise<Page>} */
export const page = new Promise((done) => (resolve = done));

/** @param {import('./store.js').Field[]} fields @param {import('./store.js').Place} place */
export function begin(fields, place) {
  resolve({ store: new Store(fields, place), ask: asker(SERVER) });
}

/**
 * What a view is of, opened as long as a tab is: its tokens, where they lie on the photo, and where the server has it.
 * @param {Page} page @param {string} tab
 */
export function opened({ store, ask }, tab) {
  return asked(ask, () => (store.view.tab.value === tab ? ['open', { view: store.subject() }] : null));
}
