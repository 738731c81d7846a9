// Whether the lead of one class over another goes with the patches that the difference of their maps gives to the one: a button that
// measures it, how far that is, and the curve.

import { finder, make, showJob } from '../kit/elements.js';
import { Fall } from '../../web/explain/fall.js';
/** @import { Job, Trigger } from '../kit/elements.js' */
/** @import { Trust } from '../../web/explain/card.js' */

/**
 * What is known of the map on the stage; cost: of measuring it, in words.
 * @typedef {Trust & {key: string, label: string, question: string, cost: string}} Known
 *
 * What the server says while it measures, and what it found in the end.
 * @typedef {Job & Partial<Trust> & {key: string}} News
 */

/** The part of the stage below the maps of two classes. */
export class Lead {
  /** @type {Known | null | undefined} */ known;
  /** @type {News | null} */ news = null;

  /** @param {HTMLElement} element @param {Trigger} trigger */
  constructor(element, trigger) {
    this.element = element;
    this.find = finder(element);
    this.fall = new Fall(this.find('fall'));
    this.button = /** @type {HTMLButtonElement} */ (this.find('measure'));
    this.button.addEventListener('click', () => {
      this.news = { key: this.known?.key ?? '', words: 'Starting …', share: 0 };
      trigger('measure', { key: this.news.key });
      this.draw();
    });
    this.find('stop').addEventListener('click', () => trigger('halt', {}));
  }

  /** Another map on the stage: what is known of it, or nothing where it is no difference. */
  show(/** @type {Known | null | undefined} */ known) {
    this.known = known;
    this.draw();
  }

  hear(/** @type {News | null} */ news) {
    if (!news) return;
    this.news = news;
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
