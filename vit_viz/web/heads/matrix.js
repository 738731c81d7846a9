// The matrix of the chosen head, and its strongest links on the photo beside it. Both are computed here from q and k; while the pointer
// moves, nothing is asked of the server.

import { FUSIONS } from '../../explorer/attention.js';
import { ARROWS } from '../../explorer/elements.js';
import { headOf, percent } from '../../explorer/labels.js';
import { clamp, patchQuery, pointerIn, queryTokens } from '../../explorer/geometry.js';
import { endsOf } from '../../explorer/matrix.js';
import { measure } from '../../explorer/paint.js';
import { LIGHT } from '../../explorer/styles.js';
import { byPointer } from '../../ui/kit/elements.js';
import { ColourBar, Found, Problem, Toggle } from '../kit/parts.js';
import { computed, html, useLayoutEffect, useMemo, useRef, useSignal, useState } from '../kit/preact.js';
import { MOST_LINKS, useFilling } from './filling.js';
import { LinkedPhoto, linksOf } from './links.js';
import { useSize } from './maps.js';
import { Panes, Sheet } from './matrix_sheet.js';
import { matrixFinding, mostWords, pairWords, sizeWords } from './matrix_words.js';
/** @import { LayerStore } from '../../explorer/layers.js' */
/** @import { Filling } from '../../explorer/matrix.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { Store } from '../kit/store.js' */
/** @import { Drawn, KnownMatrix } from './links.js' */
/** @import { Subject } from './room.js' */

/** @typedef {[number, number | null]} Pair cells of the query and of the key, where there is one */

const STEP = 1.5; // of a zoom by button or key
const DRAG = 4; // pixels from which a press is a drag
const REST = 300; // milliseconds without a turn of the wheel after which a new gesture begins
const SAID = 400; // milliseconds after which the pair that keys lead to is said
const COUNTS = [5, 10, 20, 50, 100];

/** What of the matrix can be chosen, by names in links. */
export const OPTIONS = Object.freeze(['matrix_scale', 'links', 'strongest', 'zoom']);

/**
 * @param {object} props
 * @param {Store} props.store
 * @param {Subject} props.subject
 * @param {LayerStore} props.layers
 * @param {number} props.layer
 * @param {number | string} props.head
 * @param {{current: boolean}} props.isLinked whether the page was opened by a link to the matrix, which is then brought into sight
 */
