// The controls of a room: data-option says which option of the view one sets, data-for which measures have it. Which options there are,
// their defaults and their limits come from the server, where they are declared.

import { having, make, optionOf, press } from './elements.js';
import { showError } from './notes.js';
/** @import { Option } from '../../explorer/options.js' */

/**
 * An option with what is said of it, and what is chosen.
 * @typedef {Option & {label: string, sentence: string, value: any}} Described
 */

const PAUSE = 200; // ms: while a slider is moved, what it asks for is asked once it rests

const MOST_STEPS = 256; // of a slider; a number of a wider range is typed
const MOST_BUTTONS = 4;

/** A control for an option, with what it does in words and a place for one sentence about a value that is not possible. */
export function makeControl(/** @type {Described} */ option, /** @type {string} */ prefix) {
  const { name, label, sentence } = option;
  const [control, around] = controlOf(option);
  const ids = ['words', 'refusal'].map((what) => `${prefix}-${name}-${what}`);
  const words = having(make('p', 'vv-small', sentence), { id: ids[0] });
  const refusal = having(make('p', 'vv-error vv-refusal'), { id: ids[1], role: 'alert' });
  refusal.hidden = true;
  having(control, { 'data-option': name, 'aria-label': label, 'aria-describedby': ids.join(' ') });
  return make('div', 'vv-stack vv-option', around, words, refusal);
}

/** What is set by hand, and what stands around it. @returns {[HTMLElement, HTMLElement]} */
function controlOf(/** @type {Described} */ { label, choices, default: usual, low = 0, high = 0, step = 1 }) {
  if (typeof usual === 'boolean') {
    const button = make('button', 'vv-button', label);
    return [button, button];
  }
  if (choices && choices.length <= MOST_BUTTONS) {
    const buttons = choices.map((choice) => having(make('button', '', choice), { 'data-value': choice }));
    const group = having(make('div', 'vv-toggle', ...buttons), { role: 'group' });
    return [group, make('div', 'vv-field', label, group)];
  }
  const field = make('label', 'vv-field', label);
  if (choices) {
    const select = make('select', 'vv-control', ...choices.map((value) => optionOf(value)));
    field.append(select);
    return [select, field];
  }
  const input = make('input', 'vv-control');
  const slides = typeof usual === 'number' && (high - low) / step <= MOST_STEPS;
  input.type = slides ? 'range' : 'text';
  field.append(input, ...(slides ? [make('output')] : []));
  return [input, field];
}

/** Says beside each control why its value is not possible, or nothing. */
export function showRefusals(
  /** @type {HTMLElement} */ element,
  /** @type {Record<string, string>} */ refusals,
) {
  for (const control of element.querySelectorAll('[data-option]')) {
    if (!(control instanceof HTMLElement)) continue;
    const words = refusals[control.dataset.option ?? ''];
    const place = control.closest('.vv-option')?.querySelector('.vv-refusal');
    if (place instanceof HTMLElement) showError(place, words);
    if (words) control.setAttribute('aria-invalid', 'true');
    else control.removeAttribute('aria-invalid');
  }
}

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
 * @param {HTMLElement} element @param {Record<string, any>} options
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
    press(control, 'value', value);
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

/** A typed text without spaces around it and its commas; those within its names, such as "register 0", stay. */
export function tidy(/** @type {string} */ text) {
  return text.trim().replace(/\s*,\s*/g, ',');
}

/** What a control says was chosen; null where the event is of none. @returns {Record<string, any> | null} */
export function chosenBy(/** @type {Event} */ event) {
  const target = event.target instanceof Element ? event.target.closest('[data-option], [data-value]') : null;
  if (!(target instanceof HTMLElement)) return null;
  const name = /** @type {HTMLElement | null} */ (target.closest('[data-option]'))?.dataset.option ?? '';
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) {
    if (event.type === 'click') return null;
    if (target instanceof HTMLSelectElement) return { [name]: target.value }; // one of its choices, to the letter
    return { [name]: target.type === 'range' ? Number(target.value) : tidy(target.value) };
  }
  if (event.type !== 'click') return null;
  if (target.dataset.value !== undefined) return { [name]: target.dataset.value };
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
  const here = [...select.options].map(({ value, textContent }) => [value, textContent]);
  if (JSON.stringify(here) === JSON.stringify(choices.map(({ value, label }) => [value, label]))) return;
  select.replaceChildren(...choices.map(({ value, label }) => optionOf(value, label)));
}
