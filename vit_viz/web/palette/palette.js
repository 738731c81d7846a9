// The palette: Ctrl+K or the button in the header, a few letters, Enter. The list of questions is fetched when it is first opened, and
// says where what is chosen is shown: on the tab that draws it, or in the panel (panel.js).

import { fetched } from '../../ui/kit/elements.js';
import { openDialog } from '../../ui/visit/link.js';
import { useListbox } from '../kit/listbox.js';
import { closeBeside, useJob } from '../kit/parts.js';
import { html, useLayoutEffect, useRef, useState } from '../kit/preact.js';
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

/** The button that opens the palette, and the palette. @param {Props & {page: Page}} props */
export function Palette({ page: { store }, tabs, questions: address }) {
  const dialog = useRef(/** @type {any} */ (null));
  const input = useRef(/** @type {any} */ (null));
  const fetching = useJob();
  const [questions, setQuestions] = useState(/** @type {Question[] | null} */ (null));
  const [text, setText] = useState('');
  const shown = questions ? search(text, questions) : [];

  const say = (/** @type {string} */ words) => {
    setText(words);
    box.activate(0);
    box.list.ref.current.scrollTop = 0;
  };
  function open() {
    if (dialog.current.open) return;
    openDialog(dialog.current);
    input.current.focus();
    say('');
    if (!questions)
      void fetching.follow(async (stop) => (await fetched(address, stop)).json(), { whole: setQuestions });
  }
  /** Opens a question where it is shown. @param {number} place */
  async function choose(place) {
    const question = shown[place];
    if (!question) return;
    const closed = new Promise((done) => dialog.current.addEventListener('close', done, { once: true }));
    dialog.current.close();
    await closed; // its entry of the history is left before another view is written
    store.take({ ...question.link, run: null, 'ask.*': null }, { push: true });
  }
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

  const count = `${shown.length} ${shown.length === 1 ? 'question' : 'questions'}`;
  const words = questions ? (shown.length ? count : NONE) : fetching.error ? FAILED : LOADING;
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
          aria-label="Find a question by its words"
          placeholder="What would you like to know? heads, registers, similar…"
          ref=${input}
          value=${text}
          onInput=${(/** @type {any} */ { target }) => say(target.value)}
          ...${box.field}
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
          ({ name, label, shows, tab, slow }, place) =>
            html`<li key=${name} class="vv-palette-row" ...${box.option(place)}>
              <span class="vv-palette-said"><b>${label}</b><span class="vv-small">${shows}</span></span>
              <span class="vv-palette-where vv-small"
                >${tabs[tab] ?? 'panel'}${slow && ' · takes a while'}</span
              >
            </li>`,
        )}
      </ul>
    </dialog>`;
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
