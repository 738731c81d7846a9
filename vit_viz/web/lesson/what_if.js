// What if: a part of the model changed, and the first names before and after, live. What is asked runs the model again.

import { percent, short } from '../../ui/kit/numbers.js';
import { Changes } from '../kit/bar.js';
import { Problem, Toggle, useAsked, useLate } from '../kit/parts.js';
import { html, useState } from '../kit/preact.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Answer, Numbers, WhatIf } from './timeline.js' */

const QUESTION = 'lesson_what_if';
const COST = 'This runs the model once more on your photo; the lesson itself stays as it is.';
const SIZES = [0.5, 1, 2, 4]; // of other patches, by the side of those of the model

/**
 * Chips, of which one opens what it changes.
 * @param {{page: Page, whatIf?: WhatIf[], n: Numbers}} props
 */
export function WhatIfs({ page, whatIf = [], n }) {
  const [chosen, choose] = useState('');
  const possible = whatIf.filter(({ isFor }) => isFor?.(n) !== false);
  const now = possible.find(({ change }) => change === chosen);
  if (!possible.length || !page.source.answers(QUESTION)) return null;
  return html`<section class="vv-lesson-what-if vv-stack" aria-label="What if">
    <div class="vv-row">
      <span class="vv-quiet">What if …</span>
      ${possible.map(
        ({ change, label }) =>
          html`<button
            type="button"
            class="vv-chip"
            data-change=${change}
            aria-expanded=${String(change === chosen)}
            onClick=${() => choose(change === chosen ? '' : change)}
          >
            … ${label}
          </button>`,
      )}
    </div>
    ${now && html`<${Changed} key=${chosen} ...${{ page, n, now }} />`}
  </section>`;
}

/** @param {{page: Page, n: Numbers, now: WhatIf}} props */
function Changed({ page: { ask, store }, n, now: { change, controls } }) {
  const { layer, head, trace } = n;
  const { input } = trace.crop;
  const side = input[0] / trace.grid[0];
  const sizes = SIZES.map((times) => Math.round(times * side)).filter(
    (size) => size > 1 && size <= Math.min(...input),
  );
  const [own, setOwn] = useState({ patch: 0, seed: change === 'positions' ? 0 : 1 });
  const patch = sizes.includes(own.patch) ? own.patch : (sizes.find((size) => size > side) ?? sizes[0]);
  const options = { layer, head, ...own, patch };
  const body = Object.fromEntries(controls.map((name) => [name, options[name]]));
  const { state, value, error } = useAsked(
    ask,
    n.trace.about && [QUESTION, { ...trace.about, change, ...body }],
  );
  const isLate = useLate(state === 'pending' ? JSON.stringify(body) : '');
  return html`<div class="vv-card vv-stack" data-state=${state} aria-busy=${String(state === 'pending')}>
    <div class="vv-row" hidden=${!controls.length}>
      ${controls.includes('layer') && html`<${Choice} ...${{ store, name: 'layer', value: layer, count: trace.layers }} />`}
      ${controls.includes('head') && html`<${Choice} ...${{ store, name: 'head', value: head, count: trace.heads }} />`}
      ${
        controls.includes('patch') &&
        html`<${Toggle}
          name="size"
          label="side of a patch in pixels"
          choices=${sizes.map((size) => [size, `${size} × ${size}`])}
          value=${patch}
          choose=${(/** @type {number} */ size) => setOwn({ ...own, patch: size })}
        />`
      }
      ${
        controls.includes('seed') &&
        html`<button type="button" class="vv-button" onClick=${() => setOwn({ ...own, seed: own.seed + 1 })}>
          ${own.seed ? 'another order' : 'and in another order'}
        </button>`
      }
    </div>
    <p class="vv-lesson-what" aria-live="polite">
      ${state === 'done' ? value.facts.sentence : isLate && 'Running the model once more …'}
    </p>
    <${Problem} words=${error} stays look="vv-notice" />
    ${value && !error && html`<${Changes} rows=${rowsOf(value, n)} isBusy=${state === 'pending'} />`}
    <p class="vv-small">
      ${change === 'patch' ? 'Counted, not run: no model was trained for other patches.' : COST}
    </p>
  </div>`;
}

/** Which layer, or which head. @param {{store: Page['store'], name: string, value: number, count: number}} props value: where none is chosen */
export function Choice({ store, name, value, count }) {
  const now = store.view[name].value; // what was chosen, while its numbers are on their way
  const shown = typeof now === 'number' && now < count ? now : value;
  const chosen = (/** @type {any} */ { target }) => store.set({ [name]: Number(target.value) });
  return html`<label class="vv-field"
    >${name}<select
      class="vv-control"
      data-option=${name}
      title=${`The ${name} that the lesson looks at.`}
      value=${String(shown)}
      onChange=${chosen}
    >
      ${Array.from({ length: count }, (_, i) => html`<option value=${String(i)}>${i}</option>`)}
    </select></label
  >`;
}

/** Names with what they had and have, as bars; of other patches how many there are. @param {Answer} answer @param {Numbers} n */
function rowsOf({ arrays, facts }, { trace }) {
  if (facts.change === 'patch') {
    const now = trace.prefix.length + trace.grid[0] * trace.grid[1];
    const pairs = [now ** 2, facts.pairs];
    const row = (/** @type {string} */ name, /** @type {number[]} */ [was, is]) => ({
      ...{ name, was: was / Math.max(was, is), is: is / Math.max(was, is) },
      words: [was.toLocaleString('en'), is.toLocaleString('en')],
    });
    return [row('tokens', [now, facts.tokens]), row('pairs of tokens', pairs)];
  }
  const isShare = facts.kind === 'probability';
  const all = [0, ...arrays.before.data, ...arrays.after.data];
  const ends = isShare ? [0, 1] : [Math.min(...all), Math.max(...all)];
  return facts.words.map((/** @type {string} */ name, /** @type {number} */ i) => {
    const [was, is] = [arrays.before.data[i], arrays.after.data[i]];
    return { name, was, is, ends, words: [was, is].map((one) => (isShare ? percent(one) : short(one))) };
  });
}
