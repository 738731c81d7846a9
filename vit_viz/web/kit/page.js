// What the rooms of a page share: its store, and its way to ask.

import { PLACE } from '../../ui/visit/link.js';
import { openWithPhoto } from '../../ui/visit/photo_aspect.js';
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

/** That of this page. @returns {Page} */
export function thePage() {
  made ??= { store: new Store(stated('fields') ?? [], PLACE), ask: asker(SERVER), turn: signal(0) };
  return made;
}

/**
 * What the page is told from the beginning: a prop of one of its parts, as JSON in the configuration that Gradio is given.
 * @param {string} name fields: what links may hold; samples: the tray as it is for everybody
 */
export function stated(name) {
  /** @type {{components: {props: {props?: Record<string, string>}}[]} | undefined} */
  const config = /** @type {any} */ (globalThis).gradio_config;
  const part = config?.components.find(({ props }) => props.props?.[name]);
  return part ? JSON.parse(part.props.props?.[name] ?? 'null') : null;
}

/** Lays the page out for the photo of the link and opens what it says, while the page is still being built. @returns {Promise<any>} */
export async function begin() {
  openWithPhoto(stated('samples')?.aspects);
  const { store, ask } = thePage();
  if (!store.fields.size) return null;
  const [view, stop] = [store.subject(), new AbortController()];
  begun = { tab: store.view.tab.peek(), view, stop, answer: ask('open', { view }, stop.signal) };
  return begun.answer.catch(() => (begun = null)); // whoever needs it later asks again
}

/**
 * What a view is of, opened as long as a tab is: its tokens, where they lie on the photo, and where the server has it.
 * @param {Page} page @param {string} tab
 */
export function opened({ store, ask, turn }, tab) {
  /** @type {import('./ask.js').Ask} */
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
