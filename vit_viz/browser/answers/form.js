// The form of an answer, as `unpacked` of web/kit/safetensors.js reads it of the server: its arrays by name, and facts beside them.

/** @import { Engine } from '../engine.js' */
/** @import { Traced } from '../engine.js' */

/**
 * @typedef {Float32Array | Float64Array | Uint8Array | BigInt64Array} Data
 * @typedef {{shape: number[], data: Data, isFlags?: boolean}} Numbers an array; isFlags: of yes and no
 * @typedef {{shape: number[], data: Float32Array}} Floats
 * @typedef {{question: string, request: Request, facts: any, words: string, arrays: Record<string, Numbers>,
 *     fields: string[]}} Answer fields: names of facts and arrays alike, in their order
 * @typedef {{question: string, parameters: Record<string, any>}} Request how a question was understood
 *
 * What a question is answered from.
 * @typedef {object} Context
 * @property {Engine} engine the model, with its preprocessing and the names of its classes
 * @property {Traced} traced the pass of the picture
 * @property {Traced} [second] that of another one, where a question is about two
 * @property {(share: number, preview?: () => Answer) => Promise<void>} step says how much is done, and what of the answer is there, lets
 *     messages in, and raises an error where nobody waits for the answer any more
 */

/** @param {number[]} shape @param {ArrayLike<number>} values @returns {Floats} */
export function numbers(shape, values) {
  return { shape, data: Float32Array.from(values) };
}

/** Indices, which travel as 64-bit numbers. @param {number[]} shape @param {ArrayLike<number>} values @returns {Numbers} */
export function indices(shape, values) {
  return { shape, data: BigInt64Array.from(Array.from(values, BigInt)) };
}

/** Yes and no. @param {number[]} shape @param {ArrayLike<number | boolean>} values @returns {Numbers} */
export function flags(shape, values) {
  return { shape, data: Uint8Array.from(values, Number), isFlags: true };
}

/**
 * A result whose arrays stand anywhere within it, as an answer: "maps.values" is the array `values` of the part `maps`.
 * @param {Request} request @param {Record<string, any>} result @param {string} words what it says, in a sentence or two
 * @returns {Answer}
 */
export function answerOf(request, result, words) {
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  const facts = factsIn(result, '', arrays);
  return { question: request.question, request, facts, words, arrays, fields: Object.keys(result) };
}

/** @param {any} value @param {string} name @param {Record<string, Numbers>} arrays those that are found are added @returns {any} */
function factsIn(value, name, arrays) {
  if (typeof value === 'number' && !Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === null || typeof value !== 'object') return value;
  const parts = Object.entries(value).filter(([key, part]) => {
    const isArray = ArrayBuffer.isView(part?.data);
    if (isArray) arrays[`${name}${key}`] = part;
    return !isArray;
  });
  const facts = parts.map(([key, part]) => [key, factsIn(part, `${name}${key}.`, arrays)]);
  return Array.isArray(value) ? facts.map(([, part]) => part) : Object.fromEntries(facts);
}
