// What the model is, whether its attention was proven, what is being done, and what went wrong; all of it as plain text.
const find = (name) => element.querySelector('.vv-' + name);

function text(name, words) {
  const node = find(name);
  node.textContent = words || '';
  node.hidden = !words;
}

function draw() {
  const value = props.value;
  if (!value) return;
  element.classList.toggle('vv-busy', Boolean(value.busy));
  text('status', value.busy || (value.notes || []).join(' '));
  text('error', value.error);
  if (value.busy) return;
  text('card', value.card);
  const proof = find('proof');
  proof.hidden = !value.proof;
  if (!value.proof) return;
  proof.textContent = value.proof.text;
  proof.title = value.proof.title;
  proof.dataset.state = value.proof.state;
}

find('share').addEventListener('click', async () => {
  const button = find('share');
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = 'Link copied';
  } catch {
    button.textContent = 'See the address bar';
  }
  setTimeout(() => (button.textContent = 'Copy link'), 2500);
});

watch('value', draw);
draw();
