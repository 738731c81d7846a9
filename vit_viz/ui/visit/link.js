// The address bar, which holds the view, and the browser's history. Nothing else on the page writes it; whoever wants something in it
// says so here. A dialog over the page is an entry of the history of its own, so that Back closes it; closing it in another way takes the
// entry out of the way.

/** What a browser that keeps no cookies is known by: the name of this page, once the server has heard of it. */
export const identity = { page: '' };

/** @type {() => void} */
let hear;
/** Until the server has heard of this page. @type {Promise<void>} */
export const heardOf = new Promise((done) => (hear = done));

/** The server has answered a question of this page. */
export function isHeardOf() {
  hear();
}

/** The query string that the address bar holds now. */
export function currentLink() {
  return location.search;
}

/** The whole address, to be sent to somebody. */
export function wholeAddress() {
  visit().put({ push: false });
  return location.href;
}

const MARK = 'vvDialogs'; // in the state of an entry: how many dialogs are open there

/**
 * @typedef {{dialog: HTMLDialogElement, below: string, now?: string}}
 *   Opened below: what the address held when it was opened; now: what it holds since
 */

/** What this page does to its history. */
class Visit {
  /** @type {Opened[]} one over the other */ dialogs = [];
  /** @type {HTMLDialogElement[]} that Forward can open again, by their place */ known = [];
  isLeaving = false; // the entry of a dialog that was closed; the browser says so a moment later
  /** @type {(() => void)[]} what is to be written after that */ waiting = [];
  /** @type {WeakSet<Event>} of the browser, about a dialog alone */ ofDialogs = new WeakSet();
  /** @type {Map<string, number>} of the view that each part of the link was last written for */ revisions =
    new Map();
  /** @type {Record<string, string | null>} parts of the link that are written once the hand rests */ later =
    {};
  /** @type {Record<string, string | null>} parts of the link that Python has not been told of */ untold = {};
  writing = 0; // timers of both
  telling = 0;
  isArriving = true; // Python is asked what the address means, and has not answered
  since = 0; // revision of the view that the last arrival led to: answers to what was done before it come too late
  told = 0; // counts what rooms have written
  heard = 0; // the last of these that is in the view that Python has
  /** @type {Map<string, number>} by which of them each part of the link was last written */ unheard =
    new Map();
  /** @type {Set<() => void>} called when there is another link */ listeners = new Set();
  /** @type {import('../kit/elements.js').Trigger} */ trigger = () => {};

  constructor() {
    window.addEventListener('popstate', (event) => {
      if (this.settle()) this.ofDialogs.add(event);
      else this.forget();
      this.changed();
    });
  }

  /** The link is another one: what was to be written into the one before is not. */
  forget() {
    clearTimeout(this.writing);
    this.later = {};
  }

  /** What Python is asked when the page opens, or went Back: it reads the whole address. */
  arriving() {
    clearTimeout(this.telling);
    this.isArriving = true;
    this.untold = {};
    return { search: location.search, told: this.told };
  }

  /** Python has answered: from here it follows. */
  arrived() {
    this.isArriving = false;
    this.tell();
  }

  /** Writes what was to be written later, now. @param {{push: boolean}} how */
  put(how) {
    clearTimeout(this.writing);
    const set = this.later;
    this.later = {};
    const link = new URLSearchParams(location.search);
    if (Object.entries(set).every(([name, text]) => link.get(name) === text)) return;
    write({ set, ...how });
    this.told += 1;
    for (const name of Object.keys(set)) this.unheard.set(name, this.told);
    Object.assign(this.untold, set);
  }

