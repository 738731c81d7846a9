// The photo beside the matrix: rings around the pair that is pointed at, and the strongest links as arrows, with their legend.

import { queryPatches } from '../../explorer/geometry.js';
import { subject } from '../../explorer/labels.js';
import { rowInto, Strongest } from '../../explorer/matrix.js';
import { makeSvg, showText } from '../../ui/kit/elements.js';
import { Stage } from '../../ui/kit/stage.js';
import { linkWords, weightText } from './matrix_words.js';
/** @import { Trace } from '../../explorer/geometry.js' */
/** @import { Link } from '../../explorer/matrix.js' */
/** @import { Matrix } from './matrix.js' */

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

/**
 * Draws links as arrows, the strongest on top; of a link whose query has no place, a dot on its key.
 * @param {SVGElement} svg whose units are pixels of the page
 * @param {Link[]} links
 * @param {(token: number) => Point | null} placeOf the middle of a token on the photo
 */
export function drawLinks(svg, links, placeOf) {
  const strongest = links[0]?.weight || 1;
  const marks = [...links].reverse().flatMap((link) => {
    const [from, to] = [placeOf(link.query), placeOf(link.key)];
    if (!to) return [];
    const share = link.weight / strongest;
    return [from ? arrowMark(arrow(from, to, share)) : dotMark(to, share)];
  });
  svg.replaceChildren(...marks);
}

/** @param {Arrow} arrow */
function arrowMark({ line, tip, width, opacity }) {
  const group = makeSvg('g', { opacity: opacity.toFixed(2), class: 'vv-link' });
  group.append(
    makeSvg('path', { d: line, class: 'vv-link-under', 'stroke-width': (width + 2).toFixed(1) }),
    makeSvg('path', { d: tip, class: 'vv-link-tip-under' }),
    makeSvg('path', { d: line, class: 'vv-link-line', 'stroke-width': width.toFixed(1) }),
    makeSvg('path', { d: tip, class: 'vv-link-tip' }),
  );
  return group;
}

/** @param {Point} place @param {number} share */
function dotMark([x, y], share) {
  const { width, opacity } = strokeOf(share);
  return makeSvg('circle', {
    cx: x.toFixed(1),
    cy: y.toFixed(1),
    r: (1 + 1.2 * width).toFixed(1),
    opacity: opacity.toFixed(2),
    class: 'vv-link vv-link-dot',
  });
}

/** Links that are kept of a head or a query. */
export const MOST_LINKS = 100;

/** The left side of the component; it shows what its matrix says is chosen. */
export class LinkedPhoto {
  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.matrix = matrix;
    this.find = matrix.find;
    this.stage = new Stage(this.find('matrix-stage'));
    this.size = [1, 1]; // pixels of the photo on the page: across, down
  }

  /** Lengths in the drawing are pixels of the page. */
  fit() {
    const { clientWidth, clientHeight } = this.find('matrix-stage');
    this.size = [clientWidth || 1, clientHeight || 1];
    this.find('matrix-links').setAttribute('viewBox', `0 0 ${this.size[0]} ${this.size[1]}`);
  }

  /** @returns {Link[]} the links that are drawn */
  show() {
    this.mark();
    return this.drawLinks();
  }

  /** Rings: solid around the query, dashed around the key. */
  mark() {
    const { axis, chosen, pointed } = this.matrix;
    const trace = /** @type {Trace} */ (this.matrix.trace);
    const [query, key] = pointed ?? [null, null];
    const of = (/** @type {number | null} */ cell) => (cell === null ? [] : axis.patchesOf(cell));
    const queries = query === null ? queryPatches(chosen.query, trace) : of(query);
    this.stage.ring([
      ...queries.map((patch) => /** @type {[number, string]} */ ([patch, 'vv-ring vv-query'])),
      ...of(key).map((patch) => /** @type {[number, string]} */ ([patch, 'vv-ring vv-key'])),
    ]);
  }

  /** The links that are drawn, of what, and everything that they were chosen from. */
  strongest() {
    const { filling, axis, chosen, pointed, trace, links } = this.matrix;
    if (!filling || !trace) return null;
    const tokens = pointed ? axis.tokensOf(pointed[0]) : this.matrix.pinnedTokens();
    if (links === 'head' || tokens.length === axis.patches) return { strongest: filling.strongest, of: null };
    const strongest = new Strongest(MOST_LINKS, axis);
    const row = new Float32Array(axis.tokens);
    const spare = new Float32Array(axis.tokens);
    for (const token of tokens) {
      rowInto(row, filling.layer, filling.head, token, spare);
      strongest.add(token, row);
    }
    const query = pointed ? axis.nameOf(pointed[0]) : subject(chosen.query, trace);
    const isPlaced = tokens.every((token) => this.placeOf(token) !== null);
    return { strongest, of: { query, tokens: tokens.length, isPlaced } };
  }

  /** Arrows, their legend, and what they hold of the attention. @returns {Link[]} */
  drawLinks() {
    const chosen = this.strongest();
    const links = chosen?.strongest.best(this.matrix.option('strongest')) ?? [];
    const svg = /** @type {SVGElement} */ (/** @type {unknown} */ (this.find('matrix-links')));
    drawLinks(svg, links, (token) => this.placeOf(token));
    this.find('matrix-legend').hidden = !links.length;
    const last = links[links.length - 1];
    if (chosen)
      showText(
        this.find('matrix-said'),
        linkWords(links, chosen.strongest, chosen.of, this.matrix.chosen.head),
      );
    if (!last) return links;
    this.find('matrix-strong').textContent = weightText(links[0].weight);
    this.find('matrix-weak').textContent = weightText(last.weight);
    [1, last.weight / links[0].weight].forEach((share, i) => {
      const { width, opacity } = strokeOf(share);
      const { style } = this.find(i ? 'matrix-thin' : 'matrix-thick');
      style.height = `${width.toFixed(1)}px`;
      style.opacity = opacity.toFixed(2);
    });
    return links;
  }

  /** The middle of a patch on the photo, in pixels of the page: across, down. @returns {[number, number] | null} */
  placeOf(/** @type {number} */ token) {
    const { axis, trace } = this.matrix;
    const patch = token - axis.prefix.length;
    if (patch < 0 || patch >= axis.patches || !trace) return null;
    const { original } = trace.crop;
    const rect = this.stage.rectOf(patch);
    return [
      (((rect[1] + rect[3]) / 2) * this.size[0]) / original[1],
      (((rect[0] + rect[2]) / 2) * this.size[1]) / original[0],
    ];
  }
}
