// What every part of the page makes elements and reads keys with. It imports nothing, so that a script that does not come is missed
// in its own place alone.

/** Steps down and to the right of the arrow keys. */
export const ARROWS = Object.freeze(
  /** @type {Record<string, [number, number]>} */ ({
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  }),
);

/**
 * What keys point at, as a pointer does: the patches of a photo, the cells of a table.
 * @template Spot
 * @typedef {object} Keyed
 * @property {() => Spot | null} at what is pointed at
 * @property {(step: [number, number]) => Spot | null | undefined} beside what an arrow leads to, so far down and to the right; none: no further
 * @property {(spot: Spot | null) => unknown} point null: at nothing
 * @property {(spot: Spot | null, event: KeyboardEvent) => unknown} [choose] null: nothing any more
 *
 * Where one of them returns false it had nothing to do, and others hear the key.
 */

/** What keys do on every photo and table, and how the help says it. */
export const KEYS = Object.freeze([
  {
    name: 'Arrows',
    keys: Object.keys(ARROWS),
    words: 'point at the next one',
    does: (/** @type {Keyed<any>} */ { at, beside, point }, /** @type {KeyboardEvent} */ { key }) =>
      point(beside(ARROWS[key]) ?? at()),
  },
  {
    name: 'Enter',
    keys: ['Enter', ' '],
    words: 'chooses it, as a click does',
    does: (/** @type {Keyed<any>} */ { at, choose }, /** @type {KeyboardEvent} */ event) =>
      at() !== null && choose !== undefined && choose(at(), event),
  },
  {
    name: 'Escape',
    keys: ['Escape'],
    words: 'lets go of it, then of what is chosen',
    does: (/** @type {Keyed<any>} */ { at, point, choose }, /** @type {KeyboardEvent} */ event) =>
      at() === null ? choose !== undefined && choose(null, event) : point(null),
  },
]);

/** The same in a sentence, for the labels of what listens. */
export const KEY_WORDS = `${KEYS.map(({ name, words }) => `${name} ${words}`).join('; ')}.`;

/** A listener to these keys; Ctrl, Alt and Meta leave them to the browser. @template Spot @param {Keyed<Spot>} keyed */
export function byKeys(keyed) {
  return (/** @type {KeyboardEvent} */ event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    const known = ctrlKey || metaKey || altKey ? undefined : KEYS.find(({ keys }) => keys.includes(key));
    if (!known || known.does(keyed, event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  };
}

/**
 * A new element of these classes, with what stands in it.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {(string | Node)[]} children an empty text is none
 */
export function make(tag, classes = '', ...children) {
  const node = document.createElement(tag);
  node.className = classes;
  node.append(...children.filter(Boolean));
  if (tag === 'button') Object.assign(node, { type: 'button' });
  return node;
}

/** Words for whoever points with a mouse, or for whoever has fingers alone; in HTML: vv-to-point and vv-to-tap (ui/kit/kit.css). */
export function byPointer(/** @type {string} */ point, /** @type {string} */ tap) {
  return globalThis.matchMedia?.('(hover: none)').matches ? tap : point;
}

/** Offers bytes as a download. */
export function offerFile(/** @type {Blob} */ blob, /** @type {string} */ name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A choice of a list. @param {string} value */
export function optionOf(value, label = value) {
  return Object.assign(make('option', '', label), { value });
}
