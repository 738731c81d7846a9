// What a beat says, on the page: a patch that is named is seen as its piece of the photo.

import { patchRect, placeWords } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { html } from '../kit/preact.js';
/** @import { Trace } from '../../explorer/geometry.js' */
/** @import { Say } from './timeline.js' */

/** A patch as its piece of the photo. @param {{trace: Trace, patch: number, look?: string, name?: string}} props */
export function Piece({ trace, patch, look = '', name }) {
  const { crop, grid, photo } = trace;
  const [top, left, bottom, right] = patchRect(crop, Math.floor(patch / grid[1]), patch % grid[1], grid);
  const [tall, wide] = [bottom - top, right - left];
  const [down, across] = [crop.original[0] / tall, crop.original[1] / wide].map((many) => `${100 * many}%`);
  const at = (/** @type {number} */ from, /** @type {number} */ size, /** @type {number} */ all) =>
    `${all > size ? (100 * from) / (all - size) : 0}%`;
  const style = {
    '--aspect': crop.input[1] / grid[1] / (crop.input[0] / grid[0]),
    backgroundImage: `url("${routeUrl(photo)}")`,
    backgroundSize: `${across} ${down}`,
    backgroundPosition: `${at(left, wide, crop.original[1])} ${at(top, tall, crop.original[0])}`,
  };
  const said = name === undefined ? { 'aria-hidden': 'true' } : { role: 'img', 'aria-label': name };
  return html`<i class=${`vv-lesson-piece ${look}`} style=${style} ...${said}></i>`;
}

/** @param {{say: Say, trace: Trace}} props */
export function Said({ say, trace }) {
  return say.map((one) => {
    if (typeof one === 'string') return one;
    if ('patch' in one)
      return html`<${Piece}
        ...${{ trace, patch: one.patch, name: `at ${placeWords(one.patch, trace.grid[1])}` }}
      />`;
    return 'term' in one ? html`<dfn>${one.term}</dfn>` : html`<b>${one.strong}</b>`;
  });
}
