// A model on its way: its name, how far it is, and a button that ends the download ('stop'); or what went wrong, as plain text.
const find = (name) => element.querySelector('.vv-' + name);

function draw() {
  const value = props.value || {};
  find('job').hidden = !value.words;
  if (find('job-words').textContent !== (value.words || '')) find('job-words').textContent = value.words || '';
  find('job-amount').textContent = value.amount || '';
  find('progress').hidden = value.share == null;
  find('progress').value = value.share || 0;
  find('stop').hidden = !value.stop;
  find('stop').disabled = false;
  find('error').textContent = value.error || '';
  find('error').hidden = !value.error;
}

find('stop').addEventListener('click', () => {
  find('stop').disabled = true;
  trigger('stop', {});
});
watch('value', draw);
draw();
