// A button that opens something over the page: again the button, Escape, a press elsewhere, or the focus elsewhere close it.

/**
 * @param {HTMLElement} button
 * @param {() => HTMLElement | null} find what it opens, which may be drawn later than the button
 * @param {(panel: HTMLElement, isOpen: boolean) => void} [show]
 * @returns {() => void} closes it
 */
export function opens(button, find, show = (panel, isOpen) => void (panel.hidden = !isOpen)) {
  const isOpen = () => button.getAttribute('aria-expanded') === 'true';
  const set = (/** @type {boolean} */ wanted) => {
    const panel = find();
    if (!panel) return;
    button.setAttribute('aria-expanded', String(wanted));
    show(panel, wanted);
  };
  const leave = (/** @type {Event} */ event) => {
    const place = /** @type {Node} */ (event.target);
    if (isOpen() && !button.contains(place) && !find()?.contains(place)) set(false);
  };
  button.addEventListener('click', () => set(!isOpen()));
  window.addEventListener('pointerdown', leave);
  window.addEventListener('focusin', leave);
  window.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !isOpen()) return;
    set(false);
    button.focus();
  });
  return () => set(false);
}
