// The questions of the Tokens tab: what the photos of each need, how they are drawn, and what is said of them.

import { placeWords, tokenWords } from '../../explorer/geometry.js';
import { cosine, cosines, counted, percent, rangeOf, short } from '../../ui/kit/numbers.js';
import { coloursOf } from './colours.js';
import { asking } from './held.js';
import { segmentPixels } from './plate.js';
/** @import { Answer, AnswerPiece, Piece, Role } from './held.js' */
/** @import { Options, Scene } from './scene.js' */

/**
 * @typedef {'components' | 'similarity' | 'norms' | 'lens' | 'layers' | 'segments'} Measure
 *
 * What lies over a photo: values on a scale, or pixels with their own colours.
 * @typedef {{values: Float32Array, range: [number, number]} | {pixels: Uint32Array, how: 'colours' | 'heat'}} Drawing
 *
 * One question; `told` is what there is of one of its states, and is there where it is asked for.
 * @typedef {object} Question
 * @property {(scene: Scene) => AnswerPiece} [saved] the question whose answer is what is seen, where none of its pieces is
 * @property {(options: Options) => Role} role whose states there are photos of
 * @property {boolean} [isPerLayer] whether there is none before the first layer, whatever the role
 * @property {(scene: Scene, state: number) => Piece} piece what the photo of a state needs
 * @property {(scene: Scene, state: number) => any} [told] where that is not the piece itself
 * @property {(scene: Scene) => unknown} [key] what a photo depends on beside its piece and the scale
 * @property {(scene: Scene) => {row: string, piece: AnswerPiece, words: string} | null} [more] what the chosen row needs beside its
 *     photos, which takes a while; row: that fails with it; words: what is done
 * @property {(told: any, scene: Scene, state: number, isLarge: boolean) => Drawing} draw
 * @property {(scene: Scene) => string} unit of the scale; '' where there is none
 * @property {(told: any, scene: Scene, state: number) => string} [words] under a small photo
 * @property {(told: any, scene: Scene, state: number) => string} title
 * @property {(told: any, scene: Scene, state: number) => string} readout
 */

const SAME = Math.SQRT1_2; // cosine of 45 degrees
const SAME_WORDS = 'The same direction: within 45°, a cosine of 0.71. Dark: no more alike than the average.';
const CLEAR = 0.1; // probability from which on the head is said to say something
const OVER = 130; // opacity of a region over the photo, of 255
const LIT = 190; // of the one that is pointed at

/** A part of an array along its first axis. @param {{shape: number[], data: any}} array @param {number} line */
export function lineOf({ shape, data }, line) {
  const size = data.length / shape[0];
  return data.subarray(line * size, (line + 1) * size);
}

/** Numbers of the tokens that are no patches, by their names. @param {Answer['arrays']} arrays @param {string} [under] @returns {[string, ArrayLike<number>][]} */
export function othersOf(arrays, under = '') {
  const named = `${under}named.`;
  const names = Object.keys(arrays).filter((name) => name.startsWith(named));
  return names.map((name) => [name.slice(named.length), arrays[name].data]);
}

/** The number of the token that is pointed at, patch or not. @param {Scene} scene @param {Answer} told @param {number} state @param {string} [under] @returns {number | undefined} */
function valueOf({ patch, named }, { arrays }, state, under = '') {
  if (patch === undefined) return arrays[`${under}named.${named}`]?.data[state];
  return lineOf(arrays[`${under}values`], state)[patch];
}

const sum = (/** @type {ArrayLike<number>} */ values) =>
  Array.from(values).reduce((all, one) => all + one, 0);
const meanOf = (/** @type {ArrayLike<number>} */ values) => sum(values) / values.length;
const patchAt = (/** @type {number} */ patch, /** @type {number} */ cols) =>
  `patch ${placeWords(patch, cols)}`;

/** Which token is pointed at, with its place in the model: "Patch (7, 7) after layer 4". @param {Scene} scene @param {number} state */
function who(scene, state) {
  const { cols, measure, named, patch } = scene;
  const name = patch === undefined ? `The ${tokenWords(named)}` : `Patch ${placeWords(patch, cols)}`;
  const role = measure === 'layers' ? 'tokens' : QUESTIONS[measure].role(scene.options);
  const where = scene.namesOf(measure)[state];
  if (role !== 'tokens') return `${name}, by the ${role} of ${where}`;
  return `${name} ${where === 'input' ? 'before the first layer' : where}`;
}

