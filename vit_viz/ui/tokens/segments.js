// Patches that a layer treats alike, as regions of the photo, with their overlap with a box.

import { make } from '../kit/elements.js';
import { segmentWords, spotSegment } from './measures.js';
import { percent, short } from './vectors.js';

/**
 * @typedef {import('./room.js').Room} Room
 * @typedef {import('./store.js').Segments} Segments
 */

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

/** Regions as pixels. @param {number[]} labels @param {(segment: number) => number} opacity */
export function segmentPixels(labels, opacity) {
  const pixels = new Uint8ClampedArray(4 * labels.length);
  labels.forEach((segment, i) => pixels.set([...segmentColour(segment), opacity(segment)], 4 * i));
  return new Uint32Array(pixels.buffer);
}

/** What is asked of the server for the map of a layer. @param {Room} room @param {number} layer */
function askedFor({ options, role }, layer) {
  const { token_method: method, token_count: count, token_box: box } = options;
  return { layer, role, method, box, ...(method === 'cut' ? {} : { count }) };
}

/** @type {import('./room.js').View} */
export const segments = {
  role: (room) => room.options.token_segment_role,
  isPerLayer: true,

  async load(room, isStill) {
    const { store, names } = room;
    const order = [room.state, ...names.map((_, i) => i).filter((i) => i !== room.state)];
    let here = 0;
    for (const layer of order) {
      if (!isStill()) return;
      await store?.fetchNumbers('segments', askedFor(room, layer));
      here++;
      if (!isStill()) return;
      room.wait(here < order.length ? `${here} of ${order.length} are here …` : '');
      room.paint();
    }
  },

  paint(room) {
    room.bar(null);
    const layers = room.names.map((_, layer) => room.store?.known('segments', askedFor(room, layer)));
    layers.forEach((told, layer) => {
      if (told)
        room.strip.paintPixels(
          layer,
          segmentPixels(told.labels, () => 255),
        );
    });
    const told = layers[room.state];
    if (!told) return room.big.clear();
    room.told = told;
    const lit = room.lit ?? spotSegment(told, room.hovered);
    room.big.paintPixels(segmentPixels(told.labels, (segment) => (segment === lit ? LIT : OVER)));
    drawLegend(room, told, lit);
  },

  title(room) {
    const role = room.role === 'tokens' ? 'tokens' : room.role;
    return `Segments by the ${role}`;
  },

  readout(room, spot) {
    if (!room.told?.labels) return '';
    return spot ? segmentWords(room.told, spot) : 'Point at a patch to read which segment it belongs to.';
  },
};

/** The segments by their colours. @param {Room} room @param {Segments} told @param {number | null} lit */
function drawLegend(room, told, lit) {
  const place = room.panel;
  const key = `segments|${told.method}|${told.shares.join()}|${told.overlap?.join() ?? ''}`;
  if (place.dataset.drawn !== key) {
    place.dataset.drawn = key;
    const list = make('ul', 'vv-room-legend vv-row');
    list.append(...told.shares.map((share, segment) => entry(room, told, segment, share)));
    place.replaceChildren(make('h3', 'vv-title', 'Segments'), list, note(told));
  }
  place.querySelectorAll('button').forEach((button, segment) => {
    button.toggleAttribute('data-on', segment === lit);
  });
}

/** @param {Room} room @param {Segments} told @param {number} segment @param {number} share */
function entry(room, told, segment, share) {
  const line = make('li');
  const button = make('button', 'vv-button vv-plain');
  const swatch = make('span', 'vv-room-swatch');
  swatch.style.background = `rgb(${segmentColour(segment).join(' ')})`;
  const overlap = told.overlap ? `, overlap ${short(told.overlap[segment])}` : '';
  button.append(swatch, `segment ${segment}`, make('span', 'vv-quiet', `${percent(share)}${overlap}`));
  const light = (/** @type {number | null} */ lit) => {
    room.lit = lit;
    room.repaint();
  };
  for (const event of ['pointerenter', 'focus']) button.addEventListener(event, () => light(segment));
  for (const event of ['pointerleave', 'blur']) button.addEventListener(event, () => light(null));
  line.append(button);
  return line;
}

/** How the overlap is to be read. */
function note(/** @type {Segments} */ { method, overlap }) {
  const best = overlap ? overlap.indexOf(Math.max(...overlap)) : -1;
  const words = overlap
    ? `Overlap with the box: intersection over union, in areas of patches; segment ${best} comes closest.`
    : 'Draw a box on the photo to read how far each segment overlaps with it.';
  return make('p', 'vv-small', `${method}; the largest segment is 0. ${words}`);
}
