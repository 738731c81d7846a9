// The chosen map on the photo, and on the same photo the patches that are taken away (gone.js).

import { centreOf, clamp, movedPatch, patchQuery, patchRect, placeIn } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { stepOf } from '../../ui/kit/elements.js';
import { SaveLink } from '../kit/figure.js';
import { MapOnPhoto, endsOf, mapIn } from '../kit/map.js';
import { ColourBar, Problem, Toggle, cellUnder, useAsked } from '../kit/parts.js';
import { html, useLayoutEffect, useRef, useSignal, useState } from '../kit/preact.js';
import { listenToPointers } from './brush.js';
import { Controls } from './controls.js';
import { Lead } from './fall.js';
import { drawingOf, less, questionOf, shares } from './maps.js';
/** @import { Tell } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { Cell } from './brush.js' */
/** @import { Gone, Tool } from './gone.js' */
/** @import { Of } from './maps.js' */
/** @import { Held } from './room.js' */

/**
 * @typedef {[number, number, number, number]} Rect top, left, bottom, right in pixels of the original photo
 *
 * @typedef {{name: string, now?: number, before?: number, text: string, target?: boolean}} Line of an answer; now: share of its bar, from
 *     0 to 1, absent where the answer is a value; before: with all patches, absent where all are there; target: what the maps explain
 * @typedef {{words: string, top: Line[]}} Answer what the model says of the photo, or of what is left of it
 *
 * The map; view, subject: the link that it was asked for with, and the part of that which says what it is of; key: of the picture and
 * the model, another one begins anew; target: another one is asked about again; shows: the name of its method, another than the chosen
 * one's while that map is not made; pick: whether it follows a query; area: what of the photo it shows; cells: what each patch says;
 * region: of the photo that the model received (top, left, height, width); order: patches, the best first, as "7,3,20"; is_own: whether it
 * is the map of the card, whose curve is drawn; sides: the maps of two classes that can be chosen; said, lead: what these say when they are
 * subtracted, and how far that can be trusted.
 * @typedef {{view: string, subject: string, key: string, target: string, method: string, shows: string, src: string, alt: string, caption:
 *   string, note: string, figure: import('../../explorer/source.js').Saved, pick: boolean, area: Rect, rings?: Rect[], bar?: import('../../ui/kit/elements.js')
 *   .ColourBar & {unit: string}, cells?: {grid: [number, number], region: Rect, texts: string[]}, grid: [number, number], region: Rect,
 *   photo_size: [number, number], order?: string, is_own?: boolean, whole: Answer, said?: string, sides?: Side[], lead?: import('./fall.js')
 *   .Known | null}} Photo
 * @typedef {{side: string, label: string, chosen: boolean}} Side
 */

const NOT_FETCHED = 'This picture could not be fetched; please reload the page.';
/** @param {{page: Page, map: Held<Photo>, gone: Gone, of: ReadonlySignal<Of | null>, tables: Record<string, Uint32Array>}} props gone: of the patches of the map; of: what the maps are of */
export function Stage({ page: { store, ask }, map, gone, of, tables }) {
  const [there, setThere] = useState(''); // the pictures that were fetched, and could not be
  const [lost, setLost] = useState('');
  const [photo, refused] = [map.value.value, map.error.value];
  const src = photo?.src ?? '';
  const isThere = there === src;
  const error = refused || (src && lost === src ? NOT_FETCHED : '');
  const isBusy = map.isPending.value || (!error && !isThere);
  const framed = { store, photo, gone, error, isBusy, isThere };
  return html`<div id="vv-stage" class="column">
    <div id="vv-explain-picture" class="vv-play vv-room">
      <div class=${`vv-part-picture vv-play-picture ${isBusy ? 'vv-busy' : ''}`}>
        <${Frame} ...${framed} loaded=${() => setThere(src)} failed=${() => setLost(src)} />
        ${photo?.bar && !error && html`<${ColourBar} ...${photo.bar} colours=${photo.bar.stops} look="" />`}
        <${OfMap} ...${{ store, ask, photo, of: of.value, tables }} />
        <div class="vv-play-below" hidden=${!photo || Boolean(refused)}>
          ${photo && html`<${Below} ...${{ ask, photo, gone }} />`}
        </div>
        <${CaptionLine} photo=${error ? null : photo} />
      </div>
    </div>
    <${Controls} store=${store} told=${photo} />
  </div>`;
}

