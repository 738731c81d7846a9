// Views that are forbidden: which tokens, chosen by name, typed, or drawn on the photo, no longer see which others, in which layers.

import { nearestCell, patchRect } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { tidy } from '../kit/option.js';
import { cellUnder, placeOfRect } from '../kit/parts.js';
import { html, useRef, useState } from '../kit/preact.js';
/** @import { Seen, Subject } from './room.js' */

/** The choice that means patches by their place. */
const PLACES = 'some patches';
const SIDES = /** @type {const} */ (['seeing', 'seen']);
const WORDS = Object.freeze({
  seeing: ['tokens', 'Patches that look: rows,columns'],
  seen: ['no longer see', 'Patches that are not seen: rows,columns'],
});
const NO_PATCHES = 'Which patches? Draw them on the photo, or type them.';

/** @type {Record<string, string>} */
const LABELS = {
  class: 'class token',
  patches: 'all patches',
  registers: 'all registers',
  everything: 'all tokens',
};
const MANY = 16; // named tokens beyond which those behind the patches are left to be typed

/** The tokens to choose from by name: those that are no patches, and groups. @param {Pick<Subject, 'prefix' | 'suffix'>} subject */
export function namedTokens({ prefix, suffix }) {
  const all = [...prefix, ...suffix];
  const hasRegisters = all.filter((name) => name.startsWith('register')).length > 1;
  const names = [
    ...(all.length > MANY ? prefix : all),
    ...['patches', ...(hasRegisters ? ['registers'] : []), 'everything'],
  ];
  return names.map((value) => ({ value, label: LABELS[value] ?? value }));
}

/** @param {{seen: Seen, tokens: {value: string, label: string}[]}} props tokens: those that can be chosen by name */
export function Forbid({ seen: { subject, edits, edit, editor }, tokens }) {
  const [chosen, setChosen] = useState({ seeing: tokens[0].value, seen: PLACES });
  const [typed, setTyped] = useState({ seeing: '', seen: '' });
  const [layers, setLayers] = useState('');
  const [touched, touch] = useState(/** @type {'seeing' | 'seen'} */ ('seen')); // the side that a rectangle on the photo is for
  const byPlace = SIDES.filter((side) => chosen[side] === PLACES);
  const side = byPlace.includes(touched) ? touched : (byPlace[0] ?? touched);
  const corner = useRef(/** @type {[number, number] | null} */ (null));
  const { crop, grid } = subject;

  const cellAt = (/** @type {PointerEvent} */ event) =>
    cellUnder(
      event,
      /** @type {Element} */ (event.currentTarget),
      [0, 0, ...crop.original],
      crop.region,
      grid,
      corner.current ? nearestCell : undefined,
    );
  /** The rectangle from where the pointer went down to where it is. */
  const stretch = (/** @type {PointerEvent} */ event) => {
    const [first, last] = [corner.current, cellAt(event)];
    if (!first || !last) return;
    const span = (/** @type {number} */ axis) => {
      const [low, high] = [Math.min(first[axis], last[axis]), Math.max(first[axis], last[axis])];
      return low === high ? `${low}` : `${low}-${high}`;
    };
    setTyped((before) => ({ ...before, [side]: `${span(0)},${span(1)}` }));
  };
  const begin = (/** @type {any} */ event) => {
    corner.current = cellAt(event);
    if (!corner.current) return;
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    stretch(event);
  };
  const end = () => void (corner.current = null);
  const forbid = () => {
    const regions = SIDES.map((one) => (chosen[one] === PLACES ? tidy(typed[one]) : chosen[one]));
    if (regions.includes('')) return void (editor.refused.value = NO_PATCHES);
    const where = layers.trim().replaceAll(' ', '').replaceAll(',', '+');
    const view = regions.join('>') + (where && where !== 'all' ? `@${where}` : '');
    edit(({ forbidden, ...others }) => ({
      ...others,
      forbidden: [...forbidden.filter((one) => one !== view), view],
    }));
  };

  const field = (/** @type {'seeing' | 'seen'} */ one) =>
    html`<label class="vv-field"
        >${WORDS[one][0]}
        <select
          class=${`vv-surgery-${one} vv-control`}
          value=${chosen[one]}
          onChange=${(/** @type {any} */ { currentTarget }) => {
            touch(one);
            setChosen((before) => ({ ...before, [one]: currentTarget.value }));
          }}
        >
          ${[...tokens, { value: PLACES, label: PLACES }].map(
            ({ value, label }) => html`<option key=${value} value=${value}>${label}</option>`,
          )}
        </select></label
      >
      <input
        class=${`vv-surgery-${one}-patches vv-control`}
        type="text"
        size="12"
        placeholder="2-4,3-5"
        aria-label=${WORDS[one][1]}
        hidden=${!byPlace.includes(one)}
        value=${typed[one]}
        onFocus=${() => touch(one)}
        onInput=${(/** @type {any} */ { currentTarget }) => setTyped((before) => ({ ...before, [one]: currentTarget.value }))}
      />`;
  const outline = rectOf(tidy(typed[side]), subject);
  return html`<details class="vv-surgery-views vv-card">
      <summary>Forbid tokens to see others</summary>
      <div class="vv-row">${SIDES.map(field)}</div>
      <div class="vv-row">
        <label class="vv-field"
          >in layers
          <input
            class="vv-surgery-layers vv-control"
            type="text"
            size="8"
            placeholder="all"
            value=${layers}
            onInput=${(/** @type {any} */ { currentTarget }) => setLayers(currentTarget.value)}
        /></label>
        <button type="button" class="vv-button vv-surgery-forbid" onClick=${forbid}>Forbid</button>
      </div>
      ${
        byPlace.length > 0 &&
        html`<div
            class="vv-surgery-stage"
            onPointerDown=${begin}
            onPointerMove=${stretch}
            onPointerUp=${end}
            onPointerCancel=${end}
          >
            <img
              class="vv-surgery-photo vv-photo"
              src=${routeUrl(subject.photo)}
              alt=${subject.name}
              draggable=${false}
            />
            ${outline && html`<div class="vv-surgery-box" style=${placeOfRect(crop, outline)}></div>`}
          </div>
          <p class="vv-small vv-surgery-hint">
            Draw a rectangle on the photo for the patches, or type rows,columns such as 2-4,3-5.
          </p>`
      }
    </details>
    <ul class="vv-surgery-forbidden" aria-label="Forbidden views">
      ${edits.forbidden.map((view) => {
        const [regions, where] = view.split('@');
        const [seeing, seen] = regions.split('>');
        const words = `${seeing} no longer sees ${seen}${where ? `, in layers ${where}` : ''}`;
        return html`<li key=${view}>
          ${words}<button
            type="button"
            class="vv-button vv-plain"
            aria-label=${`Allow again: ${words}`}
            onClick=${() => edit(({ forbidden, ...others }) => ({ ...others, forbidden: forbidden.filter((one) => one !== view) }))}
          >
            Allow
          </button>
        </li>`;
      })}
    </ul>`;
}

/** Patches as they are typed, in pixels of the original; null where that is no rectangle of them. @param {string} typed @param {Subject} subject */
function rectOf(typed, { crop, grid }) {
  const match = /^(\d+)(?:-(\d+))?,(\d+)(?:-(\d+))?$/.exec(typed);
  if (!match) return null;
  const [top, bottom, left, right] = [match[1], match[2] ?? match[1], match[3], match[4] ?? match[3]].map(
    Number,
  );
  const [first, last] = [patchRect(crop, top, left, grid), patchRect(crop, bottom, right, grid)];
  return [first[0], first[1], last[2], last[3]];
}
