// The address bar holds the view. When the page opens, and on Back and Forward, it says what it holds ('arrive').
// Nothing else on the page writes it; whoever wants something in it says so here.

const JOIN = '/queue/join';
const SETTLED = 20; // milliseconds in which a browser hands over what has come on another connection

/** Lets the questions of a window wait for what came before them. @param {{fetch: any}} scope */
export function settleJoins(scope) {
  const { fetch } = scope;
  scope.fetch = async (/** @type {any} */ target, /** @type {any} */ options) => {
    const answer = await fetch.call(scope, target, options);
    if (String(target?.url ?? target).includes(JOIN)) await new Promise((done) => setTimeout(done, SETTLED));
    return answer;
  };
}

/** The query string that the address bar holds now. */
export function currentLink() {
  return location.search;
}

/** The whole address, to be sent to somebody. */
export function wholeAddress() {
  return location.href;
}

/**
 * Puts a query string into the address bar, unless it is there already.
 * @param {string} search "" or what begins with "?"
 * @param {{push: boolean}} how push: a new entry of the history, so that Back leads to what was there before
 */
export function writeLink(search, { push }) {
  if (search === location.search) return;
  const address = (search || location.pathname) + location.hash;
  if (push) history.pushState(history.state, '', address);
  else history.replaceState(history.state, '', address);
}

/**
 * Calls back with the query string whenever the visitor goes Back or Forward; returns what ends this.
 * @param {(search: string) => void} returned
 */
export function onReturn(returned) {
  const listener = () => returned(location.search);
  window.addEventListener('popstate', listener);
  return () => window.removeEventListener('popstate', listener);
}

/**
 * @typedef {object} Change a part of the link that changed
 * @property {Record<string, string | null>} set options by their name in the link; null takes one away
 * @property {boolean} push whether Back leads to what was there before
 */

const PATIENCE = 8000; // milliseconds without an answer after which the page says again what its address holds
const MOST_TRIES = 4;

/**
 * Opens the page at its address. On a busy machine an event can get lost while the page is being built: it is told again, each time
 * after twice as long.
 * @type {import('../kit/elements.js').Mount<{value: Change | null}>}
 */
export function mount(_element, trigger, props, watch) {
  settleJoins(window);
  let timer = 0;
  const arrive = (tries = 1) => {
    trigger('arrive', { search: currentLink() });
    clearTimeout(timer);
    if (tries < MOST_TRIES) timer = window.setTimeout(() => arrive(tries + 1), PATIENCE * 2 ** (tries - 1));
  };
  onReturn(() => arrive());
  watch('value', () => {
    clearTimeout(timer); // every answer says what the address holds now
    write(props.value);
  });
  write(props.value); // of what was done before this module was there
  timer = window.setTimeout(arrive, 0);
}

function write(/** @type {Change | null} */ value) {
  if (!value) return;
  const link = new URLSearchParams(currentLink());
  const before = link.toString();
  for (const [name, text] of Object.entries(value.set)) {
    if (text === null) link.delete(name);
    else link.set(name, text);
  }
  if (link.toString() === before) return;
  const search = link.toString().replaceAll('%2C', ',').replaceAll('%3B', ';');
  writeLink(search && `?${search}`, value);
}
