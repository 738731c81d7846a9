// What stands on the stage: which map is asked for as the link has it, what has to give way, and what is said of the answer.

import { patchRect, queryPatches, queryTokens, queryWords } from '../../explorer/geometry.js';
import { barPixels, suited } from '../../explorer/styles.js';
import { fixed, number, percent, stopsOf } from '../../ui/kit/numbers.js';
import { endsOf, mapIn } from '../kit/map.js';
import { signedStops } from '../kit/signed.js';
import { commonScale, drawingOf, questionOf, shares, testedOf } from './maps.js';
import { DIFFERENCE } from './trust.js';
/** @import { PatchMap } from '../kit/map.js' */
/** @import { Target } from '../kit/parts.js' */
/** @import { Store } from '../kit/store.js' */
/** @import { Control } from './controls.js' */
/** @import { Of, Ruler } from './maps.js' */

/**
 * What is known of a method from the beginning; blind: its map is the same for every class; aimed: its question takes one; pick: it follows
 * the pinned query; slow: it is computed only where somebody asks for it; runs: how often the model runs for it.
 * @typedef {{name: string, label: string, blind?: boolean, aimed?: boolean, pick?: boolean, slow?: boolean, runs?: string, shows?: string,
 *   hides?: string, formula?: string, controls?: Control[]}} Method
 *
 * @typedef {{name: string, label: string, body: any, of: string}} ToTest a map, what its test is asked with, and what it is of
 *
 * @typedef {'lead' | 'one' | 'other' | 'difference'} Side of two classes: the map of the lead of one, that of either, both subtracted
 *
 * What is asked; beside: what makes the scale of all methods; problems: what had to give way, a sentence each; isOwn: whether it is what is
 * tested, whose curve is drawn.
 * @typedef {{name: string, side: Side, ruler: Ruler, query: string, question: [string, any], beside: [string, any] | null, problems: string[],
 *   isOwn: boolean, of: Of, subject: string}} Wanted
 *
 * @typedef {{name: string, now?: number, before?: number, text: string, target?: boolean}} Line of an answer; now: share of its bar, from
 *     0 to 1, absent where the answer is a value; before: with all patches, absent where all are there; target: what the maps explain
 * @typedef {{words: string, top: Line[]}} Said what the model says of the photo, or of what is left of it
 * @typedef {{arrays: Record<string, {shape: number[], data: any}>, facts: any, words: string}} Answer to a question
 */

const ALIKE = 'similarity to the whole photo';
const BEST = 3; // classes of the whole photo that stand beside the one that is explained
const NEW = 2; // of the best classes now, those that are shown even where they were not listed

/** @param {Store} store @param {Of} of @param {Method[]} methods @param {(method: Method) => boolean} isThere whether a slow map is computed @returns {Wanted} */
export function wantedOn(store, of, methods, isThere) {
  const { method, side, ruler, query, problems } = fitted(store, of, methods, isThere);
  const { about, target } = of;
  const { name } = method;
  const towards = sideOf(side, target.link.split('-'), target.link);
  const tested = testedOf(store, of, name, towards);
  const card = questionOf(store, of, method)[1].body;
  const own = questionOf(store, of, method, towards)[1].body;
  if (method.pick && query) own.query = query;
  /** @type {[string, any]} */
  const usual = [name, own];
  const subtracted = side === 'difference' ? 'class_difference' : ruler === 'only' ? 'own_part' : '';
  return {
    ...{ name, side, ruler, query, problems, of, subject: store.subject() },
    question: subtracted ? [subtracted, tested] : usual,
    beside:
      ruler !== 'own' && side !== 'difference' ? ['comparison', { ...about, target: towards || null }] : null,
    isOwn: side === 'difference' || (!subtracted && JSON.stringify(own) === JSON.stringify(card)),
  };
}

/**
 * What of the link there is a map for, and a sentence for what has to give way.
 * @param {Store} store @param {Of} of @param {Method[]} methods @param {(method: Method) => boolean} isThere
 * @returns {{method: Method, side: Side, ruler: Ruler, query: string, problems: string[]}}
 */
