// Questions about a picture and the model in the page, by the names and in the form of vit_viz/rest.py, from a pass of the engine.
//
// A question is a line of the table of its subject: what it needs, its options with what is possible, whether it takes a query and a
// target, and the function that answers it. Python is the reference, with which a test compares every answer.

import { ATTENTION } from './attention.js';
import { CAMS } from './cams.js';
import { CLASSES } from './classes.js';
import { COMPONENTS } from './components.js';
import { DECOMPOSITION } from './decomposition.js';
import { answerOf } from './form.js';
import { HEAD_NAMES } from './head_names.js';
import { HEADS } from './heads.js';
import { LAYERS } from './layers.js';
import { queryWeights } from './layout.js';
import { LEDGER } from './ledger.js';
import { LENS } from './lens.js';
import { LESSON } from './lesson.js';
import { LINKS } from './links.js';
import { readBody } from './options.js';
import { PASSES } from './passes.js';
import { PATCHES } from './patches.js';
import { POSITIONS } from './positions.js';
import { ROLLOUT } from './rollout.js';
import { RELEVANCE } from './relevance.js';
import { SEGMENTS } from './segments.js';
import { SHARES } from './shares.js';
import { SINKS } from './sinks.js';
import { outputsIn } from './targets.js';
import { TOKENS } from './tokens.js';
/** @import { Answer, Context } from './form.js' */
/** @import { Options } from './options.js' */

/**
 * @typedef {object} Question
 * @property {'pass' | 'model'} needs the pass of a picture, or the model alone
 * @property {Options} [options]
 * @property {boolean} [takesQuery] @property {boolean} [takesTarget] @property {boolean} [takesOptions] those of a method
 * @property {(context: Context, options: any, about: About, mapOf: MapOf) => any} answer its result, which may be a promise
 * @property {(result: any) => string} [says] what a result says, in a sentence or two
 *
 * The token that it starts from, and the class, or the pair "291-292", as texts; null for what the question says.
 * @typedef {{query: string | null, target: string | null, options: Record<string, any>,
 *     model: string}} About
 * @typedef {(name: string, about: About, context: Context) => any} MapOf the map of a method
 * @typedef {Record<string, Question>} Table
 */

/** @type {Table} */
export const TABLE = {
  ...CLASSES,
  ...PATCHES,
  ...TOKENS,
  ...COMPONENTS,
  ...LENS,
  ...LAYERS,
  ...ATTENTION,
  ...HEADS,
  ...HEAD_NAMES,
  ...LINKS,
  ...ROLLOUT,
  ...RELEVANCE,
  ...CAMS,
  ...SHARES,
  ...LEDGER,
  ...SINKS,
  ...SEGMENTS,
  ...POSITIONS,
  ...DECOMPOSITION,
  ...LESSON,
  ...PASSES,
};

/**
 * The answer to a question. Throws one sentence where it is not possible.
 * @param {string} name @param {Record<string, any>} body what rooms send: of what it is, and options that are not the usual ones
 * @param {Context} context @returns {Promise<Answer>}
 */
export async function answer(name, body, context) {
  const question = questionOf(name);
  const { options, about } = readBody(name, question, body, context.engine.model.config.depth);
  const edited = underEdits(context, body.edits);
  const result = await question.answer(edited, options, about, mapOf);
  return answerOf(
    requestOf(name, question, { options, about }, edited),
    result,
    question.says?.(result) ?? '',
  );
}

/**
 * How a question is understood; nothing is computed. Throws one sentence where it is not possible.
 * @param {string} name @param {Record<string, any>} body @param {Context} context @returns {import('./form.js').Request}
 */
export function understood(name, body, context) {
  const question = questionOf(name);
  const read = readBody(name, question, body, context.engine.model.config.depth);
  return requestOf(name, question, read, context);
}

/** @param {string} name @param {Question} question @param {ReturnType<typeof readBody>} read @param {Context} context @returns {import('./form.js').Request} */
function requestOf(name, { takesQuery, takesTarget }, { options, about }, context) {
  if (takesQuery && about.query) queryWeights(context, about.query); // which refuses a token that there is not
  const named = takesTarget && about.target ? outputsIn(context, about.target) : [null];
  return {
    question: name,
    parameters: {
      ...options,
      ...(takesQuery && { query: about.query }),
      ...(takesTarget && { target: named.length === 1 ? named[0] : named }),
    },
  };
}

/** @param {string} name */
function questionOf(name) {
  if (!TABLE[name]) throw new Error(`'${name}' is answered in the app, not in this page.`);
  return TABLE[name];
}

/** The map of a method for what another question is about. @param {string} name @param {About} about its options are those of the method @param {Context} context */
function mapOf(name, { query, target, options, model }, context) {
  const question = questionOf(name);
  const said = {
    ...{ ...options, model },
    ...(question.takesQuery && query ? { query } : {}),
    ...(question.takesTarget && target ? { target } : {}),
  };
  const read = readBody(name, question, said, context.engine.model.config.depth);
  return question.answer(context, read.options, read.about, mapOf);
}

/** The context with the pass under the edits of a body: words, or a list of them. @param {Context} context @param {string | string[]} [edits] @returns {Context} */
function underEdits(context, edits = '') {
  const words = Array.isArray(edits) ? edits.join(';') : edits;
  if (!words) return context;
  const { engine, step, second } = context;
  return { engine, step, second, traced: engine.edited(context.traced, words) };
}
