// One question by itself, in front of the page: controls made of its options, how far its answer is, its figure, its facts. Which one
// stands in the link: "ask", its options behind "ask.", and "run" where one that takes many passes is computed. What was typed stays until
// it is replaced.

import { askForFigure } from '../../explorer/source.js';
import { copyLink } from '../header/facts.js';
import { asked } from '../kit/ask.js';
import { STOPPED } from '../kit/job.js';
import { OptionControl } from '../kit/option.js';
import { thePage } from '../kit/page.js';
import { JobLine, Problem, closeBeside, useJob } from '../kit/parts.js';
import {
  computed,
  html,
  render,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useSignal,
  useState,
} from '../kit/preact.js';
import { fileOf } from '../kit/server.js';
import { TARGETED } from '../kit/store.js';
/** @import { Described } from '../kit/option.js' */
/** @import { Page } from '../kit/page.js' */

/**
 * @typedef {{name: string, label: string, shows: string, hides: string, source: string, runs: string, slow: boolean,
 *   formats: string[]}} Question in words; runs: what computing it takes,
 *   where that is many passes; formats: in which its answers are saved
 *
 * What is asked.
 * @typedef {object} Value
 * @property {string} key equal for equal questions about the same
 * @property {Question} question
 * @property {(Described & {value: any})[]} [controls] with what is chosen
 * @property {any} [about] what it is of, as its body says it
 * @property {boolean} [quick] whether the answer comes by itself
 * @property {boolean} [own] whether the picture is the visitor's own
 * @property {string} [error]
 *
 * @typedef {object} Answer
 * @property {[string, string][]} facts names and words
 * @property {import('../../explorer/source.js').Saved} saved
 */

const ON_SCREEN = { width_cm: 17, dpi: 150 };

/** Names in links that a question is about, and how its figure is drawn. */
const ABOUT = Object.freeze([
  ...[...TARGETED, 'q', 'ask', 'ask.*'],
  ...['style', 'scale', 'clip', 'alpha', 'colors', 'smooth', 'mask'],
]);

/** Stands for a question that the server said nothing of. @type {Value} */
const UNKNOWN = {
  key: '',
  question: {
    ...{ name: '', label: 'This question', shows: '', hides: '', source: '', runs: '' },
    ...{ slow: false, formats: [] },
  },
};

/** @type {import('../../ui/kit/elements.js').Mount<{}>} */
export function mount(element) {
  render(html`<${QuestionPanel} page=${thePage()} />`, element);
}

/** @param {{page: Page}} props */
export function QuestionPanel({ page }) {
  const { store, ask, turn } = page;
  const again = useSignal(0); // with each new value everything is asked again
  const link = () => store.linkOf(ABOUT);
  const told = useMemo(
    () =>
      asked(
        ask,
        () => (store.view.ask.value ? ['panel', { view: link() }] : null),
        computed(() => turn.value + again.value),
      ),
    [],
  );
  /** What was known last, until the link asks nothing. */
  const shown = useRef(/** @type {Value | null} */ (null));
  const name = store.view.ask.value;
  const { state, value, error } = told.value;
  /** What is known of the question of the link; null as long as that is on its way. @type {Value | null} */
  const known = name && state === 'done' ? value : null;
  const before = shown.current;
  if (!name) shown.current = null;
  else if (known)
    shown.current = known.question ? known : null; // there is none of this name: the header says so
  else if (state === 'failed')
    shown.current = { ...(before && before.question.name === name ? before : UNKNOWN), error };
  if (!shown.current) return null;
  const retry = () => {
    shown.current = { .../** @type {Value} */ (shown.current), error: undefined };
    again.value += 1;
  };
  return html`<${Question}
    key=${shown.current.question.name}
    ...${{ page, link, retry, value: shown.current, isKnown: Boolean(known) }}
  />`;
}

/** @param {Record<'isFailed' | 'isDone' | 'isWanted', boolean>} far */
function stateOf({ isFailed, isDone, isWanted }) {
  if (isFailed) return 'failed';
  if (isDone) return 'done';
  return isWanted ? 'running' : 'waiting';
}

/**
 * @param {object} props
 * @param {Page} props.page
 * @param {() => string} props.link what is asked now
 * @param {() => void} props.retry asks what is known once more
 * @param {Value} props.value
 * @param {boolean} props.isKnown whether the value is of what is asked now; else the next one is on its way
 */
