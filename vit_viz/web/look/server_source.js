// The numbers of the page's explorer: from the routes of the server that it came from (vit_viz/ui/routes.py).

import { parseLayer } from '../../explorer/attention.js';
import { Gone, routeUrl } from '../../explorer/source.js';
import { viewLink } from '../../explorer/state.js';
/** @import { Trace } from '../../explorer/geometry.js' */

/**
 * @param {string} path @param {AbortSignal} signal
 * @param {number} [tries] a dropped connection is tried once more
 * @returns {Promise<Response>}
 */
async function get(path, signal, tries = 2) {
  let answer;
  try {
    answer = await fetch(routeUrl(path), { signal, credentials: 'same-origin' });
  } catch (error) {
    if (signal.aborted || tries < 2) throw error;
    await new Promise((done) => window.setTimeout(done, 400));
    return get(path, signal, tries - 1);
  }
  if (answer.status === 404 || answer.status === 410)
    throw new Gone('The server no longer keeps this picture. Choose it again, or reload the page.');
  if (!answer.ok)
    throw new Error(`The server refused this request (${answer.status}). Reload the page to try again.`);
  return answer;
}

/** Where the routes of a trace are. */
function addressOf(/** @type {string} */ route, /** @type {Trace} */ { trace }) {
  return `/vit_viz/${route}/${encodeURIComponent(trace)}`;
}

/** @type {import('../../explorer/source.js').Source} */
export const SERVER = Object.freeze({
  photo: routeUrl,

  async layer(trace, layer, signal) {
    const { heads, tokens, head_dim: headDim, scales, source } = trace;
    const answer = await get(`${addressOf('layer', trace)}/${layer}`, signal);
    const kind = answer.headers.get('X-Vit-Viz-Kind') ?? source[layer];
    return parseLayer(await answer.arrayBuffer(), { kind, heads, tokens, headDim, scale: scales[layer] });
  },

  async rows(trace, layer, { query, direction }, signal) {
    const search = new URLSearchParams({ query, direction });
    return new Float32Array(
      await (await get(`${addressOf('rows', trace)}/${layer}?${search}`, signal)).arrayBuffer(),
    );
  },

  async exact(trace, { layer, head, query, direction, norm }, signal) {
    const search = new URLSearchParams({ layer: String(layer), head: String(head), query, direction });
    if (norm) search.set('norm', '1');
    return (await get(`${addressOf('numbers', trace)}?${search}`, signal)).json();
  },

  page: (trace, view) => routeUrl(`${addressOf('explorer', trace)}.html?${viewLink(view, trace)}`),
});
