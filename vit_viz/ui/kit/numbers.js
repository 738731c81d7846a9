// Numbers as vectors, as colours and as words.

import { gradient } from './elements.js';
import { unpackHalf } from '../../explorer/attention.js';

/**
 * The tokens of one state.
 * @typedef {{data: Float32Array, tokens: number, dim: number}} Vectors
 *
 * One map per state: a number per patch, row by row.
 * @typedef {Float32Array[]} Maps
 */

/**
 * Reads little-endian fp16 [tokens, dim].
 * @param {ArrayBuffer} buffer
 * @param {number} tokens
 * @returns {Vectors}
 */
export function readVectors(buffer, tokens) {
  const count = buffer.byteLength / 2;
  if (!count || count % tokens) throw new Error('These vectors do not fit the tokens of the picture.');
  return { data: unpackHalf(buffer, 0, count), tokens, dim: count / tokens };
}

/**
 * Cosine of one token with every patch.
 * @param {Vectors} vectors
 * @param {number} token
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

/** Cosine of two tokens. */
export function cosine(
  /** @type {Vectors} */ { data, dim },
  /** @type {number} */ one,
  /** @type {number} */ other,
) {
  let sum = 0;
  for (let i = 0; i < dim; i++) sum += data[one * dim + i] * data[other * dim + i];
  return sum;
}

/**
 * Smallest and largest value of some maps.
 * @param {Maps} maps
 * @returns {[number, number]}
 */
export function rangeOf(maps) {
  let low = Infinity;
  let high = -Infinity;
  for (const map of maps) {
    for (const value of map) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : [0, 1];
}

/** Colours of patches, base64 of 3 bytes each, as pixels of one opacity. */
export function colourPixels(/** @type {string} */ text, opacity = 255) {
  const bytes = atob(text);
  const pixels = new Uint8ClampedArray((bytes.length / 3) * 4);
  for (let i = 0, at = 0; i < bytes.length; at += 4) {
    for (let channel = 0; channel < 3; channel++) pixels[at + channel] = bytes.charCodeAt(i++);
    pixels[at + 3] = opacity;
  }
  return new Uint32Array(pixels.buffer);
}

/** A number as people read it: three digits that count. */
export function short(/** @type {number} */ value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  return size >= 0.01 ? String(Number(value.toPrecision(3))) : value.toExponential(0);
}

/** A share in percent. */
export function percent(/** @type {number} */ share) {
  return share > 0 && share < 0.01 ? '< 1%' : `${Math.round(100 * share)}%`;
}

/** Colours of a table for a bar, from its low to its high end. */
export function stopsOf(/** @type {Uint32Array} */ table) {
  const bytes = new Uint8ClampedArray(table.buffer, table.byteOffset, 1024);
  return Array.from({ length: 18 }, (_, i) => `rgb(${bytes.subarray(60 * i, 60 * i + 3).join(' ')})`);
}

/**
 * The colour bar of a room.
 * @param {(name: string) => HTMLElement} find
 * @param {[string, string]} ends
 * @param {string} unit
 * @param {Uint32Array} table
 */
export function showBar(find, [low, high], unit, table) {
  find('low').textContent = low;
  find('high').textContent = high;
  find('unit').textContent = unit;
  find('strip').style.background = gradient(stopsOf(table));
}
