// The Heads tab over the store, on a page of its own: two layers of three heads, 2 x 3 patches between two named tokens, and a source
// whose answers are known.

import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Heads } from '../../vit_viz/web/heads/room.js';
import { Browser, parse, ending } from './browser.js';
import { makeTrace } from './oracle.js';
import { fields, placeAt, settle, toned } from './room.js';

/** Parts that every room calls alike. */
const BAR = ['bar', 'low', 'high', 'unit', 'strip', 'photo', 'box', 'rings', 'why', 'search', 'hits'];
const OF_PAGE = ['open', 'target', 'edited'];

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
export const measures = [
  { name: 'distance', group: 'reach', label: 'mean distance', sentence: 'How far.' },
  { name: 'entropy', group: 'reach', label: 'entropy', sentence: 'How widely.' },
  { name: 'estimate', group: 'does', label: 'estimate', sentence: 'What it would do.' },
  { name: 'effect', group: 'does', label: 'causal effect', sentence: 'What it does.' },
];
export const rules = [{ name: 'local', sentence: 'Near.', at_least: {}, at_most: { distance: 2 } }];

/** A patch is 8 pixels high and 10 wide, and the model saw the photo from (2, 5) on. */
export const photo = makeTrace({
  trace: 'h4ndle',
  name: 'lion',
  layers: 2,
  heads: 3,
  tokens: 8,
  prefix: ['class'],
  suffix: ['detection 0'],
  grid: [2, 3],
  pooling: 'class',
  crop: { region: [2, 5, 16, 30], original: [20, 40], input: [16, 24] },
  photo: '/photo/x',
  photo_size: [20, 40],
  opening: { layer: 0, head: 1 },
});

export const numbersOf = (/** @type {number[][]} */ rows) => ({
  shape: [rows.length, rows[0].length],
  data: Float32Array.from(rows.flat()),
});
/** A table of heads as a question answers it. */
export const tableOf = (/** @type {number[][]} */ rows, unit = 'pixels', signed = false) => ({
  arrays: { values: numbersOf(rows) },
  facts: { unit, signed },
});
/** A part of a causal map, as it is told: null where a head is not done. */
export function partOf(/** @type {(number | null)[][]} */ rows, /** @type {number[][]} */ estimate) {
  const known = Uint8Array.from(rows.flat().map((one) => Number(one !== null)));
  const filled = rows.map((row) => row.map((one) => one ?? 0));
  const facts = { unit: 'change of the logit of class 7', signed: true };
  return {
    arrays: {
      'table.values': numbersOf(filled),
      'estimate.values': numbersOf(estimate),
      known: { shape: [2, 3], data: known },
    },
    facts: { table: facts, estimate: facts },
  };
}
const name = (/** @type {number} */ layer, /** @type {number} */ head) => ({
  ...{
    layer,
    head,
    name: 'local',
    side: '',
    sentence: 'Near.',
    numbers: { distance: 1 },
    could_be: ['mixed'],
  },
});
const LOGIT = 'change of the logit of class 7 (lion)';
/** @type {Record<string, any>} */
export const ANSWERS = {
  head_tables: {
    arrays: {
      'tables.distance.values': numbersOf([[10, 20, 30], [6, 5, 4]]),
      'tables.entropy.values': numbersOf([[1, 2, 3], [3, 2, 1]]),
    },
    facts: {
      note: '',
      tables: { distance: { unit: 'pixels', signed: false }, entropy: { unit: 'bits', signed: false } },
    },
  },
  head_names: { arrays: {}, facts: { heads: [name(1, 2), name(0, 1)] } },
  head_importance: tableOf([[4, -2, 0], [1, 2, 3]], LOGIT, true),
}; // prettier-ignore

/** What a view is of. */
function opened(/** @type {{view: string}} */ body) {
  const view = new URLSearchParams(body.view);
  const [sample, edits] = [view.get('image'), view.get('edits') ?? ''];
  const trace = edits ? `edited ${edits}` : sample === 'lion' ? 'h4ndle' : sample;
  return { ...photo, trace, about: { model: 'mini', image: { sample }, edits } };
}

/** The class that is asked about: 7 is the first. */
function targetOf(/** @type {{view: string, find?: string}} */ { view, find }) {
  if (find) return { hits: [{ name: 'great grey owl', index: 24 }] };
  const link = new URLSearchParams(view).get('target') ?? '7';
  const classes = [{ index: 7, name: 'lion', probability: 0.5 }];
  return { classes, chosen: Number(link), name: link === '7' ? 'lion' : 'owl', link, words: '' };
}

/** What the model says with edits, and without. */
function answersOf(/** @type {any} */ { edits }) {
  const now = edits ? [0.908, 0.06] : [0.9626, 0.032];
  return {
    arrays: { scores: { shape: [2], data: Float32Array.from(now) } },
    facts: { names: ['lion', edits ? 'lynx' : 'cougar'], unit: 'probability' },
  };
}

/**
 * The tab at a link, once it is there. `asked` are the questions about numbers, each with its picture and what else it is asked with;
 * `answer` may answer one (an error refuses it), and is told how to tell how far it is.
 */
