// A pass of the engine as an explorer takes it: the shape of its trace, and the source of its layers.

import { sourceOf } from '../explorer/packed.js';
import { unreadOf } from './config.js';
/** @import { Source } from '../explorer/source.js' */
/** @import { Config } from './config.js' */
/** @import { Traced } from './engine.js' */

/** What `trace_value` of vit_viz/explorer/value.py says of a trace, without the options of a view, which Python declares. */
export function traceValue(/** @type {Traced} */ traced, /** @type {Config} */ config) {
  return {
    layers: traced.layers.length,
    heads: traced.heads,
    tokens: traced.tokens,
    head_dim: traced.headDim,
    scales: traced.layers.map(() => traced.scale),
    prefix: traced.prefix,
    suffix: [],
    unread: unreadOf(config),
    grid: traced.grid,
    pooling: config.pooling,
    default_query: config.pooling === 'class' ? 'class' : 'pool',
    crop: traced.crop,
    source: traced.layers.map(({ layer }) => layer.kind),
    norms: traced.layers.every(({ layer }) => layer.norms !== null),
  };
}

/** The source of an explorer of one pass. @returns {Source} */
export function engineSource(/** @type {Traced} */ { layers, pool }) {
  return sourceOf(async (_, layer) => layers[layer].layer, pool && [...pool]);
}
