// plotly's figures, wherever they are on the page: as large as a pixel of the page (plots.css), and where their cells are square as
// high as their column is wide; plotly would leave the rest of a fixed height empty.

/**
 * What plotly makes of an element, where its figure says in 'meta' how high its cells are beside their width, and the colour bar above.
 * @typedef {HTMLElement & {layout?: {meta?: {aspect?: number, bar?: number}, margin: {l: number, r: number, t: number, b: number}}}} Graph
 */

/** Fits every figure that is there or comes later. */
export function mount() {
  /** @type {WeakSet<Element>} */
  const watched = new WeakSet();
  const look = () => {
    for (const graph of document.querySelectorAll('.js-plotly-plot')) {
      if (watched.has(graph)) continue;
      watched.add(graph);
      new ResizeObserver(() => fit(/** @type {Graph} */ (graph))).observe(graph);
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}

/** The height of a figure whose cells are square, in pixels; 0 where nothing is known of it. */
export function heightOf(/** @type {Graph['layout']} */ layout, /** @type {number} */ width) {
  const aspect = layout?.meta?.aspect;
  if (!layout || !aspect || !width) return 0;
  const { l, r, t, b } = layout.margin;
  return Math.round(Math.max(60, (width - l - r) * aspect) + t + b + (layout.meta?.bar ?? 0));
}

/** Gives a figure its height, and what lies below it the room that it takes where it is shown larger. */
export function fit(/** @type {Graph} */ graph) {
  const height = heightOf(graph.layout, graph.clientWidth);
  if (height && graph.style.height !== `${height}px`) {
    graph.style.height = `${height}px`;
    const { Plotly } = /** @type {{Plotly?: {Plots: {resize: (graph: Graph) => void}}}} */ (
      /** @type {unknown} */ (window)
    );
    Plotly?.Plots.resize(graph);
  }
  const more = graph.getBoundingClientRect().height - graph.offsetHeight;
  graph.style.marginBottom = `${Math.round(more)}px`;
}
