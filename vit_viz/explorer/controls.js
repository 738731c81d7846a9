// The form of the explorer: options in, options out.

import { STRENGTHS, suited } from './styles.js';

/**
 * @typedef {import('./options.js').Option} Option
 * @typedef {import('./state.js').View} View
 */

/** Reads and shows the options of a view; knows nothing about pictures. */
export class Controls {
  /**
   * @param {HTMLElement} root
   * @param {(change: Record<string, unknown>) => void} changed
   */
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

  /** @param {View} view @param {import('./geometry.js').Trace} trace @param {boolean} hasNorms */
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
  else input.value = String(value);
  if (input.type === 'select-one' && !input.children.length) offer(input, option, value);
}

/** Fills a list with what there is to choose. @param {HTMLElement} list @param {Option} option @param {unknown} value */
function offer(list, { choices = [] }, value) {
  for (const choice of choices) {
    const item = document.createElement('option');
    item.value = item.textContent = choice;
    item.selected = choice === value;
    list.append(item);
  }
}
