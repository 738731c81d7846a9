// In how many patches the photo is looked at and how it is fitted into the model's input: what there is to choose from, and what it costs.

import { finder, having, make } from '../../ui/kit/elements.js';
import { effect } from '../kit/preact.js';
import { theHeader } from './header.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

const DINO = 'dino'; // the size of the figures of the DINO paper, where it is offered stretched to a square
const DINO_PATCHES = 60;
const OWN = '0';

/** @typedef {{offered: Record<string, [words: string, value: string][]>, cost: string}} Sizes of each shape, the model's own first */

/** @type {Mount<{}>} */
export function mount(element) {
  showSizes(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showSizes(element, { store, facts }) {
  const find = finder(element);
  const shape = /** @type {HTMLSelectElement} */ (find('sizes-shape').querySelector('select'));
  const sizes = () => /** @type {Sizes | undefined} */ (facts.value.value?.sizes);
  find('sizes-list').addEventListener('change', ({ target }) => {
    const { value } = /** @type {HTMLInputElement} */ (target);
    if (value === DINO) store.look({ mode: 'stretch', size: DINO_PATCHES });
    else store.look({ size: Number(value) });
  });
  shape.addEventListener('change', () => {
    const size = store.view.size.peek();
    const isPossible = sizes()?.offered[shape.value].some(([, value]) => value === String(size));
    store.look({ mode: shape.value, ...(size && !isPossible && { size: 0 }) });
  });
  effect(() => {
    const [mode, size] = [store.view.mode.value, String(store.view.size.value)];
    const offered = [...(sizes()?.offered[mode] ?? [["the model's own size", OWN]])]; // of the last photo until this one is there
    const isListed = offered.some(([, value]) => value === size);
    if (!isListed) offered.push([`a short side of ${size} patches, which is not possible here`, size]);
    find('sizes-cost').textContent = sizes()?.cost ?? '';
    shape.value = mode;
    drawSizes(find('sizes-list'), offered, size);
  });
}

/** The choices; those that are there already stay, so that the focus does. @param {HTMLElement} list @param {string[][]} offered @param {string} size */
function drawSizes(list, offered, size) {
  const there = [...list.querySelectorAll('input')].map(({ value, dataset }) => [dataset.words, value]);
  if (JSON.stringify(there) !== JSON.stringify(offered)) {
    list.replaceChildren(
      ...offered.map(([words, value]) => {
        const input = having(make('input'), { type: 'radio', name: 'vv-size', value, 'data-words': words });
        return make('label', 'vv-sizes-one', input, words);
      }),
    );
  }
  for (const input of list.querySelectorAll('input')) input.checked = input.value === size;
}
