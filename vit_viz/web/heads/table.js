// The grid of all heads as small photos: a row for each layer, of each head a dot for its name, a bar for its number and a word where it
// is edited.

import { subject as queryOf } from '../../explorer/labels.js';
import { Bar } from '../kit/bar.js';
import { Grid } from '../kit/grid.js';
import { ColourBar } from '../kit/parts.js';
import { html, useComputed, useLayoutEffect, useMemo, useRef } from '../kit/preact.js';
import { LABEL, layoutOf, Tiles, useSize } from './maps.js';
import { Dot, nameWords } from './names.js';
import {
  amountOf,
  cellText,
  endsOf,
  headWords,
  isSame,
  keyOf,
  orderOf,
  placeOf,
  unitWords,
  valueWords,
} from './words.js';
/** @import { Signal } from '../kit/preact.js' */
/** @import { State } from '../kit/edits.js' */
/** @import { Seen } from './room.js' */
/** @import { Place } from './words.js' */

/**
 * The chosen head, and the one under the pointer.
 * @typedef {{chosen: Signal<Place>, hovered: Signal<Place | null>}} Marks
 *
 * What clicks make of heads; step: what belongs to one movement of the hand.
 * @typedef {{next: (keys: string[]) => State, set: (keys: string[], state: State, step?: string) => void}} Switches
 */

/** What stands on a head that is edited, and what is said of it. @type {Record<State, [string, string]>} */
const STATES = {
  off: ['off', 'off'],
  mean: ['mean', 'at its mean'],
  uniform: ['uniform', 'uniform'],
  on: ['', ''],
};

/**
 * @param {{seen: Seen, shown?: string, switches?: Switches | null}} props shown: the name whose heads stand out; '' where all do; switches:
 *     none where heads are chosen alone
 */
export function HeadGrid({ seen, shown = '', switches = null }) {
  const { subject, table, label, edits, marks, choose, rows, photo, room } = seen;
  const { order } = seen.look;
  const { layers, heads } = subject;
  const named = seen.numbers.names.known;
  const states = edits.heads;
  const [low, high] = endsOf(table);
  const ends = /** @type {[number, number]} */ (
    table.signed ? [low, high] : [Math.min(0, low), Math.max(0, high)]
  );
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const size = useSize(box);
  room.current = size?.width || room.current;
  const layout = useMemo(
    () => layoutOf(subject, (room.current || 600) - 1),
    [layers, heads, subject.crop, room.current, size],
  );
  const orders = useMemo(() => orderOf(table, order), [table, order]);
  const drag = useDrag(switches);
  const isSorted = order === 'value';
  const hasRoom = heads <= 8;

  const act = (/** @type {Place} */ place) => {
    switches?.set([keyOf(place)], switches.next([keyOf(place)]));
    choose(place);
  };
  const clicked = (/** @type {Event} */ { target }) => {
    const place = placeOf(target);
    if (place) act(place);
  };
  /** Drawn again where something of all cells is another, not where another one is chosen. */
  const cellAt = (/** @type {Place} */ place) => {
    const { layer, head } = place;
    const key = keyOf(place);
    const value = table.values[layer][head];
    const name = named.get(key);
    const number = cellText(value, table.unit);
    const text = isSorted ? `${layer}\u00b7${head} ${hasRoom ? number : ''}`.trim() : number;
    const state = states.get(key) ?? 'on';
    const [edited, how] = STATES[state];
    // what can be seen is part of what is heard, so that it can be spoken to
    const seenThere = [edited, text].filter(Boolean).join(' ');
    const heard = [seenThere, `${headWords(place)}: ${valueWords(value, table.unit)}`, nameWords(name), how];
    const said = heard.filter(Boolean).join('; ');
    const look = `${value === null ? 'vv-unknown ' : ''}${shown && name?.name !== shown ? 'vv-faded ' : ''}${
      name?.thin && name.name !== 'mixed' ? 'vv-thin ' : ''
    }`;
    return html`<${HeadCell}
      key=${key}
      ...${{ layer, head, value, ends, isSigned: table.signed, text, edited, state, said, look, kind: name?.name ?? '', marks }}
    />`;
  };
  const cells = useMemo(() => orders.map((row) => row.map(cellAt)), [orders, named, states, shown, marks]);
  const { cell, bands } = layout;
  const isKnown = table.values.flat().some((value) => value !== null);
  const sizes = {
    visibility: room.current ? 'visible' : 'hidden', // as long as it is not known how wide it may be
    '--vv-cell-width': `${cell.width}px`,
    '--vv-cell-height': `${cell.height}px`,
    '--vv-band-rows': layout.rows,
    '--vv-label': `${LABEL}px`,
    '--vv-grid-width': `${LABEL + (bands - 1) * layout.shift + cell.width * heads}px`,
  };
  const columns = Array.from({ length: heads }, (_, place) =>
    isSorted ? [place ? '' : 'largest', `place ${place + 1} of a row`] : [place, `head ${place}`],
  );
  const rowHead = (/** @type {string[]} */ all, /** @type {number} */ number, /** @type {string} */ said) =>
    switches
      ? html`<button
          type="button"
          class="vv-bare"
          data-all=${number}
          aria-label=${`all heads of ${said}`}
          onClick=${() => switches.set(all, switches.next(all))}
        >
          ${number}
        </button>`
      : number;
  const lines = orders.map((row, line) => {
    const [number, said] = isSorted
      ? [line * heads + 1, `places ${line * heads + 1} to ${(line + 1) * heads}`]
      : [line, `layer ${line}`];
    return { key: line, head: rowHead(row.map(keyOf), number, said), said, cells: cells[line] };
  });
  return html`<p class="vv-heads-pictures vv-small">
      ${`Pictures: where ${queryOf(subject.query, subject)} looks, each on its own scale. Bars: ${label}.`}
    </p>
    <div class="vv-heads-scroll vv-scroll" ref=${box}>
      <div class=${bands > 1 ? 'vv-heads-grid vv-banded' : 'vv-heads-grid'} style=${sizes}>
        <${Tiles} ...${{ rows, orders, layout, photo }} />
        <${Grid}
          look="vv-heads-table"
          label=${`${label}: ${isSorted ? 'all heads, the largest first' : 'a row for each layer, a cell for each head'}`}
          ...${{ columns, bands, rows: lines, more: { onClick: clicked, ...drag } }}
          corner=${isSorted ? 'place' : 'layer'}
        />
      </div>
    </div>
    ${
      isKnown &&
      html`<${ColourBar}
        ...${{ low: amountOf(ends[0], table.unit), high: amountOf(ends[1], table.unit), unit: unitWords(table.unit), ends: ['bars:'] }}
        colours=${table.signed ? ['var(--vv-against) 50%', 'var(--vv-for) 50%'] : ['var(--vv-accent)', 'var(--vv-accent)']}
      />`
    }`;
}

