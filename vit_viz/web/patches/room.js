// The Patches tab: where the model cuts the photo, and the patches in the order in which it receives them. One pointer for both: what is
// pointed at in one is marked in the other.

import {
  cellAt,
  isNamed,
  patchQuery,
  patchRect,
  PLACES,
  placeWords,
  pointerIn,
  queryPatches,
} from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { percent } from '../../ui/kit/numbers.js';
import { cellUnder } from '../kit/parts.js';
import { asked } from '../kit/ask.js';
import { Figure } from '../kit/figure.js';
import { KEY_WORDS } from '../../ui/kit/elements.js';
import { usePointing } from '../kit/grid.js';
import { opened, thePage } from '../kit/page.js';
import { html, render, useLayoutEffect, useMemo, useRef, useSignal, useState } from '../kit/preact.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Signal } from '../kit/preact.js' */

/**
 * What a room knows of the photo and its tokens: the answer of vit_viz/ui/opened.py.
 * @typedef {import('../../explorer/geometry.js').Trace & {about: any}} Opened
 *
 * What is looked at of them.
 * @typedef {object} Looked
 * @property {() => number[]} pinned patches of the query
 * @property {Signal<number | null>} pointed the patch under the pointer
 * @property {(patch: number | null) => void} pin null: none any more
 */

/** @type {import('../../ui/kit/elements.js').Mount<{value: null}>} */
export function mount(element) {
  render(html`<${Patches} page=${thePage()} />`, element);
}

/** @param {{page: Page}} props */
export function Patches({ page: one }) {
  const { store, ask } = one;
  const answers = useMemo(() => {
    const open = opened(one, 'patches');
    const of = (/** @type {string} */ name) =>
      asked(ask, () => (open.value.state === 'done' ? [name, open.value.value.about] : null));
    return [open, of('patches'), of('sequence')];
  }, [one]);
  const pointed = useSignal(/** @type {number | null} */ (null));
  const failed = answers.find((answer) => answer.value.state === 'failed');
  const isBusy = answers.some((answer) => answer.value.state !== 'done');
  const shown = useRef(/** @type {any[] | null} */ (null)); // answers of one photo: never one's patches with another's pixels
  if (!isBusy) shown.current = answers.map((answer) => answer.value.value);
  if (failed) return html`<p class="vv-notice" role="alert">${failed.value.error}</p>`;
  if (!shown.current) return html`<div aria-busy="true"></div>`;
  /** @type {Opened} */
  const photo = shown.current[0];
  const [, { facts }, { arrays }] = shown.current;
  const query = () => store.view.q.value || photo.default_query;
  const looked = {
    pointed,
    pinned: () => queryPatches(query(), photo),
    pin: (/** @type {number | null} */ patch) =>
      store.set({ q: patchQuery(patch === null ? [] : [patch], photo.grid[1]) }),
  };
  const [top, left, bottom, right] = areaOf(photo);
  const shape = { '--vv-aspect': (right - left) / (bottom - top) };
  return html`<div class="vv-columns vv-room" aria-busy=${isBusy} style=${shape}>
    <div>
      <${Grid} ...${{ photo, looked, numbers: store.view.numbers.value, facts }} />
      <label class="vv-check"
        ><input
          type="checkbox"
          data-option="numbers"
          checked=${store.view.numbers.value}
          onChange=${(/** @type {any} */ { target }) => store.set({ numbers: target.checked })}
        />number the patches</label
      >
      <${Where} ...${{ photo, looked }} />
      ${photo.note && html`<p class="vv-note vv-small">${photo.note}</p>`}
    </div>
    <div>
      <h2 class="vv-title">${seenWords(photo.crop, facts.shapes.patches[0])}</h2>
      <${Shapes} photo=${photo} shapes=${facts.shapes} />
      <${Sequence}
        ...${{ photo, looked, query: query(), image: arrays.values }}
        choose=${(/** @type {string} */ name) => store.set({ q: name })}
      />
    </div>
  </div>`;
}

/** Lets a pointer mark a patch and choose it. @param {Looked} looked @param {(event: MouseEvent) => number | null} patchAt */
function pointing({ pointed, pin }, patchAt) {
  return {
    onClick(/** @type {MouseEvent} */ event) {
      const patch = patchAt(event);
      if (patch !== null) pin(patch);
    },
    onPointerMove: (/** @type {MouseEvent} */ event) => (pointed.value = patchAt(event)),
    onPointerLeave: () => (pointed.value = null),
  };
}

