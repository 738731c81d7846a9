// What its visitor looks at: one value for each name in links, and the link is all of it. Who reads a value is told when it changes:
// by a room, by Back and Forward, by whoever else writes the link.

import { isPossible, readOption, writeOption } from '../../explorer/options.js';
import { batch, signal } from './preact.js';

/**
 * A name in links: an option of a view as Python declares it, or a number that may also be a word.
 * @typedef {import('../../explorer/options.js').Option & {numbered?: boolean}} Field numbered: a text or none, but of digits a number
 *
 * Where the link is kept: the address bar.
 * @typedef {object} Place
 * @property {() => string} search
 * @property {(change: Record<string, string | null>, how: {push: boolean}) => void} write null takes a name away; push: Back leads
 *     to what was there before
 * @property {(changed: () => void) => void} listen calls back whenever there is another link
 */

/** What a view is of; everything else says how that is shown. */
export const SUBJECT = Object.freeze(['model', 'image', 'mode', 'size', 'part', 'edits']);

export class Store {
  /** @type {Record<string, import('./preact.js').Signal<any>>} values by their names in links */ view = {};

  /** @param {Field[]} fields every name in links @param {Place} place */
  constructor(fields, place) {
    this.fields = new Map(fields.map((field) => [field.link, field]));
    this.place = place;
    for (const [name, field] of this.fields) this.view[name] = signal(field.default);
    this.read();
    place.listen(() => this.read());
  }

  /** Takes what the link says; what is not possible has its default, and the server says why. */
  read() {
    const link = new URLSearchParams(this.place.search());
    batch(() => {
      for (const [name, field] of this.fields) this.view[name].value = parsed(field, link.get(name));
    });
  }

  /** @param {Record<string, any>} change values by their names in links @param {{push?: boolean}} [how] push: Back leads to what was there before */
  set(change, { push = false } = {}) {
    /** @type {Record<string, string | null>} */
    const link = {};
    for (const [name, value] of Object.entries(change)) {
      const field = /** @type {Field} */ (this.fields.get(name));
      link[name] = writeOption(field, value);
    }
    this.place.write(link, { push });
    batch(() => Object.entries(change).forEach(([name, value]) => (this.view[name].value = value)));
  }

  /** What is looked at, as a link, whatever is shown of it. */
  subject() {
    const link = new URLSearchParams();
    for (const name of SUBJECT) {
      const text = writeOption(/** @type {Field} */ (this.fields.get(name)), this.view[name].value);
      if (text !== null) link.set(name, text);
    }
    return link.toString();
  }
}

/** @param {Field} field @param {string | null} text */
function parsed(field, text) {
  if (!text) return field.default;
  if (field.numbered)
    return /^\d{1,4}$/.test(text) ? Number(text) : field.choices?.includes(text) ? text : field.default;
  const value = readOption(field, text);
  if (!isPossible(field, value)) return field.default;
  return field.step === undefined ? value : Math.round(Number(value) * 1e4) / 1e4; // as Python has it
}
