// How many tokens of a state have each length, with the line beyond which a token is an outlier.

import { make } from '../kit/elements.js';
import { short } from './vectors.js';

/** @typedef {import('./store.js').Norms} Norms */

const BINS = 32;
const WIDTH = 320; // in units of the drawing
const HEIGHT = 96;
const SVG = 'http://www.w3.org/2000/svg';

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
  const picture = document.createElementNS(SVG, 'svg');
  picture.setAttribute('class', 'vv-room-histogram');
  picture.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute('preserveAspectRatio', 'none');
  picture.setAttribute('role', 'img');
  picture.setAttribute('aria-label', `How many tokens have each norm: ${words}.`);
  counts.forEach((count, bin) => {
    const height = count ? Math.max(3, (count / most) * (HEIGHT - 4)) : 0; // a single outlier is seen too
    const isFar = ((bin + 0.5) / counts.length) * top > threshold;
    picture.append(box(bin * (WIDTH / counts.length), height, isFar ? 'vv-room-far' : 'vv-room-count'));
  });
  if (threshold < top) picture.append(line((threshold / top) * WIDTH));
  const ends = make('div', 'vv-room-ends vv-bar vv-small');
  ends.append(make('span', '', '0'), make('span', '', 'norm'), make('span', '', short(top)));
  place.replaceChildren(
    make('h3', 'vv-title', 'Norms of this state'),
    picture,
    ends,
    make('p', 'vv-small', `${words}.`),
  );
}

/** @param {number} left @param {number} height @param {string} kind */
function box(left, height, kind) {
  const rect = document.createElementNS(SVG, 'rect');
  const sides = { x: left, y: HEIGHT - height, width: WIDTH / BINS - 1, height };
  for (const [name, value] of Object.entries(sides)) rect.setAttribute(name, String(value));
  rect.setAttribute('class', kind);
  return rect;
}

function line(/** @type {number} */ at) {
  const node = document.createElementNS(SVG, 'line');
  for (const [name, value] of Object.entries({ x1: at, x2: at, y1: 0, y2: HEIGHT }))
    node.setAttribute(name, String(value));
  node.setAttribute('class', 'vv-room-limit');
  return node;
}
