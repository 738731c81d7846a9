// Where things are: tokens, patches, pixels of the original photo, and how queries are written.
// The browser's half of vit_viz/geometry.py; the same words and the same texts.

/**
 * @typedef {object} CropBox
 * @property {[number, number]} original height, width
 * @property {[number, number]} input height, width
 * @property {[number, number, number, number]} region top, left, height, width, in pixels of the original
 *
 * What the server says about a trace: the value of the component.
 * @typedef {object} Trace
 * @property {number} seq
 * @property {string} trace
 * @property {string} model
 * @property {string} image
 * @property {string} mode
 * @property {number} layers
 * @property {number} heads
 * @property {number} tokens
 * @property {number} head_dim
 * @property {number[]} scales
 * @property {string[]} prefix names of the tokens before the patches
 * @property {string[]} suffix names of the tokens after the patches
 * @property {[number, number]} grid rows, cols
 * @property {string} pooling
 * @property {string} default_query
 * @property {CropBox} crop
 * @property {string} photo
 * @property {[number, number]} photo_size height, width
 * @property {string[]} source per layer: 'qk', 'attention' or 'rows'
 * @property {Record<string, unknown> | null} view
 * @property {boolean} [norms] whether ||v_j W_O,h|| is known
 * @property {{state: string, text: string, title: string} | null} proof
 * @property {string} note
 */

/**
 * Reads "class", "register 0", "detection 3", "7,12" or "7,12;7,13"; null where it names nothing that this trace has.
 * @param {string} text
 * @param {Pick<Trace, 'grid' | 'prefix' | 'suffix' | 'pooling'>} trace
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
 * @param {string} name
 * @param {Pick<Trace, 'grid' | 'prefix' | 'suffix'>} trace
 */
function namedToken(name, { grid: [rows, cols], prefix, suffix }) {
  if (prefix.includes(name)) return prefix.indexOf(name);
  return suffix.includes(name) ? prefix.length + rows * cols + suffix.indexOf(name) : null;
}

/**
 * @param {Pick<Trace, 'grid' | 'prefix' | 'suffix' | 'pooling'>} trace
 * @returns {number[] | 'pool'}
 */
function poolTokens(trace) {
  const { grid, prefix, pooling } = trace;
  if (pooling === 'attention') return 'pool';
  if (pooling === 'mean') return Array.from({ length: grid[0] * grid[1] }, (_, i) => prefix.length + i);
  return ['class', 'distillation'].map((name) => namedToken(name, trace)).filter((i) => i !== null);
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
 * @param {Pick<Trace, 'grid' | 'prefix' | 'suffix'>} trace
 * @returns {Map<string, number[]>}
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
 * @param {string} query
 * @param {Pick<Trace, 'grid' | 'prefix' | 'pooling'>} trace
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
 * @param {string} query
 * @param {Trace} trace
 * @returns {number[]}
 */
export function queryPatches(query, trace) {
  if (query === 'pool' || isNamed(query, trace)) return [];
  const tokens = queryTokens(query, trace);
  return Array.isArray(tokens) ? tokens.map((t) => t - trace.prefix.length) : [];
}

/**
 * All patches of the rectangle between two patches, both included.
 * @param {number} from
 * @param {number} to
 * @param {number} cols
 */
export function rectangle(from, to, cols) {
  const [r0, r1] = [Math.floor(from / cols), Math.floor(to / cols)].sort((a, b) => a - b);
  const [c0, c1] = [from % cols, to % cols].sort((a, b) => a - b);
  const patches = [];
  for (let r = r0; r <= r1; r++) for (let c = c0; c <= c1; c++) patches.push(r * cols + c);
  return patches;
}

/**
 * A query in words, as captions say it.
 * @param {string} query
 * @param {Trace} trace
 */
export function queryWords(query, trace) {
  if (query === 'pool') {
    /** @type {Record<string, string>} */
    const kinds = { class: 'class token', mean: 'mean of patches', attention: 'learned attention' };
    return `pool (${kinds[trace.pooling] ?? trace.pooling})`;
  }
  if (isNamed(query, trace)) return `${query} token`;
  const patches = queryPatches(query, trace);
  if (patches.length !== 1) return `region of ${patches.length} patches`;
  return `patch (${Math.floor(patches[0] / trace.grid[1])}, ${patches[0] % trace.grid[1]})`;
}

/**
 * Rectangle of a patch in pixels of the original: top, left, bottom, right.
 * @param {CropBox} crop
 * @param {number} row
 * @param {number} col
 * @param {[number, number]} grid
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
 * @param {number[]} patches
 * @param {[number, number]} grid
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
