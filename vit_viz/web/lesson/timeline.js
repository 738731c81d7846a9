// The lesson as data: scenes of beats. A beat says one thing and raises one value of its own name, and everything that is drawn is a
// function of these values, so that playing, scrubbing, stepping and stills are the same.

import { clamp, placeWords, tokenWords } from '../../explorer/geometry.js';
/** @import { Pen } from './pen.js' */

/**
 * An answer to a question, as `ask` has it.
 * @typedef {{arrays: Record<string, {shape: number[], data: any}>, facts: any, words?: string}} Answer
 *
 * What a scene is drawn from: the answers by name, null until they are there, and what they are of. trace: the tokens, their grid, and
 * how many layers and heads there are; patch: the one that is followed, the first of all being 0.
 * @typedef {{tokens: Answer | null, attention: Answer | null, block: Answer | null, depth: Answer | null, parts: Answer | null, patch:
 *   number, layer: number, head: number, trace: import('../../explorer/geometry.js').Trace & {about: any, opening: any}}} Numbers
 * @typedef {'tokens' | 'attention' | 'block' | 'depth' | 'parts'} AnswerName
 *
 * What is said, as data: texts, terms where they are first met, what is stressed, and pieces of the photo.
 * @typedef {(string | {term: string} | {strong: string} | {patch: number})[]} Say
 *
 * part: of the strip, by name: photo, patches, embed, tokens, attn3, mlp3, norm, head, answer; needs: answers without which it waits, where
 * these are not those of its scene; isFor: whether this model has what it tells of.
 * @typedef {{id: string, seconds: number, part: string | ((u: number) => string), say: (n: Numbers) => Say, needs?: AnswerName[], isFor?:
 *   (n: Numbers) => boolean}} Beat
 *
 * For how many seconds each beat of a scene plays, and at which part.
 * @typedef {Record<string, [seconds: number, part: string, more?: Partial<Beat>]>} Times
 *
 * A question to the reader. isFor: whether there is a truth to guess; before: the beat that waits for the guess; shown: the beat at whose end the truth is told, else that one.
 * @typedef {{isFor?: (n: Numbers) => boolean, before: string, shown?: string, question: (n: Numbers) => Say, choices: (n: Numbers) => Say[], truth: (n: Numbers) =>
 *   number, verdict: (n: Numbers) => Say}} Guess
 *
 * A change to try; isFor: whether this model has what is changed.
 * @typedef {{change: string, label: string, controls: ('layer' | 'head' | 'patch' | 'seed')[], isFor?: (n: Numbers) => boolean}} WhatIf
 *
 * build: names of parts in vit_viz/lesson_parts.py, which have formulas, programs and where others go wrong; shapes: of the data.
 * @typedef {{shapes: (n: Numbers) => [name: string, shape: string, what: string][], build: string[]}} Fold
 *
 * draw: a picture of the values, of which those of beats that come later are 0; at: the beat.
 * @typedef {{id: string, title: (n: Numbers) => string, needs?: AnswerName[], beats: (n: Numbers) => Beat[], draw: (pen: Pen, v: Record<string, number>, n:
 *   Numbers, at: string) => void, guess?: Guess, whatIf?: WhatIf[], fold?: Fold}} Scene
 *
 * @typedef {Beat & {scene: Scene, start: number, end: number}} Placed
 */

/** How much of its time a beat moves; then it stands, to be looked at. */
const MOVES = 0.7;

/** Between two numbers. @param {number} from @param {number} to @param {number} share */
export const mix = (from, to, share) => from + (to - from) * share;

/** An area on the way between two others. @param {Area} from @param {Area} to @param {number} share @returns {Area} */
export const between = (from, to, share) => ({
  ...{ x: mix(from.x, to.x, share), y: mix(from.y, to.y, share) },
  ...{ w: mix(from.w, to.w, share), h: mix(from.h, to.h, share) },
});

/** A share that starts and ends slowly; what lies beyond 0 and 1 is cut off. @param {number} share */
export function ease(share) {
  const x = clamp(share);
  return x * x * (3 - 2 * x);
}

/** All beats of some scenes that are for this model, one after the other. @param {Scene[]} scenes @param {Numbers} n @returns {Placed[]} */
export function placed(scenes, n) {
  let end = 0;
  return scenes.flatMap((scene) => {
    const possible = scene.beats(n).filter(({ isFor }) => isFor?.(n) !== false);
    return possible.map((one) => ({
      needs: scene.needs,
      ...one,
      scene,
      start: end,
      end: (end += one.seconds),
    }));
  });
}

/** The beat at a time; the first and the last reach beyond the ends. @param {Placed[]} beats @param {number} t in seconds */
export function beatAt(beats, t) {
  return beats.findLast(({ start }) => start <= t) ?? beats[0];
}

