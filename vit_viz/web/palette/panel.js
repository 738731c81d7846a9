// One question by itself, in front of the page: controls made of its options, how far its answer is, its figure, its facts. Which one
// stands in the link: "ask", its options behind "ask.", and "run" where one that takes many passes is computed. What was typed stays until
// it is replaced.

import { askForFigure } from '../../explorer/source.js';
import { isPossible, readOption, writeOption } from '../../explorer/options.js';
import { copyLink } from '../header/facts.js';
import { asked } from '../kit/ask.js';
import { STOPPED } from '../kit/job.js';
import { OptionControl } from '../kit/option.js';
import { opening, thePage } from '../kit/page.js';
import { JobLine, Problem, closeBeside, useJob } from '../kit/parts.js';
import {
  html,
  render,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useSignal,
  useState,
} from '../kit/preact.js';
import { factsOf } from './facts.js';
/** @import { Described } from '../kit/option.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Saved } from '../../explorer/source.js' */

/**
 * A question as it is declared: runs: what computing it takes, where that is many passes; photo: whether it is about one; formats: in
 * which its answers are saved; controls: what it takes, with names of their own in links for the query and the class.
 * @typedef {{name: string, label: string, shows: string, hides: string, source: string, runs: string, slow: boolean, photo: boolean,
 *   formats: string[], controls: (Described & {layer?: boolean})[]}} Question
 *
 * What is asked: key: equal for equal questions about the same; controls: with what is chosen; own: whether the picture is the
 * visitor's own.
 * @typedef {{key: string, body: any, controls: (Described & {value: any})[], own: boolean}} Asked
 *
 * @typedef {{told: any, to: Asked}} Answer what was told, and of what
 */

/** What is said in place of an answer that the source of this page does not have. */
export const IN_APP = 'This page does not answer that; the app does, pip install vit_viz.';
const ON_SCREEN = { width_cm: 17, dpi: 150 };

/** Names in links that a question is asked with, beside what it is about. */
const WITH = Object.freeze(['target', 'q', 'ask', 'ask.*']);

/** Names in links of how its figure is drawn. */
const DRAWN = Object.freeze(['style', 'scale', 'clip', 'alpha', 'colors', 'smooth', 'mask']);

/** Stands for a question of which nothing is known. @type {Question} */
const UNKNOWN = {
  ...{ name: '', label: 'This question', shows: '', hides: '', source: '', runs: '' },
  ...{ slow: false, photo: false, formats: [], controls: [] },
};

/** @type {import('../../ui/kit/elements.js').Mount<{questions: string}>} */
export function mount(element, { questions }) {
  render(html`<${QuestionPanel} page=${thePage()} questions=${questions} />`, element);
}

/** @param {{page: Page, questions: string}} props questions: where they are listed */
export function QuestionPanel({ page, questions }) {
  const { store, source, turn } = page;
  const again = useSignal(0); // with each new value the list is fetched again
  const listing = useMemo(() => {
    const list = async (
      /** @type {string} */ _name,
      /** @type {any} */ _body,
      /** @type {AbortSignal} */ stop,
    ) => (await source.at(questions, stop)).json();
    return asked(list, () => (store.view.ask.value ? ['', {}] : null), again);
  }, []);
  const name = store.view.ask.value;
  const { value: listed, error: failed } = listing.value;
  /** @type {Question | undefined} there is none of another name: the header says so */
  const declared = listed?.find((/** @type {Question} */ one) => one.name === name && one.controls);
  const question = declared ?? (failed && !listed ? UNKNOWN : null);
  const isAnswered = !declared || source.answers(declared.name);
  const {
    known,
    last,
    error = isAnswered ? failed : IN_APP,
  } = useQuestion(page, isAnswered ? declared : undefined);
  if (!name || !question || !(last || error)) return null;
  const retry = () => void (listed ? (turn.value += 1) : (again.value += 1));
  return html`<${Panel}
    key=${name}
    ...${{ page, retry, error, question, asked: last, isKnown: Boolean(known) }}
  />`;
}

