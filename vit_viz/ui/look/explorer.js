// The explorer on its page: Gradio's props go in; events, and what the link should hold, come out.

import { Explorer } from '../../explorer/explorer.js';
import { formatLink, linkChange, linkMatches, parseLink } from '../../explorer/state.js';
import { currentLink, onReturn, writeLink } from '../visit/link.js';
import { SERVER } from './server_source.js';
/** @import { Trace } from '../../explorer/geometry.js' */
/** @import { Link, View } from '../../explorer/state.js' */

/** Says what the link should hold, and keeps the one that the page was opened with until its picture is there. */
export class ExplorerLink {
  /** @param {(link: Link) => void} returned the user went Back or Forward to this link */
  constructor(returned) {
    /** @type {Link | null} */
    this.pending = currentLink() ? parseLink(currentLink()) : null;
    this.timer = 0;
    this.isAwaiting = false; // the picture of a link that the visitor went Back to
    this.ignore = onReturn((search) => {
      clearTimeout(this.timer); // of the view that was left
      returned(parseLink(search));
    });
  }

  /**
   * The change of view that the opened link asks of this trace, once. What other tabs have chosen since is in the address bar.
   * @param {Trace} trace
   * @param {boolean} insist a picture was chosen for a link whose own picture is gone
   */
  claim(trace, insist) {
    if (!this.pending || !(insist || linkMatches(this.pending, trace))) return {};
    const now = parseLink(currentLink());
    const change = linkChange(linkMatches(now, trace) ? now : this.pending, trace);
    this.pending = null;
    this.isAwaiting = false;
    return change;
  }

  /** The visitor went to a link whose picture is not there yet. */
  await(/** @type {Link} */ link) {
    this.pending = link;
    this.isAwaiting = true;
  }

  /** Whether the address bar names this picture and model already. */
  names(/** @type {Trace} */ trace) {
    const link = parseLink(currentLink());
    return link.image !== null && link.model !== null && linkMatches(link, trace);
  }

  /**
   * @param {View} view @param {Trace} trace
   * @param {{push?: boolean, byUser?: boolean}} [how] push: a new entry of the history
   */
  write(view, trace, { push = false, byUser = true } = {}) {
    if (this.pending && !byUser) return; // the opened link still waits for its picture
    if (push && this.isAwaiting) return; // a picture of before, which comes late
    this.pending = null;
    clearTimeout(this.timer);
    const put = () => writeLink(formatLink(view, trace, currentLink()), { push });
    if (push) put();
    else this.timer = window.setTimeout(put, 200); // browsers limit writes per second
  }

  close() {
    clearTimeout(this.timer);
    this.ignore();
  }
}

/** @type {import('../kit/elements.js').Mount<import('../../explorer/explorer.js').Props>} */
export function mount(element, trigger, props, watch) {
  const explorer = new Explorer(element, trigger, props, SERVER);
  explorer.link = new ExplorerLink((link) => explorer.goTo(link));
  const alive = () => {
    if (element.isConnected) return true;
    explorer.destroy();
    return false;
  };
  watch('value', () => alive() && explorer.setValue(props.value));
  watch('busy', () => alive() && explorer.setBusy(props.busy));
  explorer.clear('');
  // what arrived before this module did; `watch` does not fire for it
  if (props.value) explorer.setValue(props.value);
  if (props.busy) explorer.setBusy(props.busy);
}