/** One scale for some, or each its own. @param {Scene} scene @param {[number, number]} own @param {() => [number, number]} shared */
function scaled({ options }, own, shared) {
  return options.token_scale === 'layer' ? own : shared();
}

/** From the smallest value up to the largest. @param {Scene} scene @param {{shape: number[], data: any}} array @param {number} state @returns {Drawing} */
function onScale(scene, array, state) {
  const values = Float32Array.from(lineOf(array, state));
  return { values, range: scaled(scene, rangeOf([values]), () => rangeOf([Float32Array.from(array.data)])) };
}

// --- alike

/** The largest of some numbers: where it is, leaving one out. @param {ArrayLike<number>} values @param {number} [without] */
function largestAt(values, without) {
  let best = -1;
  for (let i = 0; i < values.length; i++)
    if (i !== without && (best < 0 || values[i] > values[best])) best = i;
  return best;
}

/**
 * From the average patch up to the one that is most alike, the patch itself left out: what is lit stands out from the average.
 * @param {Float32Array} values @param {number} [self] @returns {[number, number]}
 */
function standOut(values, self) {
  const best = largestAt(values, self);
  if (best < 0) return [values[0], values[0]];
  let total = 0;
  for (let i = 0; i < values.length; i++) if (i !== self) total += values[i];
  return [Math.min(values[best], total / (values.length - (self === undefined ? 0 : 1))), values[best]];
}

/** The cosines of the token that is pointed at with all patches, in one state; null where its vectors are not here. @param {Scene} scene @param {number} state */
function alike(scene, state) {
  const { held, token, patch, patches, subject } = scene;
  const piece = similarity.piece(scene, state);
  const vectors = held.known(piece);
  if (!vectors) return null;
  const before = held.alike.get(piece.key);
  if (before?.token === token) return before;
  const out = before?.values ?? new Float32Array(patches);
  const values = cosines(vectors, token, subject.prefix.length, out);
  const one = { token, values, range: standOut(values, patch) };
  held.alike.set(piece.key, one);
  return one;
}

/** @type {Question} */
const similarity = {
  saved: ({ options: { token_role: role }, subject: { query } }) =>
    asking('token_similarity', { role, query }),
  role: ({ token_role: role }) => role,
  piece: ({ options: { token_role: role } }, state) => ({ key: `${role}/${state}`, role, state }),
  told: alike,
  key: ({ token, options, held }) => [token, options.token_scale === 'shared' && held.vectors.size],
  unit: () => 'cosine',

  draw: ({ values, range }, scene) => ({
    values,
    range: scaled(scene, range, () => {
      const ranges = scene.namesOf('similarity').flatMap((_, state) => alike(scene, state)?.range ?? []);
      return [Math.min(...ranges), Math.max(...ranges)];
    }),
  }),

  title({ values }, scene, state) {
    const { patch: self } = scene;
    const others = values.length - (self === undefined ? 0 : 1);
    const alone = self === undefined || values[self] < SAME ? 0 : 1;
    const same = values.filter((/** @type {number} */ value) => value >= SAME).length - alone;
    const start = `${who(scene, state)}: `;
    if (!same) return `${start}no ${self === undefined ? '' : 'other '}patch carries the same direction`;
    if (same === others) return `${start}all patches carry the same direction`;
    if (same > others / 2) return `${start}most patches carry the same direction, ${same} of ${others}`;
    return `${start}${counted(same, 'patch carries', 'patches carry')} the same direction`;
  },

  readout({ values }, scene, state) {
    const { cols, patch, subject, token } = scene;
    const vectors = scene.held.known(similarity.piece(scene, state));
    const best = largestAt(values, patch);
    const [name] = subject.prefix;
    const first = name ? `; the ${name} token ${short(cosine(vectors, token, 0))}` : '';
    if (best < 0) return `There is one patch alone${first}. ${SAME_WORDS}`;
    const average = short(standOut(values, patch)[0]);
    return `Most alike is ${patchAt(best, cols)}, cosine ${short(values[best])}; the average patch ${average}${first}. ${SAME_WORDS}`;
  },
};

// --- colours

