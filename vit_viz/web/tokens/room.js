// The Tokens tab: a table of small photos, a row for each question and a column for each layer, and the chosen one large. While the
// pointer moves, nothing is asked of the server: the cosines of the pointed patch with all others are computed here.

import { patchQuery } from '../../explorer/geometry.js';
import { decodeTable } from '../../explorer/paint.js';
import { askForFigure } from '../../explorer/source.js';
import { asked } from '../kit/ask.js';
import { STOPPED } from '../kit/job.js';
import { opened, thePage } from '../kit/page.js';
import { JobLine, Problem, useJob } from '../kit/parts.js';
import { computed, html, render, useLayoutEffect, useMemo, useSignal, useState } from '../kit/preact.js';
import { Controls } from './choices.js';
import { Held } from './held.js';
import { Large, Second, readBox } from './large.js';
import { Added, Panel } from './panels.js';
import { Scene, withChoice } from './scene.js';
import { Table } from './table.js';
/** @import { Option } from '../../explorer/options.js' */
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Job } from '../kit/job.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Signal } from '../kit/preact.js' */
/** @import { Measure } from './questions.js' */
/** @import { Options } from './scene.js' */

/**
 * The photo as it can be drawn, another object whenever that is to be done anew: it was loaded, or the window has another size.
 * @typedef {{image: HTMLImageElement | null}} Ready
 *
 * What the parts of the room share.
 * @typedef {object} Parts
 * @property {Scene | null} scene
 * @property {Options} options what is chosen
 * @property {Option[]} schema of what is chosen here
 * @property {Signal<Ready>} ready
 * @property {Signal<boolean>} boxing whether a box is drawn
 * @property {Signal<Set<Measure>>} folded rows
 * @property {Signal<number[]>} seen columns, the table being wider than its box; all where nobody knows
 * @property {(chosen: Partial<Options>) => void} choose
 * @property {(query: string | number) => void} pin a token for the whole page: a patch by its index, another one by its name
 */

const DRAWN = ['style', 'alpha', 'smooth']; // what is chosen of all maps, wherever they are
const NO_BOX = 'A box is left,top,right,bottom in pixels, as 20,10,120,90.';

/** @type {Mount<{tables: Record<string, string>, options: Option[]}>} */
export function mount(element, { tables, options }) {
  render(
    html`<${Tokens} ...${{ page: thePage(), colours: decodeTable(tables.viridis), schema: options }} />`,
    element,
  );
}

/**
 * What is opened, asked and shown. While another photo is on its way, or another tab is open, what is shown stays as it is.
 * @param {Page} page @param {Uint32Array} colours @param {Option[]} schema
 */
function shownOf(page, colours, schema) {
  const { store, source, ask } = page;
  const { view } = store;
  /** The options that are chosen here, by the names of links. */
  const links = new Map(
    [...schema, ...DRAWN.map((name) => ({ name, link: name }))].map(({ name, link }) => [name, link]),
  );
  /** @type {Signal<any>} */
  const options = computed(() =>
    Object.fromEntries([...links].map(([name, link]) => [name, view[link].value])),
  );
  const open = opened(page, 'tokens');
  const isSeen = computed(() => {
    const { state, value } = open.value;
    return view.tab.value === 'tokens' && state === 'done' && value.view === store.subject();
  });
  const target = computed(() => view.target.value.split('-')[0]);
  const aim = () => {
    const link = new URLSearchParams(store.subject());
    if (target.value) link.set('target', target.value);
    return link.toString();
  };
  const classes = asked(
    async (name, body, stop) => {
      const of = { trace: open.peek().value.trace, target: target.peek() };
      const told = await ask(name, body, stop);
      // of a class that nobody chose each patch shows its likeliest
      return { of, told: { ...told, single: true, ...(!of.target && { chosen: null }) } };
    },
    () => (isSeen.value && view.tokens.value === 'lens' ? ['target', { view: aim() }] : null),
  );
  /** @type {Scene | null} */
  let last = null;
  const scene = computed(() => {
    if (!isSeen.value) return last;
    const { value } = open.value;
    const { of, told } = classes.value.value ?? {};
    const hasClasses = view.tokens.value === 'lens' && of?.trace === value.trace;
    const isOfTarget = of?.target === target.value; // else they are on their way, and so is its name
    const subject = {
      ...value,
      query: view.q.value || firstQuery(value),
      roles: ['tokens', ...(value.head_dim ? ['queries', 'keys'] : [])],
      target: target.value,
      classes: hasClasses ? { ...told, ...(!isOfTarget && { name: '' }) } : null,
      pictures: value.pictures.filter((/** @type {{id: string}} */ { id }) => id !== value.image),
    };
    const held = last?.subject.trace === value.trace ? last?.held : new Held(value, ask, source);
    return (last = new Scene(subject, options.value, /** @type {Held} */ (held), colours));
  });
  return { links, options, open, isSeen, classes, scene };
}

/** What is looked at before anybody has chosen: a patch that is worth it, since most questions here are about patches. @param {any} value */
function firstQuery({ opening, grid, default_query: usual }) {
  return opening.patch === null ? usual : patchQuery([opening.patch], grid[1]);
}

/**
 * Fetches what the open rows need and is not here, the chosen one first, then what takes a while beside it.
 * @param {Pick<Parts, 'scene' | 'folded' | 'seen'>} parts @param {boolean} isSeen @param {Job} job
 */
