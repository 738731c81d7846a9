// The photos by two of their numbers. Axes, legend and brush are one of plotly's figures (vit_viz/figures/plots.py lays it out). The dots are painted on a canvas of our own over it: plotly takes most of a second for ten thousand without
// a graphics card.

import { extent } from '../../explorer/attention.js';
import { pointerIn } from '../../explorer/geometry.js';
import { bytesOf } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { make } from '../../ui/kit/elements.js';
import { short } from '../../ui/kit/numbers.js';
import { Problem, Toggle } from '../kit/parts.js';
import { html, render, useLayoutEffect, useMemo, useRef, useSignal, useState } from '../kit/preact.js';
import { Chooser } from './controls.js';
import { placeWords } from './place.js';
import { brushFilter, columnWords, many } from './words.js';
/** @import { Signal } from '../kit/preact.js' */
/** @import { Chosen, State } from './state.js' */
/** @import { Brush } from './words.js' */

const SHOWN = 0.85; // how opaque a dot is whose photo passes
const FADED = 0.06; // and one whose photo does not
const RADIUS = 3; // in pixels
const REACH = 8; // how far from the pointer a dot may be, in pixels
const STILL = 4; // pixels that a pointer may move between down and up and still point at a dot
const UNREACHED = 'The axes could not be fetched; please open the page again.';
const ROOM = 0.04; // around the outermost dots, as a share of the axis

/**
 * @typedef {'select' | 'lasso' | 'off'} Mode what dragging draws
 * @typedef {{name: string, marker: {color: string, symbol: string}}} Kind of dots, as the legend has it: right, wrong, no label
 * @typedef {{x: number[], y: number[]}} Line
 * @typedef {{range?: Line, lassoPoints?: Line} | undefined} Drawn
 * @typedef {{range: [number, number], _offset: number, _length: number}} Axis as plotly laid it out, in pixels of the figure
 * @typedef {HTMLElement & {data: Kind[], _fullLayout: {xaxis: Axis, yaxis: Axis},
 *   on: (event: string, listener: (told: any) => void) => void}} Graph
 */

/**
 * @returns {{newPlot: (...told: any[]) => Promise<unknown>, relayout: (graph: Graph, change: Record<string, unknown>) =>
 *   Promise<unknown>} | undefined}
 */
const plotly = () => /** @type {any} */ (window).Plotly;

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
 * The dot under the pointer, of those that pass if there are any; -1: none.
 * @param {Float32Array} across pixels of each photo, NaN where it has no dot
 * @param {Float32Array} up
 * @param {Uint8Array | null} passes null: all
 * @param {number[]} place
 */
export function nearestDot(across, up, passes, [x, y]) {
  let [best, least] = [-1, REACH * REACH];
  for (let row = 0; row < across.length; row++) {
    if (passes && !passes[row]) continue;
    const distance = (across[row] - x) ** 2 + (up[row] - y) ** 2;
    if (distance <= least) [best, least] = [row, distance];
  }
  return best;
}

/**
 * Paints every dot: those that do not pass first and nearly clear, each time the wrong ones over the right ones.
 * @param {HTMLCanvasElement} canvas
 * @param {{across: Float32Array, up: Float32Array, rows: number[], kinds: Float32Array}} dots rows in the order of their kinds
 * @param {Uint8Array | null} passes
 * @param {Kind[]} legend
 * @param {number[]} size width and height in pixels of the page
 */
export function paintDots(canvas, { across, up, rows, kinds }, passes, legend, size) {
  const scale = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = size.map((side) => Math.round(side * scale));
  const context = canvas.getContext('2d');
  const stamps = legend.map(({ marker }) => stampOf(marker, RADIUS * scale));
  if (!context) return;
  for (const passing of passes ? [0, 1] : [1]) {
    context.globalAlpha = passing ? SHOWN : FADED;
    for (const row of rows) {
      if (passes && passes[row] !== passing) continue;
      const stamp = stamps[kinds[row]];
      const [x, y] = [across[row], up[row]].map((place) => Math.round(place * scale - stamp.width / 2));
      context.drawImage(stamp, x, y);
    }
  }
}

/** One dot, to be copied: a disc, or a diamond where the answer was wrong. @param {Kind['marker']} marker @param {number} radius */
function stampOf({ color, symbol }, radius) {
  const middle = Math.ceil(radius) + 1;
  const stamp = Object.assign(document.createElement('canvas'), { width: 2 * middle, height: 2 * middle });
  const context = /** @type {CanvasRenderingContext2D} */ (stamp.getContext('2d'));
  context.fillStyle = color;
  context.beginPath();
  const corners = symbol === 'diamond' ? [[-1, 0], [0, -1], [1, 0], [0, 1]] : []; // prettier-ignore
  for (const [x, y] of corners) context.lineTo(middle + 1.25 * radius * x, middle + 1.25 * radius * y);
  if (!corners.length) context.arc(middle, middle, radius, 0, 2 * Math.PI);
  context.fill();
  return stamp;
}

