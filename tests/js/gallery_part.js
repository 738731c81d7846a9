// The gallery without a server: a test says what it is answered with, and hears what is chosen and what Python is told.

import { Gallery } from '../../vit_viz/web/explain/gallery.js';
import { component, mount } from './browser.js';

/** @type {(element: any, trigger: any, props: any, watch: any) => void} */
function start(element, trigger, props, watch) {
  const gallery = new Gallery(element, trigger, (/** @type {any} */ change) => trigger('choose', change));
  const show = () => {
    const { error, chosen, ...base } = props.value;
    if (chosen !== undefined) gallery.choose(chosen);
    if (error) gallery.refuse(error);
    else gallery.show(base);
  };
  show();
  watch('value', show);
  watch('progress', () => gallery.follow(props.progress));
  watch('trust', () => gallery.followTest(props.trust));
  watch('weights', () => gallery.hear(props.weights));
}

const GALLERY = component(start, 'web/explain/gallery.html');

/** With its first cards, and the method that is looked at closely under `chosen`; `set` as in `mount`. @param {any} base @param {any} [options] */
export function mountGallery(base, options) {
  return mount(GALLERY, base, options);
}
