// What the parts of the Survey tab share: a choice of one by its name, tables, and lists that go on.

import { html, useLayoutEffect, useRef } from '../kit/preact.js';

/** A choice of one by its name. @param {{words: string, look: string, value: string, options: string[][], choose: (name: string) => void}} props */
export function Chooser({ words, look, value, options, choose }) {
  const chosen = (/** @type {any} */ { currentTarget: { value: name } }) => choose(name);
  return html`<label class="vv-field"
    >${words}
    <select class=${`vv-survey-${look} vv-control`} value=${value} onChange=${chosen}>
      ${options.map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
    </select></label
  >`;
}

/** A table that scrolls in its own box; the first cell of each line is its heading. @param {{look: string, label: string, heads?: string[], rows: any[][]}} props */
export function Table({ look, label, heads, rows }) {
  const line = (/** @type {any[]} */ [first, ...cells]) =>
    html`<tr>
      <th scope="row">${first}</th>
      ${cells.map((words, at) => html`<td data-label=${heads?.[at + 1]}>${words}</td>`)}
    </tr>`;
  return html`<div class="vv-survey-scroll" tabindex="0" role="region" aria-label=${label}>
    <table class=${`vv-survey-table ${look}`}>
      <thead>
        ${
          heads &&
          html`<tr>
            ${heads.map((words) => html`<th scope="col">${words}</th>`)}
          </tr>`
        }
      </thead>
      <tbody>
        ${rows.map(line)}
      </tbody>
    </table>
  </div>`;
}

/**
 * A list that goes on, with the keyboard at the first button of what came.
 * @param {number} count of buttons in its box
 * @param {() => void} ask asks for more
 */
export function useMore(count, ask) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const first = useRef(Infinity);
  useLayoutEffect(() => {
    if (first.current >= count) return;
    box.current?.querySelectorAll('button')[first.current].focus();
    first.current = Infinity;
  }, [count]);
  const goOn = () => {
    first.current = count;
    ask();
  };
  return { box, goOn };
}
