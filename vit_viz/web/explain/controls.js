// The controls of the map on the stage: where it begins, the options of its method, how it is drawn, and the formula. What is chosen stands
// in the link.

import { isPossible, readOption } from '../../explorer/options.js';
import { STRENGTHS } from '../../explorer/styles.js';
import { OptionControl } from '../kit/option.js';
import { html } from '../kit/preact.js';
/** @import { Described } from '../kit/option.js' */
/** @import { Store } from '../kit/store.js' */

/**
 * An option with its name in links; is_layer: whether it is one of the model's layers, of which there are `layers`, and negative ones count
 * from the last.
 * @typedef {Described & {is_layer?: boolean, layers?: number}} Control
 */

/** @param {{store: Store, formula?: string, options: Control[], drawing: Control[]}} props formula: as HTML; drawing: how the map is drawn */
export function Controls({ store, formula = '', options, drawing }) {
  return html`<details class="vv-formula vv-map-fold">
    <summary>Options and formula of this map</summary>
    <div class="vv-map-formula" dangerouslySetInnerHTML=${{ __html: formula }}></div>
    <${Boxed} ...${{ store, controls: options, look: 'vv-map-options' }} />
    <${Boxed} ...${{ store, controls: drawing, look: 'vv-map-drawing' }} />
  </details>`;
}

/** Where the kit's controls say what is chosen, and are told. @param {{store: Store, controls: Control[], look: string}} props */
function Boxed({ store, controls, look }) {
  const isHeat = store.view.style.value === 'heat';
  return html`<div class=${look}>
    ${controls.map(
      (control) =>
        html`<${OptionControl}
          key=${control.name}
          option=${control}
          prefix="vv-map"
          value=${valueOf(control, store)}
          choose=${(/** @type {unknown} */ chosen) => store.set(...changeOf(control, chosen))}
          reset=${() => store.set({ [control.link]: control.default })}
          hidden=${control.name === 'table' && !isHeat}
        />`,
    )}
  </div>`;
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
