// The address bar holds the view; Back and Forward return to earlier queries, pictures and models.

import { formatLink, parseLink } from './state.js';

/**
 * @typedef {import('./geometry.js').Trace} Trace
 * @typedef {import('./state.js').View} View
 * @typedef {ReturnType<typeof parseLink>} Link
 */

/** Whether a link means this trace; what a link leaves out fits anything. */
export function linkMatches(
  /** @type {Link} */ link,
  /** @type {Pick<Trace, 'model' | 'image' | 'mode'>} */ trace,
) {
  const same = (/** @type {string | null} */ asked, /** @type {string} */ has) =>
    asked === null || asked === has;
  return (
    same(link.model, trace.model) &&
    same(link.image, trace.image) &&
    (link.image === null || link.mode === trace.mode)
  );
}

/** Writes the query string, and keeps the link that the page was opened with until its picture is there. */
export class Address {
  /** @param {(link: Link) => void} returned the user went Back or Forward to this link */
  constructor(returned) {
    /** @type {Link | null} */
    this.pending = location.search ? parseLink(location.search) : null;
    this.timer = 0;
    this.returned = () => returned(parseLink(location.search));
    window.addEventListener('popstate', this.returned);
  }

  /**
   * The change of view that the opened link asks of this trace, once.
   * @param {Trace} trace
   * @param {boolean} insist a picture was chosen for a link whose own picture is gone
   */
  claim(trace, insist) {
    if (!this.pending || !(insist || linkMatches(this.pending, trace))) return {};
    const { change } = this.pending;
    this.pending = null;
    return change;
  }

  /** Whether the address bar names this picture and model already. */
  names(/** @type {Trace} */ trace) {
    const link = parseLink(location.search);
    return link.image !== null && link.model !== null && linkMatches(link, trace);
  }

  /**
   * @param {View} view
   * @param {Trace} trace
   * @param {{push?: boolean, byUser?: boolean}} [how] push: a new entry of the history
   */
  write(view, trace, { push = false, byUser = true } = {}) {
    if (this.pending && !byUser) return; // the opened link still waits for its picture
    this.pending = null;
    clearTimeout(this.timer);
    if (push) this.put(view, trace, true);
    else this.timer = window.setTimeout(() => this.put(view, trace, false), 200); // browsers limit writes per second
  }

  /** @param {View} view @param {Trace} trace @param {boolean} push */
  put(view, trace, push) {
    const search = formatLink(view, trace, location.search);
    if (search === location.search) return;
    history[push ? 'pushState' : 'replaceState'](history.state, '', search + location.hash);
  }

  close() {
    clearTimeout(this.timer);
    window.removeEventListener('popstate', this.returned);
  }
}
