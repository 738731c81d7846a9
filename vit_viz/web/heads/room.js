// The Heads tab: every head as a small photo with one measure and a name, as a switch, as a matrix, or by depth; the head under the
// pointer, or the chosen one, in detail.

import { LayerStore } from '../../explorer/layers.js';
import { initialView, updateView } from '../../explorer/state.js';
import { askForFigure } from '../../explorer/source.js';
import { editsIn, wordsOf } from '../kit/edits.js';
import { opened, thePage } from '../kit/page.js';
import { Found, JobLine, Problem, Toggle } from '../kit/parts.js';
import { computed, html, render, signal, useLayoutEffect, useMemo, useRef, useState } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
import { chosenIn } from '../look/keeper.js';
import { Causal } from './causal.js';
import { Detail } from './detail.js';
import { editing } from './editing.js';
import { atlasFinding, depthFinding } from './findings.js';
import { usePhoto, useRows } from './maps.js';
import { Matrix, OPTIONS } from './matrix.js';
import { countsOf, Legend, legendWords } from './names.js';
import { OF_THE_CLASS, questionOf, useNumbers } from './numbers.js';
import { Plot } from './plot.js';
import { Surgery } from './surgery.js';
import { HeadGrid } from './table.js';
import { isSame, orderOf, placeOf } from './words.js';
/** @import { Answer } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Signal } from '../kit/preact.js' */
/** @import { Store } from '../kit/store.js' */
/** @import { Edits } from '../kit/edits.js' */
/** @import { Editing } from './editing.js' */
/** @import { Rule } from './names.js' */
/** @import { Marks } from './table.js' */
/** @import { Place, Table } from './words.js' */

/**
 * What the heads are of: the answer of vit_viz/ui/opened.py, which is `opened`, and the chosen query.
 * @typedef {import('../../explorer/geometry.js').Trace & {about: any, query: string, opened: unknown}} Subject
 *
 * What of the link is looked at; subject, targeted: parts of it, as links.
 * @typedef {Record<'face' | 'measure' | 'how' | 'order' | 'subject' | 'targeted' | 'query', string> & {layer: number, head: number | string}} Look
 *
 * @typedef {ReturnType<typeof useNumbers>} Numbers
 * @typedef {{name: string, group: string, label: string, sentence: string}} MeasureWords
 * @typedef {{measures: MeasureWords[], rules: Rule[], margin: number}} Props
 */

/** Before there is something to look at. */
const NONE = /** @type {Subject} */ ({ trace: '', layers: 0, heads: 0, tokens: 0 });

/** @type {[string, string][]} */
const FACES = [
  ['atlas', 'atlas'],
  ['surgery', 'surgery'],
  ['matrix', 'matrix'],
  ['depth', 'by depth'],
];
/** Those that the source of the page has answers for: switching heads off needs the model. @param {Page['source']} source */
const facesOf = ({ answers }) => FACES.filter(([name]) => name !== 'surgery' || answers('edited'));

/** @type {[string, string][]} */
const ORDERS = [
  ['head', 'by head'],
  ['value', 'largest first'],
];

/** @type {import('../../ui/kit/elements.js').Mount<Props>} */
export function mount(element, props) {
  render(html`<${Heads} page=${thePage()} ...${props} />`, element);
}

/** What is looked at; while another tab is open, or the next photo on its way, it stays as it was. @param {Page} page @param {Signal<Answer>} open */
function lookIn({ store, source }, open) {
  const { view } = store;
  let last = /** @type {Look | null} */ (null);
  return computed(() => {
    if (view.tab.value !== 'heads' && last) return last;
    const { state, value } = open.value;
    const { layer, head, query } =
      state === 'done'
        ? updateView(initialView(value), chosenIn(store, value), value)
        : (last ?? { layer: 0, head: 0, query: '' });
    const options = ['face', 'measure', 'how', 'order'].map((name) => [name, view[name].value]);
    const isThere = facesOf(source).some(([name]) => name === view.face.value);
    last = /** @type {Look} */ ({
      ...{ layer, head, query, ...Object.fromEntries(options), ...(!isThere && { face: FACES[0][0] }) },
      ...{ subject: store.subject(), targeted: store.linkOf(TARGETED) },
    });
    return last;
  });
}

