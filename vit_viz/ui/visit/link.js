// The address bar, which holds the view, and the browser's history. Nothing else on the page writes it; whoever wants something in it
// says so here. A dialog over the page is an entry of the history of its own, so that Back closes it; closing it in another way takes the
// entry out of the way.

/** What a browser that keeps no cookies is known by; nobody can guess it. */
export const PAGE_NAME = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
  byte.toString(16).padStart(2, '0'),
).join('');

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
const LOST = 5000; // milliseconds after which the browser has lost a step back: it drops those that come while it loads something

/**
 * @typedef {{dialog: HTMLDialogElement, below: string, now?: string}}
 *   Opened below: what the address held when it was opened; now: what it holds since
 */

/** What this page does to its history. */
class Visit {
  /** @type {Opened[]} one over the other */ dialogs = [];
  /** @type {HTMLDialogElement[]} that Forward can open again, by their place */ known = [];
  isLeaving = false; // the entry of a dialog that was closed; the browser says so a moment later
  leaving = 0; // the timer after which it is asked again
  /** @type {(() => void)[]} what is to be written after that */ waiting = [];
  isCatchingUp = false; // it is being written
  /** @type {WeakSet<Event>} of the browser, about a dialog alone */ ofDialogs = new WeakSet();
  /** @type {Record<string, string | null>} parts of the link that are written once the hand rests */ later =
    {};
  writing = 0; // its timer
  /** @type {Set<() => void>} called when there is another link */ listeners = new Set();

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

  /** Writes what was to be written later, now. @param {{push: boolean}} how */
  put(how) {
    clearTimeout(this.writing);
    const set = this.later;
    this.later = {};
    if (Object.keys(set).length) this.set(set, how);
  }

  /** Changes a part of the link. @param {Record<string, string | null>} set @param {{push: boolean}} how */
  set(set, how) {
    if (this.isLeaving) return void this.waiting.push(() => this.set(set, how));
    const after = linkWith(set);
    if (after !== linkWith({})) this.write(after, how.push); // whoever wrote a link by hand may have written it otherwise
  }

  changed() {
    if (this.isCatchingUp) return; // nobody sees a link between two that are written at once
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

  /** Its visitor or the page has closed a dialog: one entry is left. @param {HTMLDialogElement} dialog */
  closed(dialog) {
    if (this.isLeaving) return void this.waiting.push(() => this.closed(dialog));
    const place = this.dialogs.findIndex((opened) => opened.dialog === dialog);
    if (place < 0) return; // Back has closed it
    const [{ below, now }] = this.dialogs.splice(place, 1);
    const over = this.dialogs.at(place);
    if (over) {
      // was opened over it before the browser said that it is closed: takes its place
      Object.assign(over, { below, now: over.now ?? now });
      this.known = this.dialogs.map((opened) => opened.dialog);
    }
    this.leave(1);
  }

  /** Goes back by entries of dialogs; what was chosen beside them stays. @param {number} entries */
  leave(entries) {
    const held = location.search;
    this.isLeaving = true;
    this.waiting.unshift(() => this.write(held, false));
    this.goBack(entries);
  }

  /** @param {number} entries */
  goBack(entries) {
    this.leaving = window.setTimeout(() => this.goBack(entries), LOST);
    history.go(-entries);
  }

  /** Opens and closes dialogs as the entry says; returns whether the view is the one of before. */
  settle() {
    const count = history.state?.[MARK] ?? 0;
    if (this.isLeaving) {
      this.isLeaving = false;
      clearTimeout(this.leaving);
      this.isCatchingUp = true;
      for (const run of this.waiting.splice(0)) run();
      this.isCatchingUp = false;
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

const REST = 200; // milliseconds without another change after which what a slider says is written: browsers limit writes a second

/** The address bar as the store of the rooms has it; the row of tabs writes there, too. @type {import('../../web/kit/store.js').Place} */
export const PLACE = Object.freeze({
  search() {
    return linkWith(visit().later);
  },

  write(set, { push, soon = false }) {
    const one = visit();
    if (push) one.put({ push: false }); // it is of the view that Back leads to
    Object.assign(one.later, set);
    clearTimeout(one.writing);
    if (soon && !push) one.writing = window.setTimeout(() => one.put({ push }), REST);
    else one.put({ push });
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
