// What each position knows of the others: vit_viz/analyses/positions.py and position_tables.py.

import { headDim, noPositions, positionedPrefix, prefixOf, trainedGrid } from '../config.js';
import { positionTable, resampled, rotaryOf } from '../positions.js';
import { round } from '../preprocess.js';
import { mapWords } from './attention.js';
import { principalComponents } from './components.js';
import { dot } from './eigen.js';
import { numbers } from './form.js';
/** @import { Config, Size } from '../config.js' */
/** @import { Context } from './form.js' */

const MOST = 4096; // positions, all pairs of which are compared
const MOST_ROWS = 512; // of a grid that is chosen
const UNALIKE = 0.1; // a mean cosine down to which places count as alike
const TOLD_APART = 0.05; // the least difference of two mean cosines of which anything is said
/** In the order of Python's list. @type {readonly import('../positions.js').Variant[]} */
const VARIANTS = [
  'timm',
  'bilinear',
  'dino',
  'dinov2',
  'dinov2_reg',
  'transformers',
  'torchvision',
  'radio',
  'radio_v4',
];
const COMPONENTS = 3;

/** @param {number} rows @param {number} cols @returns {Size} */
function checkedGrid(rows, cols) {
  if (rows < 1 || cols < 1 || rows * cols > MOST)
    throw new Error(`A grid has 1 to ${MOST} positions, not ${rows} x ${cols}.`);
  return [rows, cols];
}

/** The grid that is chosen by rows and columns, or the one the model was made for. @param {Config} config @param {{rows: number, cols: number}} options */
function chosenGrid(config, { rows, cols }) {
  if (Boolean(rows) !== Boolean(cols))
    throw new Error('A grid has rows and columns: please give both, or neither.');
  return rows ? checkedGrid(rows, cols) : checkedGrid(...trainedGrid(config));
}

/** What says where a patch is; "rotary" or "relative" where scores alone depend on it. @param {Config} config */
function positionKind({ position, rotary_grid: turned, relative_bias: own, shared_bias: shared }) {
  if (position === 'none' && turned) return 'rotary';
  return position === 'none' && (own || shared) ? 'relative' : position;
}

/** The positions of the patches of a grid, each [dim], and those of prefix tokens before them. @param {Context} context @param {Size} grid */
function tableAt({ engine }, grid) {
  const { config, parameters } = engine.model;
  const table = /** @type {Float32Array} */ (positionTable(config, parameters.tables.get('pos_embed'), grid));
  const dim = config.embed_dim;
  const all = Array.from({ length: table.length / dim }, (_, i) =>
    Float64Array.from(table.subarray(i * dim, (i + 1) * dim)),
  );
  const count = positionedPrefix(config);
  return { prefix: all.slice(0, count), patches: all.slice(count) };
}

/** A vector of length 1; of zeros it stays one. @param {Float64Array} vector */
function unit(vector) {
  const size = Math.max(1e-12, Math.sqrt(dot(vector, vector)));
  return vector.map((value) => value / size);
}

/**
 * What the similarity of two positions is the dot product of: unit vectors of the patches and of the prefix tokens that have one.
 * @param {Context} context @param {Size} grid
 */
export function vectorsAt(context, grid) {
  const { config } = context.engine.model;
  const why = noPositions(config);
  if (why) throw new Error(why);
  if (positionKind(config) === 'rotary') {
    const { cosines, sines } = /** @type {NonNullable<ReturnType<typeof rotaryOf>>} */ (
      rotaryOf(config, grid, headDim(config))
    );
    const pairs = headDim(config) / 2;
    const size = Math.sqrt(pairs);
    const vectors = Array.from({ length: grid[0] * grid[1] }, (_, i) => {
      const [from, to] = [i * pairs, (i + 1) * pairs];
      return Float64Array.from(
        [...cosines.subarray(from, to), ...sines.subarray(from, to)],
        (value) => value / size,
      );
    });
    return {
      vectors,
      extra: /** @type {[string, Float64Array][]} */ ([]),
      unit: 'mean cosine of the relative phase',
      note: 'This model learns no position embedding: it turns queries and keys by angles that depend on the position.',
    };
  }
  const { prefix, patches } = tableAt(context, grid);
  const named = prefix.map((vector, i) => /** @type {const} */ ([prefixOf(config)[i], vector]));
  return {
    vectors: patches.map(unit),
    extra: named
      .filter(([, vector]) => vector.some((value) => value))
      .map(([name, vector]) => /** @type {[string, Float64Array]} */ ([name, unit(vector)])),
    unit: 'cosine similarity',
    note: noteOf(config, grid),
  };
}