/** @type {Question} */
const components = {
  saved({ options: { token_role: role, token_foreground: foreground, token_whitened: whitened } }) {
    return asking('token_components', { role, foreground, whitened });
  },
  role: ({ token_role: role }) => role,
  piece({ options, subject }) {
    const { token_role: role, token_foreground: foreground, token_whitened: whitened } = options;
    const second = options.token_second === subject.image ? '' : options.token_second;
    return asking('token_components', { role, foreground, whitened, second });
  },
  unit: () => '',
  draw: (told, _, state) => ({ pixels: coloursOf(told)[0][state], how: 'colours' }),
  title: ({ arrays: { explained } }, scene, state) =>
    `Three directions hold ${percent(sum(lineOf(explained, state)))} of what differs between the patches, ${scene.namesOf('components')[state]}`,

  readout({ arrays: { explained, overall }, note }, _, state) {
    const [red, green, blue] = Array.from(lineOf(explained, state), percent);
    const all = percent(sum(overall.data));
    return `Red ${red}, green ${green}, blue ${blue} of what differs here; in all layers together ${all}. Brightness is the photo's own${note ? `. ${note}` : ''}`;
  },
};

// --- lengths

const factorOf = (/** @type {Scene} */ { options }) => ({ factor: options.token_factor });

/** The patches that are outliers in a state. @param {Scene} scene @param {any} facts @param {number} state @param {number} [first] the token that is the first patch */
export function outliersOf({ subject, patches }, facts, state, first = subject.prefix.length) {
  const all = facts.outliers[state].map((/** @type {number} */ token) => token - first);
  return all.filter((/** @type {number} */ patch) => patch >= 0 && patch < patches);
}

/** The length of the token that is pointed at, and how many medians that is; null where there is no median, or no length. @param {Answer} told @param {Scene} scene @param {number} state */
function lengthOf(told, scene, state) {
  const length = valueOf(scene, told, state, 'maps.');
  const median = told.arrays.thresholds.data[state] / scene.options.token_factor;
  return { length, times: median > 0 && length !== undefined ? length / median : null };
}

/** @type {Question} */
const norms = {
  role: () => 'tokens',
  piece: (scene) => asking('token_norms', factorOf(scene)),
  more(scene) {
    const words = 'Adding a register: finding its neurons, then a pass without and one with it …';
    const piece = asking('added_register', factorOf(scene));
    return scene.options.token_register ? { row: 'register', piece, words } : null;
  },
  unit: () => 'length',
  draw: ({ arrays }, scene, state) => onScale(scene, arrays['maps.values'], state),

  words(told, scene, state) {
    const { times } = lengthOf(told, scene, state);
    return times === null ? '' : `${times.toFixed(1)}x`;
  },

  title(told, scene, state) {
    const { times } = lengthOf(told, scene, state);
    const { token_factor: factor } = scene.options;
    const long = outliersOf(scene, told.facts, state).length;
    if (times === null)
      return `${long ? counted(long, 'patch is', 'patches are') : 'No patch is'} longer than ${factor} medians, ${scene.namesOf('norms')[state]}`;
    const outlier = times > factor ? 'an outlier, ' : '';
    return `${who(scene, state)}: ${outlier}${Number(times.toPrecision(2))} times as long as the median`;
  },

  /** How many outliers there are, and what they receive in the layer that they enter. */
  readout(told, scene, state) {
    const { length } = lengthOf(told, scene, state);
    const { thresholds, received, fair } = told.arrays;
    const patches = outliersOf(scene, told.facts, state).length;
    const all = patches ? [counted(patches, 'patch', 'patches')] : [];
    for (const [name, values] of othersOf(told.arrays, 'maps.'))
      if (values[state] > thresholds.data[state]) all.push(/\d$/.test(name) ? name : `the ${name} token`);
    const of = (/** @type {{data: any}} */ array) => percent(array.data[state]);
    const share = `, which get ${of(received)} of the next layer's attention (an even share would be ${of(fair)})`;
    const { token_factor: factor } = scene.options;
    const start = length === undefined ? '' : `Length ${short(length)}. `;
    if (!all.length) return `${start}No token is longer than ${factor} medians.`;
    return `${start}Longer than ${factor} medians: ${all.join(' and ')}${state < received.data.length ? share : ''}.`;
  },
};

/** What became of the outlier patches when a register was added. @param {any} facts of the answer */
export function registerWords({ outlier_patches: [before, after], state, name, neurons }) {
  const all = neurons.map((/** @type {{layer: number}} */ { layer }) => layer);
  const layers = [...new Set(all)].sort((a, b) => a - b);
  const where = `layer${layers.length === 1 ? '' : 's'} ${layers.join(', ')}`;
  return `After layer ${state - 1}, ${counted(before, 'patch was an outlier', 'patches were outliers')}; with ${name} added there ${after === 1 ? 'is' : 'are'} ${after}. It took over ${all.length} neurons of ${where}, without training.`;
}

