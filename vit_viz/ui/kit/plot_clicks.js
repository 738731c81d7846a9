// gr.Plot has no click event: find the figure inside the element named by the value, now and after every redraw, and pass on
// which point was clicked ('point').

/**
 * What plotly makes of an element.
 * @typedef {object} Graph
 * @property {(event: string, listener: (event: {points: Point[]}) => void) => void} [on]
 *
 * @typedef {{x: unknown, y: unknown, customdata?: ArrayLike<unknown>}} Point
 */

/** @type {import('./elements.js').Mount<{value: {plot: string} | null}>} */
export function mount(_element, trigger, props) {
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
