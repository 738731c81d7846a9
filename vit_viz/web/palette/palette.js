// The palette: Ctrl+K or the button in the header, a few letters, Enter. The list of questions is fetched when it is first opened, and
// says where what is chosen is shown: on the tab that draws it, or in the panel (panel.js). It finds the classes of the model, too, and
// what the page does (actions.js).

import { openDialog } from '../../ui/visit/link.js';
import { questionOf } from '../heads/numbers.js';
import { useListbox } from '../kit/listbox.js';
import { closeBeside, useJob } from '../kit/parts.js';
import { html, useLayoutEffect, useRef, useState } from '../kit/preact.js';
import { ACTIONS } from './actions.js';
import { IN_APP } from './panel.js';
/** @import { Page } from '../kit/page.js' */

/**
 * What the tabs are called, by their names, and where the list is fetched.
 * @typedef {{tabs: Record<string, string>, questions: string}} Props
 */

/**
 * @typedef {{name: string, label: string, called?: string, shows: string, hides?: string, source?: string, also: string, tab: string, slow: boolean}}
 *   Listed a question as the server lists it; called: its other names, with commas; hides: what it does not show; source: papers; also:
 *   what else it is found by; tab: that draws it; '' where it opens in the panel
 * @typedef {Listed & {link?: Record<string, string | null>} & Partial<import('./actions.js').Action>}
 *   Entry link: what links say where a question is shown
 * @typedef {{index: number, name: string}} Hit a class
 */

const NONE = 'Nothing has these words. Try one word, like head, patch, class or position.';
const FAILED = 'The questions could not be fetched; please try again.';
/** Of what the source of this page does not answer. */
const ELSEWHERE = Object.freeze({
  ...{ where: 'in the app', link: undefined },
  says: () => IN_APP,
});
const LOADING = 'Fetching the questions …';
const LOOKING = 'Looking among the classes …';
const REST = 150; // milliseconds without another letter until classes are looked for

