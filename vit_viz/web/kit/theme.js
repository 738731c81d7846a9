// Whether the page is light or dark, where somebody wants it otherwise than the system has it.

const KEPT = 'vit_viz-theme'; // in the browser's storage

/** Makes a dark page light, and a light one dark, also when it is opened again. */
export function turnTheme() {
  const isDark = document.body.classList.toggle('dark');
  try {
    localStorage.setItem(KEPT, isDark ? 'dark' : 'light');
  } catch {
    // a browser that keeps nothing follows its system again
  }
}

/** Makes the page as it was wanted last. */
export function keepTheme() {
  try {
    const kept = localStorage.getItem(KEPT);
    if (kept) document.body.classList.toggle('dark', kept === 'dark');
  } catch {
    // nothing is kept there
  }
}
