// What an answer is made of, as the Explain tab says it: the sum in a few summands, and what switching heads off did.

import { fixed } from '../../ui/kit/numbers.js';
import { signed } from '../kit/signed.js';
/** @import { Target } from '../kit/parts.js' */

/**
 * An answer to the question `decomposition`.
 * @typedef {object} Answer
 * @property {Record<'terms' | 'heads' | 'mlps' | 'rest', {shape: number[], data: Float32Array}>} arrays terms: [layers, heads, tokens],
 *     prefix tokens first, suffix tokens last
 * @property {{rest_names: string[], total: number, output: number, layers: string[], grid: [number, number], prefix: string[], suffix:
 *     string[], unit: string, note: string, finding: string}} facts
 *
 * @typedef {{layers: string[], heads: number[][], mlps: number[], total: number, output: number, maps: Float32Array}} Numbers
 *     maps: what each head took from each patch, [layers, heads, patches]
 *
 * @typedef {object} Made
 * @property {string} target in words
 * @property {string} title what stands out
 * @property {Numbers} now
 * @property {Numbers} before heads were switched off
 * @property {string[]} off heads, as "4.3"
 * @property {number} decimals
 * @property {[string, number][]} sum
 * @property {string} unit
 * @property {string} note
 * @property {Record<string, number>} outside what heads took from tokens that are no patches
 * @property {{promised: number, did: number, words: string} | null} effect
 * @property {string} whyNot nothing can be switched off here
 */

const KEPT = 0.05; // of what was promised: what a part did may differ by so much and still be called the same
const FEW = 3; // heads that are named one by one
const POOL = 'The heads of a pool cannot be switched off here: edits are of the layers before it.';
const LATER = 'later layers and the last norm';
const LATER_OF_SENTENCE = 'later layers, the last norm and the length of the embedding';
const EMBEDDING =
  'Parts are switched off only where a class is explained: without one, the number that they sum to changes with them.';

/** @param {Target & {name: string}} target @param {Answer} answer @param {Answer} earlier before heads were switched off @param {string[]} off @returns {Made} */
export function madeOf(target, answer, earlier, off) {
  const [now, before] = [answer, earlier].map(numbersOf);
  const isPool = now.layers.join() === 'pool';
  const whyNot = isPool ? POOL : target.classes?.length ? '' : EMBEDDING;
  const { unit, note, finding } = answer.facts;
  const sum = summands(answer);
  const later = target.classes?.[0]?.cosine === undefined ? LATER : LATER_OF_SENTENCE;
  return {
    target: target.name || 'its own embedding',
    title: finding,
    ...{ now, before, off, sum, unit, note, whyNot },
    decimals: decimalsOf([now.total, before.total]),
    outside: outsideOf(answer),
    effect: off.length && !whyNot ? effectOf(whatOf(target), before, now, off, later) : null,
  };
}

/** @param {Answer} answer @returns {Numbers} */
function numbersOf({ arrays: { terms, heads, mlps }, facts: { layers, total, output, prefix, suffix } }) {
  const [rows, count, tokens] = terms.shape;
  const patches = tokens - prefix.length - suffix.length;
  const maps = new Float32Array(rows * count * patches);
  for (let i = 0; i < rows * count; i++)
    maps.set(terms.data.subarray(i * tokens + prefix.length, (i + 1) * tokens - suffix.length), i * patches);
  const rowOf = (/** @type {number} */ row) => [...heads.data.subarray(row * count, (row + 1) * count)];
  return { layers, total, output, maps, heads: layers.map((_, row) => rowOf(row)), mlps: [...mlps.data] };
}

/** How many decimals numbers are written with that are seen to add up: four digits of the largest. @param {number[]} values */
export function decimalsOf(values) {
  return Math.max(0, 3 - Math.floor(Math.log10(Math.max(...values.map(Math.abs)) || 1)));
}

const total = (/** @type {ArrayLike<number>} */ values) =>
  Array.from(values).reduce((sum, value) => sum + value, 0);

/** The sum in a few summands: the embedding, all heads, all MLPs, then biases by name. @param {Answer} answer @returns {[string, number][]} */
function summands({ arrays: { heads, mlps, rest }, facts }) {
  /** @type {[string, number][]} */
  const others = facts.rest_names.map((name, i) => [name, rest.data[i]]);
  const isFirst = (/** @type {[string, number]} */ [name]) => name === 'embedding';
  return [
    ...others.filter(isFirst),
    ['all heads', total(heads.data)],
    [mlps.data.length > 1 ? 'all MLPs' : 'MLP', total(mlps.data)],
    ...others.filter((one) => !isFirst(one)),
  ];
}

