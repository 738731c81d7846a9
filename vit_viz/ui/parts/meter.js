// A button that starts something long ('start'), how far it is, and a button that ends it ('stop').
const find = (name) => element.querySelector('.vv-' + name);

function draw() {
  const value = props.value || {};
  const running = value.share != null;
  find('go').textContent = value.label || 'Start';
  find('go').hidden = running;
  find('go').disabled = false;
  find('job-words').textContent = value.error || value.words || '';
  find('progress').hidden = find('stop').hidden = !running;
  find('progress').value = value.share || 0;
}

find('go').addEventListener('click', () => {
  find('go').disabled = true;
  trigger('start', {});
});
find('stop').addEventListener('click', () => trigger('stop', {}));
watch('value', draw);
draw();