/** @param {Props & {page: Page}} props */
export function Heads({ page, measures, rules, margin }) {
  const { store, source, ask } = page;
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const isLinked = useRef(
    OPTIONS.some((name) => store.view[name].peek() !== store.fields.get(name)?.default),
  ); // by what opened the page
  const { open, looked, marks, warmed, editor } = useMemo(() => {
    const answer = opened(page, 'heads');
    const seen = lookIn(page, answer);
    return {
      ...{ open: answer, looked: seen, editor: editing(page) },
      marks: {
        chosen: computed(() => headOf(seen.value)),
        hovered: signal(/** @type {Place | null} */ (null)),
      },
      warmed: signal(0), // the layer whose temperature is seen
    };
  }, [page]);
  const look = looked.value;
  const { face, query } = look;
  const { state, value, error = '' } = open.value;
  const isOpening = state === 'none' || state === 'pending';
  const subject = useMemo(
    () => /** @type {Subject | null} */ (value ? { ...value, query, opened: value } : null),
    [value, query],
  );
  const layers = useMemo(
    () => subject && new LayerStore(subject, source, { ready: () => {}, failed: () => {} }),
    [subject?.trace],
  );
  useLayoutEffect(() => () => layers?.close(), [layers]);
  useLayoutEffect(() => root.current?.closest('#vv-heads-faces')?.setAttribute('data-face', face));
  const numbers = useNumbers(ask, subject ?? NONE, look, isOpening);
  const hover = (/** @type {Place | null} */ place) => {
    if (!isSame(place, marks.hovered.peek())) marks.hovered.value = place;
  };
  const first =
    numbers.work.isRunning || numbers.job.isRunning || numbers.isOld
      ? {}
      : firstOf(numbers.table, look.order);
  const isOpen = store.view.tab.value === 'heads' && !isOpening;
  useLayoutEffect(() => {
    // a link that names no layer shows the heads' first, where they have an order
    if (isOpen && store.view.layer.peek() === null) store.set(first);
  }, [isOpen, store.view.layer.value, JSON.stringify(first)]);
  const seen = { page, look, numbers, editor, marks, warmed, measures, rules, margin, isOpening };
  return html`<div
      class="vv-heads vv-room"
      ref=${root}
      data-face=${face}
      ...${useProgress(numbers, Boolean(error), isOpening && subject !== null, isOpening ? '' : look.measure)}
      onPointerMove=${(/** @type {PointerEvent} */ { pointerType, target }) => pointerType === 'touch' || hover(placeOf(target))}
      onPointerLeave=${() => hover(null)}
      onFocusIn=${(/** @type {Event} */ { target }) => placeOf(target) && hover(placeOf(target))}
      onFocusOut=${(/** @type {FocusEvent} */ { relatedTarget }) => hover(placeOf(relatedTarget))}
    >
      <${Told} ...${{ refused: error, numbers, isFirst: !subject }} />
      <${Top} ...${{ store, source, look, numbers, measures, about: subject?.about }} />
      <${JobLine} look="vv-heads-work vv-row" job=${numbers.work} end=${numbers.stop} />
      ${
        subject && face !== 'matrix'
          ? html`<${Main} ...${{ ...seen, subject, layers }} />`
          : html`<div class="vv-heads-main vv-columns" hidden></div>`
      }
    </div>
    ${
      subject &&
      face === 'matrix' &&
      html`<div id="vv-head-matrix">
        <${Matrix}
          key=${subject.trace}
          ...${{ store, subject, layers, layer: look.layer, head: look.head, isLinked }}
        />
      </div>`
    }`;
}

/** The head that is looked at; of all heads of a layer together the first. @param {Look} look @returns {Place} */
function headOf({ layer, head }) {
  return { layer, head: typeof head === 'number' ? head : 0 };
}

/**
 * Marks of how far the room is, for its style and for whoever waits for it.
 * @param {Numbers} numbers @param {boolean} isRefused @param {boolean} isLeaving whether what is seen is of the photo before
 * @param {string} measure
 */
function useProgress({ measures, isLong, error, isOld, table }, isRefused, isLeaving, measure) {
  const drawn = useRef(/** @type {'photos' | 'all' | undefined} */ (undefined));
  if (measures || error || isRefused) drawn.current = 'all';
  else if (isLong) drawn.current ??= 'photos';
  return {
    'data-ready': table && measures && !isOld ? measure : '',
    'data-old': isLeaving || isOld ? '' : undefined,
    'data-drawn': drawn.current,
  };
}

