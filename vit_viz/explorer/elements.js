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
