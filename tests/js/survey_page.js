// The Survey tab on a page of its own: seven photos, two layers of three heads, a server whose answers are known, a figure for the dots.

import { writeOption } from '../../vit_viz/explorer/options.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { survey as surveyTab } from '../../vit_viz/web/survey/room.js';
import { Browser, Element, component, mount, parse, read } from './browser.js';
import { placeAt } from './store.test.js';

const { fields } = JSON.parse(read('./links.json'));
const TABLE = Buffer.from(Uint8Array.from({ length: 768 }, (_, i) => Math.floor(i / 3))).toString('base64');

export const settle = async () => {
  for (let i = 0; i < 10; i++) await new Promise((done) => setImmediate(done));
};

export const texts = (/** @type {any} */ nodes) =>
  [...nodes].map((/** @type {any} */ node) => node.textContent);

export const survey = {
  photos: 7,
  model: 'mini',
  layers: 2,
  heads: 3,
  has_boxes: true,
  has_labels: true,
  measures: [
    { name: 'distance', label: 'mean distance', unit: 'pixels', meaning: 'How far a head looks.' },
    { name: 'entropy', label: 'evenness', unit: 'bits', meaning: 'How widely a head looks.' },
  ],
  others: /** @type {string[]} */ ([]),
  numbers: ['confidence', 'head_entropy', 'mean_entropy'],
  columns: [
    { name: 'label', kind: 'text', unit: '', meaning: 'what it shows', words: ['label'] },
    {
      name: 'mean_depth',
      kind: 'number',
      unit: 'pixels',
      meaning: 'how far it looks',
      words: ['mean depth', 'depth'],
    },
  ],
};

/** What is chosen, and what depends on the model that the page shows: `lit`, `note` and `jump`. */
export const value = {
  jump: '',
  lit: false,
  note: '',
  layer: 1,
  head: 2,
  where: '',
  across: 'confidence',
  up: 'mean_entropy',
  measure: 'distance',
  list: 'high',
  second: '',
};

/** What a link says of a choice. @param {Record<string, any>} choice */
function linkOf({ layer, head, ...named }) {
  const link = new URLSearchParams({ tab: 'survey', layer: String(layer), head: String(head) });
  for (const [name, text] of Object.entries(named)) {
    const field = fields.find((/** @type {any} */ one) => one.name === `survey_${name}`);
    const written = field ? writeOption(field, text) : null;
    if (written !== null) link.set(field.link, written);
  }
  return `?${link}`;
}

/** A photo in a list. @returns {import('../../vit_viz/web/survey/lists.js').Card} */
export function card(/** @type {number} */ row, changes = {}) {
  return {
    row,
    photo: `photo ${row}.jpg`,
    label: 'cat',
    answer: 'dog',
    confidence: 0.625,
    right: false,
    value: 12.5,
    size: [40, 60],
    peak: [0.25, 0.75],
    small: true,
    there: true,
    ...changes,
  };
}

const named = (/** @type {string} */ name) => ({
  name,
  sentence: `It is ${name}.`,
  evidence: 0.5,
  thin: false,
});

export const chosen = {
  count: 3,
  labelled: 3,
  accuracy: 2 / 3,
  bits: Buffer.from([0b0010110]).toString('base64'), // rows 1, 2 and 4
  atlas: {
    measure: 'distance',
    unit: 'pixels',
    mean: [
      [11, 20, 30],
      [8, null, 5],
    ],
    spread: [
      [3, 6, 5],
      [3, null, null],
    ],
    photos: 3,
    names: ['first', 'local', 'wide', 'even', 'odd', 'last'].map(named),
    unknown: 'Nothing is unknown.',
  },
  lists: {
    high: [card(4), card(1)],
    low: [card(2)],
    elsewhere: [card(1)],
    all: [card(1), card(2), card(4)],
    lost: /** @type {any[]} */ ([]),
    won: /** @type {any[]} */ ([]),
    other: /** @type {any[]} */ ([]),
  },
  totals: { high: 2, low: 1, elsewhere: 1, all: 3, lost: 0, won: 0, other: 0, changed: 0 },
  classes: [{ label: "cat's", photos: 2, accuracy: 0.5, means: { confidence: 0.75 } }],
};

const one = { mean: 0.5, low: 0.4, high: 0.6, photos: 3 };
export const methods = {
  lines: { rollout: { pointing: one } },
  scores: { pointing: 'points at the object' },
  conclusion: 'Trust rollout.',
  resamples: 50,
};

/** Across, up, and whether the answer was right, of seven photos; the last has no number across, the one before it no label. */
export const POINTS = Float32Array.of(
  ...[0, 1, 2, 3, 4, 5, NaN],
  ...[10, 20, 30, 40, 50, 60, 70],
  ...[1, 0, 1, 0, 1, NaN, 1],
);

