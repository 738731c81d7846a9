// What stands beside the maps of the Tokens tab: a histogram, a matrix of layers, and a register that is added.

import { paintMap, Picture } from '../../explorer/paint.js';
import { gradient, make, makeSvg, showText } from '../kit/elements.js';
import { letReadCells } from '../kit/picture.js';
import { rangeOf, short, stopsOf } from '../kit/numbers.js';
import { registerWords } from './measures.js';
import { newStage } from '../kit/stage.js';

/** @typedef {import('./store.js').Norms} Norms */

const BINS = 32;
const WIDTH = 320; // in units of the drawing
const HEIGHT = 96;

/**
 * Counts of values between 0 and the largest, which falls into the last bin.
 * @param {number[]} values
 * @returns {{counts: number[], top: number}}
 */
export function histogram(values, bins = BINS) {
  const top = Math.max(...values, 0);
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of values) counts[top > 0 ? Math.min(bins - 1, Math.floor((bins * value) / top)) : 0]++;
  return { counts, top };
}

/** All lengths of a state, of patches and of the other tokens. */
function lengths(/** @type {Norms} */ norms, /** @type {number} */ state) {
  return [...norms.values[state], ...Object.values(norms.others).map((row) => row[state])];
}

/** Draws the histogram of a state. @param {HTMLElement} place @param {Norms} norms @param {number} state @param {number} factor */
export function drawHistogram(place, norms, state, factor) {
  const values = lengths(norms, state);
  const { counts, top } = histogram(values);
  const threshold = norms.thresholds[state];
  const most = Math.max(...counts, 1);
  const words = `${values.length} tokens, up to ${most} in a bar; beyond ${short(threshold)}, ${factor} medians, a token is an outlier`;
  const key = `${state}|${factor}|${values.length}|${top}`;
  if (place.dataset.drawn === key) return; // hovering changes nothing here
  place.dataset.drawn = key;
  const picture = makeSvg('svg', {
    class: 'vv-room-histogram',
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': `How many tokens have each norm: ${words}.`,
  });
  counts.forEach((count, bin) => {
    const height = count ? Math.max(3, (count / most) * (HEIGHT - 4)) : 0; // a single outlier is seen too
    const isFar = ((bin + 0.5) / counts.length) * top > threshold;
    const [x, y] = [bin * (WIDTH / counts.length), HEIGHT - height];
    const kind = isFar ? 'vv-room-far' : 'vv-room-count';
    picture.append(makeSvg('rect', { x, y, width: WIDTH / BINS - 1, height, class: kind }));
  });
  const limit = (threshold / top) * WIDTH;
  if (threshold < top)
    picture.append(makeSvg('line', { x1: limit, x2: limit, y1: 0, y2: HEIGHT, class: 'vv-room-limit' }));
  const ends = make('div', 'vv-room-ends vv-bar vv-small');
  ends.append(make('span', '', '0'), make('span', '', 'norm'), make('span', '', short(top)));
  place.replaceChildren(
    make('h3', 'vv-title', 'Norms of this state'),
    picture,
    ends,
    make('p', 'vv-small', `${words}.`),
  );
}

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

/**
 * @typedef {import('./room.js').Room} Room
 * @typedef {import('./store.js').Register} Register
 */

const WORDS = 'Adding a register: finding its neurons, then a pass without and one with it …';

/** What is asked of the server. */
const askedFor = (/** @type {Room} */ room) => ({ factor: room.options.token_factor });

/** The maps that stand side by side, each pair on one scale. @param {Register} told @param {number} state @param {string} name */
export function pairsOf(told, state, name) {
  const maps = (/** @type {number[][]} */ values) => values.map((map) => Float32Array.from(map));
  return [
    {
      words: `Norms, ${name}`,
      maps: maps(told.norms.map((norms) => norms.values[state])),
      outliers: told.norms.map((norms) => norms.outliers[state]),
    },
    {
      words: 'What the output looks at in the last layer, mean of its heads',
      maps: maps(told.attention),
      outliers: [[], []],
    },
  ];
}

export const register = {
  /** @param {Room} room @param {() => boolean} isStill */
  async load(room, isStill) {
    const place = room.find('room-register');
    try {
      await room.compute('register', askedFor(room), WORDS);
      await room.store?.fetchNumbers('register', askedFor(room));
    } catch (error) {
      if (!isStill()) return;
      place.hidden = false;
      place.replaceChildren(make('p', 'vv-room-error vv-notice', /** @type {Error} */ (error).message));
      place.dataset.drawn = 'error';
    }
  },

  /** Draws what is there. */
  paint(/** @type {Room} */ room) {
    const place = room.find('room-register');
    const told = room.options.token_register ? room.store?.known('register', askedFor(room)) : null;
    if (!told) {
      if (place.dataset.drawn !== 'error' || !room.options.token_register) place.hidden = true;
      return;
    }
    place.hidden = false;
    const state = Math.max(room.state, told.state); // before, nothing differs
    const key = `${room.subject?.handle}|${room.options.token_factor}|${state}`;
    if (place.dataset.drawn === key) return;
    place.dataset.drawn = key;
    place.replaceChildren(make('h3', 'vv-title', 'Before and after a register was added'), said(told));
    for (const pair of pairsOf(told, state, room.names[state])) place.append(drawn(room, pair));
  },
};

function said(/** @type {Register} */ told) {
  const node = make('p', 'vv-quiet');
  showText(node, registerWords(told));
  return node;
}

/** @param {Room} room @param {{words: string, maps: Float32Array[], outliers: number[][]}} pair */
function drawn(room, { words, maps, outliers }) {
  const row = make('div', 'vv-room-pair');
  const [low, high] = rangeOf(maps);
  maps.forEach((map, i) => {
    const { figure, stage } = newStage(
      `${words}, ${i ? 'after' : 'before'}: ${short(low)} to ${short(high)}`,
    );
    if (room.subject) stage.place(room.subject);
    stage.paint(map, room.over, [low, high]);
    stage.ring(outliers[i].map((patch) => [patch, 'vv-ring vv-outlier']));
    row.append(figure);
  });
  return row;
}
