// The dots themselves: where they are on the screen, how they are painted, and which is under the pointer.

import { short } from '../tokens/vectors.js';
import { columnWords } from './words.js';

const SHOWN = 0.85; // how opaque a dot is whose photo passes
const FADED = 0.06; // and one whose photo does not
const RADIUS = 3; // in pixels
const REACH = 8; // how far from the pointer a dot may be, in pixels
const ROOM = 0.04; // around the outermost dots, as a share of the axis

/** What the three kinds of dots say, in the order of the figure's traces. */
export const KINDS = ['right', 'wrong', 'no label'];

/**
 * The ends of an axis that shows all dots, with some room around them.
 * @param {Float32Array} values NaN where a photo has no such number
 * @returns {[number, number]}
 */
export function axisEnds(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  const room = ROOM * (high - low) || Math.abs(low) / 2 || 0.5;
  return [low - room, high + room];
}

/**
 * Where dots are: a number along an axis as pixels from its first end.
 * @param {Float32Array} values
 * @param {number} low value at pixel 0
 * @param {number} high value at the last pixel
 * @param {number} length in pixels
 */
export function pixelsOf(values, low, high, length) {
  return values.map((value) => ((value - low) / (high - low)) * length);
}

/**
 * The dot under the pointer, of those that pass if there are any; -1: none.
 * @param {Float32Array} across pixels of each photo, NaN where it has no dot
 * @param {Float32Array} up
 * @param {Uint8Array | null} passes null: all
 * @param {number} x
 * @param {number} y
 */
export function nearestDot(across, up, passes, x, y) {
  let [best, least] = [-1, REACH * REACH];
  for (let row = 0; row < across.length; row++) {
    if (passes && !passes[row]) continue;
    const distance = (across[row] - x) ** 2 + (up[row] - y) ** 2;
    if (distance <= least) [best, least] = [row, distance];
  }
  return best;
}

/** What is said of a dot. @param {[string, string]} axes @param {[number, number]} numbers @param {string} kind */
export function dotWords([across, up], [x, y], kind) {
  return `${columnWords(across)} ${short(x)}, ${columnWords(up)} ${short(y)}; ${kind}`;
}

/**
 * Paints every dot: those that do not pass first and nearly clear.
 * @param {HTMLCanvasElement} canvas
 * @param {{across: Float32Array, up: Float32Array, rows: number[][], passes: Uint8Array | null}} dots rows of each kind
 * @param {{colours: string[], width: number, height: number}} figure in pixels of the page
 */
export function paintDots(canvas, { across, up, rows, passes }, { colours, width, height }) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  if (!context) return;
  const layers = passes ? [0, 1] : [1];
  for (const passing of layers) {
    context.globalAlpha = passing ? SHOWN : FADED;
    rows.forEach((ofKind, kind) => {
      const stamp = stampOf(kind, colours[kind], scale);
      const half = stamp.width / 2;
      for (const row of ofKind)
        if (!passes || passes[row] === passing)
          context.drawImage(
            stamp,
            Math.round(across[row] * scale - half),
            Math.round(up[row] * scale - half),
          );
    });
  }
}

/** One dot, to be copied: a disc, or a diamond where the answer was wrong. */
function stampOf(/** @type {number} */ kind, /** @type {string} */ colour, /** @type {number} */ scale) {
  const radius = RADIUS * scale;
  const stamp = document.createElement('canvas');
  stamp.width = stamp.height = 2 * Math.ceil(radius) + 2;
  const context = /** @type {CanvasRenderingContext2D} */ (stamp.getContext('2d'));
  const middle = stamp.width / 2;
  context.fillStyle = colour;
  context.beginPath();
  if (KINDS[kind] === 'wrong') {
    const reach = 1.25 * radius;
    context.moveTo(middle - reach, middle);
    context.lineTo(middle, middle - reach);
    context.lineTo(middle + reach, middle);
    context.lineTo(middle, middle + reach);
  } else context.arc(middle, middle, radius, 0, 2 * Math.PI);
  context.fill();
  return stamp;
}
