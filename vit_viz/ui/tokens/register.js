// A register at test time: norms and attention before and after outlier patches have left their part to it.

import { make, showText } from '../kit/elements.js';
import { registerWords } from './measures.js';
import { newPlate } from './plate.js';
import { rangeOf, short } from './vectors.js';

/**
 * @typedef {import('./room.js').Room} Room
 * @typedef {import('./store.js').Register} Register
 */

const WORDS = 'Adding a register: finding its neurons, then a pass without and one with it …';

/** What is asked of the server. */
const askedFor = (/** @type {Room} */ room) => ({ factor: room.options.token_factor });

/** The maps that stand side by side, each pair on one scale. @param {Register} told @param {number} state @param {string} name */
export function pairsOf(told, state, name) {
  const maps = (/** @type {number[][]} */ values) => values.map((map) => Float32Array.from(map));
  return [
    {
      words: `Norms, ${name}`,
      maps: maps(told.norms.map((norms) => norms.values[state])),
      outliers: told.norms.map((norms) => norms.outliers[state]),
    },
    {
      words: 'What the output looks at in the last layer, mean of its heads',
      maps: maps(told.attention),
      outliers: [[], []],
    },
  ];
}

export const register = {
  /** @param {Room} room @param {() => boolean} isStill */
  async load(room, isStill) {
    const place = room.find('room-register');
    try {
      await room.compute('register', askedFor(room), WORDS);
      await room.store?.fetchNumbers('register', askedFor(room));
    } catch (error) {
      if (!isStill()) return;
      place.hidden = false;
      place.replaceChildren(make('p', 'vv-room-error vv-notice', /** @type {Error} */ (error).message));
      place.dataset.drawn = 'error';
    }
  },

  /** Draws what is there. */
  paint(/** @type {Room} */ room) {
    const place = room.find('room-register');
    const told = room.options.token_register ? room.store?.known('register', askedFor(room)) : null;
    if (!told) {
      if (place.dataset.drawn !== 'error' || !room.options.token_register) place.hidden = true;
      return;
    }
    place.hidden = false;
    const state = Math.max(room.state, told.state); // before, nothing differs
    const key = `${room.subject?.handle}|${room.options.token_factor}|${state}`;
    if (place.dataset.drawn === key) return;
    place.dataset.drawn = key;
    place.replaceChildren(make('h3', 'vv-title', 'Before and after a register was added'), said(told));
    for (const pair of pairsOf(told, state, room.names[state])) place.append(drawn(room, pair));
  },
};

function said(/** @type {Register} */ told) {
  const node = make('p', 'vv-quiet');
  showText(node, registerWords(told));
  return node;
}

/** @param {Room} room @param {{words: string, maps: Float32Array[], outliers: number[][]}} pair */
function drawn(room, { words, maps, outliers }) {
  const row = make('div', 'vv-room-pair');
  const [low, high] = rangeOf(maps);
  maps.forEach((map, i) => {
    const { figure, plate } = newPlate(
      `${words}, ${i ? 'after' : 'before'}: ${short(low)} to ${short(high)}`,
    );
    if (room.subject) plate.place(room.subject);
    plate.paint(map, room.over, [low, high]);
    plate.ring(outliers[i].map((patch) => [patch, 'vv-ring vv-outlier']));
    row.append(figure);
  });
  return row;
}