function fitted({ view }, { photo, target }, methods, isThere) {
  const usual = /** @type {Method} */ (methods.find(({ slow }) => !slow));
  const chosen = methods.find(({ name }) => name === view.method.value) ?? usual;
  const { q, ruler, sides } = view;
  const problems = [];
  const query = q.value && queryTokens(q.value, photo) === null ? '' : q.value;
  if (query !== q.value)
    problems.push(`There is no token “${q.value}” here: the picture has ${photo.grid.join(' x ')} patches.`);
  const method = chosen.slow && !isThere(chosen) ? usual : chosen;
  if (method !== chosen)
    problems.push(`${chosen.label} takes longer: its card computes it. ${usual.label} is shown instead.`);
  if (ruler.value === 'only' && method.slow) {
    problems.push(`${method.label} is not set against the quick maps: this is its own.`);
    return { method, query, problems, side: 'lead', ruler: 'own' };
  }
  const side = target.link.includes('-') ? sides.value : 'lead';
  const refusal = side === 'lead' ? '' : refusalOf(method);
  if (refusal) problems.push(refusal);
  return { method, query, problems, side: refusal ? 'lead' : side, ruler: ruler.value };
}

/** Of two classes what the map is towards. @param {Side} side @param {string[]} pair @param {string} both */
function sideOf(side, [one, other], both) {
  return { one, other, lead: both, difference: both }[side];
}

/** Why there is no map of each class by itself; '' where there is. @param {Method} method */
function refusalOf({ label, blind, slow }) {
  if (blind) return `${label} is the same for every class, so there is nothing to subtract.`;
  return slow ? `${label} takes long: only quick maps of two classes are subtracted here.` : '';
}

/**
 * The map of an answer and what is said of it.
 * @param {Wanted & {answer: Answer, scale: Answer | null}} shown @param {Store} store @param {Method[]} methods
 * @param {Record<string, Uint32Array>} tables of colours
 */
export function stagedOf({ answer, scale, ...wanted }, store, methods, tables) {
  const { side, ruler, query, of, problems, subject, isOwn } = wanted;
  const { about, photo, target } = of;
  const { grid, crop } = photo;
  const method = /** @type {Method} */ (methods.find(({ name }) => name === wanted.name));
  const drawing = drawingOf(store);
  const raw = mapIn(answer);
  const { map, ends, words } = scaled(raw, scale, ruler, drawing.clip);
  const names = namesOf(target);
  const isDifference = side === 'difference';
  const ringed = method.pick ? queryPatches(query, photo) : [];
  const isPair = names.length === 2 && !refusalOf(method);
  const key = JSON.stringify(about);
  const tested = isDifference
    ? {
        ...{ name: DIFFERENCE, label: `${method.label}, ${names[0]} and not ${names[1]}` },
        body: { ...wanted.question[1], sides: 'difference' },
      }
    : { name: method.name, label: method.label, body: testedOf(store, of, method.name) };
  return {
    ...{ map, ends, drawing, photo, subject, about, target, method, isOwn, grid },
    key,
    caption: captionOf({ answer, ...wanted }, method, changedWords(method, store), words, drawing),
    note: [...problems, answer.facts.note, outsideWords(answer.facts)].filter(Boolean).join(' '),
    saved: store.saved(...wanted.question, ruler === 'share' && !isDifference ? { shared_scale: true } : {}),
    area: /** @type {[number, number, number, number]} */ ([0, 0, ...crop.original]),
    rings: ringed.map((patch) => patchRect(crop, Math.floor(patch / grid[1]), patch % grid[1], grid)),
    bar: {
      ...{ low: number(ends[0]), high: number(ends[1]), colours: coloursOf(map, photo, drawing, tables) },
      unit: isDifference ? `${map.unit}; orange ${names[0]}, blue ${names[1]}` : map.unit,
    },
    textOf: (/** @type {number} */ patch) => textOf(map, answer.facts, patch),
    order: Array.from(raw.values.keys()).sort((a, b) => raw.values[b] - raw.values[a]),
    whole: wholeOf(target),
    said: ruler === 'only' && !isDifference ? '' : answer.words,
    sides: isPair
      ? SIDES.map(([one, label]) => ({ side: one, label: label(names), chosen: one === side }))
      : [],
    tested: /** @type {ToTest} */ ({ ...tested, of: `${key} ${target.link}` }),
  };
}
/** @typedef {ReturnType<typeof stagedOf>} Staged */

/** @type {[Side, (names: string[]) => string][]} */
const SIDES = [
  ['one', ([one]) => `for ${one}`],
  ['other', ([, other]) => `for ${other}`],
  ['difference', ([one, other]) => `${one}, and not ${other}`],
  ['lead', ([one, other]) => `${one}'s lead over ${other}`],
];

