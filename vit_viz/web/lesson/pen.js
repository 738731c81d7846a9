// What the scenes are drawn with, on one canvas: words, boxes, pieces of the photo, vectors, and the photo lit by attention. Made for one
// size, photo and set of colours.

import { clamp } from '../../explorer/geometry.js';
import { counted } from '../../ui/kit/numbers.js';
import { endOf, largestOf, paintSigned } from '../kit/signed.js';
import { topOf } from '../../explorer/frame.js';
import { Picture } from '../../explorer/paint.js';
import { Tile, sharpness } from '../../explorer/screen.js';
import { layerTable, suited } from '../../explorer/styles.js';
/** @import { Trace } from '../../explorer/geometry.js' */

/**
 * @typedef {{x: number, y: number, w: number, h: number}} Area in pixels of CSS
 * @typedef {{size?: number, fill?: string, align?: CanvasTextAlign, weight?: number, a?: number}} Lettering
 */

/** Colours, by the names of their tokens in tokens.css. */
const COLOURS = ['ground', 'soft', 'text', 'muted', 'line', 'accent', 'for', 'against'];
/** Of what is drawn on a photo, which is dark under it. */
export const GLOW = '#f5b83d';
const UNDER = 32; // units of what stands under the row
export const NARROW = 760; // pixels of the stage, below which the photo stands above what is explained

/** A vector as the eye sees it: of numbers that share a pixel, the one farthest from 0. @param {ArrayLike<number>} numbers @param {number} cells */
function gathered(numbers, cells) {
  if (numbers.length <= cells) return numbers;
  const out = new Float32Array(cells);
  for (let i = 0; i < numbers.length; i++) {
    const cell = Math.floor((i * cells) / numbers.length);
    if (Math.abs(numbers[i]) > Math.abs(out[cell])) out[cell] = numbers[i];
  }
  return out;
}

/**
 * Where things stand.
 * @param {[number, number]} input height, width @param {number} width @param {number} u unit @param {boolean} isWide
 * @param {number} tallest @param {number} words @returns {{photo: Area, work: Area, row: Area & {bar: number}}}
 */
function areasOf(input, width, u, isWide, tallest, words) {
  const aspect = input[1] / input[0];
  const [above, bar, line] = isWide ? [16 * u, 64 * u, 28 * u] : [10, 32, 22];
  const rest = above + bar + line + UNDER * u;
  const [widest, highest] = isWide
    ? [Math.min(width * 0.4, 640 * u), clamp(tallest - rest, 640 * u, 260 * u)]
    : [width, clamp(tallest - words - rest - 220, 300, 150)];
  const w = Math.min(widest, highest * aspect);
  const h = w / aspect;
  const photo = { x: isWide ? 0 : (width - w) / 2, y: 0, w, h };
  const work = { x: 0, y: h + 16, w: width, h: 204 };
  if (isWide) {
    const [x, y] = [w + 40 * u, words * u];
    Object.assign(work, { x, y, w: width - x, h: Math.max(h, highest, y + 240 * u) - y });
  }
  return { photo, work, row: { x: 0, y: work.y + work.h + above + bar, w: width, h: line, bar } };
}

