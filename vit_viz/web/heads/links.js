// The photo beside the matrix: rings around the pair that is pointed at, and the strongest links as arrows, with their legend.

import { patchRect, queryPatches } from '../../explorer/geometry.js';
import { percent, subject as subjectWords } from '../../explorer/labels.js';
import { rowInto, Strongest } from '../../explorer/matrix.js';
import { PhotoStage } from '../kit/parts.js';
import { html, useRef } from '../kit/preact.js';
import { MOST_LINKS } from './filling.js';
import { useSize } from './maps.js';
import { linkWords } from './matrix_words.js';
/** @import { Axis, Filling, Link } from '../../explorer/matrix.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { Pair } from './matrix.js' */
/** @import { Subject } from './room.js' */

/**
 * What is known of the matrix; pinned: tokens of the query; links: whether those of the query are drawn, or of the whole head; count: how many.
 * @typedef {{subject: Subject, axis: Axis, filling: Filling | null, pinned: number[], links: string, count: number}} KnownMatrix
 *
 * The links that are drawn, of what, and everything that they were chosen from.
 * @typedef {{links: Link[], strongest: Strongest, of: {query: string, tokens: number, isPlaced: boolean} | null}} Drawn
 */

/**
 * @typedef {[number, number]} Point across, down
 * @typedef {{line: string, tip: string, width: number, opacity: number}} Arrow
 */

const WIDEST = 5;
const BEND = 0.14; // how far a line swings out, as a share of its length, so that both ways between two patches are seen

/** How a link is drawn, by its weight as a share of the strongest. */
export function strokeOf(/** @type {number} */ share) {
  return { width: 1 + (WIDEST - 1) * share, opacity: 0.35 + 0.65 * share };
}

/**
 * An arrow from one point to another, with its tip on the second.
 * @param {Point} from @param {Point} to
 * @param {number} share of the strongest link
 * @returns {Arrow}
 */
export function arrow([x, y], [toX, toY], share) {
  const { width, opacity } = strokeOf(share);
  const length = Math.hypot(toX - x, toY - y) || 1;
  const bend = [(x + toX) / 2 + (y - toY) * BEND, (y + toY) / 2 + (toX - x) * BEND];
  const size = Math.min(4 + 2 * width, length / 2);
  const away = Math.hypot(toX - bend[0], toY - bend[1]) || 1;
  const [dx, dy] = [(toX - bend[0]) / away, (toY - bend[1]) / away]; // in which the line arrives
  const [baseX, baseY] = [toX - size * dx, toY - size * dy];
  const half = size / 2.2;
  const points = [
    [toX, toY],
    [baseX - half * dy, baseY + half * dx],
    [baseX + half * dy, baseY - half * dx],
  ];
  const text = (/** @type {number[]} */ point) => point.map((value) => value.toFixed(1)).join(' ');
  return {
    line: `M${text([x, y])}Q${text(bend)} ${text([baseX, baseY])}`,
    tip: `M${points.map(text).join('L')}Z`,
    width,
    opacity,
  };
}

/** The links of the pair that is pointed at, of the query or of the whole head. @param {KnownMatrix} known @param {Pair | null} pointed @returns {Drawn | null} */
export function linksOf({ subject, axis, filling, pinned, links, count }, pointed) {
  if (!filling) return null;
  const tokens = pointed ? axis.tokensOf(pointed[0]) : pinned;
  if (links === 'head' || tokens.length === axis.patches)
    return { links: filling.strongest.best(count), strongest: filling.strongest, of: null };
  const strongest = new Strongest(MOST_LINKS, axis);
  const [row, spare] = [new Float32Array(axis.tokens), new Float32Array(axis.tokens)];
  for (const token of tokens) {
    rowInto(row, filling.layer, filling.head, token, spare);
    strongest.add(token, row);
  }
  const query = pointed ? axis.nameOf(pointed[0]) : subjectWords(subject.query, subject);
  const isPlaced = tokens.every((token) => axis.patchesOf(axis.cellOf[token]).length);
  return { links: strongest.best(count), strongest, of: { query, tokens: tokens.length, isPlaced } };
}

/**
 * @param {object} props
 * @param {KnownMatrix} props.known
 * @param {number | string} props.head
 * @param {Signal<Pair | null>} props.pointed
 * @param {ReadonlySignal<Drawn | null>} props.drawn
 * @param {(patch: number) => void} props.pin
 */
