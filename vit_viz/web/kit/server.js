// The server as the source of a page: questions by name (vit_viz/rest.py), what a view is of (vit_viz/ui/opened.py), and the numbers of
// its pass (vit_viz/ui/routes.py). No other module of the page names a route, or fetches anything, but for those of the Survey tab.

import { parseLayer, unpackHalf } from '../../explorer/attention.js';
import { bytesOf } from '../../explorer/paint.js';
import { Gone, routeUrl } from '../../explorer/source.js';
import { viewLink } from '../../explorer/state.js';
import { picturesIn } from '../../ui/kit/carried.js';
import { fetched } from '../../ui/kit/elements.js';
import { readVectors } from '../../ui/kit/numbers.js';
import { PAGE_NAME } from '../../ui/visit/link.js';
import { Refused } from './ask.js';
import { unpacked } from './safetensors.js';

const JSON_TYPE = 'application/json';
const SAFETENSORS = 'application/x-safetensors';
const EVENTS = 'text/event-stream';

/** What is asked of the page's own routes; the addresses in their answers are good for a while only. */
const OF_PAGE = new Set(['open', 'target', 'offered', 'load', 'edited']);

/**
 * On a Space that is lent GPUs: what the Hub's page around this one says of who asks, whose quota a lent GPU counts against.
 * Gradio's own script finds out whether it does, and would ask so for its own questions.
 * @returns {Promise<Record<string, string>>}
 */
function headersOfHub() {
  return new Promise((tell) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => {
      port1.close();
      tell(data ?? {});
    };
    window.parent.postMessage('zerogpu-headers', 'https://huggingface.co', [port2]);
  });
}

/** Posts as this page. @param {string} path @param {Record<string, string>} headers @param {BodyInit} body @param {AbortSignal} [signal] */
async function post(path, headers, body, signal) {
  const ofHub = /** @type {any} */ (window).supports_zerogpu_headers ? await headersOfHub() : {};
  return fetch(routeUrl(path), {
    method: 'POST',
    credentials: 'same-origin',
    headers: { ...ofHub, ...headers, 'X-Vit-Viz-Page': PAGE_NAME },
    body,
    signal,
  });
}

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

/** Where a route of a trace is. @param {string} route @param {string} trace */
function addressOf(route, trace) {
  return `/vit_viz/${route}/${encodeURIComponent(trace)}`;
}

