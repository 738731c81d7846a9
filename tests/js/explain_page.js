// The Explain tab over a store, against a source that a test answers for; and what it is answered with.

import { Explain } from '../../vit_viz/web/explain/room.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Browser, parse, read, ending } from './browser.js';
import { makeTrace } from './oracle.js';
import { placeAt, settle } from './room.js';

const { fields } = JSON.parse(read('./links.json'));

/** @typedef {{name: string, body: any, stop: AbortSignal, tell: any, answer: (value: any) => Promise<void>}} Question an error refuses it */

export const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent.trim());
export const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');

/** A photo of 2 x 3 patches. @param {any} about its name and the edits of the model */
export const opened = ({ view }) => {
  const link = new URLSearchParams(view);
  const image = link.get('image');
  return makeTrace({
    ...{
      grid: [2, 3],
      prefix: ['class'],
      output_query: 'class',
      photo: `/photo/${image}`,
      photo_size: [40, 60],
      pictures: ['lion', 'u1'].map((id) => ({ id, name: id === 'u1' ? 'mine.jpg' : id })),
      trace: `h-${image}`,
    },
    ...{ name: image, crop: { original: [40, 60], input: [40, 60], region: [0, 0, 40, 60] } },
    about: {
      ...{ model: 'mini', image: { sample: image }, edits: link.get('edits') ?? '' },
      ...(link.get('sentences') && { sentences: link.get('sentences') }),
    },
  });
};

export const LION = {
  classes: [
    { index: 4, name: 'lion', probability: 0.9 },
    { index: 7, name: 'cat', probability: 0.1 },
    { index: 2, name: 'dog', probability: 0.01 },
  ],
  ...{ chosen: 4, other: null, name: 'lion', words: '', link: '4' },
};

/** The class of a link. @param {any} body */
export const aimed = ({ view, find }) => {
  if (find) return { hits: [{ index: 9, name: 'tiger' }] };
  const [first, other] = (new URLSearchParams(view).get('target') || '4').split('-').map(Number);
  if (first > 9) return { ...LION, words: `Class ${first} does not exist.` }; // the first in its place
  const name = LION.classes.find(({ index }) => index === first)?.name;
  const link = other === undefined ? `${first}` : `${first}-${other}`;
  return { ...LION, chosen: first, other: other ?? null, name, link };
};

const card = (/** @type {string} */ name, /** @type {string} */ label, more = {}) => ({
  ...{ name, label, aimed: true, formula: `<p>${label}</p>`, controls: [] },
  ...more,
});
export const SHAP = card('shap', 'Shap', { slow: true, runs: 'about 800 runs' });
/** Two quick methods, and a slow one. */
export const METHODS = [
  card('rollout', 'Rollout', {
    blind: true,
    aimed: false,
    pick: true,
    shows: 'how tokens mix.',
    hides: 'any class.',
  }),
  card('relevance', 'Relevance'),
  SHAP,
];
/** What a question for a map is answered with, on the photo of 2 x 3 patches. */
export const mapBy = (/** @type {string} */ name, values = [0, 1, 2, 3, 4, 5], facts = {}) => ({
  arrays: { values: { shape: [2, 3], data: Float32Array.from(values) } },
  facts: {
    ...{ caption: `a ${name}`, note: '', unit: 'weight', signed: false, class_blind: name === 'rollout' },
    ...{ prefix: {}, suffix: {}, value_range: [0, 1] },
    crop_box: { original_size: [40, 60], input_size: [40, 60], region: [0, 0, 40, 60] },
    ...facts,
  },
  words: 'Half of the map lies on 2 of 6 patches.',
});

const array = (/** @type {number[]} */ ...data) => ({ shape: [data.length], data: Float64Array.from(data) });
const CURVES = { deletion: [1, 0.25, 0], insertion: [0, 0.5, 1] };
/**
 * What the test of a map is answered with.
 * @param {number} [area] under its curve @param {Record<string, number[]>} [curves] @param {any} [facts]
 */