/** What heads took from tokens that are no patches, which no map over the photo shows; registers as one. @param {Answer} answer */
function outsideOf({ arrays: { terms }, facts: { prefix, suffix } }) {
  const [rows, count, tokens] = terms.shape;
  /** @type {Record<string, number>} */
  const outside = {};
  const last = tokens - suffix.length;
  [...prefix, ...suffix].forEach((name, place) => {
    const token = place < prefix.length ? place : place - prefix.length + last;
    const kind = name.startsWith('register') ? 'registers' : `${name} token`;
    for (let i = 0; i < rows * count; i++)
      outside[kind] = (outside[kind] ?? 0) + terms.data[i * tokens + token];
  });
  return outside;
}

// --- what switching off did

/** What is explained, in words. @param {Target} target */
function whatOf({ classes = [], chosen, other }) {
  const [first, second] = [chosen, other].map((index) => classes.find((one) => one.index === index));
  const of = first?.value === undefined || first.cosine !== undefined ? 'the logit of' : 'the value of';
  return second ? `the lead of ${first?.name} over ${second.name}` : `${of} ${first?.name}`;
}

/**
 * What the parts that are off promised, what switching them off did, and where the difference went.
 * @param {string} what is explained @param {Numbers} before @param {Numbers} now @param {string[]} off
 * @param {string} [later] through which the rest came
 */
export function effectOf(what, before, now, off, later = LATER) {
  const parts = off.map((place) => {
    const [layer, head] = place.split('.').map(Number);
    return before.heads[layer][head];
  });
  const [promised, did] = [-total(parts), now.total - before.total];
  return { promised, did, words: effectWords(what, before, now, off, promised, later) };
}

/** @param {string} what @param {Numbers} before @param {Numbers} now @param {string[]} off @param {number} promised @param {string} later */
function effectWords(what, before, now, off, promised, later) {
  const digits = decimalsOf([now.total, before.total]);
  const did = now.total - before.total;
  const rest = did - promised;
  const written = (/** @type {number} */ value) => fixed(value, digits);
  const first = `Without ${namedOf(off)}, ${what} ${did < 0 ? 'falls' : 'rises'} from ${written(before.total)} to ${written(now.total)}, by ${written(Math.abs(did))}`;
  const its = off.length === 1 ? 'its part' : 'their parts';
  if (Math.abs(rest) <= KEPT * Math.max(Math.abs(promised), Math.abs(did), 1e-12))
    return `${first}: as ${its} promised.`;
  const foretold = `${its} promised a ${promised < 0 ? 'fall' : 'rise'} of ${written(Math.abs(promised))}`;
  const through = `${later}${mostOf(before, now, off, rest, digits)}`;
  const gap = written(Math.abs(rest));
  if (promised * rest > 0) return `${first}; ${foretold}. The other ${gap} came through ${through}.`;
  if (promised * did > 0) return `${first}; ${foretold}. It was made up for, by ${gap}, in ${through}.`;
  return `${first}, though ${foretold}. What weighed more came through ${through}.`;
}

/** @param {string[]} off */
function namedOf(off) {
  if (off.length > FEW) return `${off.length} heads`;
  const names = off.map((place) => place.replace('.', ' · '));
  return [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ');
}

/**
 * Which part that is not off changed most in the direction of the difference.
 * @param {Numbers} before @param {Numbers} now @param {string[]} off @param {number} rest @param {number} digits
 */
function mostOf(before, now, off, rest, digits) {
  const sign = Math.sign(rest) || -1;
  const changes = now.layers.flatMap((layer, row) => [
    ...now.heads[row].map((value, head) => ({
      name: `head ${row} · ${head}`,
      value: off.includes(`${row}.${head}`) ? 0 : value - before.heads[row][head],
    })),
    { name: `the MLP of layer ${layer}`, value: now.mlps[row] - before.mlps[row] },
  ]);
  const most = changes.reduce((best, one) => (sign * one.value > sign * best.value ? one : best));
  if (sign * most.value <= 0) return '';
  return `, most of all ${most.name} (${signed(most.value, digits)})`;
}
