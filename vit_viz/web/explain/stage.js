// The chosen map on the photo, and on the same photo the patches that are taken away (gone.js).

import { patchQuery, patchRect, placeIn, PLACES, placeWords } from '../../explorer/geometry.js';
import { KEY_WORDS } from '../../ui/kit/elements.js';
import { SaveLink } from '../kit/figure.js';
import { usePointing } from '../kit/grid.js';
import { MapOnPhoto, endsOf, mapIn } from '../kit/map.js';
import { ColourBar, Problem, Toggle, cellUnder, useAsked, useLate } from '../kit/parts.js';
import { html, useLayoutEffect, useRef, useSignal, useState } from '../kit/preact.js';
import { Bar } from '../kit/bar.js';
import { listenToPointers } from './brush.js';
import { Belief } from './belief.js';
import { Controls } from './controls.js';
import { less, questionOf, shares } from './maps.js';
import { controlsOf, leftOf } from './staged.js';
/** @import { Page } from '../kit/page.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { Tests } from './belief.js' */
/** @import { Cell } from './brush.js' */
/** @import { Gone, Tool } from './gone.js' */
/** @import { Control } from './controls.js' */
/** @import { Staged } from './staged.js' */

const NOT_FETCHED = 'This picture could not be fetched; please reload the page.';

/**
 * @param {object} props
 * @param {Page} props.page
 * @param {ReadonlySignal<Staged | null>} props.shown
 * @param {ReadonlySignal<string>} props.error
 * @param {ReadonlySignal<boolean>} props.isPending
 * @param {Gone} props.gone of the patches of the map
 * @param {ReadonlySignal<number>} props.taken share of the patches of the card's map that the slider took away
 * @param {Tests} props.tests
 * @param {string} props.weights what became of the map when they were re-initialised
 * @param {Control[]} props.drawing controls of how the map is drawn
 * @param {Record<string, Uint32Array>} props.tables of colours
 */
export function Stage({ page: { store, source, ask }, shown, error: refused, isPending, gone, ...proof }) {
  const { drawing, tables } = proof;
  const [lost, setLost] = useState(''); // the photo that could not be fetched
  const photo = shown.value;
  const error = refused.value || (photo && lost === photo.photo.photo ? NOT_FETCHED : '');
  const isBusy = isPending.value;
  const framed = { store, source, photo, gone, error, isBusy, tables };
  const { said, sides, method } = photo ?? EMPTY;
  const { label, formula, shows, hides } = method;
  return html`<div id="vv-stage" class="column">
    <div
      id="vv-explain-picture"
      class=${`vv-play vv-room vv-part-picture vv-play-picture ${isBusy ? 'vv-busy' : ''}`}
      aria-busy=${String(isBusy)}
    >
      <div class="vv-play-photo">
        <${Frame} ...${framed} failed=${() => setLost(photo?.photo.photo ?? '')} />
        ${photo && !error && html`<${ColourBar} ...${photo.bar} look="" />`}
        <p class="vv-sides-words" aria-live="polite" hidden=${!said}>${said}</p>
        ${sides.length > 0 && html`<${Sides} key=${method.name} ...${{ store, ask, photo, tables }} />`}
      </div>
      <div class="vv-play-below" hidden=${!photo || Boolean(refused.value)}>
        ${photo && html`<${Below} ...${{ photo, gone, ...proof }} />`}
      </div>
      <div class="vv-play-about">
        <${CaptionLine} photo=${error ? null : photo} problem=${gone.problem.value} />
        <p class="vv-quiet vv-small vv-shows" hidden=${!shows}>${label} shows ${shows}</p>
        <p class="vv-quiet vv-small vv-hides" hidden=${!hides}>It does not show ${hides}</p>
        <${Controls}
          ...${{ store, formula, drawing: photo ? drawing : [] }}
          options=${photo ? controlsOf(photo.method, photo.photo) : []}
        />
      </div>
    </div>
  </div>`;
}

/**
 * The maps of two classes as small pictures, which choose what lies on the photo.
 * @param {{store: Page['store'], ask: Page['ask'], photo: Staged, tables: Record<string, Uint32Array>}} props
 */
