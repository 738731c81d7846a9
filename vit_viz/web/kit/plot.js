// Lines, a band and rules in a frame, with words at its sides. Points lie across and upwards, both in shares of the frame.

import { pointerIn } from '../../explorer/geometry.js';
import { html } from './preact.js';

/** @typedef {[number, number]} Point across and upwards, each from 0 to 1 */

/** Where a value lies from one end to the other; the middle where both are one. */
export function heightOf(/** @type {number} */ value, /** @type {[number, number]} */ [low, high]) {
  return high > low ? (value - low) / (high - low) : 0.5;
}

/** Lines from point to point in a picture of 100 by 100. @param {Point[]} points */
export function pathOf(points) {
  const words = points.map(([x, y]) => `${(100 * x).toFixed(2)} ${(100 - 100 * y).toFixed(2)}`);
  return words.length ? `M${words.join('L')}` : '';
}

/**
 * @param {object} props
 * @param {Point[]} props.line
 * @param {Point[]} [props.band] around the area that is filled
 * @param {number[]} [props.rules] heights
 * @param {[number, any][]} props.left heights, and what stands beside them
 * @param {[number, any][]} props.below places across, and what stands below them
 * @param {string} [props.label] of a plot that is a picture
 * @param {(share: number | null) => void} [props.read] told where across the pointer is
 * @param {Record<string, any>} [props.more] attributes and listeners
 * @param {any} [props.children] over the lines
 */
export function Plot({ line, band, rules = [], left, below, label, read, more, children }) {
  const listening = read && {
    onPointerMove: (/** @type {any} */ event) => read(pointerIn(event, event.currentTarget)[1]),
    onPointerLeave: () => read(null),
  };
  const words = (/** @type {string} */ side, /** @type {[number, any][]} */ entries) =>
    html`<div class=${`vv-plot-${side} vv-small`} aria-hidden=${label && 'true'}>
      ${entries.map(([at, one]) => html`<span style=${{ '--at': `${100 * at}%` }}>${one}</span>`)}
    </div>`;
  const rule = (/** @type {number} */ at) => `M0 ${(100 - 100 * at).toFixed(2)}H100`;
  return html`<div class="vv-plot" ...${label && { role: 'img', 'aria-label': label }} ...${more}>
    ${words('left', left)}
    <div class="vv-plot-area" ...${listening}>
      <svg class="vv-layer" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
        ${band && html`<path class="vv-plot-band" d=${`${pathOf(band)}Z`} />`}
        <path class="vv-plot-rules" d=${rules.map(rule).join('')} />
        <path class="vv-plot-line" d=${pathOf(line)} />
      </svg>
      ${children}
    </div>
    ${words('below', below)}
  </div>`;
}
