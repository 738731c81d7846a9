// One question by itself, in front of the page: controls made of its options, how far its answer is, its figure, its facts. Which one
// stands in the link: "ask", its options behind "ask.", and "run" where one that takes many passes is computed. What was typed stays until
// it is replaced.

import { askForFigure } from '../../explorer/source.js';
import { copyLink } from '../header/facts.js';
import { limit, listenToOptions, makeControl, showOptions, showRefusals } from '../../ui/kit/controls.js';
import { closes, fetched, finder, make, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { asked } from '../kit/ask.js';
import { Job, JobBar, STOPPED } from '../kit/job.js';
import { thePage } from '../kit/page.js';
import { computed, effect, signal } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
/** @import { Described } from '../../ui/kit/controls.js' */
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
 * @property {Described[]} [controls] with what is chosen
 * @property {boolean} [quick] whether the answer comes by itself
 * @property {boolean} [own] whether the picture is the visitor's own
 * @property {string} [error]
 *
 * @typedef {object} Answer
 * @property {[string, string][]} facts names and words
 * @property {string} address of its files, without a format
 *
 * @typedef {Partial<Job> & {answer?: Answer}} Progress
 */

const ON_SCREEN = '&format=png&width_cm=17&dpi=150';

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
  new QuestionPanel(element, thePage());
}

export class QuestionPanel {
  isUp = false; // until it is closed by its visitor, or the page goes elsewhere
  isSettled = true; // what was possible of the last choice is in the link
  key = '';
  drawn = ''; // address of the answer on the screen
  /** @type {Value | null} */ value = null;
  /** @type {Record<string, any>} what was chosen and is not in the value yet */ pending = {};
  /** @type {Record<string, string>} what was not possible of it, as sentences */ refusals = {};
  choosing = new AbortController();
  job = new Job(() => (this.job.isRunning || this.job.error) && this.tell(this.job));
  again = signal(0); // with each new value everything is asked again

  /** @param {HTMLElement} element @param {Page} page */
  constructor(element, { store, ask, turn }) {
    this.element = element;
    this.store = store;
    this.ask = ask;
    this.find = finder(element);
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('question'));
    this.controls = this.find('question-controls');
    this.picture = /** @type {HTMLImageElement} */ (this.find('question-picture'));
    this.bar = new JobBar(this.find('question-job'), {
      begin: () => this.go(),
      end: () => this.job.end(STOPPED),
    });
    this.listen();

