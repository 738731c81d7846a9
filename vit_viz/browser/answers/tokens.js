// Token vectors before the first and after each layer: vit_viz/analyses/tokens.py and norms.py.

import { attentionInto } from '../../explorer/attention.js';
import { numbers } from './form.js';
import { outputQuery, queryWeights, tokenMaps } from './layout.js';
import { lengths, ROLE, tokenStates } from './vectors.js';
/** @import { Context } from './form.js' */
/** @import { Role } from './vectors.js' */

/** The states in words, in order. @param {Context} context @param {Role} [role] */
export function stateNames({ traced }, role = 'tokens') {
  const layers = traced.layers.map((_, layer) => `layer ${layer}`);
  return role === 'tokens' ? ['input', ...layers.map((name) => `after ${name}`)] : layers;
}

/** The cosine of each vector with that of another list, or with the only one of it; 0 where one of them is 0. */
export function cosines(
  /** @type {Float32Array} */ vectors,
  /** @type {Float32Array | Float64Array} */ others,
  /** @type {number} */ tokens,
) {
  const dim = vectors.length / tokens;
  const isOne = others.length === dim;
  return Float64Array.from({ length: tokens }, (_, token) => {
    let [dot, own, other] = [0, 0, 0];
    for (let i = token * dim, j = isOne ? 0 : i, end = i + dim; i < end; i++, j++) {
      dot += vectors[i] * others[j];
      own += vectors[i] * vectors[i];
      other += others[j] * others[j];
    }
    return own && other ? Math.min(1, Math.max(-1, dot / Math.sqrt(own * other))) : 0;
  });
}

/** The median; of an even count the mean of the two in the middle. */
function median(/** @type {Float64Array} */ values) {
  const sorted = values.slice().sort();
  const [low, high] = [Math.floor((sorted.length - 1) / 2), Math.ceil((sorted.length - 1) / 2)];
  return (sorted[low] + sorted[high]) / 2;
}

export const OUTLIER_FACTOR = { usual: 5, low: 1.5, high: 100 };

/** The norm of each token of a state, and above which one it is an outlier. @param {Context} context @param {number} state @param {number} factor */
export function normsOf({ traced }, state, factor) {
  const norms = lengths(traced.residual[state], traced.tokens);
  return { norms, threshold: factor * median(norms) };
}

/** @param {Context} context @param {{factor: number}} options */
function tokenNorms(context, { factor }) {
  const { traced } = context;
  const { heads, tokens, layers } = traced;
  const states = traced.residual.map((_, state) => normsOf(context, state, factor));
  const outliers = states.map(({ norms, threshold }) =>
    [...norms.keys()].filter((token) => norms[token] > threshold),
  );
  const column = new Float32Array(tokens);
  const received = layers.map(({ layer }, i) => {
    let sum = 0;
    for (const token of outliers[i]) {
      for (let h = 0; h < heads; h++) {
        attentionInto(column, layer, h, token, 'column');
        for (const weight of column) sum += weight;
      }
    }
    return sum / heads / tokens;
  });
  const about = { unit: 'norm of the token', method: 'token norms' };
  const fair = layers.map((_, i) => outliers[i].length / tokens);
  return {
    maps: tokenMaps(
      context,
      states.map(({ norms }) => norms),
      stateNames(context),
      { ...about, range: [0, Infinity] },
    ),
    thresholds: numbers(
      [states.length],
      states.map(({ threshold }) => threshold),
    ),
    outliers,
    received: numbers([layers.length], received),
    fair: numbers([layers.length], fair),
  };
}

/** @param {Context} context */
function tokenChange(context) {
  const { residual, tokens } = context.traced;
  const values = residual.slice(1).map((state, i) => cosines(state, residual[i], tokens));
  return tokenMaps(context, values, stateNames(context, 'keys'), {
    unit: 'cosine with the token before the layer',
    range: [-1, 1],
    method: 'token change',
    signed: true,
  });
}

/** @param {Context} context @param {{role: Role}} options @param {{query: string | null}} about */
function tokenSimilarity(context, { role }, { query }) {
  const { tokens } = context.traced;
  const weights = queryWeights(context, query ?? outputQuery(context));
  const values = tokenStates(context, role).map((state) => {
    const chosen = new Float64Array(state.length / tokens);
    weights.forEach((weight, token) => {
      if (weight)
        for (let i = 0; i < chosen.length; i++) chosen[i] += weight * state[token * chosen.length + i];
    });
    return cosines(state, chosen, tokens);
  });
  return tokenMaps(context, values, stateNames(context, role), {
    unit: 'cosine similarity',
    range: [-1, 1],
    method: 'token similarity',
    signed: true,
  });
}

/** @type {import('./index.js').Table} */
export const TOKENS = {
  token_similarity: { needs: 'pass', options: { role: ROLE }, takesQuery: true, answer: tokenSimilarity },
  token_change: { needs: 'pass', answer: tokenChange },
  token_norms: { needs: 'pass', options: { factor: OUTLIER_FACTOR }, answer: tokenNorms },
};
