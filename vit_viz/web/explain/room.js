// The Explain tab: which class is explained and how: why, by all methods (stage.js, gallery.js), or what the answer is made of (parts.js).

import { decodeTable } from '../../explorer/paint.js';
import { asked } from '../kit/ask.js';
import { opened, thePage } from '../kit/page.js';
import { editsIn, headsWith, switched, withHeads, wordsOf } from '../kit/edits.js';
import { Classes, Toggle } from '../kit/parts.js';
import {
  batch,
  computed,
  effect,
  html,
  render,
  signal,
  useComputed,
  useMemo,
  useRef,
} from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
import { Gallery } from './gallery.js';
import { goneFrom } from './gone.js';
import { madeOf } from './made.js';
import { Parts } from './parts.js';
import { Stage } from './stage.js';
import { Terms } from './terms.js';
/** @import { Answer } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { ReadonlySignal } from '../kit/preact.js' */
/** @import { Target } from '../kit/parts.js' */
/** @import { Base } from './gallery.js' */
/** @import { Photo } from './stage.js' */

/**
 * What is explained: a class, or one set against another; link: the same as it stands in links, name: in words.
 * @typedef {Target & {link: string, name: string}} Aim
 */

const TITLES = { why: 'Why', parts: 'What it is made of' };
/** @typedef {keyof typeof TITLES} Face */

/** Names in links that say nothing of the map, and of the cards. */
const NOT_OF_MAP = new Set(['tab', 'explain', 'layer', 'head']);
const NOT_OF_CARDS = new Set(['tab', 'explain', 'method', 'q', 'layer', 'head', 'ask', 'run', 'ask.*']);

/** @type {import('../../ui/kit/elements.js').Mount<{how: string, tables: Record<string, string>}>} */
export function mount(element, { how, tables }) {
  render(html`<${Explain} ...${{ page: thePage(), how, tables }} />`, element);
}

/** @param {{page: Page, how: string, tables: Record<string, string>}} props how: all is measured, as HTML; tables: of colours */
export function Explain({ page, how, tables }) {
  const { store, ask } = page;
  const link = () => store.linkOf(TARGETED);
  const { open, aim, aimed } = useMemo(() => aimOf(page), [page]);
  const face = /** @type {Face} */ (store.view.explain.value);
  /** What is known of the class that the link names, in this model, however it is edited; of another photo nothing. @returns {Aim | null} */
  const known = () => {
    const { value } = aim.value;
    return value && unedited(value.view) === unedited(link()) ? value.target : null;
  };
  /** The class that is explained, then the one that it is set against; the newest choice, also where nobody has answered it yet. */
  const pair = () => {
    const wanted = store.view.target.value;
    const text = wanted && wanted !== aim.value.value?.wanted ? wanted : (known()?.link ?? '');
    return text ? text.split('-').map(Number) : /** @type {number[]} */ ([]);
  };
  const why = (/** @type {number} */ index) => {
    if (!known()) return;
    const [, ...others] = pair();
    store.set({
      target: [index, ...others.filter((/** @type {number} */ other) => other !== index)].join('-'),
    });
  };
  const unlike = (/** @type {number | null} */ index) => {
    const [first] = pair();
    if (!known() || index === first) return;
    store.set(
      index === null ? { target: String(first) } : { target: `${first}-${index}`, sides: 'difference' },
    );
  };
  const find = async (/** @type {string} */ text, /** @type {AbortSignal} */ stop) =>
    (await ask('target', { view: link(), find: text }, stop)).hits;
  const faces = html`<h2 class="vv-unseen vv-why-title">${TITLES[face]}</h2>
    <${Toggle}
      name="face"
      choices=${Object.entries(TITLES)}
      value=${face}
      choose=${(/** @type {Face} */ explain) => store.set({ explain }, { push: true })}
      label="How it is explained"
      look="vv-faces"
    />`;
  return html`<div id="vv-target">
      <${Classes}
        ...${{ target: aimed.value ?? {}, why, unlike, find, title: faces }}
        label="What is explained"
      />
    </div>
    <${Made} ...${{ page, open, aim, known, pair }} />
    <${Why} ...${{ page, aim, how, tables }} />`;
}

/** What the tab is of, and what is explained of it. @param {Page} page */
function aimOf(page) {
  const { store, ask } = page;
  const open = opened(page, 'explain');
  const aim = asked(
    async (name, of, stop) => ({
      ...of,
      target: /** @type {Aim} */ (await ask(name, { view: of.view }, stop)),
    }),
    () =>
      store.view.tab.value === 'explain' && open.value.state === 'done'
        ? [
            'target',
            {
              view: store.linkOf(TARGETED),
              wanted: store.view.target.value,
              ...subjectOf(open.value.value),
            },
          ]
        : null,
  );
  return {
    open,
    aim,
    aimed: heldOf(computed(() => ({ ...aim.value, value: aim.value.value?.target }))).value,
  };
}

/** What the answers to the questions of the tab stand on. @param {any} value of /vit_viz/open */
function subjectOf({ about, trace, grid, crop, photo, photo_size, name, unlit }) {
  return { about, photo: { trace, grid, crop, photo, photo_size, name, unlit } };
}

/** A link to a class without what is edited in the model, and without the class. @param {string} view */
function unedited(view) {
  const link = new URLSearchParams(view);
  link.delete('edits');
  link.delete('target');
  return link.toString();
}

