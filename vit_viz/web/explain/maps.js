// The maps of the cards as questions: what is asked for each, what lies on one scale, and what a card says of its map.

import { number } from '../../ui/kit/numbers.js';
import { DRAWING, endsOf, mapIn } from '../kit/map.js';
/** @import { Drawing, PatchMap, Photo } from '../kit/map.js' */
/** @import { Store } from '../kit/store.js' */

/** @typedef {'own' | 'share' | 'only'} Ruler each map by itself, as shares on one scale, or as shares less the mean of the quick maps */

/**
 * What the maps are of: a photo in front of a model as questions take it, the photo on the screen with its tokens, and what is explained.
 * @typedef {import('../../explorer/geometry.js').Trace & Photo & {output_query: string, name?: string}} Traced
 * @typedef {{about: any, photo: Pick<Traced, 'trace' | 'layers' | 'grid' | 'crop' | 'prefix' | 'suffix' | 'pooling' | 'output_query' | 'photo'
 *   | 'photo_size' | 'unlit' | 'name'>, target: import('./room.js').Aim}} Of
 *
 * The answer to a question of a card, with the photo that it was asked of.
 * @typedef {{arrays: Record<string, {shape: number[], data: any}>, facts: any, words: string, photo: Photo}} Answered
 */

/**
 * The question for the map of a method. It explains the output, whatever token is pinned.
 * @param {Store} store @param {Of} of @param {{name: string, aimed?: boolean}} method @param {string} [target] another class than that of the link
 * @returns {[name: string, body: any]}
 */
export function questionOf(store, { about, photo, target: { link } }, { name, aimed }, target = link) {
  const towards = aimed ? { target: target || null } : {};
  return [name, { body: { ...about, ...towards, ...store.optionsOf(name) }, photo }];
}

/**
 * What a question about the map of a method is asked with: the method, the class, and the options that are changed.
 * @param {Store} store @param {Of} of @param {string} method @param {string} [target] another class than that of the link
 */
export function testedOf(store, { about, target: { link } }, method, target = link) {
  const options = store.optionsOf(method);
  return { ...about, method, target: target || null, ...(Object.keys(options).length && { options }) };
}

/** @param {Store} store @returns {Drawing} */
export function drawingOf({ view }) {
  return /** @type {any} */ (Object.fromEntries(DRAWING.map((name) => [name, view[name].value])));
}

/** A map whose sizes sum to 1. @param {PatchMap} map @returns {PatchMap} */
export function shares(map) {
  const total = map.values.reduce((sum, value) => sum + Math.abs(value), 0);
  const values = total > 0 ? map.values.map((value) => value / total) : map.values;
  return { ...map, values, unit: 'share of the map' };
}

/** A map as shares, less other shares. @param {PatchMap} map @param {ArrayLike<number>} others @param {string} unit @returns {PatchMap} */
export function less(map, others, unit) {
  const { values } = shares(map);
  return { ...map, values: values.map((value, i) => value - others[i]), signed: true, unit };
}

/** @type {WeakMap<Answered, PatchMap>} an answer is one map, however often it is drawn */
const READ = new WeakMap();

/** @param {Answered} answer */
function mapOf(answer) {
  const map = READ.get(answer) ?? mapIn(answer);
  READ.set(answer, map);
  return map;
}

/**
 * The maps of the cards as they are drawn, each with the ends of its scale; none while maps are on their way that make the scale of all.
 * @param {Map<string, Answered | null>} answers by the names of the methods; null: there is none
 * @param {string[]} quick methods, whose maps make the common scale
 * @param {Ruler} ruler @param {boolean} clip
 * @returns {Map<string, {map: PatchMap, ends: [number, number]}>}
 */
export function onScale(answers, quick, ruler, clip) {
  const maps = new Map([...answers].flatMap(([name, answer]) => (answer ? [[name, mapOf(answer)]] : [])));
  const drawn = (/** @type {(map: PatchMap) => {map: PatchMap, ends: [number, number]}} */ how) =>
    new Map([...maps].map(([name, map]) => [name, how(map)]));
  if (ruler === 'own') return drawn((map) => ({ map, ends: endsOf(map.values, map.signed, clip) }));
  const together = quick.flatMap((name) => maps.get(name) ?? []);
  if (!together.length || quick.some((name) => !answers.has(name))) return new Map();
  const { ends, on } = commonScale(together, ruler, clip);
  return drawn((map) => ({ map: on(map), ends: ruler === 'share' && !map.signed ? [0, ends[1]] : ends }));
}

/**
 * The scale that maps have together: as shares, or as shares less their mean; `on` puts a map on it.
 * @param {PatchMap[]} maps @param {Ruler} ruler @param {boolean} clip
 * @returns {{ends: [number, number], on: (map: PatchMap) => PatchMap}}
 */
export function commonScale(maps, ruler, clip) {
  const together = maps.map(shares);
  if (ruler === 'share') {
    const [, top] = endsOf(joined(together.map(({ values }) => values.map(Math.abs))), false, clip);
    return { ends: [-top, top], on: shares };
  }
  const mean = together[0].values.map(
    (_, i) => together.reduce((sum, { values }) => sum + values[i], 0) / together.length,
  );
  const on = (/** @type {PatchMap} */ map) => less(map, mean, 'share of the map, less the mean of all');
  return { ends: endsOf(joined(together.map((map) => on(map).values)), true, clip), on };
}

/** @param {Float32Array[]} parts */
function joined(parts) {
  return Float32Array.from(parts.flatMap((part) => [...part]));
}

/** A card in words: what its map is, what it says, and its scale with numbers. @param {Answered} answer @param {{map: PatchMap, ends: [number, number]}} drawn @param {Ruler} ruler */
export function captionOf({ facts: { caption, note }, words }, { map, ends: [low, high] }, ruler) {
  const largest = map.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = `Scale: ${map.unit} from ${number(low)} to ${number(high)}`;
  const beyond =
    largest > high * 1.0001 ? `Its largest value, ${number(largest)}, lies beyond this scale` : '';
  const what = caption.charAt(0).toUpperCase() + caption.slice(1);
  return [what, note, ruler === 'only' ? '' : words, scale, beyond]
    .filter(Boolean)
    .map((one) => `${one.replace(/\.$/, '')}.`)
    .join(' ');
}

/**
 * What the cards show while that is not what the stage shows, or each is set against the mean of all; else ''.
 * @param {Ruler} ruler @param {string} side of two classes, on the stage @param {string[]} names of the classes
 * @param {[number, number]} [ends] of the common scale
 */
export function ruleWords(ruler, side, [one, other], ends) {
  if (ruler === 'only')
    return ends
      ? `Each card as shares, less the mean of the quick maps: orange more than the mean, blue less, on one scale from ${number(ends[0])} to ${number(ends[1])} for all. Gray cards say what the others say.`
      : '';
  if (!other || side === 'lead') return '';
  const onStage = {
    difference: `${one}'s map less ${other}'s, two maps subtracted, with a test of its own beside it`,
    one: `the map for ${one} alone`,
    other: `the map for ${other} alone`,
  }[side];
  return `Each card is one map of ${one}'s lead over ${other}, and is tested as that. The photo shows ${onStage}.`;
}
