// The scatter of photos. Axes, legend and brush are one of plotly's figures (vit_viz/figures/plots.py lays it out; it comes with
// gr.Plot). The dots are painted on a canvas of our own: plotly takes most of a second for ten thousand without a graphics card.

import { extent } from '../../explorer/attention.js';
import { make } from '../../ui/kit/elements.js';
import { short } from '../../ui/kit/numbers.js';
import { boxFilter, columnWords, lassoFilter, traceRows } from './lists.js';

const SHOWN = 0.85; // how opaque a dot is whose photo passes
const FADED = 0.06; // and one whose photo does not
const RADIUS = 3; // in pixels
const REACH = 8; // how far from the pointer a dot may be, in pixels
const ALONE = 340; // height of the figure where nothing stands beside it, in pixels
const LEAST = 300; // and where something does
const ROOM = 0.04; // around the outermost dots, as a share of the axis

/** What the three kinds of dots say, in the order of the figure's traces. */
export const KINDS = ['right', 'wrong', 'no label'];

/**
 * The ends of an axis that shows all dots, with some room around them.
 * @param {Float32Array} values NaN where a photo has no such number
 * @returns {[number, number]}
 */
export function axisEnds(values) {
  const [low, high] = extent(values);
  if (low > high) return [0, 1];
  const room = ROOM * (high - low) || Math.abs(low) / 2 || 0.5;
  return [low - room, high + room];
}

/**
 * Where dots are: a number along an axis as pixels from its first end.
 * @param {Float32Array} values
 * @param {number} low value at pixel 0
 * @param {number} high value at the last pixel
 * @param {number} length in pixels
 */
export function pixelsOf(values, low, high, length) {
  return values.map((value) => ((value - low) / (high - low)) * length);
}

/**
 * The dot under the pointer, of those that pass if there are any; -1: none.
 * @param {Float32Array} across pixels of each photo, NaN where it has no dot
 * @param {Float32Array} up
 * @param {Uint8Array | null} passes null: all
 * @param {number} x @param {number} y
 */
export function nearestDot(across, up, passes, x, y) {
  let [best, least] = [-1, REACH * REACH];
  for (let row = 0; row < across.length; row++) {
    if (passes && !passes[row]) continue;
    const distance = (across[row] - x) ** 2 + (up[row] - y) ** 2;
    if (distance <= least) [best, least] = [row, distance];
  }
  return best;
}

/** What is said of a dot. @param {[string, string]} axes @param {[number, number]} numbers @param {string} kind */
export function dotWords([across, up], [x, y], kind) {
  return `${columnWords(across)} ${short(x)}, ${columnWords(up)} ${short(y)}; ${kind}`;
}

/**
 * Paints every dot: those that do not pass first and nearly clear.
 * @param {HTMLCanvasElement} canvas
 * @param {{across: Float32Array, up: Float32Array, rows: number[][], passes: Uint8Array | null}} dots rows of each kind
 * @param {{colours: string[], width: number, height: number}} figure in pixels of the page
 */
export function paintDots(canvas, { across, up, rows, passes }, { colours, width, height }) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  if (!context) return;
  const layers = passes ? [0, 1] : [1];
  for (const passing of layers) {
    context.globalAlpha = passing ? SHOWN : FADED;
    rows.forEach((ofKind, kind) => {
      const stamp = stampOf(kind, colours[kind], scale);
      const half = stamp.width / 2;
      for (const row of ofKind)
        if (!passes || passes[row] === passing)
          context.drawImage(
            stamp,
            Math.round(across[row] * scale - half),
            Math.round(up[row] * scale - half),
          );
    });
  }
}

/** One dot, to be copied: a disc, or a diamond where the answer was wrong. */
function stampOf(/** @type {number} */ kind, /** @type {string} */ colour, /** @type {number} */ scale) {
  const radius = RADIUS * scale;
  const stamp = document.createElement('canvas');
  stamp.width = stamp.height = 2 * Math.ceil(radius) + 2;
  const context = /** @type {CanvasRenderingContext2D} */ (stamp.getContext('2d'));
  const middle = stamp.width / 2;
  context.fillStyle = colour;
  context.beginPath();
  if (KINDS[kind] === 'wrong') {
    const reach = 1.25 * radius;
    context.moveTo(middle - reach, middle);
    context.lineTo(middle, middle - reach);
    context.lineTo(middle + reach, middle);
    context.lineTo(middle, middle + reach);
  } else context.arc(middle, middle, radius, 0, 2 * Math.PI);
  context.fill();
  return stamp;
}

