// The Positions tab: how alike places are (places.js), the table on another grid in each family's way, rotary periods, and components of
// positions and of patch filters, as small pictures whose cells can be read. What a model has nothing of is not offered.

import { patchQuery, placeWords } from '../../explorer/geometry.js';
import { decodeTable } from '../../explorer/paint.js';
import { LIGHT } from '../../explorer/styles.js';
import { percent, short } from '../../ui/kit/numbers.js';
import { asked } from '../kit/ask.js';
import { opened, thePage } from '../kit/page.js';
import { Cells, Problem, Toggle } from '../kit/parts.js';
import { html, render, useLayoutEffect, useMemo, useSignal } from '../kit/preact.js';
import { Places, gridAsked, shownGrid, similarity } from './places.js';
/** @import { Picture } from '../../explorer/paint.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Answer, Ask, Grid, Of, Place, Tiles } from './places.js' */

/**
 * @typedef {{shape: number[], data: Float32Array}} Numbers
 *
 * What the parts draw with: the colour tables, and where the cell that is pointed at is told.
 * @typedef {{signed: Uint32Array, tell: (words: string) => void}} Pens
 * @typedef {{words: string, figures: any[]}} Drawn
 * @typedef {{label: string, question: string, ask: (ask: Ask, of: Of, stop: AbortSignal, source: Tiles) =>
 *     Promise<any>, draw?: (told: any, pens: Pens) => Drawn}} Part
 */

/** @type {import('../../ui/kit/elements.js').Mount<{tables: Record<string, string>}>} */
export function mount(element, { tables }) {
  render(html`<${Positions} page=${thePage()} tables=${tables} />`, element);
}

/** @param {{page: Page, tables: Record<string, string>}} props tables: of colours */
export function Positions({ page: one, tables }) {
  const { store, source, ask } = one;
  const { view } = store;
  const signed = useMemo(() => decodeTable(tables.diverging), [tables]);
  const open = useMemo(() => opened(one, 'positions'), [one]);
  /** @returns {[string, Of] | null} */
  const question = () => {
    const { state, value } = open.value;
    if (state !== 'done' || view.tab.value !== 'positions') return null;
    const { trace, grid, crop, photo, photo_size, name, prefix, about } = value;
    return [
      view.positions.value,
      {
        ...{ model: about.model, trace, prefix, positions: value.positions, query: view.q.value },
        photo: { grid, crop, photo, photo_size, name },
        isTrained: view.places.value === 'trained',
      },
    ];
  };
  const drawn = useMemo(
    () =>
      asked(
        async (part, of, stop) => ({ part, of, told: await PARTS[part].ask(ask, of, stop, source) }),
        question,
      ),
    [one],
  );
  const answers = [open.value, drawn.value];
  const refused = answers.find(({ state }) => state === 'failed')?.error ?? '';
  const isBusy = !refused && answers.some(({ state }) => state === 'pending' || state === 'none');
  const shown = refused
    ? { part: view.positions.value, of: question()?.[1], told: null }
    : (drawn.value.value ?? { part: 'similarity' });
  const { part, of, told } = shown;
  const pin = (/** @type {Place | null} */ place) => {
    if (!place) return store.set({ q: '' });
    const [[rows, cols], [down, across]] = [of.photo.grid, shownGrid(of)];
    const patch = Math.floor((place[0] * rows) / down) * cols + Math.floor((place[1] * cols) / across);
    return store.set({ q: patchQuery([patch], cols) });
  };
  return html`<div class="vv-tables vv-stack" data-part=${part} aria-busy=${isBusy}>
    <${Choices}
      ...${{ part, of, isDrawn: Boolean(told), set: (/** @type {any} */ chosen) => store.set(chosen) }}
    />
    <${Problem} look="vv-tables-note vv-notice" words=${refused} stays />
    ${told && part === 'similarity' && html`<${Places} told=${told} table=${signed} pin=${pin} />`}
    ${told && part !== 'similarity' && html`<${Figures} ...${{ part, told, signed }} />`}
  </div>`;
}

