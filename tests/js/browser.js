// A stand-in for the window around the elements: timers that a test turns by hand, the address bar, and how Gradio runs a component.

import { readFileSync } from 'node:fs';
import { afterEach } from 'node:test';

import { Element, page, parse } from './document.js';

export { Element, parse };

/** @type {(() => void)[]} */
const undone = [];

/** What is undone after a test, the last first: what is drawn goes while the window is still there. */
export const ending = { after: (/** @type {() => void} */ undo) => void undone.push(undo) };
afterEach(() => {
  for (const undo of undone.splice(0).reverse()) undo();
});

/** The file beside the tests' own address, as text. */
export function read(/** @type {string} */ path) {
  return readFileSync(new URL(path, import.meta.url), 'utf8');
}

/** Puts globals in place for modules that look them up; what was there before comes back at the end of the test. */
export function withGlobals(/** @type {Record<string, unknown>} */ globals) {
  for (const [name, value] of Object.entries(globals)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    ending.after(() => {
      if (before) Object.defineProperty(globalThis, name, before);
      else delete (/** @type {any} */ (globalThis)[name]);
    });
  }
}

/** The options of the tabs, as Python declares them. @type {Record<'tokens', any[]>} */
export const OPTIONS = JSON.parse(read('./tab_options.json'));

/** Timers, the address bar and the page, as globals; a test turns the clock. */
export class Browser {
  constructor(search = '') {
    this.now = 0;
    this.next = 1;
    /** @type {Map<number, {at: number, every: number, run: () => void}>} */ this.timers = new Map();
    /** @type {{how: string, address: string}[]} */ this.visited = [];
    this.still = false; // whether motion is unwelcome
    this.touch = false; // whether the pointer is a finger
    this.copied = '';
    /** @type {Element[]} */ this.made = [];
    const location = { search, pathname: '/app', hash: '#here', href: 'http://page/' };
    const make = (/** @type {string} */ tag) => {
      const node = new Element(tag);
      this.made.push(node);
      return node;
    };
    const clear = (/** @type {number} */ id) => void this.timers.delete(id);
    const window = /** @type {any} */ (new Element('window'));
    Object.assign(window, {
      setTimeout: (/** @type {() => void} */ run, delay = 0) => this.later(run, delay),
      setInterval: (/** @type {() => void} */ run, delay = 0) => this.later(run, delay, delay),
      clearInterval: clear,
      innerHeight: 1000,
      performance: { now: () => this.now },
      CustomEvent: page.CustomEvent,
    });
    const document = Object.assign(new Element('document'), {
      createElement: make,
      createElementNS: page.document.createElementNS.bind(page.document),
      documentElement: new Element('html'),
    });
    Object.defineProperty(document, 'activeElement', { get: () => page.document.activeElement });
    const { HTMLElement, HTMLInputElement, HTMLSelectElement, HTMLButtonElement } = page;
    this.window = window;
    this.location = location;
    this.globals = {
      window,
      location,
      document,
      ...{ Element, HTMLElement, HTMLInputElement, HTMLSelectElement, HTMLButtonElement },
      history: this.history(),
      ...{ clearTimeout: clear, cancelAnimationFrame: clear },
      requestAnimationFrame: (/** @type {() => void} */ run) => this.later(run, 16),
      matchMedia: (/** @type {string} */ query) => ({
        matches: /pointer|hover/.test(query) ? this.touch : this.still,
      }),
      ResizeObserver: class {
        observe() {}

        disconnect() {}
      },
      navigator: {
        clipboard: { writeText: async (/** @type {string} */ text) => void (this.copied = text) },
      },
    };
  }

  /** The browser's history: entries with their state; going elsewhere is told at once. */
  history() {
    const entries = [{ state: /** @type {any} */ (null), search: this.location.search }];
    let at = 0;
    const write =
      (/** @type {string} */ how) =>
      (/** @type {any} */ state, /** @type {string} */ _title, /** @type {string} */ to) => {
        if (to.split('#')[0] !== this.location.search) this.visited.push({ how, address: to });
        this.location.search = /[?][^#]*/.exec(to)?.[0] ?? '';
        if (how === 'push') at += 1;
        entries.splice(at, how === 'push' ? Infinity : 1, { state, search: this.location.search });
      };
    const go = (/** @type {number} */ by) => {
      at += by;
      this.location.search = entries[at].search;
      this.window.fire('popstate');
    };
    const history = { pushState: write('push'), replaceState: write('replace'), go, back: () => go(-1) };
    return Object.defineProperties(history, {
      state: { get: () => entries[at].state },
      length: { get: () => entries.length },
    });
  }

  later(/** @type {() => void} */ run, /** @type {number} */ delay, every = 0) {
    this.timers.set(this.next, { at: this.now + delay, every, run });
    return this.next++;
  }

  /** Turns the clock on by milliseconds. */
  pass(/** @type {number} */ milliseconds) {
    const end = this.now + milliseconds;
    for (;;) {
      const due = [...this.timers]
        .filter(([, timer]) => timer.at <= end)
        .sort((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      const [id, timer] = due;
      this.now = Math.max(this.now, timer.at);
      if (timer.every) timer.at += timer.every;
      else this.timers.delete(id);
      timer.run();
    }
    this.now = end;
  }

  /** Puts the globals in place, and some more. */
  install(more = {}) {
    withGlobals({ ...this.globals, ...more });
  }
}

/**
 * Fills a part of the page, whose globals are there until the end of the test.
 * @param {(element: any) => void} fill @param {{html?: string, browser?: Browser}} [how] html: what it begins with
 */
export function mount(fill, { html = '<div></div>', browser = new Browser() } = {}) {
  const element = parse(html);
  browser.install();
  fill(element);
  const find = (/** @type {string} */ name) => /** @type {Element} */ (element.querySelector(`.vv-${name}`));
  return { element, browser, find };
}

/** What a button saves: the question, and its body. @param {any} root @param {any} button @returns {[name: string, body: any]} */
export function savedBy(root, button) {
  /** @type {any} */
  let saved;
  root.addEventListener('vv-figure', (/** @type {any} */ { detail }) => void (saved = detail.question));
  button.click();
  return saved;
}