/**
 * @typedef {{x: number[], y: number[]}} Line
 * @typedef {{range?: Line, lassoPoints?: Line} | undefined} Brushed
 * @typedef {{range: [number, number], _offset: number, _length: number}} Axis as plotly laid it out, in pixels of the page
 * @typedef {{data: {marker: {color: string}}[], _fullLayout: {xaxis: Axis, yaxis: Axis, height?: number}, layout: {xaxis:
 *   {title?: {text?: string}}, yaxis: {title?: {text?: string}}}, on: (event: string, listener: (told: any)
 *   => void) => void}} GraphParts
 * @typedef {HTMLElement & GraphParts} Graph
 * @typedef {{relayout: (graph: Graph, change: Record<string, unknown>) => Promise<unknown>}} PlotlyParts
 */

/** Dragging draws a rectangle or a line around dots. */
const MODES = { select: 'select', lasso: 'lasso', off: false };
const STILL = 4; // pixels that a pointer may move between down and up and still point at a dot

export class Dots {
  /** @type {Graph | null} */ graph = null;
  canvas = make('canvas', 'vv-survey-canvas');
  says = make('div', 'vv-survey-dot-words');
  /** @type {HTMLElement | null} what the figure stands beside, where there is room */ beside = null;
  /** @type {Float32Array | null} */ points = null;
  /** @type {number[][]} rows of the photos of each kind */ rows = [[], [], []];
  /** @type {Uint8Array | null} null: every photo passes */ passes = null;
  /** @type {[string, string]} */ axes = ['', ''];
  /** Where each photo's dot is, in pixels of the plot's area. */
  places = [new Float32Array(), new Float32Array()];
  /** @type {keyof typeof MODES} */ mode = matchMedia('(pointer: coarse)').matches ? 'off' : 'select';

  /**
   * @param {string} holder id of the element with the figure
   * @param {{brush: (filter: string) => void, pick: (row: number) => void}} tell
   */
  constructor(holder, tell) {
    this.holder = holder;
    this.tell = tell;
    this.says.hidden = true;
    new MutationObserver(() => this.find()).observe(document.body, { childList: true, subtree: true });
    this.find();
  }

  /** @returns {PlotlyParts | undefined} */
  get plotly() {
    return /** @type {any} */ (window).Plotly;
  }

  /** The figure, once Gradio has drawn it, and again where it has drawn another one. */
  find() {
    const graph = /** @type {Graph | null} */ (
      document.getElementById(this.holder)?.querySelector('.js-plotly-plot') ?? null
    );
    if (!graph?.on || !this.plotly || graph === this.graph) return;
    this.graph = graph;
    graph.on('plotly_selected', (/** @type {Brushed} */ told) => this.brushed(told));
    graph.on('plotly_deselect', () => this.tell.brush(''));
    graph.on('plotly_afterplot', () => this.laidOut());
    graph.addEventListener('pointermove', (event) => this.point(event));
    graph.addEventListener('pointerleave', () => this.point(null));
    graph.addEventListener('pointerdown', (event) => this.press(event), { capture: true });
    this.lay();
  }

  brushed(/** @type {Brushed} */ told) {
    const [across, up] = this.axes;
    if (told?.lassoPoints) this.tell.brush(lassoFilter(across, up, told.lassoPoints));
    else if (told?.range) this.tell.brush(boxFilter(across, up, told.range));
  }

  /** @param {Float32Array} points @param {string} across @param {string} up */
  fill(points, across, up) {
    this.points = points;
    this.axes = [across, up];
    this.rows = traceRows(points);
    this.lay();
  }

  /** Lets only some photos stand out; null: all. */
  select(/** @type {Uint8Array | null} */ passes) {
    this.passes = passes;
    this.paint();
  }

  use(/** @type {keyof typeof MODES} */ mode) {
    this.mode = mode;
    if (this.graph) void this.plotly?.relayout(this.graph, { dragmode: MODES[mode] });
  }

  /** Takes the drawn rectangle or line away. */
  forget() {
    if (this.graph) void this.plotly?.relayout(this.graph, { selections: [] });
  }