export function Matrix({ store, subject, layers, layer, head, isLinked }) {
  const { view } = store;
  const { query } = subject;
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const { filling, axis, error, retry } = useFilling(layers, layer, head, MOST_LINKS);
  const pointed = useSignal(/** @type {Pair | null} */ (null));
  const spoken = useSignal(0);
  const known = {
    ...{ subject, axis, filling, pinned: pinnedTokens(subject) },
    ...{ links: view.links.value, count: view.strongest.value },
  };
  const drawn = useMemo(
    () => computed(() => linksOf(known, pointed.value)),
    [filling, filling?.next, subject, known.links, known.count],
  );
  const isDone = Boolean(filling?.isDone);
  useLayoutEffect(() => {
    if (isDone && isLinked.current) root.current?.scrollIntoView();
    isLinked.current &&= !isDone;
  }, [isDone]);
  const set = (/** @type {Record<string, string | number>} */ changed) => store.set(changed, { soon: true });
  const pin = (/** @type {string} */ chosen) => {
    if (chosen !== query) store.set({ q: chosen }, { push: true });
  };
  const pinPatches = (/** @type {number[]} */ patches) => pin(patchQuery(patches, axis.grid[1]));
  const pinCell = (/** @type {number} */ cell) => {
    const patches = axis.patchesOf(cell);
    if (patches.length) pinPatches(patches);
    else pin(axis.namedOf(cell));
  };
  const counts = COUNTS.includes(known.count) ? COUNTS : [...COUNTS, known.count]; // a link may ask for any number
  const scale = view.matrix_scale.value;
  return html`<div
    class="vv-matrix-part"
    ref=${root}
    data-refused=${error ? '' : undefined}
    data-ready=${isDone ? `${layer}.${head}` : undefined}
  >
    <div class="vv-matrix vv-room">
      <${Problem} words=${error} again=${retry} look="vv-matrix-error vv-notice" />
      <div class="vv-matrix-main vv-columns">
        <${Heading} ...${{ known, head, layer, pointed, drawn, spoken, isRefused: Boolean(error) }} />
        <div class="vv-matrix-left vv-stack">
          <div class="vv-matrix-controls vv-row">
            <${Toggle}
              name="links"
              choices=${[
                ['query', 'links of the query'],
                ['head', 'of the whole head'],
              ]}
              value=${known.links}
              choose=${(/** @type {string} */ chosen) => set({ links: chosen })}
              label="Which links are drawn"
            />
            <${Choice}
              ...${{ label: 'strongest', name: 'count', option: 'matrix_count', values: counts, value: known.count }}
              choose=${(/** @type {string} */ chosen) => set({ strongest: Number(chosen) })}
            />
          </div>
          <${LinkedPhoto}
            ...${{ known, head, pointed, drawn, pin: (/** @type {number | null} */ patch) => pinPatches(patch === null ? [] : [patch]) }}
          />
        </div>
        <${Plane} ...${{ known, head, scale, pointed, pinCell, zoom: view.zoom.value, set }} spoken=${spoken}>
          <${Choice}
            ...${{ label: 'layer', title: 'The layer whose matrix is seen.', values: upTo(subject.layers), value: layer }}
            choose=${(/** @type {string} */ chosen) => store.set({ layer: Number(chosen), head })}
          />
          <${Choice}
            ...${{ label: 'head', title: 'The head whose matrix is seen, or all heads of the layer as one.' }}
            ...${{ values: [...upTo(subject.heads), ...FUSIONS], value: head }}
            choose=${(/** @type {string} */ chosen) =>
              store.set({ layer, head: FUSIONS.includes(chosen) ? chosen : Number(chosen) })}
          />
          <${Toggle}
            name="scale"
            choices=${[
              ['linear', 'linear'],
              ['log', 'logarithmic'],
            ]}
            value=${scale}
            choose=${(/** @type {string} */ chosen) => set({ matrix_scale: chosen })}
            label="Scale of the colours"
          />
        <//>
      </div>
    </div>
  </div>`;
}

function upTo(/** @type {number} */ count) {
  return Array.from({ length: count }, (_, i) => i);
}

/** @returns {number[]} tokens of the pinned query; none of a pool that only the server knows */
function pinnedTokens(/** @type {Subject} */ subject) {
  const tokens = queryTokens(subject.query, subject);
  return Array.isArray(tokens) ? tokens : [];
}

/**
 * @param {{label: string, name?: string, title?: string, option?: string, values: (number | string)[], value: number | string,
 *   choose: (value: string) => void}} props
 */
function Choice({ label, name = label, title, option, values, value, choose }) {
  return html`<label class="vv-field" title=${title} data-option=${option}
    >${`${label} `}<select
      class=${`vv-matrix-${name} vv-control`}
      value=${String(value)}
      onChange=${(/** @type {any} */ { currentTarget }) => choose(currentTarget.value)}
    >
      ${values.map((one) => html`<option key=${one} value=${String(one)}>${one}</option>`)}
    </select></label
  >`;
}

/**
 * The title, and what is pointed at in words; where keys lead, these are said once they rest.
 * @param {{known: KnownMatrix, layer: number, head: number | string, pointed: Signal<Pair | null>, drawn: ReadonlySignal<Drawn | null>,
 *   spoken: Signal<number>, isRefused: boolean}} props
 */
