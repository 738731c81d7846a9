// Links between patches as arrows on the photo: pure geometry, and an SVG that it is drawn into. Lengths are pixels of the page.

/**
 * @typedef {import('../../explorer/matrix.js').Link} Link
 * @typedef {[number, number]} Point across, down
 * @typedef {{line: string, tip: string, width: number, opacity: number}} Arrow
 */

const WIDEST = 5;
const BEND = 0.14; // how far a line swings out, as a share of its length, so that both ways between two patches are seen
const SVG = 'http://www.w3.org/2000/svg';

/** How a link is drawn, by its weight as a share of the strongest. */
export function strokeOf(/** @type {number} */ share) {
  return { width: 1 + (WIDEST - 1) * share, opacity: 0.35 + 0.65 * share };
}

/**
 * An arrow from one point to another, with its tip on the second.
 * @param {Point} from
 * @param {Point} to
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
  const group = make('g', { opacity: opacity.toFixed(2), class: 'vv-link' });
  group.append(
    make('path', { d: line, class: 'vv-link-under', 'stroke-width': (width + 2).toFixed(1) }),
    make('path', { d: tip, class: 'vv-link-tip-under' }),
    make('path', { d: line, class: 'vv-link-line', 'stroke-width': width.toFixed(1) }),
    make('path', { d: tip, class: 'vv-link-tip' }),
  );
  return group;
}

/** @param {Point} place @param {number} share */
function dotMark([x, y], share) {
  const { width, opacity } = strokeOf(share);
  return make('circle', {
    cx: x.toFixed(1),
    cy: y.toFixed(1),
    r: (1 + 1.2 * width).toFixed(1),
    opacity: opacity.toFixed(2),
    class: 'vv-link vv-link-dot',
  });
}

/** @param {string} tag @param {Record<string, string>} attributes */
function make(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