  /** Lets plotly draw the axes of these dots. */
  lay() {
    const { graph, points } = this;
    if (!graph || !points) return;
    const count = points.length / 3;
    const [across, up] = this.axes.map(columnWords);
    void this.plotly?.relayout(graph, {
      'xaxis.title.text': across,
      'yaxis.title.text': up,
      'xaxis.range': axisEnds(points.subarray(0, count)),
      'yaxis.range': axisEnds(points.subarray(count, 2 * count)),
      dragmode: MODES[this.mode],
      selections: [],
    });
  }

  /** Lets the figure end where what stands beside it ends. */
  fit() {
    const { graph, beside } = this;
    const now = graph?._fullLayout.height;
    if (!graph || !beside || !now) return;
    const [own, other] = [graph, beside].map((one) => one.getBoundingClientRect());
    const below =
      (document.getElementById(this.holder)?.getBoundingClientRect().bottom ?? own.bottom) - own.bottom;
    const isBeside = own.left >= other.right && other.height > 0;
    const height = isBeside ? Math.max(LEAST, Math.round(other.bottom - own.top - below)) : ALONE;
    if (Math.abs(height - now) > 1) void this.plotly?.relayout(graph, { height });
  }

  /** Plotly has drawn: the dots have their places. Where the theme changes, Gradio lays the figure out anew, without our axes. */
  laidOut() {
    const { graph, points } = this;
    if (!graph || !points) return;
    const { xaxis, yaxis } = graph._fullLayout;
    if (graph.layout.xaxis.title?.text !== columnWords(this.axes[0])) {
      this.lay();
      return;
    }
    this.fit();
    const count = points.length / 3;
    const [[left, right], [bottom, top]] = [xaxis.range, yaxis.range];
    this.places = [
      pixelsOf(points.subarray(0, count), left, right, xaxis._length),
      pixelsOf(points.subarray(count, 2 * count), top, bottom, yaxis._length),
    ];
    const plot = graph.querySelector('.gl-container');
    if (plot && this.canvas.parentElement !== plot) plot.append(this.canvas, this.says);
    this.canvas.style.left = `${xaxis._offset}px`;
    this.canvas.style.top = `${yaxis._offset}px`;
    this.canvas.style.width = `${xaxis._length}px`;
    this.canvas.style.height = `${yaxis._length}px`;
    this.paint();
  }

  paint() {
    const { graph, places, rows, passes } = this;
    if (!graph || !this.canvas.isConnected) return;
    const { xaxis, yaxis } = graph._fullLayout;
    const [across, up] = places;
    const figure = {
      colours: graph.data.map(({ marker }) => marker.color),
      width: xaxis._length,
      height: yaxis._length,
    };
    paintDots(this.canvas, { across, up, rows, passes }, figure);
    this.canvas.dataset.dots = String(rows.flat().length);
    const isShown = (/** @type {number} */ row) => !passes || passes[row] === 1;
    this.canvas.dataset.shown = String(rows.flat().filter(isShown).length);
  }

  /** The photo whose dot is under the pointer, or -1. */
  rowAt(/** @type {PointerEvent} */ event) {
    const box = this.canvas.getBoundingClientRect();
    const [across, up] = this.places;
    return nearestDot(across, up, this.passes, event.clientX - box.left, event.clientY - box.top);
  }

  /** Says the numbers of the dot under the pointer. */
  point(/** @type {PointerEvent | null} */ event) {
    const { points } = this;
    const row = event && points ? this.rowAt(event) : -1;
    this.says.hidden = row < 0;
    if (row < 0 || !points) return;
    const count = points.length / 3;
    const kind = this.rows.findIndex((ofKind) => ofKind.includes(row));
    this.says.textContent = dotWords(this.axes, [points[row], points[count + row]], KINDS[kind]);
    const [x, y] = this.places.map((places) => places[row]);
    const isRight = x > this.canvas.clientWidth / 2; // beside the dot, where there is room
    this.says.style.translate = isRight ? '-100% -50%' : '0 -50%';
    this.says.style.left = `${this.canvas.offsetLeft + x + (isRight ? -10 : 10)}px`;
    this.says.style.top = `${this.canvas.offsetTop + y}px`;
  }

  /** A press without a drag chooses the dot under it. */
  press(/** @type {PointerEvent} */ down) {
    const row = this.rowAt(down);
    if (row < 0) return;
    const release = (/** @type {PointerEvent} */ up) => {
      const moved = Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY);
      if (moved < STILL) this.tell.pick(row);
    };
    window.addEventListener('pointerup', release, { once: true, capture: true });
  }
}
