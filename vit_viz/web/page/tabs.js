// The row of tabs, and what each shows.

import { byKeys } from '../../ui/kit/elements.js';
import { html, useLayoutEffect, useRef } from '../kit/preact.js';
/** @import { Store } from '../kit/store.js' */

/**
 * html: what it begins with; module: whose `mount` fills what of it has data-room, or the whole; props: what that is told.
 * @typedef {{name: string, html: string, module: string, props: any}} Part
 * @typedef {Part & {label: string}} Tab
 */

/** Arrows, Home and End go along the row of tabs; Enter opens one. @param {KeyboardEvent} event */
function along(event) {
  const { currentTarget, target, key } = /** @type {any} */ (event);
  const tabs = /** @type {HTMLElement[]} */ ([...currentTarget.children]);
  const ends = /** @type {Record<string, number>} */ ({ Home: 0, End: -1 });
  if (key in ends) {
    event.preventDefault();
    tabs.at(ends[key])?.focus();
  }
  byKeys({
    at: () => target,
    beside: ([down, right]) =>
      down ? null : tabs[(tabs.indexOf(target) + right + tabs.length) % tabs.length],
    point: (tab) => (tab ? tab.focus() : false),
  })(event);
}

/**
 * The row of tabs, and what each shows: made when it is first opened, and kept.
 * @param {{store: Store, tabs: Tab[], tables: Record<string, string>}} props tables: of colours, which every tab is told
 */
export function Tabs({ store, tabs, tables }) {
  const row = useRef(/** @type {any} */ (null));
  const opened = useRef(/** @type {Set<string>} */ (new Set()));
  const open = store.view.tab.value;
  const choose = (/** @type {string} */ tab) => {
    const past = row.current.offsetTop - row.current.parentElement.offsetTop; // where the row stays in sight
    store.set({ tab });
    if (past > 0) window.scrollBy({ top: -past, behavior: 'instant' }); // each tab from its beginning on
  };
  opened.current.add(open);
  useLayoutEffect(() => showTab(row.current), [open]);
  return html`<div id="vv-tabs">
    <div class="tab-wrapper" ref=${row}>
      <div class="tab-container" role="tablist" onKeyDown=${along}>
        ${tabs.map(
          ({ name, label }) =>
            html`<button
              key=${name}
              type="button"
              role="tab"
              id=${`vv-tab-${name}-button`}
              aria-selected=${String(name === open)}
              tabindex=${name === open ? 0 : -1}
              aria-controls=${`vv-tab-${name}`}
              onClick=${() => choose(name)}
            >
              ${label}
            </button>`,
        )}
      </div>
    </div>
    ${tabs.map(
      (tab) =>
        html`<div
          key=${tab.name}
          class="tabitem"
          role="tabpanel"
          id=${`vv-tab-${tab.name}`}
          aria-labelledby=${`vv-tab-${tab.name}-button`}
          hidden=${tab.name !== open}
        >
          ${opened.current.has(tab.name) && html`<${Filled} ...${{ ...tab, props: { tables, ...tab.props } }} />`}
        </div>`,
    )}
  </div>`;
}

/** A part of the page, which its module fills once. @param {Part & {id?: string}} props */
export function Filled({ html: begins, module, props, id }) {
  const place = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    const { mount: fill } = /** @type {any} */ (window).vit_viz(module);
    fill(place.current.querySelector('[data-room]') ?? place.current, props);
  }, []);
  return html`<div
    id=${id}
    class=${id ? 'vv-part' : 'vv-tab'}
    ref=${place}
    dangerouslySetInnerHTML=${{ __html: begins }}
  ></div>`;
}

/** How much of its neighbours is seen beside the chosen tab: that there is more. */
const BESIDE = 28;

/** Moves the row, and never the page, until the chosen tab is whole. */
export function showTab(/** @type {Element} */ row) {
  const tab = row.querySelector('[aria-selected=true]');
  if (!tab) return;
  const [own, all] = [tab, row].map((one) => one.getBoundingClientRect());
  if (own.right > all.right) row.scrollLeft += own.right - all.right + BESIDE;
  if (own.left < all.left) row.scrollLeft += own.left - all.left - BESIDE;
}
