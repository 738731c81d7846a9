// What was found about the heads on this photo, in one sentence with its numbers; less where nothing stands out.

import { amountWords, short } from '../../ui/kit/numbers.js';
import { capital, headWords, layerMeans, shareWords, valueWords } from './words.js';
/** @import { Table } from './words.js' */

/** @import { Amount } from '../../ui/kit/numbers.js' */

/** @typedef {Amount & {name: string}} Answer */

/** Share of the differences between heads that depth has to explain to be called a finding. */
const BY_DEPTH = 0.3;

/** @param {Table} table */
function known({ values }) {
  return values.flatMap((row, layer) =>
    row.flatMap((value, head) => (value === null ? [] : [{ layer, head, value }])),
  );
}

/**
 * The heads at the two ends of a measure, or those that matter most for a class, and the most frequent name.
 * @param {Table} table @param {string} label of the measure
 * @param {{target: string, counts: {kind: string, count: number}[]}} beside
 */
export function atlasFinding(table, label, { target, counts }) {
  const heads = known(table);
  if (!heads.length) return '';
  const most = [...counts].sort((a, b) => b.count - a.count)[0];
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const named = most ? `; ${most.count} of ${total} heads are called ${most.kind}` : '';
  if (table.signed && target) {
    const first = heads.reduce((a, b) => (Math.abs(b.value) > Math.abs(a.value) ? b : a));
    if (!first.value) return `No head changes the answer for ${target}`;
    return `${capital(headWords(first))} matters most for ${target}: ${short(first.value)} without it${named}`;
  }
  const low = heads.reduce((a, b) => (b.value < a.value ? b : a));
  const high = heads.reduce((a, b) => (b.value > a.value ? b : a));
  if (low.value === high.value)
    return `${capital(label)} is ${valueWords(low.value, table.unit)} in all heads${named}`;
  const size = table.unit.startsWith('share of ') ? shareWords : short;
  const at = (/** @type {typeof low} */ one) => `${size(one.value)} in ${headWords(one)}`;
  return `${capital(label)}: from ${at(low)} to ${at(high)}${named}`;
}

/** Whether a measure follows depth, and between which layers. @param {Table} table @param {string} label */
export function depthFinding(table, label) {
  const heads = known(table);
  const means = layerMeans(table);
  const all = heads.reduce((sum, { value }) => sum + value, 0) / heads.length;
  const spread = heads.reduce((sum, { value }) => sum + (value - all) ** 2, 0);
  if (!heads.length) return '';
  if (!spread) return `${capital(label)} is the same in all heads`;
  const between = heads.reduce(
    (sum, { layer }) => sum + /** @type {number} */ ((means[layer] ?? all) - all) ** 2,
    0,
  );
  if (between / spread < BY_DEPTH || means.length < 2)
    return `${capital(label)} differs more between the heads of a layer than from layer to layer`;
  const there = means.flatMap((mean, layer) => (mean === null ? [] : [{ mean, layer }]));
  const low = there.reduce((a, b) => (b.mean < a.mean ? b : a));
  const high = there.reduce((a, b) => (b.mean > a.mean ? b : a));
  const at = (/** @type {typeof low} */ one) => `layer ${one.layer} (mean ${short(one.mean)})`;
  return `${capital(label)} is highest in ${at(high)} and lowest in ${at(low)}`;
}

/** A probability in words. */
function percentWords(/** @type {number} */ share) {
  return share < 1e-3 ? '<0.1%' : `${(100 * share).toFixed(share < 0.1 || share > 0.9 ? 1 : 0)}%`;
}

/** What a model says of an output, in words. */
export function saidWords(/** @type {Answer | undefined} */ one) {
  return one ? amountWords(one, percentWords) : 'not among the first';
}

const counted = (/** @type {number} */ count, /** @type {string} */ words, many = `${words}s`) =>
  count ? `${count} ${count === 1 ? words : many}` : '';

/**
 * What was edited, and what became of the answer.
 * @param {{heads: Map<string, string>, temperatures: Map<number, number>, forbidden: string[]}} edits
 * @param {{before: Answer[], now: Answer[]}} answers
 */
export function surgeryFinding({ heads, temperatures, forbidden }, { before, now }) {
  const states = [...heads.values()];
  const off = states.filter((state) => state === 'off').length;
  const others = states.length - off;
  const warm = [...temperatures.values()].filter((value) => value !== 1).length;
  const what = [
    off && `${counted(off, 'head')} off`,
    others && `${counted(others, 'head')} replaced`,
    warm && `temperature of ${counted(warm, 'layer')}`,
    counted(forbidden.length, 'view') && `${counted(forbidden.length, 'view')} forbidden`,
  ].filter(Boolean);
  const [first] = before;
  const [top] = now;
  const is = first ? `: the model says ${first.name}, ${saidWords(first)}` : '';
  if (!what.length) return `Nothing is edited${is}`;
  const said = capital(what.join(', '));
  if (!first || !top) return said;
  const then = saidWords(first);
  if (first.name === top.name) return `${said}: still ${top.name}, ${then} → ${saidWords(top)}`;
  return `${said}: ${first.name} (${then}) gives way to ${top.name} (${saidWords(top)})`;
}
