// Where an explorer has its numbers: from a server, from the file that it stands in, from a notebook; and what its page does for it.

/** @import { Layer } from './attention.js' */
/** @import { Trace } from './geometry.js' */
/** @import { Numbers } from './server.js' */
/** @import { View } from './state.js' */

/**
 * @typedef {object} Source
 * @property {(address: string) => string} photo the address of a photo, as an image takes it
 * @property {(trace: Trace, layer: number, signal: AbortSignal) => Promise<Layer>} layer what a layer is computed from
 * @property {(trace: Trace, layer: number, view: View, signal: AbortSignal) => Promise<Float32Array>} rows of the view's query in a
 *     layer, [heads, tokens], where the explorer does not compute them itself
 * @property {(trace: Trace, view: View, signal: AbortSignal) => Promise<Numbers | null>} exact the numbers of one map in fp32; null
 *     where nobody knows them better
 * @property {(trace: Trace, view: View) => string} page address of this view as a file of its own; '' where there is none
 */

/** The trace is no longer kept where it was. */
export class Gone extends Error {}

/** Address of a route, also behind a path prefix. */
export function routeUrl(/** @type {string} */ path) {
  const root = /** @type {any} */ (window).gradio_config?.root ?? '';
  return path.startsWith('/') ? `${String(root).replace(/[/]$/, '')}${path}` : path;
}

/**
 * An answer that is to be saved: its question, and its body, in which "figure" says how it is drawn.
 * @typedef {[name: string, body: any]} Saved
 */

/**
 * Asks whoever saves answers here for one, by an event; false where nobody does.
 * @param {Element} element @param {Saved} question
 * @param {string[]} [formats] that there are, where they are not those of all figures
 * @param {string} [page] address of what is shown as a page of its own; '' where there is none
 */
export function askForFigure(element, question, formats, page = '') {
  const detail = { question, formats, page };
  const asked = new window.CustomEvent('vv-figure', { bubbles: true, cancelable: true, detail });
  return !element.dispatchEvent(asked);
}