/** What went wrong, and what is waited for. @param {{refused: string, numbers: Numbers, isFirst: boolean}} props */
function Told({ refused, numbers, isFirst }) {
  const waits = refused ? '' : isFirst ? 'Measuring the heads …' : numbers.waits;
  return html`${
      refused
        ? html`<${Problem} key="refused" look="vv-heads-error vv-notice" words=${refused} stays />`
        : html`<${Problem}
            key="error"
            look="vv-heads-error vv-notice"
            words=${numbers.error}
            again=${numbers.retry}
          />`
    }
    <p class="vv-heads-wait vv-quiet" role="status" hidden=${!waits}>${waits}</p>`;
}

/** What is seen, of which measure, in which order. @param {{store: Store, source: Page['source'], look: Look, numbers: Numbers, measures: MeasureWords[], about: any}} props */
function Top({ store, source, look, numbers, measures, about }) {
  const { face, measure, how, order } = look;
  const row = useRef(/** @type {HTMLElement | null} */ (null));
  const go = (/** @type {Record<string, string | number>} */ changed) => store.set(changed, { push: true });
  const save = () => {
    const [name, options] = questionOf(measure, how);
    const towards = OF_THE_CLASS.includes(measure) && { target: store.view.target.peek() || null };
    askForFigure(
      /** @type {HTMLElement} */ (row.current),
      store.saved(name, { ...about, ...options, ...towards }),
    );
  };
  return html`<div class="vv-heads-top-row vv-row" ref=${row}>
    <${Toggle}
      ...${{ name: 'face', look: 'vv-heads-faces', choices: facesOf(source), value: face, label: 'What is seen of the heads' }}
      choose=${(/** @type {string} */ chosen) => go({ face: chosen })}
    />
    ${
      face !== 'matrix' &&
      html`<label class="vv-field" data-option="measure"
        >measure
        <${Measures}
          ...${{ measures, measure, known: numbers.measures, answers: source.answers, choose: (/** @type {string} */ chosen) => go({ measure: chosen, ...firstOf(numbers.measures?.[chosen], order) }) }}
      /></label>`
    }
    ${
      (face === 'atlas' || face === 'surgery') &&
      html`<${Toggle}
        ...${{ name: 'order', look: 'vv-heads-orders', choices: ORDERS, value: order, label: 'Order of the heads of a layer' }}
        choose=${(/** @type {string} */ chosen) => store.set({ order: chosen, ...firstOf(numbers.table, chosen) })}
      />`
    }
    ${
      (face === 'atlas' || face === 'depth') &&
      isKnown(numbers.table) &&
      html`<button type="button" class="vv-button vv-heads-save" data-save onClick=${save}>Save</button>`
    }
  </div>`;
}

/** The head that a new order begins with, which is chosen. @param {Table | null | undefined} table @param {string} order */
function firstOf(table, order) {
  return order === 'value' && table && isKnown(table) ? orderOf(table, order)[0][0] : {};
}

/** Whether there are numbers of some heads. @param {Table | null} table */
function isKnown(table) {
  return Boolean(table?.values.flat().some((value) => value !== null));
}

/**
 * The chooser of measures, in their groups; none can be chosen that this model does not give.
 * @param {{measures: MeasureWords[], measure: string, known: object | null, answers: (name: string) => boolean, choose: (measure: string) => void}} props known: null: not known yet
 */
function Measures({ measures, measure, known, answers, choose }) {
  const groups = [...new Set(measures.map(({ group }) => group))];
  const isInApp = (/** @type {string} */ name) =>
    OF_THE_CLASS.includes(name) && !answers(questionOf(name, '')[0]);
  const isMissing = (/** @type {string} */ name) =>
    isInApp(name) || (known !== null && !(name in known) && !OF_THE_CLASS.includes(name));
  return html`<select
    class="vv-heads-measure vv-control"
    value=${measure}
    onChange=${(/** @type {any} */ { currentTarget }) => choose(currentTarget.value)}
  >
    ${groups.map(
      (group) =>
        html`<optgroup key=${group} label=${group}>
          ${measures
            .filter((one) => one.group === group)
            .map(
              ({ name, label }) =>
                html`<option
                  key=${name}
                  value=${name}
                  disabled=${isMissing(name)}
                  selected=${name === measure}
                >
                  ${label}${isInApp(name) && ' (in the app)'}
                </option>`,
            )}
        </optgroup>`,
    )}
  </select>`;
}

