// The Tokens tab on a page of its own, for its tests: a photo of 2 x 3 patches in a model of four layers, and a server whose vectors
// have dot products that are easy to work out.

import { defaultsOf, writeOption } from '../../vit_viz/explorer/options.js';
import { decodeTable } from '../../vit_viz/explorer/paint.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Plate } from '../../vit_viz/web/tokens/plate.js';
import { Tokens } from '../../vit_viz/web/tokens/room.js';
import { Browser, OPTIONS, ending } from './browser.js';
import { page as dom } from './document.js';
import { fields, GRAYS, placeAt, settle, texts } from './room.js';

const BITS = [0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800]; // 0 to 8 in fp16

/** What the Tokens tab starts with, drawn flat in three quarters of gray, so that the tones can be read. */
export const usual = { ...defaultsOf(OPTIONS.tokens), style: 'heat', alpha: 0.75, smooth: false };

/** The pixels that each canvas shows, one for each patch, and how they lie on the photo. @type {Map<any, {bytes: number[], how: string, smooth: boolean}>} */
const shown = new Map();
const { draw } = Plate.prototype;
Plate.prototype.draw = function drawn(
  /** @type {any} */ canvas,
  /** @type {any} */ map,
  /** @type {any} */ how,
  /** @type {any} */ smooth,
) {
  shown.set(canvas, { bytes: [.../** @type {any} */ (map).canvas.data.data], how, smooth });
  draw.call(this, canvas, map, how, smooth);
};

/** Nine tokens: the class token, a register, six patches and a detection token; a patch is 10 pixels high and 20 wide. */
export const subject = {
  trace: 'h4',
  image: 'lion',
  about: { model: 'mini' },
  layers: 4,
  prefix: ['class', 'register 0'],
  suffix: ['detection 0'],
  grid: [2, 3],
  photo: '/photo/h4',
  photo_size: [12, 30],
  crop: { region: [10, 30, 20, 60], original: [40, 100] },
  name: 'a lion',
  head_dim: 8,
  opening: { patch: null },
  default_query: '1,1',
  pictures: [{ id: 'lion', name: 'lion' }],
  unlit: '',
};

/** Token t of state s is (t, s), so that tokens t and u have the product t u + s². */
function vectors(/** @type {number} */ state) {
  return Uint16Array.from({ length: 18 }, (_, i) => BITS[i % 2 ? state : i / 2]).buffer;
}

// --- the server: what a question is told, as the tab reads it, in the form of its answer

/** @param {any} nested numbers in rows @returns {{shape: number[], data: Float32Array}} */
const numbers = (nested) => {
  const shape = [];
  for (let part = nested; Array.isArray(part); [part] = part) shape.push(part.length);
  return { shape, data: Float32Array.from(nested.flat(Infinity)) };
};
const named = (/** @type {string} */ under, /** @type {Record<string, number[]>} */ others) =>
  Object.fromEntries(Object.entries(others).map(([name, row]) => [`${under}named.${name}`, numbers(row)]));
const rows = (/** @type {number} */ count, /** @type {any} */ row) =>
  Array.from({ length: count }, () => row);

function normed(
  /** @type {any} */ { values, others, thresholds, outliers, received, fair },
  under = '',
  first = 2,
) {
  const arrays = {
    ...{ 'maps.values': numbers(values), ...named('maps.', others) },
    ...{ thresholds: numbers(thresholds), received: numbers(received), fair: numbers(fair) },
  };
  return {
    arrays: Object.fromEntries(Object.entries(arrays).map(([name, array]) => [under + name, array])),
    facts: { outliers: outliers.map((/** @type {number[]} */ some) => some.map((patch) => patch + first)) },
  };
}

/** Whitened coordinates that are drawn as these bytes, a row of red, green and blue for each state. @param {number[][]} bytes */
function coordinates(bytes) {
  const data = Float32Array.from(bytes.flat(), (byte) => -Math.log(255 / byte - 1) / 2);
  return { shape: [bytes.length, 2, 3, 3], data };
}

/** @type {Record<string, (told: any) => any>} */
const FORMS = {
  target: (told) => told,
  token_components: ({ colours, others, explained, overall }) => ({
    arrays: {
      'maps.0.values': coordinates(colours),
      ...(others && { 'maps.1.values': coordinates(others) }),
      ...{ explained: numbers(explained), overall: numbers(overall) },
    },
    facts: { whitened: true },
  }),
  token_norms: (told) => normed(told),
  logit_lens: ({ values, unit, note, top, top_probability: sure, words }) => ({
    arrays: {
      'maps.values': numbers(values),
      ...(top && { top: numbers(top), top_probability: numbers(sure) }),
    },
    facts: { maps: { unit, note }, words },
  }),
  token_change: ({ values, others, unit }) => ({
    arrays: { values: numbers(values), ...named('', others) },
    facts: { unit },
  }),
  layer_similarity: ({ matrix, ...facts }) => ({ arrays: { values: numbers(matrix) }, facts }),
  segments: ({ labels, overlap, method }) => ({
    arrays: { labels: numbers(labels), ...(overlap && { overlap: numbers(overlap) }) },
    facts: { method },
  }),
  added_register({ norms: [before, after], attention, patches, neurons, ...facts }) {
    const sides = [normed(before, 'before.'), normed(after, 'after.', 3)];
    return {
      arrays: {
        ...{ ...sides[0].arrays, ...sides[1].arrays },
        ...{ 'attention.0.values': numbers(attention[0]), 'attention.1.values': numbers(attention[1]) },
      },
      facts: {
        ...{ ...facts, before: sides[0].facts, after: sides[1].facts, outlier_patches: patches },
        neurons: neurons.map((/** @type {number[]} */ [layer, neuron]) => ({ layer, neuron })),
      },
    };
  },
};

