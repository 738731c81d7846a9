// The questions of the Tokens tab, each as a view: what it fetches, draws and says.

import { decodeTable } from '../../explorer/paint.js';
import { cosine, cosines, percent, rangeOf, short } from '../../ui/kit/numbers.js';
import {
  alikeFinding,
  alikeWords,
  changeFinding,
  degrees,
  lensFinding,
  normFinding,
  standOut,
  surestWords,
  timesMedian,
} from './findings.js';
import { keyOf } from './fetched.js';
import { changeWords, componentWords, lensWords, outlierWords } from './measures.js';
import { drawHistogram, drawMatrix, register } from './panels.js';
import { segments } from './segments.js';
/** @import { Options, Room } from './room.js' */
/** @import { Asked, Kind, Lens, Role } from './fetched.js' */

/**
 * @typedef {Options['token_measure']} Measure
 *
 * What lies over a photo: values on a scale, or pixels with their own colours.
 * @typedef {{values: Float32Array, range: [number, number]} | {pixels: Uint32Array, how: 'colours' | 'heat'}} Drawing
 *
 * How one question is fetched, drawn and told.
 * @typedef {object} View
 * @property {(room: Room) => Role} role whose states there are photos of
 * @property {boolean} [isPerLayer] whether there is none before the first layer, whatever the role
 * @property {(room: Room, isStill: () => boolean) => Promise<void>} load what the small photos need
 * @property {(room: Room, isStill: () => boolean) => Promise<void>} [more] what the chosen row needs beside them
 * @property {(room: Room, state: number) => string} keyOf what a photo depends on; "" while its numbers are not here
 * @property {(room: Room, state: number, isLarge: boolean) => Drawing} draw
 * @property {(room: Room, state: number) => string} [words] under a small photo
 * @property {(room: Room, state: number) => string} title
 * @property {(room: Room, state: number) => string} readout
 * @property {(room: Room) => string} [unit] of the scale
 * @property {(room: Room) => void} [panel] what stands below the table
 * @property {(room: Room) => number[]} [rings] patches that stand out
 */

const SAME_WORDS = 'The same direction: within 45°, a cosine of 0.71. Dark: no more alike than the average.';

/** The cosines of the token that is pointed at with all patches, in one state; null where its vectors are not here. */
function alike(/** @type {Room} */ room, /** @type {number} */ state) {
  const vectors = room.store?.vectorsOf(room.options.token_role, state);
  if (!vectors) return null;
  const key = `${room.options.token_role}/${state}`;
  const before = room.alike.get(key);
  if (before?.token === room.token) return before;
  const first = room.subject?.prefix.length ?? 0;
  const values = cosines(vectors, room.token, first, before?.values ?? new Float32Array(room.patches));
  const one = { token: room.token, values, range: standOut(values, room.patch) };
  room.alike.set(key, one);
  return one;
}