/**
 * What the map says, and of two classes the maps that there are.
 * @param {{store: Page['store'], ask: Page['ask'], photo: Photo | null, of: Of | null, tables: Record<string, Uint32Array>}} props
 */
function OfMap({ photo, of, ...shared }) {
  return html`<p class="vv-sides-words" aria-live="polite" hidden=${!photo?.said}>${photo?.said}</p>
    ${photo && of && Boolean(photo.sides?.length) && html`<${Sides} key=${photo.shows} ...${{ photo, of, ...shared }} />`}`;
}

/**
 * The maps of two classes as small pictures, which choose what lies on the photo.
 * @param {{store: Page['store'], ask: Page['ask'], photo: Photo, of: Of, tables: Record<string, Uint32Array>}} props
 */
function Sides({ store, ask, photo: { sides = [], shows: name }, of, tables }) {
  const both = of.target.link;
  const bodies = [...both.split('-'), both].map(
    (target) => questionOf(store, of, { name, aimed: true }, target)[1].body,
  );
  const answer = useAsked(
    async (_, { bodies: asked, photo }, stop) => {
      const answers = asked.map((/** @type {any} */ body) => ask(name, body, stop));
      const [one, other, lead] = (await Promise.all(answers)).map(mapIn);
      const difference = less(one, shares(other).values, 'share of the map, subtracted');
      return { photo, maps: { one, other, difference, lead } };
    },
    both.includes('-') && [name, { bodies, photo: of.photo }],
  ).value;
  const drawing = drawingOf(store);
  const [tall, wide] = of.photo.photo_size;
  const button = (/** @type {Side} */ { side, label, chosen }) => {
    const which = {
      'data-side': side,
      'aria-pressed': String(chosen),
      onClick: () => store.set({ sides: side }),
    };
    const map = answer?.maps[side];
    const ends = map && endsOf(map.values, map.signed, drawing.clip);
    return html`<button key=${side} type="button" class="vv-side vv-bare" ...${which}>
      ${
        map
          ? html`<${MapOnPhoto} ...${{ map, ends, drawing, tables, photo: answer.photo }} />`
          : html`<span class="vv-card-image" style=${{ aspectRatio: String(wide / tall) }}></span>`
      }<span class="vv-small">${label}</span>
    </button>`;
  };
  return html`<div class="vv-sides" role="group" aria-label="The maps of two classes">
    ${sides.map(button)}
  </div>`;
}

/** @param {{photo: Photo | null}} props */
function CaptionLine({ photo }) {
  const { caption, figure, note } = photo ?? {};
  return html`<div class="vv-caption-line">
      <span class="vv-caption">${caption}</span><${SaveLink} save=${figure} hidden=${!figure} />
    </div>
    <p class="vv-note vv-small" hidden=${!note}>${note}</p>`;
}

// --- the photo

const EMPTY = /** @type {Photo} */ (
  /** @type {unknown} */ ({
    area: [0, 0, 1, 1],
    photo_size: [1, 1],
    grid: [1, 1],
    region: [0, 0, 0, 0],
    alt: '',
  })
);

/**
 * The map on the photo, with what is marked there. Until its picture is there the one before stays, dimmed, with its rings.
 * @param {{store: Page['store'], photo: Photo | null, gone: Gone, error: string, isBusy: boolean, isThere: boolean, loaded: () => void,
 *     failed: () => void}} props
 */