/** What this model has something of, and the grid where there are two. @param {{part: string, of?: Of, isDrawn: boolean, set: (chosen: Record<string, string>) => void}} props */
function Choices({ part, of, isDrawn, set }) {
  const known = of?.positions;
  const parts = Object.keys(PARTS).filter((name) => known?.questions.includes(PARTS[name].question));
  const isOther = known?.grid && known.grid.join() !== of?.photo.grid.join();
  return html`<div class="vv-row">
    ${
      parts.length > 0 &&
      parts.join() !== part &&
      html`<${Toggle}
        name="show"
        choices=${parts.map((name) => [name, PARTS[name].label])}
        value=${part}
        choose=${(/** @type {string} */ positions) => set({ positions })}
        label="What is shown of the positions"
        look="vv-tables-parts"
      />`
    }
    ${
      of &&
      isOther &&
      isDrawn &&
      ON_EITHER_GRID.includes(part) &&
      html`<${Toggle}
        name="places"
        choices=${[
          ['image', 'grid of this photo'],
          ['trained', 'grid of the training'],
        ]}
        value=${of.isTrained ? 'trained' : 'image'}
        choose=${(/** @type {string} */ places) => set({ places })}
        label="The grid that positions are shown on"
        look="vv-tables-grids"
      />`
    }
  </div>`;
}

const ON_EITHER_GRID = ['similarity', 'periods', 'components'];

// --- what is shown beside similarity

/** @param {{part: string, told: Answer, signed: Uint32Array}} props */
function Figures({ part, told, signed }) {
  const cell = useSignal('');
  useLayoutEffect(() => {
    cell.value = part === 'filters' ? '' : 'Point at a cell, or move with the arrow keys, to read it.';
  }, [told]);
  const { words, figures } = useMemo(
    () =>
      /** @type {any} */ (PARTS[part].draw)(told, {
        signed,
        tell: (/** @type {string} */ said) => (cell.value = said),
      }),
    [told],
  );
  return html`<div class="vv-tables-main vv-stack">
    <p class="vv-tables-words">${words}</p>
    <p class="vv-tables-cell vv-readout vv-quiet" aria-live="polite">${cell}</p>
    <div class="vv-tables-figures vv-row" key=${part}>${figures}</div>
  </div>`;
}

/** A picture with a caption. @param {any} cells @param {string} words @param {{kind?: string, more?: any}} [how] kind: a class; more: what stands below */
function figureOf(cells, words, { kind = '', more } = {}) {
  return html`<figure class=${`vv-tables-figure vv-stack ${kind}`}>
    ${cells}
    <figcaption class="vv-small">${words}</figcaption>
    ${more}
  </figure>`;
}

/** A picture of one pixel per cell. @param {Grid} grid @param {(picture: Picture) => void} paint @param {{label?: string, read?: (row: number, col: number) => void, aspect?: string}} [how] */
function cellsOf(grid, paint, how = {}) {
  return html`<${Cells} ...${{ grid, paint, aspect: `${grid[1]} / ${grid[0]}`, ...how }} />`;
}

/** Colours in [0, 1], three for each cell. @param {Grid} grid @param {ArrayLike<number>} levels @param {Parameters<typeof cellsOf>[2]} [how] */
function coloursOf(grid, levels, how) {
  return cellsOf(grid, (picture) => picture.set(pixelsOf(levels)), how);
}

