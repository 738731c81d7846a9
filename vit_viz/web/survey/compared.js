// The Survey tab beside a second survey: what the two say together, and a table of the heads that moved. The photos that changed their
// answer are lists of the room. Texts are the owner's: they are written with textContent only.

import { routeUrl } from '../../explorer/source.js';
import { fetched, fillTable, having, make, optionOf, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { short } from '../../ui/kit/numbers.js';
import { Job } from '../kit/job.js';
import { moreWords, PAGE } from './lists.js';

/**
 * @typedef {{layer: number, head: number, statistic: string, words: string, unit: string, photos: number, before: number, after:
 *   number, difference: number, low: number, high: number, effect: number | null}} Moved effect: null where all photos moved alike
 * @typedef {{name: string, model: string, photos: number, changed: number | null, accuracy: string, heads: string, note?: string,
 *   moved: Moved[], refused?: string}} Compared changed: null where outputs are values; note: on their kinds
 */

const signed = (/** @type {number} */ value) => `${value > 0 ? '+' : ''}${short(value)}`;

/** How many photos have another answer in the second survey. @param {Compared} compared */
export function findingWords({ name, photos, changed }) {
  if (changed === null) return `Compared with ${name}: ${photos.toLocaleString('en')} photos`;
  const count = changed.toLocaleString('en');
  return `Compared with ${name}: ${count} of ${photos.toLocaleString('en')} photos changed their answer`;
}

/** What was compared. @param {Compared} compared */
export function comparedWords({ name, model, accuracy }) {
  const chance = accuracy ? ' p: how likely so uneven a split is where both are equally good.' : '';
  return `Before: this survey. After: ${name}, through ${model}. Over all photos that both could read, whatever the filter.${chance}`;
}

/** The line of a statistic of a head: its name chooses the head. @param {Moved} one */
export function movedLine({
  layer,
  head,
  statistic,
  words,
  unit,
  before,
  after,
  difference,
  low,
  high,
  effect,
}) {
  const name = make('button', 'vv-survey-class vv-bare', `layer ${layer}, head ${head}`);
  return [
    having(name, { 'data-moved': `${layer}/${head}/${statistic}`, title: 'Choose this head' }),
    `${words} (${unit})`,
    `${short(before)} to ${short(after)}`,
    `${signed(difference)} (${signed(low)} to ${signed(high)})`,
    effect === null ? 'alike in all photos' : signed(effect),
  ];
}

/** What is beside the opened survey. */
export class Comparison {
  shown = PAGE;
  /** @type {Compared | null} */ compared = null;
  asked = ''; // the survey that was to be compared last
  job = new Job(() => this.draw());

  /** @param {(name: string) => HTMLElement} find @param {string[]} others names of the surveys that are open */
  constructor(find, others) {
    this.find = find;
    const options = others.map((name) => optionOf(name, name));
    find('survey-second').replaceChildren(optionOf('', 'no other survey'), ...options);
    find('survey-second-field').hidden = !others.length;
  }

  /** The survey that is shown beside the opened one; '' where there is none. */
  get second() {
    return this.compared?.name ?? '';
  }

  /** Compares with a survey; tells whether that went. */
  ask(/** @type {string} */ second) {
    this.asked = second;
    const ask = async (/** @type {AbortSignal} */ stop) => {
      const answer = await fetched(`/vit_viz/survey/compared?${new URLSearchParams({ second })}`, stop);
      const compared = /** @type {Compared} */ (await answer.json());
      if (compared.refused) throw new Error(compared.refused);
      return compared;
    };
    const whole = (/** @type {Compared} */ compared) => void Object.assign(this, { compared, shown: PAGE });
    return this.job.follow(ask, { whole }).then(
      () => true,
      () => false,
    );
  }

  /** What the view says is beside the opened survey; tells whether it had to be compared, and was. */
  async show(/** @type {string} */ second) {
    this.job.end();
    const isOther = second !== this.second;
    if (isOther) this.compared = null;
    if (isOther && second) return this.ask(second);
    this.draw();
    return false;
  }

  draw() {
    const { find, second, compared, asked, job } = this;
    const asking = job.isRunning ? asked : '';
    const refusal = job.error && `Not compared with ${asked}. ${job.error}`;
    /** @type {HTMLSelectElement} */ (find('survey-second')).value = asking || second;
    find('survey-list-changed').hidden = !second;
    find('survey-compared').hidden = !(second || asking || refusal);
    find('survey-compared').setAttribute('aria-busy', String(Boolean(asking)));
    showError(find('survey-compared-error'), refusal);
    const title = asking ? `Comparing with ${asking} …` : compared && findingWords(compared);
    showText(find('survey-compared-title'), title);
    const about = [compared?.note, compared?.accuracy].filter(Boolean).join(' ');
    showText(find('survey-compared-accuracy'), about);
    showText(find('survey-compared-heads'), compared?.heads);
    showText(find('survey-compared-words'), compared && comparedWords(compared));
    this.drawMoved();
  }

  drawMoved() {
    const { find, compared, shown } = this;
    const moved = compared?.moved ?? [];
    find('survey-moved').hidden = !moved.length;
    const lines = moved.slice(0, shown).map(movedLine);
    const heads = ['head', 'statistic', 'mean before, after', 'mean difference (95% interval)', 'effect'];
    const rows = fillTable(find('survey-moved-table'), heads, lines);
    for (const row of rows) [...row.children].forEach((cell, i) => having(cell, { 'data-label': heads[i] })); // of a card on a phone
    find('survey-moved-more').textContent = moreWords(shown, moved.length);
    find('survey-moved-more').hidden = shown >= moved.length;
    const file = /** @type {HTMLAnchorElement} */ (find('survey-moved-csv'));
    file.href = routeUrl(`/vit_viz/survey/heads.csv?${new URLSearchParams({ second: this.second })}`);
    file.textContent = `Save ${moved.length.toLocaleString('en')} changes of heads (CSV)`;
  }

  /** The next heads, the first of them in focus. */
  more() {
    const first = this.shown;
    this.shown += PAGE;
    this.drawMoved();
    this.find('survey-moved-table').querySelectorAll('button')[first]?.focus();
  }
}
