// The maps of all methods side by side. The base ('value') has a card per method; the prop 'slow_<n>' follows the n-th slow method
// and 'trust' the test of all maps. Each says in 'key' what it is about; what is about something else is not shown.
const root = (window.gradio_config && window.gradio_config.root) || '';
const find = (name) => element.querySelector('.vv-' + name);
const SLOW = ['slow_0', 'slow_1', 'slow_2', 'slow_3'];
const rulers = [...element.querySelectorAll('[data-ruler]')];
let shown = -1;
let key = '';
let base = {}; // method -> card
let made = {}; // slow method -> what is known of it
let trust = {}; // method -> trust
let test = null; // the state of the test
let asked = ''; // key of a test that was just asked for
const nodes = {};

function make(tag, name, words) {
  const node = document.createElement(tag);
  node.className = name;
  if (words) node.textContent = words;
  if (tag === 'button') node.type = 'button';
  return node;
}

function put(node, words) {
  node.textContent = words || '';
  node.hidden = !words;
}

function build(name) {
  const card = make('article', 'vv-card');
  const part = {};
  const title = make('h4', 'vv-card-title');
  part.title = make('span', 'vv-card-name');
  part.tag = make('span', 'vv-tag');
  title.append(part.title, part.tag);
  part.open = make('button', 'vv-open');
  part.image = make('img', 'vv-card-image');
  part.image.alt = '';
  part.open.append(part.image);
  part.open.addEventListener('click', () => {
    trigger('open', { method: name });
    reach('vv-explain-picture');
  });
  part.image.onload = () => card.classList.remove('vv-busy');
  part.blank = make('div', 'vv-blank');
  part.blankWords = make('p', 'vv-blank-words');
  part.go = make('button', 'vv-go');
  part.progress = make('progress', 'vv-progress');
  part.progress.max = 1;
  part.stop = make('button', 'vv-stop', 'Cancel');
  part.go.addEventListener('click', () => trigger('compute', { method: name, key }));
  part.stop.addEventListener('click', () => trigger('stop', { name }));
  part.blank.append(part.blankWords, part.go, part.progress, part.stop);
  part.bar = make('div', 'vv-bar');
  part.low = make('span', 'vv-low');
  part.strip = make('span', 'vv-strip');
  part.high = make('span', 'vv-high');
  part.bar.append(part.low, part.strip, part.high);
  part.caption = make('p', 'vv-card-caption');
  part.trust = make('div', 'vv-trust');
  part.verdict = make('p', 'vv-verdict');
  part.rulers = make('div', 'vv-rulers');
  part.numbers = make('p', 'vv-trust-numbers');
  part.curves = make('button', 'vv-link', 'Curves');
  part.curves.addEventListener('click', () => {
    trigger('curves', { method: name });
    reach('vv-deletion');
  });
  part.save = make('a', 'vv-save', 'Save PNG');
  part.save.download = '';
  const links = make('p', 'vv-card-links');
  links.append(part.curves, part.save);
  part.links = links;
  part.trust.append(part.verdict, part.rulers, part.numbers);
  card.append(title, part.open, part.blank, part.bar, part.caption, part.trust, links);
  card.dataset.method = name;
  part.card = card;
  return (nodes[name] = part);
}

// bring what was asked for onto the screen, once it is there
function reach(id, tries = 40) {
  const there = document.getElementById(id);
  if (there && there.offsetHeight > 100) there.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
  else if (tries) setTimeout(() => reach(id, tries - 1), 250);
}

// the area of a map on a line from 0 to 1: the band of random orders, their mean, and the map itself
function ruler(words, score) {
  const line = make('div', 'vv-ruler');
  const label = make('span', 'vv-ruler-label', words);
  const track = make('span', 'vv-track');
  const top = Math.max(score.high, score.area, 0.0001) * 1.08;
  const place = (x) => 100 * Math.min(1, Math.max(0, x / top)) + '%';
  const band = make('span', 'vv-band');
  band.style.left = place(score.low);
  band.style.right = 'calc(100% - ' + place(score.high) + ')';
  const mean = make('span', 'vv-mean');
  mean.style.left = place(score.mean);
  const dot = make('span', 'vv-dot' + (score.better ? ' vv-better' : ''));
  dot.style.left = place(score.area);
  track.append(band, mean, dot);
  const number = make('span', 'vv-ruler-number', score.text);
  line.title = score.title;
  line.append(label, track, number);
  return line;
}

function drawTrust(part, name) {
  const known = trust[name];
  part.trust.hidden = !known;
  part.curves.hidden = !known || Boolean(known.error);
  if (!known) return;
  put(part.verdict, known.error || known.verdict);
  part.verdict.title = known.says || '';
  part.verdict.dataset.better = String(Boolean(known.better));
  part.rulers.replaceChildren(...(known.error ? [] : [ruler('deletion', known.deletion), ruler('insertion', known.insertion)]));
  put(part.numbers, known.numbers);
}

