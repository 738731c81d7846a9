// The Walkthrough tab: the steps from pixels to a class. Of a step the server says all at once (vit_viz/ui/walkthrough/routes.py): its
// page of words and small pictures, as HTML in which every text is escaped, the photo beside it, and what can be chosen there.

import { clamp, patchQuery, patchRect, placeIn, queryPatches } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { KEY_WORDS } from '../../ui/kit/elements.js';
import { ColourBar, Pointed, cellUnder, useSlider } from '../kit/parts.js';
import { asked } from '../kit/ask.js';
import { Figure } from '../kit/figure.js';
import { usePointing } from '../kit/grid.js';
import { thePage } from '../kit/page.js';
import { html, render, untracked, useMemo, useRef, useState } from '../kit/preact.js';
import { SUBJECT } from '../kit/store.js';
/** @import { Ask } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */

/**
 * @typedef {[number, number, number, number]} Rect top, left, bottom, right in pixels of the original photo
 *
 * @typedef {object} Photo
 * @property {string} src
 * @property {string} figure address of what is saved of it
 * @property {string} caption
 * @property {Rect} area what of the original it shows
 * @property {Rect[]} rings
 * @property {(import('../../ui/kit/elements.js').ColourBar & {unit: string}) | null} bar
 * @property {boolean} pick whether a patch of it can be chosen
 * @property {[number, number]} grid of patches
 * @property {[number, number, number, number]} region of the original that they cover: top, left, height, width
 *
 * A number from low to high, or options, of which the value is the place; option: its name in links.
 * @typedef {{option: string, label: string, value: number, low: number, high: number, options?: string[]}} Control
 *
 * @typedef {{subject: string, step: number, html: string, photo: Photo, controls: Control[], note: string}} Step
 *   note: what of the link was not possible
 */

const TAB = 'walkthrough';
const OWN = ['q', 'step', 'play', 'layer', 'head']; // what a step depends on, beside its subject and how maps are drawn
const GROUPS = [['play'], ['layer', 'head']]; // of controls: of the step, and of the whole page
const KEPT_MS = 10 * 60 * 1000; // the addresses in an answer are good for longer
const MOST_KEPT = 16;
const NOT_FETCHED = 'This picture could not be fetched; please reload the page.';

/** @type {import('../../ui/kit/elements.js').Mount<{value: null, steps: string[], drawing: string[]}>} */
export function mount(element, { steps, drawing }) {
  render(html`<${Walkthrough} ...${{ page: thePage(), steps, drawing }} />`, element);
}

/**
 * Asks for steps; one that was seen lately is there at once, until another turn of the page.
 * @param {Page} page @returns {Ask}
 */
function keeping({ store, ask, turn }) {
  /** @type {Map<string, {answer: Step, until: number}>} */
  const seen = new Map(); // the one that was shown longest ago first
  return async (name, body, stop) => {
    const [key, subject] = [`${turn.peek()} ${body.view}`, untracked(() => store.subject())];
    const known = seen.get(key);
    const isKept = known && Date.now() < known.until;
    const one = isKept
      ? known
      : { answer: { ...(await ask(name, body, stop)), subject }, until: Date.now() + KEPT_MS };
    seen.delete(key);
    seen.set(key, one);
    for (const oldest of seen.keys()) if (seen.size > MOST_KEPT) seen.delete(oldest);
    return one.answer;
  };
}

