// The form of the explorer: options in, options out.

import { make, optionOf } from './elements.js';
import { isNamed, queryWords } from './geometry.js';
import { STRENGTHS, suited } from './styles.js';
/** @import { Explorer } from './explorer.js' */
/** @import { Trace } from './geometry.js' */
/** @import { Option } from './options.js' */
/** @import { View } from './state.js' */

/** Reads and shows the options of a view; knows nothing about pictures. */
export class Controls {
  /** @param {HTMLElement} root @param {(change: Record<string, unknown>) => void} changed */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    /** @type {Option[]} */
    this.options = [];
    this.lastMask = 0.6;
    this.style = 'light';
    root.addEventListener('input', (event) => this.read(/** @type {HTMLInputElement} */ (event.target)));
  }

  /** Inputs by the last part of their name. */
  inputs(/** @type {string} */ name) {
    return /** @type {HTMLInputElement[]} */ ([...this.root.querySelectorAll(`[name$="-${name}"]`)]);
  }

  /** @param {HTMLInputElement} input */
  read(input) {
    const name = input.name.replace(/^.*-/, '');
    if (name === 'masked') return this.changed({ mask: input.checked ? this.lastMask : 0 });
    if (name === 'style') return this.changed({ style: input.value, alpha: STRENGTHS[input.value] });
    if (name === 'table' && this.style !== 'heat')
      // only heat has colours to choose
      return this.changed({ table: input.value, style: 'heat', alpha: STRENGTHS.heat });
    const option = this.options.find((one) => one.name === name);
    if (option) this.changed({ [name]: valueOf(input, option) });
  }

  /** @param {View} view @param {Trace} trace @param {boolean} hasNorms */
  show(view, { options, unlit = '' }, hasNorms) {
    this.options = options;
    const shown = { ...view, style: suited(view.style, unlit) };
    for (const option of options) {
      for (const input of this.inputs(option.name))
        showValue(input, option, shown[/** @type {keyof View} */ (option.name)]);
    }
    const [light] = this.inputs('style');
    light.disabled = unlit !== '';
    light.title = unlit && `This photo is ${unlit} for light`;
    this.style = view.style;
    this.inputs('norm')[0].disabled = !hasNorms && !view.norm;
    this.inputs('masked')[0].checked = view.mask > 0;
    if (view.mask) this.lastMask = view.mask;
    this.inputs('mask')[0].value = String(this.lastMask);
    const share = /** @type {HTMLElement} */ (this.root.querySelector('[data-vv="mask-share"]'));
    share.hidden = !view.mask;
    const text = /** @type {HTMLElement} */ (this.root.querySelector('[data-vv="mask-text"]'));
    text.textContent = `${Math.round(this.lastMask * 100)}%`;
  }
}

/** @param {HTMLInputElement} input @param {Option} option @returns {unknown} */
function valueOf(input, option) {
  if (typeof option.default === 'boolean')
    return input.type === 'radio' ? input.value === '1' : input.checked;
  return typeof option.default === 'number' ? Number(input.value) : input.value;
}

/** @param {HTMLInputElement} input @param {Option} option @param {unknown} value */
function showValue(input, option, value) {
  if (input.type === 'radio')
    input.checked = input.value === (typeof value === 'boolean' ? String(Number(value)) : value);
  else if (input.type === 'checkbox') input.checked = Boolean(value);
  else {
    if (input.type === 'select-one' && !input.children.length)
      input.append(...(option.choices ?? []).map((choice) => optionOf(choice)));
    input.value = String(value);
  }
}

/** Suffix tokens up to which each has a button of its own; more share a list. */
const CHIPS = 4;

/** What tokens are that are no part of the photo, for whoever rests on their button. @type {Record<string, string>} */
const TOLD = {
  class: 'belongs to no patch; it gathers from all of them, and most models read their answer from it',
  register: 'belongs to no patch; a spare token in which the model keeps what has no place in the photo',
};

/**
 * Buttons for the tokens that are not patches; many suffix tokens share one list.
 * @param {HTMLElement} box @param {Trace} trace
 * @returns {{chips: Map<string, HTMLButtonElement>, list: HTMLSelectElement | null}} the buttons by query
 */
export function makeChips(box, trace) {
  const { prefix, suffix } = trace;
  const many = suffix.length > CHIPS;
  const queries = [...(trace.default_query === 'pool' ? ['pool'] : []), ...prefix, ...(many ? [] : suffix)];
  const chips = new Map();
  for (const query of queries) {
    const chip = make('button', 'vv-chip', chipText(query, chips.has('register 0')));
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
  const all = optionOf('', `${names[0]} \u2026 ${names[names.length - 1]}`);
  const list = make('select', 'vx-list', all, ...names.map((name) => optionOf(name)));
  list.setAttribute('aria-label', 'Query: a token after the patches');
  return list;
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
