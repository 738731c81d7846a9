// Words and numbers around the pictures. Whatever comes from outside is written with textContent, never as HTML.

import { extent } from './attention.js';
import { byPointer, make } from './elements.js';
import { massMask } from './frame.js';
import { isNamed, patchRect, PLACES, placeWords, queryPatches, queryWords, suffixKinds } from './geometry.js';
import { suited } from './styles.js';
/** @import { Frame } from './frame.js' */
/** @import { Trace } from './geometry.js' */
/** @import { Numbers } from './server.js' */
/** @import { View } from './state.js' */

const SCALES = { shared: 'all alike', layer: 'each layer', own: 'each head' };

/** A query within a sentence. */
export function subject(/** @type {string} */ query, /** @type {Trace} */ trace) {
  const words = queryWords(query, trace).replace(/^(.*\d) token$/, '$1');
  if (isNamed(query, trace)) return /\d$/.test(words) ? words : `the ${words}`;
  if (query === 'pool') return `the ${words}`;
  return queryPatches(query, trace).length === 1 ? words : `a ${words}`;
}

/** Which heads a cell of the mosaic stands for. */
export function headWords(/** @type {number | string} */ head) {
  if (typeof head === 'number') return `head ${head}`;
  return head === 'mean' ? 'all heads' : `${head} over heads`;
}

/** Where the query looks, or what looks at it. */
function looks(/** @type {View} */ view, /** @type {Trace} */ trace) {
  const query = subject(view.query, trace);
  return view.direction === 'row' ? `where ${query} looks` : `where ${query} is looked at from`;
}

/** Layer, heads, query and direction. */
export function title(/** @type {View} */ view, /** @type {Trace} */ trace) {
  return `${headOf(view)}: ${looks(view, trace)}`;
}

/** Of what an answer is on its way: every title says it so while it waits. */
export function computing(/** @type {string} */ of) {
  return `${of[0].toUpperCase()}${of.slice(1)}: computing \u2026`;
}

/** From which share of the patches on half of a map is nearly everywhere; even attention has it on half of them. */
const EVERYWHERE = 0.4;

/**
 * Where the query looks, or is looked at from: the fewest patches that hold half of the map; less where nothing stands out.
 * @param {Float32Array} map a number per patch
 * @param {Pick<View, 'layer' | 'head' | 'query' | 'direction' | 'norm'>} view @param {Trace} trace
 */
export function finding(map, view, trace) {
  const { head, query, norm } = view;
  const isRow = view.direction === 'row';
  const start = `${headOf(view)}: ${subject(query, trace)}`;
  const [at, mostly] = isRow
    ? ['looks at', 'looks mostly at']
    : ['is looked at from', 'is looked at mostly from'];
  const [low, high] = extent(map);
  if (low >= high) return `${start} ${at} all patches alike`;
  const sum = map.reduce((all, value) => all + value, 0);
  const others = [...trace.prefix, ...trace.suffix];
  const isShare = isRow && !norm && (typeof head === 'number' || head === 'mean');
  if (isShare && sum < 0.5 && others.length) {
    const one = others.length > 1 ? 'tokens that are no patch' : subject(others[0], trace);
    return `${start} ${mostly} ${others.join() === query ? 'itself' : one}, ${percent(1 - sum)}`;
  }
  const half = massMask(map, 0.5);
  const few = half.reduce((all, one) => all + one, 0);
  if (few > EVERYWHERE * map.length)
    return `${start} ${at} nearly all patches: ${few} of ${map.length} hold half`;
  if (few > 1) return `${start} ${mostly} ${few} of ${map.length} patches`;
  const best = half.indexOf(1);
  return `${start} ${mostly} ${besideWords(queryPatches(query, trace), best, trace.grid)}, ${valueText(map[best], view)}`;
}

/** A patch as a single patch sees it. @param {number[]} query @param {number} patch @param {[number, number]} grid */
function besideWords([from, ...more], patch, [, cols]) {
  const [row, col] = [Math.floor(patch / cols), patch % cols];
  const name = `patch (${row}, ${col})`;
  if (from === undefined || more.length) return name;
  const [down, right] = [row - Math.floor(from / cols), col - (from % cols)];
  if (!down && !right) return 'itself';
  if (Math.abs(down) + Math.abs(right) > 1) return name;
  return `its ${down ? (down < 0 ? 'upper' : 'lower') : right < 0 ? 'left' : 'right'} neighbour`;
}

/** Layer and heads. */
export function headOf(/** @type {Pick<View, 'layer' | 'head'>} */ { layer, head }) {
  return `Layer ${layer}, ${headWords(head)}`;
}