/**
 * The map in words: what it is, of which class, on which scale, and how it is drawn.
 * @param {Wanted & {answer: Answer}} shown @param {Method} method @param {string} changed options @param {string} scale
 * @param {import('../kit/map.js').Drawing} drawing
 */
function captionOf({ answer: { facts }, side, query, of }, method, changed, scale, drawing) {
  const { about, photo, target } = of;
  const towards = sideOf(side, namesOf(target), target.name);
  const isIgnored = query && !method.pick && query !== photo.output_query;
  const { style, smooth, alpha } = drawing;
  const isOther = suited(style, photo.unlit) !== style;
  const look =
    facts.signed && style !== 'heat'
      ? 'orange above 0, blue below, on the gray photo'
      : isOther
        ? `this photo is ${photo.unlit} for light: tint`
        : style;
  const strength = alpha === 1 ? '' : `strength ${Math.round(100 * alpha)}%`;
  const drawn = [look, smooth ? 'smooth between patch centres' : 'patches as they are', strength];
  return [
    ...[about.model, facts.caption.split(', towards the ')[0], changed],
    facts.class_blind ? 'the same for every class' : `for ${towards || 'its own embedding'}`,
    isIgnored && `explains the output, not the pinned ${queryWords(query, photo)}`,
    ...[`scale: ${scale}`, drawn.filter(Boolean).join('; ')],
  ]
    .filter(Boolean)
    .join(' · ');
}

/** How values look between the ends of the scale. @param {PatchMap} map @param {Of['photo']} photo @param {import('../kit/map.js').Drawing} drawing @param {Record<string, Uint32Array>} tables */
function coloursOf({ signed }, { unlit }, { style, colors }, tables) {
  if (signed && style !== 'heat') return signedStops();
  const table = tables[signed ? 'diverging' : colors];
  return stopsOf(style === 'heat' ? table : barPixels(suited(style, unlit), table));
}

/** What the classes are called that are explained. @param {Target} target */
export function namesOf({ classes = [], chosen, other }) {
  return [chosen, other].flatMap((index) => classes.find((one) => one.index === index)?.name ?? []);
}

/**
 * A map on the scale of the link: the map, the ends of its scale, and the scale in words.
 * @param {PatchMap} map @param {Answer | null} beside the maps of all quick methods @param {Ruler} ruler @param {boolean} clip
 * @returns {{map: PatchMap, ends: [number, number], words: string}}
 */
function scaled(map, beside, ruler, clip) {
  const isClipped = (/** @type {(clip: boolean) => [number, number]} */ endsWith) =>
    clip && endsWith(true).join() !== endsWith(false).join() ? ', peaks clipped' : '';
  if (!beside) {
    const endsWith = (/** @type {boolean} */ isClip) => endsOf(map.values, map.signed, isClip);
    return { map, ends: endsWith(clip), words: `own${isClipped(endsWith)}` };
  }
  const maps = Object.entries(beside.facts.maps).map(([name, facts]) =>
    mapIn({ arrays: { values: beside.arrays[`maps.${name}.values`] }, facts }),
  );
  const endsWith = (/** @type {boolean} */ isClip) => commonScale(maps, ruler, isClip).ends;
  const [low, high] = endsWith(clip);
  const all = ruler === 'share' ? "each patch's share of its map" : 'share less the mean of all';
  const words = `one for all methods: ${all}${isClipped(endsWith)}`;
  if (ruler === 'only') return { map, ends: [low, high], words };
  return { map: shares(map), ends: [map.signed ? -high : 0, high], words };
}

/** What shaped the map beside the defaults. @param {Method} method @param {Store} store */
function changedWords({ controls = [] }, { view }) {
  const changed = controls.filter(({ link, default: usual }) => view[link].value !== usual);
  return changed.map(({ label, link }) => `${label} ${view[link].value}`).join(', ');
}

const total = (/** @type {Iterable<number>} */ values) => [...values].reduce((sum, value) => sum + value, 0);

/** What fell on other tokens, which no map over the photo shows: registers as one, suffix tokens by kind. @param {any} facts */
function outsideWords({ prefix = {}, suffix = {}, value_range: [, high] }) {
  /** @type {Record<string, number>} */
  const known = {};
  const [registers, others] = [[], []].map(() => /** @type {[string, number][]} */ ([]));
  for (const one of Object.entries(prefix)) (one[0].startsWith('register') ? registers : others).push(one);
  for (const [name, value] of others) known[name] = value;
  if (registers.length) known.registers = total(registers.map(([, value]) => value));
  for (const [name, value] of Object.entries(suffix)) {
    const kind = name.replace(/ \d+$/, '');
    known[kind] = (known[kind] ?? 0) + value;
  }
  const write = (/** @type {number} */ value) => (high <= 1 ? `${fixed(100 * value, 1)}%` : number(value));
  const parts = Object.entries(known).map(([name, value]) => `${name} ${write(value)}`);
  return parts.length ? `Outside the photo: ${parts.join(', ')}.` : '';
}

