// Small pictures to start from; a click says which ('choose').
const box = element.querySelector('.vv-samples');

function button(sample) {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = 'vv-sample';
  node.title = sample.name;
  node.setAttribute('aria-label', 'Sample image ' + sample.name);
  node.setAttribute('aria-pressed', String(sample.name === props.value.chosen));
  const image = document.createElement('img');
  image.src = sample.thumbnail;
  image.alt = '';
  node.append(image);
  node.addEventListener('click', () => trigger('choose', { name: sample.name }));
  return node;
}

function draw() {
  const value = props.value;
  if (!value) return;
  if (box.childElementCount !== value.samples.length) box.replaceChildren(...value.samples.map(button));
  value.samples.forEach((sample, place) => {
    box.children[place].setAttribute('aria-pressed', String(sample.name === value.chosen));
  });
}

watch('value', draw);
draw();