/** The button that opens the palette, and the palette. @param {Props & {page: Page}} props */
export function Palette({ page, tabs, questions: address }) {
  const { store, source, ask } = page;
  const dialog = useRef(/** @type {any} */ (null));
  const input = useRef(/** @type {any} */ (null));
  const fetching = useJob();
  const naming = useJob();
  const [questions, setQuestions] = useState(/** @type {Entry[] | null} */ (null));
  const [text, setText] = useState('');
  const [classes, setClasses] = useState(/** @type {Hit[]} */ ([]));
  const [done, setDone] = useState(''); // what an action said
  const shown = questions
    ? search(text, [...questions, ...ACTIONS], { classes: classes.map(explained) })
    : [];

  /** A measure of heads stands in the answer to a question. @param {Entry} entry */
  const isAnswered = ({ name }) =>
    source.answers(name.startsWith('heads.') ? questionOf(name.slice(6), '')[0] : name);
  const say = (/** @type {string} */ words) => {
    setText(words);
    setClasses([]);
    setDone('');
    const find = meantClass(words);
    naming.end();
    if (find.length > 1)
      void naming.follow(
        async (stop) => {
          await new Promise((rested) => window.setTimeout(rested, REST));
          return stop.aborted ? {} : ask('target', { view: store.subject(), find }, stop);
        },
        { whole: ({ hits = [] }) => setClasses(hits) },
      );
    box.activate(0);
    box.list.ref.current.scrollTop = 0;
  };
  function open() {
    if (dialog.current.open) return;
    openDialog(dialog.current);
    input.current.focus();
    say('');
    if (!questions)
      void fetching.follow(async (stop) => (await source.at(address, stop)).json(), {
        whole: (/** @type {Entry[]} */ listed) =>
          setQuestions(listed.map((one) => (isAnswered(one) ? one : { ...one, ...ELSEWHERE }))),
      });
  }
  /** Opens what is chosen where it is shown, or does it. @param {number} place */
  async function choose(place) {
    const { link, says, act } = shown[place] ?? {};
    const said = await says?.(page);
    if (said) return setDone(said);
    if (!link && !act) return;
    const closed = new Promise((left) => dialog.current.addEventListener('close', left, { once: true }));
    dialog.current.close();
    await closed; // its entry of the history is left before another view is written
    if (link) store.take({ ...link, run: null, 'ask.*': null }, { push: true });
    else act?.(page);
  }
  const isEntered = useRef(false); // Enter was pressed while classes, of which one may be meant, are looked for
  useLayoutEffect(() => {
    if (!isEntered.current || naming.isRunning) return;
    isEntered.current = false;
    void choose(0);
  });
  const keyed = (/** @type {KeyboardEvent} */ event) => {
    isEntered.current = event.key === 'Enter' && naming.isRunning && !isNamed(text, shown[box.active]);
    isEntered.current ? event.preventDefault() : box.field.onKeyDown(event);
  };
  const box = useListbox('vv-palette-list', shown.length, (place) => void choose(place));
  const opened = useRef(open);
  opened.current = open;
  useLayoutEffect(() => {
    const listen = (/** @type {KeyboardEvent} */ event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      if (event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      opened.current();
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);

  const count = naming.isRunning ? LOOKING : shown.length ? `${shown.length} found` : NONE;
  const words = done || (questions ? count : fetching.error ? FAILED : LOADING);
  const key = /mac|iphone|ipad/i.test(navigator.platform) ? '⌘K' : 'Ctrl K';
  return html`<button
      type="button"
      class="vv-button vv-ask"
      aria-label=${`Find a question ${key}`}
      title="Find a question"
      aria-haspopup="dialog"
      aria-keyshortcuts="Control+K Meta+K"
      onClick=${open}
    >
      <svg class="vv-ask-glass" viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" />
        <path d="M10.5 10.5 14 14" />
      </svg>
      <span class="vv-ask-words">Find a question</span>
      <kbd class="vv-ask-key" aria-hidden="true">${key}</kbd>
    </button>
    <dialog class="vv-palette vv-room" aria-label="Find a question" ref=${dialog} onClick=${closeBeside}>
      <div class="vv-palette-top">
        <input
          class="vv-control vv-palette-text"
          aria-label="Find a question, a class or an action by its words"
          placeholder="What would you like to know? heads, pca, why lion, save…"
          ref=${input}
          value=${text}
          onInput=${(/** @type {any} */ { target }) => say(target.value)}
          ...${box.field}
          onKeyDown=${keyed}
        />
        <button
          type="button"
          class="vv-button vv-plain vv-palette-close"
          onClick=${() => dialog.current.close()}
        >
          Close
        </button>
      </div>
      <p class="vv-palette-words vv-small" role="status">${words}</p>
      <ul
        class="vv-palette-list"
        aria-label="Questions"
        aria-busy=${String(fetching.isRunning)}
        ...${box.list}
      >
        ${shown.map(
          ({ name, label, shows, tab, slow, where }, place) =>
            html`<li key=${name} class="vv-palette-row" ...${box.option(place)}>
              <span class="vv-palette-said"><b>${label}</b><span class="vv-small">${shows}</span></span>
              <span class="vv-palette-where vv-small"
                >${where ?? tabs[tab] ?? 'panel'}${slow && ' · takes a while'}</span
              >
            </li>`,
        )}
      </ul>
    </dialog>`;
}

/** How much a word says of a question, by where it stands. */
const WEIGHTS = { label: 8, called: 8, name: 6, shows: 2, hides: 1, source: 1, also: 1 };
const PARTS = /** @type {(keyof typeof WEIGHTS)[]} */ (Object.keys(WEIGHTS));
const NAMES = 6; // the weight from which on a word belongs to a name
const WHOLE = 1.5; // times as much as its beginning
const WHY = /^\s*(?:why|explain|class)\s+(?:(?:is|it|this|an?|the|says?)\s+)*/i;

/** What of a text may be a class: "lion" of "why is it a lion?". @param {string} text */
const meantClass = (text) => text.replace(WHY, '').replace(/^\s+|[?\s]+$/g, '');

/** A class as the palette lists it. @param {Hit} hit @returns {Entry} */
const explained = ({ index, name }) => ({
  ...{ name: `class.${index}`, label: `Why “${name}”?`, called: '', also: '', slow: false },
  ...{ shows: 'what in this photo speaks for it, by the chosen method.', tab: 'explain' },
  link: { ask: null, tab: 'explain', explain: 'why', target: String(index) },
});

/** The words of a text, without accents. @returns {string[]} */
export function wordsOf(/** @type {string} */ text) {
  const plain = text.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/**
 * What a text means, the likeliest first; everything, in its order, for none. Where no entry has all of its words, those that have most.
 * @template {Listed} Q @param {string} text @param {Q[]} listed
 * @param {{classes?: Q[], isStrict?: boolean}} [how] classes: that the model has of this name; isStrict: all words are needed
 * @returns {Q[]}
 */
export function search(text, listed, { classes = [], isStrict = false } = {}) {
  const asked = wordsOf(text);
  if (!asked.length) return listed;
  const fits = listed.map((one) => asked.map((word) => weightOf(word, one)));
  // a word that few have says more than one that many have
  const rare = asked.map((_, word) => Math.log(1 + listed.length / fits.filter((fit) => fit[word]).length));
  const found = listed
    .map((one, at) => {
      const sum = fits[at].reduce((all, weight, word) => all + (weight && weight * rare[word]), 0);
      // "rollout" is the name of one of those that have the word in their label
      const isBegun = wordsOf(one.name).join().startsWith(asked.join());
      const names = [one.name, one.label, ...(one.called ?? '').split(',')].map((name) =>
        wordsOf(name).join(),
      );
      const score = (sum + Number(isBegun)) * (names.includes(asked.join()) ? 2 : 1);
      return { one, least: Math.min(...fits[at]), score };
    })
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score);
  const having = (/** @type {number} */ low, high = Infinity) =>
    found.filter(({ least }) => least >= low && least < high).map(({ one }) => one);
  if (WHY.test(text) && classes.length) return [...classes, ...having(1)];
  const whole = [...having(NAMES), ...classes, ...having(1, NAMES)];
  return whole.length || isStrict
    ? whole
    : found.filter(({ score }) => score > found[0].score / 2).map(({ one }) => one);
}

/** Whether a text is a name of an entry, and not only said of it. @param {string} text @param {Entry} [one] */
const isNamed = (text, one) => one && wordsOf(text).every((word) => weightOf(word, one) >= NAMES);

/** How well a word fits an entry; 0 where it does not at all. @param {string} word @param {Listed} one */
function weightOf(word, one) {
  return Math.max(
    ...PARTS.map((part) => WEIGHTS[part] * fitOf(word, wordsOf(one[part] ?? ''))),
    // typed in one word what has several: "gradcam", "headimportance"
    wordsOf(one.label).join('').startsWith(word) ? WEIGHTS.label : 0,
  );
}

/** @param {string} asked @param {string[]} words */
function fitOf(asked, words) {
  if (words.includes(asked)) return WHOLE;
  return words.some((word) => word.startsWith(asked)) ? 1 : 0;
}
