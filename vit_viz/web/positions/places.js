// How alike the positions of any two places are: a small map for each place, one of them enlarged beside the same place on the photo,
// and the curve of likeness over distance. All small maps are fetched once; the pointer enlarges one without asking the server.

import { cellAt, placeIn, placeWords, pointerIn } from '../../explorer/geometry.js';
import { Picture, tableIndex } from '../../explorer/paint.js';
import { askForFigure } from '../../explorer/source.js';
import { byPointer, KEY_WORDS } from '../../ui/kit/elements.js';
import { fixed, short } from '../../ui/kit/numbers.js';
import { usePointing } from '../kit/grid.js';
import { Cells, ColourBar, PhotoStage } from '../kit/parts.js';
import { heightOf, Plot } from '../kit/plot.js';
import { html, useLayoutEffect, useRef, useSignal } from '../kit/preact.js';
/** @import { Photo } from '../kit/parts.js' */

/**
 * @typedef {[number, number]} Grid rows, cols
 * @typedef {{arrays: Record<string, {shape: number[], data: Float32Array}>, facts: any}} Answer
 * @typedef {(name: string, body: any, stop: AbortSignal) => Promise<Answer>} Ask
 * @typedef {Pick<import('../kit/ask.js').Source, 'places'>} Tiles
 *
 * What is drawn, and of what.
 * @typedef {object} Of
 * @property {string} model
 * @property {string} trace where the server has the view
 * @property {import('../kit/parts.js').Photo} photo with the grid of its patches
 * @property {string[]} prefix
 * @property {{questions: string[], grid: Grid | null, prefix: string[], why: string}} positions what the model has of them; why: there
 *     are none to compare
 * @property {boolean} isTrained whether the grid is that of the training, and not that of the photo
 * @property {string} query
 *
 * @typedef {[number, number]} Place row, col
 *
 * What is drawn of the positions.
 * @typedef {object} Similarity
 * @property {Float32Array} values the small maps, [rows / every, cols / every, rows, cols]
 * @property {number} every of how many places in either direction one has a small map
 * @property {string} unit
 * @property {number} cell width of a patch over its height, on the photo
 * @property {Photo} photo with the grid of the positions
 * @property {Place} place the one that is pinned, or in the middle
 * @property {Float32Array} row its likeness with all places
 * @property {{name: string, values: Float32Array} | null} prefix a token beside the patches that has a position
 * @property {string} title
 * @property {string} about
 * @property {string} direction
 * @property {Float32Array} mean of likeness by distance
 * @property {Float32Array} low
 * @property {Float32Array} high
 * @property {number[]} pairs
 * @property {import('../../explorer/source.js').Saved[]} saved of all places, of one, and of the prefix token
 */

/** @type {[number, number]} */
const RANGE = [-1, 1];
const MOST_TICKS = 7;
const TARGET = 600; // pixels of the longer side of all small maps

/** The grid that positions are shown on. @param {Of} of @returns {Grid} */
export function shownGrid({ isTrained, positions: known, photo }) {
  return (isTrained && known.grid) || photo.grid;
}

/** A grid as a question takes it; 0 is the one of the training. @param {Of} of */
export function gridAsked({ isTrained, photo: { grid } }) {
  return isTrained ? { rows: 0, cols: 0 } : { rows: grid[0], cols: grid[1] };
}

/** The place that a query pins, on the grid that is shown; else the one in the middle. @param {Of} of @returns {Grid} */
export function placeOf(of) {
  const grid = shownGrid(of);
  const { grid: own } = of.photo;
  const place = /^\s*(\d+),(\d+)/.exec(of.query)?.slice(1).map(Number);
  const along = (/** @type {0 | 1} */ axis) =>
    place ? Math.min(Math.floor((place[axis] * grid[axis]) / own[axis]), grid[axis] - 1) : grid[axis] >> 1;
  return [along(0), along(1)];
}

/**
 * Asks for all that is drawn of the positions.
 * @param {Ask} ask @param {Of} of @param {AbortSignal} stop @param {Tiles} source @returns {Promise<Similarity>}
 */