/** @param {{page: Page, steps: string[], drawing: string[]}} props steps: their names; drawing: options by their names in links */
export function Walkthrough({ page, steps, drawing }) {
  const { store, source, turn } = page;
  const answer = useMemo(() => {
    const names = [...SUBJECT, ...OWN, ...drawing];
    return asked(
      keeping(page),
      () => (store.view.tab.value === TAB ? [TAB, { view: store.linkOf(names) }] : null),
      turn,
    );
  }, [page]);
  const last = useRef(/** @type {Step | null} */ (null));
  const lost = useRef(''); // the picture that was not there, for which all was asked again
  const { state, value, error = '' } = answer.value;
  if (state === 'done') last.current = value;
  const now = store.view.step.value;
  const isBusy = state === 'none' || state === 'pending';
  const isOf = last.current?.subject === store.subject();
  if (error && !isOf) last.current = null;
  const shown = last.current;
  const groups = GROUPS.map((names) => shown?.controls.filter(({ option }) => names.includes(option)) ?? []);

  /** What a control says: what was chosen, until there is the answer. @param {Control} control */
  const valueOf = ({ option, value: told }) => {
    const chosen = store.view[option].value;
    return state !== 'done' && shown?.step === now && typeof chosen === 'number' && chosen >= 0
      ? chosen
      : told;
  };
  const follow = (/** @type {number | null} */ patch, /** @type {Photo} */ { grid }) => {
    if (isOf) store.set({ q: patchQuery(patch === null ? [] : [patch], grid[1]) });
  };
  const again = (/** @type {string} */ src) => {
    if (lost.current === src) return;
    lost.current = src;
    turn.value += 1;
  };
  return html`<div class=${shown || error ? 'vv-w-room' : 'vv-w-room vv-w-waits'}>
    <${Steps} ...${{ steps, now }} go=${(/** @type {number} */ step) => store.set({ step, play: -1 })} />
    <div class="vv-view" aria-busy=${isBusy}>
      ${
        shown &&
        html`<div class="vv-controls">
          ${!error && html`<${Beside} ...${{ source, photo: shown.photo, isBusy, query: () => store.view.q.peek(), follow, again }} />`}
          ${shown.note && html`<p class="vv-note vv-small">${shown.note}</p>`}
          ${groups.map(
            (controls) =>
              controls.length > 0 &&
              html`<div class="vv-w-card">
                ${controls.map(
                  (control) =>
                    html`<${control.options ? Choice : Slider}
                      key=${`${shown.step} ${control.option}`}
                      ...${{ control, value: valueOf(control) }}
                      choose=${(/** @type {number} */ chosen) => store.set({ [control.option]: chosen }, { soon: !control.options })}
                      reset=${() => store.set({ [control.option]: store.fields.get(control.option)?.default })}
                    />`,
                )}
              </div>`,
          )}
        </div>`
      }
      <div id="vv-w-content" aria-busy=${isBusy}>
        ${
          error
            ? html`<p class="vv-notice" role="alert">${error}</p>`
            : shown && html`<div dangerouslySetInnerHTML=${{ __html: shown.html }}></div>`
        }
      </div>
    </div>
  </div>`;
}

/** The row of steps. @param {{steps: string[], now: number, go: (step: number) => void}} props */
function Steps({ steps, now, go }) {
  return html`<div class="vv-w-nav">
    <button
      id="vv-w-previous"
      class="vv-button"
      type="button"
      title="Goes to the step before this one."
      disabled=${now <= 1}
      onClick=${() => go(now - 1)}
    >
      Previous
    </button>
    <div id="vv-w-steps" role="radiogroup" aria-label="step" title="Goes to this step of the walkthrough.">
      ${steps.map(
        (name, place) =>
          html`<label>
            <input
              type="radio"
              name="vv-w-step"
              value=${place + 1}
              checked=${now === place + 1}
              onChange=${() => go(place + 1)}
            />
            <span>${`${place + 1} ${name}`}</span>
          </label>`,
      )}
    </div>
    <button
      id="vv-w-next"
      class="vv-button"
      type="button"
      title="Goes to the step after this one."
      disabled=${now >= steps.length}
      onClick=${() => go(now + 1)}
    >
      Next
    </button>
  </div>`;
}

/**
 * The photo beside a step. Until its picture is there, the one before stays, dimmed, with its rings.
 * @param {{source: Page['source'], photo: Photo, isBusy: boolean, query: () => string, follow: (patch: number | null, photo: Photo) => void, again: (src: string) => void}} props
 *   query: that of the page, which may be newer than the photo; again: what was known of the picture is gone
 */