/** What the link asks of a question, once it is open what the view is of, and what it asked last; error: why it cannot be asked. @param {Page} page @param {Question | undefined} question */
function useQuestion(page, question) {
  const { store } = page;
  const { state, value, error } = opening(page).answer.value;
  const isOpen = state === 'done' && value.view === store.subject();
  const known = useMemo(
    () => (question && isOpen && !value.refused ? askedOf(question, value, store) : null),
    [question, isOpen, value, store.linkOf(WITH)],
  );
  const last = useRef(/** @type {Asked | null} */ (null));
  if (known || !question) last.current = known;
  return {
    known,
    last: last.current,
    error: isOpen ? value.refused : state === 'failed' ? error : undefined,
  };
}

/** What a link asks of a question. @param {Question} question @param {any} open what the view is of @param {Page['store']} store @returns {Asked} */
function askedOf(question, open, store) {
  const { model, ...about } = open.about;
  const chosen = new URLSearchParams(store.view['ask.*'].value);
  /** @type {Record<string, any>} */
  const body = { model, ...(question.photo && about) };
  const controls = question.controls.map(({ layer: isLayer, ...option }) => {
    const text = option.name in BESIDE ? store.view[option.link].value : chosen.get(`ask.${option.name}`);
    if (text) body[option.name] = typedAs(option, text);
    const value = text && isPossible(option, body[option.name]) ? body[option.name] : option.default;
    if (!isLayer || !question.photo) return { ...option, value };
    const { layers } = open;
    return { ...option, low: 0, high: Math.max(layers - 1, 1), value: value < 0 ? value + layers : value };
  });
  const key = JSON.stringify([question.name, body]);
  return { key, body, controls, own: !about.image.sample };
}

/** What links have under names of their own. @type {Record<string, true>} */
const BESIDE = { query: true, target: true };

