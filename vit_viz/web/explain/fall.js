// The curve of what is followed while the patches of a map go or come, beside random orders of patches: of the difference of two maps from
// either end.

import { clamp } from '../../explorer/geometry.js';
import { Toggle } from '../kit/parts.js';
import { heightOf, Plot } from '../kit/plot.js';
import { html, useSignal, useState } from '../kit/preact.js';
/** @import { ReadonlySignal } from '../kit/preact.js' */
/** @import { Curve, Trust } from './trust.js' */

const GONE = /** @type {const} */ (['no patch gone', 'all gone']);
const PAINTED = 'Painted over here; on the photo they are gone.';
const TESTS = {
  deletion: { words: 'taking away', of: 'orange away', ends: GONE, how: PAINTED, done: 'gone' },
  insertion: {
    words: 'putting back',
    of: 'orange back',
    ends: /** @type {const} */ (['no patch there', 'all back']),
    how: 'Put back into a blurred photo, in steps.',
    done: 'back',
  },
  reverse: { words: '', of: 'blue away', ends: GONE, how: PAINTED, done: 'gone' },
};
/** @typedef {keyof typeof TESTS} Test */

/**
 * A curve with its axes, its key, and the tests that there are; nothing without a curve.
 * @param {{trust: Trust | undefined, name: string, taken: ReadonlySignal<number> | null}} props name: of the map; taken: share of its
 *     patches that the slider of the stage took away, null where that is about another map
 */
export function Fall({ trust, name, taken }) {
  const [wanted, choose] = useState(/** @type {Test} */ ('deletion'));
  const pointed = useSignal(/** @type {number | null} */ (null)); // across the curve
  const curves = trust?.curves ?? {};
  const test = curves[wanted] ? wanted : 'deletion';
  const curve = curves[test];
  if (!curve) return html`<div class="vv-fall" hidden></div>`;
  const { axis, names, title: areas = '' } = /** @type {Trust} */ (trust);
  const { x, y, low, high, ends, labels } = curve;
  /** @returns {[number, number][]} */
  const line = (/** @type {number[]} */ values) => values.map((value, i) => [x[i], heightOf(value, ends)]);
  const title = `${name}: ${titleOf(/** @type {Trust} */ (trust), test)}`;
  /** @type {[Test, string][]} */
  const choices = /** @type {Test[]} */ (Object.keys(TESTS))
    .filter((one) => curves[one])
    .map((one) => [one, names ? TESTS[one].of : TESTS[one].words]);
  return html`<div class="vv-fall">
    <h3 class="vv-title vv-fall-title">${title}</h3>
    <p class="vv-axis vv-small" hidden=${!axis}>${axis}</p>
    <${Plot}
      line=${line(y)}
      band=${[...line(high), ...line(low).reverse()]}
      rules=${ends[0] < 0 && ends[1] > 0 ? [heightOf(0, ends)] : []}
      left=${[1, 0].map((at) => [at, labels[at]])}
      below=${[0, 1].map((at) => [at, TESTS[test].ends[at]])}
      label=${`${title}. ${areas}`}
      read=${(/** @type {number | null} */ share) => (pointed.value = share)}
    >
      ${taken && test === 'deletion' && html`<${Now} taken=${taken} />`}
    <//>
    <p class="vv-curve-key vv-small" aria-hidden="true">
      <span class="vv-key-line"></span>
      <span class="vv-key-words">
        ${names ? `most for ${names[test === 'reverse' ? 1 : 0]} first` : 'best patches first'}
      </span>
      <span><span class="vv-key-band"></span>95% of random orders</span>
    </p>
    <${Words} ...${{ curve, test, pointed }} />
    <${Toggle}
      ...${{ name: 'test', choices, value: test, choose }}
      label="What happens to the patches"
      look="vv-tests"
    />
  </div>`;
}

/** What is seen, in words. @param {Trust} trust @param {Test} test */
function titleOf({ what = 'the answer', better, grows, names }, test) {
  const verbs = { deletion: better && ' falls', reverse: grows && ' first grows', insertion: ' rises' };
  const hue = names ? (test === 'reverse' ? 'blue ' : 'orange ') : '';
  return `${what}${verbs[test] || ''} as its ${hue}patches ${test === 'insertion' ? 'come back' : 'go'}`;
}

/** Marks how far the slider of the stage is. @param {{taken: ReadonlySignal<number>}} props */
function Now({ taken }) {
  return html`<span class="vv-now" hidden=${!taken.value} style=${{ left: `${100 * taken.value}%` }}></span>`;
}

/** The numbers under the pointer; else how the curve was made. @param {{curve: Curve, test: Test, pointed: ReadonlySignal<number | null>}} props */
function Words({ curve: { x, texts }, test, pointed }) {
  const { how, done } = TESTS[test];
  const i = pointed.value === null ? -1 : clamp(Math.round(pointed.value * (x.length - 1)), x.length - 1);
  return html`<p class="vv-curve-words vv-small">
    ${i < 0 ? how : `${Math.round(100 * x[i])}% ${done}: ${texts[i]}`}
  </p>`;
}
