// What is edited in the model, in words as links have them and vit_viz/session/edits.py reads them: "off 3.1 4.0;temperature 7=0.5".

/**
 * @typedef {'off' | 'mean' | 'uniform' | 'on'} State
 *
 * heads: by layer and head, such as "3.1"; temperatures: by layer.
 * @typedef {{heads: Map<string, State>, temperatures: Map<number, number>, forbidden: string[]}} Edits
 */

const STATES = /** @type {State[]} */ (['off', 'mean', 'uniform']);

/** Reads words of edits; heads that a model does not have are left out. @param {string} words @param {{layers: number, heads: number}} [model] @returns {Edits} */
export function editsIn(words, { layers, heads } = { layers: Infinity, heads: Infinity }) {
  /** @type {Edits} */
  const edits = { heads: new Map(), temperatures: new Map(), forbidden: [] };
  for (const statement of words.split(';')) {
    const [kind, ...rest] = statement.trim().split(/\s+/);
    if (kind === 'forbid') edits.forbidden.push(rest.join(' '));
    for (const one of rest) {
      const [layer, value] = one.split(/[.=]/, 1).concat(one.replace(/^\d+[.=]/, ''));
      if (kind === 'temperature') edits.temperatures.set(Number(layer), Number(value));
      else if (
        STATES.includes(/** @type {State} */ (kind)) &&
        Number(layer) < layers &&
        Number(value) < heads
      )
        edits.heads.set(one, /** @type {State} */ (kind));
    }
  }
  return edits;
}

/** The words of edits. @param {Edits} edits */
export function wordsOf(edits) {
  const { temperatures, forbidden } = edits;
  const said = STATES.flatMap((state) => {
    const chosen = headsWith(edits, state);
    return chosen.length ? [[state, ...chosen].join(' ')] : [];
  });
  const set = [...temperatures].filter(([, value]) => value !== 1);
  if (set.length) said.push(['temperature', ...set.map(([layer, value]) => `${layer}=${value}`)].join(' '));
  return [...said, ...forbidden.map((one) => `forbid ${one}`)].join(';');
}

/** The heads in a state, in their order. @param {Edits} edits @param {State} state */
export function headsWith({ heads }, state) {
  const chosen = [...heads].flatMap(([place, now]) => (now === state ? [place] : []));
  return chosen.sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
}

/** Edits with some heads in a state. @param {Edits} edits @param {string[]} keys @param {State} state @returns {Edits} */
export function withHeads(edits, keys, state) {
  const heads = new Map(edits.heads);
  for (const key of keys) {
    if (state === 'on') heads.delete(key);
    else heads.set(key, state);
  }
  return { ...edits, heads };
}

/** Words of edits with these heads off; where all of them were, they are on again. @param {string} words @param {string[]} places */
export function switched(words, places) {
  const edits = editsIn(words);
  const isOff = places.every((place) => edits.heads.get(place) === 'off');
  return wordsOf(withHeads(edits, places, isOff ? 'on' : 'off'));
}