/** What the style does to the photo, on the photo itself. */
export function mark(/** @type {View} */ view, /** @type {Trace} */ trace) {
  const does = { light: 'lit', tint: 'tinted', heat: 'coloured' }[suited(view.style, trace.unlit)];
  return `${does} ${looks(view, trace)}`;
}

/** What a token is that is no patch, and how patches are named, for those who meet them first here. @param {string} query @param {Trace} trace */
export function about(query, trace) {
  return [kindWords(query, trace), PLACES].filter(Boolean).join(' ');
}

/** @param {string} query @param {Trace} trace */
function kindWords(query, trace) {
  const kind = isNamed(query, trace) ? query.replace(/ \d+$/, '') : '';
  if (kind === 'class') {
    const isRead = trace.pooling === 'class' && !trace.unread?.includes(query);
    const read = isRead ? 'reads its answer from it' : 'reads its answer elsewhere';
    return `The class token is no part of the photo: the model adds it to the patches, and ${read}.`;
  }
  if (kind === 'register')
    return 'A register is no part of the photo: one more token, in which the model keeps what belongs to no patch.';
  if (kind === 'distillation')
    return 'The distillation token is no part of the photo: it was trained to give the answer of another model.';
  return '';
}

/** How it was drawn: model, scale, style, smooth or patches, and what was left out. */
export function details(/** @type {View} */ view, /** @type {Trace} */ trace) {
  const style = suited(view.style, trace.unlit);
  const sentences = [
    trace.model,
    ...(trace.part ? [`Part of ${trace.name ?? trace.image}`] : []),
    `Scale: its own${view.clip ? ', peaks clipped' : ''} (cells: ${SCALES[view.scale]})`,
    `${style[0].toUpperCase()}${style.slice(1)}, ${view.smooth ? 'smooth' : 'patches'}`,
  ];
  if (style !== view.style) sentences.push(`This photo is ${trace.unlit} for light: tint`);
  if (view.norm) sentences.push('Weight \u00d7 size of the value');
  if (view.mask) sentences.push(`Only the top ${Math.round(view.mask * 100)}%`);
  return `${sentences.join('. ')}.`;
}

/** The whole caption, for files and screen readers. */
export function caption(/** @type {View} */ view, /** @type {Trace} */ trace) {
  return `${title(view, trace)}. ${details(view, trace)}`;
}

/** @typedef {Record<string, HTMLElement>} Parts */

/** A weight in percent; two digits are what fp16 supports. */
export function percent(/** @type {number} */ share, digits = 2) {
  const value = 100 * share;
  if (!Number.isFinite(value)) return '';
  if (value === 0) return '0%';
  if (value < 0.001) return '<0.001%';
  return `${value >= 99.95 ? value.toFixed(0) : Number(value.toPrecision(value >= 10 ? Math.max(3, digits) : digits))}%`;
}

/** A value as this view reads it: a share, or a plain number where it is weighted by norms. */
export function valueText(/** @type {number} */ value, /** @type {Pick<View, 'norm'>} */ view, digits = 2) {
  return view.norm ? String(Number(value.toPrecision(Math.max(3, digits)))) : percent(value, digits);
}