    const told = asked(
      async (name, body, stop) => ({ ...(await ask(name, body, stop)), view: body.view }),
      () => (store.view.ask.value ? ['panel', { view: this.link() }] : null),
      computed(() => turn.value + this.again.value),
    );
    /** What is known of the question of the link; null as long as that is on its way. @returns {(Value & {view: string}) | null} */
    const known = () => {
      const { state, value } = told.value;
      return state === 'done' && value.view === this.link() ? value : null;
    };
    /** The view whose question is answered: one that takes many passes waits until it is asked for. */
    const wanted = computed(() => {
      const { question, error, quick, view } = (store.view.ask.value && known()) || {};
      return question && !error && (quick || store.view.run.value) ? view : undefined;
    });
    effect(() => {
      const name = store.view.ask.value;
      if (!name) return this.leave();
      const { state, error } = told.value;
      const value = known();
      if (state === 'failed') {
        const before = this.value?.question.name === name ? this.value : UNKNOWN;
        return this.show({ .../** @type {Value} */ (before), error });
      }
      if (!value) return;
      if (!value.question) return this.leave(); // there is none of this name: the header says so
      this.show(value);
      this.tell(
        value.error ? { error: value.error } : wanted.value === undefined ? null : { isRunning: true },
      );
    });
    effect(() => {
      const view = wanted.value;
      if (view === undefined) return;
      void this.job.follow((stop, tell) => ask('answer', { view }, stop, tell), {
        whole: (answer) => this.tell({ answer }),
      });
      return () => this.job.end();
    });
  }

  link() {
    return this.store.linkOf(ABOUT);
  }

  listen() {
    const { find, store, dialog } = this;
    listenToOptions(this.controls, (chosen) => void this.choose(chosen));
    find('question-save').addEventListener('click', () =>
      askForFigure(this.element, this.drawn, this.value?.question.formats),
    );
    find('question-link').addEventListener('click', () =>
      copyLink(find('question-link'), this.value?.own ?? false),
    );
    closes(find('question-close'), dialog);
    dialog.addEventListener('close', () => {
      if (!this.isUp || dialog.open) return; // the page went elsewhere, and perhaps came back
      store.set({ ask: '', run: false, 'ask.*': '' });
    });
  }

  /** Computes what waits to be asked for, or tries once more what failed. */
  go() {
    const { state } = this.dialog.dataset;
    if (this.isToRun()) this.store.set({ run: true });
    if (state === 'failed') this.again.value += 1;
    this.tell({ isRunning: true });
  }

  /** @param {Value} value */
  show(value) {
    const before = this.value?.question.name;
    const { question, controls = [], key, error } = value;
    if (question.name !== before) this.begin(question);
    this.value = value;
    if (!this.controls.childElementCount) this.layOut(controls);
    limit(this.controls, controls);
    if (this.isSettled) this.pending = only(this.pending, this.refusals);
    this.showControls();
    if (key !== this.key) this.await(key);
    if (!this.dialog.open) this.openDialog();
    if (error) this.tell({ error });
  }

  /** Something else is asked: what is on the screen answers it no more. @param {string} key */
  await(key) {
    this.key = key;
    delete this.dialog.dataset.drawn;
    this.find('question-answer').classList.add('vv-busy');
  }

  /** Another question: nothing of the former holds. @param {Question} question */
  begin({ label, shows, hides, source, formats }) {
    this.forget();
    this.find('question-title').textContent = label;
    this.find('column').hidden = !shows;
    this.find('question-shows').textContent = shows;
    this.find('question-hides').textContent = hides;
    this.find('question-source').textContent = source;
    this.find('question-save').textContent = formats.includes('png') ? 'Save' : 'Save the numbers';
    this.find('question-answer').hidden = true;
    this.controls.replaceChildren();
  }

  forget() {
    this.choosing.abort();
    this.isSettled = true;
    this.value = null;
    this.key = '';
    this.drawn = '';
    this.pending = {};
    this.refusals = {};
  }

  leave() {
    this.forget();
    this.isUp = false;
    if (this.dialog.open) this.dialog.close();
  }

  openDialog() {
    this.isUp = true;
    this.dialog.showModal();
    this.find('question-title').focus();
  }

  /** @param {Described[]} schema */
  layOut(schema) {
    this.controls.hidden = !schema.length;
    this.controls.replaceChildren(...schema.map((option) => makeControl(option, 'vv-question')));
  }

  showControls() {
    const told = Object.fromEntries((this.value?.controls ?? []).map(({ name, value }) => [name, value]));
    showOptions(this.controls, { ...told, ...this.pending }, '', () => true);
    showRefusals(this.controls, this.refusals);
  }

  /** Lets the link have what is possible of what was chosen; the rest stays as it was typed. @param {Record<string, any>} chosen @returns {Promise<void>} */
  async choose(chosen) {
    Object.assign(this.pending, chosen);
    this.isSettled = false;
    delete this.dialog.dataset.settled;
    this.showControls();
    this.choosing.abort();
    const { signal: stop } = (this.choosing = new AbortController());
    const [view, options] = [this.link(), { ...this.pending }];
    /** @type {Record<string, string | null>} */
    let change = {};
    try {
      const { refused, link } = await this.ask('panel', { view, options }, stop);
      this.refusals = refused;
      change = link;
    } catch (error) {
      if (stop.aborted) return;
      this.refusals = Object.fromEntries(
        Object.keys(options).map((name) => [name, /** @type {Error} */ (error).message]),
      );
    }
    if (stop.aborted) return;
    if (view !== this.link()) return this.choose({}); // it is about something else by now
    this.isSettled = true;
    this.store.take(change);
    this.dialog.dataset.settled = '';
    showRefusals(this.controls, this.refusals);
  }

  /** Whether the link does not say yet that a question is computed which takes many passes. */
  isToRun() {
    return Boolean(this.value?.question.slow) && !this.store.view.run.peek();
  }

  /** Shows how far the answer is; null: it waits to be asked for. @param {Progress | null} progress */
  tell(progress) {
    const { find } = this;
    const far = { isRunning: false, share: 0, left: '', error: '', ...progress };
    const { isRunning, error, answer } = far;
    const state = answer ? 'done' : error ? 'failed' : isRunning ? 'running' : 'waiting';
    this.dialog.dataset.state = state;
    this.dialog.setAttribute('aria-busy', String(isRunning));
    find('question-save').hidden = state !== 'done';
    const cost = state === 'waiting' ? (this.value?.question.runs ?? '') : '';
    const words = isRunning ? 'Computing …' : cost;
    this.bar.show({ ...far, words }, { go: answer ? '' : error ? 'Try again' : 'Compute' });
    showError(find('question-error'), error);
    if (error) find('question-answer').hidden = true;
    if (!answer) return;
    if (this.isToRun()) this.store.set({ run: true }); // so that the link opens the same answer
    this.draw(answer);
  }

  /** @param {Answer} answer */
  draw({ facts, address }) {
    const part = this.find('question-answer');
    part.hidden = false;
    this.find('question-facts').replaceChildren(
      ...facts.map(([name, words]) => make('div', '', make('dt', '', name), make('dd', '', words))),
    );
    if (this.drawn === address) this.showDrawn();
    else void this.fetchPicture(address);
  }

  /** Fetches the figure, which stands in the place of the former once it is there. @param {string} address */
  async fetchPicture(address) {
    this.drawn = address;
    const key = this.key;
    const question = this.value?.question;
    const caption = this.find('question-caption');
    const isStill = () => this.drawn === address;
    const hasFigure = question?.formats.includes('png');
    this.picture.hidden = !hasFigure || this.picture.hidden;
    showText(caption, hasFigure ? '' : 'This answer is numbers without a figure.');
    try {
      const file = hasFigure ? await (await fetched(address + ON_SCREEN)).blob() : null;
      if (!isStill()) return;
      if (file) {
        URL.revokeObjectURL(this.picture.src);
        this.picture.src = URL.createObjectURL(file);
        this.picture.alt = `${question?.label}: ${question?.shows}`;
        this.picture.hidden = false;
      }
    } catch (error) {
      if (!isStill()) return;
      this.picture.hidden = true;
      showText(caption, /** @type {Error} */ (error).message);
    }
    if (key === this.key) this.showDrawn();
  }

  /** What is on the screen answers what is asked. */
  showDrawn() {
    this.find('question-answer').classList.remove('vv-busy');
    this.dialog.dataset.drawn = this.key;
  }
}

/** What an object has under the names of another. @param {Record<string, any>} values @param {Record<string, any>} names */
function only(values, names) {
  return Object.fromEntries(Object.entries(values).filter(([name]) => name in names));
}
