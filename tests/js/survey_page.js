// The Survey tab against a source that a test answers for: seven photos, two layers of three heads, no server and no browser.

import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Survey } from '../../vit_viz/web/survey/room.js';
import { withGlobals, ending } from './browser.js';
import { page as dom } from './document.js';
import { fields, GRAYS, placeAt, settle } from './room.js';

/** @type {import('../../vit_viz/web/survey/state.js').Opened} */
export const SURVEY = {
  photos: 1207,
  model: 'mini',
  layers: 2,
  heads: 3,
  has_boxes: true,
  has_labels: true,
  measures: [
    { name: 'distance', label: 'mean distance', unit: 'pixels', meaning: 'How far a head looks.' },
    { name: 'entropy', label: 'evenness', unit: 'bits', meaning: 'How widely a head looks.' },
  ],
  others: ['tuned', 'fewer'],
  numbers: ['confidence', 'head_entropy', 'mean_entropy'],
  columns: [
    { name: 'label', unit: '', meaning: 'what it shows', words: ['label'] },
    { name: 'mean_depth', unit: 'pixels', meaning: 'how far it looks', words: ['mean depth', 'depth'] },
  ],
  ...{ figure: { data: ['traces'], layout: { height: 420 } }, plotly: '3.1' },
};

/** A photo in a list. @returns {import('../../vit_viz/web/survey/words.js').Card} */
export function card(/** @type {number} */ row, changes = {}) {
  return {
    ...{ row, photo: `photo ${row}.jpg`, label: 'cat', answer: 'dog', confidence: 0.625, right: false },
    ...{ value: 12.5, size: [40, 60], peak: [0.25, 0.75], small: true, there: true },
    ...changes,
  };
}

const named = (/** @type {string} */ name) => ({
  name,
  sentence: `It is ${name}.`,
  evidence: 0.5,
  is_thin: name === 'last',
});

export const CHOSEN = {
  ...{ count: 3, labelled: 3, accuracy: 2 / 3 },
  bits: Buffer.from([0b0010110, ...Array(150).fill(0)]).toString('base64'), // rows 1, 2 and 4
  atlas: {
    ...{ measure: 'distance', unit: 'pixels', photos: 3, unknown: 'Nothing is unknown.' },
    mean: [[11, 20, 30], [8, null, 5]], // prettier-ignore
    spread: [[3, 6, 5], [3, null, null]], // prettier-ignore
    names: ['first', 'local', 'wide', 'even', 'odd', 'last'].map(named),
  },
  lists: {
    high: [card(4), card(1)],
    low: [card(2)],
    elsewhere: [card(1)],
    all: [card(1), card(2), card(4)],
    ...{ lost: [], won: [], other: [] },
  },
  totals: { high: 3, low: 1, elsewhere: 1, all: 3, lost: 0, won: 0, other: 0, changed: 0 },
  classes: [{ label: "cat's", photos: 2, accuracy: 0.5, means: { confidence: 0.75, depth: null } }],
};

/** Across, up, and whether the answer was right, of seven photos; the last has no number across, the one before it no label. */
const POINTS = Float32Array.of(
  ...[0, 1, 2, 3, 4, 5, NaN],
  ...[10, 20, 30, 40, 50, 60, 70],
  ...[1, 0, 1, 0, 1, NaN, 1],
);

/** What the page is answered about the open photo: heads by layer, and its two first classes. */
const OF_PHOTO = {
  open: { about: { model: 'mini', image: { upload: 'u1' }, edits: 'off 1.1' } },
  heads: { arrays: { values: { shape: [2, 3], data: Float32Array.of(10, 20, 30, 40, 30, 86) } } },
  classes: { arrays: { scores: { shape: [2], data: Float32Array.of(2.5, 1) } } },
};

const ESTIMATE = { mean: 0.5, low: 0.4, high: 0.6, photos: 3 };

/** @type {Record<string, any>} */
const ANSWERS = {
  chosen: CHOSEN,
  points: POINTS,
  beside: { lit: false, note: '', jump: '', read: { model: '', mode: 'crop', size: 0, edits: '' } },
  methods: {
    lines: { raw: { deletion: ESTIMATE }, rollout: { pointing: ESTIMATE } },
    scores: { pointing: 'points at the object', energy: 'map on it', deletion: 'deletion below random' },
    ...{ conclusion: 'Trust rollout.', resamples: 50 },
  },
};

/** Makes an element a figure of plotly's, whose plot is 200 x 100 pixels at (30, 40) of itself, and which lays itself out as it is told. @param {any} graph */
function asFigure(graph) {
  graph.innerHTML = '<div class="gl-container"></div>';
  graph.box = { left: 0, top: 0, width: 700, height: 450 };
  graph.firstElementChild.addEventListener('pointerdown', (/** @type {Event} */ event) =>
    event.stopPropagation(),
  );
  const axis = (/** @type {number} */ _offset, /** @type {number} */ _length) => ({ range: [0, 1], _offset, _length }); // prettier-ignore
  const [xaxis, yaxis] = [axis(30, 200), axis(40, 100)];
  /** @type {Record<string, (told: any) => void>} */
  const heard = {};
  return Object.assign(graph, {
    heard,
    /** @type {Record<string, any>} what it was told last of each */ told: {},
    on: (/** @type {string} */ name, /** @type {(told: any) => void} */ run) => void (heard[name] = run),
    data: [['right', 'circle'], ['wrong', 'diamond'], ['no label', 'circle']].map(([name, symbol]) => ({ name, marker: { color: name, symbol } })), // prettier-ignore
    _fullLayout: { xaxis, yaxis },
    relayout(/** @type {Record<string, any>} */ change) {
      Object.assign(graph.told, change);
      xaxis.range = graph.told['xaxis.range'] ?? xaxis.range;
      yaxis.range = graph.told['yaxis.range'] ?? yaxis.range;
      heard.plotly_afterplot?.(undefined);
    },
  });
}

