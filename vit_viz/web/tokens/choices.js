// What can be chosen in the Tokens tab: the controls of the chosen row, the tokens that are no patches, and the class of the lens.

import { tokenWords } from '../../explorer/geometry.js';
import { Slider, Switch, Typed } from '../kit/option.js';
import { Classes, Toggle } from '../kit/parts.js';
import { html } from '../kit/preact.js';
/** @import { Option } from '../../explorer/options.js' */
/** @import { Choices, Target } from '../kit/parts.js' */
/** @import { Measure } from './questions.js' */
/** @import { Parts } from './room.js' */
/** @import { Options } from './scene.js' */

/** What a choice is called, where its name does not say it. @type {Record<string, string>} */
const WORDS = { layer: 'each layer', shared: 'all alike', cut: 'cut in two' };

/** How the box is typed. */
const BOX = { placeholder: 'left,top,right,bottom', autocomplete: 'off', spellcheck: false };

/** The controls of each question, by their options, with what they are called, and what stands behind them. @type {Partial<Record<Measure, [keyof Options, string, string?][]>>} */
const CONTROLS = {
  similarity: [['token_scale', 'Scale of the photos']],
  components: [
    ['token_foreground', 'foreground only', 'Split at the first component and colour the inner side alone'],
    ['token_whitened', 'whitened', 'Give each component the same variance'],
    ['token_second', 'colours shared with'],
  ],
  norms: [
    ['token_scale', 'Scale of the photos'],
    ['token_factor', 'outlier: longer than', ' medians'],
    [
      'token_register',
      'add a register',
      'Give what outlier patches do to a token of its own, without training, and compare',
    ],
  ],
  lens: [['token_scale', 'Scale of the photos']],
  layers: [['token_scale', 'Scale of the photos']],
  segments: [
    ['token_method', 'How patches are grouped'],
    ['token_count', 'segments'],
    ['token_box', 'box'],
  ],
};

/** What can be chosen before there is a photo. @type {Pick<import('./scene.js').Subject, 'prefix' | 'target' | 'roles' | 'classes' | 'pictures'>} */
const NOBODY = { prefix: [], target: '', roles: [], classes: null, pictures: [] };

/** @param {Parts & {classes: Target, aim: (target: string) => void, find: Choices['find'], save: (button: Element) => void, children: any}} props aim: at a class; '': at none */
export function Controls({
  scene,
  options,
  schema,
  boxing,
  classes,
  choose,
  aim,
  find,
  pin,
  save,
  children,
}) {
  const { token_measure: measure } = options;
  const { prefix, target, roles, classes: all, pictures } = scene?.subject ?? NOBODY;
  const listed = all?.classes ?? [];
  const areValues = listed.some(({ value }) => value !== undefined);
  const fits = (/** @type {string} */ name) => {
    if (name === 'token_scale') return measure !== 'lens' || !listed.length || areValues; // probabilities have one scale in all layers
    return name !== 'token_count' || options.token_method !== 'cut';
  };
  const control = (/** @type {keyof Options} */ name, /** @type {string} */ label, more = '') =>
    html`<${Control}
      key=${name}
      ...${{ option: schema.find((one) => one.name === name), value: options[name], label, more, pictures }}
      choose=${(/** @type {any} */ value) => choose({ [name]: value })}
    />`;
  const title = html`<span class="vv-quiet">how sure of</span> ${
      !areValues && // no class is the likeliest
      html`<button
        class="vv-chip vv-tokens-likeliest"
        aria-pressed=${String(!target)}
        onClick=${() => aim('')}
      >
        its likeliest class
      </button>`
    }`;
  return html`<div class="vv-tokens-choices vv-stack">
    <div class="vv-row">
      ${roles.length !== 1 && (measure === 'segments' ? control('token_segment_role', 'Which vectors are grouped') : control('token_role', 'Which vectors are compared', 'vv-roles'))}
      <div class="vv-tokens-named vv-row" role="group" aria-label="A token that is no patch">
        ${prefix.map(
          (name, token) =>
            // detection tokens come after the patches, may be a hundred, and are left to links
            html`<button
              key=${name}
              class="vv-chip"
              data-token=${name}
              aria-pressed=${String(token === scene?.pinned)}
              onClick=${() => pin(name)}
            >
              ${tokenWords(name)}
            </button>`,
        )}
      </div>
      ${
        scene &&
        html`<button
          class="vv-button vv-tokens-save"
          data-save
          onClick=${(/** @type {any} */ { currentTarget }) => save(currentTarget)}
        >
          Save
        </button>`
      }
    </div>
    <div class="vv-tokens-head vv-row">
      ${CONTROLS[measure]?.filter(([name]) => fits(name)).map((one) => control(...one))}
      ${measure === 'segments' && html`<${BoxButtons} ...${{ options, boxing, choose }} />`}
    </div>
    ${
      measure === 'lens' &&
      html`<div class="vv-tokens-classes">
        <${Classes}
          ...${{ target: classes, find, title, label: 'The class that the photos are of' }}
          why=${(/** @type {number} */ index) => aim(String(index))}
        />
      </div>`
    }
    ${children}
  </div>`;
}

/** @param {Pick<Parts, 'options' | 'boxing' | 'choose'>} props */
function BoxButtons({ options, boxing, choose }) {
  const { value } = boxing;
  return html`<button
      class="vv-button vv-tokens-draw"
      aria-pressed=${String(value)}
      onClick=${() => (boxing.value = !value)}
    >
      draw a box
    </button>
    ${
      options.token_box &&
      html`<button class="vv-button vv-plain vv-tokens-no-box" onClick=${() => choose({ token_box: '' })}>
        no box
      </button>`
    }`;
}

/**
 * The control of an option, as its kind is.
 * @param {object} props
 * @param {Option} props.option
 * @param {any} props.value
 * @param {string} props.label
 * @param {string} props.more title of a button, looks of a group, words behind a slider
 * @param {{id: string, name: string}[]} props.pictures that can be chosen
 * @param {(value: any) => void} props.choose
 */
function Control({ option, value, label, more, pictures, choose }) {
  const { name, choices, default: usual } = option;
  if (choices)
    return html`<${Toggle}
      ...${{ name: 'value', option: name, label, look: more, value, choose }}
      choices=${choices.map((one) => [one, WORDS[one] ?? one])}
    />`;
  const set = { option, value, choose };
  if (typeof usual === 'boolean') return html`<${Switch} ...${{ ...set, label, more: { title: more } }} />`;
  if (typeof usual === 'number')
    return html`<label class="vv-field">${label} <${Slider} ...${set} />${more}</label>`;
  if (name === 'token_box')
    return html`<label class="vv-field">${label} <${Typed} ...${{ ...set, more: BOX }} /></label>`;
  return html`<label class="vv-field"
    >${label}${' '}
    <select
      class="vv-control"
      data-option=${name}
      value=${value}
      onChange=${(/** @type {any} */ { target }) => choose(target.value)}
    >
      <option value="">no other photo</option>
      ${pictures.map((one) => html`<option key=${one.id} value=${one.id}>${one.name}</option>`)}
    </select>
  </label>`;
}
