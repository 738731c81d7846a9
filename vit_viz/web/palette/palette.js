// The palette: Ctrl+K or the button in the header, a few letters, Enter. The list of questions is fetched when it is first opened; the
// server says where what is chosen is shown: on the tab that draws it, or in the panel (panel.js).

import { openDialog } from '../../ui/visit/link.js';
import { dataAt, fetched, finder, having, make, onPress } from '../../ui/kit/elements.js';
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
  opening = new AbortController(); // of what was chosen last

  /** @param {HTMLElement} element @param {Page} page @param {Props} props */
  constructor(element, page, props) {
    this.page = page;
    this.props = props;
    this.find = finder(element);
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('palette'));
    this.input = /** @type {HTMLInputElement} */ (this.find('palette-text'));
    this.list = this.find('palette-list');
    /** @type {Listed[] | null} */ this.questions = null;
    /** @type {Listed[]} */ this.shown = [];
    this.active = 0;
    this.input.addEventListener('input', () => this.draw());
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.find('palette-close').addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('click', (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    this.dialog.addEventListener('close', () => this.opening.abort());
    onPress(this.list, 'place', (place) => void this.choose(Number(place)));
    this.list.addEventListener('pointermove', (event) => this.activate(Number(dataAt(event, 'place') ?? -1)));
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
    this.list.replaceChildren(...this.shown.map((question, place) => this.row(question, place)));
    const { length } = this.shown;
    this.say(length ? `${length} ${length === 1 ? 'question' : 'questions'}` : NONE);
    this.activate(0);
    this.list.scrollTop = 0;
  }

  /** @param {Listed} question @param {number} place */
  row({ label, shows, tab, slow }, place) {
    const where = [this.props.tabs[tab] ?? 'panel', ...(slow ? ['takes a while'] : [])].join(' · ');
    const words = make('span', 'vv-palette-said', make('b', '', label), make('span', 'vv-small', shows));
    const row = make('li', 'vv-palette-row', words, make('span', 'vv-palette-where vv-small', where));
    return having(row, { id: `vv-palette-${place}`, 'data-place': place, role: 'option' });
  }

  /** Makes a row the one that Enter chooses; of a place where there is none, nothing changes. @param {number} place */
  activate(place) {
    if (!this.shown.length) this.input.removeAttribute('aria-activedescendant');
    if (!this.shown[place]) return;
    this.active = place;
    this.input.setAttribute('aria-activedescendant', `vv-palette-${place}`);
    for (const [index, row] of [...this.list.children].entries())
      row.setAttribute('aria-selected', String(index === place));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { length } = this.shown;
    if (event.key === 'Enter') void this.choose(this.active);
    else if (event.key === 'ArrowDown') this.activate((this.active + 1) % length);
    else if (event.key === 'ArrowUp') this.activate((this.active + length - 1) % length);
    else return;
    event.preventDefault();
    this.list.children[this.active]?.scrollIntoView({ block: 'nearest' });
  }

  /** Closes the dialog. @returns {Promise<unknown>} once the page has heard of it */
  closed() {
    const heard = new Promise((done) => this.dialog.addEventListener('close', done, { once: true }));
    this.dialog.close();
    return heard;
  }

  /** Opens a question where it is shown; until then the palette stays, for what may go wrong. @param {number} place */
  async choose(place) {
    const question = this.shown[place];
    if (!question) return;
    const { store, ask } = this.page;
    this.opening.abort();
    const { signal } = (this.opening = new AbortController());
    try {
      const view = store.linkOf([...store.fields.keys()]);
      const link = await ask('place', { view, name: question.name }, signal);
      if (signal.aborted) return;
      await this.closed(); // its entry of the history is left before another view is written
      store.take({ ...link, run: null, 'ask.*': null }, { push: true });
    } catch (error) {
      if (!signal.aborted) this.say(/** @type {Error} */ (error).message);
    }
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
  let score = 1;
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