/** Pixels of levels in [0, 1] of red, green and blue; what lies outside is cut off. @param {ArrayLike<number>} levels */
export function pixelsOf(levels) {
  const byte = (/** @type {number} */ level) => Math.round(255 * Math.min(1, Math.max(0, level)));
  return Uint32Array.from({ length: levels.length / 3 }, (_, cell) => {
    const [red, green, blue] = [0, 1, 2].map((colour) => byte(levels[3 * cell + colour]));
    return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

/**
 * Three coordinates as levels of red, green and blue, on one scale for all: from the 1st to the 99th percentile of each.
 * @param {Float32Array[]} all with three numbers for each cell
 */
export function onOneScale(all) {
  const ends = [0, 1, 2].map((colour) => {
    const values = Float32Array.from(
      all.flatMap((one) => Array.from({ length: one.length / 3 }, (_, cell) => one[3 * cell + colour])),
    ).sort();
    return [percentile(values, 0.01), percentile(values, 0.99)];
  });
  return all.map((one) =>
    one.map((value, i) => {
      const [low, high] = ends[i % 3];
      return (value - low) / (high > low ? high - low : 1);
    }),
  );
}

/** The value below which a share of sorted ones lies, between two of them by the line. @param {Float32Array} sorted @param {number} share */
function percentile(sorted, share) {
  const at = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return below + (above - below) * (at - Math.floor(at));
}

/** The parts of an array along its first axis. @param {Numbers} numbers */
function along({ shape, data }) {
  const size = data.length / shape[0];
  return Array.from({ length: shape[0] }, (_, i) => data.subarray(i * size, (i + 1) * size));
}

/** How a variant differs, in words. @param {string} name @param {number} overall @param {string} own */
export function variantWords(name, overall, own) {
  if (name === own) return `${name}: this model's own way`;
  return `${name}: differs by ${overall < 1e-6 ? 'nothing' : percent(overall)}`;
}

/** What is said where there is nothing to resample. */
export function sameWords(/** @type {Grid} */ grid) {
  return `This photo's grid, ${grid.join(' x ')}, is the checkpoint's own: nothing is resampled. Choose another size, or a photo of another shape, to see how the ways differ.`;
}

/** @param {Answer} answer @param {Pens} pens @returns {Drawn} */
function drawResampled({ arrays, facts }, { tell }) {
  const [old, grid] = ['before.values', 'after.values'].map(
    (name) => /** @type {Grid} */ (arrays[name].shape.slice(1, 3)),
  );
  const [before, ...after] = onOneScale([arrays['before.values'].data, ...along(arrays['after.values'])]);
  const first = figureOf(coloursOf(old, before), `the checkpoint's own table, ${old.join(' x ')}`);
  if (old.join() === grid.join()) return { words: sameWords(grid), figures: [first] };
  const high = arrays['difference.values'].data.reduce((most, value) => Math.max(most, value), 0);
  const figures = along(arrays['difference.values']).map((values, i) => {
    const name = facts.after.names[i];
    const read = (/** @type {number} */ row, /** @type {number} */ col) =>
      tell(
        `${name}, position (${row}, ${col}): differs by ${short(values[row * grid[1] + col])} of the mean norm of a position`,
      );
    const label = `Difference of ${name} from this model's own way`;
    const more =
      name !== facts.own &&
      cellsOf(grid, (picture) => picture.paint(values, LIGHT, [0, high]), { label, read });
    return figureOf(coloursOf(grid, after[i]), variantWords(name, arrays.overall.data[i], facts.own), {
      more,
    });
  });
  const words = `The table brought from ${old.join(' x ')} to ${grid.join(' x ')} as each family of models does it, in three components of the checkpoint's own table as colours. Under each, how far it lies from this model's own way: dark is 0, bright ${short(high)} of the mean norm of a position.`;
  return { words, figures: [first, ...figures] };
}

/** @param {Answer} answer @param {Pens} pens @returns {Drawn} */
function drawPeriods({ arrays }, { signed, tell }) {
  const periods = arrays.periods.data;
  const axis = (/** @type {string} */ key, /** @type {string} */ name) => {
    const { shape, data } = arrays[key];
    const grid = /** @type {Grid} */ (shape);
    const read = (/** @type {number} */ row, /** @type {number} */ col) =>
      tell(
        `period ${short(periods[row])}, ${col} ${name} apart: cosine ${short(data[row * shape[1] + col])}`,
      );
    const cells = cellsOf(grid, (picture) => picture.paint(data, signed, [-1, 1]), {
      ...{ label: `Likeness by distance, ${name}`, read, aspect: '4 / 3' },
    });
    const ends = `a row for each period, ${short(periods[0])} to ${short(periods[periods.length - 1])} half sides of the picture; across: 0 to ${shape[1] - 1} ${name} apart`;
    return figureOf(cells, ends, { kind: 'vv-wide' });
  };
  const words =
    'How alike two patches are by each period alone, by how far apart they are: short periods tell neighbours apart, long ones the ends of the picture. Cosine from -1 (blue) to 1 (orange).';
  return { words, figures: [axis('rows', 'rows'), axis('cols', 'columns')] };
}

/** @param {Answer} answer @param {Pens} pens @returns {Drawn} */
function drawComponents({ arrays }, { tell }) {
  const grid = /** @type {Grid} */ (arrays['maps.values'].shape.slice(1, 3));
  const [levels] = onOneScale([arrays['maps.values'].data]);
  const read = (/** @type {number} */ row, /** @type {number} */ col) => {
    const first = 3 * (row * grid[1] + col);
    const said = [0, 1, 2].map((colour) => percent(Math.min(1, Math.max(0, levels[first + colour]))));
    tell(
      `position ${placeWords(first / 3, grid[1])}: red ${said[0]}, green ${said[1]}, blue ${said[2]} of their scale`,
    );
  };
  const cells = coloursOf(grid, levels, { label: 'Positions in three components', read });
  const [red, green, blue] = [...arrays.shares.data].map(percent);
  const words = `By what the positions differ most, as colours. Share of their variance: red ${red}, green ${green}, blue ${blue}.`;
  return { words, figures: [figureOf(cells, `${grid.join(' x ')} positions`, { kind: 'vv-wide' })] };
}

/** @param {Answer} answer @returns {Drawn} */
function drawFilters({ arrays }) {
  const { shape, data } = arrays.values; // [filters, channels, rows, cols]
  const [, channels, ...sides] = shape;
  const shares = [...arrays.shares.data];
  const figures = along({ shape, data }).map((filter, i) =>
    figureOf(
      coloursOf(/** @type {Grid} */ (sides), filterLevels(filter, channels)),
      `${i + 1}: ${percent(shares[i])}`,
      { kind: 'vv-little' },
    ),
  );
  const all = percent(shares.reduce((sum, share) => sum + share, 0));
  const words = `What the model sees in a patch first: the ${figures.length} components in which its patch filters differ most, ${all} of their variance together. Gray is 0; each has its own scale.`;
  return { words, figures };
}

/** A filter, [channels, pixels], as levels of red, green and blue: gray is 0, and the largest number an end. @param {Float32Array} filter @param {number} channels */
export function filterLevels(filter, channels) {
  const pixels = filter.length / channels;
  const valueAt = (/** @type {number} */ pixel, /** @type {number} */ colour) => {
    if (channels === 3) return filter[colour * pixels + pixel];
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += filter[channel * pixels + pixel];
    return sum / channels;
  };
  const values = Float32Array.from({ length: 3 * pixels }, (_, i) => valueAt(Math.floor(i / 3), i % 3));
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  return values.map((value) => 0.5 + value / (2 * largest));
}

/** The parts of the tab, in their order; a model has one where it answers the question. @type {Record<string, Part>} */
const PARTS = {
  similarity: { label: 'similarity', question: 'positions', ask: similarity },
  resampled: {
    label: 'on another grid',
    question: 'resampling',
    ask: (ask, { model, photo: { grid } }, stop) =>
      ask('resampling', { model, rows: grid[0], cols: grid[1] }, stop),
    draw: drawResampled,
  },
  periods: {
    label: 'rotary periods',
    question: 'rotary_similarity',
    ask: (ask, of, stop) => ask('rotary_similarity', { model: of.model, ...gridAsked(of) }, stop),
    draw: drawPeriods,
  },
  components: {
    label: 'in colours',
    question: 'position_components',
    ask: (ask, of, stop) => ask('position_components', { model: of.model, ...gridAsked(of) }, stop),
    draw: drawComponents,
  },
  filters: {
    label: 'patch filters',
    question: 'filter_components',
    ask: (ask, { model }, stop) => ask('filter_components', { model }, stop),
    draw: drawFilters,
  },
};