/**
 * A head. Where it is marked it is drawn again by itself.
 * @param {Place & {value: number | null, ends: [number, number], isSigned: boolean, text: string, edited: string, state: State, said: string, look: string,
 *   kind: string, marks: Marks}} props
 */
function HeadCell({ layer, head, value, ends, isSigned, text, edited, state, said, look, kind, marks }) {
  const { chosen, hovered } = marks;
  const isChosen = useComputed(() => isSame(chosen.value, { layer, head }));
  const isHovered = useComputed(() => isSame(hovered.value, { layer, head }));
  const isReached = useComputed(() => isSame(hovered.value ?? chosen.value, { layer, head }));
  const sign = isSigned || (value ?? 0) < 0 ? value : 0;
  return html`<td
    class=${look + (isHovered.value ? 'vv-hovered' : '')}
    role="gridcell"
    tabindex=${isReached.value ? 0 : -1}
    aria-selected=${String(isChosen.value)}
    aria-label=${said}
    data-layer=${layer}
    data-head=${head}
    data-state=${state}
  >
    <span class="vv-heads-tile vv-face"
      >${kind && html`<${Dot} kind=${kind} />`}${edited && html`<b class="vv-heads-state">${edited} </b>`}</span
    >
    <span class="vv-heads-foot"
      ><${Bar} ...${{ value, ends, sign }} /><span class="vv-heads-number">${text}</span></span
    >
  </td>`;
}

/** A drag across switches gives all of them what a click would make of the first; a finger scrolls. @param {Switches | null} switches */
function useDrag(switches) {
  const drag = useRef(
    /** @type {{first: string, state: State, step: string, isMoving: boolean} | null} */ (null),
  );
  useLayoutEffect(() => {
    const end = () => void (drag.current = null);
    window.addEventListener('pointerup', end);
    return () => window.removeEventListener('pointerup', end);
  }, []);
  return {
    onPointerDown(/** @type {PointerEvent} */ { pointerType, target, timeStamp }) {
      const place = pointerType === 'touch' ? null : placeOf(target);
      const first = place && keyOf(place);
      drag.current =
        first && switches
          ? { first, state: switches.next([first]), step: `drag ${timeStamp}`, isMoving: false }
          : null;
    },
    onPointerOver(/** @type {PointerEvent} */ { target, buttons }) {
      const [one, place] = [drag.current, placeOf(target)];
      if (!one || !place || !(buttons & 1)) return;
      const key = keyOf(place);
      if (key === one.first && !one.isMoving) return;
      switches?.set(one.isMoving ? [key] : [one.first, key], one.state, one.step);
      one.isMoving = true;
    },
  };
}
