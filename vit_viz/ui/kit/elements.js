// What the scripts of the small components share. Texts may come from strangers: they are written with textContent only.

import { byKeys, byPointer, KEY_WORDS, make } from '../../explorer/elements.js';
import { routeUrl } from '../../explorer/source.js';

export { byKeys, byPointer, KEY_WORDS, make };

/**
 * A colour bar: the numbers at its ends, and its colours.
 * @typedef {{low: string, high: string, stops: string[]}} ColourBar
 */

/**
 * What fills a part of the page: its module exports it as `mount`.
 * @template Props
 * @typedef {(element: HTMLElement, props: Props) => void} Mount
 */

/**
 * What a route of the server answers; its words, at most so many letters, where it refuses.
 * @param {string} path @param {AbortSignal} [signal]
 */
export async function fetched(path, signal, letters = 300) {
  const answer = await fetch(routeUrl(path), { signal, credentials: 'same-origin' });
  if (answer.ok) return answer;
  throw new Error((await answer.text()).slice(0, letters));
}

/** Finds the parts of a component by their class, which begins with "vv-". */
export function finder(/** @type {Element} */ element) {
  return (/** @type {string} */ name) => /** @type {HTMLElement} */ (element.querySelector(`.vv-${name}`));
}

/** An element with attributes. @template {Element} E @param {E} node @param {Record<string, unknown>} attributes */
export function having(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

/** The data-... of the element that an event is about, or of one around it; null where none has it. */
export function dataAt(/** @type {Event} */ { target }, /** @type {string} */ name) {
  return (
    /** @type {Element | null} */ (target)?.closest(`[data-${name}]`)?.getAttribute(`data-${name}`) ?? null
  );
}

/** The colours of a bar as a background. */
export function gradient(/** @type {string[]} */ stops) {
  return `linear-gradient(to right, ${stops.join(', ')})`;
}

/** What this browser keeps from visit to visit under a name; null where it keeps nothing. */
export function remembered(/** @type {string} */ name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps it, where the browser keeps anything. @param {string} name @param {string} value */
export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // the next visit begins anew
  }
}

/** @type {WeakMap<Element, HTMLElement>} the button of a panel */
const openers = new WeakMap();

/** Remembers which button opens a panel. @param {HTMLElement | null} button @param {HTMLElement | null} panel */
export function unfolds(button, panel) {
  if (button && panel) openers.set(panel, button);
}

/** Gives the focus back; where that place is folded away by now, to the button that unfolds it. */
export function giveFocus(/** @type {HTMLElement | null | undefined} */ place) {
  let seen = place;
  for (let around = /** @type {Element | null} */ (place ?? null); around; around = around.parentElement)
    if (openers.has(around) && !seen?.checkVisibility?.()) seen = openers.get(around);
  seen?.focus();
}
