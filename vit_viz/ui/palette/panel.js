// One question by itself: controls made of its options, its progress, its figure, its facts. It stands in front of the page, or as a part
// of a tab where the prop 'inline' says so. Its value is what is asked; the prop 'job' follows the answer, and 'refused' says of the last
// choice what was not possible. What was typed stays until it is replaced.

import { askForFigure } from '../../explorer/source.js';
import { copyLink } from '../../web/header/facts.js';
import { limit, listenToOptions, makeControl, showOptions, showRefusals } from '../kit/controls.js';
import { drawValue, fetched, finder, make, showText } from '../kit/elements.js';
import { farWords } from '../../web/kit/job.js';
import { showError } from '../kit/notes.js';
/** @import { Described } from '../kit/controls.js' */
/** @import { Mount, Trigger } from '../kit/elements.js' */

/**
 * @typedef {{name: string, label: string, shows: string, hides: string, source: string, runs: string, slow: boolean,
 *   formats: string[]}} Question in words; runs: what computing it takes,
 *   where that is many passes; formats: in which its answers are saved
 *
 * @typedef {object} Value
 * @property {number} revision counts what was done, so that an older value is known
 * @property {string} key of what is asked; '' where nothing is
 * @property {Question} [question]
 * @property {Described[]} [controls]
 * @property {boolean} [quick] whether the answer comes by itself
 * @property {boolean} [runs] whether a slow one is asked for
 * @property {boolean} [own] whether the picture is the visitor's own
 * @property {string} [error]
 *
 * @typedef {object} Answer
 * @property {[string, string][]} facts names and words
 * @property {string} address of its files, without a format
 *
 * @typedef {{key: string, share?: number, left?: string, error?: string, answer?: Answer}} Job
 *
 * What was not possible of the values that were sent, as sentences, and the revision that has the others.
 * @typedef {{of: Record<string, string>, values: Record<string, any>, revision: number}} Refused
 */

const ON_SCREEN = '&format=png&width_cm=17&dpi=150';

/** @type {Mount<{value: Value | null, job: Job | null, refused: Refused | null, inline?: boolean}>} */
export function mount(element, trigger, props, watch) {
  const panel = new QuestionPanel(element, trigger, Boolean(props.inline));
  watch('job', () => panel.hear(props.job));
  watch('refused', () => panel.settle(props.refused));
  drawValue(watch, () => panel.show(props.value, props.job));
}