function Question({ page: { store, ask }, link, retry, value, isKnown }) {
  const { question, key } = value;
  const dialog = useRef(/** @type {any} */ (null));
  const title = useRef(/** @type {any} */ (null));
  const job = useJob();
  const [answer, setAnswer] = useState(/** @type {(Answer & {to: Value}) | null} the last one */ (null));
  const [drawn, setDrawn] = useState(''); // what the figure on the screen was asked for with
  // one that takes many passes waits until it is asked for
  const isWanted = Boolean(value.quick || store.view.run.value || !question.name);
  const error = value.error ?? job.error;
  const state = stateOf({ isFailed: Boolean(error), isDone: answer?.to === value, isWanted });
  const isDrawn = answer?.to.key === key && JSON.stringify(answer.saved) === drawn;

  useLayoutEffect(() => {
    const { current } = dialog;
    current.showModal();
    title.current.focus();
    return () => current.close();
  }, []);
  useLayoutEffect(() => {
    if (!isKnown || value.error || !isWanted) return;
    const view = link();
    const saved = store.saved(question.name, { ...value.about, ...chosenIn(value) });
    void job.follow((stop, tell) => ask('answer', { view }, stop, tell), {
      whole(/** @type {Pick<Answer, 'facts'>} */ one) {
        setAnswer({ ...one, saved, to: value });
        if (question.slow) store.set({ run: true }); // so that the link opens the same answer
      },
    });
    return () => job.end();
  }, [isKnown && isWanted ? value : null]);

  const go = () => {
    if (question.slow) store.set({ run: true });
    if (state === 'failed') retry();
  };
  const said = { waiting: question.runs, running: 'Computing …', failed: '', done: '' };
  const next = { waiting: 'Compute', running: '', failed: 'Try again', done: '' };
  return html`<dialog
    class="vv-question vv-room"
    aria-labelledby="vv-question-title"
    aria-busy=${String(state === 'running')}
    data-state=${state}
    data-drawn=${isDrawn ? key : undefined}
    ref=${dialog}
    onClose=${() => {
      // where the page went elsewhere the dialog went with it
      if (dialog.current) store.set({ ask: '', run: false, 'ask.*': '' });
    }}
    onClick=${closeBeside}
  >
    <${Head}
      ...${{ question, title, own: value.own }}
      save=${state === 'done' ? () => answer && askForFigure(dialog.current, answer.saved, question.formats) : undefined}
      close=${() => dialog.current.close()}
    />
    <${Choices} ...${{ store, ask, link, value }} />
    <${JobLine}
      look="vv-row"
      job=${{ ...job, isRunning: state === 'running' }}
      end=${() => job.end(STOPPED)}
      begin=${go}
      words=${said[state]}
      go=${next[state]}
      button=${{ class: 'vv-button vv-question-go', 'data-on': '' }}
    />
    <${Problem} look="vv-error vv-question-error" words=${error} />
    ${answer && !error && html`<${Answered} ...${{ question, answer, isBusy: !isDrawn, drawn: setDrawn }} />`}
  </dialog>`;
}

/** What is chosen of a question, as its body has it. @param {Value} value */
function chosenIn({ controls = [] }) {
  return Object.fromEntries(controls.flatMap(({ name, value }) => (value === '' ? [] : [[name, value]])));
}

/**
 * What it is called, what it shows, and what can be done with it.
 * @param {{question: Question, title: any, own?: boolean, save?: () => void, close: () => void}} props title: a
 *     reference to it; save: none where there is nothing to save yet
 */
function Head({ question, title, own, save, close }) {
  const { label, shows, hides, source, formats } = question;
  return html`<header class="vv-question-head">
      <h2 class="vv-title vv-question-title" id="vv-question-title" tabindex="-1" ref=${title}>${label}</h2>
      <button type="button" class="vv-button vv-question-save" data-save hidden=${!save} onClick=${save}>
        ${formats.includes('png') ? 'Save' : 'Save the numbers'}
      </button>
      <button
        type="button"
        class="vv-button vv-question-link"
        onClick=${(/** @type {any} */ { currentTarget }) => copyLink(currentTarget, Boolean(own))}
      >
        Copy link
      </button>
      <button type="button" class="vv-button vv-question-close" onClick=${close}>Close</button>
    </header>
    ${
      shows &&
      html`<div class="vv-column">
        <p><b>Shows</b> ${shows}</p>
        <p><b>Does not show</b> ${hides}</p>
        <p class="vv-small">${source}</p>
      </div>`
    }`;
}

