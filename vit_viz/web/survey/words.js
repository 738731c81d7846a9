// What the Survey tab says of photos, and the filters that it writes: a brush as SQL, and that as corners again.

import { percent, short } from '../../ui/kit/numbers.js';

/**
 * @typedef {'high' | 'low' | 'elsewhere' | 'all' | 'lost' | 'won' | 'other'} GroupName
 * @typedef {'high' | 'elsewhere' | 'all' | 'changed'} ListName
 *
 * @typedef {{kind: string, was: string, now: string, confidences: [number, number]}} Change
 * @typedef {{row: number, photo: string, label: string, answer: string, confidence: number | null,
 *   right: boolean | null, value: number | null, size: [number, number], peak: [number, number] | null,
 *   small: boolean, there: boolean, change?: Change, number?: number}}
 *   Card number: the value that is the answer; peak: shares of the height and the width, null where the map is the same everywhere; small: whether a small picture is kept; there: whether its file is
 *
 * @typedef {{label: string, layer: number, head: number, second: string}} Told label: of the measure; second: the other survey
 */

const MOST_CORNERS = 40; // of a lasso, that a filter holds
export const PAGE = 12; // photos that the server adds to a list

export const many = (/** @type {number} */ count) => count.toLocaleString('en');

/** A column as it is read: "mean_entropy" is "mean entropy". */
export function columnWords(/** @type {string} */ name) {
  return name.replaceAll('_', ' ');
}

// --- filters

/** Filters that are often asked for. @type {[words: string, where: string, needs: 'has_labels' | 'has_boxes'][]} */
export const OFTEN = [
  ['right', 'is_right', 'has_labels'],
  ['wrong', 'not is_right', 'has_labels'],
  ['wrong and sure', 'not is_right and confidence > 0.5', 'has_labels'],
  ['looks outside the boxes', 'outside_box > 0.5', 'has_boxes'],
];

/** A number as a filter holds it. */
const written = (/** @type {number} */ value) => String(Number(value.toPrecision(5)));

/**
 * The expression of what was drawn over the dots.
 * @param {Brush['mode']} mode @param {[string, string]} axes
 * @param {[number, number][]} points in numbers of the axes: corners of a box, or a line, of which every k-th is kept
 */
export function brushFilter(mode, [across, up], points) {
  const between = (/** @type {string} */ name, /** @type {0 | 1} */ axis) => {
    const values = points.map((point) => point[axis]);
    return `${name} BETWEEN ${written(Math.min(...values))} AND ${written(Math.max(...values))}`;
  };
  if (mode === 'select') return `(${between(across, 0)} AND ${between(up, 1)})`;
  const every = Math.ceil(points.length / MOST_CORNERS);
  const corners = points.filter((_, at) => at % every === 0);
  return `inside(${across}, ${up}, '${corners.map((point) => point.map(written).join(' ')).join(', ')}')`;
}

const BOX = String.raw`\((\w+) BETWEEN (\S+) AND (\S+) AND (\w+) BETWEEN (\S+) AND (\S+)\)`;
const LASSO = String.raw`inside\((\w+), (\w+), '([^']+)'\)`;
const BRUSHED = new RegExp(`^(?:\\((.*)\\) AND )?(?:${BOX}|${LASSO})$`, 's');

/**
 * A filter as what was written, and what was brushed on top of it: corners in numbers of two axes, none where nothing was.
 * @typedef {{typed: string, mode: 'select' | 'lasso', axes: string[], corners: number[][]}} Brush
 * @param {string} where @returns {Brush}
 */
export function parted(where) {
  const [all, typed = '', x, left, right, y, low, high, across, up, line] = BRUSHED.exec(where) ?? [];
  if (!all || !isClosed(typed)) return { typed: where, mode: 'select', axes: [], corners: [] };
  const corners = line ?? `${left} ${low}, ${right} ${low}, ${right} ${high}, ${left} ${high}`;
  return {
    typed,
    mode: line ? 'lasso' : 'select',
    axes: x ? [x, y] : [across, up],
    corners: corners.split(', ').map((corner) => corner.split(' ').map(Number)),
  };
}

/** Whether all brackets of an expression open and close within it. @param {string} text */
function isClosed(text) {
  let depth = 0;
  for (const sign of text.replace(/'[^']*'|"[^"]*"/g, '')) {
    depth += Number(sign === '(') - Number(sign === ')');
    if (depth < 0) return false;
  }
  return depth === 0;
}

// --- photos

/** The lists, each with its groups of photos. @type {Record<ListName, {title: string, groups: [GroupName, string][], words: (told: Told) => string}>} */
export const LISTS = {
  high: {
    title: 'exemplars of the head',
    groups: [['high', 'highest'], ['low', 'lowest']], // prettier-ignore
    words: ({ label, layer, head }) =>
      `Where the ${label} of layer ${layer}, head ${head} is highest, then lowest.`,
  },
  elsewhere: {
    title: 'wrong and looking elsewhere',
    groups: [['elsewhere', '']],
    words: () => "Wrong answers, by confidence times what of the last layer's map falls outside the boxes.",
  },
  all: {
    title: 'first that pass',
    groups: [['all', '']],
    words: () => "The first photos that pass the filter, in the survey's order.",
  },
  changed: {
    title: 'changed their answer',
    groups: [
      ['lost', 'right before, wrong now'],
      ['won', 'wrong before, right now'],
      ['other', 'still wrong, or no label'],
    ],
    words: ({ second }) =>
      `Photos that pass the filter and have another answer in ${second}, those that changed sides first.`,
  },
};

/**
 * The groups of a list; of photos that changed their answer only those that have any.
 * @param {ListName} list @param {Partial<Record<string, number>>} totals @returns {[GroupName, title: string][]}
 */
export function groupsOf(list, totals) {
  const { groups } = LISTS[list];
  if (list !== 'changed') return groups;
  const there = groups.filter(([name]) => totals[name]);
  return there.length ? there.map(([name, title]) => [name, `${title}: ${totals[name]}`]) : [['other', '']];
}

/** What more of a list is offered by. @param {number} shown @param {number} total */
export function moreWords(shown, total) {
  return `${Math.min(PAGE, total - shown)} more (${shown} of ${many(total)} shown)`;
}

/** What a card says below its photo, the answer first. @param {Card} card @param {string} named what its value is */
export function cardWords(card, named) {
  const { change, label } = card;
  const gone = card.there || !card.small ? [] : ['its file is gone'];
  if (change) {
    // how sure it was and is, and what it should be where both are wrong
    const sure = change.confidences.map(percent).join(', then ');
    const isNeither = change.kind === 'other class' && label && ![change.was, change.now].includes(label);
    const words = isNeither ? `${sure}; neither is right: ${label}` : sure;
    return [`was ${change.was}, is now ${change.now}`, words, ...gone];
  }
  const sure = [
    card.confidence === null ? '' : percent(card.confidence),
    card.number === undefined ? '' : short(card.number),
    card.right === false ? `is ${label}` : '',
  ];
  const value = card.value === null ? card.photo : `${named} ${short(card.value)}`.trim();
  return [card.answer || 'no answer', sure.filter(Boolean).join(', '), value, ...gone];
}
