// The Explain tab: which class is explained and how, and what the answer is made of (parts.js). The maps beside it are drawn by Python.

import { writeOption } from '../../explorer/options.js';
import { finder, onPress, press } from '../../ui/kit/elements.js';
import { asked } from '../kit/ask.js';
import { opened, thePage } from '../kit/page.js';
import { effect } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
import { TargetChooser } from '../kit/target.js';
import { headsOff, switched, withHeadsOff } from './edits.js';
import { madeOf } from './made.js';
import { Parts } from './parts.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Target } from '../kit/target.js' */

/**
 * What is explained: a class, or one set against another; link: the same as it stands in links, name: in words.
 * @typedef {Target & {link: string, name: string}} Aim
 */

const TITLES = { why: 'Why', parts: 'What it is made of' };

/** What links say of how a figure is drawn. */
const DRAWING = ['style', 'alpha', 'colors', 'smooth'];

/** @type {import('../../ui/kit/elements.js').Mount<{}>} */
export function mount(element) {
  explain(element, thePage());
}

/** @param {HTMLElement} element @param {Page} one */
export function explain(element, one) {
  const { store, ask } = one;
  const find = finder(element);
  const open = opened(one, 'explain');
  const link = () => store.linkOf(TARGETED);

  // --- what is explained

  const aim = asked(
    async (name, of, stop) => ({
      ...of,
      target: /** @type {Aim} */ (await ask(name, { view: of.view }, stop)),
    }),
    () =>
      store.view.tab.value === 'explain' && open.value.state === 'done'
        ? ['target', { view: link(), wanted: store.view.target.value, ...subjectOf(open.value.value) }]
        : null,
  );
  /** What is known of the class that the link names, in this model, however it is edited; of another photo nothing. @returns {Aim | null} */
  const known = () => {
    const { value } = aim.value;
    return value && unedited(value.view) === unedited(link()) ? value.target : null;
  };
  /** The class that is explained, then the one that it is set against; the newest choice, also where nobody has answered it yet. */
  const pair = () => {
    const wanted = store.view.target.value;
    const text = wanted && wanted !== aim.value.value?.wanted ? wanted : (known()?.link ?? '');
    return text ? text.split('-').map(Number) : [];
  };
  const chooser = new TargetChooser(find('target'), {
    why(index) {
      if (!known()) return;
      const others = pair()
        .slice(1)
        .filter((/** @type {number} */ other) => other !== index);
      store.set({ target: [index, ...others].join('-') });
    },
    unlike(index) {
      const [first] = pair();
      if (!known() || index === first) return;
      store.set(
        index === null ? { target: String(first) } : { target: `${first}-${index}`, sides: 'difference' },
      );
    },
    find: async (text, stop) => (await ask('target', { view: link(), find: text }, stop)).hits,
  });
  onPress(find('faces'), 'face', (face) => store.set({ explain: face }, { push: true }));
  effect(() => {
    const face = /** @type {keyof typeof TITLES} */ (store.view.explain.value);
    press(element, 'face', face);
    find('why-title').textContent = TITLES[face];
  });
  effect(() => {
    if (aim.value.state === 'done') chooser.show(aim.value.value.target);
  });

  // --- what the answer is made of

  const made = asked(
    async (name, { view, photo, about, target }, stop) => {
      const off = headsOff(about.edits);
      const of = (/** @type {string} */ edits) =>
        ask(name, { ...about, edits, target: target.link || null }, stop);
      const [now, before] = await Promise.all([of(about.edits), of(withHeadsOff(about.edits, []))]);
      return { view, photo, made: madeOf(target, now, before, off) };
    },
    () =>
      store.view.explain.value === 'parts' && aim.value.state === 'done'
        ? ['decomposition', aim.value.value]
        : null,
  );
  const parts = new Parts(find('parts').parentElement ?? element, {
    switch(place) {
      const { heads } = parts.terms ?? { heads: 0 };
      const places = place.includes('.')
        ? [place]
        : Array.from({ length: heads }, (_, head) => `${place}.${head}`);
      if (!known()) return;
      const target = pair().join('-'); // what is explained stays the same class
      store.set({ edits: switched(store.view.edits.value, places), target }, { push: true });
    },
    figure() {
      const address = new URLSearchParams({
        kind: 'asked',
        ask: 'decomposition',
        target: known()?.link ?? '',
      });
      for (const name of DRAWING) {
        const text = writeOption(/** @type {any} */ (store.fields.get(name)), store.view[name].value);
        if (text !== null) address.set(name, text);
      }
      return `/vit_viz/figure/${made.value.value?.photo.trace}?${address}`;
    },
  });
  /** @type {any} */
  let drawn = null;
  effect(() => {
    if (store.view.explain.value !== 'parts') return parts.tell('hidden');
    const step = [open.value, aim.value, made.value].find(({ state }) => state !== 'done');
    if (step?.state === 'failed') return parts.tell('error', step.error);
    if (step || made.value.value.view !== link()) return parts.tell('busy');
    const { value } = made.value;
    if (value !== drawn) parts.draw({ ...value.made, ...value.photo });
    drawn = value;
    parts.tell('ready');
  });
}

/** A link to a class without what is edited in the model, and without the class. @param {string} view */
function unedited(view) {
  const link = new URLSearchParams(view);
  link.delete('edits');
  link.delete('target');
  return link.toString();
}

/** What the answers to the questions of the tab stand on. @param {any} value of /vit_viz/open */
function subjectOf({ about, trace, grid, crop, photo, photo_size, name }) {
  return { about, photo: { trace, grid, crop, photo, photo_size, name } };
}