/** Writes only what changed: text that stays the same costs no layout. */
export function setText(/** @type {HTMLElement} */ node, /** @type {string} */ text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Scale bar, title and sentences of the present frame.
 * @param {Parts} parts @param {Frame} frame @param {View} view @param {import('./pictures.js').Range} range
 * @param {Numbers | null} exact the server's numbers for this very view
 */
export function describeFrame(parts, frame, view, { low, high, most }, exact) {
  const { trace } = frame;
  const fresh = Boolean(frame.fresh[view.layer]);
  setText(parts.caption, fresh ? finding(frame.map(view), view, trace) : computing(headOf(view)));
  parts.caption.setAttribute('aria-busy', String(!fresh));
  setText(parts.mark, mark(view, trace));
  setText(parts.details, details(view, trace));
  parts.details.toggleAttribute('data-own', view.scale === 'own');
  const beyond = most > high;
  const top = `${beyond ? '\u2265 ' : ''}${valueText(high, view)} ${unit(view)}`;
  setText(parts.low, fresh ? valueText(low, view) : '');
  setText(parts.high, fresh ? top : '');
  setText(parts.unit, fresh ? `its own scale${beyond ? `, max ${valueText(most, view)}` : ''}` : '');
  setText(parts.readout, fresh ? readout(frame, view, exact) : 'Waiting for this layer.');
}

function unit(/** @type {View} */ view) {
  if (view.norm) return 'weight \u00d7 size of the value';
  return view.direction === 'row' ? 'of its attention' : 'of each patch\u2019s attention';
}

/**
 * Where the query looks most, where it does not look everywhere alike, and what to do next, or where it is.
 * @param {Frame} frame @param {View} view @param {Numbers | null} exact
 */
function readout(frame, view, exact) {
  const { trace } = frame;
  const map = frame.map(view);
  const cols = trace.grid[1];
  let best = 0;
  for (let i = 1; i < map.length; i++) if (map[i] > map[best]) best = i;
  const isFlat = exact ? !exact.peak : map.every((one) => one === map[best]);
  const peak = exact?.peak ? exact.peak[0] * cols + exact.peak[1] : best;
  const value = exact ? valueText(exact.max, view, 4) : `\u2248 ${valueText(map[best], view)}`;
  const at = view.direction === 'row' ? 'on' : 'from';
  const most = isFlat
    ? `No peak: ${value} ${at} every patch.`
    : `Most ${at} patch ${placeWords(peak, cols)}, ${value}.`;
  const patches = queryPatches(view.query, trace);
  if (patches.length !== 1) return `${most} ${invitation()}`;
  return `${most} The query is the patch at ${pixels(trace, patches[0])}.`;
}

/** What to do next, with a finger or with a mouse. */
function invitation() {
  return byPointer('Point at another patch; click to keep it.', 'Tap another patch.');
}

/** Pixels of the original photo that a patch covers. */
function pixels(/** @type {Trace} */ trace, patch = 0) {
  const cols = trace.grid[1];
  const rect = patchRect(trace.crop, Math.floor(patch / cols), patch % cols, trace.grid);
  const [top, left, bottom, right] = rect.map(Math.round);
  return `pixels x ${left}-${right}, y ${top}-${bottom}`;
}

/** What one patch of the map has, for the pointer in reading mode. */
export function patchText(/** @type {Frame} */ frame, /** @type {View} */ view, /** @type {number} */ patch) {
  const cols = frame.trace.grid[1];
  const value = valueText(frame.map(view)[patch], view);
  return `patch ${placeWords(patch, cols)}: ${value}, ${pixels(frame.trace, patch)}`;
}

/** What a cell of the mosaic is, for the pointer on it. */
export function cellText(/** @type {Frame} */ frame, /** @type {View} */ view) {
  if (!frame.fresh[view.layer]) return `${headOf(view)}: not here yet`;
  const [low, high] = extent(frame.map(view));
  return `${headOf(view)}: ${valueText(low, view)} to ${valueText(high, view)}`;
}

/** A sentence for screen readers. */
export function spokenFrame(/** @type {Frame} */ frame, /** @type {View} */ view) {
  return `${caption(view, frame.trace)} ${frame.fresh[view.layer] ? readout(frame, view, null) : 'Waiting.'}`;
}

/** @typedef {{name: string, kind: 'token' | 'tokens' | 'patches', count: number}} Share a part of a row, of this many tokens */

/** The parts into which a row is split: prefix tokens, suffix tokens by kind, patches. */
export function sharesOf(/** @type {Trace} */ trace) {
  const prefix = trace.prefix.map((name) => ({ name, kind: 'token', count: 1 }));
  const suffix = [...suffixKinds(trace)].map(([name, { length }]) => ({
    name,
    kind: length > 1 ? 'tokens' : 'token',
    count: length,
  }));
  const patches = { name: 'patches', kind: 'patches', count: trace.grid[0] * trace.grid[1] };
  return /** @type {Share[]} */ ([...prefix, ...suffix, patches]);
}

/** Bars of prefix mass; the elements are made once per trace. */
export class MassBars {
  /** @param {HTMLElement} box @param {Trace} trace */
  constructor(box, trace) {
    this.bars = sharesOf(trace).map((share) => {
      const [value, bar] = [make('b'), make('i')];
      return { part: make('div', 'vx-part', `${share.name} `, value, bar), value, bar, share };
    });
    box.replaceChildren(...this.bars.map(({ part }) => part));
    this.box = box;
  }

  /** @param {Frame} frame @param {View} view @param {Numbers | null} exact */
  show(frame, view, exact) {
    if (!frame.fresh[view.layer]) return;
    const column = view.direction === 'column';
    const shares = exact ? exactShares(exact, frame.trace, column) : frame.mass(view);
    this.bars.forEach(({ value, bar, part, share: { kind, count } }, i) => {
      const share = column ? shares[i] / count : shares[i];
      setText(value, column && view.norm ? valueText(share, view) : percent(share, exact ? 3 : 2));
      bar.style.setProperty('--share', `${Math.min(100, 100 * share)}%`);
      part.title = MASS_TITLES[column ? 'column' : 'row'][kind];
    });
  }
}

/** As Frame.mass, from the server's numbers. @param {Numbers} exact @param {Trace} trace @param {boolean} column */
function exactShares(exact, trace, column) {
  const kinds = [...suffixKinds(trace).keys()];
  const parts = [
    ...trace.prefix.map((name) => exact.prefix[name] ?? 0),
    ...kinds.map((name) => exact.suffix[name] ?? 0),
    exact.patches,
  ];
  const sum = column ? 1 : parts.reduce((a, b) => a + b, 0) || 1;
  return parts.map((part) => part / sum);
}

const MASS_TITLES = {
  row: {
    token: 'share of the row that falls on this token',
    tokens: 'share of the row that falls on all these tokens together',
    patches: 'share of the row that falls on all patches: what the map shows',
  },
  column: {
    token: 'weight that this token gives to the query',
    tokens: 'mean weight that one of these tokens gives to the query',
    patches: 'mean weight that a patch gives to the query',
  },
};

const FUSED = [
  ['all', 'mean of all heads'],
  ['max', 'the largest of all heads'],
  ['min', 'the smallest of all heads'],
];

/**
 * Head names above each band of the mosaic and layer numbers beside it; made again where others are needed.
 * @param {Parts} parts @param {Trace} trace @param {import('./layout.js').Arrangement} mosaic
 */
export function makeAxes(parts, { heads, layers }, { columns, rows, bands }) {
  const key = [heads, columns, layers, rows].join();
  if (parts.heads.dataset.axes === key) return;
  parts.heads.dataset.axes = key;
  const numbers = (/** @type {number} */ length) =>
    Array.from({ length }, (_, i) => make('span', '', String(i)));
  const names = () => [
    ...numbers(heads),
    ...FUSED.slice(0, columns - heads).map(([name, words]) =>
      Object.assign(make('span', '', name), { title: words }),
    ),
  ];
  const above = Array.from({ length: bands }, (_, band) => [
    ...(band ? [make('span', 'vx-between')] : []),
    ...names(),
  ]);
  parts.heads.replaceChildren(...above.flat());
  const rest = bands > 1 ? `; layers ${rows} to ${layers - 1} continue on the right` : '';
  setText(parts.axes, `rows are layers, columns are heads${rest}`);
  const beside = numbers(layers);
  beside.forEach((label, layer) => {
    if (layer < rows) return;
    label.className = 'vx-beside'; // its band
    label.style.setProperty('--band', String(Math.floor(layer / rows)));
    label.style.setProperty('--row', String(layer % rows));
  });
  parts.layers.replaceChildren(...beside);
}

/**
 * Marks the chosen layer, and its column in its band.
 * @param {Parts} parts @param {import('./layout.js').Arrangement} mosaic @param {number} layer @param {number} column
 */
export function markAxes(parts, { rows, columns }, layer, column) {
  const choose = (/** @type {HTMLElement} */ axis, /** @type {number} */ at) =>
    [...axis.children].forEach((label, i) => label.toggleAttribute('data-on', i === at));
  choose(parts.heads, Math.floor(layer / rows) * (columns + 1) + column);
  choose(parts.layers, layer);
}

/** The proof badge: the captured attention against the model's own output. */
export function showProof(/** @type {HTMLElement} */ badge, /** @type {Trace['proof']} */ proof) {
  badge.hidden = !proof;
  if (!proof) return;
  badge.dataset.proof = proof.state;
  badge.textContent = proof.text;
  badge.title = proof.title;
}

/** Puts the reading of one patch beside the pointer, inside the photo. */
export function placeTip(
  /** @type {Parts} */ parts,
  /** @type {Pick<MouseEvent, 'clientX' | 'clientY'>} */ event,
  /** @type {string} */ text,
) {
  const { tip, stage } = parts;
  setText(tip, text);
  const area = stage.getBoundingClientRect();
  const x = Math.min(event.clientX - area.left + 14, area.width - tip.offsetWidth - 4);
  const y = event.clientY - area.top + 20;
  const above = y + tip.offsetHeight > area.height ? 30 + tip.offsetHeight : 0;
  tip.style.transform = `translate(${Math.max(4, x)}px, ${y - above}px)`;
}