// --- the grid

/** @param {{photo: Opened, looked: Looked, numbers: boolean, facts: {note: string}}} props */
function Grid({ photo, looked, numbers, facts }) {
  const { grid, crop, model } = photo;
  const [rows, cols] = grid;
  const [top, left, height, width] = crop.region;
  const area = areaOf(photo);
  const [tall, wide] = [area[2] - area[0], area[3] - area[1]];
  const patchAt = (/** @type {MouseEvent} */ event) => {
    const cell = cellUnder(event, /** @type {Element} */ (event.currentTarget), area, crop.region, grid);
    return cell && cell[0] * cols + cell[1];
  };
  const pinned = looked.pinned();
  const { keys } = usePointing({
    ...{ grid, pinned: pinned.length === 1 ? pinned[0] : undefined, choose: looked.pin },
    point: (patch) => void (looked.pointed.value = patch),
  });
  const lines = [
    ...Array.from({ length: rows + 1 }, (_, row) => `M${left} ${top + (row * height) / rows}h${width}`),
    ...Array.from({ length: cols + 1 }, (_, col) => `M${left + (col * width) / cols} ${top}v${height}`),
  ].join('');
  const words = `${model} · ${rows} rows x ${cols} columns of patches · ${facts.note}`;
  return html`<${Figure}
    id="vv-grid-picture"
    caption=${words}
    save=${['patches', { ...photo.about, numbers }]}
  >
    <div
      class="vv-patch-grid"
      data-photo
      tabindex="0"
      role="application"
      aria-label=${`${words}. ${KEY_WORDS}`}
      ...${keys}
      ...${pointing(looked, patchAt)}
    >
      <svg viewBox="${area[1]} ${area[0]} ${wide} ${tall}" aria-hidden="true">
        <defs>
          <pattern
            id="vv-left-out"
            width="1"
            height="1"
            ...${{ patternUnits: 'userSpaceOnUse', patternTransform: `rotate(45) scale(${Math.max(tall, wide) / 40})` }}
          >
            <path d="M0 0h1v1h-1z" class="vv-patch-dim" />
            <path d="M0 0v1" class="vv-patch-hatch" />
          </pattern>
        </defs>
        <path class="vv-patch-pad" d="M${area[1]} ${area[0]}h${wide}v${tall}h${-wide}z" />
        <image
          href=${routeUrl(photo.photo)}
          width=${crop.original[1]}
          height=${crop.original[0]}
          preserveAspectRatio="none"
        />
        <path
          fill="url(#vv-left-out)"
          fill-rule="evenodd"
          d="M${area[1]} ${area[0]}h${wide}v${tall}h${-wide}zM${left} ${top}h${width}v${height}h${-width}z"
        />
        <path class="vv-patch-edge" d=${lines} />
        <path class="vv-patch-line" d=${lines} />
        ${numbers && html`<${Numbers} photo=${photo} />`}
        <${Marks} looked=${looked} rectOf=${(/** @type {number} */ patch) => rectOf(photo, patch)} />
      </svg>
    </div>
  <//>`;
}

/** The patch that is pointed at, or the query, by its place and by its number. @param {{photo: Opened, looked: Looked}} props */
function Where({ photo: { grid }, looked: { pointed, pinned } }) {
  const [patch] = pointed.value === null ? pinned() : [pointed.value];
  const words =
    patch !== undefined && `Patch ${placeWords(patch, grid[1])} is number ${patch} of the sequence. `;
  return html`<p class="vv-readout vv-small">${words}${PLACES}</p>`;
}

/** What of the photo is seen, and the padding beyond it: top, left, bottom, right in its pixels. @param {Opened} photo */
function areaOf({ crop: { original, region } }) {
  const [top, left, height, width] = region;
  return [
    Math.min(0, top),
    Math.min(0, left),
    Math.max(original[0], top + height),
    Math.max(original[1], left + width),
  ];
}

/** The number of each patch, 0 first, row by row. @param {{photo: Opened}} props */
function Numbers({ photo }) {
  const [rows, cols] = photo.grid;
  const [, , height, width] = photo.crop.region;
  const size = Math.min(height / rows / 1.6, width / cols / (0.8 + 0.6 * String(rows * cols - 1).length));
  return html`<g class="vv-patch-numbers" style=${{ fontSize: `${size}px`, strokeWidth: size / 5 }}>
    ${Array.from({ length: rows * cols }, (_, patch) => {
      const [top, left, bottom, right] = rectOf(photo, patch);
      return html`<text x=${(left + right) / 2} y=${(top + bottom) / 2}>${patch}</text>`;
    })}
  </g>`;
}

