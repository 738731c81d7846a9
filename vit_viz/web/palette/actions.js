// What the page does beside answering questions, as the palette lists it: each as its own button or key does it.

import { START as WHAT } from '../../ui/help/help.js';
import { START as TOUR } from '../../ui/tour/tour.js';
import { wholeAddress } from '../../ui/visit/link.js';
import { LINKED, savingButton } from '../kit/figure_dialog.js';
import { turnTheme } from '../kit/theme.js';
import { IN_APP } from './panel.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Entry } from './palette.js' */

/**
 * @typedef {{where: string, says?: (page: Page) => string | void | Promise<string>, act?: (page: Page) => void}}
 *   Action where: the key that does the same; says: what is told in the palette, which then stays open; act: does it once that is closed
 */

/** Names in links that stay when a view is reset. */
const KEPT = ['model', 'image', 'tab'];

const UNREAD =
  'This model has no text tower, so it reads no sentences: choose a model of the list that has one, such as CLIP or SigLIP.';

const press = (/** @type {string} */ selector, /** @type {'click' | 'focus'} */ how = 'click') =>
  /** @type {HTMLElement | null} */ (document.querySelector(selector))?.[how]();
const begin = (/** @type {string} */ event) => () => window.dispatchEvent(new window.CustomEvent(event));

/** @type {Entry[]} */
export const ACTIONS = [
  {
    ...{ name: 'save', label: 'Save', where: 'Ctrl+S' },
    called: 'download, export, screenshot, png, svg, pdf, csv, python code',
    shows: 'what is seen, as a picture, as numbers or as lines of Python.',
    says: () => (savingButton() ? '' : 'Nothing on this tab is saved as a file.'),
    act: () => savingButton()?.click(),
  },
  {
    ...{ name: 'link', label: 'Copy link', called: 'share, send, url, address, permalink' },
    shows: 'the address of exactly this view.',
    says: () => navigator.clipboard.writeText(wholeAddress()).then(() => LINKED, () => 'The address bar has the link.'), // prettier-ignore
  },
  {
    ...{ name: 'open', label: 'Open a picture', called: 'upload, own photo, my image, file, drop, bring' },
    shows: 'a file of yours; nobody else sees it.',
    act: () => press('.vv-choose-file'),
  },
  {
    ...{ name: 'words', label: 'Ask in words', tab: 'explain' },
    called: 'text, sentence, prompt, clip, siglip, where is, zero-shot, write, open vocabulary',
    shows: 'which patches speak for a sentence of yours, such as “a dog”.',
    says: async (/** @type {Page} */ { store, source, ask }) => {
      if (!source.answers('sentence_patches')) return IN_APP;
      return (await ask('target', { view: store.subject() })).reads ? '' : UNREAD;
    },
    act(/** @type {Page} */ { store }) {
      store.set({ ask: '', tab: 'explain', explain: 'why' }, { push: true });
      requestAnimationFrame(() => press('.vv-write input', 'focus'));
    },
  },
  {
    ...{ name: 'theme', label: 'Light or dark', act: turnTheme },
    called: 'dark mode, light mode, night, theme, colours of the page',
    shows: 'turns the page dark, or light again.',
  },
  {
    ...{ name: 'reset', label: 'Reset this view' },
    called: 'start over, undo everything, clear, default, all heads on',
    shows: 'all choices but model, picture and tab are as at the beginning; Back undoes it.',
    act(/** @type {Page} */ { store }) {
      const names = [...store.fields.keys()].filter((name) => !KEPT.includes(name));
      store.take(Object.fromEntries(names.map((name) => [name, null])), { push: true });
    },
  },
  {
    ...{ name: 'tour', label: 'Tour', act: begin(TOUR) },
    called: 'tutorial, introduction, getting started, how to begin, new here',
    shows: 'the page, one stop after the other.',
  },
  {
    ...{ name: 'help', label: 'Help: what’s this?', where: '?', act: begin(WHAT) },
    called: 'keys, shortcuts, keyboard, explain a button, manual',
    shows: 'point at any control to read what it does.',
  },
].map((action) => ({ where: '', also: '', tab: '', slow: false, ...action }));