/**
 * What all faces but the matrix show.
 * @typedef {ReturnType<typeof useSeen>} Seen
 *
 * @typedef {object} Shared
 * @property {Page} page
 * @property {Subject} subject
 * @property {Look} look
 * @property {Numbers} numbers
 * @property {Editing} editor
 * @property {Marks} marks
 * @property {Signal<number>} warmed
 * @property {LayerStore} layers
 * @property {MeasureWords[]} measures
 * @property {Rule[]} rules
 * @property {number} margin by what share a threshold is moved to see whether another name holds
 * @property {boolean} isOpening
 */

/** What follows for the faces from what is told. @param {Shared} shared */
function useSeen(shared) {
  const { page, subject, look, numbers, editor, marks, warmed, measures } = shared;
  const { store, source, turn } = page;
  const lost = useRef(''); // the trace that was opened again, because the server did not keep it
  const rows = useRows(source, subject, (trace) => {
    if (lost.current === trace) return false;
    lost.current = trace;
    turn.value += 1;
    return true;
  });
  const name = numbers.target?.name;
  const table = useMemo(() => {
    const raw = numbers.table ?? numbers.nothing;
    return { ...raw, unit: name ? raw.unit.replace(/class \d+(?: \(.*\))?/, () => name) : raw.unit }; // the class by its name
  }, [numbers.table, numbers.nothing, name]);
  const { label = '', sentence = '' } = measures.find((one) => one.name === look.measure) ?? {};
  const words = editor.words.value;
  return {
    ...{
      ...shared,
      rows,
      table,
      label,
      sentence,
      photo: usePhoto(subject.photo),
      edits: useMemo(() => editsIn(words, subject), [words, subject]),
      room: useRef(0), // width of the grid, once it is known
    },
    isOfClass: OF_THE_CLASS.includes(look.measure),
    choose(/** @type {Place} */ place) {
      marks.hovered.value = null;
      warmed.value = place.layer;
      store.set({ ...place });
    },
    go: (/** @type {string} */ face) => store.set({ face }, { push: true }),
    /** Edits the model, on top of what was clicked since. @param {(edits: Edits) => Edits} to @param {Parameters<Editing['change']>[1]} [how] */
    edit: (to, how) => editor.change(wordsOf(to(editsIn(editor.words.peek(), subject))), how),
  };
}

/** The faces that are about all heads: the grid as an atlas or as switches, or the plot, with what stands beside them. @param {Shared} props */
function Main(props) {
  const seen = useSeen(props);
  const { face, layer } = seen.look;
  const { isOld, work } = seen.numbers;
  const { rows } = seen;
  useLayoutEffect(() => void rows.want(layer), [rows, layer]);
  return html`<div class="vv-heads-main vv-columns" aria-busy=${String(isOld && work.isRunning)}>
    ${
      face === 'surgery'
        ? html`<${Surgery} seen=${seen} />`
        : html`<${Detail} seen=${seen} />
            <div class="vv-heads-left vv-stack"><${face === 'depth' ? Depth : Atlas} seen=${seen} /></div>`
    }
  </div>`;
}

/** The title of a face, with what its measure is. @param {{seen: Seen, title: string}} props */
function Titled({ seen, title }) {
  const { isOld, table, job } = seen.numbers;
  const isPending = isOld || seen.isOpening || !table || (job.isRunning && !isKnown(table));
  return html`<${Found} look="vv-heads-found" words=${title} pending=${isPending && seen.label} />
    <p class="vv-heads-sentence vv-quiet vv-column">${seen.sentence}</p>
    ${seen.isOfClass && html`<${Causal} seen=${seen} />`}`;
}

/** @param {{seen: Seen}} props */
function Atlas({ seen }) {
  const { numbers, rules, table, label, isOfClass, look } = seen;
  const { names, measures, target } = numbers;
  const [chosen, choose] = useState(''); // the name whose heads stand out
  const counts = useMemo(() => countsOf(names, rules), [names]);
  const shown = counts.some(({ kind }) => kind === chosen) ? chosen : '';
  const of = isOfClass ? { name: target?.name ?? '', isEstimate: look.measure === 'estimate' } : null;
  return html`<${Titled} seen=${seen} title=${atlasFinding(table, label, of)} />
    <${Legend} counts=${counts} shown=${shown} show=${choose} />
    <${HeadGrid} seen=${seen} shown=${shown} />
    ${measures && html`<p class="vv-heads-names-words vv-small">${legendWords(names, rules, shown)}</p>`}`;
}

/** @param {{seen: Seen}} props */
function Depth({ seen }) {
  const { table, label } = seen;
  return html`<${Titled} seen=${seen} title=${depthFinding(table, label)} />
    ${isKnown(table) && html`<${Plot} seen=${seen} />`}`;
}
