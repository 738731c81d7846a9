// What is being looked at, as a value: moves through layers, heads and patches, and the permalink. No document here.

import { FUSIONS } from './attention.js';
import { patchQuery, queryPatches, queryTokens, queryWords } from './geometry.js';

/**
 * @typedef {import('./geometry.js').Trace} Trace
 *
 * @typedef {object} View
 * @property {number} layer
 * @property {number | string} head a number, or "mean", "max", "min"
 * @property {string} query as vit_viz.geometry.format_query writes it
 * @property {'row' | 'column'} direction
 * @property {'shared' | 'layer' | 'own'} scale
 * @property {boolean} clip the brightest hundredth of the values shares the last colour
 * @property {number} alpha strength of the overlay, 0 to 1
 * @property {string} table colour table
 * @property {boolean} smooth
 * @property {number} mask share of the mass that stays visible; 0: no mask
 * @property {boolean} norm weight by ||v_j W_O,h||
 * @property {null} second room for a second, linked photo or model; not used yet
 */

/** Colour tables for maps without a sign. */
export const TABLES = ['viridis', 'magma', 'cividis', 'gray'];

/** Options and their defaults; what has its default is left out of the permalink. */
const OPTIONS = Object.freeze({
  direction: 'row',
  scale: 'shared',
  clip: true,
  alpha: 0.55,
  table: 'viridis',
  smooth: false,
  mask: 0,
  norm: false,
  second: null,
});

/** Names in the query string. */
const KEYS = Object.freeze({ query: 'q', direction: 'dir', table: 'colors' });

/**
 * The view that a trace opens with: its output's query, a layer in the last third, the mean of the heads.
 * @param {Trace} trace
 * @returns {View}
 */
export function initialView(trace) {
  const layer = Math.min(trace.layers - 1, Math.floor((2 * trace.layers + 1) / 3));
  return /** @type {View} */ ({ ...OPTIONS, layer, head: 'mean', query: trace.default_query });
}

/**
 * A view changed by whatever of `change` is valid for this trace; the rest is ignored, never repaired.
 * @param {View} view
 * @param {Record<string, unknown>} change
 * @param {Trace} trace
 * @returns {View}
 */
export function updateView(view, change, trace) {
  const next = /** @type {Record<string, unknown>} */ ({ ...view });
  for (const [key, value] of Object.entries(change)) {
    if (key in next && key !== 'second' && isValid(key, value, trace)) next[key] = value;
  }
  return /** @type {View} */ (/** @type {unknown} */ (next));
}

/**
 * @param {string} key
 * @param {unknown} value
 * @param {Trace} trace
 * @returns {boolean}
 */
function isValid(key, value, trace) {
  const within = (/** @type {number} */ end) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) < end;
  const share = typeof value === 'number' && value >= 0 && value <= 1;
  switch (key) {
    case 'layer':
      return within(trace.layers);
    case 'head':
      return within(trace.heads) || FUSIONS.includes(String(value));
    case 'query':
      return typeof value === 'string' && isQuery(value, trace);
    case 'direction':
      return value === 'row' || value === 'column';
    case 'scale':
      return ['shared', 'layer', 'own'].includes(String(value));
    case 'table':
      return TABLES.includes(String(value));
    case 'alpha':
    case 'mask':
      return share;
    default:
      return typeof value === 'boolean';
  }
}

/** @param {string} query @param {Trace} trace */
function isQuery(query, trace) {
  const tokens = queryTokens(query, trace);
  return tokens === 'pool' || (tokens !== null && tokens.length > 0);
}

/** Column of the mosaic in which a head or a fusion stands. */
export function headColumn(/** @type {number | string} */ head, heads = 0) {
  return typeof head === 'number' ? head : heads + FUSIONS.indexOf(head);
}

/** The inverse of `headColumn`. */
export function columnHead(/** @type {number} */ column, heads = 0) {
  return column < heads ? column : FUSIONS[column - heads];
}

/**
 * One step through layers and heads; stops at the edges.
 * @param {View} view
 * @param {Trace} trace
 * @param {number} layers
 * @param {number} heads
 * @returns {View}
 */