const BRUSHES = Object.entries({ select: 'box', lasso: 'lasso', off: 'nothing' });

/** The section with the axes, what dragging does, and the dots. @param {{state: State}} props */
export function Scatter({ state }) {
  const { survey, store, choice, brush, filter } = state;
  const [mode, setMode] = useState(
    /** @type {Mode} */ (matchMedia('(pointer: coarse)').matches ? 'off' : 'select'),
  );
  const [graph, problem] = useGraph(survey);
  const { typed, corners } = brush.value;
  const choose = (/** @type {string} */ axis, /** @type {string} */ name) => {
    if (corners.length) filter(typed); // which was of the axes before
    store.set({ [axis]: name });
  };
  return html`<section class="vv-survey-axes vv-stack" aria-label="Photos by two numbers">
    <div class="vv-row">
      <h3 class="vv-title">Every photo by two numbers</h3>
      ${
        /** @type {const} */ (['across', 'up']).map(
          (axis) =>
            html`<${Chooser}
              ...${{ words: axis, look: axis, value: choice.value?.[axis] }}
              options=${survey.numbers.map((name) => [name, columnWords(name)])}
              choose=${(/** @type {string} */ name) => choose(axis, name)}
            />`,
        )
      }
    </div>
    <div class="vv-row">
      <${Toggle}
        ...${{ name: 'brush', choices: BRUSHES, value: mode, choose: setMode }}
        label="What dragging over the dots does"
      />
      ${
        corners.length > 0 &&
        html`<button type="button" class="vv-button vv-plain" onClick=${() => filter(typed)}>
          Forget the brush
        </button>`
      }
      <span class="vv-small">Dragging writes the filter; from the keyboard, write it below.</span>
    </div>
    <${Problem} words=${problem} />
    <${Place} state=${state} />
    <${Dots} ...${{ state, mode, graph }} />
  </section>`;
}

/** The numbers of the open photo, on the axes that are shown; null while they are not there. @param {State} state @returns {number[] | null} */
function mineOf({ choice: { value: choice }, mine: { value: mine }, points: { value: points } }) {
  const axes = (/** @type {any} */ of) => `${of?.across} ${of?.up}`;
  return mine.state === 'done' && points && axes(choice) === axes(points.of) ? mine.value : null;
}

/** Where the open photo lies among the surveyed ones, in words. @param {{state: State}} props */
function Place({ state }) {
  const { beside, mine, points } = state;
  const numbers = mineOf(state);
  const { read } = beside.value.value?.value ?? {};
  const { of, value } = points.value ?? {};
  const said =
    read === null
      ? 'The open photo has no place among them: they went through another model.'
      : numbers
        ? placeWords([of.across, of.up], numbers, axesOf(value))
        : (mine.value.error ?? '');
  return html`<p class="vv-survey-place vv-number" role="status">${said}</p>`;
}

/**
 * The figure, once plotly is there and has drawn it.
 * @param {State['survey']} survey
 * @returns {[Graph | null, string]} and why there is none
 */
function useGraph({ figure, plotly: version }) {
  const [graph, setGraph] = useState(/** @type {Graph | null} */ (null));
  const [problem, setProblem] = useState('');
  useLayoutEffect(() => {
    const node = make('div');
    document.querySelector('#vv-survey-dots')?.append(node);
    const draw = async () => {
      await plotly()?.newPlot(node, figure.data, figure.layout, { displaylogo: false });
      setGraph(/** @type {any} */ (node));
    };
    if (plotly()) void draw();
    else {
      const script = make('script');
      script.src = routeUrl(`/vit_viz/survey/plotly.js?of=${version}`);
      script.addEventListener('load', draw);
      script.addEventListener('error', () => setProblem(UNREACHED));
      document.head.append(script);
    }
    return () => node.remove();
  }, []);
  return [graph, problem];
}

