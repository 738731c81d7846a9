// What the Heads tab edits, by itself on its part of the page: the switches are pressed through it, as the grid does.

import { drawValue, finder } from '../../vit_viz/ui/kit/elements.js';
import { Surgery } from '../../vit_viz/ui/heads/surgery.js';
import { component, mount } from './browser.js';

/** @type {Surgery[]} */
const made = [];
const SURGERY = component((element, trigger, props, watch) => {
  const surgery = new Surgery(finder(element), trigger, () => {});
  made.push(surgery);
  drawValue(watch, () => surgery.take(/** @type {any} */ (props.value)));
}, 'ui/heads/table.html');

/** The part with what the server says of it. */
export function mountSurgery(/** @type {any} */ panel) {
  const part = mount(SURGERY, panel);
  const surgery = made[made.length - 1];
  return {
    ...part,
    surgery,
    press: (/** @type {string[]} */ ...places) => surgery.toggle(places),
    state: (/** @type {string} */ place) => surgery.heads.get(place) ?? 'on',
  };
}
