// Surgery beside the grid: the answer and the maps before and after, the temperatures, and what is taken back.

import { topOf } from '../../explorer/frame.js';
import { computing, percent, subject as queryOf } from '../../explorer/labels.js';
import { Changes } from '../kit/bar.js';
import { editsIn, withHeads } from '../kit/edits.js';
import { Found, PhotoStage, Problem, Toggle, useAsked } from '../kit/parts.js';
import { html, useLayoutEffect, useMemo, useRef, useState } from '../kit/preact.js';
import { SUBJECT } from '../kit/store.js';
import { editedWords, saidWords, surgeryFinding } from './findings.js';
import { LitBox } from './maps.js';
import { HeadGrid } from './table.js';
import { Forbid, namedTokens } from './views.js';
/** @import { Edits, State } from '../kit/edits.js' */
/** @import { Answer } from './findings.js' */
/** @import { Seen, Subject } from './room.js' */

/**
 * What the edits change; of: the trace that they are seen in; trace: of the unedited model, whose answers are `before`.
 * @typedef {{of: string, trace: string, before: Answer[], now: Answer[]}} Panel
 */

const SAME = 1e-6; // differences of attention that are none
const RANKED = 50; // classes that are compared before and after an edit
const ANSWERS = 3; // of each, before and now, that are shown

/** @type {[State, string, string][]} */
const BRUSHES = [
  ['off', 'off', 'The head says nothing.'],
  ['mean', 'its mean', 'The head says the same to every token: its mean.'],
  ['uniform', 'uniform', 'The head looks alike at all tokens that it may see.'],
  ['on', 'on', 'The head as it was.'],
];

/** The temperature of a slider, in three digits. */
export function temperatureOf(/** @type {number} */ power) {
  return Number((2 ** power).toPrecision(3));
}

/** @param {{seen: Seen}} props */
export function Surgery({ seen }) {
  const { subject, edits, editor, edit } = seen;
  const [brush, setBrush] = useState(/** @type {State} */ ('off'));
  const { panel, isNow, error } = usePanel(seen);
  const tokens = namedTokens(subject);
  const isBusy = editor.isDraft.value || !isNow;
  const switches = {
    next: (/** @type {string[]} */ keys) =>
      keys.every((key) => (editsIn(editor.words.peek(), subject).heads.get(key) ?? 'on') === brush)
        ? 'on'
        : brush,
    set: (/** @type {string[]} */ keys, /** @type {State} */ state, movement = '') =>
      edit((before) => withHeads(before, keys, state), { movement }),
  };
  return html`<div class="vv-surgery vv-stack" role="group" aria-label="Before and after">
      <div class="vv-surgery-first vv-stack">
        <h2 class="vv-heads-sub">The answer, before and after</h2>
        <${Answers} panel=${panel} isBusy=${isBusy} />
        ${panel && html`<${Maps} ...${{ seen, panel, isWaiting: isBusy }} />`}
      </div>
      <h3 class="vv-heads-sub">More edits</h3>
      <${Temperatures} seen=${seen} />
      <${Forbid} key=${JSON.stringify(tokens)} seen=${seen} tokens=${tokens} />
    </div>
    <div class="vv-heads-left vv-stack">
      <${Found}
        look="vv-heads-found"
        words=${surgeryFinding(edits, panel ?? { before: [], now: [] })}
        pending=${isBusy && editedWords(edits)}
      />
      <${Tools} ...${{ seen, brush, choose: setBrush }} />
      <${Problem} look="vv-surgery-error vv-error" words=${editor.refused.value || error} />
      <${HeadGrid} seen=${seen} switches=${switches} />
      <p class="vv-small">
        The number of a row switches all of its heads; drag across heads for several. Every tab then shows the
        edited model, and its link opens it; nothing changes for anybody else.
      </p>
    </div>`;
}

const UNEDITED = SUBJECT.filter((name) => name !== 'edits');

/** The answers before and after, and the trace of the model without edits; the last ones while those of now are on their way. @param {Seen} seen */
function usePanel({ page: { ask, store }, subject: { trace, about }, look, isOpening }) {
  const get = async (
    /** @type {string} */ _name,
    /** @type {any} */ { view, of },
    /** @type {AbortSignal} */ stop,
  ) => {
    const { edits } = of.about;
    const unedited = edits && ask('open', { view: store.linkOf(UNEDITED) }, stop);
    const answers = ['', edits].map((one) =>
      ask('classes', { ...of.about, edits: one, count: RANKED }, stop).then(answersIn, () => []),
    );
    const before = unedited ? (await unedited).trace : of.trace;
    return { trace: before, asked: view, of: of.trace, before: await answers[0], now: await answers[1] };
  };
  const of = { trace, about };
  const { state, value, error } = useAsked(get, !isOpening && ['', { view: look.subject, of }]);
  const last = useRef(/** @type {Panel | null} */ (null));
  if (value) last.current = value;
  const isNow = state === 'done' && value.of === trace && value.asked === look.subject;
  return { panel: last.current, isNow, error };
}

