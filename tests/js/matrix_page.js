// The matrix of a head on a page of its own: 4 x 6 patches behind two named tokens, cells of ten pixels, and weights that are powers of two.

import { decodeTable } from '../../vit_viz/explorer/paint.js';
import { LayerStore } from '../../vit_viz/explorer/layers.js';
import { Matrix } from '../../vit_viz/web/heads/matrix.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser, parse, ending } from './browser.js';
import { makeTrace } from './oracle.js';
import { fields, placeAt, settle } from './room.js';
import { tables } from './visit.js';

/** Parts that every room calls alike. */
const BAR = ['bar', 'low', 'high', 'unit', 'strip', 'photo', 'box', 'rings'];

export const OPTIONS = { matrix_scale: 'log', links: 'query', strongest: 2, zoom: '' };
const SIZE = 26;

/** Where each patch is 40 x 40 pixels of the photo, in which a frame is left at every side. */
export const trace = makeTrace({
  name: 'a lion',
  photo: '/vit_viz/photo/lion',
  crop: { original: [200, 300], input: [32, 48], region: [20, 30, 160, 240] },
  source: ['attention', 'attention', 'rows'],
  view: { layer: 1, head: 2, query: '1,2' },
});

/** Weights of layer 1, head 2 by query and key; all others are 1/64. Patch (1, 2) is token 10. */
const WEIGHTS = [
  [10, 5, 0.5],
  [10, 22, 0.25],
  [10, 0, 0.125],
  [0, 11, 0.5],
  [25, 2, 0.75],
];

/** A number that is a few times a power of two as fp16 bits. */
function half(/** @type {number} */ value) {
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) | (1024 * (value / 2 ** exponent - 1));
}

/** What the server sends of a layer. */
export function layerOf(/** @type {number} */ layer, heads = 5, more = /** @type {number[][]} */ ([])) {
  const norms = 4 * heads * SIZE; // bytes; all 0: unknown
  const buffer = new ArrayBuffer(norms + 2 * heads * SIZE * SIZE);
  const bits = new Uint16Array(buffer, norms).fill(half(1 / 64));
  if (layer === 1)
    for (const [query, key, weight] of [...WEIGHTS, ...more])
      bits[(2 * SIZE + query) * SIZE + key] = half(weight);
  return buffer;
}

/** The middle of a cell, in pixels of the matrix. */
export const middle = (/** @type {number} */ cell) => (cell < 2 ? 14 * cell + 7 : 34 + 10 * (cell - 2) + 5);

/** Lets an event happen, and what it changes be drawn. */
export async function fire(/** @type {any} */ node, /** @type {string} */ event, details = {}) {
  const fired = node.fire(event, details);
  await settle();
  return fired;
}

