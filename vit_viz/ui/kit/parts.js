// The small components of the page: what opens a part of it, saves a figure, hears of clicks on a plot, and fits plots to their place.

import { askForFigure } from '../../explorer/source.js';
import { finder, opens } from './elements.js';

/**
 * @typedef {object} Opener
 * @property {string} words what stands on the button
 * @property {string} label what it opens, for those who do not see it
 * @property {string} panel id of what it opens
 */

/** @type {import('./elements.js').Mount<{value: Opener | null}>} */
export function mountOpener(element, _trigger, props, watch) {
  const button = finder(element)('opener');
  const panel = () => document.getElementById(props.value?.panel ?? '');
  const close = opens(button, panel, (shown, isOpen) => shown.classList.toggle('vv-opened', isOpen));
  const draw = () => {
    button.textContent = props.value?.words ?? '';
    button.setAttribute('aria-label', props.value?.label ?? '');
    button.title = props.value?.label ?? '';
    button.setAttribute('aria-controls', props.value?.panel ?? '');
  };
  watch('value', () => {
    draw();
    close();
  });
  draw();
}

/** @type {import('./elements.js').Mount<{value: string | null}>} */
export function mountFigureButton(element, _trigger, props, watch) {
  const button = finder(element)('figure-button');
  const draw = () => (button.hidden = !props.value);
  button.addEventListener('click', () => askForFigure(element, props.value ?? ''));
  watch('value', draw);
  draw();
}

/**
 * What plotly makes of an element.
 * @typedef {{on?: (event: string, listener: (event: {points: Point[]}) => void) => void}} Graph
 *
 * @typedef {{x: unknown, y: unknown, customdata?: ArrayLike<unknown>}} Point
 */

/** @type {import('./elements.js').Mount<{value: {plot: string} | null}>} */
export function mountPlotClicks(_element, trigger, props) {
  /** @type {WeakSet<Graph>} */
  const listening = new WeakSet();
  const listen = () => {
    const holder = document.getElementById(props.value?.plot ?? '');
    const graph = /** @type {Graph | null | undefined} */ (holder?.querySelector('.js-plotly-plot'));
    if (!graph?.on || listening.has(graph)) return;
    listening.add(graph);
    graph.on(
      'plotly_click',
      ({ points: [{ x, y, customdata }] }) => trigger('point', { x, y, data: Array.from(customdata ?? []) }), // typed arrays become objects in JSON
    );
  };
  new MutationObserver(listen).observe(document.body, { childList: true, subtree: true });
  listen();
}

/**
 * What plotly makes of an element, where its figure says in 'meta' how high its cells are beside their width, and the colour bar above.
 * @typedef {HTMLElement & {layout?: {meta?: {aspect?: number, bar?: number}, margin: {l: number, r: number, t: number, b: number}}}} Figure
 */

/** Fits every figure that is there or comes later. */
export function mountPlots() {
  /** @type {WeakSet<Element>} */
  const watched = new WeakSet();
  const look = () => {
    for (const graph of document.querySelectorAll('.js-plotly-plot')) {
      if (watched.has(graph)) continue;
      watched.add(graph);
      new ResizeObserver(() => fit(/** @type {Figure} */ (graph))).observe(graph);
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}

/** The height of a figure whose cells are square, in pixels; 0 where nothing is known of it. */
export function heightOf(/** @type {Figure['layout']} */ layout, /** @type {number} */ width) {
  const aspect = layout?.meta?.aspect;
  if (!layout || !aspect || !width) return 0;
  const { l, r, t, b } = layout.margin;
  return Math.round(Math.max(60, (width - l - r) * aspect) + t + b + (layout.meta?.bar ?? 0));
}

/** Gives a figure its height, and what lies below it the room that it takes where it is shown larger. */
export function fit(/** @type {Figure} */ graph) {
  const height = heightOf(graph.layout, graph.clientWidth);
  if (height && graph.style.height !== `${height}px`) {
    graph.style.height = `${height}px`;
    const { Plotly } = /** @type {{Plotly?: {Plots: {resize: (graph: Figure) => void}}}} */ (
      /** @type {unknown} */ (window)
    );
    Plotly?.Plots.resize(graph);
  }
  const more = graph.getBoundingClientRect().height - graph.offsetHeight;
  graph.style.marginBottom = `${Math.round(more)}px`;
}
