// The Explain tab: which class is explained and how: why, by all methods (stage.js, gallery.js), or what the answer is made of (parts.js).

import { decodeTable } from '../../explorer/paint.js';
import { asked } from '../kit/ask.js';
import { opened, thePage } from '../kit/page.js';
import { editsIn, headsWith, switched, withHeads, wordsOf } from '../kit/edits.js';
import { Places } from '../kit/job.js';
import { Classes, InApp, Toggle } from '../kit/parts.js';
import { batch, computed, effect, html, render, signal, useMemo, useRef } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
import { useTests } from './belief.js';
import { Gallery } from './gallery.js';
import { goneFrom } from './gone.js';
import { madeOf } from './made.js';
import { questionOf } from './maps.js';
import { Parts } from './parts.js';
import { useCheck } from './sanity.js';
import { Sentences } from './sentences.js';
import { Stage } from './stage.js';
import { stagedOf, wantedOn } from './staged.js';
import { Terms } from './terms.js';
/** @import { Answer } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { Target } from '../kit/parts.js' */
/** @import { Control } from './controls.js' */
/** @import { Of } from './maps.js' */
/** @import { Method, Wanted } from './staged.js' */

/**
 * What is explained: a class, or one set against another; link: the same as it stands in links, name: in words.
 * @typedef {Target & {link: string, name: string}} Aim
 *
 * What is known from the beginning; how: all is measured, as HTML; drawing: controls of how a map is drawn.
 * @typedef {{how: string, methods: Method[], drawing: Control[]}} Declared
 */

const TITLES = { why: 'Why', parts: 'What it is made of' };
/** @typedef {keyof typeof TITLES} Face */

/** @type {Answer} */
const NOT_ASKED = { state: 'none' };
const MOST_AT_A_TIME = 2; // a browser has six connections to a server, and the page needs some

/** @type {import('../../ui/kit/elements.js').Mount<Declared & {tables: Record<string, string>}>} */
export function mount(element, told) {
  render(html`<${Explain} ...${{ page: thePage(), ...told }} />`, element);
}