/** Classes or values, the first ones. @param {any} answer @returns {Answer[]} */
function answersIn({ arrays, facts }) {
  const amount = facts.unit === 'value' ? 'value' : 'probability';
  return facts.names.map((/** @type {string} */ name, /** @type {number} */ i) => ({
    ...{ name, [amount]: arrays.scores.data[i] },
  }));
}

/** What a click makes of a head, and what takes edits back. @param {{seen: Seen, brush: State, choose: (brush: State) => void}} props */
function Tools({ seen, brush, choose }) {
  const { editor, page } = seen;
  useLayoutEffect(() => {
    /** Ctrl+Z takes the last step back, where the switches are seen and nothing is typed. */
    const typed = (/** @type {KeyboardEvent} */ event) => {
      const { key, ctrlKey, metaKey, shiftKey, altKey, target } = event;
      if (key.toLowerCase() !== 'z' || !(ctrlKey || metaKey) || shiftKey || altKey) return;
      const isTyping =
        target instanceof Element && target.closest('input:not([type=range]), textarea, select');
      if (isTyping || page.store.view.tab.peek() !== 'heads' || !editor.past.peek().length) return;
      event.preventDefault();
      editor.undo();
    };
    window.addEventListener('keydown', typed);
    return () => window.removeEventListener('keydown', typed);
  }, []);
  const undo = {
    title: 'Take the last edit back (Ctrl+Z)',
    disabled: !editor.past.value.length,
    onClick: editor.undo,
  };
  const all = { disabled: !editor.words.value, onClick: () => editor.change('') };
  return html`<div class="vv-row" data-of="surgery">
    <span class="vv-quiet"
      ><span class="vv-to-point">a click</span><span class="vv-to-tap">a tap</span> makes a head</span
    >
    <${Toggle}
      ...${{ name: 'state', look: 'vv-surgery-states', choices: BRUSHES, value: brush, choose }}
      label="What choosing a head makes of it"
    />
    <button type="button" class="vv-button vv-surgery-undo" ...${undo}>Undo</button>
    <button type="button" class="vv-button vv-surgery-all" ...${all}>All on</button>
  </div>`;
}

/** @param {{panel: Panel | null, isBusy: boolean}} props */
function Answers({ panel, isBusy }) {
  const { before = [], now = [] } = panel ?? {};
  const rows = comparedNames(before, now).map((name) => {
    const [was, is] = [before, now].map(
      (answers) => answers.find((one) => one.name === name)?.probability ?? 0,
    );
    return { name, was, is, words: [before, now].map((answers) => saidWords(answers, name)) };
  });
  return html`<${Changes} ...${{ rows, isBusy, look: 'vv-surgery-answers' }} />`;
}

/** The classes that are compared: the first of either. @param {Answer[]} before @param {Answer[]} now */
export function comparedNames(before, now) {
  const first = [...before.slice(0, ANSWERS), ...now.slice(0, ANSWERS)];
  return [...new Set(first.map(({ name }) => name))];
}

/** Where the query looks in the last layer, before and now, over the heads that are on there. @param {{seen: Seen, panel: Panel, isWaiting: boolean}} props */
function Maps({ seen: { page, subject, edits, photo }, panel, isWaiting }) {
  const isOne = panel.of === subject.trace; // the maps are of one state of the model
  const now = { ...subject, opened: null };
  const { state, value, error } = useAsked(
    async (_name, { now: of, before }, stop) => {
      const view = /** @type {any} */ ({ query: of.query, direction: 'row' });
      const rows = (/** @type {string} */ trace) =>
        page.source.rows({ ...of, trace }, of.layers - 1, view, stop);
      return { now: of, rows: [await rows(before), await rows(of.trace)] };
    },
    isOne && ['rows', { now, before: panel.trace }],
  );
  const last = subject.layers - 1;
  const left = [...edits.heads.keys()]
    .map((key) => key.split('.').map(Number))
    .flatMap(([layer, head]) => (layer === last ? [head] : []));
  const maps = useMemo(() => value && mapsOf(value, new Set(left)), [value, left.join()]);
  const isSeen = maps && value.now.photo === subject.photo; // never one's patches with another's pixels
  const on = left.length
    ? `the ${subject.heads - left.length} heads that are on`
    : `all ${subject.heads} heads`;
  const where = `Layer ${last}, mean of ${on}`;
  const isBusy = isWaiting || (state !== 'done' && state !== 'failed');
  const title = maps && movedWords(maps, queryOf(subject.query, subject));
  return html`<div class="vv-surgery-maps-part vv-stack" aria-busy=${String(isBusy)}>
    <h3 class="vv-heads-sub vv-surgery-maps-title">
      ${isBusy ? computing(where) : title ? `${where}: ${title}` : where}
    </h3>
    <div class="vv-surgery-maps">
      ${
        isSeen &&
        ['before', 'now', 'difference'].map((name) => {
          const isChange = name === 'difference';
          const lit = {
            ...{ subject: value.now, photo, isChange, look: 'vv-map vv-layer' },
            values: isChange ? maps.change : (maps[/** @type {'before' | 'now'} */ (name)] ?? maps.none),
            top: isChange ? maps.most : maps.top,
          };
          return html`<figure key=${name} class=${`vv-plate-figure vv-stack vv-surgery-${name}`}>
            <${PhotoStage} photo=${value.now} look="vv-plate" under=${html`<${LitBox} ...${lit} />`} />
            <figcaption class="vv-small">${name}</figcaption>
          </figure>`;
        })
      }
    </div>
    <p class="vv-surgery-maps-words vv-small">${error ?? (maps && scaleWords(maps))}</p>
  </div>`;
}

