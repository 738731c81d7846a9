// Where things are: tokens, patches, pixels of the original photo, and how queries are written.
// The browser's half of vit_viz/geometry.py; the same words and the same texts.

/**
 * A photo, and where the model's input lies on it.
 * @typedef {{crop: CropBox, photo: string, photo_size: [number, number]}} Placement photo_size: height, width
 *
 * @typedef {object} CropBox
 * @property {[number, number]} original height, width
 * @property {[number, number]} input height, width
 * @property {[number, number, number, number]} region top, left, height, width, in pixels of the original
 *
 * What the server says about a trace: the value of the component.
 * @typedef {object} Trace
 * @property {string} trace
 * @property {string} model
 * @property {string} image
 * @property {string} mode
 * @property {number} [size] short side in patches; 0 is the checkpoint's own
 * @property {string} [part] of the image, "top,left,height,width" in its pixels; "" is the whole
 * @property {string} [name] of the photo, as its owner calls it
 * @property {(Placement & {part: number[]}) | null} [whole] where the map of a part lies on the whole photo
 * @property {Placement} [alone] where it lies on the part alone
 * @property {number} layers
 * @property {number} heads
 * @property {number} tokens
 * @property {number} head_dim
 * @property {number[]} scales
 * @property {string[]} prefix names of the tokens before the patches
 * @property {string[]} suffix names of the tokens after the patches
 * @property {[number, number]} grid rows, cols
 * @property {string} pooling
 * @property {string[]} [unread] names of the class and distillation tokens that the output does not read
 * @property {string} default_query
 * @property {CropBox} crop
 * @property {string} photo
 * @property {[number, number]} photo_size height, width
 * @property {any} [about] what it is of, as questions take it; absent where there is nobody to ask
 * @property {string[]} source per layer: 'qk', 'attention' or 'rows'
 * @property {{layer: number, head: number | string}} opening where a first look begins
 * @property {number[]} [tour] patches that are worth a visit, the first of all being 0
 * @property {import('./options.js').Option[]} options what a view has beside layer, head and query
 * @property {string} [unlit] why the photo cannot be lit ("too dark"); "" where it can
 * @property {boolean} [norms] whether ||v_j W_O,h|| is known
 * @property {{state: string, text: string, title: string} | null} proof
 * @property {string} note
 */

/** What a trace is of, as text. */
export function aboutOf(/** @type {Trace} */ { model, image, mode, size = 0, part = '' }) {
  return [model, image, mode, size, part].join('|');
}

/**
 * Reads "class", "register 0", "detection 3", "7,12" or "7,12;7,13"; null where it names nothing that this trace has.
 * @param {string} text @param {Pick<Trace, 'grid' | 'prefix' | 'suffix' | 'pooling'>} trace
 * @returns {number[] | 'pool' | null} token indices, ascending; 'pool' where only the server knows the weights
 */
export function queryTokens(text, trace) {
  const { grid, prefix } = trace;
  const [rows, cols] = grid;
  if (text === 'pool') return poolTokens(trace);
  const named = namedToken(text, trace);
  if (named !== null) return [named];
  const tokens = new Set();
  for (const part of text.split(';')) {
    const match = /^([0-9]{1,5}),([0-9]{1,5})$/.exec(part.trim());
    if (!match || Number(match[1]) >= rows || Number(match[2]) >= cols) return null;
    tokens.add(prefix.length + Number(match[1]) * cols + Number(match[2]));
  }
  return [...tokens].sort((a, b) => a - b);
}

/**
 * Index of a prefix or suffix token; null for any other text.
 * @param {string} name @param {Pick<Trace, 'grid' | 'prefix' | 'suffix'>} trace
 */
function namedToken(name, { grid: [rows, cols], prefix, suffix }) {
  if (prefix.includes(name)) return prefix.indexOf(name);
  return suffix.includes(name) ? prefix.length + rows * cols + suffix.indexOf(name) : null;
}

/** @param {Pick<Trace, 'grid' | 'prefix' | 'suffix' | 'pooling' | 'unread'>} trace @returns {number[] | 'pool'} */
function poolTokens(trace) {
  const { grid, prefix, pooling } = trace;
  if (pooling === 'attention') return 'pool';
  if (pooling === 'mean') return Array.from({ length: grid[0] * grid[1] }, (_, i) => prefix.length + i);
  return classTokens(trace)
    .map((name) => namedToken(name, trace))
    .filter((i) => i !== null);
}