/** The number of a patch, and its share of all that fell on any token. @param {PatchMap} map @param {any} facts @param {number} patch */
function textOf({ values, signed }, { prefix = {}, suffix = {} }, patch) {
  const all = total(
    [.../** @type {any} */ ([values, Object.values(prefix), Object.values(suffix)])].map(total),
  );
  const share = all > 0 && !signed ? ` (${fixed((100 * values[patch]) / all, 2)}%)` : '';
  return number(values[patch]) + share;
}

// --- what the model says

/** Of the whole photo: the class that is explained, what it is set against, and the best classes. @param {Target} target @returns {Said} */
export function wholeOf(target) {
  const { classes = [], chosen, other } = target;
  if (!classes.length) return { words: '', top: [{ name: ALIKE, now: 1, text: '1.00', target: true }] };
  const aimed = [chosen, other].flatMap((index) => classes.filter((one) => one.index === index));
  const listed = target.reads !== undefined ? classes : classes.slice(0, BEST); // of sentences all that were written
  const top = [...new Set([...aimed, ...listed])].map((entry) => {
    const { name, probability, value, cosine } = entry;
    const amount =
      probability === undefined
        ? { text: number(value ?? 0) }
        : { text: percent(probability ?? 0), now: probability ?? 0 };
    if (cosine !== undefined)
      amount.text = probability === undefined ? fixed(cosine, 2) : `${fixed(cosine, 2)} · ${amount.text}`;
    return { name, ...amount, target: aimed.includes(entry) };
  });
  return { words: `With all patches: ${top[0].name} ${top[0].text}.`, top };
}

/** Without patches: the same classes, and the best now. @param {Answer} answer to `without_patches` @param {Target} target @returns {Said} */
export function leftOf({ arrays, facts, words }, target) {
  const { names, unit, indices } = facts.top;
  const [now, before] = [arrays['top.scores'].data, arrays.before.data];
  const listed = wholeOf(target).top.length;
  const best = Array.from(now.keys(), Number)
    .sort((a, b) => now[b] - now[a])
    .slice(0, NEW);
  const isValue = unit === 'value';
  const { value: whole = 0, cosine } = target.classes?.[0] ?? {};
  /** Of sentences without shares the cosine is told, as of the whole photo. @param {number} value */
  const valued = (value) =>
    cosine === undefined ? number(value) : fixed((value * cosine) / (whole || 1), 2);
  const write = isValue
    ? valued
    : indices.length
      ? percent
      : (/** @type {number} */ value) => fixed(value, 2);
  const top = names.flatMap((/** @type {string} */ name, /** @type {number} */ i) => {
    if (i >= listed && !best.includes(i)) return [];
    const isTarget = !indices.length || [target.chosen, target.other].includes(indices[i]);
    const bar = isValue ? {} : { now: now[i], before: before[i] };
    return [{ name, text: `${write(before[i])} → ${write(now[i])}`, target: isTarget, ...bar }];
  });
  return { words, top };
}

// --- what can be chosen

/**
 * The controls of the map on the stage: where it begins, and its options.
 * @param {Method} method @param {Of['photo']} photo @returns {Control[]}
 */
export function controlsOf({ pick, controls = [] }, { layers, prefix, suffix, output_query: usual }) {
  const begins = [...new Set([usual, ...prefix])].filter((name) => !suffix.includes(name));
  const query = { link: 'q', default: usual };
  const queries = [
    {
      ...{ ...query, name: 'query', choices: begins, sentence: 'The token that the map begins at.' },
      label: 'from which token (or “choose the query” on the photo)',
    },
    {
      ...{ ...query, name: 'suffix', choices: suffix, label: 'or from a token after the patches' },
      sentence: 'The same, of tokens that the model has after those of the patches.',
    },
  ].filter(({ choices }) => choices.length);
  const ofLayers = { low: 0, high: Math.max(layers - 1, 1), layers };
  return [
    ...(pick ? queries : []),
    ...controls.map((control) => (control.is_layer ? { ...control, ...ofLayers } : control)),
  ];
}