const flat = { values: rows(5, rows(6, 1)), others: {}, thresholds: rows(5, 5), outliers: rows(5, []), named: [], received: rows(4, 0), fair: rows(4, 0) }; // prettier-ignore
/** What a question is told of which a test says nothing. @type {Record<string, any>} */
const USUAL = {
  target: { classes: [], name: '' },
  token_components: { colours: rows(5, rows(3, 1)), explained: rows(5, [0.5, 0.25, 0.125]), overall: [0.5, 0.25, 0.125] }, // prettier-ignore
  token_norms: flat,
  logit_lens: { values: rows(5, rows(6, 0.5)), unit: 'cosine', note: 'A probe.' },
  token_change: { values: rows(4, rows(6, 1)), others: {}, unit: '' },
  layer_similarity: { matrix: rows(5, rows(5, 1)), names: ['input', 'after layer 0', 'after layer 1', 'after layer 2', 'after layer 3'], unit: 'CKA', note: '' }, // prettier-ignore
  segments: { labels: rows(6, 0), method: 'k-means of keys' },
  added_register: { norms: [flat, flat], attention: rows(2, rows(6, 0)), patches: [0, 0], state: 1, name: 'register 1', neurons: [] }, // prettier-ignore
};

/** What a link says of a query, a class, and options by their names. @param {any} chosen */
function linkOf({ query, target, chosen = {} }) {
  const all = { ...usual, ...chosen };
  const links = Object.fromEntries(OPTIONS.tokens.map((/** @type {any} */ { name, link }) => [name, link]));
  const link = new URLSearchParams({ tab: 'tokens' });
  for (const [name, value] of Object.entries(all)) {
    const field = fields.find((/** @type {any} */ one) => one.link === (links[name] ?? name));
    const text = writeOption(field, value);
    if (text !== null) link.set(field.link, text);
  }
  if (query) link.set('q', query);
  if (target) link.set('target', target);
  return `?${link}`;
}

/** Another photo. */
export const CAT = { photo: '/photo/h9', name: 'a cat' };

/**
 * The tab with a server. What it is of, and what the link says: query, target and options under `chosen`. `told` is what it writes into
 * the link, and whether Back leads to what was there before; `slow`: milliseconds that pass whenever the clock is read; `answer` says
 * what the server tells for a path, or for a question with its options as "token_norms?factor=5": as the tab reads it, an Error whose
 * words it refuses with, a promise of one of them, or nothing: what is usual.
 */