  /** Lets Python follow, unless it is about to hear of the whole address. */
  tell() {
    clearTimeout(this.telling);
    if (this.isArriving || !Object.keys(this.untold).length) return;
    this.trigger('follow', { set: this.untold, told: this.told });
    this.untold = {};
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  /** @param {string} search @param {boolean} push */
  write(search, push) {
    if (this.isLeaving) return void this.waiting.push(() => this.write(search, push));
    if (search === location.search) return;
    this.enter((search || location.pathname) + location.hash, search, push);
    this.changed();
  }

  /** @param {string} address @param {string} search @param {boolean} push */
  enter(address, search, push) {
    if (push && !this.dialogs.length) return history.pushState(stateWith(0), '', address);
    history.replaceState(stateWith(push ? 0 : this.dialogs.length), '', address);
    const top = this.dialogs.at(-1);
    if (top) top.now = search;
    if (!push) return;
    for (const [place, opened] of this.dialogs.entries()) {
      opened.below = search;
      history.pushState(stateWith(place + 1), '', address);
    }
  }

  /** @param {HTMLDialogElement} dialog */
  open(dialog) {
    if (this.isLeaving) return void this.waiting.push(() => this.open(dialog));
    this.show(dialog);
    this.known = this.dialogs.map((opened) => opened.dialog);
    history.pushState(stateWith(this.dialogs.length), '', location.search + location.hash);
  }

  /** @param {HTMLDialogElement} dialog */
  show(dialog) {
    dialog.showModal();
    this.dialogs.push({ dialog, below: location.search });
    dialog.addEventListener('close', () => this.closed(dialog), { once: true });
  }

  /** Its visitor or the page has closed a dialog: its entry is left, and those of dialogs over it. @param {HTMLDialogElement} dialog */
  closed(dialog) {
    const place = this.dialogs.findIndex((opened) => opened.dialog === dialog);
    if (place >= 0) this.leave(this.dialogs.splice(place).length); // else Back has closed it
  }

  /** Goes back by entries of dialogs; what was chosen beside them stays. @param {number} entries */
  leave(entries) {
    const held = location.search;
    this.isLeaving = true;
    this.waiting.unshift(() => this.write(held, false));
    history.go(-entries);
  }

  /** Opens and closes dialogs as the entry says; returns whether the view is the one of before. */
  settle() {
    const count = history.state?.[MARK] ?? 0;
    if (this.isLeaving) {
      this.isLeaving = false;
      for (const run of this.waiting.splice(0)) run();
      return true;
    }
    if (count < this.dialogs.length) return this.shut(this.dialogs.splice(count));
    if (count === this.dialogs.length) return false;
    if (this.known.length < count)
      this.leave(count - this.dialogs.length); // of before a reload
    else for (const dialog of this.known.slice(this.dialogs.length, count)) this.show(dialog);
    return true;
  }

  /** Back was pressed below these. @param {Opened[]} opened */
  shut(opened) {
    for (const { dialog } of [...opened].reverse()) dialog.close();
    const isSame = opened[0].below === location.search;
    const now = opened.at(-1)?.now;
    if (isSame && now !== undefined) this.write(now, false);
    return isSame;
  }
}

/** @type {WeakMap<History, Visit>} */
const visits = new WeakMap();

/** That of this page. */
export function visit() {
  const known = visits.get(history) ?? new Visit();
  visits.set(history, known);
  return known;
}

/** The state of an entry over which so many dialogs are open. @param {number} count */
function stateWith(count) {
  const state = { ...history.state, [MARK]: count };
  if (!count) delete state[MARK];
  return state;
}

/**
 * Puts a query string into the address bar, unless it is there already.
 * @param {string} search "" or what begins with "?"
 * @param {{push: boolean}} how push: a new entry of the history, so that Back leads to what was there before
 */
export function writeLink(search, { push }) {
  visit().write(search, push);
}

/** Leaves the entries of dialogs that were open before a reload. */
export function leaveDialogs() {
  if (history.state?.[MARK]) visit().leave(history.state[MARK]);
}

/** Opens the page again at its address. */
export function reopen() {
  location.reload();
}

/** Opens a dialog over the page, which Back closes. @param {HTMLDialogElement} dialog */
export function openDialog(dialog) {
  if (!dialog.open) visit().open(dialog);
}

/**
 * Calls back with the query string whenever the visitor goes Back or Forward to another view; returns what ends this.
 * @param {(search: string) => void} returned
 */
export function onReturn(returned) {
  const { ofDialogs } = visit();
  const listener = (/** @type {Event} */ event) => {
    if (!ofDialogs.has(event)) returned(location.search);
  };
  window.addEventListener('popstate', listener);
  return () => window.removeEventListener('popstate', listener);
}

/**
 * @typedef {object} Change a part of the link that changed
 * @property {Record<string, string | null>} set options by their name in the link; null takes one away
 * @property {boolean} push whether Back leads to what was there before
 * @property {number} [arrival] of which arrival it is the answer
 * @property {number} [revision] of the view that it leads to; later views have higher ones
 * @property {number} [heard] the last of what rooms have written that this view has
 */

const REST = 200; // milliseconds without another change after which what a slider says is written: browsers limit writes a second
const PAUSE = 50; // after which Python hears of what was done by a key that may be held

/** The address bar as the store of the rooms has it; the row of tabs writes there, too. @type {import('../../web/kit/store.js').Place} */
export const PLACE = Object.freeze({
  search() {
    return linkWith(visit().later);
  },

  /** Python follows; until it has, its answers to what was done before leave these parts of the link alone. */
  write(set, { push, soon = false }) {
    const one = visit();
    if (push) one.put({ push: false }); // it is of the view that Back leads to
    Object.assign(one.later, set);
    clearTimeout(one.writing);
    clearTimeout(one.telling);
    if (soon && !push) {
      one.writing = window.setTimeout(() => {
        one.put({ push });
        one.tell();
      }, REST);
      return;
    }
    one.put({ push });
    if (soon) one.telling = window.setTimeout(() => one.tell(), PAUSE);
    else one.tell();
  },

  listen: (changed) => void visit().listeners.add(changed),
});

/** The link with some of its names changed; null takes one away. @param {Record<string, string | null>} set */
function linkWith(set) {
  const link = new URLSearchParams(currentLink());
  for (const [name, text] of Object.entries(set)) text === null ? link.delete(name) : link.set(name, text);
  const search = link.toString().replaceAll('%2C', ',').replaceAll('%3B', ';');
  return search && `?${search}`;
}

/** Changes a part of the link; what a later view wrote stays where the answer of an earlier one comes after it. */
export function write(/** @type {Change | null} */ value) {
  if (!value) return;
  const one = visit();
  if (one.isLeaving) return void one.waiting.push(() => write(value));
  const { set, revision = 0, heard = 0 } = value;
  one.heard = Math.max(one.heard, heard);
  if (value.arrival) one.since = revision;
  const isNew = (/** @type {string} */ name) =>
    !(name in one.later) &&
    (one.unheard.get(name) ?? 0) <= one.heard &&
    revision >= Math.max(one.since, one.revisions.get(name) ?? 0);
  const news = Object.entries(set).filter(([name]) => !revision || isNew(name));
  if (revision) for (const [name] of news) one.revisions.set(name, revision);
  const before = linkWith({}); // whoever wrote a link by hand may have written it otherwise
  const after = linkWith(Object.fromEntries(news));
  if (after !== before) writeLink(after, value);
}
