// What stands beside the maps of the Tokens tab: a histogram, a matrix of layers, and a register that is added.

import { Picture } from '../../explorer/paint.js';
import { gradient, having, make, makeSvg } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { letReadCells } from '../../ui/kit/picture.js';
import { rangeOf, short, stopsOf } from '../../ui/kit/numbers.js';
import { openAgain } from '../kit/page.js';
import { registerWords } from './measures.js';
import { newStage } from '../../ui/kit/stage.js';
/** @import { Room } from './room.js' */
/** @import { Layers, Norms, Register } from './fetched.js' */

const BINS = 32;
const WIDTH = 320; // in units of the drawing
const HEIGHT = 96;

/**
 * Counts of values between 0 and the largest, which falls into the last bin.
 * @param {number[]} values @returns {{counts: number[], top: number}}
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
  place.replaceChildren(
    make('h3', 'vv-title', 'Norms of this state'),
    picture,
    ends('0', 'norm', short(top)),
    make('p', 'vv-small', `${words}.`),
  );
}

/** What stands below a drawing. @param {(string | HTMLElement)[]} parts */
function ends(...parts) {
  const nodes = parts.map((part) => (typeof part === 'string' ? make('span', '', part) : part));
  return make('div', 'vv-room-ends vv-bar vv-small', ...nodes);
}

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
  const ticks = ticksOf(names).map(({ words, at }) => {
    const tick = make('span', '', words);
    tick.style.setProperty('--at', `${100 * at}%`);
    return tick;
  });
  const line = make('div', `vv-room-ticks vv-room-${axis} vv-small`, ...ticks);
  return having(line, { 'aria-hidden': true }); // each cell names its layers when it is read
}

/** Draws the matrix; the same one is drawn once. @param {HTMLElement} place @param {Layers} told @param {Uint32Array} table */
export function drawMatrix(place, told, table) {
  const { names, matrix, unit, note } = told;
  const key = `${unit}|${names.length}|${names[0]}|${matrix[0].join()}`;
  if (place.dataset.drawn === key) return;
  place.dataset.drawn = key;
  const values = Float32Array.from(matrix.flat());
  const [low] = rangeOf([values]);
  const picture = new Picture(make('canvas'), names.length, names.length);
  picture.paint(values, table, [low, 1]);
  const square = make('div', 'vv-room-matrix', picture.canvas);
  const words = make('p', 'vv-quiet vv-room-cell', 'Point at a cell, or move with the arrow keys.');
  words.setAttribute('aria-live', 'polite');
  place.replaceChildren(
    make('h3', 'vv-title', 'How alike the layers are'),
    make('div', 'vv-room-sides', side(names, 'down'), square, side(names, 'across')),
    scale(names, table, low),
    words,
    make('p', 'vv-small', `${unit}. ${note}`),
  );
  letReadCells(square, [names.length, names.length], 'How alike any two layers are', (row, col) => {
    words.textContent = cellWords(told, row * names.length + col);
  });
}

/** @param {string[]} names @param {Uint32Array} table @param {number} low */
function scale(names, table, low) {
  const bar = make('span', 'vv-strip');
  bar.style.background = gradient(stopsOf(table));
  return ends(`${names[0]}, then after each layer; down and across`, short(low), bar, '1');
}

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
    } catch (error) {
      if (!isStill()) return;
      place.hidden = false;
      const note = having(make('p', 'vv-room-error vv-notice'), { role: 'alert' });
      place.replaceChildren(note);
      showError(note, /** @type {Error} */ (error).message, { again: openAgain });
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
    const key = `${room.subject?.trace}|${room.options.token_factor}|${state}`;
    if (place.dataset.drawn === key) return;
    place.dataset.drawn = key;
    place.replaceChildren(
      make('h3', 'vv-title', 'Before and after a register was added'),
      make('p', 'vv-quiet', registerWords(told)),
      ...pairsOf(told, state, room.namesOf('norms')[state]).map((pair) => drawn(room, pair)),
    );
  },
};

/** @param {Room} room @param {{words: string, maps: Float32Array[], outliers: number[][]}} pair */
function drawn(room, { words, maps, outliers }) {
  const [low, high] = rangeOf(maps);
  const figures = maps.map((map, i) => {
    const { figure, stage } = newStage(
      `${words}, ${i ? 'after' : 'before'}: ${short(low)} to ${short(high)}`,
    );
    if (room.subject) stage.place(room.subject);
    stage.picture.paint(map, room.over, [low, high]);
    stage.ring(outliers[i].map((patch) => [patch, 'vv-ring vv-outlier']));
    return figure;
  });
  return make('div', 'vv-room-pair', ...figures);
}