/**
 * The room, whose dots lie on 200 x 100 pixels from (100, 50) on.
 * @param {any} context @param {{link?: string, of?: any, answers?: Record<string, any>, touch?: boolean, copies?: boolean, hasFigure?: boolean}} [how] answers:
 *     by the name of the question, functions of what is asked where they depend on that, errors where they fail
 */
export async function open(
  context,
  { link = '?tab=survey', of = SURVEY, answers = {}, touch = false, copies = true, hasFigure = true } = {},
) {
  /** @type {string[]} */
  const copied = [];
  class ResizeObserver {
    constructor(/** @type {any} */ call) {
      this.observe = () => call([{ contentRect: { width: 600, height: 400 } }]);
    }

    disconnect() {}
  }
  const clipboard = {
    writeText: async (/** @type {string} */ text) => {
      if (!copies) throw new Error('This page may not.');
      copied.push(text);
    },
  };
  const globals = {
    ...{ document: dom.document, window: dom, history: dom.history, location: dom.location, ResizeObserver },
    navigator: { clipboard },
    MutationObserver: dom.MutationObserver,
    matchMedia: () => ({ matches: touch }),
  };
  withGlobals(globals);
  const holder = dom.document.createElement('div');
  holder.id = 'vv-survey-dots';
  dom.document.body.append(holder);
  const Plotly = {
    newPlot: async (/** @type {any} */ node, /** @type {any} */ data, /** @type {any} */ layout) => {
      Object.assign(asFigure(node), { drawn: { data, layout } });
    },
    relayout: async (/** @type {any} */ graph, /** @type {any} */ change) => graph.relayout(change),
  };
  Object.assign(dom, { Plotly: hasFigure ? Plotly : undefined });
  ending.after(() => holder.remove());
  context.mock.timers.reset();
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const place = placeAt(link);
  const store = new Store(fields, place);
  /** @type {[string, any][]} */
  const questions = [];
  /** @type {[string, any][]} */
  const ofPhoto = [];
  const page = {
    ...{ store, turn: signal(0) },
    ask: asker({
      keeps: () => true,
      async answer(name, body) {
        if (name !== 'open') ofPhoto.push([name, body]);
        return /** @type {Record<string, any>} */ (OF_PHOTO)[name];
      },
    }),
  };
  const ask = asker({
    keeps: (name) => !name.startsWith('look'),
    async answer(name, body) {
      if (name !== 'beside') questions.push([name, body]);
      const known = { ...ANSWERS, ...answers }[name];
      const value = await (typeof known === 'function' ? known(body) : known);
      if (value instanceof Error) throw value;
      return { of: body, value };
    },
  });
  const root = dom.document.createElement('div');
  dom.document.body.append(root);
  render(html`<${Survey} ...${{ page, ask, survey: of, tables: { viridis: GRAYS } }} />`, root);
  ending.after(() => render(null, root));
  await settle();
  const find = (/** @type {string} */ selector) => root.querySelector(selector);
  const all = (/** @type {string} */ selector) => [...root.querySelectorAll(selector)];
  const over = (/** @type {string} */ selector) => holder.querySelector(selector);
  if (over('canvas')) over('.vv-survey-area').box = { left: 100, top: 50, width: 200, height: 100 };
  const button = (/** @type {string} */ words) =>
    all('button').find((one) => one.textContent.trim() === words);
  const figure = holder.firstElementChild;
  const dots = (/** @type {string} */ event, /** @type {number} */ x, /** @type {number} */ y) =>
    figure.firstElementChild.fire(event, { clientX: 100 + x, clientY: 50 + y });
  return {
    ...{ store, place, copied, root, find, all, button, dots, figure, holder, over, Plotly, ofPhoto },
    /** What was asked since it was asked the last time. */
    news: () => questions.splice(0),
    /** Whether a part with these words is there. */
    says: (/** @type {string} */ words) => root.textContent.includes(words),
    cell: (/** @type {number} */ layer, /** @type {number} */ head) =>
      find(`td[data-layer="${layer}"][data-head="${head}"]`),
    cards: () => all('.vv-survey-card').map((one) => one.dataset.row),
    async press(/** @type {string} */ words) {
      button(words).click();
      await settle();
    },
    async choose(/** @type {string} */ name, /** @type {string} */ value) {
      const chooser = find(`.vv-survey-${name}`);
      chooser.value = value;
      chooser.fire('change');
      await settle();
    },
    /** Writes a filter and applies it. */
    async filter(/** @type {string} */ words) {
      find('textarea').value = words;
      const event = find('textarea').fire('keydown', { key: 'Enter', isComposing: false });
      await settle();
      return event;
    },
    /** Presses on the dots, in pixels of their area, and lets go some pixels further. */
    async pressDot(/** @type {number} */ x, /** @type {number} */ y, across = 0, down = 0) {
      dots('pointerdown', x, y);
      dom.document.body.fire('pointerup', { clientX: 100 + x + across, clientY: 50 + y + down });
      await settle();
    },
    /** What plotly tells of what was drawn or taken away. */
    async tell(/** @type {string} */ event, /** @type {any} */ told = undefined) {
      figure.heard[`plotly_${event}`](told);
      await settle();
    },
    go: async (/** @type {string} */ to) => {
      place.go(to);
      await settle();
    },
  };
}
