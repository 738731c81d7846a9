// In how many patches the photo is looked at and how it is fitted into the model's input: what there is to choose from, and what it costs.

import { html } from '../kit/preact.js';
import { Folded } from './opener.js';
/** @import { Header } from './header.js' */

const DINO = 'dino'; // the size of the figures of the DINO paper, where it is offered stretched to a square
const DINO_PATCHES = 60;
const OWN = '0';

/** @typedef {{offered: Record<string, [words: string, value: string][]>, cost: string}} Sizes of each shape, the model's own first */

/** @param {{header: Header}} props */
export function Size({ header: { store, known } }) {
  const [mode, size] = [store.view.mode.value, String(store.view.size.value)];
  /** @type {Sizes | undefined} of the last photo until this one is there */
  const sizes = known.value?.sizes;
  const offered = [...(sizes?.offered[mode] ?? [["the model's own size", OWN]])];
  const isListed = (/** @type {string[][] | undefined} */ choices) =>
    choices?.some(([, value]) => value === size);
  if (!isListed(offered)) offered.push([`a short side of ${size} patches, which is not possible here`, size]);
  const choose = (/** @type {string} */ value) =>
    store.look(value === DINO ? { mode: 'stretch', size: DINO_PATCHES } : { size: Number(value) });
  const fit = (/** @type {string} */ shape) =>
    store.look({ mode: shape, ...(size !== OWN && !isListed(sizes?.offered[shape]) && { size: 0 }) });
  return html`<${Folded} id="vv-size" words="Size" label="Size of the photo for the model">
    <fieldset class="vv-sizes" id="vv-patches-count">
      <legend>patches</legend>
      <p class="vv-small vv-sizes-cost">${sizes?.cost}</p>
      <div
        class="vv-sizes-list vv-stack"
        title="How many patches the photo is cut into; more of them are finer and cost more."
      >
        ${offered.map(
          ([words, value]) =>
            html`<label key=${value} class="vv-sizes-one">
              <input
                type="radio"
                name="vv-size"
                value=${value}
                checked=${value === size}
                onChange=${() => choose(value)}
              />
              ${words}
            </label>`,
        )}
      </div>
    </fieldset>
    <label class="vv-field vv-sizes-shape">
      shape
      <select
        class="vv-control"
        id="vv-mode"
        title="How a photo of another shape becomes the model's input."
        value=${mode}
        onChange=${(/** @type {any} */ { target }) => fit(target.value)}
      >
        <option value="fit">fit: whole image</option>
        <option value="crop">crop: as evaluated</option>
        <option value="stretch">stretch to the input</option>
      </select>
    </label>
  <//>`;
}