function useFetching({ scene, folded, seen }, isSeen, job) {
  const held = scene?.held;
  const next = (isSeen && scene?.next(folded.value, seen.value)) || null;
  const { measure, more } = scene ?? { measure: '', more: null };
  const failed = held?.errorOf(measure);
  const running = scene && runningOf(scene, isSeen ? next?.row !== measure : job.isRunning);
  useLayoutEffect(() => () => held?.end.abort(), [held]);
  useLayoutEffect(() => {
    for (const row of [measure, more?.row ?? '']) held?.forgive(row); // what failed is tried again
  }, [scene]);
  useLayoutEffect(() => {
    if (!running || !held) return;
    const { row, piece, words } = running;
    job
      .follow((stop, tell) => held.fetchAnswer(piece, stop, tell), { words })
      .then(
        () => held.settle(row),
        ({ message }) => held.settle(row, message), // none where it is not wanted any more
      );
    return () => job.end();
  }, [held, running?.piece.key]);
  useLayoutEffect(() => {
    if (next) void held?.fetch(next.row, next.piece, next.wanted);
  }, [held, next?.piece.key]);
  return { failed, waiting: next?.row, isReady: isSeen && !next && !running && !failed };
}

/** What takes a while and is to be computed now, once the photos of its row are here. @param {Scene} scene @param {boolean} isNext */
function runningOf({ more, held, measure }, isNext) {
  if (!more || !isNext || held.known(more.piece) || held.errorOf(more.row) || held.errorOf(measure))
    return null;
  return more;
}

/** @param {{page: Page, colours: Uint32Array, schema: Option[]}} props */
export function Tokens({ page, colours, schema }) {
  const { store, ask, turn } = page;
  const shown = useMemo(() => shownOf(page, colours, schema), [page]);
  const folded = useSignal(/** @type {Set<Measure>} */ (new Set(['segments'])));
  const seen = useSignal(/** @type {number[]} */ ([]));
  const ready = useSignal(/** @type {Ready} */ ({ image: null }));
  const boxing = useSignal(false);
  const [refused, setRefused] = useState({ of: /** @type {Scene | null} */ (null), times: 0 }); // a box that is none
  const job = useJob();
  const scene = shown.scene.value;
  const options = scene?.options ?? shown.options.value;
  const { token_measure: measure } = options;
  const { state, error } = shown.open.value;
  useLayoutEffect(() => {
    if (folded.peek().has(measure))
      folded.value = new Set([...folded.peek()].filter((one) => one !== measure));
  }, [measure]);
  const { failed, waiting, isReady } = useFetching({ scene, folded, seen }, shown.isSeen.value, job);

  const [choose, pin] = useMemo(() => {
    const chooses = (/** @type {Partial<Options>} */ chosen) => {
      if (chosen.token_box && !readBox(chosen.token_box))
        return setRefused(({ times }) => ({ of: scene, times: times + 1 }));
      const all = Object.entries(scene ? withChoice(scene, chosen) : chosen);
      store.set(Object.fromEntries(all.map(([name, value]) => [shown.links.get(name), value])));
    };
    const pins = (/** @type {string | number} */ query) => {
      scene?.held.leave();
      store.set({ q: typeof query === 'number' ? patchQuery([query], scene?.cols ?? 1) : query });
    };
    return [chooses, pins];
  }, [scene]);
  const parts = { scene, options, schema, ready, boxing, folded, seen, choose, pin };
  const again = () => void (turn.value += 1);
  const isNoBox = refused.times > 0 && refused.of === scene;
  const problem = isNoBox
    ? { key: refused.times, words: NO_BOX }
    : { words: error ?? failed, again, stays: state === 'failed' };
  return html`<div class="vv-room vv-tokens" data-ready=${isReady ? measure : undefined}>
    <${Problem} ...${problem} look="vv-tokens-error vv-notice" />
    <div class="vv-tokens-main vv-columns" hidden=${state === 'failed'} data-waits=${scene ? undefined : ''}>
      <${Large} ...${parts} />
      <div class="vv-tokens-right vv-stack">
        <div class="vv-tokens-top">
          <h2 class="vv-title vv-caption">What becomes of every patch, layer by layer</h2>
          <p class="vv-small">
            Rows are questions, columns are layers.${' '}
            <span class="vv-to-point"
              >Point at a patch, and every row answers for it; a click makes a photo the large one.</span
            ><span class="vv-to-tap"
              >Tap a patch, and every row answers for it; a tap on a small photo makes it the large one.</span
            >
          </p>
        </div>
        <${Table} ...${{ ...parts, waiting }} />
        ${scene && html`<${Second} ...${{ scene, ready }} /><${Panel} scene=${scene} />`}
      </div>
      <${Controls}
        ...${{ ...parts, classes: shown.classes.value.value?.told ?? {} }}
        aim=${(/** @type {string} */ target) => store.set({ target })}
        save=${(/** @type {Element} */ button) => scene && askForFigure(button, store.saved(...scene.saved))}
        find=${async (/** @type {string} */ text, /** @type {AbortSignal} */ stop) =>
          (await ask('target', { view: store.subject(), find: text }, stop)).hits}
      >
        <${JobLine} job=${job} end=${() => job.end(STOPPED)} look="vv-tokens-job vv-row" />
      <//>
      ${scene && html`<${Added} ...${{ scene, again }} />`}
    </div>
  </div>`;
}
