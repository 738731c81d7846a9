// A bar on its track. Of a number with a sign, orange is for, or more, and blue against, or less (tokens.css).

import { clamp } from '../../explorer/geometry.js';
import { html } from './preact.js';

/** What shows the sign of a number. */
export function lookOf(/** @type {number} */ value) {
  return value > 0 ? 'vv-is-for' : value < 0 ? 'vv-is-against' : '';
}

/**
 * @param {object} props
 * @param {number | null} props.value where it ends; null: not known
 * @param {[number, number]} [props.ends] of the track; it begins at 0, or at the end that is nearer to it
 * @param {number | null} [props.sign] of what it stands for; 0: it has none
 * @param {number | null} [props.tick] another value on the same track
 * @param {string} [props.look] more classes
 */
export function Bar({ value, ends: [low, high] = [0, 1], sign = 0, tick, look = '' }) {
  const at = (/** @type {number} */ x) => (high > low ? 100 * clamp((x - low) / (high - low)) : 0);
  const [from, to] = [at(0), value === null ? at(0) : at(value)];
  const [start, long] = [Math.min(from, to), Math.abs(to - from)].map((share) => `${share.toFixed(2)}%`);
  return html`<span
    class=${`vv-track ${lookOf(sign ?? 0)} ${look}`}
    data-unknown=${value === null ? '' : undefined}
    style=${{ '--from': start, '--long': long }}
    >${typeof tick === 'number' && html`<i class="vv-tick" style=${{ left: `${at(tick).toFixed(2)}%` }}></i>`}</span
  >`;
}

/**
 * Numbers before and after a change: two bars for each, the grayer one before, and both in words.
 * @param {object} props
 * @param {{name: string, was: number, is: number, ends?: [number, number], words: string[]}[]} props.rows
 * @param {boolean} props.isBusy whether others are on their way
 * @param {string} [props.look] more classes
 */
export function Changes({ rows, isBusy, look = '' }) {
  return html`<ul class=${`vv-changes ${look}`} aria-busy=${String(isBusy)} hidden=${!rows.length}>
    ${rows.map(
      ({ name, was, is, ends, words: [then, now] }) =>
        html`<li key=${name}>
          <span class="vv-class" title=${name}>${name}</span
          ><span class="vv-changes-bars"
            ><${Bar} value=${was} ends=${ends} look="vv-was" /><${Bar} value=${is} ends=${ends} /></span
          ><span class="vv-number">${then} → <b>${now}</b></span>
        </li>`,
    )}
  </ul>`;
}
