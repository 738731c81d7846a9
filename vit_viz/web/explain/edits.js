// Heads that are off, in the words of edits (vit_viz/session/edits.py): "off 3.1 4.0;temperature 7=0.5".

const OF_HEADS = ['off', 'mean', 'uniform'];

/** The statements of edits: what each does, and to what. @param {string} edits @returns {[kind: string, rest: string][]} */
function statements(edits) {
  return edits
    .split(';')
    .map((one) => one.trim())
    .filter(Boolean)
    .map((one) => {
      const [kind, ...rest] = one.split(/\s+/);
      return [kind, rest.join(' ')];
    });
}

/** The heads that are off, in their order. @param {string} edits */
export function headsOff(edits) {
  const off = statements(edits).flatMap(([kind, rest]) => (kind === 'off' ? rest.split(' ') : []));
  return inOrder(off.map((place) => place.split('.').map(Number).join('.')));
}

/** @param {string[]} places */
function inOrder(places) {
  const at = (/** @type {string} */ place) => {
    const [layer, head] = place.split('.').map(Number);
    return 1e4 * layer + head;
  };
  return [...new Set(places)].sort((one, other) => at(one) - at(other));
}

/** The same edits with these heads off, and no others; what is off is not at its mean. @param {string} edits @param {string[]} off */
export function withHeadsOff(edits, off) {
  const others = statements(edits).flatMap(([kind, rest]) => {
    if (!OF_HEADS.includes(kind)) return [`${kind} ${rest}`];
    const left = kind === 'off' ? [] : rest.split(' ').filter((place) => !off.includes(place));
    return left.length ? [[kind, ...left].join(' ')] : [];
  });
  return [...(off.length ? [['off', ...inOrder(off)].join(' ')] : []), ...others].join(';');
}

/** The edits with these heads off; where all of them were, they are on again. @param {string} edits @param {string[]} places */
export function switched(edits, places) {
  const off = headsOff(edits);
  const isOff = places.every((place) => off.includes(place));
  return withHeadsOff(edits, isOff ? off.filter((place) => !places.includes(place)) : [...off, ...places]);
}
