// The palette: Ctrl+K or the button in the header, a few letters, Enter. The list of questions is fetched when it is first opened, and
// says where what is chosen is shown: on the tab that draws it, or in the panel (panel.js).

import { openDialog } from '../../ui/visit/link.js';
import { closes, fetched, finder, make } from '../../ui/kit/elements.js';
import { Listbox } from '../kit/listbox.js';
import { thePage } from '../kit/page.js';
/** @import { Page } from '../kit/page.js' */

/**
 * What the tabs are called, by their names, and where the list is fetched.
 * @typedef {{tabs: Record<string, string>, questions: string}} Props
 */

/**
 * @typedef {{name: string, label: string, shows: string, also: string, tab: string, slow: boolean}}
 *   Listed a question as the server lists it; also: what else it is found by: what it does not show, papers,
 *   options; tab: that draws it; '' where it opens in the panel
 * @typedef {Listed & {link: Record<string, string | null>}} Question link: what links say where it is shown
 */

const NONE = 'No question has these words. Try one word, like head, patch, class or position.';
const FAILED = 'The questions could not be fetched; please try again.';
const LOADING = 'Fetching the questions …';

/** @type {import('../../ui/kit/elements.js').Mount<Props>} */
export function mount(element, _trigger, props) {
  paletteIn(element, thePage(), props);
}

/** @param {HTMLElement} element @param {Page} page @param {Props} props */
export function paletteIn(element, page, props) {
  const palette = new Palette(element, page, props);
  const find = finder(element);
  const key = /mac|iphone|ipad/i.test(navigator.platform) ? '⌘K' : 'Ctrl K';
  find('ask-key').textContent = key;
  find('ask').setAttribute('aria-label', `Find a question ${key}`); // it holds what is seen on the button
  find('ask').addEventListener('click', () => palette.open());
  const listen = (/** @type {KeyboardEvent} */ event) => {
    if (!element.isConnected) return window.removeEventListener('keydown', listen);
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (event.key.toLowerCase() !== 'k') return;
    event.preventDefault();
    palette.open();
  };
  window.addEventListener('keydown', listen);
}

class Palette {
  /** @param {HTMLElement} element @param {Page} page @param {Props} props */
  constructor(element, page, props) {
    this.page = page;
    this.props = props;
    this.find = finder(element);
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('palette'));
    this.input = /** @type {HTMLInputElement} */ (this.find('palette-text'));
    this.list = this.find('palette-list');
    this.box = new Listbox(this.input, this.list, (place) => void this.choose(place));
    /** @type {Question[] | null} */ this.questions = null;
    /** @type {Question[]} */ this.shown = [];
    this.input.addEventListener('input', () => this.draw());
    this.input.addEventListener('keydown', (event) => this.box.key(event));
    closes(this.find('palette-close'), this.dialog);
  }

  open() {
    if (this.dialog.open) return;
    openDialog(this.dialog);
    this.input.value = '';
    this.input.focus();
    if (this.questions) this.draw();
    else void this.load();
  }

  async load() {
    this.list.setAttribute('aria-busy', 'true');
    this.say(LOADING);
    try {
      this.questions = await (await fetched(this.props.questions)).json();
      this.draw();
    } catch {
      this.say(FAILED);
    }
    this.list.setAttribute('aria-busy', 'false');
  }

  /** @param {string} words */
  say(words) {
    this.find('palette-words').textContent = words;
  }

  draw() {
    if (!this.questions) return;
    this.shown = search(this.input.value, this.questions);
    const rows = this.shown.map((question) => this.row(question));
    this.list.replaceChildren(...rows);
    this.say(rows.length ? `${rows.length} ${rows.length === 1 ? 'question' : 'questions'}` : NONE);
    this.box.take(rows);
    this.list.scrollTop = 0;
  }

  /** @param {Listed} question */
  row({ label, shows, tab, slow }) {
    const where = [this.props.tabs[tab] ?? 'panel', ...(slow ? ['takes a while'] : [])].join(' · ');
    const words = make('span', 'vv-palette-said', make('b', '', label), make('span', 'vv-small', shows));
    return make('li', 'vv-palette-row', words, make('span', 'vv-palette-where vv-small', where));
  }

  /** Closes the dialog. @returns {Promise<unknown>} once the page has heard of it */
  closed() {
    const heard = new Promise((done) => this.dialog.addEventListener('close', done, { once: true }));
    this.dialog.close();
    return heard;
  }

  /** Opens a question where it is shown. @param {number} place */
  async choose(place) {
    const question = this.shown[place];
    if (!question) return;
    await this.closed(); // its entry of the history is left before another view is written
    this.page.store.take({ ...question.link, run: null, 'ask.*': null }, { push: true });
  }
}

/** How much a word says of a question, by where it stands. @type {['label' | 'name' | 'shows' | 'also', number][]} */
const WEIGHTS = [
  ['label', 8],
  ['name', 6],
  ['shows', 2],
  ['also', 1],
];
const WHOLE = 1.5; // times as much as its beginning

/** The words of a text, without accents. @returns {string[]} */
export function wordsOf(/** @type {string} */ text) {
  return (
    text
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

/** The questions that a text means, the likeliest first; all of them, in their order, for none. @template {Listed} Q @param {string} text @param {Q[]} questions @returns {Q[]} */
export function search(text, questions) {
  const asked = wordsOf(text);
  return questions
    .map((question) => ({ question, score: scoreOf(asked, question) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ question }) => question);
}

/** How well a question fits; 0 where a word does not fit at all. @param {string[]} asked @param {Listed} question */
function scoreOf(asked, question) {
  // "rollout" is the name of one of those that have the word in their label
  let score = wordsOf(question.name).join().startsWith(asked.join()) ? 2 : 1;
  for (const word of asked) {
    const best = Math.max(
      ...WEIGHTS.map(([part, weight]) => weight * fitOf(word, wordsOf(question[part]))),
      // typed in one word what has several: "gradcam", "headimportance"
      wordsOf(question.label).join('').startsWith(word) ? WEIGHTS[0][1] : 0,
    );
    if (!best) return 0;
    score += best;
  }
  return score;
}

/** @param {string} asked @param {string[]} words */
function fitOf(asked, words) {
  if (words.includes(asked)) return WHOLE;
  return words.some((word) => word.startsWith(asked)) ? 1 : 0;
}