/** The component once its matrix is there, or with `wait` before the first frame. */
export async function open({
  now = /** @type {any} */ (trace),
  options = /** @type {Record<string, string | number>} */ (OPTIONS),
  answer = /** @type {(path: string) => any} */ (() => undefined),
  wait = false,
  size = 274,
} = {}) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  /** @type {(() => void)[]} */
  const resized = [];
  /** @type {any[]} */
  let notes = [];
  let ticks = 0;
  const performance = {
    now: () => browser.now + ticks++, // every look at the clock takes a millisecond
    measure: (/** @type {string} */ name, /** @type {any} */ of) => void notes.push([name, of.detail, of]),
    getEntriesByName: (/** @type {string} */ name) => notes.filter(([of]) => of === name),
    clearMeasures: () => (notes = []),
  };
  class ResizeObserver {
    constructor(/** @type {() => void} */ run) {
      resized.push(run);
    }

    observe() {}

    disconnect() {}
  }
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal }) => {
    asked.push(path);
    const found = await answer(path);
    if (signal.aborted) throw new Error('This request was given up.');
    const buffer = found?.status ? null : found || layerOf(Number(path.split('/').at(-1)));
    return {
      status: 200,
      ok: true,
      headers: { get: () => 'attention' },
      arrayBuffer: async () => buffer,
      ...found,
    };
  };
  const getComputedStyle = () => ({ fontSize: '12px', fontFamily: 'serif', color: 'navy' });
  Object.assign(browser.globals, { fetch, ResizeObserver, getComputedStyle, performance });
  const place = placeAt(`?${new URLSearchParams(/** @type {any} */ (options))}`);
  const store = new Store(fields, place);
  /** @type {Record<string, string | null>[]} what was written into the link */
  const told = [];
  const write = place.write.bind(place);
  place.write = (change, how) => void (told.push(change), write(change, how));
  const root = /** @type {any} */ (parse('<div></div>'));
  browser.install();
  ending.after(() => render(null, root));
  const isLinked = { current: options !== null && Number(options.strongest) !== 10 };
  /** @type {LayerStore | null} */
  let layers = null;
  /** What is chosen is shown, as in the room. */
  const Following = (/** @type {any} */ { next }) => {
    const { q, layer, head } = store.view;
    const subject = { ...next, query: q.value || next.view.query };
    const chosen = {
      layer: layer.value ?? next.view.layer,
      head: head.value === usual.head ? next.view.head : head.value,
    };
    return html`<${Matrix}
      key=${next.trace}
      ...${{ store, subject, layers, colours, isLinked, ...chosen }}
    />`;
  };
  const usual = { q: '', layer: null, head: store.fields.get('head')?.default };
  const colours = decodeTable(tables.viridis);
  /** Shows a trace, whose layers are kept as long as it is the same. */
  const show = async (/** @type {any} */ next) => {
    if (layers?.trace.trace !== next.trace) {
      layers?.close();
      layers = new LayerStore(next, SERVER, { ready: () => {}, failed: () => {} });
    }
    render(html`<${Following} next=${next} />`, root);
    for (const [name, box] of Object.entries(boxes)) root.querySelector(`.vv-matrix-${name}`).box = box;
    root.querySelector('.vv-photo').box = boxes.stage;
    resized.forEach((run) => run());
    await settle();
  };
  const boxes = {
    plot: { left: 100, top: 50, width: size, height: size },
    stage: { left: 500, top: 30, width: 600, height: 400 },
  };
  await show(now);
  const part = {
    root,
    browser,
    boxes,
    find: (/** @type {string} */ name) => root.querySelector(`.vv-${name}`),
  };
  const frames = async (/** @type {number} */ count) => {
    for (let i = 0; i < count; i++) {
      browser.pass(16);
      await settle();
    }
  };
  if (!wait) await frames(8);
  const find = (/** @type {string} */ name) =>
    /** @type {any} */ (part.find(BAR.includes(name) ? name : `matrix-${name}`));
  const sheet = () => find('sheet');
  const point = (/** @type {number} */ down, /** @type {number} */ across, more = {}) => ({
    clientY: 50 + down,
    clientX: 100 + across,
    pointerId: 1,
    pointerType: 'mouse',
    ...more,
  });
  return {
    ...part,
    find,
    told,
    store,
    asked,
    frames,
    resized,
    point,
    notes: () => notes,
    get element() {
      return root.querySelector('.vv-matrix-part');
    },
    click: (/** @type {any} */ node) => fire(node, 'click'),
    text: (/** @type {string} */ name) => find(name)?.textContent.trim().replace(/\s+/g, ' ') ?? '',
    /** An event over the middle of a pair of cells. */
    over: (/** @type {string} */ name, /** @type {number} */ query, /** @type {number} */ key, more = {}) =>
      fire(sheet(), name, point(middle(query), middle(key), more)),
    key: (/** @type {string} */ name, more = {}) => fire(sheet(), 'keydown', { key: name, ...more }),
    /** An event over the middle of a patch on the photo. */
    onPhoto: (/** @type {string} */ name, /** @type {number} */ row, /** @type {number} */ col) =>
      fire(find('stage'), name, { clientY: 30 + 2 * (40 + 40 * row), clientX: 500 + 2 * (50 + 40 * col) }),
    /** Where a line around a row or a column is; '' where it is not drawn. */
    band: (/** @type {string} */ name) => {
      const { display, top, height, left, width } = find(name).style;
      return display === 'none' ? '' : [top || left, height || width].join(' ');
    },
    rings: () =>
      find('rings').children.map((/** @type {any} */ { className, style }) =>
        [className.split('-').at(-1), style.top, style.left, style.width, style.height].join(' '),
      ),
    arrows: () =>
      find('links').children.map((/** @type {any} */ { children }) => children[0]?.getAttribute('d')),
    /** Another trace, or other options by their names in links. */
    set: async (/** @type {any} */ changes, chosen = /** @type {any} */ ({})) => {
      store.set({ ...usual, ...chosen });
      told.length = 0;
      await show({ ...now, ...changes });
      await frames(8);
    },
  };
}
