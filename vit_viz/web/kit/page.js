// What the rooms of a page share: its store, and its way to ask.

import { PLACE } from '../../ui/visit/link.js';
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

/** @type {Page | null} */
let made = null;
/**
 * What was opened before there was a room for it; it is for the tab of the link alone, as its addresses expire.
 * @type {{tab: string, view: string, stop: AbortController, answer: Promise<any>} | null}
 */
let begun = null;

/** That of this page; what its links may hold stands in the configuration that Gradio is given. @returns {Page} */
export function thePage() {
  made ??= { store: new Store(fieldsIn(configured()), PLACE), ask: asker(SERVER), turn: signal(0) };
  return made;
}

/** @returns {{components: {props: {props?: {fields?: string}}}[]} | undefined} */
function configured() {
  return /** @type {any} */ (globalThis).gradio_config;
}

/** @param {ReturnType<typeof configured>} config @returns {import('./store.js').Field[]} */
function fieldsIn(config) {
  const address = config?.components.find(({ props }) => props.props?.fields);
  return JSON.parse(address?.props.props?.fields ?? '[]');
}

/** Opens what the link says, while the page is still being built; every tab is of it. @returns {Promise<any>} */
export async function begin() {
  if (!fieldsIn(configured()).length) return null;
  const { store, ask } = thePage();
  const [view, stop] = [store.subject(), new AbortController()];
  begun = { tab: store.view.tab.peek(), view, stop, answer: ask('open', { view }, stop.signal) };
  return begun.answer.catch(() => (begun = null)); // whoever needs it later asks again
}

/** What was known of the view is gone, or turned out to be wrong. */
export function openAgain() {
  if (made) made.turn.value += 1;
}

/**
 * What a view is of, opened as long as a tab is: its tokens, where they lie on the photo, and where the server has it.
 * @param {Page} page @param {string} tab
 */
export function opened({ store, ask, turn }, tab) {
  /** @type {typeof ask} */
  const open = (name, body, stop) => {
    const first = begun;
    begun = null;
    if (first && first.tab === tab && first.view === body.view) return first.answer;
    first?.stop.abort();
    return ask(name, body, stop);
  };
  const question = () => (store.view.tab.value === tab ? ['open', { view: store.subject() }] : null);
  return asked(open, /** @type {() => [string, any] | null} */ (question), turn);
}
