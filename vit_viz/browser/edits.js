// Edits of a model in words, as links have them and vit_viz/session/edits.py reads them, and what they change of each layer's attention.

/** @import { Size } from './config.js' */

/**
 * What is changed of the attention of a layer.
 * @typedef {object} LayerEdits
 * @property {number[]} off heads whose output is zero @property {number[]} mean heads whose output is its mean over tokens
 * @property {number[]} uniform heads that look alike at all tokens that they may see
 * @property {number} temperature by which scores are divided
 * @property {Uint8Array | null} forbidden 1 where a token no longer sees another, [tokens, tokens]
 * @property {boolean} [isOverQueries] whether the weights of each key, and not of each query, sum to 1
 *
 * @typedef {'off' | 'mean' | 'uniform'} HeadState
 * @typedef {{depth: number, heads: number, prefix: string[], grid: Size}} Shape of the pass that is edited
 * @typedef {Map<number, LayerEdits>} Edits by layer
 */

const STATES = /** @type {const} */ (['off', 'mean', 'uniform']);
const MOST = 4096; // patches of a region
const [LOWEST, HIGHEST] = [0.01, 100]; // temperatures

/** What words of edits change in a pass. Throws a sentence where they cannot be. @param {string} words @param {Shape} shape @returns {Edits} */
export function editsOf(words, shape) {
  /** @type {Edits} */
  const edits = new Map();
  const named = new Set();
  const once = (/** @type {string} */ name) => {
    if (named.has(name)) throw new Error(`${name} is edited twice; please name it once.`);
    named.add(name);
  };
  for (const statement of words
    .split(';')
    .map((one) => one.trim())
    .filter(Boolean)) {
    const [, kind, rest] = /^(\S+)\s*(.*)$/s.exec(statement) ?? [];
    if (STATES.includes(/** @type {HeadState} */ (kind)) && rest)
      for (const word of rest.split(/\s+/)) {
        const [layer, head] = pairIn(/^(\d{1,4})\.(\d{1,4})$/, word, 'A head is layer.head, such as 3.1');
        once(`Head ${head} of layer ${layer}`);
        checked('Head', head, shape.heads, 'heads');
        layerOf(edits, layer, shape)[/** @type {HeadState} */ (kind)].push(head);
      }
    else if (kind === 'temperature' && rest)
      for (const word of rest.split(/\s+/)) {
        const form = /^(\d{1,4})=(\d{1,4}(?:\.\d{1,20})?)$/;
        const [layer, value] = pairIn(form, word, 'A temperature is layer=value, such as 7=0.5');
        once(`The temperature of layer ${layer}`);
        if (!(LOWEST <= value && value <= HIGHEST))
          throw new Error(
            `The temperature of layer ${layer} is a number from ${LOWEST} to ${HIGHEST}, not ${value}.`,
          );
        layerOf(edits, layer, shape).temperature = Number(value.toPrecision(6));
      }
    else if (kind === 'forbid' && rest) forbid(edits, rest, shape);
    else
      throw new Error(
        `An edit is 'off 3.1', 'mean 3.1', 'uniform 3.1', 'temperature 7=0.5' or 'forbid class>2,3', not '${statement.slice(0, 40)}'.`,
      );
  }
  checkSeeing(edits, shape);
  return edits;
}

/** Edits with one more head in a state. @param {Edits} edits @param {number} layer @param {number} head @param {HeadState} state @returns {Edits} */
export function withHead(edits, layer, head, state) {
  const own = edits.get(layer) ?? unedited();
  return new Map([...edits, [layer, { ...own, [state]: [...own[state], head] }]]);
}

/** @returns {LayerEdits} */
export function unedited() {
  return { off: [], mean: [], uniform: [], temperature: 1, forbidden: null };
}

/** What is changed of a layer, to be added to. @param {Edits} edits @param {number} layer @param {Shape} shape */
function layerOf(edits, layer, { depth }) {
  checked('Layer', layer, depth, 'layers');
  const own = edits.get(layer) ?? unedited();
  edits.set(layer, own);
  return own;
}

function checked(
  /** @type {string} */ what,
  /** @type {number} */ index,
  /** @type {number} */ count,
  /** @type {string} */ many,
) {
  if (index >= count)
    throw new Error(`${what} ${index} does not exist: this model has ${many} 0-${count - 1}.`);
}

function pairIn(/** @type {RegExp} */ form, /** @type {string} */ word, /** @type {string} */ sentence) {
  const match = form.exec(word);
  if (!match) throw new Error(`${sentence}, not '${word.slice(0, 40)}'.`);
  return [Number(match[1]), Number(match[2])];
}

