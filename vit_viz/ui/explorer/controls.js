// The form of the explorer: options in, options out.

/**
 * @typedef {import('./geometry.js').Trace} Trace
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
    this.lastMask = 0.6;
    root.addEventListener('input', (event) => this.read(/** @type {HTMLInputElement} */ (event.target)));
  }

  /** Inputs by the last part of their name. */
  inputs(/** @type {string} */ name) {
    return /** @type {HTMLInputElement[]} */ ([...this.root.querySelectorAll(`[name$="-${name}"]`)]);
  }

  /** @param {HTMLInputElement} input */
  read(input) {
    const name = input.name.replace(/^.*-/, '');
    if (name === 'direction' || name === 'scale' || name === 'table') this.changed({ [name]: input.value });
    if (name === 'alpha') this.changed({ alpha: Number(input.value) });
    if (name === 'smooth' || name === 'norm' || name === 'clip') this.changed({ [name]: input.checked });
    if (name === 'masked') this.changed({ mask: input.checked ? this.lastMask : 0 });
    if (name === 'mask') this.changed({ mask: Number(input.value) });
  }

  /** @param {View} view @param {boolean} hasNorms */
  show(view, hasNorms) {
    for (const name of /** @type {const} */ (['direction', 'scale'])) {
      for (const input of this.inputs(name)) input.checked = input.value === view[name];
    }
    this.inputs('table')[0].value = view.table;
    this.inputs('alpha')[0].value = String(view.alpha);
    for (const name of /** @type {const} */ (['smooth', 'norm', 'clip']))
      this.inputs(name)[0].checked = view[name];
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
