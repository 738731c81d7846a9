// What the Positions tab shows beside similarity: the table on another grid in each family's way, rotary periods, and components of
// positions and of patch filters, as small pictures whose cells can be read.

import { decodeTable, paintMap, Picture } from '../../explorer/paint.js';
import { finder, make, showText } from '../kit/elements.js';
import { letReadCells } from '../kit/picture.js';
import { colourPixels, percent, short } from '../kit/numbers.js';

/**
 * @typedef {{name: string, colours: string, difference: string, overall: number}} Variant
 * @typedef {{old_grid: [number, number], grid: [number, number], before: string, own: string, unit: string,
 *   high: number, variants: Variant[]}} Resampled
 * @typedef {{values: string, count: number}} Axis
 * @typedef {{periods: number[], rows: Axis, cols: Axis}} Periods
 * @typedef {{grid: [number, number], colours: string, shares: number[]}} Components
 * @typedef {{grid: [number, number], filters: string[], shares: number[]}} Filters
 * @typedef {{part: string, note?: string, drawn?: any}} Value
 *
 * What the parts draw with: the colour tables, and where the cell that is pointed at is told.
 * @typedef {{viridis: Uint32Array, signed: Uint32Array, tell: (words: string) => void}} Pens
 */

/** Numbers from base64 of little-endian fp32. */
export function readFloats(/** @type {string} */ text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** A picture with a caption. @param {HTMLElement} cells @param {string} words @param {string} kind */
function figureOf(cells, words, kind = '') {
  const figure = make('figure', `vv-tables-figure vv-stack ${kind}`);
  figure.append(cells, make('figcaption', 'vv-small', words));
  return figure;
}

/** A picture of one pixel per cell. @param {[number, number]} grid @param {(pixels: Uint32Array) => void} paint */
function cellsOf([rows, cols], paint) {
  const cells = make('div', 'vv-cells');
  const canvas = make('canvas');
  const picture = new Picture(canvas);
  picture.resize(cols, rows);
  if (picture.pixels) paint(picture.pixels);
  picture.show();
  cells.append(canvas);
  cells.style.aspectRatio = `${cols} / ${rows}`;
  return cells;
}

/** @param {[number, number]} grid @param {Float32Array} values @param {Uint32Array} table @param {[number, number]} range */
function mapOf(grid, values, table, [low, high]) {
  const place = { at: 0, stride: grid[1], rows: grid[0], cols: grid[1] };
  return cellsOf(grid, (pixels) => paintMap(pixels, place, values, table, [low, high, 0]));
}

const coloursOf = (/** @type {[number, number]} */ grid, /** @type {string} */ text) =>
  cellsOf(grid, (pixels) => pixels.set(colourPixels(text)));

/** How a variant differs, in words. @param {Variant} variant @param {string} own */
export function variantWords({ name, overall }, own) {
  if (name === own) return `${name}: this model's own way`;
  return `${name}: differs by ${overall < 1e-6 ? 'nothing' : percent(overall)}`;
}

/** What is said where there is nothing to resample. */
export function sameWords(/** @type {[number, number]} */ grid) {
  return `This photo's grid, ${grid.join(' x ')}, is the checkpoint's own: nothing is resampled. Choose another size, or a photo of another shape, to see how the ways differ.`;
}

/** @param {Resampled} resampled @param {Pens} pens */
function drawResampled(resampled, { viridis, tell }) {
  const { old_grid: old, grid, own, high } = resampled;
  const before = figureOf(coloursOf(old, resampled.before), `the checkpoint's own table, ${old.join(' x ')}`);
  const after = resampled.variants.map((variant) => {
    const values = readFloats(variant.difference);
    const apart = mapOf(grid, values, viridis, [0, high]);
    const label = `Difference of ${variant.name} from this model's own way`;
    letReadCells(apart, grid, label, (row, col) =>
      tell(
        `${variant.name}, position (${row}, ${col}): differs by ${short(values[row * grid[1] + col])} of the mean norm of a position`,
      ),
    );
    const figure = figureOf(coloursOf(grid, variant.colours), variantWords(variant, own));
    if (variant.name !== own) figure.append(apart);
    return figure;
  });
  const isSame = old.join() === grid.join();
  if (isSame) return { words: sameWords(grid), figures: [before] };
  const words = `The table brought from ${old.join(' x ')} to ${grid.join(' x ')} as each family of models does it, in three components of the checkpoint's own table as colours. Under each, how far it lies from this model's own way: dark is 0, bright ${short(high)} of the mean norm of a position.`;
  return { words, figures: [before, ...after] };
}

/** @param {Periods} periods @param {Pens} pens */
function drawPeriods({ periods, rows, cols }, { signed, tell }) {
  const axis = (/** @type {Axis} */ { values, count }, /** @type {string} */ name) => {
    const numbers = readFloats(values);
    /** @type {[number, number]} */
    const grid = [periods.length, count];
    const cells = mapOf(grid, numbers, signed, [-1, 1]);
    cells.style.aspectRatio = '4 / 3';
    letReadCells(cells, grid, `Likeness by distance, ${name}`, (row, col) =>
      tell(
        `period ${short(periods[row])}, ${col} ${name} apart: cosine ${short(numbers[row * count + col])}`,
      ),
    );
    const ends = `a row for each period, ${short(periods[0])} to ${short(periods[periods.length - 1])} half sides of the picture; across: 0 to ${count - 1} ${name} apart`;
    return figureOf(cells, ends, 'vv-wide');
  };
  const words =
    'How alike two patches are by each period alone, by how far apart they are: short periods tell neighbours apart, long ones the ends of the picture. Cosine from -1 (blue) to 1 (red).';
  return { words, figures: [axis(rows, 'rows'), axis(cols, 'columns')] };
}

/** @param {Components} components @param {Pens} pens */
function drawComponents({ grid, colours, shares }, { tell }) {
  const cells = coloursOf(grid, colours);
  const pixels = colourPixels(colours);
  letReadCells(cells, grid, 'Positions in three components', (row, col) => {
    const pixel = pixels[row * grid[1] + col];
    const levels = [0, 8, 16].map((shift) => percent(((pixel >> shift) & 255) / 255));
    tell(`position (${row}, ${col}): red ${levels[0]}, green ${levels[1]}, blue ${levels[2]} of their scale`);
  });
  const [red, green, blue] = shares.map(percent);
  const words = `By what the positions differ most, as colours. Share of their variance: red ${red}, green ${green}, blue ${blue}.`;
  return { words, figures: [figureOf(cells, `${grid.join(' x ')} positions`, 'vv-wide')] };
}

/** @param {Filters} filters */
function drawFilters({ grid, filters, shares }) {
  const figures = filters.map((text, i) =>
    figureOf(coloursOf(grid, text), `${i + 1}: ${percent(shares[i])}`, 'vv-little'),
  );
  const all = percent(shares.reduce((sum, share) => sum + share, 0));
  const words = `What the model sees in a patch first: the ${filters.length} components in which its patch filters differ most, ${all} of their variance together. Gray is 0; each has its own scale.`;
  return { words, figures };
}

/** @type {Record<string, (numbers: any, pens: Pens) => {words: string, figures: HTMLElement[]}>} */
const PARTS = {
  resampled: drawResampled,
  periods: drawPeriods,
  components: drawComponents,
  filters: drawFilters,
};

/** @type {import('../kit/elements.js').Mount<{value: Value | null, tables: Record<string, string>}>} */
export function mount(element, trigger, props, watch) {
  const find = finder(element);
  const pens = {
    viridis: decodeTable(props.tables.viridis),
    signed: decodeTable(props.tables.diverging),
    tell: (/** @type {string} */ words) => (find('tables-cell').textContent = words),
  };
  const draw = () => drawValue(element, props.value, pens);
  element.addEventListener('click', (event) => {
    const button = /** @type {Element} */ (event.target).closest('[data-show]');
    if (button instanceof HTMLElement) trigger('show', { part: button.dataset.show });
  });
  watch('value', draw);
  draw();
}

/** @param {HTMLElement} element @param {Value | null} value @param {Pens} pens */
function drawValue(element, value, pens) {
  if (!value) return;
  const find = finder(element);
  find('tables').dataset.part = value.part;
  for (const button of element.querySelectorAll('[data-show]')) {
    const isOn = /** @type {HTMLElement} */ (button).dataset.show === value.part;
    button.setAttribute('aria-pressed', String(isOn));
  }
  showText(find('tables-note'), value.note);
  find('tables-main').hidden = !value.drawn;
  if (!value.drawn) return find('tables-figures').replaceChildren();
  const { words, figures } = PARTS[value.part](value.drawn, pens);
  showText(find('tables-words'), words);
  pens.tell(value.part === 'filters' ? '' : 'Point at a cell, or move with the arrow keys, to read it.');
  find('tables-figures').replaceChildren(...figures);
}