/** @param {Config} config @param {Size} grid */
function noteOf(config, grid) {
  if (config.position !== 'learned') return 'These positions are fixed waves, not learned.';
  const own = trainedGrid(config);
  const notes = [
    grid.join() !== own.join() &&
      `Resampled from the ${own[0]} x ${own[1]} positions of the checkpoint to ${grid[0]} x ${grid[1]} (${config.resample}).`,
    config.rotary_grid &&
      'Each layer also turns queries and keys by angles of the position, which are not in here.',
    (config.relative_bias || config.shared_bias) &&
      'Each layer also adds a learned number for the offset of two patches, which is not in here.',
  ];
  return notes.filter(Boolean).join(' ');
}

/** @param {Context} context @param {{grid: string, place: string}} options */
async function positions(context, { grid: text, place }) {
  const { config } = context.engine.model;
  const grid = checkedGrid(.../** @type {Size} */ (text ? text.split(',').map(Number) : trainedGrid(config)));
  const { vectors, extra, unit: name, note } = vectorsAt(context, grid);
  const about = { unit: name, value_range: [-1, 1], signed: true, method: 'position similarity' };
  const rowOf = (/** @type {Float64Array} */ vector) => vectors.map((one) => dot(one, vector));
  if (place) {
    const [vector, whose] = vectorAt(place, grid, vectors, extra);
    return {
      values: numbers(grid, rowOf(vector)),
      ...about,
      class_blind: true,
      prefix: {},
      crop_box: null,
      caption: `${whose} with all ${grid[0]} x ${grid[1]} patch positions`,
      note,
      suffix: {},
      stability: null,
    };
  }
  const values = new Float32Array(vectors.length ** 2);
  for (let i = 0; i < vectors.length; i++) {
    values.set(rowOf(vectors[i]), i * vectors.length);
    if (i % 256 === 255) await context.step(i / vectors.length);
  }
  const rows = extra.map(([token, vector]) => [token, numbers([vectors.length], rowOf(vector))]);
  return {
    values: numbers([vectors.length, vectors.length], values),
    ...about,
    grid,
    extra: Object.fromEntries(rows),
    note,
  };
}

/** The vector of one place, and what it is called. @param {string} place @param {Size} grid @param {Float64Array[]} vectors @param {[string, Float64Array][]} extra @returns {[Float64Array, string]} */
function vectorAt(place, [rows, cols], vectors, extra) {
  if (/^\d/.test(place)) {
    const [row, col] = place.split(',').map(Number);
    if (row >= rows || col >= cols)
      throw new Error(`Position (${row}, ${col}) does not exist: the grid is ${rows} x ${cols}.`);
    return [vectors[row * cols + col], `Position (${row}, ${col})`];
  }
  const found = extra.find(([name]) => name === place);
  if (!found) {
    const there = extra.map(([name]) => name).join(', ') || 'none';
    throw new Error(`There is no position '${place}' beside the patches; there is: ${there}.`);
  }
  return [found[1], `The position of ${place}`];
}