function Heading({ known: { filling, axis, links }, layer, head, pointed, drawn, spoken, isRefused }) {
  const [said, say] = useState('');
  const words = useRef('');
  const isDone = Boolean(filling?.isDone);
  const found = useMemo(() => (filling && isDone ? matrixFinding(layer, filling) : null), [filling, isDone]);
  const pair = pointed.value;
  const of = (/** @type {Filling} */ matrix) => {
    if (pair && pair[1] !== null) return pairWords(matrix, [pair[0], pair[1]]);
    if (pair && links === 'query') return mostWords(axis, pair[0], drawn.value?.links[0]);
    if (!matrix.isDone) return `Computing: row ${matrix.next} of ${axis.cells} …`;
    return byPointer(
      'Point at the matrix or at the photo; click to choose the query.',
      'Tap the matrix or the photo to choose the query.',
    );
  };
  words.current = filling ? of(filling) : isRefused ? '' : 'Fetching the layer …';
  useLayoutEffect(() => {
    if (!spoken.value) return;
    const timer = window.setTimeout(() => say(words.current), SAID);
    return () => clearTimeout(timer);
  }, [spoken.value]);
  const weight = pair && pair[1] !== null ? filling?.at(pair[0], pair[1]) : undefined; // with all digits, for tests
  return html`<div class="vv-matrix-heading">
      <${Found}
        look="vv-matrix-caption"
        words=${found ?? headOf({ layer, head })}
        pending=${!found && !isRefused && headOf({ layer, head })}
      />
      <p class="vv-matrix-status vv-unseen" role="status">${said}</p>
    </div>
    <p class="vv-matrix-readout vv-readout" data-weight=${weight}>${words.current}</p>`;
}

/**
 * The matrix on its canvas, with what zooms it. One pointer shows a pair or moves the matrix, two zoom.
 * @param {object} props
 * @param {KnownMatrix} props.known
 * @param {number | string} props.head
 * @param {string} props.scale of the colours
 * @param {Signal<Pair | null>} props.pointed
 * @param {(cell: number) => void} props.pinCell
 * @param {string} props.zoom what is in sight, as the link says it
 * @param {(changed: Record<string, string | number>) => void} props.set
 * @param {Signal<number>} props.spoken how often keys have moved the pair
 * @param {any} props.children more controls
 */
