// Whether the page is light or dark, where somebody wants it otherwise than the system has it.

import { remember, remembered } from '../../ui/kit/elements.js';

const KEPT = 'vit_viz-theme'; // in the browser's storage

/** Makes a dark page light, and a light one dark, also when it is opened again. */
export function turnTheme() {
  const isDark = document.body.classList.toggle('dark');
  remember(KEPT, isDark ? 'dark' : 'light');
}

/** Makes the page as it was wanted last. */
export function keepTheme() {
  const kept = remembered(KEPT);
  if (kept) document.body.classList.toggle('dark', kept === 'dark');
}