/** How alike positions are by how far apart they lie. @param {Context} context @param {{rows: number, cols: number}} options */
async function positionDistance(context, options) {
  const grid = chosenGrid(context.engine.model.config, options);
  const { vectors, unit: name } = vectorsAt(context, grid);
  const [rows, cols] = grid;
  const steps = round(Math.hypot(rows - 1, cols - 1)) + 1;
  const [straight, askew] = [0, 1].map(() =>
    Array.from({ length: steps }, () => /** @type {number[]} */ ([])),
  );
  const [along, down] = [new Float32Array(cols), new Float32Array(rows)];
  for (let lower = 0; lower < rows; lower++) {
    for (let right = lower ? 1 - cols : 0; right < cols; right++) {
      const values = [];
      for (let row = 0; row + lower < rows; row++) {
        for (let col = Math.max(0, -right); col + Math.max(0, right) < cols; col++) {
          const other = (row + lower) * cols + col + right;
          values.push(Math.fround(dot(vectors[row * cols + col], vectors[other])));
        }
      }
      const group = (lower && right ? askew : straight)[round(Math.hypot(lower, right))];
      for (const value of values) group.push(value);
      if (!lower) along[right] = meanOf(values);
      if (!right) down[lower] = meanOf(values);
    }
    await context.step((lower + 1) / rows);
  }
  const apart = straight.map((one, i) => Float64Array.from([...one, ...askew[i]]).sort());
  const mean = Float32Array.from(apart, meanOf);
  const [low, high] = [0.1, 0.9].map((share) => apart.map((values) => quantile(values, share)));
  const likeness = { mean, along, down, straight: straight.map(meanOf), askew: askew.map(meanOf) };
  const band = { low: numbers([steps], low), high: numbers([steps], high) };
  return {
    x: numbers([steps], [...mean.keys()]),
    y: numbers([steps], mean),
    x_label: 'steps of a patch, in a straight line',
    y_label: name,
    method: 'likeness of positions by distance',
    band: Object.assign([], band), // a pair, whose arrays have names
    note: [`${finding(likeness)}.`, byDirection(likeness)].filter(Boolean).join(' '),
  };
}

/** The mean; of nothing it is no number. @param {ArrayLike<number>} values */
function meanOf(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return Math.fround(sum / values.length);
}

/** Between the sorted values that are nearest. @param {Float64Array} sorted @param {number} share */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const [low, rest] = [sorted[Math.floor(place)], place - Math.floor(place)];
  return rest ? low + rest * (sorted[Math.floor(place) + 1] - low) : low;
}

/** A number with two digits behind the point, without the sign of what rounds to zero. @param {number} value */
function two(value) {
  return value.toFixed(2).replace(/^-(0\.00)$/, '$1');
}

/** @typedef {{mean: Float32Array, along: Float32Array, down: Float32Array, straight: number[], askew: number[]}} Likeness */

/** What positions tell apart, with the numbers that say so. @param {Likeness} likeness */
function finding({ mean, straight, askew, along, down }) {
  if (mean.length < 2) return 'There is one position, and none to compare it with';
  const unalike = mean.findIndex((value) => value <= UNALIKE);
  const far = Math.max(1, unalike >= 0 ? unalike : mean.indexOf(Math.min(...mean)));
  const near = `neighbours are ${two(mean[1])} alike`;
  if (far === 1) return `Positions tell each place from all others: even ${near}`;
  const told = `${near}, places ${far} steps apart ${two(mean[far])}`;
  if (mean[1] - mean[far] < TOLD_APART) return `Positions hardly tell near from far: ${told}`;
  const better = straight
    .map((value, i) => value - askew[i])
    .slice(2, Math.min(along.length, down.length))
    .filter((value) => !Number.isNaN(value));
  const knowsLines = better.length > 0 && meanOf(better) > TOLD_APART;
  return `Positions ${knowsLines ? 'know rows and columns' : 'tell near from far'}: ${told}`;
}

/** Whether likeness falls otherwise along a row than down a column; '' where there is but one of either. @param {Likeness} likeness */
function byDirection({ along, down }) {
  const count = Math.min(along.length, down.length);
  if (count < 2) return '';
  const apart = along.subarray(1, count).map((value, i) => value - down[i + 1]);
  const mean = meanOf(apart);
  if (Math.abs(mean) < TOLD_APART) return 'Along a row it falls as it does down a column.';
  const signed = apart.map((value) => value * Math.sign(mean));
  const step = 1 + signed.indexOf(Math.max(...signed));
  const how = mean > 0 ? 'slowly' : 'quickly';
  const steps = step === 1 ? '1 step' : `${step} steps`;
  return `Along a row it falls more ${how} than down a column: at ${steps} ${two(along[step])} against ${two(down[step])}.`;
}

