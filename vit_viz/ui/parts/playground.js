// The photo from which patches are brushed away, and what the model says of the rest. Which patches are gone is known here; the
// server answers 'remove' with the classes. One question is under way at a time; of those that wait, the last one is asked.
const SVG = 'http://www.w3.org/2000/svg';
const root = (window.gradio_config && window.gradio_config.root) || '';
const find = (name) => element.querySelector('.vv-' + name);
let shown = -1;
let key = null;
let order = [];
let gone = new Set();
let erasing = true;
let cursor = null;
let last = null; // patch under the pointer a moment ago, while it is down
let seq = 0;
let answered = 0;
let again = false;
let since = 0;

function put(node, words) {
  node.textContent = words || '';
  node.hidden = !words;
}

function cell(patch) {
  const [rows, cols] = props.value.grid;
  const [top, left, height, width] = props.value.region;
  const node = document.createElementNS(SVG, 'rect');
  node.setAttribute('x', left + (width * (patch % cols)) / cols);
  node.setAttribute('y', top + (height * Math.floor(patch / cols)) / rows);
  node.setAttribute('width', width / cols);
  node.setAttribute('height', height / rows);
  return node;
}

function paint() {
  const marks = [...gone].map((patch) => {
    const node = cell(patch);
    node.setAttribute('class', 'vv-gone');
    return node;
  });
  if (cursor != null) {
    const node = cell(cursor);
    node.setAttribute('class', 'vv-cursor');
    marks.push(node);
  }
  find('play-marks').replaceChildren(...marks);
  const all = props.value.grid[0] * props.value.grid[1];
  find('gone-words').textContent = gone.size ? gone.size + ' of ' + all + ' patches gone' : 'all ' + all + ' patches there';
  find('all').disabled = !gone.size;
}

function ask() {
  if (answered < seq && Date.now() - since < 10000) return void (again = true);
  again = false;
  since = Date.now();
  seq += 1;
  element.classList.add('vv-waiting');
  trigger('remove', { gone: [...gone].join(','), seq, key });
}

function changed() {
  paint();
  ask();
}

function patchAt(event) {
  const box = find('play-image').getBoundingClientRect();
  const [height, width] = props.value.photo_size;
  const y = ((event.clientY - box.top) / box.height) * height;
  const x = ((event.clientX - box.left) / box.width) * width;
  const [rows, cols] = props.value.grid;
  const [top, left, tall, wide] = props.value.region;
  const row = Math.floor(((y - top) / tall) * rows);
  const col = Math.floor(((x - left) / wide) * cols);
  return row >= 0 && row < rows && col >= 0 && col < cols ? [row, col] : null;
}

// every patch on the straight way from the last one, so that a fast stroke leaves no gaps; it is three patches wide on fine grids
function brush(from, to) {
  const [rows, cols] = props.value.grid;
  const steps = Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]), 1);
  const wide = Math.max(rows, cols) >= 24 ? 1 : 0;
  const before = gone.size;
  for (let i = 0; i <= steps; i += 1) {
    const row = Math.round(from[0] + ((to[0] - from[0]) * i) / steps);
    const col = Math.round(from[1] + ((to[1] - from[1]) * i) / steps);
    for (let r = Math.max(0, row - wide); r <= Math.min(rows - 1, row + wide); r += 1) {
      for (let c = Math.max(0, col - wide); c <= Math.min(cols - 1, col + wide); c += 1) {
        if (erasing) gone.add(r * cols + c);
        else gone.delete(r * cols + c);
      }
    }
  }
  if (gone.size === before) return;
  find('most').value = '0';
  changed();
}

function classLine(entry) {
  const line = document.createElement('li');
  line.style.setProperty('--share', 100 * Math.max(0, entry.now) + '%');
  const name = document.createElement('span');
  name.className = 'vv-class';
  name.textContent = name.title = entry.name;
  const number = document.createElement('span');
  number.className = 'vv-number';
  number.textContent = entry.before.toFixed(2) + ' → ' + entry.now.toFixed(2);
  line.append(name, number);
  return line;
}

function show() {
  const value = props.value;
  if (!value || value.turn == null || value.turn < shown) return;
  shown = value.turn;
  find('play-left').hidden = Boolean(value.error);
  put(find('play-error'), value.error);
  if (value.error || !value.grid) return;
  const [height, width] = value.photo_size;
  find('play-marks').setAttribute('viewBox', '0 0 ' + width + ' ' + height);
  const source = root + value.photo;
  if (find('play-image').getAttribute('src') !== source) find('play-image').setAttribute('src', source);
  find('play-image').alt = value.alt;
  find('play-image').style.aspectRatio = String(width / height);
  find('play-stage').style.width = 'min(100%, calc(' + width / height + ' * 56vh))';
  order = value.order ? value.order.split(',').map(Number) : [];
  find('slider-words').textContent = value.slider;
  find('most').max = String(Math.max(0, order.length - 1));
  if (value.key !== key) {
    key = value.key;
    gone = new Set();
    cursor = null;
    find('most').value = '0';
    ask();
  } else if (Number(find('most').value) > 0) most();
  paint();
}

function answer() {
  const news = props.answer;
  if (!news || news.key !== key || news.seq < answered) return;
  answered = news.seq;
  if (again) ask();
  else element.classList.remove('vv-waiting');
  put(find('play-error'), news.error);
  if (news.error) return;
  find('play-words').textContent = news.words;
  find('play-top').replaceChildren(...news.top.map(classLine));
}

function most() {
  gone = new Set(order.slice(0, Number(find('most').value)));
  changed();
}

const stage = find('play-stage');
const marks = find('play-marks');
marks.addEventListener('pointerdown', (event) => {
  const patch = patchAt(event);
  if (!patch || event.button) return;
  marks.setPointerCapture(event.pointerId);
  event.preventDefault();
  stage.focus({ preventScroll: true });
  cursor = null;
  brush(patch, patch);
  last = patch;
});
marks.addEventListener('pointermove', (event) => {
  if (!last) return;
  const patch = patchAt(event);
  if (!patch || (patch[0] === last[0] && patch[1] === last[1])) return;
  brush(last, patch);
  last = patch;
});
for (const name of ['pointerup', 'pointercancel']) marks.addEventListener(name, () => (last = null));

stage.addEventListener('keydown', (event) => {
  if (!props.value || !props.value.grid) return;
  const [rows, cols] = props.value.grid;
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const move = moves[event.key];
  if (!move && event.key !== ' ') return;
  event.preventDefault();
  if (cursor == null) cursor = Math.floor(rows / 2) * cols + Math.floor(cols / 2);
  else if (move) {
    const row = Math.min(rows - 1, Math.max(0, Math.floor(cursor / cols) + move[0]));
    cursor = row * cols + Math.min(cols - 1, Math.max(0, (cursor % cols) + move[1]));
  }
  if (event.key !== ' ') return paint();
  if (gone.has(cursor)) gone.delete(cursor);
  else gone.add(cursor);
  changed();
});
stage.addEventListener('blur', () => {
  cursor = null;
  if (props.value && props.value.grid) paint();
});

function choose(erase) {
  erasing = erase;
  find('erase').setAttribute('aria-pressed', String(erase));
  find('restore').setAttribute('aria-pressed', String(!erase));
}

find('erase').addEventListener('click', () => choose(true));
find('restore').addEventListener('click', () => choose(false));
find('all').addEventListener('click', () => {
  gone = new Set();
  find('most').value = '0';
  changed();
});
find('most').addEventListener('input', most);
watch('value', show);
watch('answer', answer);
show();