export function LinkedPhoto({ known: { subject, axis }, head, pointed, drawn, pin }) {
  const image = useRef(/** @type {HTMLElement | null} */ (null));
  const size = useSize(image);
  const [width, height] = [size?.width || 1, size?.height || 1]; // pixels of the page
  const { crop, grid, query } = subject;
  const pinned = queryPatches(query, subject);
  const [row, column] = (pointed.value ?? []).map((cell) => (cell === null ? [] : axis.patchesOf(cell)));
  const { links = [], strongest, of = null } = drawn.value ?? {};
  /** The middle of a token on the photo. @param {number} token @returns {Point | null} */
  const placeOf = (token) => {
    const patch = token - axis.prefix.length;
    if (patch < 0 || patch >= axis.patches) return null;
    const [top, left, bottom, right] = patchRect(crop, Math.floor(patch / grid[1]), patch % grid[1], grid);
    const [tall, wide] = crop.original;
    return [(((left + right) / 2) * width) / wide, (((top + bottom) / 2) * height) / tall];
  };
  const arrows = html`<svg
    class="vv-matrix-links vv-layer"
    viewBox=${`0 0 ${width} ${height}`}
    aria-hidden="true"
    focusable="false"
  >
    ${[...links].reverse().map((link) => html`<${Mark} link=${link} most=${links[0].weight} placeOf=${placeOf} />`)}
  </svg>`;
  return html`<${PhotoStage}
      photo=${subject}
      look="vv-matrix-stage"
      label="Photo with the strongest links. Point at a patch to see where it looks"
      rings=${[
        ...(row ?? pinned).map((patch) => [patch, 'vv-ring vv-query']),
        ...(column ?? []).map((patch) => [patch, 'vv-ring vv-key']),
      ]}
      pinned=${pinned[0]}
      choose=${pin}
      point=${(/** @type {number | null} */ patch) => {
        const cell = patch === null ? null : axis.cellOf[axis.prefix.length + patch];
        if (cell !== pointed.peek()?.[0] || pointed.peek()?.[1] !== null)
          pointed.value = cell === null ? null : [cell, null];
      }}
      image=${image}
      under=${arrows}
    />
    <div class="vv-matrix-legend vv-bar" hidden=${!links.length}>
      ${links.length > 0 && [links[0], links[links.length - 1]].map(({ weight }, i) => html`<${Sample} ...${{ weight, share: weight / links[0].weight, isLast: i > 0 }} />`)}
      <span>of the attention</span>
    </div>
    <p class="vv-matrix-said vv-quiet vv-column" hidden=${!strongest}>
      ${strongest && linkWords(links, strongest, of, head)}
    </p>`;
}

/** How a link of a weight is drawn. @param {{weight: number, share: number, isLast: boolean}} props */
function Sample({ weight, share, isLast }) {
  const { width, opacity } = strokeOf(share);
  const [line, number] = isLast
    ? ['vv-matrix-thin', 'vv-matrix-weak']
    : ['vv-matrix-thick', 'vv-matrix-strong'];
  const look = { height: `${width.toFixed(1)}px`, opacity: opacity.toFixed(2) };
  return html`<span class=${`vv-matrix-sample ${line}`} style=${look} aria-hidden="true"></span
    ><span class=${`${number} vv-number`}>${percent(weight)}</span>`;
}

/**
 * A link as an arrow; one whose query has no place as a dot on its key.
 * @param {{link: Link, most: number, placeOf: (token: number) => Point | null}} props
 */
function Mark({ link, most, placeOf }) {
  const [from, to] = [placeOf(link.query), placeOf(link.key)];
  const share = link.weight / (most || 1);
  const { width, opacity } = strokeOf(share);
  if (!to) return null;
  if (!from)
    return html`<circle
      cx=${to[0].toFixed(1)}
      cy=${to[1].toFixed(1)}
      r=${(1 + 1.2 * width).toFixed(1)}
      opacity=${opacity.toFixed(2)}
      class="vv-link vv-link-dot"
    />`;
  const { line, tip } = arrow(from, to, share);
  return html`<g opacity=${opacity.toFixed(2)} class="vv-link">
    <path d=${line} class="vv-link-under" stroke-width=${(width + 2).toFixed(1)} />
    <path d=${tip} class="vv-link-tip-under" />
    <path d=${line} class="vv-link-line" stroke-width=${width.toFixed(1)} />
    <path d=${tip} class="vv-link-tip" />
  </g>`;
}