/** One scale for some, or each its own. @param {Room} room @param {[number, number]} own @param {() => [number, number][]} all @returns {[number, number]} */
function scaled({ options }, own, all) {
  if (options.token_scale === 'layer') return own;
  const ranges = all();
  return [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
}

/** @type {View} */
export const similarity = {
  role: (room) => room.options.token_role,
  unit: () => 'cosine',

  async load(room, isStill) {
    const count = room.namesOf('similarity').length;
    const order = [...new Set([...room.seenStates('similarity'), ...Array(count).keys()])];
    await room.store?.fetchVectors(room.options.token_role, order, () => {
      if (isStill()) room.paint();
      return isStill();
    });
  },

  keyOf(room, state) {
    const { token_role: role, token_scale: scale } = room.options;
    if (!room.store?.vectorsOf(role, state)) return '';
    return [role, state, room.token, scale, scale === 'shared' && room.store.vectors.size].join();
  },

  draw(room, state) {
    const { values, range } = /** @type {any} */ (alike(room, state));
    const all = () => room.namesOf('similarity').flatMap((_, i) => alike(room, i) ?? []);
    return { values, range: scaled(room, range, () => all().map((one) => one.range)) };
  },

  title(room, state) {
    const map = alike(room, state);
    return map ? alikeFinding(room.who(), map.values, room.patch) : 'Which patches carry the same direction';
  },

  readout(room, state) {
    const map = alike(room, state);
    const vectors = room.store?.vectorsOf(room.options.token_role, state);
    if (!map || !vectors) return '';
    const named = (room.subject?.prefix ?? []).slice(0, 1);
    const others = named.map((name, i) => `; the ${name} token ${short(cosine(vectors, room.token, i))}`);
    return `${alikeWords(map.values, room.cols, room.patch)}${others.join('')}. ${SAME_WORDS}`;
  },
};

/** A view of numbers that are fetched in one piece: what is here of them. @param {Kind} kind @param {(room: Room) => Asked} asked */
function pieceOf(kind, asked) {
  const told = (/** @type {Room} */ room) => room.store?.known(kind, asked(room));
  return {
    told,
    load: async (/** @type {Room} */ room) => void (await room.store?.fetchNumbers(kind, asked(room))),
    keyOf: (/** @type {Room} */ room, /** @type {number} */ state) =>
      told(room) ? `${keyOf(kind, asked(room))}|${state}|${room.options.token_scale}` : '',
  };
}

/** From the smallest value up to the largest. @param {Room} room @param {number[][]} all @param {number} state @returns {Drawing} */
function onScale(room, all, state) {
  const rows = all.map((row) => Float32Array.from(row));
  const range = scaled(room, rangeOf([rows[state]]), () => [rangeOf(rows)]);
  return { values: rows[state], range };
}

/** What a question says of the token that is pointed at, patch or not. @param {Room} room @param {number} state @param {{values: number[][], others: Record<string, number[]>}} told @returns {number | undefined} */
function valueOf({ patch, token, subject, patches }, state, { values, others }) {
  if (patch !== undefined) return values[state][patch];
  const { prefix, suffix } = /** @type {import('./room.js').Subject} */ (subject);
  return others[[...prefix, ...suffix][token < prefix.length ? token : token - patches]]?.[state];
}

/** What is asked of the server. */
function coloursAsked(/** @type {Room} */ room) {
  const { token_role: role, token_foreground: foreground, token_whitened: whitened } = room.options;
  return { role, foreground, whitened, second: room.options.token_second };
}

const components = pieceOf('components', coloursAsked);

/** @type {View} */
export const colours = {
  ...components,
  role: (room) => room.options.token_role,

  draw: (room, state) => ({
    pixels: decodeTable(components.told(room).colours[state]),
    how: 'colours',
  }),

  title(room, state) {
    const told = components.told(room);
    const where = room.namesOf('components')[state];
    if (!told) return `By what the patches differ most, ${where}`;
    const share = told.explained[state].reduce(
      (/** @type {number} */ sum, /** @type {number} */ one) => sum + one,
      0,
    );
    return `Three directions hold ${percent(share)} of what differs between the patches, ${where}`;
  },

  readout(room, state) {
    const told = components.told(room);
    return told ? `${componentWords(told, state)}${told.note && `. ${told.note}`}` : '';
  },

  panel(room) {
    const { second } = room.large;
    const told = components.told(room)?.second;
    second.element.hidden = !told;
    if (!told) return;
    if (second.photo?.photo !== told.photo) second.place(told);
    room.large.drawSecond(decodeTable(told.colours[room.state]));
  },
};

const lengths = pieceOf('norms', (room) => ({ factor: room.options.token_factor }));

/** @type {View} */
export const norms = {
  ...lengths,
  role: () => 'tokens',
  unit: () => 'length',
  draw: (room, state) => onScale(room, lengths.told(room).values, state),

  async more(room, isStill) {
    if (room.options.token_register) await register.load(room, isStill);
  },

  words(room, state) {
    const told = lengths.told(room);
    const times = told && timesMedian(told, state, valueOf(room, state, told), room.options.token_factor);
    return typeof times === 'number' ? `${times.toFixed(1)}x` : '';
  },

  title(room, state) {
    const told = lengths.told(room);
    return told
      ? normFinding(room.who(), told, state, valueOf(room, state, told), room.options.token_factor)
      : 'How long the tokens are';
  },

  readout(room, state) {
    const told = lengths.told(room);
    if (!told) return '';
    const length = valueOf(room, state, told);
    return `${length === undefined ? '' : `Length ${short(length)}. `}${outlierWords(told, state, room.options.token_factor)}`;
  },

  panel(room) {
    const told = lengths.told(room);
    if (told) drawHistogram(room.panel, told, room.state, room.options.token_factor);
    register.paint(room);
  },

  rings: (room) => lengths.told(room)?.outliers[room.state] ?? [],
};

const said = pieceOf('lens', (room) => ({ target: room.subject?.target ?? '' }));

/** What the head says, with the name of the class that it is about. @param {Room} room @returns {Lens | undefined} */
function lensOf(room) {
  const told = said.told(room);
  const target = room.subject?.classes?.name ?? '';
  return (
    told && { ...told, target, unit: told.unit === 'value' && target ? `value of ${target}` : told.unit }
  );
}

/** How sure the head is of its first class; of the chosen one where one is chosen. @param {Room} room @returns {number[][]} */
function sureness(room) {
  const told = /** @type {Lens} */ (said.told(room));
  return room.subject?.target || !told.top_probability ? told.values : told.top_probability;
}

/** @type {View} */
export const lens = {
  ...said,
  role: () => 'tokens',

  unit(room) {
    const told = lensOf(room);
    const target = room.subject?.target && told?.target;
    if (told?.words) return `probability of ${target || 'the likeliest class'}`;
    return told?.unit.startsWith('value') ? told.unit : 'cosine';
  },

  draw(room, state) {
    const all = sureness(room);
    if (!said.told(room).words) return onScale(room, all, state);
    const rows = all.map((row) => Float32Array.from(row));
    return { values: rows[state], range: [0, rangeOf(rows)[1]] };
  },

  words(room, state) {
    const told = /** @type {Lens | undefined} */ (said.told(room));
    if (!told || room.patch === undefined) return '';
    const { values, top, top_probability: sure, words } = told;
    if (!top || !sure || !words) return short(values[state][room.patch]);
    return `${words[top[state][room.patch]].split(',')[0]} ${percent(sure[state][room.patch])}`;
  },

  title(room, state) {
    const told = lensOf(room);
    return told ? lensFinding(room.who(), told, state, room.patch) : 'What the head would say of each patch';
  },

  readout(room, state) {
    const told = lensOf(room);
    if (!told) return '';
    const { patch, cols } = room;
    const spot = patch === undefined || !room.subject?.target ? null : { state, patch, cols, name: '' };
    const first = spot ? `${lensWords(told, spot)}. ` : '';
    return `${first}${surestWords(told, state, cols)}. ${told.note}`.replace(/^[.] /, '');
  },
};

const COMPARING = 'Comparing all layers …';

/** What is asked of the server. */
const layersAsked = (/** @type {Room} */ room) => ({ role: room.options.token_role });

const changed = pieceOf('change', () => ({}));

/** How far each patch was turned by each layer. @param {Room} room @returns {number[][]} */
const turned = (room) => changed.told(room).values.map((/** @type {number[]} */ row) => row.map(degrees));

/** @type {View} */
export const layers = {
  ...changed,
  role: () => 'tokens',
  isPerLayer: true,
  unit: () => 'degrees turned',
  draw: (room, state) => onScale(room, turned(room), state),

  async more(room) {
    await room.compute('layers', layersAsked(room), COMPARING);
  },

  words(room, state) {
    const told = changed.told(room);
    const value = told && valueOf(room, state, told);
    return value === undefined ? '' : `${Math.round(degrees(value))}°`;
  },

  title: (room, state) =>
    changed.told(room)
      ? changeFinding(`Layer ${state}`, turned(room)[state], room.cols, room.patch)
      : 'How much each layer changes the tokens',

  readout(room, state) {
    const { patch, cols } = room;
    const told = changed.told(room);
    return told
      ? changeWords(told, state, patch === undefined ? null : { state, patch, cols, name: '' })
      : '';
  },

  panel(room) {
    const told = room.store?.known('layers', layersAsked(room));
    if (told) drawMatrix(room.panel, told, room.colours);
  },
};

/** @type {Record<Options['token_measure'], View>} */
export const VIEWS = { similarity, components: colours, norms, lens, layers, segments };