export async function similarity(ask, of, stop, source) {
  const { model, trace, photo, positions } = of;
  if (positions.why) throw new Error(positions.why);
  const { rows, cols } = gridAsked(of);
  const [grid, place] = [shownGrid(of), placeOf(of)];
  const own = positions.prefix;
  const name = own.includes(of.query) ? of.query : own[0];
  const onGrid = { model, grid: rows ? `${rows},${cols}` : '' };
  const placeAlone = (/** @type {string} */ one) => ask('positions', { ...onGrid, place: one }, stop);
  const [distance, row, prefix, values] = await Promise.all([
    ask('position_distance', { model, rows, cols }, stop),
    placeAlone(place.join(',')),
    name ? placeAlone(name) : null,
    tilesOf(source, trace, of.isTrained ? 'trained' : 'image', stop),
  ]);
  const [, , height, width] = photo.crop.region;
  const [title, ...rest] = distance.facts.note.split(/[.] |[.]$/);
  return {
    values,
    every: everyIn(values.length, grid),
    unit: row.facts.unit,
    cell: width / photo.grid[1] / (height / photo.grid[0]),
    photo: { ...photo, grid },
    place,
    row: row.arrays.values.data,
    prefix: prefix && { name, values: prefix.arrays.values.data },
    title,
    about: aboutWords(of, grid, row.facts.note),
    direction: rest
      .filter(Boolean)
      .map((/** @type {string} */ one) => `${one}.`)
      .join(' '),
    mean: distance.arrays.y.data,
    low: distance.arrays['band.low'].data,
    high: distance.arrays['band.high'].data,
    pairs: pairsIn(grid),
    saved: ['', place.join(','), name].map((one) => ['positions', { ...onGrid, place: one }]),
  };
}

/** The small maps that were fetched last. @type {{of: string, values: Float32Array} | null} */
let kept = null;

/** @param {Tiles} source @param {string} trace @param {'trained' | 'image'} grid @param {AbortSignal} stop */
async function tilesOf(source, trace, grid, stop) {
  const of = `${trace} ${grid}`;
  if (kept?.of !== of) kept = { of, values: await source.places(trace, grid, stop) };
  return kept.values;
}

/** Of how many places in either direction one has a small map. @param {number} count of all numbers @param {Place} grid */
export function everyIn(count, [rows, cols]) {
  let every = 1;
  while (
    every < Math.max(rows, cols) &&
    Math.ceil(rows / every) * Math.ceil(cols / every) * rows * cols > count
  )
    every += 1;
  return every;
}

/** How many pairs of places are so many steps apart, in a straight line, by the steps. @param {Place} grid */
export function pairsIn([rows, cols]) {
  /** @type {number[]} */
  const pairs = [];
  for (let down = 0; down < rows; down++)
    for (let across = down ? 1 - cols : 0; across < cols; across++) {
      const steps = Math.round(Math.hypot(down, across));
      pairs[steps] = (pairs[steps] ?? 0) + (rows - down) * (cols - Math.abs(across));
    }
  return pairs;
}

/** Where the positions come from, and who has none, in sentences. @param {Of} of @param {Place} grid @param {string} note */
export function aboutWords({ photo, prefix, positions }, grid, note) {
  const [here, shown] = [photo.grid.join(' x '), grid.join(' x ')];
  const isOwn = positions.questions.includes('resampling') && positions.grid?.join(' x ') === shown;
  const rest = here === shown ? 'this photo uses them as they are' : `this photo has ${here} patches`;
  const trained = isOwn ? `The positions were trained at ${shown}; ${rest}.` : '';
  const without = prefix.length && !positions.prefix.length ? withoutWords(prefix) : '';
  return [trained, note, without].filter(Boolean).join(' ');
}