function drawCard(name) {
  const card = base[name];
  const part = nodes[name] || build(name);
  const slow = made[name] || {};
  const map = card.map || slow.map; // of what is asked for now, or as it was made a moment ago
  const has = Boolean(map);
  part.title.textContent = card.label;
  put(part.tag, card.blind ? 'class-blind' : '');
  part.tag.title = 'This map is the same for every class.';
  part.card.classList.toggle('vv-chosen', Boolean(card.chosen));
  part.open.hidden = part.bar.hidden = part.links.hidden = !has;
  part.blank.hidden = has;
  part.open.setAttribute('aria-label', 'Look closely at ' + card.label);
  part.open.setAttribute('aria-pressed', String(Boolean(card.chosen)));
  if (has) {
    const source = root + card.src;
    if (part.image.getAttribute('src') !== source) {
      part.card.classList.add('vv-busy');
      part.image.setAttribute('src', source);
    }
    part.image.style.aspectRatio = String(card.ratio);
    part.image.alt = map.caption;
    part.low.textContent = map.bar.low;
    part.high.textContent = map.bar.high;
    part.strip.style.background = 'linear-gradient(to right, ' + map.bar.stops.join(', ') + ')';
    part.save.href = root + card.save;
  } else {
    part.blank.style.aspectRatio = String(card.ratio || 1);
    const running = slow.share != null && !slow.error;
    put(part.blankWords, slow.error || (running ? slow.words : card.words));
    put(part.go, card.slow && !running ? 'Compute' : '');
    part.go.setAttribute('aria-label', 'Compute ' + card.label);
    part.progress.hidden = part.stop.hidden = !running;
    part.stop.setAttribute('aria-label', 'Cancel ' + card.label);
    part.progress.value = slow.share || 0;
  }
  put(part.caption, has ? map.caption : '');
  drawTrust(part, name);
  return part.card;
}

function untested() {
  return Object.keys(base).filter((name) => (base[name].map || (made[name] || {}).map) && !trust[name]);
}

function draw() {
  const order = (test && test.order) || [];
  const names = Object.keys(base);
  const sorted = [...order.filter((n) => base[n]), ...names.filter((n) => !order.includes(n))];
  const cards = sorted.map(drawCard);
  const box = find('cards');
  const same = cards.length === box.children.length && cards.every((card, i) => card === box.children[i]);
  if (!same) box.replaceChildren(...cards);
  const running = Boolean(test && test.running);
  const open = untested();
  const any = Object.keys(trust).length > 0;
  find('test').hidden = running || !open.length;
  find('test').disabled = asked === key && !running && !(test && test.error);
  find('test').textContent = any ? 'Test the new maps too' : 'How far can each map be trusted?';
  const said = running ? test.words : any ? 'Sorted by trust, the best first: each map’s area vs the mean of random orders; 95% of those lie in the gray.' : 'Compares each with random orders of patches, on this photo.';
  element.querySelector('[data-job=trust] .vv-job-words').textContent = (test && test.error) || said;
  const progress = element.querySelector('[data-job=trust] .vv-progress');
  progress.hidden = element.querySelector('[data-job=trust] .vv-stop').hidden = !running;
  progress.value = running ? test.share : 0;
}

function show() {
  const value = props.value;
  if (!value || value.turn == null || value.turn < shown) return;
  shown = value.turn;
  if (value.busy) return element.classList.add('vv-busy');
  element.classList.remove('vv-busy');
  find('gallery-wait').hidden = true;
  put(find('gallery-error'), value.error);
  find('cards').hidden = find('gallery-head').hidden = Boolean(value.error);
  if (value.error || !value.cards) return;
  if (value.key !== key) {
    made = {};
    trust = {};
    test = null;
    asked = '';
    key = value.key;
  }
  base = Object.fromEntries(value.cards.map((card) => [card.name, card]));
  for (const name of Object.keys(trust)) if (base[name] && trust[name].options !== base[name].options) delete trust[name];
  draw();
  for (const chip of rulers) chip.setAttribute('aria-pressed', String(chip.dataset.ruler === value.ruler));
  for (const name of SLOW) follow(name);
  followTest();
}

function follow(name) {
  const news = props[name];
  if (!news || news.key !== key || !base[news.method]) return;
  made[news.method] = news;
  draw();
}

function followTest() {
  const news = props.trust;
  if (!news || news.key !== key) return;
  test = news;
  asked = '';
  for (const [name, known] of Object.entries(news.cards || {})) {
    if (base[name] && known.options === base[name].options) trust[name] = known;
  }
  draw();
}

for (const chip of rulers) chip.addEventListener('click', () => trigger('ruler', { ruler: chip.dataset.ruler }));
find('test').addEventListener('click', () => {
  asked = key;
  trigger('trust', { methods: untested(), known: Object.keys(trust), key });
  draw();
});
element.querySelector('[data-job=trust] .vv-stop').addEventListener('click', () => trigger('stop', { name: 'trust' }));
watch('value', show);
for (const name of SLOW) watch(name, () => follow(name));
watch('trust', followTest);
show();