/** @param {{page: Page, tables: Record<string, string>} & Declared} props tables: of colours */
export function Explain({ page, tables, methods: all, ...declared }) {
  const { store, source, ask } = page;
  const methods = useMemo(() => all.filter(({ name }) => source.answers(name)), [all]);
  const inApp = all.filter((one) => !methods.includes(one)).map(({ label }) => label);
  const link = () => store.linkOf(TARGETED);
  const { open, aim, held } = useMemo(() => aimOf(page), [page]);
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
  const why = (/** @type {number | null} */ index) => {
    if (!known() || index === null) return;
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
  const target = held.value.value?.target ?? {};
  const choosing = { target, why, unlike, title: faces };
  return html`<div id="vv-target">
      ${
        target.reads !== undefined
          ? html`<${Sentences}
              ...${{ page, photos: open.value.value?.pictures, names: known()?.classes, pair: pair(), ...choosing }}
            />`
          : html`<${Classes} ...${{ find, ...choosing }} label="What is explained" />`
      }
    </div>
    <${Made} ...${{ page, open, aim, known, pair }} />
    <${Why} ...${{ page, aim, tables, methods, why, ...declared }} />
    <${InApp} names=${inApp} />`;
}

/** What the tab is of, and what is explained of it: both are asked at once. @param {Page} page */
function aimOf(page) {
  const { store, ask } = page;
  const open = opened(page, 'explain');
  const targeted = asked(
    async (name, of, stop) => ({ ...of, target: await ask(name, { view: of.view }, stop) }),
    () =>
      store.view.tab.value === 'explain'
        ? ['target', { view: store.linkOf(TARGETED), wanted: store.view.target.value }]
        : null,
    page.turn,
  );
  let last = /** @type {any} */ (undefined);
  /** @type {() => Answer} */
  const now = () => {
    const steps = [open.value, targeted.value];
    const failed = steps.find(({ state }) => state === 'failed');
    if (failed) return failed;
    const isDone = steps.every(({ state }) => state === 'done');
    if (isDone) last = { ...steps[1].value, ...subjectOf(steps[0].value) };
    const isNone = steps.some(({ state }) => state === 'none');
    return { state: isDone ? 'done' : isNone ? 'none' : 'pending', value: last };
  };
  const aim = computed(now);
  return { open, aim, held: heldOf(aim) };
}

/** What the answers to the questions of the tab stand on. @param {any} value of /vit_viz/open @returns {{about: any, photo: Of['photo']}} */
function subjectOf({ about, trace, layers, grid, crop, prefix, suffix, pooling, output_query, ...value }) {
  const { photo, photo_size, name, unlit } = value;
  const tokens = { grid, crop, prefix, suffix, pooling, output_query };
  return { about, photo: { trace, layers, ...tokens, photo, photo_size, name, unlit } };
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

/**
 * The chosen map on the photo, and the maps of all methods.
 * @param {{page: Page, aim: ReadonlySignal<Answer>, tables: Record<string, string>, why: (index: number | null) => void} & Declared} props
 */
function Why({ page, aim, how, methods, drawing, tables, why }) {
  const colours = useMemo(
    () => Object.fromEntries(Object.entries(tables).map(([name, text]) => [name, decodeTable(text)])),
    [tables],
  );
  const { stage, isSeen, base, waits, ...known } = useMemo(() => whyOf(page, aim, methods, colours), [page]);
  const places = useMemo(() => new Places(MOST_AT_A_TIME), []);
  const cards = { page, places, methods, tables: colours, ...known };
  const of = base.value.value;
  const tests = useTests(cards, of, stage.shown);
  const chosen = methods.find(({ name }) => name === page.store.view.method.value);
  const check = useCheck(page, places, of && isSeen() && chosen ? { of, method: chosen } : null);
  const weights = check.known?.words ?? '';
  const isHidden = page.store.view.explain.value !== 'why';
  return html`<div id="vv-explain-columns" class="vv-view" hidden=${isHidden} data-waits=${waits.value}>
    <${Stage} ...${{ page, ...stage, drawing, tests, weights, tables: colours }} />
    <${Gallery} ...${{ base, check, how, tests, why, ...cards }} />
  </div>`;
}

/** What is asked for it. @param {Page} page @param {ReadonlySignal<Answer>} aim @param {Method[]} methods @param {Record<string, Uint32Array>} tables */
function whyOf(page, aim, methods, tables) {
  const { store, ask, turn } = page;
  const isSeen = () => store.view.tab.value === 'explain' && store.view.explain.value === 'why';
  const of = computed(
    () => /** @type {Of | null} */ (isSeen() && aim.value.state === 'done' ? aim.value.value : null),
  );
  const slow = methods.filter((method) => method.slow);
  /** Of the slow maps, by their questions: whether they are at hand, else what they cost, in words. @type {Signal<Map<string, {is: boolean, cost: string}>>} */
  const there = signal(new Map());
  const learn = (/** @type {string} */ key, is = true, cost = '') =>
    void (there.value = new Map(there.peek()).set(key, { is, cost }));
  const keyOf = (/** @type {Method} */ method, /** @type {Of} */ now) =>
    JSON.stringify(questionOf(store, now, method));
  effect(() => {
    for (const method of of.value ? slow : []) {
      const [name, { body }] = questionOf(store, /** @type {Of} */ (of.value), method);
      const key = keyOf(method, /** @type {Of} */ (of.value));
      if (there.peek().has(key)) continue;
      let cost = '';
      ask
        .kept(name, body, undefined, (said) => void (cost = said.cost ?? ''))
        .then(
          (answer) => learn(key, Boolean(answer), cost),
          () => learn(key, false),
        );
    }
  });
  const isThere = (/** @type {Method} */ method, /** @type {Of} */ now) =>
    there.value.get(keyOf(method, now))?.is ?? false;
  const costOf = (/** @type {Method} */ method, /** @type {Of} */ now) =>
    there.value.get(keyOf(method, now))?.cost || method.runs;
  const wanted = computed(() => {
    const now = of.value;
    const isOpen =
      now && slow.some((one) => one.name === store.view.method.value && !there.value.has(keyOf(one, now)));
    return !now || isOpen ? null : wantedOn(store, now, methods, (one) => isThere(one, now));
  });
  const map = heldOf(
    asked(
      async (_, /** @type {Wanted} */ now, stop) => {
        const [answer, scale] = await Promise.all(
          [now.question, now.beside].map((one) => one && ask(...one, stop)),
        );
        return { ...now, answer, scale };
      },
      () => wanted.value && ['stage', wanted.value],
      turn,
    ),
  );
  const shown = computed(() => map.value.value && stagedOf(map.value.value, store, methods, tables));
  const error = computed(() => (aim.value.state === 'failed' ? (aim.value.error ?? '') : map.error.value));
  const isPending = computed(() => isSeen() && !error.value && (!wanted.value || map.isPending.value));
  /** Those of the maps that need not be waited for, once that is known. */
  const compared = () => {
    const now = of.value;
    if (!now || !page.source.answers('agreement') || slow.some((one) => !there.value.has(keyOf(one, now))))
      return null;
    const names = methods.filter((one) => !one.slow || isThere(one, now)).map(({ name }) => name);
    const own = names.map((name) => [name, store.optionsOf(name)]);
    const options = Object.fromEntries(own.filter(([, one]) => Object.keys(one).length));
    const { about, target } = now;
    return /** @type {[string, any]} */ ([
      'agreement',
      { ...about, target: target.link || null, methods: names, options },
    ]);
  };
  const agreed = heldOf(asked(ask, compared, turn)).value;
  const gone = goneFrom(page, shown);
  // a curve is of the map of a card, or of two classes subtracted
  const taken = computed(() => (shown.value?.isOwn === false ? 0 : gone.share.value));
  const done = (/** @type {Method} */ method, /** @type {Of} */ now) => learn(keyOf(method, now));
  const base = heldOf(computed(() => (isSeen() ? aim.value : NOT_ASKED)));
  /** What is not there yet, in what is seen. */
  const waits = computed(() => {
    if (!isSeen() || error.value || shown.value) return undefined;
    return base.value.value ? 'photo' : 'all';
  });
  /** @type {import('./gallery.js').OfCards['answers']} */
  const answers = signal(new Map());
  return {
    ...{ base, waits, answers, agreed, costOf, isSeen, isThere, done },
    stage: { shown, error, isPending, gone, taken },
  };
}
