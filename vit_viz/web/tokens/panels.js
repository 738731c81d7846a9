// What stands beside the maps of the Tokens tab: a histogram, a matrix of layers, segments, and a register that is added.

import { Picture } from '../../explorer/paint.js';
import { LIGHT, layerTable } from '../../explorer/styles.js';
import { gradient } from '../../ui/kit/elements.js';
import { rangeOf, short, stopsOf } from '../../ui/kit/numbers.js';
import { Cells, PhotoStage, Problem } from '../kit/parts.js';
import { html, useLayoutEffect, useMemo, useRef, useState } from '../kit/preact.js';
import { segmentColour } from './plate.js';
import { labelsOf, litSegment, othersOf, registerPairs, registerWords, lineOf } from './questions.js';
/** @import { Answer } from './held.js' */
/** @import { Scene } from './scene.js' */

/** What stands below the table, where it is here. @param {{scene: Scene}} props */
export function Panel({ scene }) {
  const { measure, state, held } = scene;
  const told = scene.told(measure, state);
  const compared = measure === 'layers' && held.known(/** @type {any} */ (scene.more).piece);
  return html`<div class="vv-tokens-panel vv-stack">
    ${measure === 'norms' && told && html`<${Histogram} ...${{ scene, told }} />`}
    ${compared && html`<${Matrix} key=${scene.subject.trace + scene.options.token_role} told=${compared} />`}
    ${measure === 'segments' && told && html`<${Legend} ...${{ scene, told }} />`}
  </div>`;
}

// --- norms

const BINS = 32;
const WIDTH = 320; // in units of the drawing
const HEIGHT = 96;

/** How many tokens have each length, from 0 to the largest, which is in the last bar. @param {{scene: Scene, told: Answer}} props */
function Histogram({ scene: { state, options }, told: { arrays } }) {
  const others = othersOf(arrays, 'maps.').map(([, values]) => values[state]);
  const values = [...lineOf(arrays['maps.values'], state), ...others];
  const top = Math.max(...values, 0);
  const counts = Array(BINS).fill(0);
  for (const value of values) counts[top > 0 ? Math.min(BINS - 1, Math.floor((BINS * value) / top)) : 0]++;
  const threshold = arrays.thresholds.data[state];
  const most = Math.max(...counts, 1);
  const words = `${values.length} tokens, up to ${most} in a bar; beyond ${short(threshold)}, ${options.token_factor} medians, a token is an outlier.`;
  const bars = counts.map((count, bin) => {
    const height = count ? Math.max(3, (count / most) * (HEIGHT - 4)) : 0; // a single outlier is seen too
    const isFar = ((bin + 0.5) / BINS) * top > threshold;
    const place = { x: bin * (WIDTH / BINS), y: HEIGHT - height, width: WIDTH / BINS - 1, height };
    return html`<rect class=${isFar ? 'vv-tokens-far' : 'vv-tokens-count'} ...${place} />`;
  });
  const limit = (threshold / top) * WIDTH;
  return html`<h3 class="vv-title">Norms of this state</h3>
    <svg
      class="vv-tokens-histogram"
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="How many tokens have each norm: ${words}"
    >
      ${bars}
      ${threshold < top && html`<line class="vv-tokens-limit" x1=${limit} x2=${limit} y1="0" y2=${HEIGHT} />`}
    </svg>
    <div class="vv-tokens-ends vv-bar vv-small">
      <span>0</span><span>norm</span><span>${short(top)}</span>
    </div>
    <p class="vv-small">${words}</p>`;
}

// --- layers

/** How alike any two layers are. @param {{told: Answer}} props */
function Matrix({ told }) {
  const { names, unit, note } = told.facts;
  const [cell, setCell] = useState(/** @type {[number, number] | null} */ (null));
  const values = useMemo(() => Float32Array.from(told.arrays.values.data), [told]);
  const [low] = rangeOf([values]);
  const paint = useMemo(
    () => (/** @type {Picture} */ picture) => picture.paint(values, LIGHT, [low, 1]),
    [told],
  );
  const cellWords = (/** @type {[number, number]} */ [row, col]) => {
    const other = row === col ? 'itself' : names[col];
    return `${names[row]} with ${other}: ${short(lineOf(told.arrays.values, row)[col])}`;
  };
  /** The names of the first layer and every k-th, eight at most; each cell names its layers when it is read. */
  const side = (/** @type {'down' | 'across'} */ axis) =>
    html`<div class="vv-tokens-ticks vv-tokens-${axis} vv-small" aria-hidden="true">
      ${names.map(
        (/** @type {string} */ name, /** @type {number} */ layer) =>
          layer % Math.ceil(names.length / 8) === 0 &&
          html`<span style=${{ '--at': `${(100 * (layer + 0.5)) / names.length}%` }}
            >${name.replace(/^after layer /, '')}</span
          >`,
      )}
    </div>`;
  return html`<h3 class="vv-title">How alike the layers are</h3>
    <div class="vv-tokens-sides">
      ${side('down')}
      <${Cells}
        ...${{ grid: [names.length, names.length], paint, look: 'vv-tokens-matrix' }}
        label="How alike any two layers are"
        read=${(/** @type {number} */ row, /** @type {number} */ col) => setCell([row, col])}
      />
      ${side('across')}
    </div>
    <div class="vv-tokens-ends vv-bar vv-small">
      <span>${names[0]}, then after each layer; down and across</span><span>${short(low)}</span
      ><span class="vv-strip" style=${{ background: gradient(stopsOf(LIGHT)) }}></span><span>1</span>
    </div>
    <p class="vv-quiet vv-tokens-cell" aria-live="polite">
      ${cell ? cellWords(cell) : 'Point at a cell, or move with the arrow keys.'}
    </p>
    <p class="vv-small">${unit}. ${note}</p>`;
}