/** A figure of plotly's, 200 x 100 pixels at (30, 40) of itself, that lays itself out as it is told. */
export function makeFigure() {
  const graph = /** @type {any} */ (new Element('div'));
  graph.className = 'js-plotly-plot';
  const plot = new Element('div');
  plot.className = 'gl-container';
  graph.append(plot);
  /** @type {Record<string, (told: any) => void>} */
  const heard = {};
  return Object.assign(graph, {
    plot,
    heard,
    on: (/** @type {string} */ name, /** @type {(told: any) => void} */ run) => void (heard[name] = run),
    data: ['red', 'blue', 'gray'].map((color) => ({ marker: { color } })),
    layout: { xaxis: {}, yaxis: {} },
    _fullLayout: {
      xaxis: { range: [0, 1], _offset: 30, _length: 200 },
      yaxis: { range: [0, 1], _offset: 40, _length: 100 },
    },
    /** Lays the axes out with what was asked for last. */
    draw(/** @type {any} */ change) {
      graph.layout.xaxis.title = { text: change['xaxis.title.text'] };
      graph._fullLayout.xaxis.range = change['xaxis.range'];
      graph._fullLayout.yaxis.range = change['yaxis.range'];
      heard.plotly_afterplot(undefined);
    },
  });
}

/** What the dots and the room find around them on the page. */
export function makePage() {
  const browser = new Browser();
  const [holder, look] = [parse(''), new Element('button')];
  /** @type {Record<string, Element>} */
  const places = { 'vv-survey-dots': holder, 'vv-tab-look-button': look };
  /** @type {any[]} */
  const laid = [];
  /** @type {(() => void)[]} */
  const watchers = [];
  class MutationObserver {
    constructor(/** @type {() => void} */ run) {
      watchers.push(run);
    }

    observe() {}
  }
  const Plotly = {
    relayout: async (/** @type {any} */ graph, /** @type {any} */ change) =>
      void laid.push({ graph, ...change }),
  };
  Object.assign(browser.window, { Plotly });
  Object.assign(browser.globals, { MutationObserver });
  const page = Object.assign(browser.globals.document, {
    body: new Element('body'),
    getElementById: (/** @type {string} */ id) => places[id] ?? null,
  });
  return {
    browser,
    holder,
    look,
    laid,
    page: /** @type {any} */ (page),
    changed: () => watchers.forEach((run) => run()),
  };
}

/**
 * The tab with its numbers. `answer` gives what the server says to an address in place of what is known here, or an error, or a
 * promise of either; every address that was asked for is in `asked`.
 */
export async function open({
  now = /** @type {any} */ (value),
  of = /** @type {any} */ (survey),
  answer = /** @type {(path: string) => any} */ (() => undefined),
  figure = /** @type {any} */ (null),
  prepare = /** @type {(page: any) => void} */ (() => {}),
} = {}) {
  const around = makePage();
  if (figure) around.holder.append(figure);
  prepare(around);
  /** @type {string[]} */
  const asked = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal }) => {
    const route = path.replace('/vit_viz/survey/', '');
    if (!route.startsWith('beside')) asked.push(route);
    const found = (await answer(route)) || standard(route, now);
    if (signal?.aborted) throw new Error('This request was given up.');
    if (found instanceof Error) return { ok: false, text: async () => found.message };
    return { ok: true, json: async () => found, arrayBuffer: async () => found.buffer };
  };
  Object.assign(around.browser.globals, { fetch });
  let clicks = 0;
  around.look.addEventListener('click', () => (clicks += 1));
  const place = placeAt(linkOf(now));
  const store = new Store(fields, place);
  const props = { survey: of, tables: { viridis: TABLE } };
  const start = (/** @type {any} */ element) => void surveyTab(element, store, props);
  const part = mount(component(start, 'web/survey/room.html'), null, { browser: around.browser });
  await settle();
  const cell = (/** @type {number} */ layer, /** @type {number} */ head) =>
    part.find('survey-heads').querySelectorAll('td')[layer * of.heads + head];
  const chip = (/** @type {number} */ at) => part.find('survey-chips').children[at];
  const type = (/** @type {string} */ words) => {
    part.find('survey-where').value = words;
    return part.find('survey-filter').fire('submit');
  };
  return {
    ...part,
    ...around,
    /** What was written into the link, and whether Back leads to what was there before. */
    told: place.written,
    go: place.go,
    store,
    /** Another link. */
    set: (/** @type {any} */ next) => place.go(linkOf(next)),
    asked,
    cell,
    chip,
    type,
    text: (/** @type {string} */ name) => part.find(`survey-${name}`).textContent,
    cards: () => part.find('survey-cards').querySelectorAll('.vv-survey-card'),
    opened: () => clicks,
    /** Another choice in a chooser. */
    select(/** @type {string} */ name, /** @type {string} */ to) {
      const chooser = part.find(`survey-${name}`);
      chooser.value = to;
      chooser.fire('change');
    },
    /** What was asked since it was asked the last time. */
    news: () => asked.splice(0),
  };
}

function standard(/** @type {string} */ route, /** @type {any} */ { lit, note, jump }) {
  const [name] = route.split(/[/?]/);
  if (name === 'beside') return { lit, note, jump };
  if (name === 'photo') return card(Number(route.split(/[/?]/)[1]), { photo: 'the one.jpg' });
  return { chosen, methods, points: POINTS }[name];
}
