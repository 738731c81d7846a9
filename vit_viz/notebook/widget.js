// The Look tab in a notebook, as an anywidget: the selection is shared with Python, layers and exact numbers are asked of the kernel.

import { pageSource } from '../offline/source.js';
import { asker } from '../web/kit/ask.js';
import { signal } from '../web/kit/preact.js';
import { unpacked } from '../web/kit/safetensors.js';
import { Store } from '../web/kit/store.js';
import { look } from '../web/look/room.js';
/** @import { Place } from '../web/kit/store.js' */

/**
 * What anywidget gives to a widget: its traits and its line to the kernel.
 * @typedef {{get: (name: string) => any, set: (name: string, value: unknown) => void, save_changes: () =>
 *   void, on: (name: string, hear: (...args: any[]) => void) => void, off: (name: string, hear: (...args:
 *   any[]) => void) => void, send: (content: unknown) => void}} Model
 *
 * @typedef {DataView<ArrayBuffer>} Bytes
 * @typedef {{facts: any, arrays: Record<string, {shape: number[], data: any}>}} Answer
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
    for (const take of waiting) take(bytesIn(view));
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
  ask = (question, asked) => {
    this.asked += 1;
    const ask = this.asked;
    return new Promise((take, refuse) => {
      this.questions.set(ask, ({ error }, [view]) =>
        error ? refuse(new Error(error)) : take(/** @type {Answer} */ (unpacked(bytesIn(view).buffer))),
      );
      this.model.send({ ask, question, asked });
    });
  };

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

/** A copy of what arrived. @param {Bytes} view */
function bytesIn({ buffer, byteOffset, byteLength }) {
  return new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength));
}

/** What the explorer says of a map. @param {Answer} answer */
function numbersOf({ facts, arrays }) {
  const { shape } = arrays.values;
  const values = /** @type {Float32Array} */ (arrays.values.data);
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

/** The traits that Python and the browser share, and what links call them. */
const SHARED = Object.freeze({ layer: 'layer', head: 'head', query: 'q' });

/**
 * The traits as a part of the link, whose other parts nobody but this view knows.
 * @param {Model} model @param {string} usual query
 */
function placeOf(model, usual) {
  const rest = new URLSearchParams();
  /** @type {(() => void)[]} */
  const heard = [];
  const shared = Object.entries(SHARED);
  /** @type {Place} */
  const place = {
    search() {
      for (const [name, link] of shared) rest.set(link, model.get(name));
      return rest.toString();
    },
    write(change) {
      for (const [link, text] of Object.entries(change)) rest.set(link, text ?? '');
      const told = shared.filter(([, link]) => link in change);
      for (const [name, link] of told) model.set(name, traitOf(change[link] ?? usual));
      if (told.length) model.save_changes();
    },
    listen(changed) {
      heard.push(changed);
      for (const [name] of shared) model.on(`change:${name}`, changed);
    },
  };
  const end = () => {
    for (const changed of heard) for (const [name] of shared) model.off(`change:${name}`, changed);
  };
  return { place, end };
}

/** A part of a link as Python has it. @param {string} text */
function traitOf(text) {
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** Whether the notebook around is dark now: JupyterLab and VS Code say it, elsewhere the system does. */
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
  const follow = () => void (host.className = isDark() ? 'vv-host dark' : 'vv-host');
  const theme = new MutationObserver(follow);
  theme.observe(document.body, { attributes: true });
  follow();
  host.innerHTML = html;
  root.append(host);
  el.append(outer);
  return { outer, host, theme };
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
    const { tables, ...facts } = model.get('facts');
    const kernel = new Kernel(model);
    const source = {
      ...pageSource(facts, {
        layer: (layer) => kernel.layer(layer),
        answers: () => true,
        answer: kernel.ask,
      }),
      exact: kernel.exact,
    };
    const { place, end } = placeOf(model, facts.value.default_query);
    const page = { store: new Store(facts.fields, place), source, ask: asker(source), turn: signal(0) };
    const { outer, host, theme } = hosted(el, html, css);
    const isHeard = withoutKernel(model, el, outer);
    const explorer = look(host, page, tables);
    return () => {
      end();
      isHeard();
      kernel.close();
      theme.disconnect();
      explorer.destroy();
    };
  }
  return { render };
}
