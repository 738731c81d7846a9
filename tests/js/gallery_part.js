// The gallery without a server: a test says what it is answered with, answers what it asks, and hears what is chosen and which map was made.

import { Gallery, galleryIn } from '../../vit_viz/web/explain/gallery.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Browser, component, mount, parse, read } from './browser.js';
import { placeAt } from './store.test.js';
import { settle } from './visit.js';

const { fields } = JSON.parse(read('./links.json'));

/** @typedef {{name: string, body: any, stop: AbortSignal, tell: (far: any) => void, answer: (value: any) => Promise<void>}} Question */

/** Questions, which a test answers. */
function questions() {
  /** @type {Question[]} */
  const all = [];
  /** @type {import('../../vit_viz/web/kit/ask.js').Ask} */
  const ask = (name, body, stop = new AbortController().signal, tell = () => {}) =>
    new Promise((done, failed) => {
      const answer = async (/** @type {any} */ value) => {
        if (value instanceof Error) failed(value);
        else done(value);
        await settle();
      };
      all.push({ name, body, stop, tell, answer });
    });
  return { all, ask };
}

/** With its first cards, and the method that is looked at closely under `chosen`; `set` as in `mount`. @param {any} base @param {any} [options] */
export function mountGallery(base, options) {
  const { all, ask } = questions();
  /** @type {any} */
  let gallery = null;
  /** @type {(element: any, trigger: any, props: any, watch: any) => void} */
  const start = (element, trigger, props, watch) => {
    gallery = new Gallery(element, ask, {
      choose: (change) => trigger('choose', change),
      made: () => trigger('made', {}),
    });
    const show = () => {
      const { error, chosen, ...cards } = props.value;
      if (chosen !== undefined) gallery.choose(chosen);
      if (error) gallery.refuse(error);
      else gallery.show({ link: 'image=lion', ...cards });
    };
    show();
    watch('value', show);
  };
  const part = mount(component(start, 'web/explain/gallery.html'), base, options);
  /** Tests all maps, with what comes of it. */
  const tested = async (/** @type {any} */ news) => {
    part.find('test').click();
    await all[all.length - 1].answer(news);
  };
  return { ...part, gallery, asked: all, tested };
}

/** The gallery over a store. @param {any} t @param {string} [search] */
export async function openGallery(t, search = '') {
  const browser = new Browser();
  browser.install(t);
  const place = placeAt(`?tab=explain&image=lion${search}`);
  const store = new Store(fields, place);
  const { all, ask: answer } = questions();
  const ask = asker({ keeps: () => false, answer });
  const turn = signal(0);
  const element = /** @type {any} */ (parse(read('../../vit_viz/web/explain/gallery.html')));
  const part = galleryIn(element, { store, ask, turn });
  await settle();
  const find = (/** @type {string} */ name) => element.querySelector(`.vv-${name}`);
  const asked = (/** @type {string} */ name) => all.filter((one) => one.name === name);
  return {
    ...{ browser, place, store, turn, element, find, part, asked },
    /** What was asked of the cards. */
    get questions() {
      return asked('gallery').map((one) => ({ ...one, view: new URLSearchParams(one.body.view) }));
    },
  };
}
