// Which words the chosen head writes into the picture's embedding, of a model with a text tower: asked for once the block is opened, then
// of each head that is chosen.

import { Bar } from '../kit/bar.js';
import { STOPPED } from '../kit/job.js';
import { JobLine, Problem, useJob } from '../kit/parts.js';
import { html, useLayoutEffect, useState } from '../kit/preact.js';
import { signed } from '../kit/signed.js';
import { capital, headWords } from './words.js';
/** @import { Seen } from './room.js' */

/** Nothing for a model without a text tower. @param {{seen: Seen}} props */
export function Written({ seen: { page, subject, marks, numbers } }) {
  const { layer, head } = marks.chosen.value;
  const isThere = Boolean(numbers.target?.reads);
  const [isOpen, open] = useState(false);
  const [told, tell] = useState(/** @type {any} */ (null)); // the last answer, and what it is of
  const job = useJob();
  const of = `${subject.trace}|${layer}.${head}`;
  useLayoutEffect(() => {
    if (!isThere || !isOpen) return undefined;
    const body = { ...subject.about, layer, head };
    job
      .follow((stop, far) => page.ask('head_words', body, stop, far), {
        words: 'Reading the list of words …',
        whole: ({ arrays: { scores }, facts }) =>
          tell({ ...facts, scores: scores.data, most: Math.max(...scores.data.map(Math.abs)), of }),
      })
      .catch(() => {}); // the job says why
    return () => job.end();
  }, [isThere, isOpen, of]);
  const is = told?.of === of && told;
  if (!isThere) return null;
  return html`<details
    open=${isOpen}
    class="vv-fold vv-heads-written"
    onToggle=${(/** @type {any} */ event) => open(event.currentTarget.open)}
  >
    <summary>Which words it writes</summary>
    <${JobLine} job=${job} end=${() => job.end(STOPPED)} />
    <${Problem} words=${job.error} stays look="vv-heads-written-error vv-notice" />
    ${
      is &&
      html`<div class="vv-stack">
        <p class="vv-heads-written-words" role="status">${is.note}</p>
        <ul class="vv-heads-evidence" aria-label=${`Words that ${headWords({ layer, head })} writes`}>
          ${is.names.map((/** @type {string} */ word, /** @type {number} */ i) => {
            const value = is.scores[i];
            return html`<li key=${word}>
              <span>${word}</span><${Bar} value=${Math.abs(value)} ends=${[0, is.most]} sign=${value} /><span
                class="vv-number"
                >${signed(value, 4)}</span
              >
            </li>`;
          })}
        </ul>
        <p class="vv-small">${capital(is.unit)}.</p>
      </div>`
    }
  </details>`;
}