export async function open({
  link = '',
  of = any({}),
  answer = /** @type {(name: string, body: any, tell?: any, stop?: any) => any} */ (() => undefined),
  rows = /** @type {(path: string) => any} */ (() => undefined),
  kept = /** @type {(how: string) => any} what is at hand of causal maps */ (() => undefined),
  has = /** @type {(name: string) => boolean} whether the source answers a question */ (() => true),
} = {}) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  /** @type {[string, any][]} */
  const posted = [];
  /** @type {string[]} causal maps that were looked for */
  const peeked = [];
  /** @type {string[]} addresses of rows */
  const lit = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal: stop }) => {
    if (path.includes('/layer/')) return { ok: false, status: 500, text: async () => 'None.' };
    lit.push(path);
    const found = await rows(path);
    if (stop.aborted) throw new Error('This request was given up.');
    const buffer = new Float32Array(24).fill(0.125).buffer;
    return { ok: true, status: 200, arrayBuffer: async () => buffer, ...found };
  };
  /** Sizes stay as they are. */
  class ResizeObserver {
    observe() {}

    disconnect() {}
  }
  const getComputedStyle = () => ({ fontSize: '12px', fontFamily: 'serif', color: 'navy' });
  Object.assign(browser.globals, { fetch, ResizeObserver, getComputedStyle });
  const usual = new URLSearchParams('tab=heads&image=lion&layer=1&head=2&q=0,1');
  for (const [key, value] of new URLSearchParams(link)) usual.set(key, value);
  const place = placeAt(`?${usual}`);
  const store = new Store(fields, place);
  const ask = asker({
    keeps: (one) => !OF_PAGE.includes(one),
    kept: async (_one, { image, how, target = '' }, _stop, hear) => {
      peeked.push([image.sample, how, target].filter(Boolean).join(' '));
      const found = (await kept(how)) ?? { cost: 'about half a pass for each head' };
      if (found instanceof Error) throw found;
      if (found.arrays) return found;
      hear?.(found);
      return null;
    },
    async answer(one, body, stop, tell) {
      posted.push([one, body]);
      const { image = {}, how = '', target = '' } = body;
      if (!OF_PAGE.includes(one) && one !== 'classes')
        asked.push([one, image.sample, how, target].filter(Boolean).join(' '));
      const found = await answer(one, body, tell, stop);
      if (stop.aborted) throw new Error('This request was given up.');
      if (found instanceof Error) throw found;
      if (found) return found;
      if (one === 'open') return { ...opened(body), ...of };
      if (one === 'target') return targetOf(body);
      if (one === 'edited') return { edits: body.edits };
      if (one === 'classes') return answersOf(body);
      return ANSWERS[one];
    },
  });
  const props = {
    tables: { viridis: toned((i) => i), diverging: toned((i) => 255 - i) },
    measures,
    rules,
    margin: 0.25,
  };
  const turn = signal(0);
  const root = parse('<div></div>');
  browser.install();
  render(
    html`<${Heads} page=${{ store, source: { ...SERVER, answers: has }, ask, turn }} ...${props} />`,
    any(root),
  );
  ending.after(() => render(null, any(root)));
  await settle();
  const find = (/** @type {string} */ of_) => {
    const part_ = BAR.includes(of_) ? of_ : `heads-${of_}`;
    if (['stop', 'progress'].includes(of_)) return any(root.querySelector(`.vv-heads-switching .vv-${of_}`));
    return any(root.querySelector(`.vv-${part_}`) ?? root.querySelector(`.vv-${of_}`));
  };
  const cells = () => root.querySelectorAll('td');
  /** Fires an event and lets it be drawn. */
  const fire = async (/** @type {any} */ node, /** @type {string} */ event, details = {}) => {
    const fired = node.fire(event, details);
    await settle();
    return fired;
  };
  const part = {
    ...{
      root,
      browser,
      plot: () => root.querySelector('.vv-heads-plot .vv-plot'),
      find,
      cells,
      fire,
      store,
      place,
      turn,
      asked,
      posted,
      peeked,
      lit,
    },
    /** The measure that is there, once everything of it is. */
    ready: () => root.querySelector('.vv-heads').dataset.ready,
    /** Which of these parts are seen. */
    seen: (/** @type {string[]} */ ...names) => names.filter((one) => find(one) && !find(one).hidden),
    all: (/** @type {string} */ selector) => root.querySelectorAll(selector),
    click: (/** @type {any} */ node) =>
      fire(typeof node === 'string' ? root.querySelector(node) : node, 'click'),
    /** What the link says of a name. */
    says: (/** @type {string} */ of_) => new URLSearchParams(place.search()).get(of_),
    /** Names in the link that were written, and whether Back leads to what was there before. */
    written: place.written,
    cell: (/** @type {number} */ at) => cells()[at],
    text: (/** @type {string} */ of_) => find(of_)?.textContent.trim().replace(/\s+/g, ' ') ?? '',
    texts: () => cells().map((/** @type {any} */ cell) => cell.textContent.trim()),
    selected: () =>
      cells().findIndex((/** @type {any} */ cell) => cell.getAttribute('aria-selected') === 'true'),
    /** The head that is looked at. */
    looked: () => find('caption').textContent.trim().split(':')[0],
    choose: (/** @type {string} */ measure) => {
      find('measure').value = measure;
      return fire(find('measure'), 'change');
    },
    /** Something is chosen elsewhere. */
    set: async (/** @type {any} */ change) => {
      store.set(change);
      await settle();
    },
    /** Back is pressed. */
    back: async (/** @type {string} */ search) => {
      place.go(search);
      await settle();
    },
    /** Time passes. */
    pass: async (/** @type {number} */ milliseconds) => {
      browser.pass(milliseconds);
      await settle();
    },
  };
  if (find('stage')) find('stage').box = { left: 100, top: 50, width: 80, height: 40 };
  return part;
}
