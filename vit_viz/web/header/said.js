// What the model says, as lines with a bar each, what is being done, and what went wrong. Names come from strangers: Preact writes
// them as text.

import { amountWords, percent } from '../../ui/kit/numbers.js';
import { Problem } from '../kit/parts.js';
import { html } from '../kit/preact.js';
/** @import { Amount } from '../../ui/kit/numbers.js' */

const LONGEST_BAR = 112; // pixels
const NOTHING = 'This model has no class head: it names nothing.';
const ASK = 'This model has no classes of its own: ask it in words on Explain.';

/**
 * @typedef {Amount & {name: string, alone?: boolean}} Line alone: whether its probability is a sigmoid of its own
 * @typedef {{busy?: string, notes?: string[], error?: string, top?: Line[], reads?: boolean}} Said busy: what is being done; top: none where
 *     nothing is known of it; reads: whether the model is asked in sentences
 */

/** @param {Said & {id?: string, look?: string}} props look: more classes */
export function Top({ busy, notes = [], error, top, reads, id, look = '' }) {
  const lines = top ?? [];
  const { says, meaning, title } = meaningOf(lines[0]);
  const isHeadless = top?.length === 0;
  return html`<div id=${id} class=${`vv-part-top ${look} ${busy ? 'vv-busy' : ''}`}>
    <div class="vv-answers">
      <span class="vv-says" title=${title} hidden=${!lines.length}>${lines.length > 0 && says}</span>
      <ol class="vv-top" aria-label=${meaning}>
        ${lines.map((one) => html`<${AnswerLine} line=${one} bar=${barOf(one)} />`)}
      </ol>
      <p class="vv-nothing" hidden=${!isHeadless}>${isHeadless && (reads ? ASK : NOTHING)}</p>
    </div>
    <${Problem}
      role="status"
      look="vv-status vv-quiet"
      words=${busy || notes.join(' ')}
      stays=${Boolean(busy)}
    />
    <${Problem} words=${error} />
  </div>`;
}

/** @param {Line} line */
function barOf({ probability }) {
  return probability === undefined ? '0px' : `${Math.max(2, LONGEST_BAR * probability)}px`;
}

/** What numbers of this kind are called, by the first of them. */
function meaningOf(/** @type {Line | undefined} */ line) {
  if (line?.value !== undefined) {
    const what = line.cosine === undefined ? 'Values that the model returns' : 'Cosines with the photo';
    return { says: SAYS, meaning: `${what}, the largest first` };
  }
  if (!line?.alone) return { says: SAYS, meaning: 'Most probable classes with their probability' };
  return {
    says: 'The model says, of each by itself',
    meaning: 'Most probable classes, each with a probability of its own',
    title: 'Several classes may hold at once: each has a sigmoid of its own, and they do not sum to 100%.',
  };
}

const SAYS = 'The model says';

/** The line of a class with its probability, or of a value. @param {{line: Line, bar?: string}} props */
export function AnswerLine({ line, bar }) {
  return html`<li style=${bar && { '--bar': bar }}>
    <span class="vv-class" title=${line.name}>${line.name}</span>
    <span class="vv-number">${amountWords(line, percent)}</span>
  </li>`;
}
