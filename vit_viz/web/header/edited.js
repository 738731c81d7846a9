// The badge of an edited model: what is changed in it, what that changes in the answer, and what takes it back.

import { Problem, useAsked } from '../kit/parts.js';
import { html } from '../kit/preact.js';
import { Popover } from './opener.js';
import { AnswerLine } from './said.js';
/** @import { Header } from './header.js' */
/** @import { Line } from './said.js' */

const MEANT =
  'Every tab shows the edited model. Edits change attention: patches, positions and filters are as learned. A head that is off ' +
  'still looks, and that is what is drawn; rollout and flow follow attention alone and still count it.';

/**
 * @typedef {{words: string, each: {said: string, left: string}[], before?: Line[], after?: Line[], moved?: string,
 *   error?: string}} Changed words: in short, "" where nothing is changed; left: the edits without this one; moved: of a model without classes
 */

/** @param {{header: Header}} props */
export function Edited({ header: { store, ask } }) {
  const edits = store.view.edits.value;
  const { value, error: failed } = useAsked(ask, edits && ['edited', { view: store.subject() }]);
  /** @type {Changed | undefined} */
  const changed = value ?? (failed && { words: edits, each: [], error: failed });
  if (!edits || !changed?.words) return null;
  const { words, each, before, after, moved, error } = changed;
  const lists = /** @type {const} */ ([
    ['Before', 'vv-edited-before', 'Most probable classes before the edits', before],
    ['Now', 'vv-edited-after', 'Most probable classes of the edited model', after],
  ]);
  return html`<div id="vv-edited" class="vv-edited">
    <${Popover}
      look="vv-edited-badge"
      words=${html`<b>edited</b> <span class="vv-edited-words" role="status">${words}</span>`}
      panel="vv-edited-panel"
      label="What was changed inside the model"
    >
      <${Problem} look="vv-edited-error vv-error" words=${error} />
      <div class="vv-edited-answers" hidden=${!before}>
        ${lists.map(
          ([title, look, label, lines]) =>
            html`<div>
              <p class="vv-quiet">${title}</p>
              <ol class=${look} aria-label=${label}>
                ${lines?.map((line) => html`<${AnswerLine} line=${line} />`)}
              </ol>
            </div>`,
        )}
      </div>
      <p class="vv-edited-moved" hidden=${!moved}>${moved}</p>
      <ul class="vv-edited-each" aria-label="The edits">
        ${each.map(
          ({ said, left }) =>
            html`<li key=${said}>
              ${said}
              <button
                type="button"
                class="vv-button vv-plain"
                aria-label=${`Undo: ${said}`}
                onClick=${() => store.set({ edits: left })}
              >
                Undo
              </button>
            </li>`,
        )}
      </ul>
      <p class="vv-small">${MEANT}</p>
    <//>
    <button type="button" class="vv-button vv-edited-undo" onClick=${() => store.set({ edits: '' })}>
      Undo all
    </button>
  </div>`;
}
