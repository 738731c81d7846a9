// How alike any two layers are, as a square of cells: a pointer or the arrow keys read one.

import { paintMap, Picture } from '../../explorer/paint.js';
import { letReadCells } from '../kit/cells.js';
import { gradient, make } from '../kit/elements.js';
import { stopsOf } from './strip.js';
import { rangeOf, short } from './vectors.js';

/** @typedef {import('./store.js').Layers} Layers */

/** A cell in words. @param {Layers} told @param {number} cell */
export function cellWords({ matrix, names }, cell) {
  const row = Math.floor(cell / names.length);
  const col = cell % names.length;
  const value = short(matrix[row][col]);
  return row === col ? `${names[row]} with itself: ${value}` : `${names[row]} with ${names[col]}: ${value}`;
}

/**
 * Which layers are named at the sides of the square: the first and every k-th, eight at most.
 * @param {string[]} names
 * @returns {{words: string, at: number}[]} at: the middle of its cells, as a share of the side
 */
export function ticksOf(names) {
  const step = Math.ceil(names.length / 8);
  return names
    .map((name, layer) => ({ words: name.replace(/^after layer /, ''), at: (layer + 0.5) / names.length }))
    .filter((_, layer) => layer % step === 0);
}

/** One side's ticks. @param {string[]} names @param {'down' | 'across'} axis */
function side(names, axis) {
  const ticks = make('div', `vv-room-ticks vv-room-${axis} vv-small`);
  ticks.setAttribute('aria-hidden', 'true'); // each cell names its layers when it is read
  for (const { words, at } of ticksOf(names)) {
    const tick = make('span', '', words);
    tick.style.setProperty('--at', `${100 * at}%`);
    ticks.append(tick);
  }
  return ticks;
}

/** Draws the matrix; the same one is drawn once. @param {HTMLElement} place @param {Layers} told @param {Uint32Array} table */
export function drawMatrix(place, told, table) {
  const { names, matrix, unit, note } = told;
  const key = `${unit}|${names.length}|${names[0]}|${matrix[0].join()}`;
  if (place.dataset.drawn === key) return;
  place.dataset.drawn = key;
  const values = Float32Array.from(matrix.flat());
  const [low] = rangeOf([values]);
  const square = make('div', 'vv-room-matrix');
  const words = make('p', 'vv-quiet vv-room-cell', 'Point at a cell, or move with the arrow keys.');
  words.setAttribute('aria-live', 'polite');
  square.append(canvasOf(values, names.length, table, low));
  const sides = make('div', 'vv-room-sides');
  sides.append(side(names, 'down'), square, side(names, 'across'));
  place.replaceChildren(
    make('h3', 'vv-title', 'How alike the layers are'),
    sides,
    scale(names, table, low),
    words,
    make('p', 'vv-small', `${unit}. ${note}`),
  );
  letReadCells(square, [names.length, names.length], 'How alike any two layers are', (row, col) => {
    words.textContent = cellWords(told, row * names.length + col);
  });
}

/** @param {Float32Array} values @param {number} count @param {Uint32Array} table @param {number} low */
function canvasOf(values, count, table, low) {
  const canvas = make('canvas');
  const picture = new Picture(canvas);
  picture.resize(count, count);
  const place = { at: 0, stride: count, rows: count, cols: count };
  if (picture.pixels) paintMap(picture.pixels, place, values, table, [low, 1, 0]);
  picture.show();
  return canvas;
}

/** @param {string[]} names @param {Uint32Array} table @param {number} low */
function scale(names, table, low) {
  const line = make('div', 'vv-room-ends vv-bar vv-small');
  const bar = make('span', 'vv-strip');
  bar.style.background = gradient(stopsOf(table));
  const ends = make('span', '', `${names[0]}, then after each layer; down and across`);
  line.append(ends, make('span', '', short(low)), bar, make('span', '', '1'));
  return line;
}
