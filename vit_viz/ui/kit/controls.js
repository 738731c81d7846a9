// The controls of a room: data-option says which option of the view one sets, data-for which measures have it. Which options there are,
// their defaults and their limits come from the server, where they are declared.

import { make } from './elements.js';

/** @typedef {import('../../explorer/state.js').Option} Option */

const PAUSE = 200; // ms: while a slider is moved, what it asks for is asked once it rests

/** Gives every slider the limits of its option. @param {HTMLElement} element @param {Option[]} schema */
export function limit(element, schema) {
  for (const { name, low, high, step = 1 } of schema) {
    const control = element.querySelector(`[data-option=${name}]`);
    if (control instanceof HTMLInputElement && control.type === 'range')
      Object.assign(control, { min: String(low), max: String(high), step: String(step) });
  }
}

/**
 * Shows what is chosen.
 * @param {HTMLElement} element
 * @param {Record<string, any>} options
 * @param {string} measure whose controls are shown
 * @param {(control: HTMLElement) => boolean} fits
 */
export function showOptions(element, options, measure, fits) {
  for (const part of element.querySelectorAll('[data-for]')) {
    if (part instanceof HTMLElement)
      part.hidden = !(part.dataset.for ?? '').split(' ').includes(measure) || !fits(part);
  }
  for (const control of element.querySelectorAll('[data-option]')) {
    if (!(control instanceof HTMLElement)) continue;
    const value = options[control.dataset.option ?? ''];
    if (control instanceof HTMLInputElement || control instanceof HTMLSelectElement)
      showValue(control, value);
    else if (control instanceof HTMLButtonElement) control.setAttribute('aria-pressed', String(value));
    for (const button of control.querySelectorAll('[data-value]'))
      button.setAttribute(
        'aria-pressed',
        String(/** @type {HTMLElement} */ (button).dataset.value === value),
      );
  }
}

/** @param {HTMLInputElement | HTMLSelectElement} control @param {unknown} value */
function showValue(control, value) {
  if (control === document.activeElement && control instanceof HTMLInputElement) return; // it is being changed
  control.value = String(value);
  showOutput(control);
}

function showOutput(/** @type {HTMLElement} */ control) {
  const output = control.parentElement?.querySelector('output');
  if (output && control instanceof HTMLInputElement) output.textContent = control.value;
}

/** What a control says was chosen; null where the event is of none. @returns {Record<string, any> | null} */
export function chosenBy(/** @type {Event} */ event) {
  const target = event.target instanceof Element ? event.target.closest('[data-option], [data-value]') : null;
  if (!(target instanceof HTMLElement)) return null;
  const name = /** @type {HTMLElement | null} */ (target.closest('[data-option]'))?.dataset.option ?? '';
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) {
    if (event.type === 'click') return null;
    const number = target instanceof HTMLInputElement && target.type === 'range';
    return { [name]: number ? Number(target.value) : target.value.replace(/\s/g, '') };
  }
  if (event.type !== 'click') return null;
  if (target.dataset.value) return { [name]: target.dataset.value };
  return target instanceof HTMLButtonElement
    ? { [name]: target.getAttribute('aria-pressed') !== 'true' }
    : null;
}

/** Tells of every choice; of a slider that is moved once it rests. @param {HTMLElement} element @param {(chosen: Record<string, any>) => void} tell */
export function listenToOptions(element, tell) {
  let timer = 0;
  const told = (/** @type {Event} */ event) => {
    const chosen = chosenBy(event);
    clearTimeout(timer);
    if (chosen && event.type !== 'input') tell(chosen);
    else if (chosen) timer = window.setTimeout(() => tell(chosen), PAUSE);
  };
  element.addEventListener('click', (event) => {
    if (chosenBy(event)) told(event);
  });
  element.addEventListener('change', told);
  element.addEventListener('input', (event) => {
    if (!(event.target instanceof HTMLInputElement) || event.target.type !== 'range') return;
    showOutput(event.target);
    told(event);
  });
}

/** Offers choices, by their values; a list that holds them already is left alone, since it may be open. */
export function offer(
  /** @type {HTMLSelectElement} */ select,
  /** @type {{value: string, label: string}[]} */ choices,
) {
  const here = [...select.options].map(({ value, text }) => `${value} ${text}`).join();
  if (here === choices.map(({ value, label }) => `${value} ${label}`).join()) return;
  const options = choices.map(({ value, label }) => {
    const option = make('option', '', label);
    option.value = value;
    return option;
  });
  select.replaceChildren(...options);
}
