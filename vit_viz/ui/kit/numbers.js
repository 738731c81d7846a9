// Numbers as vectors, as colours and as words.

import { gradient } from './elements.js';
import { extent, unpackHalf } from '../../explorer/attention.js';

/**
 * The tokens of one state.
 * @typedef {{data: Float32Array, tokens: number, dim: number}} Vectors
 *
 * One map per state: a number per patch, row by row.
 * @typedef {Float32Array[]} Maps
 */

/** Reads little-endian fp16 [tokens, dim]. @param {ArrayBuffer} buffer @param {number} tokens @returns {Vectors} */
export function readVectors(buffer, tokens) {
  const count = buffer.byteLength / 2;
  if (!count || count % tokens) throw new Error('These vectors do not fit the tokens of the picture.');
  return { data: unpackHalf(buffer, 0, count), tokens, dim: count / tokens };
}

/**
 * Cosine of one token with every patch.
 * @param {Vectors} vectors @param {number} token
 * @param {number} first index of the first patch
 * @param {Float32Array} out [patches]
 */
export function cosines({ data, dim }, token, first, out) {
  const query = data.subarray(token * dim, (token + 1) * dim);
  for (let patch = 0, at = first * dim; patch < out.length; patch++) {
    let sum = 0;
    for (let i = 0; i < dim; i++) sum += query[i] * data[at++];
    out[patch] = sum;
  }
  return out;
}

/** Cosine of two tokens. @param {Vectors} vectors @param {number} one @param {number} other */
export function cosine({ data, dim }, one, other) {
  let sum = 0;
  for (let i = 0; i < dim; i++) sum += data[one * dim + i] * data[other * dim + i];
  return sum;
}

/** Smallest and largest value of some maps. @param {Maps} maps @returns {[number, number]} */
export function rangeOf(maps) {
  const ends = maps.map((map) => extent(map));
  const [low, high] = [Math.min(...ends.map((one) => one[0])), Math.max(...ends.map((one) => one[1]))];
  return low <= high ? [low, high] : [0, 1];
}

/** A number as people read it: three digits that count, two of a small one. */
export function short(/** @type {number} */ value) {
  const size = Math.abs(value);
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(size >= 0.01 ? 3 : 2)));
}

/** A number with so many digits that count, as `number` of vit_viz/figures/lettering.py writes it. @param {number} value @param {number} [count] */
export function number(value, count = 3) {
  const [digits, power] = value.toExponential(count - 1).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < count) return String(Number(value.toPrecision(count)));
  return `${Number(digits)}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** A number with so many decimals; one that rounds to zero has no sign. @param {number} value @param {number} decimals */
export function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  return Number(text) ? text : text.replace('-', '');
}

/** How many of something: "1 head", "6 heads". @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** A time for people, as they would guess it. */
export function duration(/** @type {number} */ seconds) {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))}\u00a0s` : `${Math.round(seconds / 60)}\u00a0min`;
}

/** A share for people, with a decimal where it is small or almost certain: 96%, 3.2%, 99.7%; never 0% or 100% where it is not. */
export function percent(/** @type {number} */ share) {
  if (share > 0 && share < 0.0005) return '<0.1%';
  if (share >= 0.9995 && share < 1) return '>99.9%';
  return `${Number((100 * share).toFixed(share >= 0.0995 && share <= 0.99 ? 0 : 1))}%`;
}

/**
 * What a model says of one output: a probability in [0, 1], or a value; of a sentence with its cosine, which the value scales.
 * @typedef {{probability?: number, value?: number, cosine?: number}} Amount
 */

/** An amount in words, a probability as its place writes it. @param {Amount} amount @param {(probability: number) => string} write */
export function amountWords(amount, write) {
  if (amount.value === undefined) return write(amount.probability ?? 0);
  return amount.cosine === undefined ? short(amount.value) : fixed(amount.cosine, 2);
}

/** Colours of a table for a bar, from its low to its high end. */
export function stopsOf(/** @type {Uint32Array} */ table) {
  const bytes = new Uint8ClampedArray(table.buffer, table.byteOffset, 1024);
  return Array.from({ length: 18 }, (_, i) => `rgb(${bytes.subarray(60 * i, 60 * i + 3).join(' ')})`);
}

/** A colour bar. @param {(name: string) => HTMLElement} find @param {[string, string]} ends @param {string} unit @param {string[] | Uint32Array} colours */
export function showBar(find, [low, high], unit, colours) {
  find('low').textContent = low;
  find('high').textContent = high;
  find('unit').textContent = unit;
  find('strip').style.background = gradient(Array.isArray(colours) ? colours : stopsOf(colours));
}
