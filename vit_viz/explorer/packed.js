// A source without a server: every layer packed (vit_viz/explorer/packing.py), in the page or one question away from it.

import { attentionInto, parseLayer } from './attention.js';
import { queryTokens } from './geometry.js';
/** @import { Layer } from './attention.js' */
/** @import { Trace } from './geometry.js' */
/** @import { View } from './state.js' */

/**
 * @typedef {object} Packing how the layers of a trace were packed
 * @property {'fp16' | 'int8'} storage
 * @property {number[] | null} pool weights of the tokens in the query "pool", where the model pools by a learned attention
 */

/** What was compressed with zlib. @param {Uint8Array<ArrayBuffer>} bytes @returns {Promise<ArrayBuffer>} */
export async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

/** Pairs of bytes from all first ones followed by all second ones. */
export function paired(/** @type {ArrayBuffer} */ planes) {
  const bytes = new Uint8Array(planes);
  const half = bytes.length / 2;
  const pairs = new Uint8Array(bytes.length);
  for (let i = 0; i < half; i++) {
    pairs[2 * i] = bytes[i];
    pairs[2 * i + 1] = bytes[half + i];
  }
  return pairs.buffer;
}

/**
 * A layer of whole steps from -127 to 127, whose length each row has for itself.
 * @param {ArrayBuffer} buffer @param {{heads: number, tokens: number, headDim: number, scale: number}} about
 * @returns {Layer}
 */
export function parseSteps(buffer, { heads, tokens, headDim, scale }) {
  const cells = heads * tokens;
  const floats = (/** @type {number} */ place) => new Float32Array(buffer, 4 * cells * place, cells).slice();
  const numbers = (/** @type {number} */ place, /** @type {number} */ factor) => {
    const steps = new Int8Array(buffer, 16 * cells + place * cells * headDim, cells * headDim);
    const lengths = floats(2 + place);
    return Float32Array.from(steps, (step, i) => step * lengths[Math.floor(i / headDim)] * factor);
  };
  const norms = floats(1);
  return {
    kind: 'qk',
    heads,
    tokens,
    headDim,
    q: numbers(0, scale),
    k: numbers(1, 1),
    lse: floats(0),
    norms: norms.some((n) => n > 0) ? norms : null,
  };
}

/**
 * The source of an explorer whose layers are packed.
 * @param {(layer: number) => Promise<Uint8Array<ArrayBuffer>>} bytesOf @param {Packing} packing
 * @returns {import('./source.js').Source}
 */
export function packedSource(bytesOf, { storage, pool }) {
  const layerOf = async (/** @type {Trace} */ trace, /** @type {number} */ layer) => {
    const { heads, tokens, head_dim: headDim, scales, source } = trace;
    const about = { kind: source[layer], heads, tokens, headDim, scale: scales[layer] };
    const buffer = await inflated(await bytesOf(layer));
    if (storage === 'int8' && about.kind === 'qk') return parseSteps(buffer, about);
    return parseLayer(paired(buffer), about);
  };
  return sourceOf(layerOf, pool);
}

/**
 * The source of an explorer all of whose layers are here.
 * @param {(trace: Trace, layer: number) => Promise<Layer>} layerOf @param {number[] | null} pool see `Packing`
 * @returns {import('./source.js').Source}
 */
export function sourceOf(layerOf, pool) {
  return {
    photo: (address) => address,
    layer: layerOf,
    rows: async (trace, layer, view) =>
      weightedRows(await layerOf(trace, layer), view, weightsOf(view.query, trace, pool)),
    exact: async () => null,
    page: () => '',
  };
}

/** Tokens of a query, each with its weight. @returns {[number, number][]} */
function weightsOf(
  /** @type {string} */ query,
  /** @type {Trace} */ trace,
  /** @type {number[] | null} */ pool,
) {
  const tokens = queryTokens(query, trace);
  if (Array.isArray(tokens)) return tokens.map((token) => [token, 1 / tokens.length]);
  return (pool ?? []).map((weight, token) => [token, weight]);
}

/** The weighted mean of the rows, or columns, of some tokens, [heads, tokens]. */
function weightedRows(
  /** @type {Layer} */ layer,
  /** @type {View} */ { direction },
  /** @type {[number, number][]} */ weights,
) {
  const { heads, tokens } = layer;
  const sum = new Float32Array(heads * tokens);
  const row = new Float32Array(tokens);
  for (let h = 0; h < heads; h++) {
    for (const [token, weight] of weights) {
      attentionInto(row, layer, h, token, direction);
      for (let j = 0; j < tokens; j++) sum[h * tokens + j] += weight * row[j];
    }
  }
  return sum;
}
