// Whether the lead of one class over another goes with the patches that the difference of their maps gives to the one: a button that
// measures it, how far that is, and the curve.

import { finder, make } from '../../ui/kit/elements.js';
import { Job, JobBar, STOPPED } from '../kit/job.js';
import { Fall } from './fall.js';
/** @import { Tell } from '../kit/ask.js' */
/** @import { Trust } from './card.js' */

/** What is known of the map on the stage; cost: of measuring it, in words. @typedef {Trust & {key: string, label: string, question: string, cost: string}} Known */

/** The part of the stage below the maps of two classes. */
export class Lead {
  /** @type {Known | null | undefined} */ known;
  key = ''; // of the map that was measured last
  /** @type {Trust | undefined} what that found */ found;
  job = new Job(() => this.draw());

  /** @param {HTMLElement} element @param {(stop: AbortSignal, tell: Tell) => Promise<Trust>} ask */
  constructor(element, ask) {
    this.element = element;
    this.find = finder(element);
    this.fall = new Fall(this.find('fall'));
    this.ask = ask;
    this.bar = new JobBar(this.find('job'), { begin: () => this.measure(), end: () => this.end() });
  }

  /** Another map on the stage: what is known of it, or nothing where it is no difference. */
  show(/** @type {Known | null | undefined} */ known) {
    this.known = known;
    this.draw();
  }

  /** Measures that of the map on the stage, in place of what runs. */
  measure() {
    Object.assign(this, { key: this.known?.key, found: undefined });
    void this.job.follow(this.ask, { whole: (found) => void (this.found = found) });
  }

  end() {
    if (this.job.isRunning) this.job.end(STOPPED);
  }

  draw() {
    const { known } = this;
    this.element.hidden = !known;
    if (!known) return;
    const isMeasured = this.key === known.key;
    const found = known.curves ? known : isMeasured ? this.found : undefined;
    const job = isMeasured && !found ? this.job : new Job();
    const words = job.words || job.error || known.cost;
    this.bar.show(job, found ? {} : { words, go: known.question });
    this.fall.draw(found, known.label);
    const lines = (found?.sentences ?? []).map((line) => make('p', '', line));
    this.find('lead-said').replaceChildren(...lines);
    this.element.dataset.state = found ? 'measured' : job.isRunning ? 'running' : 'open';
  }
}
