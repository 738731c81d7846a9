// The header over the store, without a server: a test says what each question is answered with, and how far it is told to be.

import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { headerOf } from '../../vit_viz/web/header/header.js';
import { Header } from '../../vit_viz/web/header/room.js';
import { Browser, parse, ending } from './browser.js';
import { placeAt, settle, usualFields } from './room.js';

export const PROOF = { text: 'verified', title: 'why <b>', state: 'proven' };
const FACTS = { top: [{ name: 'lion', probability: 0.96 }], short: '2 x 3', card: 'ViT <b>', badge: PROOF };
export const SAMPLES = {
  pictures: ['lion', 'tower'].map((name) => ({ id: name, name, thumbnail: `data:${name}` })),
  chosen: '',
  aspects: { '': 1, lion: 1, tower: 0.5 },
};

/**
 * @param {{search?: string, answers?: Record<string, (body: any, stop: AbortSignal, tell: any) => any>, globals?: any,
 *   browser?: Browser}} [how]
 */
export function headerPage({ search = '', answers = {}, globals = {}, browser = new Browser(search) } = {}) {
  const element = /** @type {any} */ (parse('<div class="vv-part"></div>').children[0]);
  browser.install(globals);
  ending.after(() => render(null, element));
  const place = placeAt(search);
  const store = new Store(usualFields, place);
  /** @type {[string, any][]} */
  const asked = [];
  /** @type {Record<string, any>} */
  const usual = {
    open: () => FACTS,
    offered: () => SAMPLES,
    edited: () => ({ words: '', each: [] }),
    load: () => ({}),
  };
  const ask = asker({
    async answer(name, body, stop, tell) {
      asked.push([name, body]);
      const answer = (answers[name] ?? usual[name])(body, stop, tell ?? (() => {}));
      const ended = new Promise((_, failed) => stop.addEventListener('abort', () => failed(stop.reason)));
      return Promise.race([answer, ended]);
    },
    keeps: () => false,
  });
  const turn = signal(0);
  const header = headerOf({ store, source: SERVER, ask, turn }, SAMPLES);
  const drawn = { header, tabs: {}, questions: '' };
  render(html`<${Header} ...${drawn} />`, element);
  return {
    ...{ browser, store, place, header, turn, asked, settle, element },
    /** The bodies of the questions of a name. @param {string} name */
    bodies: (name) => asked.filter(([one]) => one === name).map(([, body]) => body),
    find: (/** @type {string} */ name) => /** @type {any} */ (element.querySelector(`.vv-${name}`)),
    all: (/** @type {string} */ selector) => /** @type {any[]} */ (element.querySelectorAll(selector)),
  };
}

/** An answer that a test gives when it wants to. */
export function later() {
  /** @type {(value: any) => void} */
  let give = () => {};
  /** @type {(error: Error) => void} */
  let refuse = () => {};
  const promise = new Promise((done, failed) => {
    give = done;
    refuse = failed;
  });
  return {
    promise,
    give: (/** @type {any} */ value) => (give(value), settle()),
    refuse: (/** @type {string} */ words) => (refuse(new Error(words)), settle()),
  };
}

/** A store of its own, over a link of its own or the address bar. @param {any} [place] */
export function storeAt(place = placeAt()) {
  return new Store(usualFields, place);
}