function Frame({ store, photo, gone, error, isBusy, isThere, loaded, failed }) {
  const [image, marks] = [useRef(/** @type {any} */ (null)), useRef(/** @type {any} */ (null))];
  const tip = useSignal(/** @type {Tipped | null} */ (null));
  const ringed = useRef(photo);
  if (isThere) ringed.current = photo;
  const { area, photo_size: size, grid, region, alt, pick, src, subject } = photo ?? EMPTY;
  const ratio = (area[3] - area[1]) / (area[2] - area[0]);
  const choose = (/** @type {Cell} */ [row, col]) => {
    if (subject === store.subject()) store.set({ q: patchQuery([row * grid[1] + col], grid[1]) });
  };
  const pointer = useRef(/** @type {any} */ (null)); // what it does now
  pointer.current = {
    ...{ brush: gone.brush, choose, isChoosing: () => gone.tool.value === 'choose' },
    cellAt: (/** @type {PointerEvent} */ event) =>
      cellUnder(event, image.current, [0, 0, ...size], region, grid),
    read: (/** @type {PointerEvent | null} */ event) =>
      void (tip.value = event && photo && !isBusy ? tipAt(event, image.current, photo) : null),
  };
  useLayoutEffect(() => listenToPointers(marks.current, () => pointer.current), []);
  const typed = (/** @type {KeyboardEvent} */ event) => {
    const step = stepOf(event);
    if (!photo || (!step && event.key !== ' ')) return;
    event.preventDefault();
    if (gone.tool.value !== 'choose') return gone.moveCursor(step);
    const patch = patchIn(store.view.q.peek(), grid);
    const next = patch === null || !step ? centreOf(grid) : movedPatch(patch, step, grid);
    if (step) choose([Math.floor(next / grid[1]), next % grid[1]]);
  };
  // a server that does not answer is told of once, for the whole page: then this request waits
  const look = () => void fetch(routeUrl(src), { credentials: 'same-origin' }).then(failed, failed);
  const words = `${alt} Arrow keys move over the patches, space takes one away or puts it back.`;
  const frame = {
    ...{ tabindex: 0, role: photo && !pick ? 'img' : 'application', onKeyDown: typed },
    'aria-label': photo ? words : 'Photo with the map over it',
    style: photo ? { width: `calc(${ratio} * var(--vv-tallest))` } : {},
    onBlur: () => void (gone.cursor.value = null),
  };
  const picture = {
    ...{ alt, draggable: false, hidden: !photo || Boolean(error), onLoad: loaded, onError: look },
    ...(photo && { src: routeUrl(src), style: { aspectRatio: String(ratio) } }),
  };
  const drawing = {
    preserveAspectRatio: 'none',
    viewBox: `0 0 ${size[1]} ${size[0]}`,
    hidden: Boolean(error),
  };
  return html`<div class=${`vv-frame vv-play-stage ${pick ? 'vv-pickable' : ''}`} ...${frame}>
    <img class="vv-image" ref=${image} ...${picture} />
    <svg class="vv-play-marks vv-layer" ref=${marks} aria-hidden="true" ...${drawing}>
      ${photo && html`<${Marks} ...${{ photo, gone }} />`}
    </svg>
    <div class="vv-rings vv-layer" aria-hidden="true">
      ${!error && ringed.current && ringsOf(ringed.current)}
    </div>
    <${Tip} tip=${tip} />
    <p class="vv-empty" hidden=${!error}>${error}</p>
  </div>`;
}

const ringsOf = (/** @type {Photo} */ { rings, area }) =>
  rings?.map((rect) => html`<span class="vv-ring" style=${placeIn(rect, area)}></span>`);

/** The patch that a query is; null where it is none, or more than one. @param {string} query @param {[number, number]} grid */
function patchIn(query, [rows, cols]) {
  const [, row, col] = (/^(\d+),(\d+)$/.exec(query) ?? []).map(Number);
  return row < rows && col < cols ? row * cols + col : null;
}

/** What is gone, and the patch that the keys would take. @param {{photo: Photo, gone: Gone}} props */
function Marks({ photo, gone }) {
  const { grid } = photo;
  const mark = (/** @type {number} */ patch, /** @type {string} */ kind) => {
    const [row, col] = [Math.floor(patch / grid[1]), patch % grid[1]];
    const [top, left, bottom, right] = patchRect(/** @type {any} */ (photo), row, col, grid);
    const place = { x: left, y: top, width: right - left, height: bottom - top };
    return html`<rect key=${`${kind} ${patch}`} class=${kind} ...${place} />`;
  };
  const cursor = gone.cursor.value;
  return html`${gone.patches.value.map((patch) => mark(patch, 'vv-gone'))}${cursor !== null && mark(cursor, 'vv-cursor')}`;
}

/** @typedef {{words: string, style: Record<string, string>}} Tipped */

/** The number under a pointer. @param {PointerEvent} event @param {HTMLElement} image @param {Photo} photo @returns {Tipped | null} */
function tipAt(event, image, { cells, area }) {
  const cell = cells && cellUnder(event, image, area, cells.region, cells.grid);
  if (!cells || !cell) return null;
  const [row, col] = cell;
  const box = /** @type {HTMLElement} */ (image.parentElement).getBoundingClientRect();
  const isNear = event.clientX - box.left > box.width - 230; // the right edge
  return {
    words: `row ${row}, column ${col}: ${cells.texts[row * cells.grid[1] + col]}`,
    style: {
      top: `${Math.max(0, event.clientY - box.top - 30)}px`,
      ...(isNear
        ? { right: `${box.right - event.clientX + 14}px` }
        : { left: `${event.clientX - box.left + 14}px` }),
    },
  };
}

