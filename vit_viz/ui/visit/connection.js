// Whether the server answers. Requests that reach nobody wait, so that no part of the page has to speak of it; one bar does, above the
// page or in the dialog over it, and the page opens again by itself once the server is back: a new server knows nothing of this visit.

import { having, make } from '../kit/elements.js';
import { routeUrl } from '../../explorer/source.js';

const PAUSE = 1000; // milliseconds between two questions whether it answers
const LOST = 'The server does not answer. The page opens again as it is once it does.';
const STILL = 'Still no answer from the server. The page opens again as it is once there is one.';
const OURS = () => /** @type {any} */ (window).gradio_config?.app_id;

/** Follows the requests of a window. */
export class Connection {
  isLost = false;
  timer = 0;
  isLeaving = false; // the page is being closed: its requests end
  /** @type {Promise<boolean> | null} */ asking = null;

  /** @param {{fetch: any}} scope @param {(isLost: boolean) => void} show @param {() => void} reopen */
  constructor(scope, show, reopen) {
    const { fetch } = scope;
    this.ask = (/** @type {any} */ target, /** @type {any} */ options) => fetch.call(scope, target, options);
    this.show = show;
    this.reopen = reopen;
    scope.fetch = (/** @type {any} */ target, /** @type {any} */ options) => this.fetch(target, options);
  }

  /** As the window's own, but for a server that does not answer: then it waits. @param {any} target @param {any} options */
  async fetch(target, options) {
    const signal = options?.signal ?? target?.signal;
    try {
      return await this.ask(target, options);
    } catch (error) {
      if (signal?.aborted || this.isLeaving || (await this.answers())) throw error;
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    }
  }

  /** Whether the server of this page answers; where it does not, the page says so and asks on. */
  answers() {
    if (this.isLeaving) return Promise.resolve(true);
    this.asking ??= this.check().finally(() => (this.asking = null));
    return this.asking;
  }

  async check() {
    const id = await this.identity();
    if (id === OURS() && !this.isLost) return true;
    if (id !== null) {
      this.isLeaving = true;
      this.reopen();
      return false;
    }
    this.lose();
    return false;
  }

  /** What the server calls itself; null where none answers. */
  async identity() {
    try {
      const answer = await this.ask(routeUrl('/gradio_api/app_id'), { cache: 'no-store' });
      if (answer.ok) return (await answer.json()).app_id;
      return answer.status < 500 ? OURS() : null; // somebody is there who refuses
    } catch {
      return null;
    }
  }

  /** This page cannot go on as it is. */
  lose() {
    this.isLost = true;
    this.show(true);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.answers(), PAUSE);
  }
}

/** The bar above the page: what it says, and a button that asks at once. @param {() => void} ask */
export function makeBar(ask) {
  const words = make('span', 'vv-lost-words');
  const button = having(make('button', 'vv-button', 'Reload'), { type: 'button' });
  const bar = having(make('div', 'vv-lost vv-row', words, button), { role: 'alert' });
  button.addEventListener('click', () => {
    words.textContent = STILL; // until it answers
    ask();
  });
  const show = () => {
    words.textContent ||= LOST;
    const page = document.querySelector('.gradio-container') ?? document.body;
    const place = [...document.querySelectorAll('dialog:modal')].at(-1) ?? page;
    if (bar.parentElement !== place) place.prepend(bar);
    document.documentElement.dataset.lost = '';
  };
  return { bar, show };
}

/** Lets the page say when its server does not answer. @param {() => void} reopen */
export function keepConnected(reopen) {
  const { show } = makeBar(() => void connection.answers());
  const connection = new Connection(window, show, reopen);
  window.addEventListener('pagehide', () => (connection.isLeaving = true));
  window.addEventListener('pageshow', () => (connection.isLeaving = false)); // it may be shown again as it was
  window.addEventListener('online', () => void connection.answers());
  return connection;
}