/** Vectors less their mean, and that mean. @param {Float64Array[]} vectors */
function centredOf(vectors) {
  const mean = new Float64Array(vectors[0].length);
  for (const vector of vectors) vector.forEach((value, i) => (mean[i] += value / vectors.length));
  return { mean, centred: vectors.map((vector) => vector.map((value, i) => value - mean[i])) };
}

/** Coordinates of centred positions along some components. @param {Float64Array[]} components @param {Float64Array[][]} states @param {readonly string[]} names @param {Size} grid @param {string} method */
function alongAxes(components, states, names, grid, method) {
  const values = states.flatMap((state) =>
    state.flatMap((vector) => components.map((axis) => dot(vector, axis))),
  );
  return mapsOf(numbers([states.length, ...grid, components.length], values), names, method, {
    unit: 'coordinate along the component',
    value_range: [-Infinity, Infinity],
    signed: true,
  });
}

/** @param {import('./form.js').Floats} values @param {readonly string[]} names @param {string} method @param {{unit: string, value_range: number[], signed: boolean}} about */
function mapsOf(values, names, method, about) {
  return { values, names, ...about, method, named: {}, crop_box: null, note: '' };
}

/** What the positions become on another grid in each family's way. @param {Context} context @param {{rows: number, cols: number}} options */
async function resampling(context, { rows, cols }) {
  const { config } = context.engine.model;
  const grid = checkedGrid(rows, cols);
  if (positionKind(config) === 'relative')
    throw new Error(
      'Only learned positions are shown on another grid; this model has learned biases for offsets instead.',
    );
  if (config.position !== 'learned')
    throw new Error(
      `Only learned positions are resampled; those of this model are ${config.position} and need none of it.`,
    );
  const [own, dim] = [trainedGrid(config), config.embed_dim];
  const { patches } = tableAt(context, own);
  const { mean, centred } = centredOf(patches);
  const { components } = principalComponents(centred, dim, COMPONENTS);
  const flat = Float32Array.from(patches.flatMap((one) => [...one]));
  const tables = [];
  for (const variant of VARIANTS) {
    const table = resampled(flat, dim, own, grid, variant);
    tables.push(
      Array.from({ length: grid[0] * grid[1] }, (_, i) =>
        Float64Array.from(table.subarray(i * dim, (i + 1) * dim)),
      ),
    );
    await context.step(tables.length / VARIANTS.length);
  }
  const ofModel = tables[VARIANTS.indexOf(config.resample)];
  const size = ofModel.reduce((sum, one) => sum + Math.sqrt(dot(one, one)), 0) / ofModel.length;
  const apart = tables.map((table) =>
    table.map((one, i) => Math.sqrt(one.reduce((sum, value, j) => sum + (value - ofModel[i][j]) ** 2, 0))),
  );
  const whole = Math.sqrt(ofModel.reduce((sum, one) => sum + dot(one, one), 0));
  const less = tables.map((table) => table.map((one) => one.map((value, i) => value - mean[i])));
  const share = { unit: 'share of the mean norm of a position', value_range: [0, Infinity], signed: false };
  return {
    before: alongAxes(components, [centred], ['checkpoint'], own, 'resampling'),
    after: alongAxes(components, less, VARIANTS, grid, 'resampling'),
    difference: mapsOf(
      numbers(
        [VARIANTS.length, ...grid],
        apart.flatMap((one) => one.map((value) => value / size)),
      ),
      VARIANTS,
      'resampling',
      share,
    ),
    overall: numbers(
      [VARIANTS.length],
      apart.map((one) => Math.sqrt(dot(one, one)) / whole),
    ),
    own: config.resample,
  };
}

