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
 * @property {string[]} prefix
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
 * Reads "class", "register 0", "7,12" or "7,12;7,13"; null where it names nothing that this trace has.
 * @param {string} text
 * @param {Pick<Trace, 'grid' | 'prefix' | 'pooling'>} trace
 * @returns {number[] | 'pool' | null} token indices, ascending; 'pool' where only the server knows the weights
 */
export function queryTokens(text, { grid: [rows, cols], prefix, pooling }) {
  if (text === 'pool') return poolTokens(rows * cols, prefix, pooling);
  const named = prefix.indexOf(text);
  if (named >= 0) return [named];
  const tokens = new Set();
  for (const part of text.split(';')) {
    const match = /^([0-9]{1,5}),([0-9]{1,5})$/.exec(part.trim());
    if (!match || Number(match[1]) >= rows || Number(match[2]) >= cols) return null;
    tokens.add(prefix.length + Number(match[1]) * cols + Number(match[2]));
  }
  return [...tokens].sort((a, b) => a - b);
}

/**
 * @param {number} patches
 * @param {string[]} prefix
 * @param {string} pooling
 * @returns {number[] | 'pool'}
 */
function poolTokens(patches, prefix, pooling) {
  if (pooling === 'attention') return 'pool';
  if (pooling === 'mean') return Array.from({ length: patches }, (_, i) => prefix.length + i);
  return ['class', 'distillation'].map((name) => prefix.indexOf(name)).filter((i) => i >= 0);
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
 * @param {Iterable<number>} patches indices of patches, without prefix
 * @param {number} cols
 */
export function patchQuery(patches, cols) {
  return [...new Set(patches)]
    .sort((a, b) => a - b)
    .map((i) => `${Math.floor(i / cols)},${i % cols}`)
    .join(';');
}

/**
 * The patches that a query consists of, as indices without prefix; none for a prefix token or the pool.
 * @param {string} query
 * @param {Trace} trace
 * @returns {number[]}
 */
export function queryPatches(query, trace) {
  if (query === 'pool' || trace.prefix.includes(query)) return [];
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
  if (trace.prefix.includes(query)) return `${query} token`;
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
