// What is being looked at, as a value: moves through layers, heads and patches, and the permalink. No document here.

import { FUSIONS } from './attention.js';
import { centreOf, clamp, movedPatch, patchQuery, queryPatches, queryTokens } from './geometry.js';
import { defaultsOf, isPossible, writeOption } from './options.js';
/** @import { Trace } from './geometry.js' */

/**
 * @typedef {object} View
 * @property {number} layer
 * @property {number | string} head a number, or "mean", "max", "min"
 * @property {string} query as vit_viz.geometry.format_query writes it
 * @property {'row' | 'column'} direction
 * @property {'shared' | 'layer' | 'own'} scale
 * @property {boolean} clip the brightest hundredth of the values shares the last colour
 * @property {import('./styles.js').Style} style
 * @property {number} alpha strength of the style, 0 to 1
 * @property {string} table colours of heat
 * @property {boolean} smooth between patch centres
 * @property {number} mask share of the attention that is kept, of the top patches; 0: all
 * @property {boolean} norm weight x size of the value, ||v_j W_O,h||
 * @property {boolean} extremes whether the mosaic has columns for the largest and the smallest of all heads
 */

/**
 * The view that a trace opens with: its output's query, where the server says that a first look begins.
 * @param {Trace} trace @returns {View}
 */
export function initialView(trace) {
  const { layer, head } = trace.opening;
  return /** @type {View} */ ({
    ...defaultsOf(trace.options),
    layer,
    head,
    query: trace.default_query,
  });
}

/**
 * A view changed by whatever of `change` is valid for this trace; the rest is ignored, never repaired. A head that is the largest or
 * the smallest of all brings the columns of both; with these it goes.
 * @param {View} view @param {Record<string, unknown>} change @param {Trace} trace @returns {View}
 */
export function updateView(view, change, trace) {
  const next = /** @type {Record<string, unknown>} */ ({ ...view });
  for (const [key, value] of Object.entries(change)) {
    if (key in next && isValid(key, value, trace)) next[key] = value;
  }
  if (isExtreme(next.head) && 'extremes' in next) {
    if (change.extremes === false && !('head' in change)) next.head = FUSIONS[0];
    else next.extremes = true;
  }
  return /** @type {View} */ (/** @type {unknown} */ (next));
}

/** @param {string} key @param {unknown} value @param {Trace} trace @returns {boolean} */
function isValid(key, value, trace) {
  const within = (/** @type {number} */ end) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) < end;
  if (key === 'layer') return within(trace.layers);
  if (key === 'head') return within(trace.heads) || FUSIONS.includes(String(value));
  if (key === 'query') return typeof value === 'string' && isQuery(value, trace);
  const option = trace.options.find(({ name }) => name === key);
  return option !== undefined && isPossible(option, value);
}

/** @param {string} query @param {Trace} trace */
function isQuery(query, trace) {
  const tokens = queryTokens(query, trace);
  return tokens === 'pool' || (tokens !== null && tokens.length > 0);
}

/** Whether a head stands for the largest or the smallest of all. */
function isExtreme(/** @type {unknown} */ head) {
  return FUSIONS.indexOf(String(head)) > 0;
}

/** Columns of the mosaic: the heads, their mean and, where they are wanted, the largest and the smallest of all. */
export function shownColumns(/** @type {Pick<View, 'extremes'> | null} */ view, heads = 0) {
  return heads + (view?.extremes ? FUSIONS.length : 1);
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
 * @param {View} view @param {Trace} trace @param {number} layers @param {number} heads @returns {View}
 */
export function stepHead(view, trace, layers, heads) {
  const layer = clamp(view.layer + layers, trace.layers - 1);
  const column = clamp(headColumn(view.head, trace.heads) + heads, shownColumns(view, trace.heads) - 1);
  return { ...view, layer, head: columnHead(column, trace.heads) };
}

/**
 * The query beside another: of a token that is no patch, or the pool, the centre, of a region the one beside its first or last patch.
 * @param {string} query @param {Trace} trace @param {[number, number]} step down, right
 */
export function besideQuery(query, trace, [down, right]) {
  const patches = queryPatches(query, trace);
  const last = patches[down + right < 0 ? 0 : patches.length - 1];
  const to = patches.length ? movedPatch(last, [down, right], trace.grid) : centreOf(trace.grid);
  return patchQuery([to], trace.grid[1]);
}

/**
 * A view as a link says it, without what it is of.
 * @param {View} view @param {Pick<Trace, 'options'>} trace
 */
export function viewLink(view, { options }) {
  const link = new URLSearchParams({ layer: String(view.layer), head: String(view.head), q: view.query });
  for (const option of options) {
    const text = writeOption(option, view[/** @type {keyof View} */ (option.name)]);
    if (text !== null) link.set(option.link, text);
  }
  return link.toString().replaceAll('%2C', ',').replaceAll('%3B', ';');
}
