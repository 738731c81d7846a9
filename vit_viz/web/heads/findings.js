// What was found about the heads on this photo, in one sentence with its numbers; less where nothing stands out.

import { amountWords, counted, fixed, percent, short } from '../../ui/kit/numbers.js';
import { amountOf, capital, headWords, isShare, layerMeans, sizeOf, valueWords } from './words.js';
/** @import { Table } from './words.js' */
/** @import { Amount } from '../../ui/kit/numbers.js' */

/** @typedef {Amount & {name: string}} Answer */

/** Share of the differences between heads that depth has to explain to be called a finding. */
const BY_DEPTH = 0.3;

const NOTHING = 'Nothing is edited';

/** Share of its attention below which no head is said to look there. */
const MUCH = 0.1;

/** @param {Table} table */
function known({ values }) {
  return values.flatMap((row, layer) =>
    row.flatMap((value, head) => (value === null ? [] : [{ layer, head, value }])),
  );
}

/**
 * The head in which a measure is largest, or that matters most for a class; of the heads that are known.
 * @param {Table} table @param {string} label of the measure
 * @param {{name: string, isEstimate: boolean} | null} target the class that the measure is about
 */
export function atlasFinding(table, label, target) {
  const heads = known(table);
  if (!heads.length) return '';
  const { values, unit } = table;
  const high = heads.reduce((a, b) => (sizeOf(table, b) > sizeOf(table, a) ? b : a));
  if (target) {
    const all = values.length * values[0].length;
    const start = heads.length < all ? `${heads.length} of ${all} heads switched off: so far ` : '';
    const of = target.name && ` for ${target.name}`;
    if (!high.value) return capital(`${start}no head changes the answer${of}`);
    const [how, about] = target.isEstimate ? ['by one gradient, ', 'about '] : ['', ''];
    const change = `${high.value > 0 ? '+' : ''}${short(high.value)}`;
    return capital(`${start}${how}${headWords(high)} matters most${of}: ${about}${change} without it`);
  }
  const low = heads.reduce((a, b) => (b.value < a.value ? b : a));
  if (low.value === high.value) return `${capital(label)} is ${valueWords(low.value, unit)} in all heads`;
  if (unit === 'share of the attention' && high.value < MUCH)
    return `No head has much ${label}: at most ${amountOf(high.value, unit)}, in ${headWords(high)}`;
  const said = `${capital(label)} is largest in ${headWords(high)}: `;
  if (isShare(unit)) return `${said}${amountOf(high.value, unit)}`;
  return `${said}${valueWords(high.value, unit)}; smallest in ${headWords(low)}: ${short(low.value)}`;
}

/** Whether a measure follows depth, and between which layers. @param {Table} table @param {string} label */
export function depthFinding(table, label) {
  const heads = known(table);
  const means = layerMeans(table);
  const all = heads.reduce((sum, { value }) => sum + value, 0) / heads.length;
  const spread = heads.reduce((sum, { value }) => sum + (value - all) ** 2, 0);
  if (!heads.length) return '';
  if (!spread) return `${capital(label)} is the same in all heads`;
  const between = heads.reduce((sum, { layer }) => sum + ((means[layer] ?? all) - all) ** 2, 0);
  if (between / spread < BY_DEPTH || means.length < 2)
    return `${capital(label)} differs more between the heads of a layer than from layer to layer`;
  const there = means.flatMap((mean, layer) => (mean === null ? [] : [{ mean, layer }]));
  const low = there.reduce((a, b) => (b.mean < a.mean ? b : a));
  const high = there.reduce((a, b) => (b.mean > a.mean ? b : a));
  const at = (/** @type {typeof low} */ one) => `layer ${one.layer} (mean ${amountOf(one.mean, table.unit)})`;
  return `${capital(label)} is highest in ${at(high)} and lowest in ${at(low)}`;
}

/** A probability that is compared with another, always with a decimal. */
function tenths(/** @type {number} */ share) {
  const text = percent(share);
  return /[<>]/.test(text) ? text : `${fixed(100 * share, 1)}%`;
}

/** What a model says of an output, in words; of one that is not among those that are known, what it is less than. @param {Answer[]} answers @param {string} name */
export function saidWords(answers, name) {
  const one = answers.find((answer) => answer.name === name);
  const last = answers.at(-1);
  if (one) return amountWords(one, tenths);
  return last ? `<${amountWords(last, tenths).replace('<', '')}` : '';
}

/** @typedef {{heads: Map<string, string>, temperatures: Map<number, number>, forbidden: string[]}} Edited */

/** What is edited. @param {Edited} edits */
export function editedWords({ heads, temperatures, forbidden }) {
  const states = [...heads.values()];
  const off = states.filter((state) => state === 'off').length;
  const others = states.length - off;
  const warm = [...temperatures.values()].filter((value) => value !== 1).length;
  const what = [
    off && `${counted(off, 'head')} off`,
    others && `${counted(others, 'head')} replaced`,
    warm && `temperature of ${counted(warm, 'layer')}`,
    forbidden.length && `${counted(forbidden.length, 'view')} forbidden`,
  ].filter(Boolean);
  return capital(what.join(', ')) || NOTHING;
}

/** What was edited, and what became of the answer. @param {Edited} edits @param {{before: Answer[], now: Answer[]}} answers */
export function surgeryFinding(edits, { before, now }) {
  const said = editedWords(edits);
  const [first, top] = [before[0]?.name, now[0]?.name];
  if (!first || !top) return said;
  const [then, is] = [before, now].map((answers) => saidWords(answers, first));
  if (said === NOTHING) return `${said}: the model says ${top}, ${is}`;
  if (first === top) return `${said}: still ${top}, ${then} → ${is}`;
  return `${said}: ${first} (${then} → ${is}) gives way to ${top} (${saidWords(now, top)})`;
}