/** What plotly is told, what it tells, and the dots over its figure. @param {{state: State, mode: Mode, graph: Graph | null}} props */
function Dots({ state, mode, graph }) {
  const { survey, chosen, points: answer, brush, filter, pick } = state;
  const area = useMemo(() => make('div', 'vv-survey-area'), []);
  const [room, setRoom] = useState(''); // width and height of the figure
  const mine = mineOf(state);
  const [plot, setPlot] = useState([0, 0, 1, 1, 0, 1, 0, 1]); // left, top, width, height; the ends of the axes
  const pointed = useSignal(-1);
  const { of, value: points } = answer.value ?? {};
  const size = plot.slice(2, 4);
  const dots = useMemo(() => dotsOf(points ?? new Float32Array(), plot), [points, plot]);
  const passes = useMemo(() => passedIn(chosen.value?.value, survey.photos), [chosen.value]);
  /** @type {[string, string]} */
  const names = [of?.across ?? '', of?.up ?? ''];
  const words = names.map(columnWords);

  const nearest = (/** @type {PointerEvent} */ event) => {
    const [down, right] = pointerIn(event, area);
    return nearestDot(dots.across, dots.up, passes, [right * size[0], down * size[1]]);
  };
  const { typed, corners } = brush.value;
  const hear = {
    plotly_selected(/** @type {Drawn} */ told) {
      const line = told?.lassoPoints ?? told?.range;
      const drawn = line?.x.map((x, at) => /** @type {[number, number]} */ ([x, line.y[at]]));
      if (drawn) filter(typed, brushFilter(told?.lassoPoints ? 'lasso' : 'select', names, drawn));
    },
    plotly_deselect: () => corners.length && filter(typed),
    /** Plotly has drawn: the dots have their places. */
    plotly_afterplot() {
      if (!graph || !points) return;
      const { xaxis, yaxis } = graph._fullLayout;
      const place = [xaxis._offset, yaxis._offset, xaxis._length, yaxis._length];
      const now = [...place, ...xaxis.range, ...yaxis.range];
      setPlot((before) => (before.join() === now.join() ? before : now));
      const over = graph.querySelector('.gl-container');
      if (area.parentElement !== over) over?.append(area);
    },
    pointermove: (/** @type {PointerEvent} */ event) => (pointed.value = nearest(event)),
    pointerleave: () => (pointed.value = -1),
    /** A press without a drag chooses the dot under it. */
    pointerdown(/** @type {PointerEvent} */ down) {
      const row = nearest(down);
      const release = (/** @type {PointerEvent} */ up) => {
        if (Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY) < STILL) pick(row);
      };
      if (row >= 0) window.addEventListener('pointerup', release, { once: true, capture: true });
    },
  };
  const hearing = useRef(/** @type {Record<string, (told: any) => void>} */ (hear));
  hearing.current = hear;
  useLayoutEffect(() => {
    for (const name of graph ? Object.keys(hear) : []) {
      const listener = (/** @type {any} */ told) => hearing.current[name](told);
      if (name.startsWith('plotly')) graph?.on(name, listener);
      else graph?.addEventListener(name, listener, { capture: name === 'pointerdown' }); // which plotly keeps to itself
    }
  }, [graph]);

  const known = useRef(/** @type {Record<string, string>} */ ({})); // what plotly was told: it lays everything out anew for each word
  useLayoutEffect(() => {
    if (!graph || !points) return;
    const [x, y] = axesOf(points);
    const [width, height] = room ? room.split(' ').map(Number) : [];
    const now = Object.entries({
      ...{ 'xaxis.title.text': words[0], 'xaxis.range': axisEnds(x) },
      ...{ 'yaxis.title.text': words[1], 'yaxis.range': axisEnds(y) },
      ...{ dragmode: mode !== 'off' && mode, selections: selectionsOf(brush.value, names) },
      ...(room && { width, height }),
    });
    const changed = now.filter(([name, value]) => known.current[name] !== JSON.stringify(value));
    known.current = Object.fromEntries(now.map(([name, value]) => [name, JSON.stringify(value)]));
    if (changed.length) void plotly()?.relayout(graph, Object.fromEntries(changed));
  }, [graph, answer.value, mode, room, brush.value]);
  useLayoutEffect(() => {
    const holder = graph?.closest('#vv-survey-dots');
    if (!graph || !holder) return;
    const fit = new ResizeObserver(([{ contentRect }]) => {
      const scale = graph.getBoundingClientRect().width / graph.offsetWidth; // of large screens
      const sides = [contentRect.width, contentRect.height].map((side) => Math.floor(side / scale));
      if (sides[1] > 0) setRoom(sides.join(' ')); // none while the tab is not seen
    });
    fit.observe(holder);
    return () => fit.disconnect();
  }, [graph]);

  useLayoutEffect(() => {
    ['left', 'top', 'width', 'height'].forEach((side, at) => area.style.setProperty(side, `${plot[at]}px`));
    const legend = graph?.data;
    if (legend && points)
      render(
        html`<${Painted}
          ...${{ dots, passes, legend, size, words, pointed, mine: mine && onPlot(mine, plot) }}
        />`,
        area,
      );
  });
  return null;
}

