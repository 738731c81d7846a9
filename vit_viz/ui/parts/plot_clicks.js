// gr.Plot has no click event: find the figure inside the element named by the value, now and after every redraw, and pass on
// which point was clicked ('point').
const heard = new WeakSet();

function listen() {
  const holder = document.getElementById(props.value && props.value.plot);
  const graph = holder && holder.querySelector('.js-plotly-plot');
  if (!graph || !graph.on || heard.has(graph)) return;
  heard.add(graph);
  graph.on('plotly_click', (event) => {
    const point = event.points[0];
    trigger('point', { x: point.x, y: point.y, data: Array.from(point.customdata || []) }); // typed arrays become objects in JSON
  });
}

new MutationObserver(listen).observe(document.body, { childList: true, subtree: true });
listen();