/** @type {import('./ask.js').Source} */
export const SERVER = Object.freeze({
  /** A prop of one of the page's parts, as JSON in the configuration that Gradio is given. */
  stated(name) {
    /** @type {{components: {props: {props?: Record<string, string>}}[]} | undefined} */
    const config = /** @type {any} */ (globalThis).gradio_config;
    const part = config?.components.find(({ props }) => props.props?.[name]);
    return part ? JSON.parse(part.props.props?.[name] ?? 'null') : null;
  },

  async answer(name, body, signal, tell) {
    const isOfPage = OF_PAGE.has(name);
    const types = [...(tell ? [EVENTS] : []), isOfPage ? JSON_TYPE : SAFETENSORS];
    const path = isOfPage ? `/vit_viz/${name}` : `/api/v1/${name}`;
    const headers = { 'Content-Type': JSON_TYPE, Accept: types.join(', ') };
    const answer = await post(path, headers, JSON.stringify(body), signal);
    if (!answer.ok) throw new Error(await refusal(answer));
    const read = isOfPage ? JSON.parse : (/** @type {string} */ data) => unpacked(bytesOf(data).buffer);
    if (tell) return followed(/** @type {any} */ (answer.body), tell, read);
    return isOfPage ? answer.json() : unpacked(await answer.arrayBuffer());
  },

  async kept(name, body, signal, hear) {
    const headers = { 'Content-Type': JSON_TYPE, Accept: SAFETENSORS, 'Cache-Control': 'only-if-cached' };
    const answer = await post(`/api/v1/${name}`, headers, JSON.stringify(body), signal);
    if (!answer.ok) throw new Error(await refusal(answer));
    const said = unpacked(await answer.arrayBuffer());
    if ('facts' in said) return said;
    if (said.refused) throw new Error(said.refused);
    hear?.(said);
    return null;
  },

  keeps: (name) => !OF_PAGE.has(name),
  answers: () => true,
  accepts: 'image/*',
  received: async (carried) => picturesIn(carried),

  at: fetched,

  makes: () => true,

  async file(name, body, type, signal) {
    const headers = { 'Content-Type': JSON_TYPE, Accept: type };
    const answer = await post(`/api/v1/${name}`, headers, JSON.stringify(body), signal);
    if (!answer.ok) throw new Error(await refusal(answer));
    return answer;
  },

  async bring(file, signal) {
    const headers = {
      'Content-Type': 'application/octet-stream',
      'X-Vit-Viz-File': encodeURIComponent(file.name),
    };
    const answer = await post('/vit_viz/bring', headers, file, signal);
    if (!answer.ok) throw new Refused(await refusal(answer));
    const { problem, ...brought } = await answer.json();
    if (problem) throw new Refused(problem);
    return brought;
  },

  async proof(trace, signal) {
    const address = routeUrl(addressOf('proof', trace));
    const answer = await fetch(address, { signal, credentials: 'same-origin' });
    if (answer.status === 400) throw new Refused('The pictures of this pass mislead.');
    return answer.ok ? answer.json() : null;
  },

  photo: routeUrl,

  async layer({ trace, heads, tokens, head_dim: headDim, scales, source }, layer, signal) {
    const answer = await get(`${addressOf('layer', trace)}/${layer}`, signal);
    const kind = answer.headers.get('X-Vit-Viz-Kind') ?? source[layer];
    return parseLayer(await answer.arrayBuffer(), { kind, heads, tokens, headDim, scale: scales[layer] });
  },

  async rows({ trace }, layer, { query, direction }, signal) {
    const search = new URLSearchParams({ query, direction });
    return new Float32Array(
      await (await get(`${addressOf('rows', trace)}/${layer}?${search}`, signal)).arrayBuffer(),
    );
  },

  async exact({ trace }, { layer, head, query, direction, norm }, signal) {
    const search = new URLSearchParams({ layer: String(layer), head: String(head), query, direction });
    if (norm) search.set('norm', '1');
    return (await get(`${addressOf('numbers', trace)}?${search}`, signal)).json();
  },

  page: (trace, view) => routeUrl(`${addressOf('explorer', trace.trace)}.html?${viewLink(view, trace)}`),

  async vectors(trace, state, role, tokens, signal) {
    const answer = await fetched(`${addressOf('tokens', trace)}/${state}?role=${role}`, signal);
    return readVectors(await answer.arrayBuffer(), tokens);
  },

  async places(trace, grid, signal) {
    const answer = await fetched(`${addressOf('positions', trace)}?places=${grid}`, signal);
    const buffer = await answer.arrayBuffer();
    return unpackHalf(buffer, 0, buffer.byteLength / 2);
  },
});

/**
 * Reads how far an answer is, and then the answer.
 * @param {ReadableStream<Uint8Array>} stream of events @param {import('./ask.js').Tell} tell @param {(data: string) => any} read
 */
async function followed(stream, tell, read) {
  const [reader, decoder] = [stream.getReader(), new TextDecoder()];
  let far = { share: 0, left: '' };
  for (let text = ''; ;) {
    const { done, value } = await reader.read();
    if (done) throw new Error('The answer broke off. Ask again.');
    const events = (text + decoder.decode(value, { stream: true })).split('\n\n');
    text = /** @type {string} */ (events.pop());
    for (const event of events) {
      const [, kind, data] = /** @type {RegExpMatchArray} */ (event.match(/^event: (\w+)\ndata: (.*)$/s));
      if (kind === 'progress') tell((far = JSON.parse(data)));
      else if (kind === 'preview') tell({ ...far, preview: read(data) });
      else if (kind === 'refused') throw new Error(JSON.parse(data).error.slice(0, 300));
      else return read(data);
    }
  }
}

/** The sentence of a refusal. @param {Response} answer */
async function refusal(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error.slice(0, 300);
  } catch {
    return `The server refused this question (${answer.status}). Reload the page to try again.`;
  }
}
