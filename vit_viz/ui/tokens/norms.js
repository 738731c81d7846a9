// How long the tokens are, which of them stand out, and what a register that is added takes over.

import { drawHistogram } from './histogram.js';
import { normWords, outlierWords } from './measures.js';
import { register } from './register.js';

/** @type {import('./room.js').View} */
export const norms = {
  role: () => 'tokens',
  unit: () => 'norm',

  async load(room, isStill) {
    await room.fetch('norms', { factor: room.options.token_factor }, isStill);
    if (isStill() && room.options.token_register) await register.load(room, isStill);
  },

  paint(room) {
    room.paintMaps();
    if (room.told) drawHistogram(room.panel, room.told, room.state, room.options.token_factor);
    register.paint(room);
  },

  title: () => 'How long the tokens are',

  readout(room, spot) {
    if (!room.told) return '';
    const { state, options } = room;
    return spot
      ? normWords(room.told, spot, options.token_factor)
      : outlierWords(room.told, state, options.token_factor);
  },

  rings: (room) => room.told?.outliers[room.state] ?? [],
};
