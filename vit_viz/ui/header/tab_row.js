// The row of tabs on a narrow screen: the chosen tab is in sight, also where a link, Back or a button chose it.

export function mount() {
  const row = document.querySelector('#vv-tabs > .tab-wrapper');
  if (!row) return;
  new MutationObserver(() => show(row)).observe(row, { attributeFilter: ['aria-selected'], subtree: true });
  show(row);
}

/** Moves the row, and never the page, until the chosen tab is whole. */
export function show(/** @type {Element} */ row) {
  const tab = row.querySelector('[aria-selected=true]');
  if (!tab) return;
  const [own, all] = [tab, row].map((one) => one.getBoundingClientRect());
  if (own.right > all.right) row.scrollLeft += own.right - all.right;
  if (own.left < all.left) row.scrollLeft += own.left - all.left;
}