export const trustBy = (area = 0.05, curves = CURVES, facts = {}) => ({
  arrays: {
    'faithfulness.band.deletion': array(-1, 0.5),
    ...Object.fromEntries(
      Object.entries(curves).flatMap(([name, y]) => [
        ...[
          [`faithfulness.${name}.x`, array(0, 0.5, 1)],
          [`faithfulness.${name}.y`, array(...y)],
        ],
        ...[
          [`faithfulness.${name}.band.low`, array(0.5, 0.25, 0)],
          [`faithfulness.${name}.band.high`, array(1, 0.75, 0.5)],
        ],
      ]),
    ),
  },
  facts: {
    ...{ random: [0.2, 0.1, 0.3], names: [], ...facts },
    faithfulness: {
      ...{ deletion_auc: area, band: { value_range: [0, 1], ...facts.band } },
      ...Object.fromEntries(Object.keys(curves).map((name) => [name, { y_label: 'probability of lion' }])),
    },
  },
  words: 'Better than each.\nChanges.',
});
/** What is said of that. */
export const TRUST = {
  falls: 'falls 4.0 x faster than at random',
  sentences: ['Better than each.', 'Changes.'],
};
/** The maps of some methods side by side. @param {string[]} names */
export const compared = (...names) => {
  const maps = names.map((name) => /** @type {[string, any]} */ ([name, mapBy(name)]));
  return {
    arrays: Object.fromEntries(maps.map(([name, { arrays }]) => [`maps.${name}.values`, arrays.values])),
    facts: { maps: Object.fromEntries(maps.map(([name, { facts }]) => [name, facts])) },
    words: '',
  };
};
const ANSWERS = {
  ...{ open: opened, target: aimed, agreement: { arrays: {}, facts: {}, words: '' } },
  ...{ rollout: mapBy('rollout'), relevance: mapBy('relevance') },
};
const OF_PAGE = new Set(['open', 'target']);
const COLOURS = Buffer.alloc(768).toString('base64');
const TABLES = Object.fromEntries(
  ['viridis', 'magma', 'cividis', 'gray', 'diverging'].map((name) => [name, COLOURS]),
);

/**
 * Opens the tab. What is not among the answers waits for a test; null in place of one takes it away. Under `methods` and `drawing` stand others
 * than the usual ones, under `kept` what need not be computed and
 * under `costs` what the rest costs, by name.
 * @param {any} _t @param {string} [search] @param {Record<string, any>} [answers]
 */
export async function openExplain(_t, search = '', answers = {}) {
  const browser = new Browser();
  browser.install();
  const place = placeAt(`?tab=explain&image=lion${search}`);
  const store = new Store(fields, place);
  const known = /** @type {Record<string, any>} */ ({ ...ANSWERS, ...answers });
  /** @type {Question[]} */
  const questions = [];
  const ask = asker({
    keeps: (name) => !OF_PAGE.has(name),
    kept: async (name, _body, _stop, hear) => {
      hear?.({ cost: known.costs?.[name] });
      return known.kept?.[name] ?? null;
    },
    answer(name, body, stop, tell) {
      /** @type {[(value: any) => void, (error: Error) => void]} */
      let [resolve, reject] = [() => {}, () => {}];
      const promise = new Promise((...both) => ([resolve, reject] = both));
      const answer = async (/** @type {any} */ value) => {
        if (value instanceof Error) reject(value);
        else resolve(value);
        await settle();
      };
      const told = (/** @type {any} */ far) => {
        tell?.({ share: 0, left: '', ...far });
        return settle();
      };
      questions.push({ name, body, stop, tell: told, answer });
      const value = typeof known[name] === 'function' ? known[name](body) : known[name];
      if (value) void answer(value);
      return promise;
    },
  });
  const turn = signal(0);
  const root = /** @type {any} */ (parse('<div></div>').querySelector('div'));
  const { methods = METHODS, drawing = [] } = known;
  const told = { how: '<p>how</p>', methods, drawing, tables: TABLES };
  render(html`<${Explain} page=${{ store, source: SERVER, ask, turn }} ...${told} />`, root);
  ending.after(() => render(null, root));
  await settle();
  const find = (/** @type {string} */ selector) => root.querySelector(selector);
  return {
    ...{ browser, place, store, turn, root, known, find },
    all: (/** @type {string} */ selector) => [...root.querySelectorAll(selector)],
    text: (/** @type {string} */ selector) => find(selector).textContent.trim(),
    card: (/** @type {string} */ name, part = '') => find(`[data-method=${name}] ${part}`),
    asked: (/** @type {string[]} */ ...names) => questions.filter(({ name }) => names.includes(name)),
    /** Changes the link, and waits. */
    async set(/** @type {Record<string, any>} */ change, how = {}) {
      store.set(change, how);
      await settle();
    },
    async click(/** @type {string} */ selector) {
      find(selector).click();
      await settle();
    },
  };
}