/**
 * The controls of a question. The link gets what is possible of what was chosen; the rest stays as it was typed.
 * @param {{store: Page['store'], ask: Page['ask'], link: () => string, value: Value}} props
 */
function Choices({ store, ask, link, value }) {
  const pending = useSignal(/** @type {Record<string, any>} chosen, and not in the value yet */ ({}));
  const refusals = useSignal(
    /** @type {Record<string, string>} what is not possible of it, as sentences */ ({}),
  );
  const isSettled = useRef(true); // what was possible of the last choice is in the link
  const choosing = useRef(new AbortController());
  useLayoutEffect(() => () => choosing.current.abort(), []);
  useLayoutEffect(() => {
    const kept = Object.entries(pending.peek()).filter(([name]) => name in refusals.peek());
    if (isSettled.current) pending.value = Object.fromEntries(kept);
  }, [value]);
  /** @param {Record<string, any>} chosen @returns {Promise<void>} */
  async function choose(chosen) {
    pending.value = { ...pending.peek(), ...chosen };
    isSettled.current = false;
    choosing.current.abort();
    const { signal: stop } = (choosing.current = new AbortController());
    const [view, options] = [link(), pending.peek()];
    /** @type {{refused: Record<string, string>, link: Record<string, string | null>}} */
    const said = await ask('panel', { view, options }, stop).catch((error) => ({
      refused: Object.fromEntries(Object.keys(options).map((name) => [name, error.message])),
      link: {},
    }));
    if (stop.aborted) return;
    refusals.value = said.refused;
    if (view !== link()) return choose({}); // it is about something else by now
    isSettled.current = true;
    store.take(said.link);
  }
  const { controls = [] } = value;
  if (!controls.length) return null;
  return html`<div class="vv-question-controls" role="group" aria-label="What is asked">
    ${controls.map(
      (option) =>
        html`<${OptionControl}
          key=${option.name}
          option=${option}
          prefix="vv-question"
          value=${option.name in pending.value ? pending.value[option.name] : option.value}
          refusal=${refusals.value[option.name]}
          choose=${(/** @type {any} */ chosen) => void choose({ [option.name]: chosen })}
        />`,
    )}
  </div>`;
}

/**
 * Facts and figure; busy as long as they are not those of what is asked.
 * @param {{question: Question, answer: Answer, isBusy: boolean, drawn: (asked: string) => void}} props
 */
function Answered({ question, answer: { facts, saved }, isBusy, drawn }) {
  return html`<div class=${`vv-question-answer ${isBusy ? 'vv-busy' : ''}`}>
    <${Figure} ...${{ question, saved, drawn }} />
    <dl class="vv-question-facts vv-stack">
      ${facts.map(
        ([name, words]) =>
          html`<div key=${name}>
            <dt>${name}</dt>
            <dd>${words}</dd>
          </div>`,
      )}
    </dl>
  </div>`;
}

/**
 * The figure of an answer, which takes the place of the one before once it is there.
 * @param {{question: Question, saved: Answer['saved'], drawn: (asked: string) => void}} props
 */
function Figure({ question, saved, drawn }) {
  const hasFigure = question.formats.includes('png');
  const [{ url, error }, show] = useState({ url: '', error: '' });
  const written = JSON.stringify(saved);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  useLayoutEffect(() => {
    const end = new AbortController();
    const told = (/** @type {{url: string, error: string}} */ next) => {
      if (end.signal.aborted) return;
      show(next);
      drawn(written);
    };
    if (!hasFigure) return drawn(written);
    const [name, body] = saved;
    const screen = { ...body, figure: { ...body.figure, ...ON_SCREEN } };
    void fileOf(name, screen, 'image/png', end.signal).then(
      async (file) => told({ url: URL.createObjectURL(await file.blob()), error: '' }),
      (/** @type {Error} */ { message }) => told({ url: '', error: message }),
    );
    return () => end.abort();
  }, [written]);
  const caption = hasFigure ? error : 'This answer is numbers without a figure.';
  return html`<figure class="vv-stack">
    ${url && html`<img class="vv-question-picture" src=${url} alt=${`${question.label}: ${question.shows}`} />`}
    ${caption && html`<figcaption class="vv-small">${caption}</figcaption>`}
  </figure>`;
}
