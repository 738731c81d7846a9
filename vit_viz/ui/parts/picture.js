// A picture with its caption, colour bar and rings around the pinned patches. The picture comes from the server by its address;
// a click says where in the ORIGINAL photo it was ('pick'), arrow keys move the query ('step').
const find = (name) => element.querySelector('.vv-' + name);
const root = (window.gradio_config && window.gradio_config.root) || '';
let shown = -1;

function text(name, words) {
  const node = find(name);
  node.textContent = words || '';
  node.hidden = !words;
}

function ring(rect, area) {
  const [top, left, bottom, right] = rect;
  const node = document.createElement('span');
  node.className = 'vv-ring';
  const down = area[2] - area[0];
  const across = area[3] - area[1];
  node.style.top = (100 * (top - area[0])) / down + '%';
  node.style.left = (100 * (left - area[1])) / across + '%';
  node.style.height = (100 * (bottom - top)) / down + '%';
  node.style.width = (100 * (right - left)) / across + '%';
  return node;
}

function bar(scale) {
  find('bar').hidden = !scale;
  if (!scale) return;
  find('low').textContent = scale.low;
  find('high').textContent = scale.high;
  find('unit').textContent = scale.unit;
  find('strip').style.background = 'linear-gradient(to right, ' + scale.stops.join(', ') + ')';
}

function fail(words) {
  find('image').hidden = true;
  find('rings').replaceChildren();
  bar(null);
  text('caption', '');
  find('save').hidden = true;
  text('empty', words);
  element.classList.remove('vv-busy');
}

function show(value) {
  if (!value || value.turn < shown) return; // an answer to an older question
  shown = value.turn;
  if (value.busy) return element.classList.add('vv-busy');
  if (value.error) return fail(value.error);
  const image = find('image');
  const stage = find('stage');
  const turn = value.turn;
  image.onload = () => {
    if (turn !== shown) return;
    element.classList.remove('vv-busy');
    find('rings').replaceChildren(...(value.rings || []).map((rect) => ring(rect, value.area)));
  };
  image.onerror = () => turn === shown && fail('This picture could not be fetched; please reload the page.');
  element.classList.add('vv-busy');
  image.hidden = false;
  const ratio = value.area ? (value.area[3] - value.area[1]) / (value.area[2] - value.area[0]) : 0;
  image.style.aspectRatio = ratio ? String(ratio) : '';
  stage.style.width = ratio ? 'min(100%, calc(' + ratio + ' * var(--vv-tallest)))' : '100%';
  if (image.getAttribute('src') === root + value.src) image.onload();
  else image.setAttribute('src', root + value.src);
  image.alt = value.alt;
  stage.setAttribute('role', value.pick ? 'application' : 'img');
  stage.setAttribute('aria-label', value.alt + (value.pick ? ' Arrow keys move the query.' : ''));
  stage.classList.toggle('vv-pickable', Boolean(value.pick));
  text('empty', '');
  text('caption', value.caption);
  text('note', value.note);
  bar(value.bar);
  const save = find('save');
  save.hidden = !value.save;
  if (value.save) save.href = root + value.save;
}

// Where the pointer is, in pixels of the original photo.
function place(event) {
  const box = find('image').getBoundingClientRect();
  const [top, left, bottom, right] = props.value.area;
  const down = (event.clientY - box.top) / box.height;
  const across = (event.clientX - box.left) / box.width;
  return { y: top + down * (bottom - top), x: left + across * (right - left) };
}

find('image').addEventListener('click', (event) => {
  if (props.value && props.value.pick) trigger('pick', place(event));
});

// The number under the pointer.
find('image').addEventListener('pointermove', (event) => {
  const cells = props.value && props.value.cells;
  const tip = find('tip');
  tip.hidden = true;
  if (!cells || element.classList.contains('vv-busy')) return;
  const { y, x } = place(event);
  const [top, left, height, width] = cells.region;
  const [rows, cols] = cells.grid;
  const row = Math.floor(((y - top) / height) * rows);
  const col = Math.floor(((x - left) / width) * cols);
  if (row < 0 || col < 0 || row >= rows || col >= cols) return;
  const box = find('stage').getBoundingClientRect();
  const near = event.clientX - box.left > box.width - 230;
  tip.textContent = 'row ' + row + ', column ' + col + ': ' + cells.texts[row * cols + col];
  tip.style.left = near ? '' : event.clientX - box.left + 14 + 'px';
  tip.style.right = near ? box.right - event.clientX + 14 + 'px' : '';
  tip.style.top = Math.max(0, event.clientY - box.top - 30) + 'px';
  tip.hidden = false;
});

find('image').addEventListener('pointerleave', () => (find('tip').hidden = true));

find('stage').addEventListener('keydown', (event) => {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  if (!step || !props.value || !props.value.pick) return;
  event.preventDefault();
  trigger('step', { down: step[0], across: step[1] });
});

watch('value', () => show(props.value));
show(props.value);