/** Rings around the patches of the query, and the one under the pointer. @param {{looked: Looked, rectOf: (patch: number) => number[]}} props */
function Marks({ looked: { pinned, pointed }, rectOf: placeOf }) {
  const ring = (/** @type {number} */ patch, /** @type {string} */ kind) => {
    const [top, left, bottom, right] = placeOf(patch);
    const place = { x: left, y: top, width: right - left, height: bottom - top };
    return html`<g class=${kind}
      ><rect class="vv-patch-ring-edge" ...${place} /><rect class="vv-patch-ring" ...${place}
    /></g>`;
  };
  return html`${pinned().map((patch) => ring(patch, 'vv-pinned'))}${pointed.value !== null && ring(pointed.value, 'vv-pointed')}`;
}

/** A patch in pixels of the photo: top, left, bottom, right. @param {Opened} photo @param {number} patch */
function rectOf({ crop, grid }, patch) {
  return patchRect(crop, Math.floor(patch / grid[1]), patch % grid[1], grid);
}

// --- the sequence

/** What becomes of the photo, and how much of it is not seen. @param {Opened['crop']} crop @param {number} count of patches */
export function seenWords({ original, region, input }, count) {
  const [down, across] = [input[0] / region[2], input[1] / region[3]];
  const isAlike = Math.abs(down / across - 1) < 0.02; // but for what whole patches need
  const how = !isAlike
    ? 'Stretched to the shape that the model takes'
    : Math.abs(across - 1) < 0.005
      ? 'At its own size'
      : `${across < 1 ? 'Shrunk' : 'Enlarged'} to ${percent(across)} of its width`;
  const seen = [0, 1].map((axis) => {
    const [from, to] = [region[axis], region[axis] + region[axis + 2]];
    return (Math.min(to, original[axis]) - Math.max(from, 0)) / original[axis];
  });
  const left = 1 - seen[0] * seen[1];
  return `${how}, the photo becomes ${count} patches; ${left < 0.005 ? 'nothing' : percent(left)} of it is left out`;
}

/** The three shapes between pixels and tokens. @param {{photo: Opened, shapes: Record<string, number[]>}} props */
function Shapes({ photo: { prefix, suffix, grid }, shapes }) {
  const [channels, tall, wide] = shapes.patch;
  const count = grid[0] * grid[1];
  /** @type {[string, number[], string][]} */
  const steps = [
    ['image', shapes.image, 'channels, height, width'],
    ['patches', shapes.patches, `${tall} x ${wide} pixels x ${channels} channels each`],
    [
      'tokens',
      shapes.tokens,
      `${prefix.length} prefix + ${count} patches${suffix.length ? ` + ${suffix.length} suffix` : ''}`,
    ],
  ];
  return html`<div class="vv-steps">
    ${steps.map(
      ([name, shape, what], place) =>
        html`${place > 0 && html`<i aria-hidden="true">→</i>`}
          <div class="vv-step"><b>${name}</b><code>[${shape.join(', ')}]</code><span>${what}</span></div>`,
    )}
  </div>`;
}

const TILE = 28; // pixels of the longer side of a patch
const GAP = 3;
const FEW = 8; // suffix tokens that are named one by one; of more, the first two and the last

/**
 * The tokens in the order in which the model receives them, wrapped like text.
 * @param {{photo: Opened, looked: Looked, query: string, image: {shape: number[], data: Uint8Array}, choose: (name: string) => void}} props
 */