function Plane({ known, head, scale, pointed, pinCell, zoom, set, spoken, children }) {
  const { axis, filling, pinned } = known;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {HTMLElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const panes = useMemo(() => new Panes(axis), [axis]);
  const sheet = useRef(/** @type {Sheet | null} */ (null));
  const [moves, setMoves] = useState(0);
  const size = useSize(box);
  const log = scale === 'log';
  if (zoom !== panes.seen) panes.see(zoom);
  useLayoutEffect(() => {
    sheet.current ??= new Sheet(/** @type {HTMLCanvasElement} */ (canvas.current), LIGHT);
    sheet.current.measure();
    box.current?.style.setProperty('--vv-margin', `${sheet.current.margin}px`);
    panes.resize(plot.current?.clientWidth ?? 0, sheet.current.unit);
    setMoves((count) => count + 1);
  }, [panes, size]);
  useLayoutEffect(() => void (filling && sheet.current?.begin(axis.cells)), [filling]);
  useLayoutEffect(() => {
    const start = performance.now();
    if (!filling || !sheet.current || panes.size < 1) return; // not on the screen
    sheet.current.paint(filling, log);
    sheet.current.draw(panes, axis);
    measure('vit_viz:matrix', start, filling.isDone ? 'painted' : 'filling');
  }, [filling, filling?.next, log, panes, moves, zoom]);

  /** Another part of the matrix is in sight. */
  const seeElse = () => {
    set({ zoom: panes.seen });
    setMoves((count) => count + 1);
  };
  const point = (/** @type {Pair | null} */ pair) => {
    if (`${pair}` !== `${pointed.peek()}`) pointed.value = pair;
  };
  /** The point under a pointer, in pixels of the panes: down, across. @returns {[number, number]} */
  const pointOf = (/** @type {MouseEvent} */ event) => {
    const [down, across] = pointerIn(event, /** @type {HTMLElement} */ (plot.current));
    return [down * panes.size, across * panes.size];
  };
  /** @returns {[number, number] | null} */
  const pairAt = (/** @type {[number, number]} */ [down, across]) => {
    const [query, key] = [panes.cellAt(down, 0), panes.cellAt(across, 1)];
    return query === null || key === null ? null : [query, key];
  };
  /** Zooms about the pair that is pointed at, or the middle; 0 shows everything. */
  const zoomBy = (/** @type {number} */ factor) => {
    const middle = (/** @type {0 | 1} */ direction) => {
      const cell = pointed.peek()?.[direction] ?? null;
      const place = cell === null ? null : panes.placeOf(cell, direction);
      return place ? (place[0] + place[1]) / 2 : panes.size / 2;
    };
    if (factor) panes.zoomBy(factor, [middle(0), middle(1)]);
    else panes.whole();
    seeElse();
  };
  /** Moves the pair by cells; it begins at the pinned query. */
  const movePair = (/** @type {[number, number]} */ [down, right]) => {
    const start = axis.cellOf[pinned[0] ?? 0];
    const before = pointed.peek();
    const inside = (/** @type {number} */ cell) => clamp(cell, axis.cells - 1);
    /** @type {[number, number]} */
    const pair = before
      ? [inside(before[0] + down), inside((before[1] ?? before[0]) + right)]
      : [start, start];
    panes.reveal(pair[0], 0);
    panes.reveal(pair[1], 1);
    point(pair);
    spoken.value += 1;
    seeElse();
  };
  /** Arrows move the pair, Enter chooses its query, + and - zoom, 0 shows everything, Escape leaves the pair. */
  const typed = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [step, pair] = [ARROWS[event.key], pointed.peek()];
    if (step) movePair(event.shiftKey ? [10 * step[0], 10 * step[1]] : step);
    else if (event.key === 'Enter' && pair) pinCell(pair[0]);
    else if (event.key === '+' || event.key === '=') zoomBy(STEP);
    else if (event.key === '-') zoomBy(1 / STEP);
    else if (event.key === '0') zoomBy(0);
    else if (event.key === 'Escape' && pair) point(null);
    else return;
    event.preventDefault();
  };
  const moving = useMoving({ box, panes, pointOf, seeElse, over: (at) => point(pairAt(at)) });
  const clicked = (/** @type {MouseEvent} */ event) => {
    const pair = pairAt(pointOf(event));
    if (!pair || moving.moved() > DRAG) return;
    point(pair);
    pinCell(pair[0]);
  };
  const left = (/** @type {PointerEvent} */ event) => {
    moving.handlers.onPointerUp(event);
    if (event.pointerType === 'mouse') point(null);
  };
  const ends = filling && endsOf(filling, log);
  const least = ends ? percent(ends[0]) : '';
  const isOpen = filling && ends && filling.low < ends[0] && !least.startsWith('<');
  const low = isOpen ? `${least} or less` : least;
  return html`<div class="vv-matrix-right vv-stack">
    <div class="vv-matrix-controls vv-row">
      ${children}
      <div class="vv-toggle" role="group" aria-label="Zoom of the matrix">
        <button type="button" data-zoom="in" aria-label="zoom in" onClick=${() => zoomBy(STEP)}>+</button>
        <button type="button" data-zoom="out" aria-label="zoom out" onClick=${() => zoomBy(1 / STEP)}>
          −
        </button>
        <button type="button" data-zoom="whole" onClick=${() => zoomBy(0)}>whole</button>
      </div>
    </div>
    <div
      class="vv-matrix-sheet"
      ref=${box}
      tabindex="0"
      role="application"
      aria-label="Matrix of all tokens. Arrows move from pair to pair, with Shift ten at a time; Enter chooses the query, plus and minus zoom, 0 shows all of it, Escape leaves the pair."
      data-zoomed=${panes.zoom > 1 ? '' : undefined}
      ...${moving.handlers}
      onPointerLeave=${left}
      onClick=${clicked}
      onKeyDown=${typed}
    >
      <canvas class="vv-matrix-canvas vv-layer" ref=${canvas} aria-hidden="true"></canvas>
      <div class="vv-matrix-plot" ref=${plot} aria-hidden="true">
        <${Bands}
          ...${{ panes, pointed, pinned: pinned.length === 1 ? axis.cellOf[pinned[0]] : null, moves }}
        />
      </div>
    </div>
    <${ColourBar}
      look="vv-matrix-bar"
      ...${{ low, high: ends ? percent(ends[1]) : '', colours: LIGHT }}
      unit=${ends ? `of the attention${log ? ', logarithmic' : ''}` : ''}
    />
    <p class="vv-matrix-size vv-quiet vv-column">${sizeWords(axis, head)}</p>
  </div>`;
}

