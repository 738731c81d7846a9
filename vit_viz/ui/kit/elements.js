// What the scripts of the small components share. Texts may come from strangers: they are written with textContent only.

import { routeUrl } from '../../explorer/source.js';

/**
 * How Gradio runs a component: it tells Python of events, and says when a prop has a new value.
 * @typedef {(event: string, data: Record<string, unknown>) => void} Trigger
 * @typedef {(props: string | string[], callback: () => void) => void} Watch
 *
 * A job that takes a while: what it does, and its share from 0 to 1 while it runs.
 * @typedef {{words?: string, error?: string, share?: number | null}} Job
 *
 * A colour bar: the numbers at its ends, and its colours.
 * @typedef {{low: string, high: string, stops: string[]}} ColourBar
 */

/**
 * What a component's module exports as `mount`.
 * @template Props
 * @typedef {(element: HTMLElement, trigger: Trigger, props: Props, watch: Watch) => void} Mount
 */

/**
 * What a route of the server answers; its words, at most so many letters, where it refuses.
 * @param {string} path
 * @param {AbortSignal} [signal]
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

/** Writes a text where there is one, and hides its place where there is none. */
export function showText(/** @type {HTMLElement} */ node, /** @type {string | null | undefined} */ words) {
  node.textContent = words || '';
  node.hidden = !words;
}

/**
 * A new element of these classes.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [classes]
 * @param {string} [words]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, classes = '', words = '') {
  const node = document.createElement(tag);
  node.className = classes;
  if (words) node.textContent = words;
  if (tag === 'button') /** @type {HTMLButtonElement} */ (/** @type {HTMLElement} */ (node)).type = 'button';
  return node;
}

/** A new element of a drawing. @param {string} tag @param {Record<string, string | number>} attributes */
export function makeSvg(tag, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

/** The line of a class in a list: a bar, the name, and a number. */
export function classLine(
  /** @type {string} */ name,
  /** @type {number} */ probability,
  /** @type {string} */ number,
) {
  const line = make('li');
  line.style.setProperty('--share', `${100 * probability}%`);
  const words = make('span', 'vv-class', name);
  words.title = name;
  line.append(words, make('span', 'vv-number', number));
  return line;
}

/** The colours of a bar as a background. */
export function gradient(/** @type {string[]} */ stops) {
  return `linear-gradient(to right, ${stops.join(', ')})`;
}

/**
 * @param {HTMLElement} button
 * @param {() => HTMLElement | null} find what it opens, which may be drawn later than the button
 * @param {(panel: HTMLElement, isOpen: boolean) => void} [show]
 * @returns {() => void} closes it
 */
export function opens(button, find, show = (panel, isOpen) => void (panel.hidden = !isOpen)) {
  const isOpen = () => button.getAttribute('aria-expanded') === 'true';
  const set = (/** @type {boolean} */ wanted) => {
    const panel = find();
    if (!panel) return;
    button.setAttribute('aria-expanded', String(wanted));
    show(panel, wanted);
  };
  const leave = (/** @type {Event} */ event) => {
    const place = /** @type {Node} */ (event.target);
    if (isOpen() && !button.contains(place) && !find()?.contains(place)) set(false);
  };
  button.addEventListener('click', () => set(!isOpen()));
  window.addEventListener('pointerdown', leave);
  window.addEventListener('focusin', leave);
  window.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !isOpen()) return;
    set(false);
    button.focus();
  });
  return () => set(false);
}