/** The two maps with their common scale, and what changed. @param {{now: Subject, rows: Float32Array[]}} both @param {Set<number>} left heads that are off now */
function mapsOf({ now: subject, rows }, left) {
  const [before, now] = [meanMap(rows[0], subject, new Set()), meanMap(rows[1], subject, left)];
  const none = new Float32Array(subject.grid[0] * subject.grid[1]);
  const top = topOf(Float32Array.from([...(before ?? []), ...(now ?? [])]).sort()) || 1;
  const change = none.map((_, i) => (now?.[i] ?? 0) - (before?.[i] ?? 0));
  const most = change.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  return { before, now, none, top, change, most };
}

/**
 * The mean over heads of what each patch gets; null where there is none to take it over.
 * @param {Float32Array} rows [heads, tokens] @param {Subject} subject @param {Set<number>} left out of it
 */
export function meanMap(rows, { heads, tokens, prefix, grid }, left) {
  const patches = grid[0] * grid[1];
  const map = new Float32Array(patches);
  for (let head = 0; head < heads; head++) {
    if (left.has(head)) continue;
    const from = head * tokens + prefix.length;
    for (let i = 0; i < patches; i++) map[i] += rows[from + i] / (heads - left.size);
  }
  return left.size < heads ? map : null;
}

/** @typedef {Pick<ReturnType<typeof mapsOf>, 'before' | 'now' | 'change' | 'most' | 'top'>} Compared */

/** How much of what the query gives to patches has gone elsewhere. @param {Compared} maps @param {string} query */
export function movedWords({ now, change, most }, query) {
  if (!now) return `no head is on, and ${query} looks at nothing`;
  if (most < SAME) return `${query} looks where it did`;
  const [more, less] = [1, -1].map((sign) => change.reduce((sum, one) => sum + Math.max(0, sign * one), 0));
  return `${query} looks elsewhere with ${percent(Math.max(more, less))} of its attention`;
}

/** What the difference shows, in numbers. @param {Compared} maps */
export function scaleWords({ now, most, top }) {
  if (!now) return '';
  if (most < SAME) return 'An edit changes where later layers look, not its own.';
  return (
    `Before and now share one scale, fully lit from ${percent(top)} of the attention on a patch. Orange: more attention now, ` +
    `blue: less, by at most ${percent(most)} of it.`
  );
}

/** The slider of the layer that is seen, and every layer whose temperature is another. @param {{seen: Seen}} props */
function Temperatures({ seen: { subject, edits, edit, warmed } }) {
  const { temperatures } = edits;
  const layer = Math.min(warmed.value, subject.layers - 1);
  const value = temperatures.get(layer) ?? 1;
  const words = value === 1 ? '1' : `${value}, ${value < 1 ? 'sharper' : 'more even'}`;
  const others = [...temperatures].filter(([, degree]) => degree !== 1).sort(([a], [b]) => a - b);
  const moved = (/** @type {any} */ { currentTarget }) => {
    const degree = temperatureOf(Number(currentTarget.value));
    const to = (/** @type {Edits} */ before) => ({
      ...before,
      temperatures: new Map(before.temperatures).set(layer, degree),
    });
    edit(to, { movement: `temperature ${layer}` });
  };
  return html`<div class="vv-card vv-row">
    <label class="vv-field"
      >temperature of layer
      <select
        class="vv-surgery-layer vv-control"
        value=${String(layer)}
        onChange=${(/** @type {any} */ { currentTarget }) => (warmed.value = Number(currentTarget.value))}
      >
        ${Array.from({ length: subject.layers }, (_, one) => html`<option key=${one} value=${String(one)}>${one}</option>`)}
      </select></label
    >
    <input
      class="vv-surgery-warmth"
      type="range"
      min="-3"
      max="3"
      step="0.25"
      value=${String(Math.log2(value))}
      aria-label="temperature of the layer"
      aria-valuetext=${words}
      onInput=${moved}
    />
    <output class="vv-surgery-degree vv-number">${words}</output>
    ${
      others.length > 0 &&
      html`<p class="vv-surgery-warm vv-small">
        ${`Temperatures: ${others.map(([one, degree]) => `layer ${one}: ${degree}`).join(', ')}.`}
      </p>`
    }
  </div>`;
}