/**
 * Names of the tokens that class pooling reads: "class", or "class 0", "class 1", ..., with a distillation token beside it.
 * @param {Pick<Trace, 'prefix' | 'suffix' | 'unread'>} trace
 */
export function classTokens({ prefix, suffix, unread = [] }) {
  return [...prefix, ...suffix].filter(
    (name) => /^(class( [0-9]+)?|distillation)$/.test(name) && !unread.includes(name),
  );
}

/** Whether a query is a token that is not a patch. */
export function isNamed(
  /** @type {string} */ query,
  /** @type {Pick<Trace, 'prefix' | 'suffix'>} */ { prefix, suffix },
) {
  return prefix.includes(query) || suffix.includes(query);
}

/**
 * Token indices of the suffix tokens by kind: "detection" has those of "detection 0", "detection 1", ... A name stays whole where
 * its kind is taken.
 * @param {Pick<Trace, 'grid' | 'prefix' | 'suffix'>} trace @returns {Map<string, number[]>}
 */
export function suffixKinds({ grid: [rows, cols], prefix, suffix }) {
  /** @type {Map<string, number[]>} */
  const kinds = new Map();
  suffix.forEach((name, i) => {
    const kind = name.replace(/ [0-9]+$/, '');
    const key = kind === 'patches' || prefix.includes(kind) ? name : kind;
    kinds.set(key, [...(kinds.get(key) ?? []), prefix.length + rows * cols + i]);
  });
  return kinds;
}

/**
 * Whether the browser answers a query itself: not the pool, where that is a learned attention or the mean of all patches.
 * @param {string} query @param {Pick<Trace, 'grid' | 'prefix' | 'pooling'>} trace
 */
export function isLocal(query, trace) {
  return query !== 'pool' || trace.pooling === 'class';
}

/**
 * Writes patches as `queryTokens` reads them.
 * @param {Iterable<number>} patches indices of patches, the first of them 0
 * @param {number} cols
 */
export function patchQuery(patches, cols) {
  return [...new Set(patches)]
    .sort((a, b) => a - b)
    .map((i) => `${Math.floor(i / cols)},${i % cols}`)
    .join(';');
}

/**
 * The patches that a query consists of, the first of all being 0; none for a prefix token, a suffix token or the pool.
 * @param {string} query @param {Pick<Trace, 'grid' | 'prefix' | 'suffix' | 'pooling' | 'unread'>} trace @returns {number[]}
 */
export function queryPatches(query, trace) {
  if (query === 'pool' || isNamed(query, trace)) return [];
  const tokens = queryTokens(query, trace);
  return Array.isArray(tokens) ? tokens.map((t) => t - trace.prefix.length) : [];
}

/**
 * All patches of the rectangle between two patches, both included.
 * @param {number} from @param {number} to @param {number} cols
 */
export function rectangle(from, to, cols) {
  const [r0, r1] = [Math.floor(from / cols), Math.floor(to / cols)].sort((a, b) => a - b);
  const [c0, c1] = [from % cols, to % cols].sort((a, b) => a - b);
  const patches = [];
  for (let r = r0; r <= r1; r++) for (let c = c0; c <= c1; c++) patches.push(r * cols + c);
  return patches;
}

/** What a patch is called everywhere, by its row and column: "(3, 5)". */
export function placeWords(/** @type {number} */ patch, /** @type {number} */ cols) {
  return `(${Math.floor(patch / cols)}, ${patch % cols})`;
}

/** How to read that, where it is first met. */
export const PLACES = 'Patches are named by (row, column), counted from 0 at the top left.';

/** A token that is no patch, in words: "class token", "register 0". */
export function tokenWords(/** @type {string} */ name) {
  return /\d$/.test(name) ? name : `${name} token`;
}

/** A query in words, as captions say it. @param {string} query @param {Pick<Trace, 'grid' | 'prefix' | 'suffix' | 'pooling' | 'unread'>} trace */
export function queryWords(query, trace) {
  if (query === 'pool') {
    const names = classTokens(trace);
    const ends = names.length > 8 ? `${names[0]} ... ${names[names.length - 1]}` : names.join(', ');
    /** @type {Record<string, string>} */
    const kinds = {
      class: names.join() === 'class' ? 'class token' : ends,
      mean: 'mean of patches',
      attention: 'learned attention',
    };
    return `pool (${kinds[trace.pooling] ?? trace.pooling})`;
  }
  if (isNamed(query, trace)) return tokenWords(query);
  const patches = queryPatches(query, trace);
  if (patches.length !== 1) return `region of ${patches.length} patches`;
  return `patch ${placeWords(patches[0], trace.grid[1])}`;
}

