// What saves a figure as a tab shows it.

import { askForFigure } from '../../explorer/source.js';
import { currentLink } from '../visit/link.js';

/**
 * Asks for the figure of what a tab shows as it stands: what the address says, and what the tab alone knows.
 * @param {Element} element @param {string} handle
 * @param {Record<string, string | number>} [more] by the names of links
 */
export function askForShown(element, handle, more = {}) {
  const link = new URLSearchParams(currentLink());
  for (const [name, value] of Object.entries({ ...more, kind: 'shown' })) link.set(name, String(value));
  return askForFigure(element, `/vit_viz/figure/${handle}?${link}`);
}