export async function open(
  changes = {},
  {
    answer = /** @type {(path: string, tell?: (far: {share: number, left: string}) => void) => any} */ (
      () => null
    ),
    slow = 0,
  } = {},
) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  /** @type {AbortSignal[]} */
  const signals = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal: stop, credentials }) => {
    asked.push(path);
    signals.push(stop);
    if (credentials !== 'same-origin') throw new Error('Nobody knows who asks.');
    const told = await answer(path);
    if (told instanceof Error) return { ok: false, text: async () => told.message };
    const state = /^[/]vit_viz[/]tokens[/]\w+[/](\d+)/.exec(path)?.[1];
    return { ok: true, arrayBuffer: async () => told ?? vectors(Number(state)) };
  };
  const { query, target, chosen, ...others } = /** @type {any} */ (changes);
  let said = { query, target, chosen };
  let of = { ...subject, ...others };
  const place = placeAt(linkOf(said));
  const store = new Store(fields, place);
  const ask = asker({
    keeps: (name) => name !== 'open' && name !== 'target',
    async answer(name, { view, ...body }, stop, tell) {
      delete body.model;
      if (name === 'open') {
        if (of.note) throw new Error(of.note);
        return {
          ...of,
          view,
          ...(view.includes('tower') && { trace: 'h5' }),
          ...(view.includes('cat') && CAT),
        };
      }
      const path = `${name}?${new URLSearchParams(name === 'target' ? { view, ...body } : body)}`;
      asked.push(path);
      signals.push(stop);
      const ended = new Promise((_, end) => stop.addEventListener('abort', () => end(new Error('ended'))));
      const told = await Promise.race([answer(path, tell), ended]);
      if (told instanceof Error) throw told;
      return FORMS[name](told ?? USUAL[name]);
    },
  });
  const turn = signal(0);
  let late = 0; // the clock stands still within a frame, unless every look at it takes a while
  const clock = {
    now: () => browser.now + (late += slow),
    measure: performance.measure.bind(performance),
    getEntriesByName: performance.getEntriesByName.bind(performance),
    clearMeasures: performance.clearMeasures.bind(performance),
  };
  Object.assign(browser.globals, { fetch, performance: clock, document: dom.document });
  browser.install();
  const element = dom.document.createElement('div');
  dom.document.body.append(element);
  const colours = decodeTable(GRAYS);
  render(
    html`<${Tokens} ...${{ page: { store, source: SERVER, ask, turn }, colours, schema: OPTIONS.tokens }} />`,
    element,
  );
  ending.after(() => render(null, element));
  const find = (/** @type {string} */ name) => element.querySelector(`.vv-${name}`);
  const ready = () => element.firstElementChild.dataset.ready;
  const part = { element, browser, find, ready, told: place.written };
  await settle();
  const stage = part.find('tokens-main-stage');
  stage.box = { left: 100, top: 50, width: 200, height: 80 };
  if (part.find('box')) part.find('box').box = { left: 160, top: 70, width: 120, height: 40 };
  for (const small of part.element.querySelectorAll('.vv-tokens-small'))
    small.box = { left: 0, top: 0, width: 30, height: 10 };
  browser.window.fire('resize');
  const frame = async () => {
    await settle();
    browser.pass(16);
    await settle();
  };
  await frame();
  /** The small photos of a question, by state. */
  const cells = (measure = 'similarity') =>
    part.element.querySelectorAll('[data-cell]').filter((/** @type {any} */ node) => node.dataset.cell.split(' ')[0] === measure); // prettier-ignore
  /** Where a point of the photo is in the window: the photo is drawn twice as large as it is. */
  const at = (/** @type {number} */ y, /** @type {number} */ x) => ({
    clientX: 100 + 2 * x,
    clientY: 50 + 2 * y,
    pointerId: 7,
  });
  return {
    ...part,
    store,
    asked,
    signals,
    stage,
    at,
    /** The middle of a patch. */
    patch: (/** @type {number} */ row, /** @type {number} */ col) => at(15 + 10 * row, 40 + 20 * col),
    /** Bytes of the map over the photo, red, green, blue and opacity of each patch. */
    big: () => shown.get(stage.querySelector('canvas'))?.bytes ?? [],
    shownBy: (/** @type {any} */ node) => shown.get(node.querySelector('canvas')),
    how: () => shown.get(stage.querySelector('canvas')),
    cells,
    /** What stands under the small photos of a question. */
    under: (/** @type {string} */ measure) => texts(cells(measure).map((/** @type {any} */ cell) => cell.children[1])), // prettier-ignore
    /** The red of every pixel of a small photo; none before it was drawn. */
    small: (/** @type {number} */ state, measure = 'similarity') =>
      (shown.get(cells(measure)[state].querySelector('canvas'))?.bytes ?? []).filter((_, i) => i % 4 === 0),
    /** Which small photo is the large one. */
    chosenCell: () => part.element.querySelectorAll('[data-cell][aria-pressed=true]').map((/** @type {any} */ node) => node.dataset.cell), // prettier-ignore
    frame,
    /** Clicks something. */
    click: async (/** @type {any} */ node) => {
      node.click();
      await frame();
    },
    /** Moves the pointer over the large photo, until the next frame. */
    point: async (/** @type {any} */ spot) => {
      stage.fire('pointermove', spot);
      await frame();
    },
    /** The marks over the photo: class, top and left. */
    marks: () =>
      stage.querySelectorAll('.vv-ring').map((/** @type {any} */ { className, style }) => [className, style.top, style.left].join(' ')), // prettier-ignore
    /** What there is to choose, by options. */
    control: (/** @type {string} */ option) => element.querySelector(`[data-option=token_${option}]`),
    words: (/** @type {string} */ name) => part.find(name).textContent,
    /** Chooses by a button. */
    press: async (/** @type {string} */ option, /** @type {string} */ choice) => {
      part.element.querySelector(`[data-option=${option}] [data-value=${choice}]`)?.click();
      await frame();
    },
    chosen: () => place.written.map(([change]) => change),
    /** Another link, by Back or from another tab; what else is said is another photo or model. */
    show: async (/** @type {any} */ { query: q, target: aim, chosen: options, ...more }) => {
      if (Object.keys(more).length) {
        of = { ...of, ...more };
        turn.value += 1;
      }
      said = { query: q ?? said.query, target: aim ?? said.target, chosen: { ...said.chosen, ...options } };
      place.go(linkOf(said));
      await frame();
    },
  };
}