/** @param {{tip: Signal<Tipped | null>}} props */
function Tip({ tip: { value } }) {
  return html`<span class="vv-tip" aria-hidden="true" hidden=${!value} style=${value?.style ?? {}}
    >${value?.words}</span
  >`;
}

// --- below it

/** @type {[Tool, string][]} */
const TOOLS = [
  ['erase', 'take away'],
  ['restore', 'put back'],
  ['choose', 'choose the query'],
];

/** What is taken away, and what the model says of the rest. @param {{ask: Page['ask'], photo: Photo, gone: Gone}} props */
function Below({ ask, photo, gone }) {
  const { key, target, lead, view, pick } = photo;
  const measure = (/** @type {AbortSignal} */ stop, /** @type {Tell} */ tell) =>
    ask('lead', { view }, stop, tell);
  const choices = TOOLS.filter(([tool]) => pick || tool !== 'choose');
  const isWhole = !gone.patches.value.length;
  return html`
    <${Lead} ...${{ known: lead, about: `${key}|${target}`, taken: gone.share, measure }} />
    <${Slider} ...${{ photo, gone }} />
    <${Said} ...${{ photo, gone }} />
    <div class="vv-play-tools vv-row">
      <${Toggle}
        ...${{ name: 'tool', choices, value: gone.tool.value, choose: gone.chooseTool }}
        label="What the pointer does"
      />
      <button type="button" class="vv-button vv-all" disabled=${isWhole} onClick=${() => gone.takeMost(0)}>
        all back
      </button>
    </div>
  `;
}

/** @param {{photo: Photo, gone: Gone}} props */
function Slider({ photo: { grid, method }, gone }) {
  const [most, last] = [gone.most.value, Math.max(0, gone.order.value.length - 1)];
  const words = goneWords(gone.patches.value.length, grid[0] * grid[1], most > 0);
  const range = {
    ...{ type: 'range', min: 0, max: last, step: 1, value: most, 'aria-valuetext': words },
    'aria-label': `How many of the best patches are taken away, by ${method}`,
    style: { '--share': `${(100 * most) / Math.max(1, last)}%` },
    onInput: (/** @type {any} */ { target }) => gone.takeMost(Number(target.value)),
  };
  return html`<label class="vv-play-slider vv-stack">
    <input class="vv-most" ...${range} />
    <span class="vv-slider-words vv-quiet vv-number">${words}</span>
  </label>`;
}

/** How many patches are gone, in words. */
function goneWords(/** @type {number} */ gone, /** @type {number} */ all, /** @type {boolean} */ best) {
  const share = Math.round((100 * gone) / all) || '< 1';
  if (!gone) return 'drag to take the best patches away, or brush over the photo';
  if (best)
    return `the best ${share}% of the patches are gone (${gone} of ${all}): drag, or brush over the photo`;
  return `${share}% of the patches are gone (${gone} of ${all})`;
}

/** What the model says of the photo, or of what is left of it. @param {{photo: Photo, gone: Gone}} props */
function Said({ photo, gone }) {
  const { answer, error } = gone.said.value;
  const { top, words } = answer ?? photo.whole;
  const percent = (/** @type {number} */ share) => `${100 * clamp(share)}%`;
  return html`
    <ol class="vv-play-top" aria-label="What the model answers" aria-busy=${String(gone.isWaiting.value)}>
      ${top.map(
        ({ name, now = 0, before, text, target }) =>
          html`<li class=${`vv-answer ${target ? 'vv-target-answer' : ''}`}>
            <span class="vv-class" title=${name}>${name}</span>
            <span class="vv-answer-track">
              <span class="vv-answer-bar" style=${{ width: percent(now) }}></span>
              ${before !== undefined && html`<span class="vv-answer-tick" style=${{ left: percent(before) }}></span>`}
            </span>
            <span class="vv-number">${text}</span>
          </li>`,
      )}
    </ol>
    <p class="vv-play-words vv-small" aria-live="polite" hidden=${!words}>${words}</p>
    <${Problem} words=${error} look="vv-play-error" />
  `;
}