/** Adds edges of "class>2-4,3-5@6-8". @param {Edits} edits @param {string} text @param {Shape} shape */
function forbid(edits, text, shape) {
  const match = /^([^>@]+)>([^>@]+)(?:@([0-9+-]+))?$/.exec(text);
  if (!match)
    throw new Error(
      `What is forbidden is seeing>seen, such as class>2-4,3-5@6-8, not '${text.slice(0, 40)}'.`,
    );
  const tokens = shape.prefix.length + shape.grid[0] * shape.grid[1];
  const [seeing, seen] = [match[1], match[2]].map((region) => tokensOf(region.trim(), shape));
  const layers = match[3] ? layersOf(match[3]) : Array.from({ length: shape.depth }, (_, layer) => layer);
  for (const layer of layers) {
    const own = layerOf(edits, layer, shape);
    own.forbidden ??= new Uint8Array(tokens * tokens);
    for (const i of seeing) for (const j of seen) own.forbidden[i * tokens + j] = 1;
  }
}

/** Layers of "3-5+8". @returns {number[]} */
function layersOf(/** @type {string} */ text) {
  return text.split('+').flatMap((part) => {
    const [, low, high = low] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? [];
    if (!(Number(high) >= Number(low)))
      throw new Error(`Layers are numbers such as 3-5 or 3+8, not '${text.slice(0, 40)}'.`);
    return Array.from({ length: Number(high) - Number(low) + 1 }, (_, i) => Number(low) + i);
  });
}

/** Tokens of a region in words. @param {string} region @param {Shape} shape @returns {number[]} */
function tokensOf(region, { prefix, grid: [rows, cols] }) {
  const all = Array.from({ length: prefix.length + rows * cols }, (_, token) => token);
  if (region === 'everything') return all;
  if (region === 'patches') return all.slice(prefix.length);
  if (region === 'registers') {
    const registers = all.filter((token) => prefix[token]?.startsWith('register'));
    if (!registers.length) throw new Error('This model has no registers.');
    return registers;
  }
  if (/^[a-z]+( \d{1,4})?$/.test(region)) {
    const token = prefix.indexOf(region);
    const [, number] = /^token (\d+)$/.exec(region) ?? [];
    if (token >= 0) return [token];
    if (number === undefined)
      throw new Error(
        `This model has no token '${region}'; its prefix tokens are: ${prefix.join(', ') || 'none'}.`,
      );
    if (Number(number) >= all.length)
      throw new Error(`Token ${number} does not exist: this model has tokens 0-${all.length - 1}.`);
    return [Number(number)];
  }
  return placesOf(region).map(([row, col]) => {
    if (row >= rows || col >= cols)
      throw new Error(
        `Patch (${row}, ${col}) does not exist: rows are 0-${rows - 1} and columns 0-${cols - 1}.`,
      );
    return prefix.length + row * cols + col;
  });
}

/** Patches of "2-4,3-5+7,1". @param {string} text @returns {[number, number][]} */
function placesOf(text) {
  const places = text.split('+').flatMap((part) => {
    const match = /^(\d{1,3})(?:-(\d{1,3}))?,(\d{1,3})(?:-(\d{1,3}))?$/.exec(part.trim());
    if (!match)
      throw new Error(
        `Tokens are a name such as class, or patches such as 2,3 or 2-4,3-5, not '${text.slice(0, 40)}'.`,
      );
    const [top, bottom, left, right] = [match[1], match[2] ?? match[1], match[3], match[4] ?? match[3]].map(
      Number,
    );
    const [tall, wide] = [bottom - top + 1, right - left + 1];
    if (tall < 1 || wide < 1 || tall * wide > MOST)
      throw new Error(`A region has 1 to ${MOST} patches; '${part.trim().slice(0, 40)}' has not.`);
    return Array.from({ length: tall * wide }, (_, i) => {
      return /** @type {[number, number]} */ ([top + Math.floor(i / wide), left + (i % wide)]);
    });
  });
  if (places.length > MOST) throw new Error(`A region has 1 to ${MOST} patches, not ${places.length}.`);
  return places;
}

/** Every token has to see at least one. @param {Edits} edits @param {Shape} shape */
function checkSeeing(edits, { prefix, grid: [, cols] }) {
  for (const [layer, { forbidden }] of edits) {
    if (!forbidden) continue;
    const tokens = Math.sqrt(forbidden.length);
    const blind = Array.from({ length: tokens }, (_, i) => i).find((i) =>
      forbidden.subarray(i * tokens, (i + 1) * tokens).every(Boolean),
    );
    if (blind === undefined) continue;
    const patch = blind - prefix.length;
    const name = prefix[blind] ?? `patch (${Math.floor(patch / cols)}, ${patch % cols})`;
    throw new Error(
      `Every token has to see at least one, but ${name} would see none in layer ${layer}: forbid less.`,
    );
  }
}
