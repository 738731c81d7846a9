// What resembles the token under the pointer: cosines of all states, computed here.

import { patchName } from './measures.js';
import { cosine, cosines, short } from './vectors.js';

/** @typedef {import('./room.js').Room} Room */

const TOO_LARGE =
  'There are too many tokens here to compare them under the pointer; please choose a smaller size.';

/** @type {import('./room.js').View} */
export const similarity = {
  role: (room) => room.options.token_role,
  unit: () => 'cosine',

  async load(room, isStill) {
    const { store } = room;
    if (!store) return;
    if (!room.subject?.travels) throw new Error(TOO_LARGE);
    const count = room.names.length;
    const order = [room.state, ...Array.from({ length: count }, (_, i) => i)];
    await store.fetchVectors(room.role, order, () => {
      if (!isStill()) return;
      const here = store.have(room.role).filter(Boolean).length;
      room.wait(here < count ? `${here} of ${count} are here …` : '');
      room.paint();
    });
  },

  paint(room) {
    const first = room.subject?.prefix.length ?? 0;
    room.store?.have(room.role).forEach((vectors, state) => {
      if (!vectors) return;
      room.maps[state] ??= new Float32Array(room.patches);
      cosines(vectors, room.token, first, room.maps[state]);
    });
    room.paintMaps();
  },

  title: (room, spot) => `What resembles the ${spot ? patchName(spot) : room.namedToken()}`,

  /** The mean over all patches, and the class token. */
  readout(room) {
    const map = room.maps[room.state];
    const vectors = room.store?.have(room.role)[room.state];
    if (!map || !vectors) return '';
    const mean = map.reduce((sum, value) => sum + value, 0) / map.length;
    const named = (room.subject?.prefix ?? [])
      .slice(0, 1)
      .map((name, i) => `${name} token ${short(cosine(vectors, room.token, i))}`);
    return [`cosine with all patches: mean ${short(mean)}`, ...named].join('; ');
  },
};