function Sequence({ photo, looked, query, image, choose }) {
  const { grid, model, prefix, suffix } = photo;
  const count = grid[0] * grid[1];
  const size = [image.shape[0] / grid[0], image.shape[1] / grid[1]]; // of a patch, in pixels of the input
  const [tall, wide] = size.map((side) => Math.round((TILE * side) / Math.max(...size)));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [room, setRoom] = useState(0); // none while the tab is not seen
  useLayoutEffect(() => {
    const place = /** @type {HTMLElement} */ (box.current);
    const measure = () => setRoom(place.clientWidth);
    measure(); // before it is first seen
    const fit = new ResizeObserver(measure);
    fit.observe(place);
    return () => fit.disconnect();
  }, []);
  const across = Math.max(1, Math.min(count, Math.floor(((room || 600) + GAP) / (wide + GAP))));
  const lines = Math.ceil(count / across);
  const [pitch, width, height] = [tall + GAP, across * (wide + GAP) - GAP, lines * (tall + GAP) - GAP];
  const rectAt = (/** @type {number} */ patch) => {
    const [top, left] = [Math.floor(patch / across) * pitch, (patch % across) * (wide + GAP)];
    return [top, left, top + tall, left + wide];
  };
  useLayoutEffect(() => {
    const sheet = /** @type {HTMLCanvasElement} */ (canvas.current);
    const scale = globalThis.devicePixelRatio || 1;
    sheet.width = Math.round(width * scale);
    sheet.height = Math.round(height * scale);
    const paint = /** @type {CanvasRenderingContext2D} */ (sheet.getContext('2d'));
    paint.scale(scale, scale);
    paint.imageSmoothingEnabled = false; // the model's own pixels
    const input = inputCanvas(image);
    for (let patch = 0; patch < count; patch++) {
      const [row, col] = [Math.floor(patch / grid[1]), patch % grid[1]];
      const [top, left] = rectAt(patch);
      paint.drawImage(input, col * size[1], row * size[0], size[1], size[0], left, top, wide, tall);
    }
  }, [image, photo, width, height]);
  const patchAt = (/** @type {MouseEvent} */ event) => {
    const [down, right] = pointerIn(event, /** @type {Element} */ (event.currentTarget));
    const cell = cellAt([down, right], [lines, across]);
    const patch = cell && cell[0] * across + cell[1];
    return patch !== null && patch < count ? patch : null;
  };
  const words = `${model} · the sequence: ${orderWords(photo)}`;
  const last = suffix.length > FEW ? [...suffix.slice(0, 2), ...suffix.slice(-1)] : suffix;
  const names = (/** @type {string} */ label, /** @type {string[]} */ tokens) =>
    tokens.length > 0 &&
    html`<div class="vv-row" role="group" aria-label=${label}>
      <span class="vv-small">${label}</span>
      ${tokens.map(
        (name) =>
          html`<button
            type="button"
            class="vv-chip"
            title=${`Makes this token, ${name}, the query`}
            aria-pressed=${query === name && isNamed(name, photo)}
            onClick=${() => choose(name)}
          >
            ${name}
          </button>`,
      )}
    </div>`;
  return html`<${Figure} id="vv-sequence-picture" caption=${words} save=${['sequence', photo.about]}>
    ${names('prefix', prefix)}
    <div class="vv-sequence">
      <ol class="vv-sequence-labels vv-small" aria-hidden="true" style=${{ gridAutoRows: `${pitch}px` }}>
        ${Array.from({ length: lines }, (_, line) => {
          const [from, to] = [line * across, Math.min(count, (line + 1) * across) - 1];
          return html`<li>${from === to ? from : `${from} – ${to}`}</li>`;
        })}
      </ol>
      <div class="vv-sequence-box" ref=${box}>
        <div
          class="vv-sequence-sheet"
          role="img"
          aria-label=${words}
          style=${{ width: `${width}px`, height: `${height}px` }}
          ...${pointing(looked, patchAt)}
        >
          <canvas class="vv-layer" ref=${canvas}></canvas>
          <svg class="vv-layer" viewBox="0 0 ${width} ${height}" aria-hidden="true">
            <${Marks} looked=${looked} rectOf=${rectAt} />
          </svg>
        </div>
      </div>
    </div>
    ${names('suffix', last)}
  <//>`;
}

/** The order of the tokens in words; many suffix tokens by the first and the last. @param {Opened} photo */
function orderWords({ grid, prefix, suffix }) {
  const first = prefix.length ? `${prefix.join(', ')}, then ` : '';
  const names = suffix.length > 4 ? `${suffix[0]} to ${suffix.at(-1)}` : suffix.join(', ');
  return `${first}${grid[0] * grid[1]} patches, row by row${suffix.length ? `, then ${names}` : ''}`;
}

/** The picture that the model received. @param {{shape: number[], data: Uint8Array}} image bytes, [height, width] or [height, width, 3] */
function inputCanvas({ shape: [height, width, channels = 1], data }) {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const paint = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const pixels = paint.createImageData(width, height);
  for (let place = 0; place < width * height; place++)
    for (let colour = 0; colour < 4; colour++)
      pixels.data[4 * place + colour] =
        colour < 3 ? data[place * channels + (channels > 1 ? colour : 0)] : 255;
  paint.putImageData(pixels, 0, 0);
  return canvas;
}