/** Who has no position, in a sentence. @param {string[]} prefix names of tokens */
function withoutWords(prefix) {
  /** @type {Map<string, number>} */
  const kinds = new Map();
  for (const name of prefix) {
    const kind = name.replace(/[ 0-9]+$/, '');
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const names = [...kinds].map(
    ([kind, count]) => `the ${kind}${count > 1 ? 's' : ''}${kind === 'register' ? '' : ' token'}`,
  );
  const words = names.join(' and ');
  const rest = prefix.length > 1 ? 'have no position of their own' : 'has no position of its own';
  return `${words[0].toUpperCase()}${words.slice(1)} ${rest}.`;
}

/**
 * Paints all small maps, each cell as a square of so many pixels that together they are about as large as on the screen, a clear line
 * of one pixel between two maps.
 * @param {Picture} picture @param {Float32Array} values @param {Place} shown rows and columns of maps @param {Place} grid of each
 * @param {Uint32Array} table
 */
export function paintTiles(picture, values, [down, across], [rows, cols], table) {
  const zoom = Math.max(1, Math.round(TARGET / Math.max(down * rows, across * cols)));
  const [tall, wide] = [rows * zoom + 1, cols * zoom + 1];
  const stride = across * wide - 1;
  picture.resize(stride, down * tall - 1);
  picture.pixels.fill(0);
  for (let cell = 0; cell < values.length; cell++) {
    const [tile, place] = [Math.floor(cell / (rows * cols)), cell % (rows * cols)];
    const top = Math.floor(tile / across) * tall + Math.floor(place / cols) * zoom;
    const left = (tile % across) * wide + (place % cols) * zoom;
    const colour = table[tableIndex(values[cell], ...RANGE)];
    for (let row = top; row < top + zoom; row++)
      picture.pixels.fill(colour, row * stride + left, row * stride + left + zoom);
  }
  picture.show();
}

/** A distance in words. */
export function stepWords(/** @type {number} */ step, /** @type {number[]} */ [mean, low, high], pairs = 0) {
  const apart = step === 1 ? '1 step' : `${step} steps`;
  const ends = `a tenth below ${fixed(low, 2)}, a tenth above ${fixed(high, 2)}`;
  return `${apart} apart: ${fixed(mean, 2)} on average of ${pairs} pairs; ${ends}.`;
}

/** The place of a patch on a grid. @param {number} patch @param {Grid} grid @returns {Place} */
const placeAt = (patch, [, cols]) => [Math.floor(patch / cols), patch % cols];

/**
 * All small maps, one of them enlarged beside the photo, and the curve over distance.
 * @param {{told: Similarity, table: Uint32Array, pin: (place: Place | null) => void}} props
 */
export function Places({ told, table, pin }) {
  const { photo, every, place, cell, unit, prefix, values } = told;
  const { grid } = photo;
  const [rows, cols] = grid;
  /** How many rows and columns of small maps there are. @type {Grid} */
  const shown = [Math.ceil(rows / every), Math.ceil(cols / every)];
  const spot = useSignal(/** @type {Place | null} */ (null)); // the place under the pointer
  const read = useSignal('');
  useLayoutEffect(() => {
    spot.value = null;
    read.value = '';
  }, [told]);
  const point = (/** @type {Place | null} */ to) => {
    const nearest = to && /** @type {Place} */ (to.map((n) => n - (n % every))); // that has a small map
    if (String(nearest) !== String(spot.peek())) spot.value = nearest;
  };
  const chosen = () => spot.value ?? place;
  const enlarged = () => {
    if (!spot.value) return told.row;
    const [down, across] = spot.value.map((n) => n / every);
    const tile = down * shown[1] + across;
    return values.subarray(tile * rows * cols, (tile + 1) * rows * cols);
  };
  const say =
    (/** @type {Float32Array} */ map, from = '') =>
    (/** @type {number} */ row, /** @type {number} */ col) =>
      (read.value = `${from}with position ${placeWords(row * cols + col, cols)}: ${unit} ${short(map[row * cols + col])}`);
  const aspect = (cell * cols) / rows;
  const save = (/** @type {number} */ which) =>
    html`<button
      type="button"
      class="vv-button"
      data-save=${which}
      onClick=${(/** @type {any} */ { currentTarget }) => askForFigure(currentTarget, told.saved[which])}
    >
      Save
    </button>`;
  const thinned = every > 1 ? `one in ${every} in either direction; ` : '';
  return html`<div class="vv-places vv-columns">
    <div class="vv-places-one vv-stack">
      <div class="vv-places-pair" style=${{ '--vv-aspect': aspect }}>
        <${OnPhoto} ...${{ photo, chosen, place, pin, point }} />
        <${Enlarged} ...${{ chosen, enlarged, grid, aspect, table, say, save: save(1) }} />
        ${
          prefix &&
          html`<figure class="vv-stack">
            <${Cells}
              ...${{ grid, aspect }}
              label=${`Likeness of ${prefix.name} with all places`}
              paint=${(/** @type {Picture} */ picture) => picture.paint(prefix.values, table, RANGE)}
              read=${say(prefix.values)}
            />
            <figcaption class="vv-small"><span>${prefix.name} with all places</span>${save(2)}</figcaption>
          </figure>`
        }
      </div>
      <p class="vv-places-read vv-readout vv-small" aria-live="polite">${read}</p>
    </div>
    <div class="vv-places-all vv-stack">
      <h2 class="vv-title vv-places-title">${told.title}</h2>
      <p class="vv-places-about vv-quiet">${told.about}</p>
      <${Tiles}
        ...${{ values, shown, grid, every, aspect, table, chosen, point, pin }}
        pinned=${place[0] * cols + place[1]}
      />
      <${ColourBar} low="-1" high="1" unit=${unit} colours=${table} />
      <p class="vv-places-caption vv-small">
        one small map per place, laid out like the photo;
        ${` ${thinned}${byPointer('point at one, or choose it by a click', 'choose one by a tap')}`}
      </p>
      <div>${save(0)}</div>
    </div>
    <${Curve} told=${told} />
  </div>`;
}

/** The small map of the chosen place, large. @param {any} props */
function Enlarged({ chosen, enlarged, grid, aspect, table, say, save }) {
  const [row, col] = chosen();
  const place = `position ${placeWords(row * grid[1] + col, grid[1])}`;
  const values = enlarged();
  return html`<figure class="vv-stack">
    <${Cells}
      ...${{ grid, aspect }}
      label="Likeness of one place with all"
      paint=${(/** @type {Picture} */ picture) => picture.paint(values, table, RANGE)}
      read=${say(values, `${place} `)}
    />
    <figcaption class="vv-small"><span>${place} with all places</span>${save}</figcaption>
  </figure>`;
}

/** The photo with the chosen place. @param {any} props */
function OnPhoto({ photo, chosen, place, pin, point }) {
  const { grid } = photo;
  const index = (/** @type {Place} */ [row, col]) => row * grid[1] + col;
  return html`<figure class="vv-plate-figure vv-stack">
    <${PhotoStage}
      ...${{ photo, rings: [[index(chosen()), 'vv-ring']], pinned: index(place) }}
      choose=${(/** @type {number | null} */ patch) => pin(patch === null ? null : placeAt(patch, grid))}
      point=${(/** @type {number | null} */ patch) => point(patch === null ? null : placeAt(patch, grid))}
      label="The photo"
    />
    <figcaption class="vv-small">the same place on the photo</figcaption>
  </figure>`;
}

/** All small maps. @param {any} props */
function Tiles({ values, shown, grid, every, aspect, table, chosen, pinned, point, pin }) {
  const canvas = useRef(/** @type {any} */ (null));
  useLayoutEffect(
    () => paintTiles(new Picture(canvas.current), values, shown, grid, table),
    [values, `${grid}`],
  );
  const placeUnder = (/** @type {MouseEvent} */ event) => {
    const cell = cellAt(pointerIn(event, /** @type {Element} */ (event.currentTarget)), shown);
    return cell && /** @type {Place} */ (cell.map((n) => n * every));
  };
  const [top, left] = chosen().map((/** @type {number} */ n) => Math.floor(n / every));
  const placeOrNone = (/** @type {number | null} */ patch) => (patch === null ? null : placeAt(patch, grid));
  const { leave, keys } = usePointing({
    ...{ grid, pinned },
    point: (patch) => point(placeOrNone(patch)),
    choose: (patch) => pin(placeOrNone(patch)),
  });
  return html`<div
    class="vv-places-tiles vv-cells"
    tabindex="0"
    role="application"
    aria-label=${`A small map for each place. ${KEY_WORDS}`}
    style=${{ '--vv-aspect': aspect }}
    onPointerMove=${(/** @type {MouseEvent} */ event) => {
      leave();
      point(placeUnder(event));
    }}
    onPointerLeave=${() => point(null)}
    onClick=${(/** @type {MouseEvent} */ event) => {
      const place = placeUnder(event);
      if (place) pin(place);
    }}
    ...${keys}
  >
    <canvas ref=${canvas}></canvas>
    <span class="vv-ring" style=${placeIn([top, left, top + 1, left + 1], [0, 0, ...shown])}></span>
  </div>`;
}

/** Likeness over distance: the mean, and the band that eight in ten pairs lie in. @param {{told: Similarity}} props */
function Curve({ told }) {
  const { mean, low, high, pairs, direction } = told;
  const step = useSignal('');
  useLayoutEffect(() => void (step.value = ''), [told]);
  const count = mean.length;
  const floor = Math.min(...low) < 0 ? -1 : 0;
  const across = (/** @type {number} */ of) => (of + 0.5) / count;
  const height = (/** @type {number} */ value) => heightOf(value, [floor, 1]);
  const line = (/** @type {Float32Array} */ values) =>
    Array.from(values, (value, of) => [across(of), height(value)]);
  const every = Math.ceil(count / MOST_TICKS); // so few numbers below the curve that they stay apart
  return html`<div class="vv-places-far vv-stack">
    <h3 class="vv-title vv-places-question">How alike are two places so many steps apart?</h3>
    <${Plot}
      line=${line(mean)}
      band=${[...line(high), ...line(low).reverse()]}
      rules=${[height(0)]}
      left=${(floor ? [1, 0, -1] : [1, 0]).map((value) => [height(value), value])}
      below=${Array.from({ length: Math.ceil(count / every) }, (_, i) => [across(i * every), i * every])}
    >
      <${Cells}
        grid=${[1, count]}
        look="vv-places-curve vv-layer"
        label="Likeness by distance. Arrows read it."
        read=${(/** @type {number} */ _, /** @type {number} */ of) =>
          (step.value = stepWords(of, [mean[of], low[of], high[of]], pairs[of]))}
      />
    <//>
    <p class="vv-places-key vv-small">
      ${`steps of a patch, in a straight line; line: mean of all pairs, band: 10% to 90% of them. ${direction}`}
    </p>
    <p class="vv-places-step vv-readout vv-small" aria-live="polite">${step}</p>
  </div>`;
}
