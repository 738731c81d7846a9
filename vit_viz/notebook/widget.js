// The explorer in a notebook, as an anywidget: the selection is shared with Python, layers and exact numbers are asked of the kernel.

import { ALONE, Explorer } from '../explorer/explorer.js';
import { packedSource } from '../explorer/packed.js';

/**
 * What anywidget gives to a widget: its traits and its line to the kernel.
 * @typedef {{get: (name: string) => any, set: (name: string, value: unknown) => void, save_changes: () =>
 *   void, on: (name: string, hear: (...args: any[]) => void) => void, off: (name: string, hear: (...args:
 *   any[]) => void) => void, send: (content: unknown) => void}} Model
 *
 * @typedef {DataView<ArrayBuffer>} Bytes
 * @typedef {{name: string, shape: number[], dtype: string}} Described
 * @typedef {{facts: any, arrays: Record<string, {shape: number[], values: Float32Array}>}} Answer
 */

export class Kernel {
  /** @type {Map<number, ((bytes: Uint8Array<ArrayBuffer>) => void)[]>} */ layers = new Map();
  /** @type {Map<number, (content: any, views: Bytes[]) => void>} */ questions = new Map();
  asked = 0;

  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.hear = (/** @type {any} */ content, /** @type {Bytes[]} */ views = []) => {
      if ('layer' in content) this.hearLayer(content.layer, views[0]);
      this.questions.get(content.ask)?.(content, views);
      this.questions.delete(content.ask);
    };
    model.on('msg:custom', this.hear);
  }

  /** @param {number} layer @param {Bytes} view */
  hearLayer(layer, view) {
    const waiting = this.layers.get(layer) ?? [];
    this.layers.delete(layer);
    for (const take of waiting) take(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  }

  /** The bytes of a layer. @param {number} layer @returns {Promise<Uint8Array<ArrayBuffer>>} */
  layer(layer) {
    return new Promise((take) => {
      this.layers.set(layer, [...(this.layers.get(layer) ?? []), take]);
      this.model.send({ layer });
    });
  }

  /**
   * The answer to a question by its name, as Python gives it.
   * @param {string} question @param {Record<string, unknown>} asked @returns {Promise<Answer>}
   */
  ask(question, asked) {
    this.asked += 1;
    const ask = this.asked;
    return new Promise((take, refuse) => {
      this.questions.set(ask, ({ error, facts, arrays }, views) =>
        error ? refuse(new Error(error)) : take({ facts, arrays: read(arrays, views) }),
      );
      this.model.send({ ask, question, asked });
    });
  }

  /**
   * The numbers of one map in fp32; null where the kernel cannot say them.
   * @param {import('../explorer/geometry.js').Trace} _trace @param {import('../explorer/state.js').View} view
   * @returns {Promise<import('../explorer/server.js').Numbers | null>}
   */
  exact = (_trace, { layer, head, query, direction, norm }) =>
    this.ask('look', { layer, head: String(head), query, direction, norm }).then(numbersOf, () => null);

  close() {
    this.model.off('msg:custom', this.hear);
    this.layers.clear();
    this.questions.clear();
  }
}

/** Every array of fp32 by its name. @param {Described[]} described @param {Bytes[]} views */
function read(described, views) {
  const floats = described.map(({ name, shape }, i) => {
    const { buffer, byteOffset, byteLength } = views[i];
    return [name, { shape, values: new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength)) }];
  });
  return Object.fromEntries(floats.filter((_, i) => described[i].dtype === '<f4'));
}

/** What the explorer says of a map. @param {Answer} answer */
function numbersOf({ facts, arrays }) {
  const { values, shape } = arrays.values;
  let best = 0;
  let patches = 0;
  values.forEach((value, i) => {
    patches += value;
    if (value > values[best]) best = i;
  });
  /** @type {[number, number] | null} */
  const peak = values.every((value) => value === values[0])
    ? null
    : [Math.floor(best / shape[1]), best % shape[1]];
  return { max: values[best], peak, patches, prefix: facts.prefix, suffix: facts.suffix_kinds };
}

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
  return { outer, host };
}

/** After which a kernel that has said nothing is taken for gone, as in a notebook that is only read. */
const SILENT_MS = 5000;

/**
 * Shows the picture of what was chosen in place of the explorer as long as no kernel is heard; returns what ends that.
 * @param {Model} model @param {HTMLElement} el @param {HTMLElement} outer of the explorer
 */
function withoutKernel(model, el, outer) {
  const picture = document.createElement('img');
  const waits = window.setTimeout(() => {
    if (!model.get('still')) return;
    picture.src = model.get('still');
    picture.style.maxWidth = '100%';
    outer.hidden = true;
    el.append(picture);
  }, SILENT_MS);
  const heard = () => {
    clearTimeout(waits);
    picture.remove();
    outer.hidden = false;
    model.off('msg:custom', heard);
  };
  model.on('msg:custom', heard);
  return heard;
}

/** @param {string} html of the explorer @param {string} css */
export function widget(html, css) {
  /** @param {{model: Model, el: HTMLElement}} where */
  function render({ model, el }) {
    const { value, tables, packing } = model.get('facts');
    const kernel = new Kernel(model);
    const packed = packedSource((layer) => kernel.layer(layer), packing);
    const source = { ...packed, exact: kernel.exact };
    const keep = (
      /** @type {Record<string, any>} */ view,
      /** @type {unknown} */ _,
      /** @type {{byUser: boolean}} */ { byUser },
    ) => {
      if (!byUser) return; // Python has it
      for (const name of SHARED) model.set(name, view[name]);
      model.save_changes();
    };
    const shared = () => Object.fromEntries(SHARED.map((name) => [name, model.get(name)]));
    const { outer, host } = hosted(el, html, css);
    const isHeard = withoutKernel(model, el, outer);
    const explorer = new Explorer(host, { ...ALONE, chosen: shared, keep }, tables, source);
    explorer.parts.closer.hidden = true; // another picture is another explorer
    const follow = () => explorer.change(shared(), { byUser: false });
    explorer.show(value);
    for (const name of SHARED) model.on(`change:${name}`, follow);
    return () => {
      for (const name of SHARED) model.off(`change:${name}`, follow);
      isHeard();
      kernel.close();
      explorer.destroy();
    };
  }
  return { render };
}
