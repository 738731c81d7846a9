// The table of small photos: a row for each question, a column for each layer. One photo is chosen, and is the large one.

import { cellAt, pointerIn } from '../../explorer/geometry.js';
import { Grid } from '../kit/grid.js';
import { Problem } from '../kit/parts.js';
import { effect, html, useLayoutEffect, useMemo, useRef, useSignal } from '../kit/preact.js';
import { Plate } from './plate.js';
import { MEASURES, offsetOf } from './scene.js';
/** @import { Drawing, Measure } from './questions.js' */
/** @import { Parts } from './room.js' */
/** @import { Scene } from './scene.js' */

const SLICE = 8; // ms of drawing in one frame: what is left is drawn in the next

/** Of each question its name, what unfolds its row, and what it is. @type {Record<Measure, {label: string, row: string, about: any}>} */
export const WORDS = {
  components: {
    label: 'colours',
    row: 'colours',
    about: 'by what patches differ most; the same colours in every layer',
  },
  similarity: {
    label: 'alike',
    row: 'what is alike',
    about: html`<span class="vv-to-point">to the patch under the pointer</span
      ><span class="vv-to-tap">to the chosen patch</span>`,
  },
  norms: { label: 'length', row: 'lengths', about: 'of each token; this patch beside the median' },
  lens: {
    label: 'says',
    row: 'what the head would say',
    about: 'what the head would say; dim where it is not sure',
  },
  layers: { label: 'change', row: 'changes', about: 'how far each layer turns it' },
  segments: { label: 'segments', row: 'segments', about: 'patches that belong together' },
};

/** A short name of a column: what lies before it is told once, over all. */
const headOf = (/** @type {number} */ column) => (column ? `after ${column - 1}` : 'input');

/** @param {Parts & {waiting: Measure | undefined}} props waiting: the question that is being answered */
export function Table({ scene, options, waiting, folded, seen, ready, choose }) {
  const box = useRef(/** @type {any} */ (null));
  const canvases = useRef(/** @type {Map<string, HTMLCanvasElement>} */ (new Map())); // by question and state
  const size = useRef({ width: 0, height: 0 }); // of a small photo
  const columns = scene ? Array.from({ length: scene.subject.layers + 1 }, (_, column) => column) : [];
  const small = (/** @type {Measure} */ one, /** @type {number} */ state) =>
    canvases.current.get(`${one} ${state}`);

  /** How wide the names of the rows are, and where the middle of each column is. */
  const middles = () => {
    const [fixed, ...all] = box.current.querySelectorAll('thead th');
    return [
      fixed.offsetWidth,
      ...all.map((/** @type {HTMLElement} */ one) => one.offsetLeft + one.offsetWidth / 2),
    ];
  };
  /** What is seen of the table, and how large. */
  const look = () => {
    const { clientWidth: width, scrollLeft: left } = box.current;
    const [fixed, ...all] = middles();
    const now = columns.filter(
      (column) => !width || (all[column] > left + fixed && all[column] < left + width),
    );
    if (now.join() !== seen.peek().join()) seen.value = now;
    const open = MEASURES.find((one) => !folded.peek().has(one));
    const place = open && small(open, 0)?.parentElement?.getBoundingClientRect();
    if (!place || place.width < 1) return;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    size.current = { width: Math.round(place.width * ratio), height: Math.round(place.height * ratio) };
  };
  useLayoutEffect(() => {
    look();
    const resized = () => {
      look();
      ready.value = { ...ready.peek() };
    };
    window.addEventListener('resize', resized);
    return () => window.removeEventListener('resize', resized);
  });
  useLayoutEffect(() => {
    if (!scene || seen.peek().includes(scene.column)) return;
    const [fixed, ...all] = middles();
    box.current.scrollLeft = all[scene.column] - (box.current.clientWidth + fixed) / 2;
  }, [scene]);
  usePainting({ scene, folded, seen, ready }, size, small);

  const pointed = (/** @type {PointerEvent} */ event) => {
    const place = /** @type {Element} */ (event.target).closest('.vv-tokens-small');
    const cell = scene && place && cellAt(pointerIn(event, place), scene.subject.grid);
    scene?.held.point(cell ? cell[0] * scene.cols + cell[1] : null);
  };
  const fold = (/** @type {Measure} */ one) => {
    const next = new Set(folded.value);
    if (!next.delete(one)) next.add(one);
    folded.value = next;
  };
  const aspect = scene && scene.subject.crop.region[3] / scene.subject.crop.region[2];
  const corner = html`<span class="vv-unseen">Question</span
    ><span class="vv-tokens-wait vv-small" role="status"
      >${waiting && html`Computing <span class="vv-unseen">${WORDS[waiting].label}</span> …`}</span
    >`; // on one line, so that no row moves
  const rowOf = (/** @type {Measure} */ one) => {
    const isFolded = folded.value.has(one);
    const { label, row, about } = WORDS[one];
    const head = html`<div class="vv-tokens-row">
      <button
        class="vv-bare"
        data-value=${one}
        aria-pressed=${String(one === options.token_measure)}
        onClick=${() => choose({ token_measure: one })}
      >
        ${label}
      </button>
      <button
        class="vv-bare vv-tokens-fold"
        data-fold=${one}
        aria-expanded=${String(!isFolded)}
        aria-label="Show the row of ${row}"
        onClick=${() => fold(one)}
      ></button>
      <p class="vv-small">${about}</p>
      <${RowError} scene=${scene} measure=${one} />
    </div>`;
    const cellOf = (/** @type {number} */ column) => {
      const state = column - offsetOf(one, /** @type {Scene} */ (scene).options);
      if (state < 0) return html`<td key=${column} class="vv-tokens-none">–</td>`;
      const key = `${one} ${state}`;
      const keep = (/** @type {HTMLCanvasElement | null} */ node) =>
        node ? canvases.current.set(key, node) : canvases.current.delete(key);
      return html`<td key=${column}>
        <${Cell} ...${{ scene, measure: one, state, keep, choose, isFolded }} />
      </td>`;
    };
    const more = { 'data-row': one, 'data-folded': isFolded ? '' : undefined };
    return { key: one, head, cells: scene && columns.map(cellOf), more };
  };
  return html`<div
    class="vv-tokens-scroll vv-scroll"
    ref=${box}
    aria-busy=${String(Boolean(waiting))}
    style=${scene && { '--vv-aspect': aspect, '--vv-count': columns.length }}
    onScroll=${look}
    onPointerMove=${pointed}
    onPointerLeave=${() => scene?.held.point(null)}
  >
    <${Grid}
      look="vv-tokens-table"
      label="A row for each question, a column for each layer"
      corner=${corner}
      columns=${columns.map((column) => [headOf(column)])}
      rows=${MEASURES.map(rowOf)}
      more=${{ 'data-option': 'token_measure' }}
    />
  </div>`;
}