function Beside({ source, photo, isBusy, query, follow, again }) {
  const { src, figure, caption, area, bar, pick, grid, region } = photo;
  const [there, setThere] = useState('');
  const [lost, setLost] = useState('');
  const ringed = useRef(photo);
  if (there === src) ringed.current = photo;
  const rings = there && lost !== src ? ringed.current : null;
  const [tall, wide] = [area[2] - area[0], area[3] - area[1]];
  const clicked = (/** @type {MouseEvent} */ event) => {
    const cell = cellUnder(event, /** @type {Element} */ (event.currentTarget), area, region, grid);
    if (cell) follow(cell[0] * grid[1] + cell[1], photo);
  };
  const patches = queryPatches(query(), /** @type {any} */ ({ grid, prefix: [], suffix: [] })); // of other tokens there are none
  const { at, leave, keys } = usePointing({
    ...{ grid, pinned: patches.length === 1 ? patches[0] : undefined },
    choose: (patch) => follow(patch, photo),
  });
  const placeOf = (/** @type {number} */ patch) =>
    placeIn(patchRect({ region }, Math.floor(patch / grid[1]), patch % grid[1], grid), area);
  const failed = () => {
    setLost(src);
    again(src);
  };
  // a server that does not answer is told of once, for the whole page: then this request waits
  const look = () => void source.at(src).then(failed, failed);
  const isLate = isBusy || (there !== src && lost !== src);
  return html`<${Figure} id="vv-w-photo" caption=${caption} save=${figure}>
    <div class=${isLate ? 'vv-part-picture vv-busy' : 'vv-part-picture'}>
      <div
        class=${pick ? 'vv-frame vv-pickable' : 'vv-frame'}
        data-photo
        tabindex="0"
        role=${pick ? 'application' : 'img'}
        aria-label=${caption + (pick ? `. ${KEY_WORDS}` : '')}
        style=${{ width: `calc(${wide / tall} * var(--vv-tallest))` }}
        ...${pick && { ...keys, onPointerMove: () => leave() }}
      >
        <img
          class="vv-image"
          alt=${caption}
          draggable=${false}
          hidden=${lost === src}
          src=${routeUrl(src)}
          style=${{ aspectRatio: String(wide / tall) }}
          onLoad=${() => setThere(src)}
          onError=${look}
          onClick=${pick && clicked}
        />
        <div class="vv-rings vv-layer" aria-hidden="true">
          ${rings?.rings.map((rect) => html`<span class="vv-ring" style=${placeIn(rect, rings.area)}></span>`)}
        </div>
        <${Pointed} at=${at} cols=${grid[1]} placeOf=${placeOf} />
        ${lost === src && html`<p class="vv-empty">${NOT_FETCHED}</p>`}
      </div>
      ${bar && html`<${ColourBar} ...${{ ...bar, colours: bar.stops, look: '' }} />`}
    </div>
  <//>`;
}

// --- what can be chosen

const IDS = Object.freeze(/** @type {Record<string, string>} */ ({ play: 'vv-w-slider' }));

/**
 * A number, by a slider or typed; while the slider is moved it is told once the hand rests.
 * @param {{control: Control, value: number, choose: (value: number) => void, reset: () => void}} props
 */
function Slider({ control: { option, label, low, high }, value, choose, reset }) {
  const { said, tell, listening } = useSlider(value, choose);
  const typed = (/** @type {HTMLInputElement} */ field) => {
    const number = Math.round(field.valueAsNumber);
    if (Number.isFinite(number)) tell(clamp(number, high, low));
    field.value = String(Number.isFinite(number) ? clamp(number, high, low) : value);
  };
  return html`<div id=${IDS[option] ?? `vv-w-${option}`} class="vv-w-control" data-option=${option}>
    <span class="vv-w-label">${label}</span>
    <span class="vv-w-exact">
      <input
        type="number"
        aria-label=${`number input for ${label}`}
        min=${low}
        max=${high}
        value=${said}
        onChange=${(/** @type {any} */ { target }) => typed(target)}
      /><button type="button" aria-label=${`Reset ${label} to its default`} onClick=${reset}>↺</button>
    </span>
    <span class="vv-w-range">
      <span>${low}</span>
      <input
        type="range"
        aria-label=${`range slider for ${label}`}
        min=${low}
        max=${high}
        step="1"
        value=${said}
        ...${listening}
      />
      <span>${high}</span>
    </span>
  </div>`;
}

/** One of a few options. @param {{control: Control, value: number, choose: (value: number) => void}} props */
function Choice({ control: { option, label, options = [] }, value, choose }) {
  return html`<fieldset id="vv-w-choice" class="vv-w-control" data-option=${option}>
    <legend class="vv-w-label">${label}</legend>
    ${options.map(
      (name, place) =>
        html`<label>
          <input type="radio" name="vv-w-choice" checked=${value === place} onChange=${() => choose(place)} />
          <span>${name}</span>
        </label>`,
    )}
  </fieldset>`;
}
