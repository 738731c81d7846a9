// Which words the chosen head writes into the picture's embedding, of a model with a text tower: asked for once the block is opened, then
// of each head that is chosen.

import { Bar } from '../kit/bar.js';
import { STOPPED } from '../kit/job.js';
import { JobLine, Problem, useJob } from '../kit/parts.js';
import { html, useLayoutEffect, useState } from '../kit/preact.js';
import { signed } from '../kit/signed.js';
import { capital, headWords } from './words.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Seen } from './room.js' */

/** Nothing for a model without a text tower. @param {{seen: Seen}} props */
export function Written({ seen: { page, subject, marks, numbers } }) {
  const body = { ...subject.about, ...marks.chosen.value };
  const [isOpen, open] = useState(false);
  if (!numbers.target?.reads) return null;
  return html`<details
    open=${isOpen}
    class="vv-fold vv-heads-written"
    onToggle=${(/** @type {any} */ event) => open(event.currentTarget.open)}
  >
    <summary>Which words it writes</summary>
    ${isOpen && html`<${Words} key=${`${subject.trace}|${body.layer}.${body.head}`} ...${{ page, body }} />`}
  </details>`;
}

/** Those of one head. @param {{page: Page, body: any}} props body: the question */
function Words({ page, body }) {
  const [told, tell] = useState(/** @type {any} */ (null));
  const job = useJob();
  useLayoutEffect(() => {
    const how = { words: 'Reading the list of words …', whole: tell };
    job.follow((stop, far) => page.ask('head_words', body, stop, far), how).catch(() => {}); // the job says why
  }, []);
  const { names, note, unit } = told?.facts ?? {};
  const scores = told?.arrays.scores.data ?? [];
  const most = Math.max(...scores.map(Math.abs));
  return html`<${JobLine} job=${job} end=${() => job.end(STOPPED)} />
    <${Problem} words=${job.error} stays look="vv-heads-written-error vv-notice" />
    ${
      told &&
      html`<div class="vv-stack">
        <p class="vv-heads-written-words" role="status">${note}</p>
        <ul class="vv-heads-evidence" aria-label=${`Words that ${headWords(body)} writes`}>
          ${names.map(
            (/** @type {string} */ word, /** @type {number} */ i) =>
              html`<li key=${word}>
                <span>${word}</span
                ><${Bar} value=${Math.abs(scores[i])} ends=${[0, most]} sign=${scores[i]} />
                <span class="vv-number">${signed(scores[i], 4)}</span>
              </li>`,
          )}
        </ul>
        <p class="vv-small">${capital(unit)}.</p>
      </div>`
    }`;
}
