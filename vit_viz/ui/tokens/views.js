// The measures of the Tokens tab, each as a view: what it fetches, paints and says.

import { make } from '../kit/elements.js';
import { colourPixels, cosine, cosines, percent, short } from '../kit/numbers.js';
import {
  changeWords,
  componentWords,
  lensWords,
  normWords,
  outlierWords,
  patchName,
  segmentWords,
  spotSegment,
} from './measures.js';
import { drawHistogram, drawMatrix, register } from './panels.js';

/** @typedef {import('./room.js').Room} Room */

const TOO_LARGE =
  'There are too many tokens here to compare them under the pointer; please choose a smaller size.';

/** @type {import('./room.js').View} */
export const similarity = {
  role: (room) => room.options.token_role,
  unit: () => 'cosine',

  async load(room, isStill) {
    const { store } = room;
    if (!store) return;
    if (!room.subject?.travels) throw new Error(TOO_LARGE);
    const count = room.names.length;
    const order = [room.state, ...Array.from({ length: count }, (_, i) => i)];
    await store.fetchVectors(room.role, order, () => {
      if (!isStill()) return;
      const here = store.have(room.role).filter(Boolean).length;
      room.wait(here < count ? `${here} of ${count} are here …` : '');
      room.paint();
    });
  },

  paint(room) {
    const first = room.subject?.prefix.length ?? 0;
    room.store?.have(room.role).forEach((vectors, state) => {
      if (!vectors) return;
      room.maps[state] ??= new Float32Array(room.patches);
      cosines(vectors, room.token, first, room.maps[state]);
    });
    room.paintMaps();
  },

  title: (room, spot) => `What resembles the ${spot ? patchName(spot) : room.namedToken()}`,

  /** The mean over all patches, and the class token. */
  readout(room) {
    const map = room.maps[room.state];
    const vectors = room.store?.have(room.role)[room.state];
    if (!map || !vectors) return '';
    const mean = map.reduce((sum, value) => sum + value, 0) / map.length;
    const named = (room.subject?.prefix ?? [])
      .slice(0, 1)
      .map((name, i) => `${name} token ${short(cosine(vectors, room.token, i))}`);
    return [`cosine with all patches: mean ${short(mean)}`, ...named].join('; ');
  },
};

const OPACITY = Math.round(255 * 0.9);

/** What is asked of the server. */
function coloursAsked(/** @type {Room} */ room) {
  const { token_foreground: foreground, token_whitened: whitened } = room.options;
  const also = room.subject?.second?.handle ?? '';
  return { role: room.role, foreground, whitened, also };
}

/** @type {import('./room.js').View} */
export const colours = {
  role: (room) => room.options.token_role,

  async load(room, isStill) {
    await room.fetch('components', coloursAsked(room), isStill);
  },

  paint(room) {
    const { told, second } = room;
    room.bar(null);
    const other = room.subject?.second;
    second.element.hidden = !other?.handle;
    if (!told) return;
    room.strip.paintColours(told.colours);
    room.big.paintPixels(colourPixels(told.colours[room.state], OPACITY));
    if (!other?.handle || !told.second) return;
    if (second.photo?.photo !== other.photo) second.place(other);
    second.paintPixels(colourPixels(told.second[room.state], OPACITY));
  },

  title: () => 'Three components as colours',

  readout(room) {
    const gone = room.subject?.second?.note ?? '';
    return room.told ? `${componentWords(room.told, room.state)}${gone ? `. ${gone}` : ''}` : '';
  },
};

/** @type {import('./room.js').View} */
export const norms = {
  role: () => 'tokens',
  unit: () => 'norm',

  async load(room, isStill) {
    await room.fetch('norms', { factor: room.options.token_factor }, isStill);
    if (isStill() && room.options.token_register) await register.load(room, isStill);
  },

  paint(room) {
    room.paintMaps();
    if (room.told) drawHistogram(room.panel, room.told, room.state, room.options.token_factor);
    register.paint(room);
  },

  title: () => 'How long the tokens are',

  readout(room, spot) {
    if (!room.told) return '';
    const { state, options } = room;
    return spot
      ? normWords(room.told, spot, options.token_factor)
      : outlierWords(room.told, state, options.token_factor);
  },

  rings: (room) => room.told?.outliers[room.state] ?? [],
};

/** @type {import('./room.js').View} */
export const lens = {
  role: () => 'tokens',
  unit: (room) => room.told?.unit ?? '',

  async load(room, isStill) {
    await room.fetch('lens', { target: room.subject?.target ?? '' }, isStill);
  },

  paint: (room) => room.paintMaps(),

  title: (room) => room.told?.title ?? 'Logit lens',

  readout(room, spot) {
    if (!room.told) return '';
    return spot ? lensWords(room.told, spot) : 'Point at a patch to read what the head says of it.';
  },
};

const COMPARING = 'Comparing all layers …';

/** What is asked of the server. */
const layersAsked = (/** @type {Room} */ room) => ({ role: room.options.token_role });

/** @type {import('./room.js').View} */
export const layers = {
  role: () => 'keys', // a map for each layer: what it does to the tokens
  unit: () => 'cosine before and after',

  async load(room, isStill) {
    await room.fetch('change', {}, isStill);
    if (!isStill()) return;
    room.paint();
    await room.compute('layers', layersAsked(room), COMPARING);
    await room.store?.fetchNumbers('layers', layersAsked(room));
  },

  paint(room) {
    room.paintMaps();
    const told = room.store?.known('layers', layersAsked(room));
    if (told) drawMatrix(room.panel, told, room.table);
  },

  title: () => 'How much of each token stays as it was',

  readout: (room, spot) => (room.told ? changeWords(room.told, room.state, spot) : ''),
};

/**
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
function segmentsAsked({ options, role }, layer) {
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
      await store?.fetchNumbers('segments', segmentsAsked(room, layer));
      here++;
      if (!isStill()) return;
      room.wait(here < order.length ? `${here} of ${order.length} are here …` : '');
      room.paint();
    }
  },

  paint(room) {
    room.bar(null);
    const all = room.names.map((_, layer) => room.store?.known('segments', segmentsAsked(room, layer)));
    all.forEach((told, layer) => {
      if (told)
        room.strip.paintPixels(
          layer,
          segmentPixels(told.labels, () => 255),
        );
    });
    const told = all[room.state];
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

/** @type {Record<import('./room.js').Options['token_measure'], import('./room.js').View>} */
export const VIEWS = { similarity, components: colours, norms, lens, layers, segments };
