// The most probable classes, with bars; all of it as plain text.
const list = element.querySelector('.vv-top');
const nothing = element.querySelector('.vv-nothing');

function classLine(entry) {
  const line = document.createElement('li');
  line.style.setProperty('--share', 100 * entry.probability + '%');
  const name = document.createElement('span');
  name.className = 'vv-class';
  name.textContent = entry.name;
  name.title = entry.name;
  const number = document.createElement('span');
  number.className = 'vv-number';
  number.textContent = entry.probability.toFixed(2);
  line.append(name, number);
  return line;
}

function draw() {
  const value = props.value;
  if (!value) return;
  element.classList.toggle('vv-busy', Boolean(value.busy));
  if (value.busy) return;
  list.replaceChildren(...(value.top || []).map(classLine));
  const words = !value.error && !(value.top || []).length ? 'This model has no class head: there are no predictions.' : '';
  nothing.textContent = words;
  nothing.hidden = !words;
}

watch('value', draw);
draw();
