// How much each token changes in a layer, and how alike any two layers are.

import { drawMatrix } from './matrix.js';
import { changeWords } from './measures.js';

/** @typedef {import('./room.js').Room} Room */

const WORDS = 'Comparing all layers …';

/** What is asked of the server. */
const askedFor = (/** @type {Room} */ room) => ({ role: room.options.token_role });

/** @type {import('./room.js').View} */
export const layers = {
  role: () => 'keys', // a map for each layer: what it does to the tokens
  unit: () => 'cosine before and after',

  async load(room, isStill) {
    await room.fetch('change', {}, isStill);
    if (!isStill()) return;
    room.paint();
    await room.compute('layers', askedFor(room), WORDS);
    await room.store?.fetchNumbers('layers', askedFor(room));
  },

  paint(room) {
    room.paintMaps();
    const told = room.store?.known('layers', askedFor(room));
    if (told) drawMatrix(room.panel, told, room.table);
  },

  title: () => 'How much of each token stays as it was',

  readout: (room, spot) => (room.told ? changeWords(room.told, room.state, spot) : ''),
};