/** The maps before and after a register was added that stand side by side, each pair on one scale. @param {Answer} told @param {Scene} scene */
export function registerPairs({ arrays, facts }, scene) {
  const state = Math.max(scene.state, facts.state); // before, nothing differs
  const sides = ['before', 'after'];
  return [
    {
      words: `Norms, ${scene.namesOf('norms')[state]}`,
      maps: sides.map((side) => Float32Array.from(lineOf(arrays[`${side}.maps.values`], state))),
      outliers: sides.map((side, more) =>
        outliersOf(scene, facts[side], state, scene.subject.prefix.length + more),
      ),
    },
    {
      words: 'What the output looks at in the last layer, mean of its heads',
      maps: sides.map((_, side) => Float32Array.from(arrays[`attention.${side}.values`].data)),
      outliers: [[], []],
    },
  ];
}

// --- what the head says

/** What the head says first of a patch, and how sure it is; null where it names no classes. @param {Answer} told @param {number} state @param {number} patch */
function saidOf({ arrays: { top, top_probability: sure }, facts: { words } }, state, patch) {
  if (!top || !sure || !words) return null;
  return { name: words[lineOf(top, state)[patch]], share: lineOf(sure, state)[patch] };
}

/** What the values are of: the class that is meant, once its name is there. @param {Answer} told @param {Scene} scene */
function lensUnit({ facts: { maps } }, { subject }) {
  const name = subject.classes?.name;
  return maps.unit === 'value' && name ? `value of ${name}` : maps.unit;
}

/** @type {Question} */
const lens = {
  role: () => 'tokens',
  piece: ({ subject }) => asking('logit_lens', { target: subject.target }),

  unit(scene) {
    const told = scene.held.known(lens.piece(scene, 0));
    const target = scene.subject.target && scene.subject.classes?.name;
    if (told?.facts.words && told.arrays.top) return `probability of ${target || 'the likeliest class'}`;
    const unit = told ? lensUnit(told, scene) : '';
    return unit.startsWith('value') ? unit : 'cosine';
  },

  /** How sure the head is of its first class; of the chosen one where one is chosen. */
  draw({ arrays, facts }, scene, state) {
    const { top, top_probability: sure, 'maps.values': values } = arrays;
    const all = scene.subject.target || !sure ? values : sure;
    if (!facts.words || !top) return onScale(scene, all, state);
    return {
      values: Float32Array.from(lineOf(all, state)),
      range: [0, rangeOf([Float32Array.from(all.data)])[1]],
    };
  },

  words(told, { patch }, state) {
    if (patch === undefined) return '';
    const said = saidOf(told, state, patch);
    return said
      ? `${said.name.split(',')[0]} ${percent(said.share)}`
      : short(lineOf(told.arrays['maps.values'], state)[patch]);
  },

  title(told, scene, state) {
    const { patch } = scene;
    const start = `${who(scene, state)}: `;
    const said = saidOf(told, state, patch ?? 0);
    if (said && patch === undefined)
      return `${start}of the patches most would be called ${commonest(told, state)}`;
    if (said) {
      const words = `${said.name}, ${percent(said.share)}`;
      return `${start}the head would say ${said.share < CLEAR ? `nothing clear (${words})` : words}`;
    }
    const values = lineOf(told.arrays['maps.values'], state);
    const value = short(patch === undefined ? meanOf(values) : values[patch]);
    const unit = lensUnit(told, scene);
    return unit.startsWith('value')
      ? `${start}${unit} ${value}${patch === undefined ? ' on average' : ''}`
      : `${start}cosine ${value} with the photo's own embedding`;
  },

  readout(told, scene, state) {
    const { patch, cols, subject } = scene;
    const parts = [];
    if (patch !== undefined && subject.target) {
      const value = lineOf(told.arrays['maps.values'], state)[patch];
      const said = saidOf(told, state, patch);
      const target = subject.classes?.name ?? '';
      const more = said?.name === target ? '' : `, ${target} ${percent(value)}`;
      const words = said
        ? `${said.name} ${percent(said.share)}${more}`
        : `${short(value)}, ${lensUnit(told, scene)}`;
      parts.push(`${patchAt(patch, cols)}: ${words}`);
    }
    const best = told.arrays.top_probability ? largestAt(lineOf(told.arrays.top_probability, state)) : 0;
    const said = saidOf(told, state, best);
    if (said) parts.push(`It is surest of ${patchAt(best, cols)}: ${said.name}, ${percent(said.share)}`);
    return [...parts, told.facts.maps.note].join('. ');
  },
};