export function stepHead(view, trace, layers, heads) {
  const layer = clamp(view.layer + layers, 0, trace.layers - 1);
  const column = clamp(headColumn(view.head, trace.heads) + heads, 0, trace.heads + FUSIONS.length - 1);
  return { ...view, layer, head: columnHead(column, trace.heads) };
}

/**
 * One step of the query patch; a token that is no patch, or the pool, starts at the centre, a region at its first patch.
 * @param {View} view
 * @param {Trace} trace
 * @param {number} down
 * @param {number} right
 * @param {boolean} [extend] add the new patch to the region instead of moving
 * @returns {View}
 */
export function stepQuery(view, trace, down, right, extend = false) {
  const [rows, cols] = trace.grid;
  const patches = queryPatches(view.query, trace);
  const last = patches.length ? patches[down + right < 0 ? 0 : patches.length - 1] : null;
  const centre = Math.floor((rows - 1) / 2) * cols + Math.floor((cols - 1) / 2);
  const to =
    last === null
      ? centre
      : clamp(Math.floor(last / cols) + down, 0, rows - 1) * cols + clamp((last % cols) + right, 0, cols - 1);
  return { ...view, query: patchQuery(extend ? [...patches, to] : [to], cols) };
}

function clamp(/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) {
  return Math.min(high, Math.max(low, value));
}

/**
 * The query string of a view; keys that are not ours are kept.
 * @param {View} view
 * @param {Pick<Trace, 'model' | 'image' | 'mode'>} trace
 * @param {string} [search] the present query string
 * @returns {string} starts with "?"
 */
export function formatLink(view, trace, search = '') {
  const link = new URLSearchParams(search);
  link.set('model', trace.model);
  link.set('image', trace.image);
  if (trace.mode && trace.mode !== 'fit') link.set('mode', trace.mode);
  else link.delete('mode');
  link.set('layer', String(view.layer));
  link.set('head', String(view.head));
  link.set('q', view.query);
  for (const [key, standard] of Object.entries(OPTIONS)) {
    const value = view[/** @type {keyof View} */ (key)];
    const name = linkName(key);
    if (value === standard) link.delete(name);
    else link.set(name, typeof value === 'boolean' ? String(Number(value)) : String(value));
  }
  return `?${link.toString().replaceAll('%2C', ',').replaceAll('%3B', ';')}`;
}

/**
 * What a query string asks for: which trace, and the change to its view. Nothing is validated here; `updateView` does.
 * @param {string} search
 * @returns {{model: string | null, image: string | null, mode: string, change: Record<string, unknown>}}
 */
export function parseLink(search) {
  const link = new URLSearchParams(search);
  /** @type {Record<string, unknown>} */
  const change = {};
  for (const key of ['layer', 'head', 'query', ...Object.keys(OPTIONS)]) {
    const text = link.get(linkName(key));
    if (text !== null) change[key] = parseOption(key, text);
  }
  return { model: link.get('model'), image: link.get('image'), mode: link.get('mode') ?? 'fit', change };
}

function linkName(/** @type {string} */ key) {
  return /** @type {Record<string, string>} */ (KEYS)[key] ?? key;
}

/** @param {string} key @param {string} text @returns {unknown} */
function parseOption(key, text) {
  if (['smooth', 'norm', 'clip'].includes(key)) return text === '1';
  if (['layer', 'alpha', 'mask'].includes(key) || (key === 'head' && /^[0-9]+$/.test(text)))
    return Number(text);
  return text;
}

/**
 * The sentence under a picture: always model, layer, head, query, direction and scale.
 * @param {View} view
 * @param {Trace} trace
 */
export function caption(view, trace) {
  const head = typeof view.head === 'number' ? `head ${view.head}` : `${view.head} over heads`;
  const query = queryWords(view.query, trace);
  const looks = view.direction === 'row' ? `${query} looks at` : `${query} is looked at by`;
  const scales = { shared: 'one scale for all cells', layer: 'one scale per layer', own: 'own scale' };
  const extras = [scales[view.scale] + (view.clip ? ', peaks clipped' : '')];
  if (view.norm) extras.push('weighted by value norm');
  if (view.mask) extras.push(`top ${Math.round(view.mask * 100)}% of mass`);
  return `${trace.model}, layer ${view.layer}, ${head}: ${looks}; ${extras.join(', ')}`;
}
