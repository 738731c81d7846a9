import { listenToDrops, listenToPastes } from '../../ui/kit/carried.js';
import { html, useLayoutEffect, useRef } from '../kit/preact.js';
/** @import { Taker } from '../../ui/kit/carried.js' */
/** @import { Signal } from '../kit/preact.js' */

/**
 * Takes what is pasted or dropped anywhere on the page. What becomes of it is said for a while; while files are dragged, all of the page
 * says that they can be dropped.
 * @param {{taker: Taker, said: Signal<string>}} props
 */
export function BringNote({ taker, said }) {
  const drop = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    listenToPastes(taker);
    listenToDrops(taker, /** @type {HTMLElement} */ (drop.current));
  }, []);
  useLayoutEffect(
    () => void document.documentElement.toggleAttribute('data-note', Boolean(said.value)),
    [said.value],
  );
  return html`<p class="vv-bring-note" role="status" hidden=${!said.value}>${said.value}</p>
    <div class="vv-drop-here" hidden ref=${drop}>Drop pictures to look at them</div>`;
}
