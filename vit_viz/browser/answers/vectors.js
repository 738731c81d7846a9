// Vectors of all tokens in all states of a pass, for the questions about tokens and for pages that compare them themselves.

/** @import { Context } from './form.js' */

export const ROLE = /** @type {const} */ (['tokens', 'queries', 'keys']);
/** @typedef {(typeof ROLE)[number]} Role */

/**
 * The vectors of all tokens in all states, each [tokens, dim]: of queries and keys those of all heads side by side.
 * @param {Pick<Context, 'traced'>} context @param {Role} [role] @returns {Float32Array[]}
 */
export function tokenStates({ traced }, role = 'tokens') {
  if (role === 'tokens') return traced.residual;
  const { heads, tokens, headDim } = traced;
  const factor = role === 'queries' ? 1 / traced.scale : 1; // queries are kept times the scale
  return traced.layers.map(({ q, k }) => {
    const operand = role === 'queries' ? q : k; // [heads, tokens, head_dim]
    const vectors = new Float32Array(operand.length);
    for (let h = 0, from = 0; h < heads; h++)
      for (let token = 0; token < tokens; token++)
        for (let i = 0, to = (token * heads + h) * headDim; i < headDim; i++)
          vectors[to++] = operand[from++] * factor;
    return vectors;
  });
}

/**
 * The tokens of a state as vectors of length 1.
 * @param {Pick<Context, 'traced'>} context @param {Role} role @param {number} state
 * @returns {import('../../ui/kit/numbers.js').Vectors}
 */
export function unitVectors({ traced }, role, state) {
  const states = tokenStates({ traced }, role);
  if (!states[state]) throw new Error(`State ${state} does not exist: they are 0-${states.length - 1}.`);
  const { tokens } = traced;
  const sizes = lengths(states[state], tokens);
  const dim = states[state].length / tokens;
  return { data: states[state].map((value, i) => value / (sizes[Math.floor(i / dim)] || 1)), tokens, dim };
}

/** The length of each vector. @param {Float32Array} vectors [tokens, dim] @param {number} tokens */
export function lengths(vectors, tokens) {
  const dim = vectors.length / tokens;
  return Float64Array.from({ length: tokens }, (_, token) => {
    let sum = 0;
    for (let i = token * dim; i < (token + 1) * dim; i++) sum += vectors[i] * vectors[i];
    return Math.sqrt(sum);
  });
}
