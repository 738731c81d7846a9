// Whether the lead of one class over another goes with the patches that the difference of their maps gives to the one: a button that
// measures it, how far that is, and the curve.

import { finder, make, showJob } from '../../ui/kit/elements.js';
import { STOPPED, farWords } from '../kit/job.js';
import { Fall } from './fall.js';
/** @import { Job } from '../../ui/kit/elements.js' */
/** @import { Tell } from '../kit/ask.js' */
/** @import { Trust } from './card.js' */

/**
 * What is known of the map on the stage; cost: of measuring it, in words.
 * @typedef {Trust & {key: string, label: string, question: string, cost: string}} Known
 *
 * How far a measurement is, and what it found in the end.
 * @typedef {Job & Partial<Trust> & {key: string}} News
 */

/** The part of the stage below the maps of two classes. */
export class Lead {
  /** @type {Known | null | undefined} */ known;
  /** @type {News | null} of the newest measurement */ news = null;
  /** @type {AbortController | null} while it runs */ stop = null;

  /** @param {HTMLElement} element @param {(stop: AbortSignal, tell: Tell) => Promise<Trust>} ask */
  constructor(element, ask) {
    this.element = element;
    this.find = finder(element);
    this.fall = new Fall(this.find('fall'));
    this.ask = ask;
    this.button = /** @type {HTMLButtonElement} */ (this.find('measure'));
    this.button.addEventListener('click', () => void this.measure());
    this.find('stop').addEventListener('click', () => this.end());
  }

  /** Another map on the stage: what is known of it, or nothing where it is no difference. */
  show(/** @type {Known | null | undefined} */ known) {
    this.known = known;
    this.draw();
  }

  /** Measures that of the map on the stage, in place of what runs. */
  async measure() {
    if (!this.known) return;
    this.end();
    const { key } = this.known;
    const { signal } = (this.stop = new AbortController());
    const tell = (/** @type {Job | Trust} */ news) => {
      if (signal.aborted) return;
      this.news = { key, ...news };
      this.draw();
    };
    let what = '';
    tell({ words: 'Starting …', share: 0 });
    try {
      const found = await this.ask(signal, ({ share, left, preview }) => {
        what = preview?.words ?? what;
        if (what) tell({ share, words: what + (share > 0 ? `:${farWords(share, left)}` : ' …') });
      });
      tell(found);
    } catch (error) {
      tell({ error: /** @type {Error} */ (error).message });
    }
    if (!signal.aborted) this.stop = null;
  }

  /** Ends what runs. */
  end() {
    if (!this.stop || !this.news) return;
    this.stop.abort();
    this.stop = null;
    this.news = { key: this.news.key, error: STOPPED };
    this.draw();
  }

  draw() {
    const { known } = this;
    this.element.hidden = !known;
    if (!known) return;
    const news = this.news?.key === known.key ? this.news : null;
    const found = known.curves ? known : news?.curves ? /** @type {Trust} */ (news) : undefined;
    const isRunning = showJob(this.find, found ? {} : (news ?? { words: known.cost }));
    this.find('job').hidden = Boolean(found);
    this.button.textContent = known.question;
    this.button.hidden = isRunning;
    this.fall.draw(found, known.label);
    const lines = (found?.sentences ?? []).map((line) => make('p', '', line));
    this.find('lead-said').replaceChildren(...lines);
    this.element.dataset.state = found ? 'measured' : isRunning ? 'running' : 'open';
  }
}
