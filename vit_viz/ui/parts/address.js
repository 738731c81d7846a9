// The address bar holds the view. When the page opens, and on Back and Forward, it says what it holds ('arrive'), together with an
// identity of this tab: a random number that survives a reload, so that the tab keeps its own uploads, and that no link holds.
const KEY = 'vit_viz tab';

function randomText() {
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function identity() {
  try {
    const known = sessionStorage.getItem(KEY) || randomText();
    sessionStorage.setItem(KEY, known);
    return known;
  } catch {
    return randomText(); // storage is forbidden: this tab's uploads then end with the page
  }
}

const owner = identity();
const arrive = () => trigger('arrive', { owner, search: location.search });

function write() {
  const value = props.value;
  if (!value) return;
  const link = new URLSearchParams(location.search);
  const before = link.toString();
  for (const [name, text] of Object.entries(value.set)) {
    if (text === null) link.delete(name);
    else link.set(name, text);
  }
  if (link.toString() === before) return;
  const search = link.toString().replaceAll('%2C', ',').replaceAll('%3B', ';');
  const url = location.pathname + (search ? '?' + search : '');
  if (value.push) history.pushState(history.state, '', url);
  else history.replaceState(history.state, '', url);
}

window.addEventListener('popstate', arrive);
watch('value', write);
setTimeout(arrive, 0);