/** What each period of a rotary model can tell apart. @param {Context} context @param {{rows: number, cols: number}} options */
function rotarySimilarity({ engine }, options) {
  const { config } = engine.model;
  if (config.rotary_grid)
    throw new Error(
      "Only the periods of rotary positions like DINOv3's are shown; those of this model are EVA-02's.",
    );
  if (config.position !== 'rotary')
    throw new Error(`Periods belong to rotary positions; those of this model are ${positionKind(config)}.`);
  const grid = chosenGrid(config, options);
  const count = headDim(config) / 4;
  const periods = Array.from({ length: count }, (_, i) => config.rotary_base ** (i / count));
  const [rows, cols] = grid.map((size) =>
    numbers(
      [count, size],
      periods.flatMap((period) =>
        Array.from({ length: size }, (_, apart) => Math.cos((4 * Math.PI * apart) / (size * period))),
      ),
    ),
  );
  return { periods: numbers([count], periods), rows, cols };
}

/** @param {Context} context @param {{rows: number, cols: number}} options */
function positionComponents(context, options) {
  const { config } = context.engine.model;
  const grid = chosenGrid(config, options);
  if (config.position === 'none' || config.position === 'rotary')
    throw new Error(
      `This model has no position embedding to show: its positions are '${positionKind(config)}'.`,
    );
  const { centred } = centredOf(tableAt(context, grid).patches);
  const { components, variances, total } = principalComponents(centred, config.embed_dim, COMPONENTS);
  return {
    maps: alongAxes(components, [centred], ['positions'], grid, 'position components'),
    shares: sharesOf(variances, total),
  };
}

/** @param {number[]} variances @param {number} total */
function sharesOf(variances, total) {
  return numbers(
    [variances.length],
    variances.map((variance) => (total > 0 ? variance / total : 0)),
  );
}

/** What the model sees in a patch first. @param {Context} context @param {{count: number}} options */
function filterComponents({ engine }, { count }) {
  const { config, parameters } = engine.model;
  const weight = parameters.weightOf('patch_embed.proj');
  const width = weight.length / config.embed_dim;
  const filters = Array.from({ length: config.embed_dim }, (_, i) =>
    Float64Array.from(weight.subarray(i * width, (i + 1) * width)),
  );
  const { components, variances, total } = principalComponents(
    centredOf(filters).centred,
    width,
    Math.min(count, width),
  );
  const shape = [components.length, config.in_chans, ...config.patch_size];
  return {
    values: numbers(
      shape,
      components.flatMap((one) => [...one]),
    ),
    shares: sharesOf(variances, total),
  };
}

const SIDE = { usual: 0, low: 0, high: MOST_ROWS, isWhole: true };
const NEW_SIDE = { usual: 24, low: 1, high: MOST_ROWS, isWhole: true };
const GRID = { rows: SIDE, cols: SIDE };

/** @type {import('./index.js').Table} */
export const POSITIONS = {
  positions: {
    needs: 'model',
    options: {
      grid: {
        usual: '',
        pattern: /^(\d{1,4},\d{1,4})?$/,
        sentence: 'Patches as "rows,cols" to which positions are resampled; else that of the checkpoint.',
      },
      place: {
        usual: '',
        pattern: /^(\d{1,4},\d{1,4}|[a-z]{1,20}( \d{1,4})?)?$/,
        sentence:
          'One position with all: "row,col", or a token that has one, such as "class"; else all pairs.',
      },
    },
    answer: positions,
    says: (result) => ('class_blind' in result ? mapWords(result) : ''),
  },
  position_distance: { needs: 'model', options: GRID, answer: positionDistance },
  resampling: { needs: 'model', options: { rows: NEW_SIDE, cols: NEW_SIDE }, answer: resampling },
  rotary_similarity: { needs: 'model', options: GRID, answer: rotarySimilarity },
  position_components: { needs: 'model', options: GRID, answer: positionComponents },
  filter_components: {
    needs: 'model',
    options: { count: { usual: 28, low: 1, high: 4096, isWhole: true } },
    answer: filterComponents,
  },
};
