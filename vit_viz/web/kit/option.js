// The control of an option: a button, a few buttons, a list, a slider or a field. Which options there are, their defaults, their limits
// and their words come from the server, where they are declared.

import { Toggle, useSlider } from './parts.js';
import { html, useState } from './preact.js';
/** @import { Option } from '../../explorer/options.js' */

/**
 * An option with what is said of it.
 * @typedef {Option & {label: string, sentence: string}} Described
 */

const MOST_STEPS = 256; // of a slider; a number of a wider range is typed
const MOST_BUTTONS = 4;

/** Which control an option has. @param {Option} option @returns {'switch' | 'buttons' | 'list' | 'slider' | 'text'} */
function kindOf({ choices, default: usual, low = 0, high = 0, step = 1 }) {
  if (typeof usual === 'boolean') return 'switch';
  if (choices) return choices.length <= MOST_BUTTONS ? 'buttons' : 'list';
  return typeof usual === 'number' && (high - low) / step <= MOST_STEPS ? 'slider' : 'text';
}

/**
 * A control with what it does in words, and a place for one sentence about a value that is not possible.
 * @param {object} props
 * @param {Described} props.option
 * @param {any} props.value
 * @param {(value: any) => void} props.choose told the number of a slider, else what was typed or chosen
 * @param {string} props.prefix of ids
 * @param {string} [props.refusal]
 * @param {boolean} [props.hidden]
 * @param {() => void} [props.reset] takes a slider back
 */
export function OptionControl({ option, value, choose, prefix, refusal, hidden = false, reset }) {
  const { name, label, sentence, choices = [] } = option;
  const kind = kindOf(option);
  const ids = ['words', 'refusal'].map((what) => `${prefix}-${name}-${what}`);
  const named = { 'data-option': name, 'aria-label': label, 'aria-describedby': ids.join(' ') };
  const set = { option, value, choose, more: { ...named, 'aria-invalid': refusal ? 'true' : undefined } };
  return html`<div class="vv-stack vv-option" hidden=${hidden}>
    ${
      kind === 'switch'
        ? html`<${Switch} ...${set} label=${label} />`
        : kind === 'buttons'
          ? html`<div class="vv-field">
              ${label}<${Toggle}
                ...${{ ...set, name: 'value', label, choices: choices.map((one) => [one, one]) }}
              />
            </div>`
          : html`<label class="vv-field">${label}<${FIELDS[kind]} ...${set} /></label>`
    }
    ${
      reset &&
      kind === 'slider' &&
      html`<button
        type="button"
        class="vv-bare"
        aria-label=${`Reset ${label} to its default`}
        title=${`Resets ${label} to its default`}
        onClick=${reset}
      >
        ↺
      </button>`
    }
    <p class="vv-small" id=${ids[0]}>${sentence}</p>
    <p class="vv-error vv-refusal" id=${ids[1]} role="alert" hidden=${!refusal}>${refusal}</p>
  </div>`;
}

/** @typedef {{option: Option, value: any, choose: (value: any) => void, more?: Record<string, any>}} Set more: attributes */

/** Yes or no. @param {Set & {label: string}} props */
export function Switch({ option: { name }, value, choose, more, label }) {
  return html`<button
    type="button"
    class="vv-button"
    data-option=${name}
    aria-pressed=${String(value)}
    ...${more}
    onClick=${() => choose(!value)}
  >
    ${label}
  </button>`;
}

/** One of many. @param {Set} props */
function List({ option: { choices = [] }, value, choose, more }) {
  return html`<select
    class="vv-control"
    value=${value}
    ...${more}
    onChange=${(/** @type {any} */ { target }) => choose(target.value)}
  >
    ${choices.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
  </select>`;
}

/** A number, said at once and told once the hand rests. @param {Set} props */
export function Slider({ option: { name, low, high, step = 1 }, value, choose, more }) {
  const { said, listening } = useSlider(value, choose);
  return html`<input
      type="range"
      data-option=${name}
      ...${{ min: low, max: high, step }}
      value=${said}
      ...${more}
      ...${listening}
    /><output>${said}</output>`;
}

/** A text; what somebody types stays until it is told. @param {Set} props */
export function Typed({ option: { name }, value, choose, more }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  return html`<input
    type="text"
    class="vv-control"
    data-option=${name}
    value=${typed ?? String(value)}
    ...${more}
    onInput=${(/** @type {any} */ { target }) => setTyped(target.value)}
    onChange=${(/** @type {any} */ { target }) => choose(tidy(target.value))}
    onBlur=${() => setTyped(null)}
  />`;
}

const FIELDS = { list: List, slider: Slider, text: Typed };

/** A typed text without spaces around it and its commas; those within its names, such as "register 0", stay. */
export function tidy(/** @type {string} */ text) {
  return text.trim().replace(/\s*,\s*/g, ',');
}
