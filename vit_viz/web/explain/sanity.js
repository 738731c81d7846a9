// Whether the chosen map depends on what the model has learned: how it changes while the weights are re-initialised, as a curve.

import { clamp } from '../../explorer/geometry.js';
import { fixed } from '../../ui/kit/numbers.js';
import { asked } from '../kit/ask.js';
import { Figure } from '../kit/figure.js';
import { STOPPED } from '../kit/job.js';
import { JobLine, useJob } from '../kit/parts.js';
import { heightOf, Plot } from '../kit/plot.js';
import { html, useLayoutEffect, useMemo, useSignal, useState } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Job, Places } from '../kit/job.js' */
/** @import { Signal } from '../kit/preact.js' */

/**
 * An answer to what the page asks by /vit_viz/checked and /vit_viz/sanity; without a curve as long as nobody had it computed.
 * @typedef {{link: string, key: string, method: string, label: string, words?: string, title: string, caption: string, correlations?:
 *     number[], labels: [string, string], figure: import('../../explorer/source.js').Saved}} Checked
 *
 * @typedef {{known: Checked | undefined, error: string, job: Job, begin: () => void}} Check
 */

const MOST_LABELS = 14; // below the curve

/** What is known of the chosen map, and the question that finds it out; that ends with the map. @param {Page} page @param {Places} places @param {() => boolean} isSeen @returns {Check} */
export function useCheck({ store, ask, turn }, places, isSeen) {
  const link = () => store.linkOf([...TARGETED, 'method']);
  const kept = useMemo(
    () =>
      asked(
        async (name, body, stop) => ({ link: body.view, ...(await ask(name, body, stop)) }),
        () => (isSeen() ? ['checked', { view: link() }] : null),
        turn,
      ),
    [],
  );
  const [found, find] = useState(/** @type {Checked | null} */ (null));
  const job = useJob(places);
  const view = link();
  useLayoutEffect(() => () => job.end(), [view]);
  const begin = () =>
    void job.follow((stop, tell) => ask('sanity', { view }, stop, tell), {
      whole: (value) => find({ link: view, ...value }),
    });
  const known = [found, kept.value.value].find((one) => one?.link === view);
  return { known, error: kept.value.error ?? '', job, begin };
}

/** @param {{check: Check}} props */
export function Sanity({ check: { known, error, job, begin } }) {
  const { label, words } = known ?? {};
  const first = job.share > 0 ? '' : ' the trained model …';
  const doing = !label ? '' : job.isRunning ? `${label}:${first}` : `For ${label}.`;
  return html`<details class="vv-fold vv-formula vv-sanity" id="vv-sanity">
    <summary>Does the map show the model, or only the photo? Re-initialise the weights</summary>
    <p>
      The head and then block after block lose what they learned. A map that depends on it falls apart, and
      the curve falls; one that stays near 1 means that the map shows the photo, not the model (Adebayo et al.
      2018, arXiv:1810.03292).
    </p>
    <${JobLine}
      ...${{ job, begin, end: () => job.end(STOPPED), words: job.error || error || doing }}
      go="Re-initialise the weights, step by step"
      button=${{ class: 'vv-go vv-bare' }}
      look="vv-row"
    />
    <p class="vv-weights-words" aria-live="polite" hidden=${!words}>${words && `${label}: ${words}`}</p>
    ${known?.correlations && html`<${WeightsCurve} ...${known} />`}
  </details>`;
}

/** The correlations with the map of the trained model, from one part re-initialised to the next. @param {Checked} props */
function WeightsCurve({ correlations = [], title, caption, labels: [axis, what], figure }) {
  const pointed = useSignal(/** @type {number | null} */ (null)); // across the curve
  const last = correlations.length - 1;
  const ticks = [1, 0.5, 0, -0.5, -1].filter((tick) => tick >= 0 || tick > Math.min(...correlations) - 0.5);
  const height = (/** @type {number} */ value) => heightOf(value, [ticks[ticks.length - 1], 1]);
  const step = Math.ceil(correlations.length / MOST_LABELS);
  return html`<${Figure} id="vv-sanity-curve" caption=${caption} save=${figure}>
    <h3 class="vv-title vv-weights-title">${title}</h3>
    <p class="vv-small vv-weights-what">${what}</p>
    <${Plot}
      line=${correlations.map((value, i) => [i / last, height(value)])}
      rules=${ticks.map(height)}
      left=${ticks.map((tick) => [height(tick), String(tick).replace('-', '−')])}
      below=${correlations.flatMap((_, i) => (i % step ? [] : [[i / last, i]]))}
      label=${`${title}: ${correlations.map(written).join(', ')}`}
      read=${(/** @type {number | null} */ share) => (pointed.value = share)}
    />
    <p class="vv-small vv-weights-axis">${axis}</p>
    <${Read} ...${{ correlations, pointed }} />
  <//>`;
}

/** The number under the pointer. @param {{correlations: number[], pointed: Signal<number | null>}} props */
function Read({ correlations, pointed: { value } }) {
  const last = correlations.length - 1;
  const i = value === null ? -1 : clamp(Math.round(value * last), last);
  return html`<p class="vv-small vv-weights-read">
    ${i >= 0 && `${i} of ${last} re-initialised: ${written(correlations[i])}`}
  </p>`;
}

function written(/** @type {number} */ correlation) {
  return fixed(correlation, 2).replace('-', '−');
}
