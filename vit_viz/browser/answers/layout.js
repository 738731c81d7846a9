// Which token of a pass is what, as `TokenLayout` of vit_viz/geometry.py has it: names, queries, and numbers of tokens as maps.

import { classTokens, queryTokens, queryWords } from '../../explorer/geometry.js';
import { unreadOf } from '../config.js';
import { numbers } from './form.js';
/** @import { Traced } from '../engine.js' */
/** @import { Context } from './form.js' */

/** What sentences about queries, and the names of tokens, are read from. */
export function layoutOf(/** @type {Context} */ { traced, engine }) {
  const { grid, prefix } = traced;
  const { config } = engine.model;
  return {
    ...{ grid, prefix, suffix: [], pooling: config.pooling, unread: unreadOf(config) },
    ...{ patches: grid[0] * grid[1], first: prefix.length },
  };
}

/** The query that stands for what the output is read from. */
export function outputQuery(/** @type {Context} */ context) {
  const layout = layoutOf(context);
  return layout.pooling === 'class' && classTokens(layout).join() === 'class' ? 'class' : 'pool';
}

/**
 * The weight of each token in a query, [tokens]; their sum is 1. Throws a sentence where the query names no token.
 * @param {Context} context @param {string} query
 */
export function queryWeights(context, query) {
  const { traced } = context;
  if (query === 'pool' && traced.pool) return Float64Array.from(traced.pool);
  const tokens = tokensOf(context, query);
  const weights = new Float64Array(traced.tokens);
  for (const token of tokens) weights[token] = Math.fround(1 / tokens.length);
  return weights;
}

/** @param {Context} context @param {string} query @returns {number[]} ascending */
function tokensOf(context, query) {
  const layout = layoutOf(context);
  const tokens = queryTokens(
    query.replace(/[()\s]/g, (one) => (/[a-z]/.test(query) ? one : '')),
    layout,
  );
  if (Array.isArray(tokens) && tokens.length) return tokens;
  const places = [...query.matchAll(/(\d{1,5})\s*,\s*(\d{1,5})/g)];
  if (/^[a-z]+( \d{1,4})?$/.test(query))
    throw new Error(
      `This model has no token '${query}'; its prefix tokens are: ${layout.prefix.join(', ') || 'none'}.`,
    );
  const [rows, cols] = layout.grid;
  for (const [, row, col] of places)
    if (Number(row) >= rows || Number(col) >= cols)
      throw new Error(
        `Patch (${Number(row)}, ${Number(col)}) does not exist: rows are 0-${rows - 1} and columns 0-${cols - 1}.`,
      );
  throw new Error(`A query is a token name or row,col pairs such as 7,12;7,13, not '${query.slice(0, 80)}'.`);
}

/** A token in words: "class", "register 0", "patch (3, 5)". @param {Context} context @param {number} token */
export function tokenName(context, token) {
  const { first, prefix, grid } = layoutOf(context);
  if (token < first) return prefix[token];
  return `patch (${Math.floor((token - first) / grid[1])}, ${(token - first) % grid[1]})`;
}

/** A query in words, for captions: "class token", "register 0", "patch (3, 5)". @param {Context} context @param {string} query */
export function described(context, query) {
  if (query === 'pool') return queryWords(query, layoutOf(context));
  const tokens = tokensOf(context, query);
  const name = tokenName(context, tokens[0]);
  if (tokens.length > 1) return `region of ${tokens.length} patches`;
  return /^patch|\d$/.test(name) ? name : `${name} token`;
}

/** Where the patches lie on the photo, as answers have it. */
export function cropBox(/** @type {Traced} */ { crop }) {
  return { original_size: crop.original, input_size: crop.input, region: crop.region };
}

/**
 * Numbers of all tokens in each state, [tokens] or [tokens, channels], as maps of the patches.
 * @param {Context} context @param {ArrayLike<number>[]} values @param {string[]} names of the states
 * @param {{unit: string, range: [number, number], method: string, signed?: boolean, note?: string}} about @param {number} [channels]
 */
export function tokenMaps(
  context,
  values,
  names,
  { unit, range, method, signed = false, note = '' },
  channels,
) {
  const { grid, prefix, first, patches } = layoutOf(context);
  const each = channels ?? 1;
  const behind = channels === undefined ? [] : [channels];
  const part = (/** @type {number} */ start, /** @type {number} */ end) =>
    values.flatMap((state) => Array.prototype.slice.call(state, start * each, end * each));
  return {
    values: numbers([values.length, ...grid, ...behind], part(first, first + patches)),
    names,
    unit,
    value_range: range,
    signed,
    method,
    named: Object.fromEntries(
      prefix.map((name, i) => [name, numbers([values.length, ...behind], part(i, i + 1))]),
    ),
    crop_box: cropBox(context.traced),
    note,
  };
}
