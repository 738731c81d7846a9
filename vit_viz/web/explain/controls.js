// The controls of the map on the stage: where it begins, the options of its method, how it is drawn, and the formula. The server says
// which there are; what is chosen stands in the link.

import { isPossible, readOption } from '../../explorer/options.js';
import { STRENGTHS } from '../../explorer/styles.js';
import { limit, listenToOptions, makeControl, showOptions } from '../../ui/kit/controls.js';
import { having, make } from '../../ui/kit/elements.js';
import { html, useLayoutEffect, useRef } from '../kit/preact.js';
/** @import { Described } from '../../ui/kit/controls.js' */
/** @import { Store } from '../kit/store.js' */

/**
 * An option with its name in links; layers: of the model, where it is one of them, and negative ones count from the last.
 * @typedef {Omit<Described, 'value'> & {layers?: number}} Control
 *
 * formula: as HTML; options: where the map begins, and those of its method; drawing: how it is drawn.
 * @typedef {{formula?: string, options?: Control[], drawing?: Control[]}} Told
 */

/** @param {{store: Store, told: Told | null}} props */
export function Controls({ store, told }) {
  const { formula = '', options = [], drawing = [] } = told ?? {};
  return html`<details class="vv-formula vv-map-fold">
    <summary>Options and formula of this map</summary>
    <div class="vv-map-formula" dangerouslySetInnerHTML=${{ __html: formula }}></div>
    <${Boxed} ...${{ store, controls: options, look: 'vv-map-options' }} />
    <${Boxed} ...${{ store, controls: drawing, look: 'vv-map-drawing' }} />
  </details>`;
}

/** Controls of the kit, which stay while the same ones are told. @param {{store: Store, controls: Control[], look: string}} props */
function Boxed({ store, controls, look }) {
  const box = useRef(/** @type {any} */ (null));
  const now = useRef(controls);
  now.current = controls;
  const values = Object.fromEntries(controls.map((control) => [control.name, valueOf(control, store)]));
  const isHeat = store.view.style.value === 'heat';
  useLayoutEffect(() => {
    listenToOptions(box.current, (chosen) => {
      for (const control of now.current)
        if (control.name in chosen) store.set(...changeOf(control, chosen[control.name]));
    });
  }, []);
  useLayoutEffect(() => {
    box.current.replaceChildren(...controls.map((control) => madeOf(control, store)));
    limit(box.current, controls);
  }, [JSON.stringify(controls)]);
  useLayoutEffect(() => {
    showOptions(box.current, values, '', () => true);
    const table = box.current.querySelector('[data-option=table]')?.closest('.vv-option');
    if (table) table.hidden = !isHeat;
  });
  return html`<div class=${look} ref=${box}></div>`;
}

/** A control; a slider has a button that takes it back. @param {Control} control @param {Store} store */
function madeOf(control, store) {
  const { link, label, default: usual } = control;
  const made = makeControl(/** @type {Described} */ (control), 'vv-map');
  if (!made.querySelector('[type=range]')) return made;
  const reset = make('button', 'vv-bare', '↺');
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