/** Lines around the row and the column that are pointed at, and the row of the pinned query. @param {{panes: Panes, pointed: Signal<Pair | null>, pinned: number | null}} props */
function Bands({ panes, pointed, pinned }) {
  const [query = null, key = null] = pointed.value ?? [];
  const band = (
    /** @type {string} */ name,
    /** @type {number | null} */ cell,
    /** @type {0 | 1} */ direction,
  ) => {
    const place = cell === null || panes.size < 1 ? null : panes.placeOf(cell, direction);
    const [start, size] = direction === 0 ? ['top', 'height'] : ['left', 'width'];
    const style = place
      ? { [start]: `${place[0]}px`, [size]: `${Math.max(1, place[1] - place[0])}px` }
      : { display: 'none' };
    return html`<div class=${`vv-matrix-${name} vv-layer`} style=${style}></div>`;
  };
  return [band('pinned', pinned, 0), band('row', query, 0), band('column', key, 1)];
}

/**
 * What pointers and the wheel do with a matrix: one pointer is over a pair or moves what is in sight, two zoom.
 * @param {object} on
 * @param {{current: Element | null}} on.box
 * @param {Panes} on.panes
 * @param {(event: MouseEvent) => [number, number]} on.pointOf
 * @param {() => void} on.seeElse
 * @param {(point: [number, number]) => void} on.over
 */
function useMoving({ box, panes, pointOf, seeElse, over }) {
  const hand = useRef({
    down: /** @type {Map<number, [number, number]>} */ (new Map()),
    moved: 0,
    elsewhere: -Infinity,
  }).current;
  useLayoutEffect(() => {
    // a turn that began elsewhere on the page goes on scrolling the page
    const turned = (/** @type {WheelEvent} */ { target }) => {
      if (!box.current?.contains(/** @type {Node} */ (target))) hand.elsewhere = performance.now();
    };
    window.addEventListener('wheel', turned, { passive: true });
    return () => window.removeEventListener('wheel', turned);
  }, []);
  /** Two fingers: their distance zooms, their middle moves. @param {number} id @param {[number, number]} point */
  const pinch = (id, point) => {
    const fingers = [...hand.down].map(([of, before]) => ({ before, now: of === id ? point : before }));
    const distance = (/** @type {'before' | 'now'} */ when) => {
      const [a, b] = fingers.map((finger) => finger[when]);
      return Math.hypot(a[0] - b[0], a[1] - b[1]);
    };
    const middle = (/** @type {'before' | 'now'} */ when, /** @type {number} */ axis) =>
      (fingers[0][when][axis] + fingers[1][when][axis]) / 2;
    /** @type {[number, number]} */
    const now = [middle('now', 0), middle('now', 1)];
    panes.move([now[0] - middle('before', 0), now[1] - middle('before', 1)]);
    const from = distance('before');
    panes.zoomBy(from > 0 ? distance('now') / from : 1, now);
    seeElse();
  };
  const release = (/** @type {PointerEvent} */ { pointerId }) => void hand.down.delete(pointerId);
  const handlers = {
    onPointerDown(/** @type {PointerEvent} */ event) {
      if (event.button !== 0) return;
      if (!hand.down.size) hand.moved = 0;
      hand.down.set(event.pointerId, pointOf(event));
    },
    onPointerMove(/** @type {any} */ event) {
      const [point, before] = [pointOf(event), hand.down.get(event.pointerId)];
      if (!before) return over(point);
      hand.moved += Math.hypot(point[0] - before[0], point[1] - before[1]);
      if (hand.down.size === 2) pinch(event.pointerId, point);
      else if (hand.moved > DRAG && panes.zoom > 1) {
        event.currentTarget.setPointerCapture(event.pointerId);
        panes.move([point[0] - before[0], point[1] - before[1]]);
        seeElse();
      }
      hand.down.set(event.pointerId, point);
    },
    onPointerUp: release,
    onPointerCancel: release,
    /** A turn of the wheel zooms; one that changes nothing scrolls the page. */
    onWheel(/** @type {any} */ event) {
      if (performance.now() - hand.elsewhere < REST && !event.ctrlKey) {
        hand.elsewhere = performance.now();
        return;
      }
      const before = panes.zoom;
      const pixels = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
      panes.zoomBy(Math.exp(-pixels / (event.ctrlKey ? 100 : 400)), pointOf(event));
      if (panes.zoom === before && !event.ctrlKey) return;
      event.preventDefault();
      seeElse();
    },
  };
  return { handlers, moved: () => hand.moved };
}