/** The last moment of a beat that is still its own. @param {Placed} beat */
export const endOf = ({ end }) => end - 0.001;

/** The first answer that a beat waits for, if any. @param {Numbers} n @param {Beat} beat */
export const isMissing = (n, { needs }) => needs?.find((name) => !n[name]);

/** The part of the strip where a beat is. @param {Beat} beat @param {number} u how far into it, in [0, 1] */
export const partAt = ({ part }, u) => (typeof part === 'string' ? part : part(u));

/** The value of each beat, by its name, at a time. @param {Placed[]} beats @param {number} t in seconds @returns {Record<string, number>} */
export function values(beats, t) {
  return Object.fromEntries(
    beats.map(({ id, start, seconds }) => [id, clamp((t - start) / (seconds * MOVES))]),
  );
}

/**
 * The same moment where beats have other places: of the same beat, as far into it. @param {Placed[]} before @param {Placed[]} now
 * @param {number} t in seconds
 */
export function moved(before, now, t) {
  const was = beatAt(before, t);
  const is = now.find(({ id }) => id === was.id);
  return is
    ? is.start + clamp((t - was.start) / was.seconds) * is.seconds
    : Math.min(t, endOf(now[now.length - 1]));
}

/** @typedef {import('./pen.js').Area} Area @typedef {number | Say[number] | Say} Piece of a template */

/**
 * What is said, from a template: *a term* where it is first met; pieces of it are texts, numbers, or what is said.
 * @param {TemplateStringsArray} texts @param {...Piece} pieces @returns {Say}
 */
export function told(texts, ...pieces) {
  const said = texts.flatMap((text, i) => [
    ...text.split('*').map((one, place) => (place % 2 ? { term: one } : one)),
    ...[pieces[i] ?? []].flat().map((one) => (typeof one === 'number' ? String(one) : one)),
  ]);
  return said.filter((one) => one !== '');
}

/**
 * What a beat says, from such a template; pieces may also be functions of the numbers.
 * @param {TemplateStringsArray} texts @param {...(Piece | ((n: Numbers) => Piece))} pieces @returns {Beat['say']}
 */
export const said =
  (texts, ...pieces) =>
  (n) =>
    told(texts, ...pieces.map((one) => (typeof one === 'function' ? one(n) : one)));

/**
 * The beats of a scene, in the order of their times.
 * @param {string} scene @param {Times} times @param {Record<string, Beat['say']>} says
 * @param {number | ''} [layer] of the parts, which are then named without it
 * @returns {Beat[]}
 */
export const beatsOf = (scene, times, says, layer = '') =>
  Object.entries(times).map(([name, [seconds, part, more]]) => ({
    ...{ id: `${scene}-${name}`, seconds, part: `${part}${layer}`, say: says[name] },
    ...more,
  }));

/** What the model is, as far as what is said depends on it: `shape` of `LessonTokens`. @param {Numbers} n */
export const shapeOf = ({ tokens }) => /** @type {Answer} */ (tokens).facts.shape;

/** Whether the model sees no colours. @param {Numbers} n */
export const isGray = ({ tokens }) => tokens?.facts.shape.in_chans === 1;

/** Words as they begin a sentence. @param {string} words */
export const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** A row of an array, along its first axis. @param {Answer['arrays'][string]} array @param {number} i @returns {Float32Array} */
export function rowOf({ data, shape }, i) {
  const size = data.length / shape[0];
  return data.subarray(i * size, (i + 1) * size);
}

/** What is said as text alone. @param {Say} say @param {number} cols of the grid of patches */
export function wordsOf(say, cols) {
  return say
    .map((one) => {
      if (typeof one === 'string') return one;
      if ('patch' in one) return placeWords(one.patch, cols);
      return 'term' in one ? one.term : one.strong;
    })
    .join('');
}

/** A token within a sentence: a piece of the photo, or its name. @param {Numbers} n @param {number} token @returns {Say} */
export function sayToken({ trace: { prefix }, patch }, token) {
  const index = token - prefix.length;
  if (index < 0) return [`the ${tokenWords(prefix[token])}`];
  return index === patch ? ['itself ', { patch }] : ['the patch ', { patch: index }];
}

/** How many tokens of each kind there are, in words: "the class token and 4 registers". @param {string[]} names */
export function kindsInWords(names) {
  const kinds = names.map((name) => name.replace(/ \d+$/, ''));
  const words = [...new Set(kinds)].map((kind) => {
    const count = kinds.filter((one) => one === kind).length;
    if (kind === 'register') return count === 1 ? 'a register' : `${count} registers`;
    return count === 1 ? `the ${kind} token` : `${count} ${kind} tokens`;
  });
  const last = words.pop() ?? '';
  return words.length ? `${words.join(', ')} and ${last}` : last;
}