/** A brush as plotly draws it, where it is of the axes that are shown. @param {Brush} brush @param {string[]} names of those */
function selectionsOf({ mode, axes, corners }, names) {
  if (!corners.length || axes.join() !== names.join()) return [];
  const [[x0, y0], , [x1, y1]] = corners;
  if (mode === 'select') return [{ type: 'rect', x0, y0, x1, y1 }];
  return [{ type: 'path', path: `M${corners.map((corner) => corner.join()).join('L')}Z` }];
}

/**
 * The dots, and what is said of the one under the pointer.
 * @param {{dots: ReturnType<typeof dotsOf>, passes: Uint8Array | null, legend: Kind[], size: number[], words: string[], pointed:
 *   Signal<number>, mine: number[] | null}} props mine: where the open photo is
 */
function Painted({ dots, passes, legend, size, words, pointed, mine }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useLayoutEffect(() => {
    paintDots(/** @type {HTMLCanvasElement} */ (canvas.current), dots, passes, legend, size);
  }, [dots, passes]);
  const isShown = (/** @type {number} */ row) => !passes || passes[row];
  const place = mine ?? [];
  const edge = place.map((at, axis) => Math.min(Math.max(at, 0), size[axis]));
  const [right, down] = place.map((at, axis) => at - edge[axis]); // how far beyond the axes
  return html`<canvas
      ref=${canvas}
      role="img"
      aria-label=${`${words.join(' and ')} of ${many(dots.rows.length)} photos`}
      data-dots=${dots.rows.length}
      data-shown=${dots.rows.filter(isShown).length}
    ></canvas>
    ${
      mine?.every(Number.isFinite) &&
      html`<span
        class=${`vv-survey-mine ${right || down ? 'vv-beyond' : ''}`}
        style=${{ left: `${edge[0]}px`, top: `${edge[1]}px`, rotate: `${Math.atan2(down, right)}rad` }}
      ></span>`
    }
    <${Pointed} ...${{ pointed, words, dots, legend, size }} />`;
}

/** Across, up and right of each photo. @param {Float32Array} points */
function axesOf(points) {
  const count = points.length / 3;
  return [0, 1, 2].map((at) => points.subarray(at * count, (at + 1) * count));
}

/** A place among the dots, in pixels of the plot. @param {number[]} place on its axes @param {number[]} plot as `dotsOf` has it */
const onPlot = ([across, up], [, , width, height, left, right, low, high]) => [
  ((across - left) / (right - left)) * width,
  ((high - up) / (high - low)) * height,
];

/**
 * Where the dots are, in pixels of the plot.
 * @param {Float32Array} points [3, photos]: across, up, and 1 for right, 0 for wrong; NaN where it is not known
 * @param {number[]} plot its place and the ends of its axes
 */
export function dotsOf(points, [, , width, height, left, right, low, high]) {
  const [x, y, isRight] = axesOf(points);
  const kinds = isRight.map((one) => (one === 1 ? 0 : one === 0 ? 1 : 2)); // of the legend
  const rows = [...x.keys()].filter((row) => !Number.isNaN(x[row] + y[row]));
  return {
    numbers: [x, y],
    kinds,
    rows: rows.sort((one, other) => kinds[one] - kinds[other]),
    across: x.map((value) => ((value - left) / (right - left)) * width),
    up: y.map((value) => ((high - value) / (high - low)) * height),
  };
}

/** The photos that pass, from one bit each; null: all. @param {Chosen | undefined} chosen @param {number} photos */
function passedIn(chosen, photos) {
  if (!chosen || chosen.count === photos) return null;
  const bytes = bytesOf(chosen.bits);
  return Uint8Array.from({ length: photos }, (_, row) => (bytes[row >> 3] >> (row & 7)) & 1);
}

/**
 * The numbers of the dot under the pointer, beside it where there is room.
 * @param {{pointed: Signal<number>, words: string[], size: number[], legend: Kind[], dots: ReturnType<typeof dotsOf>}} props
 */
function Pointed({ pointed, words, size: [width], legend, dots: { across, up, kinds, numbers } }) {
  const row = pointed.value;
  if (row < 0) return null;
  const isRight = across[row] > width / 2;
  const style = {
    translate: isRight ? '-100% -50%' : '0 -50%',
    left: `${across[row] + (isRight ? -10 : 10)}px`,
    top: `${up[row]}px`,
  };
  const said = words.map((name, axis) => `${name} ${short(numbers[axis][row])}`).join(', ');
  return html`<div class="vv-survey-dot-words" style=${style}>${said}; ${legend[kinds[row]].name}</div>`;
}