/** @param {{scene: Scene, measure: Measure, state: number, keep: (node: HTMLCanvasElement | null) => void, choose: Parts['choose'], isFolded: boolean}} props */
function Cell({ scene, measure, state, keep, choose, isFolded }) {
  const isChosen = measure === scene.measure && state === scene.state;
  return html`<button
    class=${`vv-bare vv-tokens-choice ${isChosen ? 'vv-chosen' : ''}`}
    data-cell="${measure} ${state}"
    aria-pressed=${String(isChosen)}
    tabindex=${isFolded ? undefined : isChosen ? 0 : -1}
    onClick=${() => choose({ token_measure: measure, token_state: state })}
  >
    <span class="vv-tokens-small vv-face">
      <canvas
        role="img"
        ref=${keep}
        aria-label="${WORDS[measure].label}, ${scene.namesOf(measure)[state]}"
      ></canvas>
    </span>
    <${CellWords} ...${{ scene, measure, state }} />
  </button>`;
}

/** @param {{scene: Scene, measure: Measure, state: number}} props */
function CellWords({ scene, measure, state }) {
  const words = scene.say('words', measure, state);
  return html`<span class="vv-tokens-words" title=${words}>${words}</span>`;
}

/** Why a question has no answer, in its own row. @param {{scene: Scene | null, measure: Measure}} props */
function RowError({ scene, measure }) {
  const words = scene?.held.errorOf(measure);
  return words && html`<${Problem} words=${words} look="vv-small vv-error" />`;
}

/**
 * Draws every small photo that is seen and shows something else by now.
 * @param {Pick<Parts, 'scene' | 'folded' | 'seen' | 'ready'>} parts @param {{current: {width: number, height: number}}} size of each
 * @param {(measure: Measure, state: number) => HTMLCanvasElement | undefined} small
 */
function usePainting({ scene, folded, seen, ready }, size, small) {
  const plate = useMemo(() => new Plate(), []);
  const drawn = useMemo(() => /** @type {WeakMap<HTMLCanvasElement, string>} */ (new WeakMap()), []);
  const left = useSignal(0); // counts frames that had no time for all
  const paint = () => {
    const { image } = ready.value;
    const start = performance.now();
    const { width, height } = size.current;
    if (!scene || !image || !plate.prepare(image, scene.subject.crop, { width, height })) return true;
    for (const measure of scene.order(folded.value)) {
      for (const column of seen.value) {
        const state = column - offsetOf(measure, scene.options);
        const canvas = small(measure, state);
        const key = canvas && scene.keyOf(measure, state);
        const full = `${key}|${width}|${height}`;
        if (!canvas || !key || drawn.get(canvas) === full) continue;
        if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
        scene.drawOn(canvas, plate, /** @type {Drawing} */ (scene.drawing(measure, state, false)));
        drawn.set(canvas, full);
        if (performance.now() - start > SLICE) return false; // one at least, so that it ends
      }
    }
    return true;
  };
  useLayoutEffect(
    () =>
      effect(() => {
        void left.value;
        if (paint()) return;
        const frame = requestAnimationFrame(() => (left.value += 1));
        return () => cancelAnimationFrame(frame);
      }),
    [scene, folded.value],
  );
}
