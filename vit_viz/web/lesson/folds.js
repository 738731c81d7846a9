// Depth on demand: the formula, the shapes, the lines of our code that ran, and the same part in a few lines to build it oneself.

import { html, useState } from '../kit/preact.js';
/** @import { Fold, Numbers } from './timeline.js' */

/**
 * Which models are meant: values of their shape, by name. @typedef {Record<string, any[]>} Of
 * A function of ours; each line has beside it, where it is marked, which models run it.
 * @typedef {{name: string, place: string, lines: [text: string, of: Of | null][], of: Of}} Ran
 *
 * What Python says of a part; formula and letters are HTML, escaped there; source: a program.
 * @typedef {{formula: string, letters: string, ran: Ran[], source: string, mistake: string}} Part
 */

const asIs = (/** @type {string} */ text) => ({ dangerouslySetInnerHTML: { __html: text } });

/** Buttons of which one opens a panel below all. @param {{fold?: Fold, parts: Record<string, Part>, n: Numbers}} props */
export function Folds({ fold, parts, n }) {
  const [open, setOpen] = useState('');
  const told = fold?.build.flatMap((name) => parts[name] ?? []) ?? [];
  if (!fold || !told.length) return null;
  const shapes = fold.shapes(n);
  const shape = n.tokens?.facts.shape;
  const runs = (/** @type {Of} */ of) =>
    Object.entries(of).every(([name, values]) => values.includes(shape[name]));
  /** @type {[string, any][]} */
  const panels = [
    [
      'Formula',
      told.map(
        ({ formula, letters }) =>
          html`<p class="vv-math" ...${asIs(formula)}></p>
            <p ...${asIs(letters)}></p>`,
      ),
    ],
    ['Shapes', shapes.length > 0 && html`<${Shapes} shapes=${shapes} />`],
    [
      'The lines that ran',
      shape &&
        told.flatMap(({ ran }) =>
          ran.filter(({ of }) => runs(of)).map((one) => html`<${Listing} ...${one} runs=${runs} />`),
        ),
    ],
    ['Build it yourself', told.map((part) => html`<${Build} ...${part} />`)],
  ];
  return html`<section class="vv-lesson-folds vv-stack" aria-label="More depth">
    <div class="vv-row">
      ${panels.map(
        ([name, panel]) =>
          panel &&
          html`<button
            type="button"
            class="vv-chip"
            title="Folds this out below, or in again."
            aria-expanded=${String(open === name)}
            onClick=${() => setOpen(open === name ? '' : name)}
          >
            ${name}
          </button>`,
      )}
    </div>
    ${panels.map(([name, panel]) => open === name && html`<div class="vv-card vv-stack" key=${name} data-panel=${name}>${panel}</div>`)}
  </section>`;
}

/** A function of ours, the lines marked that this model ran. @param {Ran & {runs: (of: Of) => boolean}} props */
function Listing({ name, place, lines, runs }) {
  return html`<figure class="vv-listing">
    <figcaption>our code: <b>${name}</b> <span>${place}</span></figcaption>
    <pre tabindex="0" aria-label=${`Source of ${name}`}><code>${lines.map(([text, of]) => [
      of && runs(of) ? html`<mark>${text}</mark>` : text,
      '\n',
    ])}</code></pre>
  </figure>`;
}

/** Shapes of the data, in its order. @param {{shapes: [name: string, shape: string, what: string][]}} props */
function Shapes({ shapes }) {
  return html`<div class="vv-steps">
    ${shapes.map(
      ([name, shape, what], place) =>
        html`${place > 0 && html`<i aria-hidden="true">→</i>`}
          <div class="vv-step"><b>${name}</b><code>${shape}</code><span>${what}</span></div>`,
    )}
  </div>`;
}

/** A program that can be copied, and where others go wrong. @param {{source: string, mistake: string}} props */
function Build({ source, mistake }) {
  const [said, say] = useState('Copy');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(source);
      say('Copied');
    } catch {
      say('Select it to copy it'); // not every page may write to the clipboard
    }
  };
  return html`<pre tabindex="0" aria-label="This part in PyTorch"><code>${source}</code></pre>
    <p><b>A common mistake</b> ${mistake}</p>
    <button type="button" class="vv-button" onClick=${copy}>${said}</button>`;
}
