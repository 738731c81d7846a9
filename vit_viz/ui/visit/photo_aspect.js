// The shape of the photo, known before the photo is there: every stage begins with it, so that nothing moves when the photo comes.
// It stands on the root of the page as --vv-aspect, width over height, and in words (shapeOf) as data-shape: by these the rooms are laid
// out. When the page opens it is that of the link: of a part by its numbers, of a sample as the page says, of any other picture as this
// browser remembers.

import { shapeOf } from '../../explorer/layout.js';
import { remember, remembered } from '../kit/elements.js';
import { currentLink } from './link.js';

const KEPT = 'vv-aspects';
const PART = /^\d+,\d+,(\d+),(\d+)$/; // top, left, height, width

/** @typedef {Record<string, number>} Aspects of pictures, by their ids */

/** @returns {Aspects} */
function kept() {
  try {
    return JSON.parse(remembered(KEPT) ?? '{}');
  } catch {
    return {}; // another page of this host wrote it
  }
}

/** The shape of what is looked at; undefined where it is not known. @param {string} search @param {number | undefined} whole */
function aspectOf(search, whole) {
  const [, height, width] = PART.exec(new URLSearchParams(search).get('part') ?? '') ?? [];
  return height ? Number(width) / Number(height) : whole;
}

function begin(/** @type {number | undefined} */ aspect) {
  if (!aspect) return;
  const { style, dataset } = document.documentElement;
  style.setProperty('--vv-aspect', String(aspect));
  dataset.shape = shapeOf(aspect);
}

/**
 * From here on stages begin with the shape of another picture.
 * @param {string} image that is looked at @param {Aspects} aspects of all pictures of this visit
 */
export function expectPhoto(image, aspects) {
  remember(KEPT, JSON.stringify(aspects));
  begin(aspectOf(currentLink(), aspects[image]));
}

/** Begins with the picture of the link, before anything of the page is laid out. @param {Aspects} samples of pictures that there are for everybody */
export function openWithPhoto(samples) {
  const image = new URLSearchParams(currentLink()).get('image') ?? '';
  begin(aspectOf(currentLink(), { ...kept(), ...samples }[image]));
}
