// The row of tabs and the link: a tab that is chosen is written there, and the one that the link names is open.

import { thePage } from '../kit/page.js';
import { effect } from '../kit/preact.js';
/** @import { Store } from '../kit/store.js' */

const TAB_BUTTON = /^vv-tab-(.+)-button$/;

export function mount() {
  followTabs(thePage().store);
}

/** @param {Store} store */
export function followTabs(store) {
  const begin = () => {
    const [row, header] = ['#vv-tabs > .tab-wrapper', '#vv-header'].map((one) => document.querySelector(one));
    if (!row || !header) return false; // Gradio makes the parts of a page in any order
    listenToTabs(row, store);
    stayBelow(/** @type {HTMLElement} */ (header));
    return true;
  };
  if (begin()) return;
  const waiting = new MutationObserver(() => void (begin() && waiting.disconnect()));
  waiting.observe(document.body, { childList: true, subtree: true });
}

/** Writes the tab that is chosen into the link, and opens the one that is written there. @param {Element} row @param {Store} store */
function listenToTabs(row, store) {
  let open = store.view.tab.peek(); // or on its way: Gradio marks it a moment after the click
  const choose = (/** @type {Element | null | undefined} */ button) => {
    const tab = TAB_BUTTON.exec(button?.id ?? '')?.[1];
    if (!tab) return;
    open = tab;
    store.set({ tab });
  };
  row.addEventListener('click', ({ target }) =>
    choose(/** @type {Element} */ (target).closest('[role=tab]')),
  );
  const first = row.querySelector('[aria-selected=true]');
  if (first && first !== row.firstElementChild)
    choose(first); // it was chosen before this module was there
  else open = TAB_BUTTON.exec(first?.id ?? '')?.[1] ?? open;
  effect(() => {
    const tab = store.view.tab.value;
    const button = row.querySelector(`#vv-tab-${tab}-button`);
    if (tab !== open && button instanceof HTMLElement) button.click();
  });
  new MutationObserver(() => showTab(row)).observe(row, {
    attributeFilter: ['aria-selected'],
    subtree: true,
  });
  showTab(row);
}

/** Tells the page how high the header is, below which the row of tabs stays on a phone. */
function stayBelow(/** @type {HTMLElement} */ header) {
  const tell = () => document.documentElement.style.setProperty('--vv-header', `${header.offsetHeight}px`);
  new ResizeObserver(tell).observe(header);
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