/** The same in gray. @param {HTMLCanvasElement} picture */
function drained(picture) {
  const { width, height } = picture;
  const sheet = Object.assign(document.createElement('canvas'), { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (sheet.getContext('2d'));
  context.filter = 'grayscale(1)';
  context.drawImage(picture, 0, 0);
  return sheet;
}

export class Pen {
  /** Numbers that stand in the picture, by what they are: exact, and as they are written. @type {Map<string, {value: number, text: string}>} */
  numbers = new Map();

  /**
   * @param {HTMLCanvasElement} canvas it fits the width of what it stands in
   * @param {object} of
   * @param {Trace} of.trace @param {HTMLImageElement} of.image its photo, loaded
   * @param {number} of.tallest most pixels that the picture may be high
   * @param {number} of.words what the words beside the photo take, in units; below it, in pixels
   * @param {boolean} of.gray whether the model sees no colours
   */
  constructor(canvas, { trace, image, tallest, words, gray }) {
    const look = getComputedStyle(canvas);
    const token = (/** @type {string} */ name) => look.getPropertyValue(`--vv-${name}`).trim();
    /** @type {Record<string, string>} */
    this.colour = Object.fromEntries(COLOURS.map((name) => [name, token(name)]));
    this.font = look.fontFamily;
    this.trace = trace;
    const parent = /** @type {HTMLElement} */ (canvas.parentElement);
    const width = Math.max(280, parent.clientWidth);
    this.wide = width > NARROW;
    this.unit = this.wide ? clamp(Math.min(width / 1330, tallest / 540), 1.8, 0.85) : 1;
    const { photo, work, row } = areasOf(trace.crop.input, width, this.unit, this.wide, tallest, words);
    /** The photo as the model gets it. */
    this.photo = photo;
    /** Where it is explained. */
    this.work = work;
    /** The row of all tokens; above it stand bars as high as `bar`. */
    this.row = row;
    const height = this.row.y + this.row.h + UNDER * this.unit;
    const scale = sharpness({ width, height }, globalThis.devicePixelRatio || 1);
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    canvas.style.height = `${height}px`;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.width = width;
    this.height = height;
    this.scale = scale; // pixels of the canvas for one of CSS
    this.veil = 1;
    const tile = new Tile();
    tile.prepare(image, trace.crop, {
      width: Math.max(1, Math.round(photo.w * scale)),
      height: Math.max(1, Math.round(photo.h * scale)),
    });
    const shades = [tile.plain.canvas, tile.dark.canvas].map((one) => (gray ? drained(one) : one));
    this.plain = shades[0];
    this.dark = shades[1]; // the photo, dimmed
    /** @type {HTMLCanvasElement | null} made when it is asked for */
    this.gray = null;
    this.map = new Picture(undefined, trace.grid[1], trace.grid[0]);
    this.over = document.createElement('canvas');
  }

  /** Begins a picture. */
  clear() {
    this.context.clearRect(0, 0, this.width, this.height);
    this.veil = 1;
    this.numbers.clear();
  }

  #fade(/** @type {number} */ a) {
    this.context.globalAlpha = this.veil * clamp(a);
  }

  /** Draws all of something as faint as `a`. @param {number} a @param {() => void} draw */
  within(a, draw) {
    if (a <= 0.004) return;
    const before = this.veil;
    this.veil = before * Math.min(1, a);
    draw();
    this.veil = before;
  }

  /** @param {string} words @param {number} x @param {number} y of the line that letters stand on @param {Lettering} [lettering] */
  text(words, x, y, { size = 13, fill = 'muted', align = 'left', weight = 400, a = 1 } = {}) {
    if (a <= 0) return;
    const { context } = this;
    this.#fade(a);
    context.fillStyle = this.colour[fill] ?? fill;
    context.textAlign = align;
    context.font = `${weight} ${Math.max(12, this.wide ? size * this.unit : size - 2)}px ${this.font}`;
    context.fillText(words, x, y);
  }

  /**
   * A number as text, which is kept under its name with all its digits.
   * @param {string} id @param {number} value @param {string} words @param {number} x @param {number} y @param {Lettering} [lettering]
   */
  number(id, value, words, x, y, lettering) {
    if ((lettering?.a ?? 1) > 0.5) this.numbers.set(id, { value, text: words });
    this.text(words, x, y, lettering);
  }

  /** @param {Area} area @param {string} fill */
  box({ x, y, w, h }, fill, a = 1, r = 2) {
    if (w <= 0 || h <= 0) return;
    this.#fade(a);
    this.context.fillStyle = this.colour[fill] ?? fill;
    this.context.beginPath();
    this.context.roundRect(x, y, w, h, Math.min(r, w / 2, h / 2));
    this.context.fill();
  }

  /** A ring around an area; nothing where that is not yet of any size. @param {Area} area @param {string} stroke */
  frame({ x, y, w, h }, stroke, a = 1, width = 2.5) {
    if (w <= 0 || h <= 0 || a <= 0) return;
    this.#fade(a);
    this.context.beginPath();
    this.context.roundRect(x, y, w, h, Math.min(4, w / 2, h / 2));
    if (stroke === 'accent') this.#stroke(this.colour.ground, width + 2.5);
    this.#stroke(this.colour[stroke] ?? stroke, width);
  }

  #stroke(/** @type {string} */ colour, /** @type {number} */ width) {
    Object.assign(this.context, { strokeStyle: colour, lineWidth: width });
    this.context.stroke();
  }

  /** A patch of the photo; in a place of another shape, its middle. @param {number} patch @param {Area} area */
  piece(patch, { x, y, w, h }, a = 1) {
    if (w <= 0 || h <= 0 || a <= 0) return;
    const [rows, cols] = this.trace.grid;
    const [wide, tall] = [this.plain.width / cols, this.plain.height / rows];
    const across = wide * Math.min(1, ((w / h) * tall) / wide);
    const left = (patch % cols) * wide + (wide - across) / 2;
    this.#fade(a);
    this.context.drawImage(this.plain, left, Math.floor(patch / cols) * tall, across, tall, x, y, w, h);
  }

  /** A token: its piece of the photo, or the letter of one that is no patch. @param {number} token @param {Area} area */
  face(token, area, a = 1) {
    const { prefix } = this.trace;
    const { x, y, w, h } = area;
    if (token >= prefix.length) return this.piece(token - prefix.length, area, a);
    const name = prefix[token];
    const edge = { x: x + 0.5, y: y + 0.5, w: w - 1, h: h - 1 };
    this.box(area, 'soft', a, 5);
    this.frame(edge, /^class/.test(name) ? 'accent' : 'muted', a, 1);
    const letters = name[0].toUpperCase() + (/\d+$/.exec(name)?.[0] ?? '');
    const lettering = /** @type {Lettering} */ ({ fill: 'text', align: 'center', weight: 600, a });
    if (w > (this.wide ? 9 : 7.5) * letters.length)
      this.text(letters, x + w / 2, y + h / 2 + 5 * this.unit, lettering);
  }

  /**
   * A vector: a cell for each number, orange above 0 and blue below, as strong as it is large.
   * @param {ArrayLike<number>} numbers @param {Area} area
   * @param {{max: number, shown?: number, a?: number}} how max: where colours are full; shown: the share of it that is drawn, from the left
   */
  vector(numbers, area, { max, shown = 1, a = 1 }) {
    const { x, y, w, h } = area;
    if (w <= 0 || a <= 0) return;
    const cells = gathered(numbers, Math.max(1, Math.floor(w * Math.min(1, this.scale))));
    const step = w / cells.length;
    const gap = step > 5 ? 1.5 : step > 3 ? 0.7 : 0;
    this.box(area, 'soft', a);
    for (let i = 0; i < cells.length * shown; i++) {
      const share = max > 0 ? (Math.abs(cells[i]) / max) * 1.1 : 0;
      if (share < 0.02) continue;
      this.#fade(a * Math.min(1, share));
      this.context.fillStyle = cells[i] > 0 ? this.colour.for : this.colour.against;
      this.context.fillRect(x + i * step, y, step - gap, h);
    }
  }

  /**
   * The photo, dimmed and lit where weights fall, as Look draws it.
   * @param {ArrayLike<number> | null} weights of all tokens; null: the photo alone
   * @param {Area} area @param {number} [depth] how far it is dimmed, from 0
   */
  lit(weights, area, a = 1, depth = 1) {
    this.#within(area, a, this.plain, () => {
      if (!weights || depth <= 0) return;
      const { map, over, trace } = this;
      const numbers = Float32Array.from(weights).subarray(trace.prefix.length);
      const sorted = numbers.slice().sort();
      const style = suited('light', trace.unlit);
      map.paint(numbers, layerTable(style, depth, new Uint32Array(256)), [sorted[0], topOf(sorted)]);
      const [width, height] = [area.w, area.h].map((side) => Math.ceil(side * this.scale));
      if (over.width !== width || over.height !== height) Object.assign(over, { width, height });
      const sheet = /** @type {CanvasRenderingContext2D} */ (over.getContext('2d'));
      sheet.globalCompositeOperation = 'copy';
      sheet.drawImage(map.canvas, 0, 0, width, height);
      sheet.globalCompositeOperation = 'source-in'; // in the colours of the dimmed photo
      if (style === 'light') sheet.drawImage(this.dark, 0, 0, width, height);
      this.context.drawImage(over, area.x, area.y, area.w, area.h);
    });
  }

  /** The photo in gray; orange is where numbers speak for something, blue where against it, as Explain draws it. @param {Float32Array} values of all patches @param {Area} area */
  signed(values, area, a = 1) {
    if (a <= 0) return;
    this.gray ??= drained(this.plain);
    this.#within(area, a, this.gray, () => {
      paintSigned(this.map, values, endOf(values));
      this.context.drawImage(this.map.canvas, area.x, area.y, area.w, area.h);
    });
  }

  /** A picture with round corners, and within them what lies over it. @param {Area} area @param {number} a @param {HTMLCanvasElement} picture @param {() => void} draw */
  #within({ x, y, w, h }, a, picture, draw) {
    if (w <= 0 || h <= 0 || a <= 0) return;
    const { context } = this;
    context.save();
    context.beginPath();
    context.roundRect(x, y, w, h, Math.min(w > 200 ? 12 : 6, w / 2, h / 2));
    context.clip();
    this.#fade(a);
    context.drawImage(picture, x, y, w, h);
    draw();
    context.restore();
  }

  /** A bent line on the photo, from the middle of one area to that of another, as far as `long`. @param {Area} from @param {Area} to @param {number} width */
  line(from, to, width, a = 1, long = 1, bend = 0.25) {
    const { context } = this;
    const middle = (/** @type {Area} */ { x, y, w, h }) => [x + w / 2, y + h / 2];
    const [[x0, y0], [x1, y1]] = [middle(from), middle(to)];
    const over = [(x0 + x1) / 2 + (y1 - y0) * bend, (y0 + y1) / 2 - (x1 - x0) * bend];
    this.#fade(a);
    context.strokeStyle = GLOW;
    context.lineCap = 'round';
    context.lineWidth = width;
    context.beginPath();
    for (let k = 0; k <= 24 * clamp(long); k++) {
      const [u, v] = [k / 24, 1 - k / 24];
      const at = (/** @type {number} */ p, /** @type {number} */ q, /** @type {number} */ r) =>
        v * v * p + 2 * u * v * q + u * u * r;
      context.lineTo(at(x0, over[0], x1), at(y0, over[1], y1));
    }
    context.stroke();
  }

  /** Where a patch lies on the photo. @param {number} patch @returns {Area} */
  at(patch) {
    const [rows, cols] = this.trace.grid;
    const [w, h] = [this.photo.w / cols, this.photo.h / rows];
    return { x: this.photo.x + (patch % cols) * w, y: this.photo.y + Math.floor(patch / cols) * h, w, h };
  }

  /**
   * Where each token stands in the row: wide and high where the lesson looks, thin elsewhere.
   * @param {[token: number, more: number, radius: number][]} focus how much wider tokens are around one
   * @param {number} [join] how far the tokens that are no patches have come
   * @returns {Area[]}
   */
  spots(focus, join = 1) {
    const { prefix, grid } = this.trace;
    const patches = grid[0] * grid[1];
    const widths = Array.from({ length: prefix.length + patches }, (_, token) => {
      let wide = token < prefix.length ? Math.min(9, patches / 20) * join : 1;
      for (const [at, more, radius] of focus) wide += more * Math.exp(-(((token - at) / radius) ** 2));
      return wide;
    });
    const unit = this.row.w / widths.reduce((sum, wide) => sum + wide, 0);
    let end = this.row.x;
    return widths.map((wide) => {
      const [x, w] = [end, wide * unit];
      end += w;
      const h = Math.min(this.row.h + 10 * clamp(w / 30), 60);
      return { x, y: this.row.y, w: w - (w > 8 ? 1 : 0.15), h };
    });
  }

  /** What the photo shows, on its foot; not where there is little room. @param {string} words */
  caption(words) {
    const { x, y, h } = this.photo;
    if (this.wide) this.text(words, x + 10, y + h - 12, { fill: '#fff' });
  }

  /** What is said below the row, at its left or right end. @param {string} words @param {Lettering} [lettering] */
  below(words, lettering) {
    const { x, y, w, h } = this.row;
    this.text(words, lettering?.align === 'right' ? x + w : x, y + h + (UNDER - 5) * this.unit, lettering);
  }

  /**
   * The row of all tokens, one of them larger, and above each a bar as long as its number; below, what the bars are.
   * @param {number} token @param {ArrayLike<number>} numbers @param {string} words
   * @param {{focus?: Parameters<Pen['spots']>[0], most?: number, zero?: number}} [how] focus: which others are larger; most: the number of
   *   the longest bar; zero: how high bars begin, as a share of the room for them
   */
  tokens(token, numbers, words, { focus = [], most = largestOf(numbers) || 1, zero } = {}) {
    const { row, wide } = this;
    const spots = this.spots([[token, 12, 5], ...focus]);
    const low = (zero ?? (Array.from(numbers).some((one) => one < 0) ? 0.5 : 0)) * row.bar;
    spots.forEach((spot, i) => {
      this.face(i, spot);
      const h = ((row.bar - low) * Math.abs(numbers[i])) / most;
      const w = clamp(spot.w - 0.6, wide ? 14 : 8, 0.8);
      const [x, y] = [spot.x + (spot.w - w) / 2, row.y - 6 - low - (numbers[i] > 0 ? h : 0)];
      this.box({ x, y, w, h }, numbers[i] < 0 ? 'against' : 'for');
    });
    this.frame(spots[token], 'accent');
    this.below(words);
    if (wide || !words) this.below(`${counted(spots.length, 'token')} in one row`, { align: 'right' });
  }
}
