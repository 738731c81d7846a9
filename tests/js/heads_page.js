// The Heads tab on a page of its own: two layers of three heads, 2 x 3 patches between two named tokens, a server whose answers are known.

import { mount as heads } from '../../vit_viz/ui/heads/table.js';
import { Browser, component, mount, OPTIONS } from './browser.js';
import { settle } from './visit.js';

/** Parts that every room calls alike. */
const BAR = ['bar', 'low', 'high', 'unit', 'strip', 'photo', 'box', 'rings'];

const HEADS = component(heads, 'ui/heads/table.html');
const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const ramp = (/** @type {(i: number) => number} */ of) =>
  Buffer.from(Uint8Array.from({ length: 768 }, (_, i) => of(Math.floor(i / 3)))).toString('base64');
const measures = [
  { name: 'distance', group: 'reach', label: 'mean distance', sentence: 'How far.' },
  { name: 'entropy', group: 'reach', label: 'entropy', sentence: 'How widely.' },
  { name: 'estimate', group: 'does', label: 'estimate', sentence: 'What it would do.' },
  { name: 'effect', group: 'does', label: 'causal effect', sentence: 'What it does.' },
];
export const options = { face: 'atlas', measure: 'distance', how: 'zero', head_order: 'head' };
export const target = { classes: [], single: true, name: 'lion', link: '7' };
/** A patch is 8 pixels high and 10 wide, and the model saw the photo from (2, 5) on. */
export const subject = {
  revision: 4,
  trace: 'h4ndle',
  name: 'lion',
  layers: 2,
  heads: 3,
  tokens: 8,
  prefix: ['class'],
  suffix: ['detection 0'],
  grid: [2, 3],
  pooling: 'class',
  crop: { region: [2, 5, 16, 30], original: [20, 40] },
  photo: '/photo/x',
  photo_size: [20, 40],
  query: '0,1',
  layer: 1,
  head: 2,
  options,
  note: '',
  key: 'k',
  target,
  cost: 'switches off 6 heads',
  causal_note: '',
  effects: {},
};
export const of = (/** @type {any} */ values, unit = 'pixels', signed = false) => ({
  values,
  unit,
  signed,
  range: [],
});
const name = (/** @type {number} */ layer, /** @type {number} */ head) => ({
  ...{ layer, head, name: 'local', label: 'local', sentence: 'Near.', numbers: { distance: 1 } },
  ...{ could_be: ['mixed'], thin: true },
});
export const numbers = {
  measures: { distance: of([[10, 20, 30], [6, 5, 4]]), entropy: of([[1, 2, 3], [3, 2, 1]], 'bits') },
  names: [name(1, 2), name(0, 1)],
  rules: [{ name: 'local', sentence: 'Near.', at_least: {}, at_most: { distance: 2 } }],
  margin: 0.25,
  unnamed: '',
  note: '',
}; // prettier-ignore
const importance = of([[4, -2, 0], [1, 2, 3]], 'change of the logit of class 7', true); // prettier-ignore

/** The tab with its numbers; what was asked for, but for rows, is in `asked`. */
export async function open({
  now = any(subject),
  answer = /** @type {(path: string) => any} */ (() => undefined),
} = {}) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  /** @type {string[]} addresses of rows */
  const lit = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal }) => {
    if (path.includes('/layer/')) return { ok: false, status: 500, text: async () => 'None.' };
    const isRows = path.includes('/rows/');
    if (isRows) lit.push(path);
    else asked.push(path.replace('/vit_viz/head_numbers/', ''));
    const found = await answer(path);
    if (signal.aborted) throw new Error('This request was given up.');
    if (found instanceof Error) return { ok: false, status: 500, text: async () => found.message };
    const buffer = new Float32Array(24).fill(0.125).buffer;
    const known = path.includes('importance') ? importance : numbers;
    return { ok: true, status: 200, json: async () => found || known, arrayBuffer: async () => buffer };
  };
  /** Sizes stay as they are. */
  class ResizeObserver {
    observe() {}
  }
  Object.assign(browser.globals, { fetch, ResizeObserver });
  const tables = { viridis: ramp((i) => i), diverging: ramp((i) => 255 - i) };
  const part = mount(HEADS, now, {
    browser,
    props: { causal: null, surgery: null, tables, measures, options: OPTIONS.heads },
  });
  await settle();
  const find = (/** @type {string} */ of_) => any(part.find(BAR.includes(of_) ? of_ : `heads-${of_}`));
  find('stage').box = { left: 100, top: 50, width: 80, height: 40 };
  const cells = () => find('table').querySelectorAll('td');
  return {
    ...part,
    find,
    part: part.find,
    asked,
    lit,
    cells,
    cell: (/** @type {number} */ at) => cells()[at],
    text: (/** @type {string} */ of_) => find(of_).textContent,
    texts: () => cells().map((/** @type {any} */ cell) => cell.textContent),
    selected: () =>
      cells().findIndex((/** @type {any} */ cell) => cell.getAttribute('aria-selected') === 'true'),
    /** The caption after the next frame of the screen. */
    looked: () => {
      part.browser.pass(16);
      return find('caption').textContent.split(':')[0];
    },
    choose: (/** @type {string} */ measure) => {
      find('measure').value = measure;
      find('measure').fire('change');
    },
    set: async (/** @type {any} */ changes, prop = 'value') => {
      part.set(prop === 'value' ? { ...now, ...changes } : changes, prop);
      await settle();
    },
  };
}
