// A photo with layers over it: the map of the model's patches in a box, and rings. The one way from a pointer to a patch.

import {
  cellAt,
  centreOf,
  movedPatch,
  patchRect,
  placeIn,
  pointerIn,
  shareOf,
} from '../../explorer/geometry.js';
import { Picture } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { finder, having, make, onArrows } from './elements.js';

/**
 * A photo, and where the model's patches lie on it.
 * @typedef {{grid: [number, number], crop: import('../../explorer/geometry.js').Trace['crop'], photo:
 *   string, photo_size: [number, number], name?: string}} Photo
 */

/** The element has .vv-photo in it, and where they are needed .vv-box, with a canvas .vv-map, and .vv-rings. */
export class Stage {
  /** @type {Photo | null} */ photo = null;

  /** @param {HTMLElement} element */
  constructor(element) {
    const find = finder(element);
    const map = /** @type {HTMLCanvasElement | null} */ (find('map'));
    this.element = element;
    this.image = /** @type {HTMLImageElement} */ (find('photo'));
    this.box = find('box');
    this.rings = find('rings');
    this.picture = new Picture(map ?? undefined); // on no page where the stage shows no map
  }

  /** Shows another photo; the same one is not loaded again. */
  place(/** @type {Photo} */ photo) {
    const { crop, photo_size: size, grid, name = '' } = photo;
    this.photo = photo;
    if (this.image.getAttribute('src') !== routeUrl(photo.photo)) this.image.src = routeUrl(photo.photo);
    this.image.alt = name;
    this.element.style.setProperty('--vv-aspect', String(size[1] / size[0]));
    const [top, left, height, width] = crop.region;
    if (this.box) Object.assign(this.box.style, this.placeOf([top, left, top + height, left + width]));
    this.picture.resize(grid[1], grid[0]);
  }

  /**
   * Lets a click choose a patch, and the arrow keys one beside the pinned patch; the centre where no patch is pinned.
   * @param {(patch: number, event: Event) => void} choose @param {() => number | undefined} pinned
   */
  onChoice(choose, pinned) {
    this.element.addEventListener('click', (event) => {
      const patch = this.patchAt(event);
      if (patch !== null) choose(patch, event);
    });
    onArrows(this.element, (step, event) => {
      if (!this.photo) return false;
      const { grid } = this.photo;
      const patch = pinned();
      return choose(patch === undefined ? centreOf(grid) : movedPatch(patch, step, grid), event);
    });
  }

  /** Rings around patches, by their class, and rectangles in pixels of the original. */
  ring(/** @type {[number, string][]} */ patches, /** @type {[number[], string][]} */ rects = []) {
    if (!this.photo) return;
    /** @type {[number[], string][]} */
    const all = [
      ...patches.map(([patch, kind]) => /** @type {any} */ ([this.rectOf(patch), kind])),
      ...rects,
    ];
    this.rings.replaceChildren(...all.map(([rect, kind]) => ringAt(this.placeOf(rect), kind)));
  }

  /** A patch in pixels of the original: top, left, bottom, right. */
  rectOf(/** @type {number} */ patch) {
    const { crop, grid } = /** @type {Photo} */ (this.photo);
    return patchRect(crop, Math.floor(patch / grid[1]), patch % grid[1], grid);
  }

  /** Where a rectangle of the original lies here, as CSS. */
  placeOf(/** @type {number[]} */ rect) {
    const { original } = /** @type {Photo} */ (this.photo).crop;
    return placeIn(rect, [0, 0, original[0], original[1]]);
  }

  /** The row and column of the patch under a pointer; null outside. */
  cellAt(/** @type {MouseEvent} */ event) {
    const { crop, grid } = this.photo ?? {};
    return crop && grid ? cellUnder(event, this.element, [0, 0, ...crop.original], crop.region, grid) : null;
  }

  /** The patch under a pointer; null outside. */
  patchAt(/** @type {MouseEvent} */ event) {
    const cell = this.cellAt(event);
    return cell && this.photo ? cell[0] * this.photo.grid[1] + cell[1] : null;
  }

  /** Where a pointer is, in pixels of the original. @returns {[number, number]} y, x */
  pointAt(/** @type {MouseEvent} */ event) {
    const [height, width] = this.photo?.crop.original ?? [1, 1];
    const [down, across] = pointerIn(event, this.element);
    return [down * height, across * width];
  }
}

/**
 * The row and column of the patch under a pointer; null outside.
 * @param {MouseEvent} event @param {Element} picture @param {number[]} area of the photo that it shows: top, left, bottom, right
 * @param {import('../../explorer/geometry.js').Trace['crop']['region']} region @param {[number, number]} grid
 */
export function cellUnder(event, picture, [top, left, bottom, right], region, grid) {
  const [down, across] = pointerIn(event, picture);
  return cellAt(shareOf([top + down * (bottom - top), left + across * (right - left)], region), grid);
}

/** A ring at a place. @param {ReturnType<typeof placeIn>} place */
export function ringAt(place, kind = 'vv-ring') {
  const node = make('span', kind);
  Object.assign(node.style, place);
  return node;
}

/** A smaller stage with a caption under it. */
export function newStage(/** @type {string} */ words) {
  const box = make('div', 'vv-box', make('canvas', 'vv-map vv-layer'));
  const rings = having(make('div', 'vv-rings vv-layer'), { 'aria-hidden': true });
  const element = make('div', 'vv-stage vv-room-plate', make('img', 'vv-photo vv-layer'), box, rings);
  const figure = make('figure', 'vv-room-figure vv-stack', element, make('figcaption', 'vv-small', words));
  return { figure, stage: new Stage(element) };
}