/** A text as the value that an option has; what is none stays, and is refused. @param {Described} option @param {string} text */
function typedAs(option, text) {
  const value = readOption(option, text);
  return Number.isNaN(value) ? text : value;
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
 * @param {() => void} props.retry asks once more what is not known
 * @param {string} [props.error] why it is not
 * @param {Question} props.question
 * @param {Asked | null} props.asked
 * @param {boolean} props.isKnown whether that is what is asked now; else the next one is on its way
 */
function Panel({ page: { store, source, ask }, retry, error: unknown, question, asked: now, isKnown }) {
  const dialog = useRef(/** @type {any} */ (null));
  const title = useRef(/** @type {any} */ (null));
  const [drawn, setDrawn] = useState(''); // what the figure on the screen was asked for with
  // one that takes many passes waits until it is asked for
  const isWanted = Boolean(!question.slow || store.view.run.value);
  const { job, answer, isDone, refused, again } = useAnswer({ store, ask }, question, now, {
    isKnown,
    isWanted,
  });
  const error = unknown || refused || job.error;
  const state = stateOf({ isFailed: Boolean(error), isDone, isWanted });
  void store.linkOf(DRAWN); // how it is drawn
  const saved = answer && store.saved(question.name, answer.to.body);
  const isOld = answer?.to.key !== now?.key;
  const isDrawn = !isOld && JSON.stringify(saved) === drawn;

  useLayoutEffect(() => {
    const { current } = dialog;
    current.showModal();
    title.current.focus();
    return () => current.close();
  }, []);

  const save = () => void (saved && askForFigure(dialog.current, saved, question.formats));
  const go = () => {
    if (question.slow) store.set({ run: true });
    if (state === 'failed') unknown ? retry() : again();
  };
  const said = { waiting: question.runs, running: 'Computing …', failed: '', done: '' };
  const next = { waiting: 'Compute', running: '', failed: 'Try again', done: '' };
  return html`<dialog
    class="vv-question vv-room"
    aria-labelledby="vv-question-title"
    aria-busy=${String(state === 'running')}
    data-state=${state}
    data-drawn=${isDrawn ? now?.key : undefined}
    ref=${dialog}
    onClose=${() => {
      // where the page went elsewhere the dialog went with it
      if (dialog.current) store.set({ ask: '', run: false, 'ask.*': '' });
    }}
    onClick=${closeBeside}
  >
    <${Head}
      ...${{ question, title, own: now?.own }}
      save=${state === 'done' ? save : undefined}
      close=${() => dialog.current.close()}
    />
    ${now && !unknown && html`<${Choices} ...${{ store, ask, question, asked: now }} />`}
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
    ${answer && !error && html`<${Answered} ...${{ source, question, told: answer.told, saved, isOld, isDrawn, drawn: setDrawn }} />`}
  </dialog>`;
}

/**
 * The answer to what is asked, the last one until it is there; of a question that waits only where it is at hand.
 * @param {Pick<Page, 'store' | 'ask'>} page @param {Question} question @param {Asked | null} now
 * @param {{isKnown: boolean, isWanted: boolean}} how
 */
function useAnswer({ store, ask }, { name, slow }, now, { isKnown, isWanted }) {
  const job = useJob();
  const [answer, setAnswer] = useState(/** @type {Answer | null} */ (null));
  const [refused, setRefused] = useState({ to: /** @type {Asked | null} */ (null), words: '' });
  const [tries, setTries] = useState(0);
  const isDone = answer !== null && answer.to === now;
  useLayoutEffect(() => {
    if (!now || !isKnown || isDone) return;
    const stop = new AbortController();
    const take = (/** @type {any} */ told) => {
      if (!told || stop.signal.aborted) return;
      setAnswer({ told, to: now });
      if (slow) store.set({ run: true }); // so that the link opens the same answer
    };
    const refuse = (/** @type {Error} */ { message }) =>
      void (stop.signal.aborted || setRefused({ to: now, words: message }));
    if (isWanted) void job.follow((ended, tell) => ask(name, now.body, ended, tell), { whole: take });
    else ask.kept(name, now.body, stop.signal).then(take, refuse);
    return () => {
      stop.abort();
      job.end();
    };
  }, [isKnown ? now : null, isWanted, tries]);
  const again = () => {
    setRefused({ to: null, words: '' });
    setTries(tries + 1);
  };
  return { job, answer, isDone, refused: refused.to === now ? refused.words : '', again };
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
 * @param {{store: Page['store'], ask: Page['ask'], question: Question, asked: Asked}} props
 */
function Choices({ store, ask, question, asked: now }) {
  const pending = useSignal(/** @type {Record<string, any>} chosen, and not in the link yet */ ({}));
  const refusals = useSignal(
    /** @type {Record<string, string>} what is not possible of it, as sentences */ ({}),
  );
  const isSettled = useRef(true); // what was possible of the last choice is in the link
  const choosing = useRef(new AbortController());
  const latest = useRef(now);
  latest.current = now;
  useLayoutEffect(() => () => choosing.current.abort(), []);
  useLayoutEffect(() => {
    const kept = Object.entries(pending.peek()).filter(([name]) => name in refusals.peek());
    if (isSettled.current) pending.value = Object.fromEntries(kept);
  }, [now]);
  /** @param {Record<string, any>} chosen @returns {Promise<void>} */
  async function choose(chosen) {
    pending.value = { ...pending.peek(), ...chosen };
    isSettled.current = false;
    choosing.current.abort();
    const { signal: stop } = (choosing.current = new AbortController());
    const about = latest.current;
    const options = Object.fromEntries(
      question.controls.flatMap((option) => {
        const { [option.name]: value } = pending.peek();
        if (value === undefined) return [];
        return [[option.name, typeof value === 'string' ? typedAs(option, value) : value]];
      }),
    );
    const { possible, refused, parameters } = await tried(ask, question, about.body, options, stop);
    if (stop.aborted) return;
    refusals.value = refused;
    if (about !== latest.current) return choose({}); // it is about something else by now
    isSettled.current = true;
    const change = changeOf(question, possible, parameters, store);
    const isSame = Object.entries(change).every(([name, value]) => store.view[name].peek() === value);
    if (!isSame) store.set({ ...change, run: false });
    else if (!Object.keys(refused).length) pending.value = {};
  }
  const { controls } = now;
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
 * Which choices are possible, all together or else one after the other, and how they were understood.
 * @param {Page['ask']} ask @param {Question} question @param {any} body @param {Record<string, any>} options @param {AbortSignal} stop
 */
async function tried(ask, question, body, options, stop) {
  const [possible, refused] = [
    /** @type {Record<string, any>} */ ({}),
    /** @type {Record<string, string>} */ ({}),
  ];
  /** @type {Record<string, any>} */
  let parameters = {};
  const attempt = async (/** @type {Record<string, any>} */ more) => {
    const whole = Object.entries({ ...body, ...possible, ...more });
    const given = Object.fromEntries(whole.filter(([name, value]) => !(name in BESIDE && value === '')));
    const hear = (/** @type {any} */ { request }) => void (parameters = request.parameters);
    const answer = await ask.kept(question.name, given, stop, hear);
    if (answer) hear(answer);
    Object.assign(possible, more);
  };
  const names = Object.keys(options);
  try {
    await attempt(options);
  } catch (error) {
    for (const name of names) {
      const refuse = ({ message = '' }) => {
        const { label } = /** @type {Described} */ (question.controls.find((one) => one.name === name));
        refused[name] = message.replace(/^The .+?'s .+? (?=is |cannot )/, `The option “${label}” `);
      };
      if (names.length === 1) refuse(/** @type {Error} */ (error));
      else await attempt({ [name]: options[name] }).catch(refuse);
    }
  }
  return { possible, refused, parameters };
}

/**
 * What the link says once some choices are made.
 * @param {Question} question @param {Record<string, any>} possible @param {Record<string, any>} parameters @param {Page['store']} store
 */
function changeOf({ controls }, possible, parameters, store) {
  const link = new URLSearchParams(store.view['ask.*'].peek());
  /** @type {Record<string, any>} */
  const change = {};
  for (const option of controls.filter(({ name }) => name in possible)) {
    const { name } = option;
    if (name === 'query') change.q = String(possible.query);
    else if (name === 'target') change.target = [parameters.target ?? ''].flat().join('-');
    else {
      const text = writeOption(option, parameters[name]);
      if (text === null) link.delete(`ask.${name}`);
      else link.set(`ask.${name}`, text);
    }
  }
  link.sort();
  return { ...change, 'ask.*': link.toString() };
}

/**
 * Facts and figure, each busy as long as it is not that of what is asked: the facts come first.
 * @param {{source: Page['source'], question: Question, told: any, saved: Saved, isOld: boolean, isDrawn: boolean, drawn: (asked: string)
 *   => void}} props
 */
function Answered({ source, question, told, saved, isOld, isDrawn, drawn }) {
  const facts = useMemo(() => factsOf(told), [told]);
  return html`<div class="vv-question-answer">
    <${Figure} ...${{ source, question, saved, isDrawn, drawn }} />
    <dl class=${`vv-question-facts vv-stack ${isOld ? 'vv-busy' : ''}`}>
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
 * @param {{source: Page['source'], question: Question, saved: Saved, isDrawn: boolean, drawn: (asked: string) => void}} props
 */
function Figure({ source, question, saved, isDrawn, drawn }) {
  const written = JSON.stringify(saved);
  const hasFigure = question.formats.includes('png');
  const [{ url, error }, show] = useState({ url: '', error: '' });
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
    void source.file(name, screen, 'image/png', end.signal).then(
      async (file) => told({ url: URL.createObjectURL(await file.blob()), error: '' }),
      (/** @type {Error} */ { message }) => told({ url: '', error: message }),
    );
    return () => end.abort();
  }, [written]);
  const caption = hasFigure ? error : 'This answer is numbers without a figure.';
  return html`<figure class=${`vv-stack ${isDrawn ? '' : 'vv-busy'}`}>
    ${url && html`<img class="vv-question-picture" src=${url} alt=${`${question.label}: ${question.shows}`} />`}
    ${caption && html`<figcaption class="vv-small">${caption}</figcaption>`}
  </figure>`;
}