export class QuestionPanel {
  /** @param {HTMLElement} element @param {Trigger} trigger @param {boolean} inline */
  constructor(element, trigger, inline) {
    this.element = element;
    this.trigger = trigger;
    this.inline = inline;
    this.find = finder(element);
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('question'));
    this.controls = this.find('question-controls');
    this.picture = /** @type {HTMLImageElement} */ (this.find('question-picture'));
    this.expects = 0; // the revision from which on values know what was done here
    this.key = '';
    this.started = ''; // key of what was asked for here
    this.kept = ''; // key of what the link was told of
    this.drawn = ''; // address of the answer on the screen
    /** @type {Value | null} */ this.value = null;
    /** @type {Record<string, any>} what was chosen and is not in the view yet */ this.pending = {};
    /** @type {Record<string, string>} */ this.refusals = {};
    this.find('question-close').hidden = inline;
    this.dialog.classList.toggle('vv-inline', inline);
    this.listen();
  }

  listen() {
    const { find, trigger } = this;
    listenToOptions(this.controls, (chosen) => {
      Object.assign(this.pending, chosen);
      this.showControls();
      trigger('choose', { options: { ...this.pending } });
    });
    find('question-go').addEventListener('click', () => {
      this.keep();
      this.start();
      this.tell({ key: this.key, share: 0 });
    });
    find('question-stop').addEventListener('click', () => trigger('stop', {}));
    find('question-save').addEventListener('click', () =>
      askForFigure(this.element, this.drawn, this.value?.question?.formats),
    );
    find('question-link').addEventListener('click', () =>
      copyLink(find('question-link'), this.value?.own ?? false),
    );
    find('question-close').addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('click', (event) => {
      if (event.target === this.dialog && !this.inline) this.dialog.close();
    });
    this.dialog.addEventListener('close', () => {
      if (!this.key) return; // the page went elsewhere
      this.leave();
      this.expects = (this.value?.revision ?? 0) + 1;
      trigger('close', {});
    });
  }

  /** @param {Value | null} value @param {Job | null} job */
  show(value, job) {
    if (!value || value.revision < this.expects) return;
    const before = this.value?.question?.name;
    this.value = value;
    this.dialog.dataset.revision = String(value.revision);
    if (!value.question) {
      this.leave();
      return this.dialog.close();
    }
    if (value.question.name !== before) this.begin(value.question);
    if (!this.controls.childElementCount) this.layOut(value.controls ?? []);
    this.showControls();
    if (value.key !== this.key) this.await(value.key);
    if (!this.dialog.open) this.openDialog();
    this.tell(this.jobOf(value, job));
  }

  /** Something else is asked: what is on the screen answers it no more. @param {string} key */
  await(key) {
    this.key = key;
    this.started = '';
    this.find('question-answer').classList.add('vv-busy');
  }

  /** What is known of the answer; null where it waits to be asked for. @param {Value} value @param {Job | null} job @returns {Job | null} */
  jobOf({ key, error, quick, runs }, job) {
    if (error) return { key, error };
    if (job?.key === key) return job;
    if (runs && !quick && this.started !== key) this.start();
    return quick || this.started === key ? { key, share: 0 } : null;
  }

  /** Another question: nothing of the former holds. @param {Question} question */
  begin({ label, shows, hides, source, formats }) {
    this.leave();
    this.find('question-title').textContent = label;
    this.find('question-shows').textContent = shows;
    this.find('question-hides').textContent = hides;
    this.find('question-source').textContent = source;
    this.find('question-save').textContent = formats.includes('png') ? 'Save' : 'Save the numbers';
    this.find('question-answer').hidden = true;
    this.controls.replaceChildren();
  }

  leave() {
    this.key = '';
    this.drawn = '';
    this.pending = {};
    this.refusals = {};
  }

  openDialog() {
    if (this.inline) return this.dialog.show();
    this.dialog.showModal();
    this.find('question-title').focus();
  }

  /** @param {Described[]} schema */
  layOut(schema) {
    this.controls.hidden = !schema.length;
    this.controls.replaceChildren(...schema.map((option) => makeControl(option, 'vv-question')));
    limit(this.controls, schema);
  }

  showControls() {
    const told = Object.fromEntries((this.value?.controls ?? []).map(({ name, value }) => [name, value]));
    showOptions(this.controls, { ...told, ...this.pending }, '', () => true);
    showRefusals(this.controls, this.refusals);
  }

  /** What was possible of the last choice is in the view; the rest stays as it was typed. @param {Refused | null} refused */
  settle(refused) {
    if (!refused || !this.key) return;
    const pending = new Map(Object.entries(this.pending));
    for (const [name, value] of Object.entries(refused.values)) {
      if (!(name in refused.of) && pending.get(name) === value) pending.delete(name);
    }
    this.pending = Object.fromEntries(pending);
    this.refusals = refused.of;
    this.expects = Math.max(this.expects, refused.revision);
    this.dialog.dataset.settled = String(refused.revision);
    showRefusals(this.controls, this.refusals);
  }

  /** Lets the link say that a slow question is asked, so that it opens the same answer. */
  keep() {
    if (!this.value?.question?.slow || this.value.runs || this.kept === this.key) return;
    this.kept = this.key;
    this.trigger('run', {});
  }

  start() {
    this.started = this.key;
    this.trigger('start', {});
  }

  /** @param {Job | null} job */
  hear(job) {
    if (job && job.key === this.key) this.tell(job);
  }

  /** Shows how far the answer is; null: it waits to be asked for. @param {Job | null} job */
  tell(job) {
    const { find } = this;
    const { share = 0, left, error = '', answer = null } = job ?? {};
    const state = answer ? 'done' : error ? 'failed' : job ? 'running' : 'waiting';
    const isRunning = state === 'running';
    this.dialog.dataset.state = state;
    this.dialog.setAttribute('aria-busy', String(isRunning));
    find('question-job').hidden = state === 'done';
    find('question-save').hidden = state !== 'done';
    find('question-go').hidden = isRunning || !this.value?.controls;
    find('question-go').textContent = error ? 'Try again' : 'Compute';
    find('question-words').textContent = this.wordsOf(state) + (isRunning ? farWords(share, left) : '');
    find('question-stop').hidden = find('progress').hidden = !isRunning;
    const progress = /** @type {HTMLProgressElement} */ (find('progress'));
    if (share) progress.value = share;
    else progress.removeAttribute('value');
    showError(find('question-error'), error);
    if (error) find('question-answer').hidden = true;
    if (answer) {
      this.keep();
      this.draw(answer);
    }
  }

  /** @param {string} state */
  wordsOf(state) {
    if (state === 'running') return 'Computing …';
    return state === 'waiting' ? (this.value?.question?.runs ?? '') : '';
  }

  /** @param {Answer} answer */
  draw({ facts, address }) {
    const part = this.find('question-answer');
    part.hidden = false;
    this.find('question-facts').replaceChildren(
      ...facts.map(([name, words]) => make('div', '', make('dt', '', name), make('dd', '', words))),
    );
    if (this.drawn === address) return part.classList.remove('vv-busy');
    this.drawn = address;
    void this.fetchPicture(address);
  }

  /** Fetches the figure, which stands in the place of the former once it is there. @param {string} address */
  async fetchPicture(address) {
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
    this.find('question-answer').classList.remove('vv-busy');
    this.dialog.dataset.drawn = this.key;
  }
}