/**
 * Rectangle of a patch in pixels of the original: top, left, bottom, right.
 * @param {Pick<CropBox, 'region'>} crop @param {number} row @param {number} col @param {[number, number]} grid
 * @returns {[number, number, number, number]}
 */
export function patchRect(crop, row, col, [rows, cols]) {
  const [top, left, height, width] = crop.region;
  return [
    top + (height * row) / rows,
    left + (width * col) / cols,
    top + (height * (row + 1)) / rows,
    left + (width * (col + 1)) / cols,
  ];
}

/**
 * Outline of a set of patches as an SVG path in units of patches; inner edges are left out.
 * @param {number[]} patches @param {[number, number]} grid
 */
export function outline(patches, [rows, cols]) {
  const inside = new Set(patches);
  let path = '';
  for (const patch of inside) {
    const row = Math.floor(patch / cols);
    const col = patch % cols;
    if (row === 0 || !inside.has(patch - cols)) path += `M${col} ${row}h1`;
    if (row === rows - 1 || !inside.has(patch + cols)) path += `M${col} ${row + 1}h1`;
    if (col === 0 || !inside.has(patch - 1)) path += `M${col} ${row}v1`;
    if (col === cols - 1 || !inside.has(patch + 1)) path += `M${col + 1} ${row}v1`;
  }
  return path;
}

/** The nearest number between two others. */
export function clamp(/** @type {number} */ value, high = 1, low = 0) {
  return Math.min(high, Math.max(low, value));
}

/** The patch in the middle of a grid. */
export function centreOf(/** @type {[number, number]} */ [rows, cols]) {
  return Math.floor(rows / 2) * cols + Math.floor(cols / 2);
}

/**
 * Where a pointer is in an element, as shares of its height and width: 0 at the top and left, 1 at the bottom and right.
 * @param {Pick<MouseEvent, 'clientX' | 'clientY'>} event @param {Element} element
 * @returns {[number, number]} down, across
 */
export function pointerIn(event, element) {
  const box = element.getBoundingClientRect();
  return [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
}

/**
 * The cell of a grid at a point given as shares of its height and width; null outside.
 * @param {[number, number]} point down, across
 * @param {[number, number]} grid rows, cols
 * @returns {[number, number] | null} row, col
 */
export function cellAt([down, across], [rows, cols]) {
  const row = Math.floor(down * rows);
  const col = Math.floor(across * cols);
  return row >= 0 && row < rows && col >= 0 && col < cols ? [row, col] : null;
}

/**
 * The same, and outside the nearest one: a drag that leaves the photo stays on its edge.
 * @param {[number, number]} point @param {[number, number]} grid @returns {[number, number]} row, col
 */
export function nearestCell([down, across], [rows, cols]) {
  return [clamp(Math.floor(down * rows), rows - 1), clamp(Math.floor(across * cols), cols - 1)];
}

/**
 * A point of the original photo as shares of a region of it.
 * @param {[number, number]} point y, x in pixels
 * @param {CropBox['region']} region
 * @returns {[number, number]} down, across
 */
export function shareOf([y, x], [top, left, height, width]) {
  return [(y - top) / height, (x - left) / width];
}

/**
 * The index of a patch one or more steps away; it stops at the edges.
 * @param {number} patch
 * @param {[number, number]} step down, right
 * @param {[number, number]} grid rows, cols
 */
export function movedPatch(patch, [down, right], [rows, cols]) {
  const row = clamp(Math.floor(patch / cols) + down, rows - 1);
  return row * cols + clamp((patch % cols) + right, cols - 1);
}

/**
 * The style that puts a rectangle where it lies in an area that fills its element.
 * @param {number[]} rect top, left, bottom, right
 * @param {number[]} area top, left, bottom, right
 */
export function placeIn([top, left, bottom, right], area) {
  const height = area[2] - area[0];
  const width = area[3] - area[1];
  return {
    top: `${(100 * (top - area[0])) / height}%`,
    left: `${(100 * (left - area[1])) / width}%`,
    width: `${(100 * (right - left)) / width}%`,
    height: `${(100 * (bottom - top)) / height}%`,
  };
}