function Sides({ store, ask, photo: { sides, method, drawing, ...of }, tables }) {
  const both = of.target.link;
  const bodies = [...both.split('-'), both].map((target) => questionOf(store, of, method, target)[1].body);
  const answer = useAsked(
    async (name, { bodies: asked, photo }, stop) => {
      const answers = asked.map((/** @type {any} */ body) => ask(name, body, stop));
      const [one, other, lead] = (await Promise.all(answers)).map(mapIn);
      const difference = less(one, shares(other).values, 'share of the map, subtracted');
      return { photo, maps: { one, other, difference, lead } };
    },
    [method.name, { bodies, photo: of.photo }],
  ).value;
  const [tall, wide] = of.photo.photo_size;
  const button = (/** @type {Staged['sides'][0]} */ { side, label, chosen }) => {
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

/** @param {{photo: Staged | null, problem: string}} props */
function CaptionLine({ photo, problem }) {
  const { caption, saved } = photo ?? {};
  const note = photo && [problem, photo.note].filter(Boolean).join(' ');
  return html`<div class="vv-caption-line">
      <span class="vv-caption" title=${PLACES}>${caption}</span><${SaveLink} save=${saved} hidden=${!photo} />
    </div>
    <p class="vv-note vv-small" hidden=${!note}>${note}</p>`;
}

// --- the photo

const EMPTY = /** @type {Staged} */ (
  /** @type {unknown} */ ({
    ...{ caption: '', grid: [1, 1], area: [0, 0, 1, 1], method: {}, subject: '', sides: [] },
    photo: { crop: { region: [0, 0, 0, 0] }, photo: '' },
  })
);

/**
 * The map on the photo, with what is marked there. Until the next one is there it stays, dimmed.
 * @param {{store: Page['store'], source: Page['source'], photo: Staged | null, gone: Gone, error: string, isBusy: boolean, failed: () => void, tables: Record<string,
 *     Uint32Array>}} props
 */
function Frame({ store, source, photo, gone, error, isBusy, failed, tables }) {
  const [image, marks] = [useRef(/** @type {any} */ (null)), useRef(/** @type {any} */ (null))];
  const tip = useSignal(/** @type {Tipped | null} */ (null));
  const isLate = useLate(isBusy ? 'map' : '');
  const { caption, grid, area, method, subject, photo: of } = photo ?? EMPTY;
  const [, , tall, wide] = area;
  const pin = (/** @type {number | null} */ patch) =>
    subject === store.subject() && store.set({ q: patchQuery(patch === null ? [] : [patch], grid[1]) });
  const pointer = useRef(/** @type {any} */ (null)); // what it does now
  pointer.current = {
    ...{ brush: gone.brush, isChoosing: () => gone.tool.value === 'choose' },
    choose: (/** @type {Cell} */ [row, col]) => pin(row * grid[1] + col),
    cellAt: (/** @type {PointerEvent} */ event) =>
      cellUnder(event, image.current, area, of.crop.region, grid),
    read: (/** @type {PointerEvent | null} */ event) =>
      void (tip.value = event && photo && !isBusy ? tipAt(event, image.current, photo) : null),
  };
  useLayoutEffect(() => listenToPointers(marks.current, () => pointer.current), []);
  const isChoosing = gone.tool.value === 'choose';
  const { keys } = usePointing({
    ...{ grid, cursor: gone.cursor, pinned: isChoosing ? patchIn(store.view.q.value, grid) : undefined },
    choose: (patch) => (isChoosing ? pin(patch) : patch !== null && gone.toggle(patch)),
  });
  // a server that does not answer is told of once, for the whole page: then this request waits
  const look = () => void source.at(of.photo).then(failed, failed);
  const words = `${caption} ${isChoosing ? '' : 'A patch that is chosen is taken away, or put back. '}${KEY_WORDS}`;
  const frame = {
    ...{ 'data-photo': '', tabindex: 0, role: photo && !method.pick ? 'img' : 'application' },
    'aria-label': 'Photo with the map over it',
    ...(photo && {
      ...keys,
      'aria-label': words,
      style: { width: `calc(${wide / tall} * var(--vv-tallest))` },
    }),
  };
  const drawing = { preserveAspectRatio: 'none', viewBox: `0 0 ${wide} ${tall}`, hidden: Boolean(error) };
  const drawn = photo && { ...photo, label: caption, lost: look, tables };
  return html`<div class=${`vv-frame vv-play-stage ${method.pick ? 'vv-pickable' : ''}`} ...${frame}>
    <div class="vv-image" ref=${image} hidden=${!photo || Boolean(error)}>
      ${drawn && html`<${MapOnPhoto} ...${drawn} />`}
    </div>
    <svg class="vv-play-marks vv-layer" ref=${marks} aria-hidden="true" ...${drawing}>
      ${photo && html`<${Marks} ...${{ photo, gone }} />`}
    </svg>
    <div class="vv-rings vv-layer" aria-hidden="true">
      ${!error && photo?.rings.map((rect) => html`<span class="vv-ring" style=${placeIn(rect, area)}></span>`)}
    </div>
    <${Tip} tip=${tip} />
    <p class="vv-asking vv-small" role="status" hidden=${!isLate}>Making the map …</p>
    <p class="vv-empty" hidden=${!error}>${error}</p>
  </div>`;
}

/** The patch that a query is; undefined where it is none, or more than one. @param {string} query @param {[number, number]} grid */
function patchIn(query, [rows, cols]) {
  const [, row, col] = (/^(\d+),(\d+)$/.exec(query) ?? []).map(Number);
  return row < rows && col < cols ? row * cols + col : undefined;
}

/** What is gone, and the patch that the keys would take. @param {{photo: Staged, gone: Gone}} props */
function Marks({ photo, gone }) {
  const { grid, photo: of } = photo;
  const mark = (/** @type {number} */ patch, /** @type {string} */ kind) => {
    const [row, col] = [Math.floor(patch / grid[1]), patch % grid[1]];
    const [top, left, bottom, right] = patchRect(of.crop, row, col, grid);
    const place = { x: left, y: top, width: right - left, height: bottom - top };
    return html`<rect key=${`${kind} ${patch}`} class=${kind} ...${place} />`;
  };
  const cursor = gone.cursor.value;
  return html`${gone.patches.value.map((patch) => mark(patch, 'vv-gone'))}${cursor !== null && mark(cursor, 'vv-cursor')}`;
}

/** @typedef {{words: string, style: Record<string, string>}} Tipped */

/** The number under a pointer. @param {PointerEvent} event @param {HTMLElement} image @param {Staged} photo @returns {Tipped | null} */
function tipAt(event, image, { textOf, grid, area, photo: { crop } }) {
  const cell = cellUnder(event, image, area, crop.region, grid);
  if (!cell) return null;
  const patch = cell[0] * grid[1] + cell[1];
  const box = /** @type {HTMLElement} */ (image.parentElement).getBoundingClientRect();
  const isNear = event.clientX - box.left > box.width - 230; // the right edge
  return {
    words: `patch ${placeWords(patch, grid[1])}: ${textOf(patch)}`,
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

/**
 * What is taken away, what the model says of the rest, and how far the map that it is taken by can be believed.
 * @param {Pick<Parameters<typeof Stage>[0], 'gone' | 'taken' | 'tests' | 'weights'> & {photo: Staged}} props
 */
function Below({ photo, gone, taken, tests, weights }) {
  const choices = TOOLS.filter(([tool]) => photo.method.pick || tool !== 'choose');
  const isWhole = !gone.patches.value.length;
  return html`
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
    ${tests.staged && html`<${Belief} ...${{ tests, weights, taken }} />`}
  `;
}

/** @param {{photo: Staged, gone: Gone}} props */
function Slider({ photo: { grid, method }, gone }) {
  const [most, last] = [gone.most.value, Math.max(0, gone.order.value.length - 1)];
  const words = goneWords(gone.patches.value.length, grid[0] * grid[1], most > 0);
  const range = {
    ...{ type: 'range', min: 0, max: last, step: 1, value: most, 'aria-valuetext': words },
    'aria-label': `How many of the best patches are taken away, by ${method.label}`,
    style: { '--share': `${(100 * most) / Math.max(1, last)}%` },
    onInput: (/** @type {any} */ { target }) => gone.takeMost(Number(target.value)),
  };
  return html`<label class="vv-play-slider vv-stack">
    <input class="vv-most" ...${range} />
    <span class="vv-slider-words vv-quiet vv-number" title=${words}>${words}</span>
  </label>`;
}

/** How many patches are gone, in words. */
function goneWords(/** @type {number} */ gone, /** @type {number} */ all, /** @type {boolean} */ best) {
  const share = Math.round((100 * gone) / all) || '< 1';
  if (!gone) return 'drag to take the best patches away, or brush';
  return `${best ? 'the best ' : ''}${share}% of patches are gone (${gone} of ${all})`;
}

/** What is known while the model is asked: what it said of the whole photo. @param {import('./staged.js').Said} said @param {number} count */
function asking({ top }, count) {
  const words = `Asking the model without ${count} ${count === 1 ? 'patch' : 'patches'} …`;
  const line = (/** @type {import('./staged.js').Line} */ { text, before, now, ...one }) => ({
    ...{ ...one, now: null, before: before ?? now, text: `${text.split(' → ')[0]} → …` },
  });
  return { words, top: top.map(line) };
}

/** What the model says of the photo, or of what is left of it. @param {{photo: Staged, gone: Gone}} props */
function Said({ photo, gone }) {
  const { answer, error, of } = gone.said.value;
  const isWaiting = gone.isWaiting.value;
  const isLate = useLate(isWaiting ? `after ${of}` : '');
  const said = answer ? leftOf(answer, photo.target) : photo.whole;
  const count = gone.patches.value.length;
  const { top, words } = isLate ? asking(said, count) : said;
  return html`
    <ol class="vv-play-top" aria-label="What the model answers" aria-busy=${String(isWaiting)}>
      ${top.map(
        ({ name, now = 0, before, text, target }) =>
          html`<li class=${`vv-answer ${target ? 'vv-target-answer' : ''}`}>
            <span class="vv-class" title=${name}>${name}</span>
            <${Bar} value=${now} tick=${before} />
            <span class="vv-number">${text}</span>
          </li>`,
      )}
    </ol>
    <p class="vv-play-words vv-small" aria-live="polite" hidden=${!words}>${words}</p>
    <p class="vv-small vv-quiet" hidden=${!photo.target.shares}>${photo.target.shares}</p>
    <${Problem} words=${error} look="vv-play-error" />
  `;
}
