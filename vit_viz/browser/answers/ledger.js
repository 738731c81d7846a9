// Where attention goes, its shares on prefix tokens, sinks and the other patches: vit_viz/analyses/ledger.py.

import { gathered } from './attention.js';
import { numbers } from './form.js';
import { layoutOf, queryWeights } from './layout.js';
import { normsOf, OUTLIER_FACTOR } from './tokens.js';
/** @import { Context } from './form.js' */
/** @import { About } from './index.js' */

/** @param {Context} context @param {{rows: 'layers' | 'heads', factor: number}} options @param {About} about */
async function ledger(context, { rows, factor }, { query }) {
  const { layers, heads, tokens } = context.traced;
  const { prefix, first } = layoutOf(context);
  const weights = query === null ? new Float64Array(tokens).fill(1 / tokens) : queryWeights(context, query);
  const columns = [...prefix, 'sinks', 'other patches'];
  const shares = /** @type {number[][]} */ ([]);
  for (let layer = 0; layer < layers.length; layer++) {
    const { norms, threshold } = normsOf(context, layer, factor);
    const ofHeads = gathered(context, layer, weights, 'row').map((row) => {
      const parts = new Array(columns.length).fill(0);
      row.forEach(
        (weight, token) =>
          (parts[token < first ? token : first + (norms[token] > threshold ? 0 : 1)] += weight),
      );
      return parts;
    });
    const mean = columns.map((_, i) => ofHeads.reduce((sum, parts) => sum + parts[i], 0) / heads);
    shares.push(...(rows === 'heads' ? ofHeads : [mean]));
    await context.step((layer + 1) / layers.length);
  }
  const names = layers.flatMap((_, layer) =>
    rows === 'heads'
      ? Array.from({ length: heads }, (__, head) => `layer ${layer}, head ${head}`)
      : [`layer ${layer}`],
  );
  return {
    values: numbers([names.length, columns.length], shares.flat()),
    names,
    unit: 'share of attention',
    value_range: [0, 1],
    method: 'ledger of attention',
    others: columns,
    note: `Sinks are patches longer than ${Number(factor.toPrecision(6))} x the median.`,
  };
}

/** @type {import('./index.js').Table} */
export const LEDGER = {
  ledger: {
    needs: 'pass',
    takesQuery: true,
    options: { rows: ['layers', 'heads'], factor: OUTLIER_FACTOR },
    answer: ledger,
  },
};
