// The controls of the map on the stage: where it begins, the options of its method, how it is drawn, and the formula. The server says
// which there are; what is chosen stands in the link.

import { isPossible, readOption } from '../../explorer/options.js';
import { STRENGTHS } from '../../explorer/styles.js';
import { limit, listenToOptions, makeControl, showOptions } from '../../ui/kit/controls.js';
import { finder, having, make } from '../../ui/kit/elements.js';
import { effect, signal } from '../kit/preact.js';
/** @import { Described } from '../../ui/kit/controls.js' */
/** @import { Store } from '../kit/store.js' */

/**
 * An option with its name in links; layers: of the model, where it is one of them, and negative ones count from the last.
 * @typedef {Omit<Described, 'value'> & {layers?: number}} Control
 *
 * formula: as HTML; options: where the map begins, and those of its method; drawing: how it is drawn.
 * @typedef {{formula: string, options: Control[], drawing: Control[]}} Controls
 */

/**
 * The controls in an element, over what the store holds.
 * @param {HTMLElement} element @param {Store} store
 * @returns {(controls: Controls) => void} shows those of another map
 */
export function controlsIn(element, store) {
  const find = finder(element);
  const told = signal(/** @type {Controls} */ ({ formula: '', options: [], drawing: [] }));
  const boxes = /** @type {const} */ (['options', 'drawing']).map((part) => {
    const box = find(`map-${part}`);
    let laidOut = '';
    listenToOptions(box, (chosen) => {
      for (const control of told.value[part])
        if (control.name in chosen) store.set(...changeOf(control, chosen[control.name]));
    });
    return () => {
      const controls = told.value[part];
      const written = JSON.stringify(controls);
      if (written !== laidOut) {
        box.replaceChildren(...controls.map((control) => madeOf(control, store)));
        limit(box, controls);
      }
      laidOut = written;
      const values = controls.map((control) => [control.name, valueOf(control, store)]);
      showOptions(box, Object.fromEntries(values), '', () => true);
    };
  });
  effect(() => {
    boxes.forEach((show) => show());
    const table = find('map-drawing').querySelector('[data-option=table]')?.closest('.vv-option');
    if (table instanceof HTMLElement) table.hidden = store.view.style.value !== 'heat';
  });
  effect(() => {
    find('map-formula').innerHTML = told.value.formula; // our own words and MathML, escaped in Python
  });
  return (controls) => void (told.value = controls);
}

/** A control; a slider has a button that takes it back. @param {Control} control @param {Store} store */
function madeOf(control, store) {
  const { link, label, default: usual } = control;
  const made = makeControl(/** @type {Described} */ (control), 'vv-map');
  if (!made.querySelector('[type=range]')) return made;
  const reset = having(make('button', 'vv-bare', '↺'), { type: 'button' });
  having(reset, { 'aria-label': `Reset ${label} to its default`, title: `Resets ${label} to its default` });
  reset.addEventListener('click', () => store.set({ [link]: usual }));
  made.children[0].after(reset);
  return made;
}

/** What a choice makes of the link. @param {Control} control @param {unknown} chosen @returns {[Record<string, any>, {soon: boolean}]} */
function changeOf(control, chosen) {
  const value = typeof chosen === 'string' ? readOption(control, chosen) : chosen;
  if (!isPossible(control, value)) return [{}, { soon: false }];
  const strength = control.link === 'style' ? { alpha: STRENGTHS[String(value)] } : {};
  return [{ [control.link]: value, ...strength }, { soon: typeof value === 'number' }];
}

/** What the link says of an option. @param {Control} control @param {Store} store */
function valueOf({ link, layers = 0, default: usual }, store) {
  const { value } = store.view[link];
  if (link === 'q') return value || usual;
  return value < 0 ? value + layers : value;
}