// --- segments

/** The segments by their colours; the one that is pointed at is lit on the photo. @param {{scene: Scene, told: Answer}} props */
function Legend({ scene, told }) {
  const { lit } = scene.held;
  const { sizes, share } = labelsOf(told);
  const overlap = told.arrays.overlap && [...told.arrays.overlap.data];
  const shown = litSegment(scene, told);
  useLayoutEffect(() => () => void (lit.value = null), [lit]);
  const light = (/** @type {number | null} */ segment) => () => void (lit.value = segment);
  const best = overlap ? overlap.indexOf(Math.max(...overlap)) : -1;
  const isAlone = overlap && overlap.indexOf(overlap[best], best + 1) < 0;
  const about = overlap
    ? `Overlap with the box: intersection over union, in areas of patches${isAlone ? `; segment ${best} comes closest` : ''}.`
    : 'Draw a box on the photo to read how far each segment overlaps with it.';
  return html`<h3 class="vv-title">Segments</h3>
    <ul class="vv-tokens-legend vv-row">
      ${sizes.map(
        (_, segment) =>
          html`<li key=${segment}>
            <button
              class="vv-button vv-plain"
              data-on=${shown === segment ? '' : undefined}
              onPointerEnter=${light(segment)}
              onFocus=${light(segment)}
              onPointerLeave=${light(null)}
              onBlur=${light(null)}
            >
              <span
                class="vv-swatch"
                style=${{ background: `rgb(${segmentColour(segment).join(' ')})` }}
              ></span
              >segment ${segment}<span class="vv-quiet"
                >${share(segment)}${overlap && `, overlap ${short(overlap[segment])}`}</span
              >
            </button>
          </li>`,
      )}
    </ul>
    <p class="vv-small">${told.facts.method}; the largest segment is 0. ${about}</p>`;
}

// --- a register

const FLAT = 0.75; // opacity of the maps before and after a register

/** What adding a register changed; why it could not be added. @param {{scene: Scene, again: () => void}} props */
export function Added({ scene, again }) {
  const { more, held } = scene;
  const isWanted = more?.row === 'register';
  const told = isWanted && held.known(more.piece);
  const failed = isWanted && held.errorOf('register');
  return html`<div class="vv-tokens-register vv-stack" hidden=${!told && !failed}>
    ${failed && html`<${Problem} ...${{ words: failed, again, look: 'vv-tokens-error vv-notice' }} />`}
    ${
      told &&
      html`<h3 class="vv-title">Before and after a register was added</h3>
        <p class="vv-quiet">${registerWords(told.facts)}</p>
        ${registerPairs(told, scene).map(
          ({ words, maps, outliers }) =>
            html`<div class="vv-tokens-pair">
              ${maps.map((map, i) => {
                const range = rangeOf(maps);
                const said = `${words}, ${i ? 'after' : 'before'}: ${short(range[0])} to ${short(range[1])}`;
                return html`<${Flat} ...${{ scene, words: said, map, range, outliers: outliers[i] }} />`;
              })}
            </div>`,
        )}`
    }
  </div>`;
}

/** A map over the photo, as it is. @param {{scene: Scene, words: string, map: Float32Array, range: [number, number], outliers: number[]}} props */
function Flat({ scene, words, map, range, outliers }) {
  const { subject, colours, cols } = scene;
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useLayoutEffect(() => {
    const picture = new Picture(/** @type {HTMLCanvasElement} */ (canvas.current), cols, subject.grid[0]);
    picture.paint(map, layerTable('heat', FLAT, colours), range);
  });
  const rings = outliers.map((patch) => [patch, 'vv-ring vv-outlier']);
  return html`<figure class="vv-plate-figure vv-stack">
    <${PhotoStage} ...${{ photo: subject, rings, map: canvas, look: 'vv-plate' }} />
    <figcaption class="vv-small">${words}</figcaption>
  </figure>`;
}
