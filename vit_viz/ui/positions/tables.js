// The Positions tab: what there is of this model to choose from, and beside similarity (places.js) the table on another grid in each
// family's way, rotary periods, and components of positions and of patch filters, as small pictures whose cells can be read.

import { decodeTable, Picture } from '../../explorer/paint.js';
import { drawValue, finder, having, make, onPress, press, showText } from '../kit/elements.js';
import { showError } from '../kit/notes.js';
import { letReadCells } from '../kit/picture.js';
import { percent, short } from '../kit/numbers.js';
import { Places, readFloats } from './places.js';

/**
 * @typedef {{name: string, colours: string, difference: string, overall: number}} Variant
 * @typedef {{old_grid: [number, number], grid: [number, number], before: string, own: string, unit: string,
 *   high: number, variants: Variant[]}} Resampled
 * @typedef {{values: string, count: number}} Axis
 * @typedef {{periods: number[], rows: Axis, cols: Axis}} Periods
 * @typedef {{grid: [number, number], colours: string, shares: number[]}} Components
 * @typedef {{grid: [number, number], filters: string[], shares: number[]}} Filters
 * @typedef {{revision: number, busy?: boolean, part: string, parts: string[], places?: string, note?: string, drawn?: any}} Value
 *
 * What the parts draw with: the colour tables, and where the cell that is pointed at is told.
 * @typedef {{viridis: Uint32Array, signed: Uint32Array, tell: (words: string) => void}} Pens
 */

/** A picture with a caption. @param {HTMLElement} cells @param {string} words @param {string} kind */
function figureOf(cells, words, kind = '') {
  return make('figure', `vv-tables-figure vv-stack ${kind}`, cells, make('figcaption', 'vv-small', words));
}

/** A picture of one pixel per cell. @param {[number, number]} grid @param {(picture: Picture) => void} paint */
function cellsOf([rows, cols], paint) {
  const picture = new Picture(make('canvas'), cols, rows);
  paint(picture);
  const cells = make('div', 'vv-cells', picture.canvas);
  cells.style.aspectRatio = `${cols} / ${rows}`;
  return cells;
}

/** @param {[number, number]} grid @param {Float32Array} values @param {Uint32Array} table @param {[number, number]} range */
function mapOf(grid, values, table, range) {
  return cellsOf(grid, (picture) => picture.paint(values, table, range));
}

const coloursOf = (/** @type {[number, number]} */ grid, /** @type {string} */ text) =>
  cellsOf(grid, (picture) => picture.set(decodeTable(text)));

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
  const pixels = decodeTable(colours);
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

/** What the parts are called, in their order. @type {Record<string, string>} */
const LABELS = {
  similarity: 'similarity',
  resampled: 'on another grid',
  periods: 'rotary periods',
  components: 'in colours',
  filters: 'patch filters',
};

/** @type {import('../kit/elements.js').Mount<{value: Value | null, tables: Record<string, string>}>} */
export function mount(element, trigger, props, watch) {
  const find = finder(element);
  const signed = decodeTable(props.tables.diverging);
  const pens = {
    viridis: decodeTable(props.tables.viridis),
    signed,
    tell: (/** @type {string} */ words) => (find('tables-cell').textContent = words),
  };
  const places = new Places(element, signed, (place) => trigger('pin', place));
  onPress(element, 'show', (part) => trigger('show', { position_part: part }));
  onPress(element, 'places', (grid) => trigger('show', { position_grid: grid }));
  let newest = -1;
  drawValue(watch, async () => {
    const { value } = props;
    if (!value || value.revision < newest) return; // an answer to an older question
    newest = value.revision;
    having(find('tables'), { 'aria-busy': true });
    if (value.busy) return;
    const isStill = () => value === props.value || value.revision === newest;
    await drawPart(element, value, pens, places, isStill);
    if (isStill()) having(find('tables'), { 'aria-busy': false, 'data-revision': value.revision });
  });
}

/** @param {HTMLElement} element @param {Value} value @param {Pens} pens @param {Places} places @param {() => boolean} isStill */
async function drawPart(element, value, pens, places, isStill) {
  const find = finder(element);
  const isSimilarity = value.part === 'similarity';
  try {
    if (isSimilarity && value.drawn) await places.show(value.drawn, isStill);
  } catch (error) {
    value = { ...value, drawn: null, note: /** @type {Error} */ (error).message };
  }
  if (!isStill()) return;
  find('tables').dataset.part = value.part;
  showChoices(element, value);
  showError(find('tables-note'), value.note, { stays: true });
  find('places').hidden = !value.drawn || !isSimilarity;
  find('tables-main').hidden = !value.drawn || isSimilarity;
  if (!value.drawn || isSimilarity) return find('tables-figures').replaceChildren();
  const { words, figures } = PARTS[value.part](value.drawn, pens);
  showText(find('tables-words'), words);
  pens.tell(value.part === 'filters' ? '' : 'Point at a cell, or move with the arrow keys, to read it.');
  find('tables-figures').replaceChildren(...figures);
}

/** What this model has something of, and the grid where there are two. @param {HTMLElement} element @param {Value} value */
function showChoices(element, { part, parts, places, drawn }) {
  const toggle = finder(element)('tables-parts');
  const isSame = parts.join() === toggle.dataset.parts; // buttons that stay keep the focus
  if (!isSame) toggle.replaceChildren(...parts.map((name) => buttonOf(name)));
  toggle.dataset.parts = parts.join();
  toggle.hidden = parts.length === 0 || parts.join() === part;
  press(element, 'show', part);
  finder(element)('tables-grids').hidden = !places || !drawn;
  press(element, 'places', places);
}

function buttonOf(/** @type {string} */ part) {
  return having(make('button', '', LABELS[part]), { type: 'button', 'data-show': part });
}
