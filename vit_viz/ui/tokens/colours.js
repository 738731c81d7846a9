// Three components of all states as colours, of one photo or of two.

import { componentWords } from './measures.js';
import { colourPixels } from './vectors.js';

/** @typedef {import('./room.js').Room} Room */

const OPACITY = Math.round(255 * 0.9);

/** What is asked of the server. */
function askedFor(/** @type {Room} */ room) {
  const { token_foreground: foreground, token_whitened: whitened } = room.options;
  const also = room.subject?.second?.handle ?? '';
  return { role: room.role, foreground, whitened, also };
}

/** @type {import('./room.js').View} */
export const colours = {
  role: (room) => room.options.token_role,

  async load(room, isStill) {
    await room.fetch('components', askedFor(room), isStill);
  },

  paint(room) {
    const { told, second } = room;
    room.bar(null);
    const other = room.subject?.second;
    second.element.hidden = !other?.handle;
    if (!told) return;
    room.strip.paintColours(told.colours);
    room.big.paintPixels(colourPixels(told.colours[room.state], OPACITY));
    if (!other?.handle || !told.second) return;
    if (second.photo?.handle !== other.handle) second.place(other);
    second.paintPixels(colourPixels(told.second[room.state], OPACITY));
  },

  title: () => 'Three components as colours',

  readout(room) {
    const gone = room.subject?.second?.note ?? '';
    return room.told ? `${componentWords(room.told, room.state)}${gone ? `. ${gone}` : ''}` : '';
  },
};