/** The class that most patches of a state come out as. @param {Answer} told @param {number} state */
function commonest({ arrays, facts }, state) {
  const counts = new Map();
  for (const index of lineOf(arrays.top, state)) counts.set(index, (counts.get(index) ?? 0) + 1);
  const [index] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
  return facts.words[index];
}

// --- change

/** How far a vector turned, from its cosine with itself before. */
const degrees = (/** @type {number} */ value) =>
  (180 / Math.PI) * Math.acos(Math.min(1, Math.max(-1, value)));

/** @type {Question} */
const layers = {
  role: () => 'tokens',
  isPerLayer: true,
  piece: () => asking('token_change'),
  more: ({ options }) => ({
    row: 'layers',
    piece: asking('layer_similarity', { role: options.token_role }),
    words: 'Comparing all layers …',
  }),
  unit: () => 'degrees turned',
  draw: ({ arrays: { values } }, scene, state) =>
    onScale(scene, { ...values, data: Float32Array.from(values.data, degrees) }, state),

  words(told, scene, state) {
    const value = valueOf(scene, told, state);
    return value === undefined ? '' : `${Math.round(degrees(value))}°`;
  },

  title({ arrays }, { patch, cols }, state) {
    const turned = Array.from(lineOf(arrays.values, state), degrees);
    const mean = Math.round(meanOf(turned));
    return patch === undefined
      ? `Layer ${state} turned the patches by ${mean}° on average`
      : `Layer ${state} turned ${patchAt(patch, cols)} by ${Math.round(turned[patch])}°, the average patch by ${mean}°`;
  },

  /** How far a patch and the other tokens stayed as they were. */
  readout({ arrays }, { patch, cols }, state) {
    const others = othersOf(arrays)
      .slice(0, 5)
      .map(([name, values]) => `${tokenWords(name)} ${short(values[state])}`);
    if (patch !== undefined)
      others.unshift(`${patchAt(patch, cols)} ${short(lineOf(arrays.values, state)[patch])}`);
    return `Cosine with itself before the layer (1: only the length changed): ${others.join('; ')}`;
  },
};

// --- segments

/** The segment of each patch, and how many patches each has. @param {Answer} told */
export function labelsOf({ arrays }) {
  const labels = Array.from(arrays.labels.data, Number);
  const sizes = Array.from(
    { length: 1 + Math.max(...labels) },
    (_, one) => labels.filter((label) => label === one).length,
  );
  return { labels, sizes, share: (/** @type {number} */ one) => percent(sizes[one] / labels.length) };
}

/** The segment that is pointed at, over the photo or in the legend; null where none is. @param {Scene} scene @param {Answer} told @returns {number | null} */
export function litSegment({ held }, told) {
  const pointed = held.pointed.value;
  return held.lit.value ?? (pointed === null ? null : labelsOf(told).labels[pointed]);
}

/** @type {Question} */
const segments = {
  role: ({ token_segment_role: role }) => role,
  isPerLayer: true,
  piece(
    { options: { token_segment_role: role, token_method: method, token_count: many, token_box: box } },
    layer,
  ) {
    return asking('segments', { layer, role, method, box, ...(method === 'cut' ? {} : { count: many }) });
  },
  unit: () => '',

  draw(told, scene, _, isLarge) {
    const lit = isLarge ? litSegment(scene, told) : null;
    return { pixels: segmentPixels(labelsOf(told).labels, (one) => (one === lit ? LIT : OVER)), how: 'heat' };
  },

  title(told, scene, layer) {
    const { labels, sizes, share } = labelsOf(told);
    if (scene.patch === undefined) {
      const largest = share(sizes.indexOf(Math.max(...sizes)));
      return `${counted(sizes.length, 'segment')}, the largest with ${largest} of the patches, ${scene.namesOf('segments')[layer]}`;
    }
    const segment = labels[scene.patch];
    const words =
      sizes[segment] > 1
        ? `one of ${sizes[segment]} patches of segment ${segment}`
        : `alone in segment ${segment}`;
    return `${who(scene, layer)}: ${words}`;
  },

  readout(told, { patch, cols }) {
    if (patch === undefined) return 'Point at a patch to read which segment it belongs to.';
    const { labels, share } = labelsOf(told);
    const segment = labels[patch];
    const { overlap } = told.arrays;
    const more = overlap ? `; overlap with the box ${short(overlap.data[segment])}` : '';
    return `${patchAt(patch, cols)}: segment ${segment}, ${share(segment)} of the patches${more}`;
  },
};

/** From the top of the table to its foot. @type {Record<Measure, Question>} */
export const QUESTIONS = { components, similarity, norms, lens, layers, segments };
