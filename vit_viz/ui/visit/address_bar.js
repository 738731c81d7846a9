// The address bar. Nothing else on the page writes it; whoever wants something in it says so here.

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
