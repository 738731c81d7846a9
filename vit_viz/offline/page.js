// The explorer in a file of its own: everything that it needs stands in the page (vit_viz/offline/page.py).

import { ALONE, Explorer } from '../explorer/explorer.js';
import { packedSource } from '../explorer/packed.js';
import { bytesOf } from '../explorer/paint.js';
import { followTheme } from '../explorer/theme.js';

/** What an element of the page holds as text. */
function textOf(/** @type {string} */ id) {
  return document.getElementById(id)?.textContent ?? '';
}

/** Shows the explorer of this page. */
export function start() {
  followTheme();
  const { value, tables, packing } = JSON.parse(textOf('vv-facts'));
  const element = /** @type {HTMLElement} */ (document.getElementById('vv-explorer'));
  const source = packedSource(async (layer) => bytesOf(textOf(`vv-layer-${layer}`)), packing);
  const explorer = new Explorer(element, ALONE, tables, source);
  explorer.parts.closer.hidden = true; // another picture needs the model
  Object.assign(element, { explorer }); // its numbers, for whoever opens the browser's console
  if (typeof DecompressionStream === 'undefined') return explorer.clear(TOO_OLD);
  return explorer.show(value);
}

const TOO_OLD = 'This page needs a newer browser: Chrome or Edge 80, Firefox 113, Safari 16.4, or later.';
