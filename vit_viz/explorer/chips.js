// Choosing a token that is not a patch: buttons, and a list where a model has many such tokens after the patches.

import { isNamed, queryWords } from './geometry.js';
import { make } from './labels.js';

/**
 * @typedef {import('./explorer.js').Explorer} Explorer
 * @typedef {import('./geometry.js').Trace} Trace
 */

/** Suffix tokens up to which each has a button of its own; more share a list. */
const CHIPS = 4;

/** What tokens are that are no part of the photo, for whoever rests on their button. @type {Record<string, string>} */
const TOLD = {
  class: 'belongs to no patch; it gathers from all of them, and most models read their answer from it',
  register: 'belongs to no patch; a spare token in which the model keeps what has no place in the photo',
};

/**
 * Buttons for the tokens that are not patches; many suffix tokens share one list.
 * @param {HTMLElement} box
 * @param {Trace} trace
 * @returns {{chips: Map<string, HTMLButtonElement>, list: HTMLSelectElement | null}} the buttons by query
 */
export function makeChips(box, trace) {
  const { prefix, suffix } = trace;
  const many = suffix.length > CHIPS;
  const queries = [...(trace.default_query === 'pool' ? ['pool'] : []), ...prefix, ...(many ? [] : suffix)];
  const chips = new Map();
  for (const query of queries) {
    const chip = make('button', 'vv-chip', chipText(query, chips.has('register 0')));
    chip.type = 'button';
    const told = TOLD[query.split(' ')[0]];
    chip.title = queryWords(query, trace) + (told ? `: ${told}` : '');
    chip.setAttribute('aria-label', queryWords(query, trace));
    chips.set(query, chip);
  }
  const list = many ? makeList(suffix) : null;
  box.replaceChildren(make('span', 'vv-quiet', 'ask'), ...chips.values(), ...(list ? [list] : []));
  return { chips, list };
}

/** "class token", "register 0", and of the registers after it only the number. */
function chipText(/** @type {string} */ query, /** @type {boolean} */ isAfterRegister) {
  if (isAfterRegister) return query.replace(/^register /, '');
  return ['class', 'distillation'].includes(query) ? `${query} token` : query;
}

/** A list of suffix tokens; its first entry stands for none of them. */
function makeList(/** @type {string[]} */ names) {
  const list = make('select', 'vx-list');
  list.setAttribute('aria-label', 'Query: a token after the patches');
  const entries = [`${names[0]} \u2026 ${names[names.length - 1]}`, ...names];
  list.replaceChildren(...entries.map((name, i) => entry(name, i ? name : '')));
  return list;
}

function entry(/** @type {string} */ text, /** @type {string} */ value) {
  const option = make('option', '', text);
  option.value = value;
  return option;
}

/** Marks the query on the buttons and in the list. */
export function markChips(
  /** @type {ReturnType<typeof makeChips>} */ { chips, list },
  /** @type {string} */ query,
  /** @type {Trace} */ trace,
) {
  for (const [name, chip] of chips) chip.setAttribute('aria-pressed', String(name === query));
  if (!list) return;
  list.value = isNamed(query, trace) && !chips.has(query) ? query : '';
  list.toggleAttribute('data-on', list.value !== '');
}

/** Hovering a chip previews its token, a click pins it; so does choosing in the list. */
export function attachChips(/** @type {Explorer} */ explorer) {
  const { chips, list } = explorer.chips;
  list?.addEventListener('change', () => explorer.pin(list.value || explorer.trace?.default_query || 'pool'));
  for (const [query, chip] of chips) {
    chip.addEventListener(
      'pointerenter',
      (event) => event.pointerType === 'mouse' && explorer.preview(query),
    );
    chip.addEventListener('pointerleave', () => explorer.preview(null));
    chip.addEventListener('click', () => explorer.pin(query));
  }
}
