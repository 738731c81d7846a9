// What the head would say of each patch: a probe.

import { lensWords } from './measures.js';

/** @type {import('./room.js').View} */
export const lens = {
  role: () => 'tokens',
  unit: (room) => room.told?.unit ?? '',

  async load(room, isStill) {
    await room.fetch('lens', { target: room.subject?.target ?? '' }, isStill);
  },

  paint: (room) => room.paintMaps(),

  title: (room) => room.told?.title ?? 'Logit lens',

  readout(room, spot) {
    if (!room.told) return '';
    return spot ? lensWords(room.told, spot) : 'Point at a patch to read what the head says of it.';
  },
};
