// What a view shows, in words: the title under the photo, the mark on it, and how it was drawn.

import { isNamed, queryPatches, queryWords } from './geometry.js';
import { suited } from './styles.js';

/**
 * @typedef {import('./geometry.js').Trace} Trace
 * @typedef {import('./state.js').View} View
 */

const SCALES = { shared: 'all alike', layer: 'each layer', own: 'each head' };

/** A query within a sentence. */
export function subject(/** @type {string} */ query, /** @type {Trace} */ trace) {
  const words = queryWords(query, trace).replace(/^(.*\d) token$/, '$1');
  if (isNamed(query, trace)) return /\d$/.test(words) ? words : `the ${words}`;
  if (query === 'pool') return `the ${words}`;
  return queryPatches(query, trace).length === 1 ? words : `a ${words}`;
}

/** Which heads a cell of the mosaic stands for. */
export function headWords(/** @type {number | string} */ head) {
  if (typeof head === 'number') return `head ${head}`;
  return head === 'mean' ? 'all heads' : `${head} over heads`;
}

/** Where the query looks, or what looks at it. */
function looks(/** @type {View} */ view, /** @type {Trace} */ trace) {
  const query = subject(view.query, trace);
  return view.direction === 'row' ? `where ${query} looks` : `where ${query} is looked at from`;
}

/** Layer, heads, query and direction. */
export function title(/** @type {View} */ view, /** @type {Trace} */ trace) {
  return `Layer ${view.layer}, ${headWords(view.head)}: ${looks(view, trace)}`;
}

/** What the style does to the photo, on the photo itself. */
export function mark(/** @type {View} */ view, /** @type {Trace} */ trace) {
  const does = { light: 'lit', tint: 'tinted', heat: 'coloured' }[suited(view.style, trace.unlit)];
  return `${does} ${looks(view, trace)}`;
}

/** How it was drawn: model, scale, style, smooth or patches, and what was left out. */
export function details(/** @type {View} */ view, /** @type {Trace} */ trace) {
  const style = suited(view.style, trace.unlit);
  const sentences = [
    trace.model,
    ...(trace.part ? [`Part of ${trace.name ?? trace.image}`] : []),
    `Scale: ${SCALES[view.scale]}${view.clip ? ', peaks clipped' : ''}`,
    `${style[0].toUpperCase()}${style.slice(1)}, ${view.smooth ? 'smooth' : 'patches'}`,
  ];
  if (style !== view.style) sentences.push(`This photo is ${trace.unlit} for light: tint`);
  if (view.norm) sentences.push('Weight \u00d7 size of the value');
  if (view.mask) sentences.push(`Only the top ${Math.round(view.mask * 100)}%`);
  return `${sentences.join('. ')}.`;
}

/** The whole caption, for files and screen readers. */
export function caption(/** @type {View} */ view, /** @type {Trace} */ trace) {
  return `${title(view, trace)}. ${details(view, trace)}`;
}
