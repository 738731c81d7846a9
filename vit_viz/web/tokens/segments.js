// Patches that belong together: each layer's segments in colours of their own, and their legend.

import { make } from '../../ui/kit/elements.js';
import { percent, short } from '../../ui/kit/numbers.js';
import { keyOf } from './fetched.js';
import { segmentWords, spotSegment } from './measures.js';
/** @import { Room } from './room.js' */
/** @import { Segments } from './fetched.js' */
/** @import { View } from './views.js' */

const TURN = 137.508; // degrees: the golden angle, so that neighbours in number are far apart in hue
const OVER = 130; // opacity of a region over the photo, of 255
const LIT = 190; // of the one that is pointed at

/** The colour of a segment as red, green and blue. @returns {[number, number, number]} */
export function segmentColour(/** @type {number} */ segment) {
  const hue = (35 + TURN * segment) % 360;
  const lightness = [0.6, 0.42, 0.75][segment % 3];
  const spread = 0.72 * Math.min(lightness, 1 - lightness);
  const channel = (/** @type {number} */ shift) => {
    const k = (shift + hue / 30) % 12;
    return Math.round(255 * (lightness - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

/** Regions as pixels. @param {number[]} labels @param {(segment: number) => number} [opacity] */
export function segmentPixels(labels, opacity = () => 255) {
  const pixels = new Uint8ClampedArray(4 * labels.length);
  labels.forEach((segment, i) => pixels.set([...segmentColour(segment), opacity(segment)], 4 * i));
  return new Uint32Array(pixels.buffer);
}

/** What is asked of the server for the map of a layer. @param {Room} room @param {number} layer */
function segmentsAsked({ options }, layer) {
  const { token_segment_role: role, token_method: method, token_count: count, token_box: box } = options;
  return { layer, role, method, box, ...(method === 'cut' ? {} : { count }) };
}

/** @param {Room} room @param {number} layer @returns {Segments | undefined} */
const segmentsOf = (room, layer) => room.store?.known('segments', segmentsAsked(room, layer));

/** The segment that is pointed at, over the photo or in the legend. @param {Room} room @param {Segments} told */
const litOf = (room, told) => room.lit ?? spotSegment(told, room.hovered);

/** @type {View} */
export const segments = {
  role: (room) => room.options.token_segment_role,
  isPerLayer: true,

  async load(room, isStill) {
    const count = room.namesOf('segments').length;
    for (const layer of new Set([...room.seenStates('segments'), ...Array(count).keys()])) {
      await room.store?.fetchNumbers('segments', segmentsAsked(room, layer));
      if (!isStill()) return;
      room.paint();
    }
  },

  keyOf: (room, layer) => (segmentsOf(room, layer) ? keyOf('segments', segmentsAsked(room, layer)) : ''),

  draw(room, layer, isLarge) {
    const told = /** @type {Segments} */ (segmentsOf(room, layer));
    const lit = isLarge ? litOf(room, told) : null;
    return { pixels: segmentPixels(told.labels, (segment) => (segment === lit ? LIT : OVER)), how: 'heat' };
  },

  title(room, layer) {
    const told = segmentsOf(room, layer);
    if (!told || room.patch === undefined)
      return `Patches that belong together, ${room.namesOf('segments')[layer]}`;
    const segment = told.labels[room.patch];
    const count = told.labels.filter((label) => label === segment).length;
    return count > 1
      ? `${room.who()}: one of ${count} patches of segment ${segment}`
      : `${room.who()}: alone in segment ${segment}`;
  },

  readout(room, layer) {
    const told = segmentsOf(room, layer);
    const { patch, cols } = room;
    if (!told) return '';
    return patch === undefined
      ? 'Point at a patch to read which segment it belongs to.'
      : segmentWords(told, { state: layer, patch, cols, name: '' });
  },

  panel(room) {
    const told = segmentsOf(room, room.state);
    if (told) drawLegend(room, told, litOf(room, told));
  },
};

/** The segments by their colours. @param {Room} room @param {Segments} told @param {number | null} lit */
function drawLegend(room, told, lit) {
  const place = room.panel;
  const key = `segments|${told.method}|${told.shares.join()}|${told.overlap?.join() ?? ''}`;
  if (place.dataset.drawn !== key) {
    place.dataset.drawn = key;
    const entries = told.shares.map((share, segment) => entry(room, told, segment, share));
    const list = make('ul', 'vv-room-legend vv-row', ...entries);
    place.replaceChildren(make('h3', 'vv-title', 'Segments'), list, note(told));
  }
  place.querySelectorAll('button').forEach((button, segment) => {
    button.toggleAttribute('data-on', segment === lit);
  });
}

/** @param {Room} room @param {Segments} told @param {number} segment @param {number} share */
function entry(room, told, segment, share) {
  const swatch = make('span', 'vv-room-swatch');
  swatch.style.background = `rgb(${segmentColour(segment).join(' ')})`;
  const overlap = told.overlap ? `, overlap ${short(told.overlap[segment])}` : '';
  const said = make('span', 'vv-quiet', `${percent(share)}${overlap}`);
  const button = make('button', 'vv-button vv-plain', swatch, `segment ${segment}`, said);
  const light = (/** @type {number | null} */ lit) => {
    room.lit = lit;
    room.repaint();
  };
  for (const event of ['pointerenter', 'focus']) button.addEventListener(event, () => light(segment));
  for (const event of ['pointerleave', 'blur']) button.addEventListener(event, () => light(null));
  return make('li', '', button);
}

/** How the overlap is to be read. */
function note(/** @type {Segments} */ { method, overlap }) {
  const best = overlap ? overlap.indexOf(Math.max(...overlap)) : -1;
  const words = overlap
    ? `Overlap with the box: intersection over union, in areas of patches; segment ${best} comes closest.`
    : 'Draw a box on the photo to read how far each segment overlaps with it.';
  return make('p', 'vv-small', `${method}; the largest segment is 0. ${words}`);
}
