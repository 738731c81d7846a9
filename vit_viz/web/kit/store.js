// What its visitor looks at: one value for each name in links, and the link is all of it. Who reads a value is told when it changes:
// by a room, by Back and Forward, by whoever else writes the link.

import { isPossible, readOption, writeOption } from '../../explorer/options.js';
import { batch, signal } from './preact.js';

/**
 * A name in links: an option of a view as Python declares it, or a number that may also be a word.
 * @typedef {import('../../explorer/options.js').Option & {numbered?: boolean, usual?: string, place?: boolean, many?: boolean, of?: string,
 *     renamed?: Record<string, string>}} Field
 *     numbered: a text or none, but of digits a number; usual: what no text stands for; place: whether Back leads to its value of before;
 *     many: it is called "ask.*", and its value is a link of its own, of all names that begin with "ask.", sorted;
 *     of: the question whose option it is, or what options of no question are about, as "drawing"; renamed: values by what links of
 *     earlier versions call them
 *
 * Where the link is kept: the address bar.
 * @typedef {object} Place
 * @property {() => string} search
 * @property {(change: Record<string, string | null>, how: How) => void} write null takes a name away
 * @property {(changed: () => void) => void} listen calls back whenever there is another link
 *
 * @typedef {{push: boolean, soon?: boolean}} How push: Back leads to what was there before; soon: more of it may follow at once, as of
 *     a slider
 */

/** What a view is of; everything else says how that is shown. */
export const SUBJECT = Object.freeze([
  'model',
  'image',
  'mode',
  'size',
  'part',
  'edits',
  'sentences',
  'templates',
]);

/** The same, and the class that is asked about. */
export const TARGETED = Object.freeze([...SUBJECT, 'target']);

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
      for (const [name, field] of this.fields)
        this.view[name].value = parsed(field, field.many ? beginningLike(name, link) : link.get(name));
    });
  }

  /**
   * @param {Record<string, any>} change values by their names in links
   * @param {Partial<How>} [how] push: where it is not said, another place is pushed
   */
  set(change, { push, soon = false } = {}) {
    const changed = Object.entries(change).filter(([name, value]) => value !== this.view[name].peek());
    if (!changed.length) return;
    /** @type {Record<string, string | null>} */
    const link = {};
    for (const [name, value] of changed) {
      const field = /** @type {Field} */ (this.fields.get(name));
      const before = field.many ? [...new URLSearchParams(this.view[name].peek()).keys()] : [];
      const now = field.many ? [...new URLSearchParams(value)] : [[name, writeOption(field, value)]];
      Object.assign(link, Object.fromEntries([...before.map((one) => [one, null]), ...now]));
    }
    push ??= changed.some(([name]) => this.fields.get(name)?.place);
    this.place.write(link, { push, soon });
    batch(() => changed.forEach(([name, value]) => (this.view[name].value = value)));
  }

  /**
   * Sets what a part of a link says.
   * @param {Record<string, string | null>} link texts by their names in links; null: the default
   * @param {Partial<How>} [how]
   */
  take(link, how) {
    const read = Object.entries(link).map(([name, text]) => [
      name,
      parsed(/** @type {Field} */ (this.fields.get(name)), text),
    ]);
    this.set(Object.fromEntries(read), how);
  }

  /**
   * Looks at something else, which Back leaves: what meant something there alone goes, as `ViewState.on_subject` in Python has it.
   * @param {Record<string, any>} change of what a view is of @param {Partial<How>} [how]
   */
  look(change, { push = true } = {}) {
    const isAnother = (/** @type {string[]} */ ...names) => names.some((name) => name in change);
    const [query, edits] = [this.view.q.peek(), this.view.edits.peek()];
    this.set(
      {
        q: BY_PLACE.test(query) ? '' : query,
        gone: '',
        edits: isAnother('model') ? '' : onAnyGrid(edits),
        ...(isAnother('model') && { sentences: '', templates: '' }),
        ...(isAnother('model', 'image', 'part') && { size: 0, target: '' }),
        ...(isAnother('image') && { part: '' }),
        ...change,
      },
      { push },
    );
  }

  /** The options of a question that are not at their defaults, as its body takes them; those of "drawing" as its figure does. @param {string} about */
  optionsOf(about) {
    const own = [...this.fields.values()].filter(({ of }) => of === about);
    const chosen = own.filter(({ link, default: usual }) => this.view[link].value !== usual);
    return Object.fromEntries(chosen.map(({ name, link }) => [name, this.view[link].value]));
  }

  /**
   * The answer to a question as a file, drawn as the link says.
   * @param {string} name @param {any} body @param {any} [how] else it is drawn @returns {import('../../explorer/source.js').Saved}
   */
  saved(name, body, how) {
    return [name, { ...body, figure: { ...this.optionsOf('drawing'), ...how } }];
  }

  /** What is looked at, as a link, whatever is shown of it. */
  subject() {
    return this.linkOf(SUBJECT);
  }

  /** A part of the link. @param {readonly string[]} names */
  linkOf(names) {
    const link = new URLSearchParams();
    for (const name of names) {
      const field = /** @type {Field} */ (this.fields.get(name));
      const text = writeOption(field, this.view[name].value) ?? field.usual;
      if (!text) continue;
      for (const [one, value] of field.many ? new URLSearchParams(text) : [[name, text]])
        link.set(one, value);
    }
    return link.toString();
  }
}

const BY_PLACE = /^\s*\d/; // a query by its patches
const FORBIDDEN_BY_PLACE = /^forbid (?:[^>]*>)?\s*(?:\d|token )/; // an edit that names patches by their place

/** What edits still mean the same on another grid of patches. @param {string} edits in words */
function onAnyGrid(edits) {
  return edits
    .split(';')
    .filter((edit) => !FORBIDDEN_BY_PLACE.test(edit.trim()))
    .join(';');
}

/** The part of a link whose names begin like one with a star. @param {string} name @param {URLSearchParams} link */
function beginningLike(name, link) {
  const pairs = [...link].filter(([one]) => one.startsWith(name.slice(0, -1)));
  return new URLSearchParams(pairs).toString();
}

/** A link with its names in order, so that equal ones are the same text. @param {string} text */
function sorted(text) {
  const link = new URLSearchParams(text);
  link.sort();
  return link.toString();
}

/** @param {Field} field @param {string | null} text */
function parsed(field, text) {
  if (!text) return field.default;
  if (field.many) return sorted(text);
  if (field.numbered)
    return /^\d{1,4}$/.test(text) ? Number(text) : field.choices?.includes(text) ? text : field.default;
  const value = readOption(field, field.renamed?.[text] ?? text);
  if (!isPossible(field, value)) return field.default;
  return field.step === undefined ? value : Math.round(Number(value) * 1e4) / 1e4; // as Python has it
}
