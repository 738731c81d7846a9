// What is explained: a class ('why'), optionally set against another ('unlike'), found among the first five or by its name
// ('search'). Names are untrusted text and are written with textContent only.
const find = (name) => element.querySelector('.vv-' + name);
let asked = 0;
let waiting = 0;

function chip(entry, chosen, event, index) {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = 'vv-chip';
  node.setAttribute('aria-pressed', String(chosen));
  node.textContent = entry.name;
  node.title = entry.name + (entry.probability == null ? '' : ', probability ' + entry.probability.toFixed(4));
  if (entry.probability != null) {
    const number = document.createElement('span');
    number.className = 'vv-chip-number';
    number.textContent = entry.probability.toFixed(2);
    node.append(number);
  }
  node.addEventListener('click', () => trigger(event, { index }));
  return node;
}

function draw() {
  const value = props.value;
  if (!value) return;
  const classes = value.classes || [];
  for (const row of element.querySelectorAll('.vv-aim-row')) row.hidden = !classes.length;
  find('why').replaceChildren(...classes.map((c) => chip(c, c.index === value.chosen, 'why', c.index)));
  const others = classes.filter((c) => c.index !== value.chosen);
  const nothing = chip({ name: 'nothing in particular' }, value.other == null, 'unlike', null);
  find('unlike').replaceChildren(nothing, ...others.map((c) => chip(c, c.index === value.other, 'unlike', c.index)));
  find('aim-words').textContent = value.words || '';
  close();
}

function close() {
  find('hits').hidden = true;
}

function hit(entry) {
  const line = document.createElement('li');
  const name = document.createElement('span');
  name.textContent = entry.name;
  name.title = 'class ' + entry.index;
  line.append(name, chip({ name: 'why' }, false, 'why', entry.index), chip({ name: 'and not' }, false, 'unlike', entry.index));
  line.addEventListener('click', () => {
    find('search').value = '';
    close();
  });
  return line;
}

function found() {
  const answer = props.found;
  if (!answer || answer.seq !== asked || !find('search').value) return;
  const nothing = document.createElement('li');
  nothing.textContent = 'No class has this name.';
  const hits = answer.hits.map(hit);
  find('hits').replaceChildren(...(hits.length ? hits : [nothing]));
  find('hits').hidden = false;
}

find('search').addEventListener('input', () => {
  clearTimeout(waiting);
  const words = find('search').value.trim();
  if (!words) return close();
  waiting = setTimeout(() => trigger('search', { text: words.slice(0, 100), seq: ++asked }), 150);
});

find('search').addEventListener('keydown', (event) => {
  if (event.key === 'Escape') close();
  const first = find('hits').querySelector('button');
  if (event.key === 'Enter' && first && !find('hits').hidden) first.click();
});

watch('value', draw);
watch('found', found);
draw();
