// The explorer in a notebook, as an anywidget: the selection is shared with Python, layers and exact numbers are asked of the kernel.

import { Explorer } from '../explorer/explorer.js';
import { packedSource } from '../explorer/packed.js';
import { Kernel } from './kernel.js';

/** @typedef {import('./kernel.js').Model} Model */

/** The traits that Python and the browser share. */
const SHARED = Object.freeze(['layer', 'head', 'query']);

/** Whether the notebook around is dark: JupyterLab and VS Code say it, elsewhere the system does. */
function isDark() {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === 'false';
  if (vscodeThemeKind) return vscodeThemeKind.includes('dark');
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

/** The explorer's elements, out of reach of the notebook's rules and keys. @param {HTMLElement} el */
function hosted(el, /** @type {string} */ html, /** @type {string} */ css) {
  const outer = document.createElement('div');
  outer.dataset.lmSuppressShortcuts = 'true'; // else "d" would also be JupyterLab's key
  const root = outer.attachShadow({ mode: 'open' });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  const host = document.createElement('div');
  host.className = isDark() ? 'vv-host dark' : 'vv-host';
  host.innerHTML = html;
  root.append(host);
  el.append(outer);
  return host;
}

/**
 * @param {string} html of the explorer
 * @param {string} css
 */
export function widget(html, css) {
  /** @param {{model: Model, el: HTMLElement}} where */
  function render({ model, el }) {
    const { value, tables, packing } = model.get('facts');
    const kernel = new Kernel(model);
    const packed = packedSource((layer) => kernel.layer(layer), packing);
    const source = { ...packed, exact: kernel.exact };
    const told = (/** @type {string} */ _event, /** @type {Record<string, unknown>} */ data) => {
      for (const name of SHARED) model.set(name, data[name]);
      model.save_changes();
    };
    const host = hosted(el, html, css);
    const explorer = new Explorer(host, told, { value: null, tables, busy: '' }, source);
    explorer.parts.closer.hidden = true; // another picture is another explorer
    const shared = () => Object.fromEntries(SHARED.map((name) => [name, model.get(name)]));
    const follow = () => explorer.change(shared(), { event: null });
    explorer.setValue({ ...value, view: { ...value.view, ...shared() } });
    for (const name of SHARED) model.on(`change:${name}`, follow);
    return () => {
      for (const name of SHARED) model.off(`change:${name}`, follow);
      kernel.close();
      explorer.destroy();
    };
  }
  return { render };
}