/**
 * What came of a question the last time, also while the next one is on its way; its error until one is answered.
 * @template Value
 * @typedef {{value: ReadonlySignal<Value | null>, error: ReadonlySignal<string>, isPending: ReadonlySignal<boolean>}} Held
 */

/** @param {ReadonlySignal<Answer>} answer @returns {Held<any>} */
function heldOf(answer) {
  const [value, error] = [signal(/** @type {any} */ (null)), signal('')];
  effect(() => {
    const { state, value: now, error: why = '' } = answer.value;
    batch(() => {
      if (state === 'done') value.value = now;
      if (state === 'done' || state === 'failed') error.value = why;
    });
  });
  return { value, error, isPending: computed(() => answer.value.state === 'pending') };
}

// --- the two faces

/**
 * What the answer is made of.
 * @param {{page: Page, open: ReadonlySignal<Answer>, aim: ReadonlySignal<Answer>, known: () => Aim | null, pair: () => number[]}} props
 */
function Made({ page: { store, ask }, open, aim, known, pair }) {
  const isSeen = store.view.explain.value === 'parts';
  const made = useMemo(
    () =>
      asked(
        async (name, { view, photo, about, target }, stop) => {
          const of = (/** @type {string} */ edits) =>
            ask(name, { ...about, edits, target: target.link || null }, stop);
          const edits = editsIn(about.edits);
          const off = headsWith(edits, 'off');
          const allOn = wordsOf(withHeads(edits, off, 'on'));
          const [now, before] = await Promise.all([of(about.edits), of(allOn)]);
          const parts = madeOf(target, now, before, off);
          return { view, parts: { ...parts, ...photo, about, terms: new Terms(parts, photo.grid) } };
        },
        () =>
          store.view.explain.value === 'parts' && aim.value.state === 'done'
            ? ['decomposition', aim.value.value]
            : null,
      ),
    [],
  );
  const shown = useRef(/** @type {any} */ (null));
  const step = [open, aim, made].map(({ value }) => value).find(({ state }) => state !== 'done');
  const isReady = !step && made.value.value.view === store.linkOf(TARGETED);
  if (isReady) shown.current = made.value.value.parts;
  const state = !isSeen ? 'hidden' : step?.state === 'failed' ? 'error' : isReady ? 'ready' : 'busy';
  const press = (/** @type {string[]} */ places) => {
    // what is explained stays the same class
    if (known())
      store.set(
        { edits: switched(store.view.edits.value, places), target: pair().join('-') },
        { push: true },
      );
  };
  const figure = () =>
    store.saved('decomposition', { ...shown.current.about, target: known()?.link ?? null });
  const error = state === 'error' ? step?.error : '';
  return html`<${Parts} ...${{ state, error, value: shown.current, press, figure }} />`;
}

/** The chosen map on the photo, and the maps of all methods. @param {{page: Page, aim: ReadonlySignal<Answer>, how: string, tables: Record<string, string>}} props */
function Why({ page, aim, how, tables }) {
  const { map, base, agreed, gone, taken, isSeen, made } = useMemo(() => whyOf(page), [page]);
  const of = useComputed(() => aim.value.value ?? null); // of the last one that is known
  const colours = useMemo(
    () => Object.fromEntries(Object.entries(tables).map(([name, text]) => [name, decodeTable(text)])),
    [tables],
  );
  return html`<div id="vv-explain-columns" class="vv-view" hidden=${page.store.view.explain.value !== 'why'}>
    <${Stage} ...${{ page, map, gone, of, tables: colours }} />
    <${Gallery} ...${{ page, base, of, agreed, isSeen, made, taken, how, tables: colours }} />
  </div>`;
}

/** What is asked for it. @param {Page} page */
function whyOf({ store, ask, turn }) {
  const namesBut = (/** @type {Set<string>} */ others) =>
    [...store.fields.keys()].filter((name) => !others.has(name));
  const [ofMap, ofCards] = [namesBut(NOT_OF_MAP), namesBut(NOT_OF_CARDS)];
  const isSeen = () => store.view.tab.value === 'explain' && store.view.explain.value === 'why';
  const [mapAgain, cardsAgain] = [signal(0), signal(0)]; // after maps that took long
  const asking = asked(
    async (name, { view, subject }, stop) => ({ ...(await ask(name, { view }, stop)), view, subject }),
    () => (isSeen() ? ['stage', { view: store.linkOf(ofMap), subject: store.subject() }] : null),
    computed(() => turn.value + mapAgain.value),
  );
  const map = /** @type {Held<Photo>} */ (heldOf(asking));
  const base = /** @type {Held<Base>} */ (
    heldOf(
      asked(
        async (name, body, stop) => ({ link: body.view, ...(await ask(name, body, stop)) }),
        () => (isSeen() ? ['gallery', { view: store.linkOf(ofCards) }] : null),
        computed(() => turn.value + cardsAgain.value),
      ),
    )
  );
  const agreed = heldOf(
    asked(
      ask,
      () => (isSeen() && base.value.value ? ['agree', { view: store.linkOf(ofCards) }] : null),
      computed(() => turn.value + cardsAgain.value),
    ),
  ).value;
  const gone = goneFrom(map.value, ask);
  // the curve of a card is of its own map
  const taken = computed(() => (map.value.value?.is_own === false ? 0 : gone.share.value));
  const made = () => {
    cardsAgain.value += 1; // it is compared with the others
    const { state, value } = asking.peek();
    if (state !== 'done' || value.shows !== store.view.method.peek()) mapAgain.value += 1;
  };
  return { map, base, agreed, gone, taken, isSeen, made };
}
