// The strongest links of a head, which query looks at which key: vit_viz/analyses/links.py.

import { checkedHead, fusedRows, headWords, ONE_HEAD } from './attention.js';
import { indices, numbers } from './form.js';
import { cropBox, described, layoutOf, queryWeights, tokenName } from './layout.js';
/** @import { Context } from './form.js' */

const MOST = 1000;

/**
 * @param {Context} context @param {{layer: number, head: string, count: number, tokens: 'patches' | 'all', own: boolean}} options
 * @param {{query: string | null}} about
 */
function links(context, { layer, head, count, tokens, own }, { query }) {
  const only = checkedHead(context, layer, head);
  const { first, patches } = layoutOf(context);
  const size = context.traced.tokens;
  const keys = tokens === 'patches' ? range(first, first + patches) : range(0, size);
  const weights = query === null ? null : queryWeights(context, query);
  const queries = weights ? range(0, size).filter((token) => weights[token]) : keys;
  const rows = fusedRows(context, layer, only === undefined ? head : 'mean', { only });
  let whole = 0;
  const pairs = /** @type {{query: number, key: number, weight: number}[]} */ ([]);
  for (const one of queries) {
    for (const key of keys) {
      if (!own && one === key) continue;
      const weight = rows[one * size + key];
      whole += weight;
      pairs.push({ query: one, key, weight });
    }
  }
  const best = pairs.sort((a, b) => b.weight - a.weight).slice(0, count);
  const held = best.reduce((sum, { weight }) => sum + weight, 0);
  const between = tokens === 'patches' ? ' between patches' : '';
  const whose = query === null ? between : ` of ${described(context, query)}`;
  const words = (/** @type {number} */ token) =>
    described(context, token < first ? tokenName(context, token) : tokenName(context, token).slice(7, -1));
  return {
    names: best.map((one) => `${words(one.query)} looks at ${words(one.key)}`),
    scores: numbers(
      [best.length],
      best.map(({ weight }) => weight),
    ),
    unit: 'attention weight',
    method: 'strongest links',
    indices: [],
    note: '',
    pairs: indices(
      [best.length, 2],
      best.flatMap((one) => [one.query, one.key]),
    ),
    share: whole ? Math.min(1, held / whole) : 0,
    crop_box: cropBox(context.traced),
    caption: `layer ${layer}, ${headWords(head)}: the ${best.length} strongest links${whose}`,
  };
}

/** @param {number} start @param {number} end */
function range(start, end) {
  return Array.from({ length: end - start }, (_, i) => start + i);
}

/** @type {import('./index.js').Table} */
export const LINKS = {
  links: {
    needs: 'pass',
    takesQuery: true,
    options: {
      ...ONE_HEAD,
      count: { usual: 20, low: 1, high: MOST, isWhole: true },
      tokens: ['patches', 'all'],
      own: false,
    },
    answer: links,
  },
};
