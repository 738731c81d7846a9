// A photo with one map over it and marks on some patches: the stage of the Tokens tab, and the smaller ones that stand beside it.

import { cellAt, patchRect, placeIn, pointerIn, shareOf } from '../../explorer/geometry.js';
import { paintMap, Picture } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { finder, make } from '../kit/elements.js';

/**
 * A photo, and where the model's patches lie on it.
 * @typedef {object} Photo
 * @property {string} handle
 * @property {[number, number]} grid
 * @property {[number, number, number, number]} region
 * @property {string} photo
 * @property {[number, number]} photo_size
 * @property {[number, number]} original_size
 * @property {string} name
 */

/** A place for a photo: the element has .vv-room-photo, .vv-room-box with a canvas, and .vv-room-rings in it. */
export class Plate {
  /** @param {HTMLElement} element */
  constructor(element) {
    const find = finder(element);
    this.element = element;
    this.image = /** @type {HTMLImageElement} */ (find('room-photo'));
    this.box = find('room-box');
    this.rings = find('room-rings');
    this.picture = new Picture(/** @type {HTMLCanvasElement} */ (find('room-map')));
    /** @type {Photo | null} */
    this.photo = null;
  }

  /** Shows another photo. */
  place(/** @type {Photo} */ photo) {
    const { region, photo_size: size, original_size: original, grid } = photo;
    this.photo = photo;
    this.image.src = routeUrl(photo.photo);
    this.image.alt = photo.name;
    this.element.style.setProperty('--vv-aspect', String(size[1] / size[0]));
    const [top, left, height, width] = region;
    const whole = [0, 0, original[0], original[1]];
    Object.assign(this.box.style, placeIn([top, left, top + height, left + width], whole));
    this.picture.resize(grid[1], grid[0]);
  }

  /** @param {Float32Array} map @param {Uint32Array} table @param {[number, number]} range */
  paint(map, table, [low, high]) {
    if (!this.photo || !this.picture.pixels) return;
    const [rows, cols] = this.photo.grid;
    paintMap(this.picture.pixels, { at: 0, stride: cols, rows, cols }, map, table, [low, high, 0]);
    this.picture.show();
  }

  /** One pixel per patch, ready to be written. */
  paintPixels(/** @type {Uint32Array} */ pixels) {
    this.picture.pixels?.set(pixels);
    this.picture.show();
  }

  /** Nothing over the photo. */
  clear() {
    this.picture.pixels?.fill(0);
    this.picture.show();
  }

  /** Rings around patches, by their class, and rectangles in pixels of the original. */
  ring(/** @type {[number, string][]} */ patches, /** @type {[number[], string][]} */ rects = []) {
    if (!this.photo) return;
    const { grid, region, original_size: size } = this.photo;
    const rectOf = (/** @type {number} */ patch) =>
      patchRect({ region }, Math.floor(patch / grid[1]), patch % grid[1], grid);
    /** @type {[number[], string][]} */
    const all = [...patches.map(([patch, kind]) => /** @type {any} */ ([rectOf(patch), kind])), ...rects];
    const nodes = all.map(([rect, kind]) => {
      const node = make('span', kind);
      Object.assign(node.style, placeIn(rect, [0, 0, size[0], size[1]]));
      return node;
    });
    this.rings.replaceChildren(...nodes);
  }

  /** The patch under a pointer; null outside. */
  patchAt(/** @type {MouseEvent} */ event) {
    if (!this.photo) return null;
    return cellAt(shareOf(this.pointAt(event), this.photo.region), this.photo.grid);
  }

  /** Where a pointer is, in pixels of the original. @returns {[number, number]} y, x */
  pointAt(/** @type {MouseEvent} */ event) {
    const [height, width] = this.photo?.original_size ?? [1, 1];
    const [down, across] = pointerIn(event, this.element);
    return [down * height, across * width];
  }
}

/** A smaller place with a caption under it. */
export function newPlate(/** @type {string} */ words) {
  const figure = make('figure', 'vv-room-figure vv-stack');
  const stage = make('div', 'vv-stage vv-room-plate');
  const box = make('div', 'vv-room-box vv-box');
  const rings = make('div', 'vv-room-rings vv-layer');
  rings.setAttribute('aria-hidden', 'true');
  box.append(make('canvas', 'vv-room-map vv-layer'));
  stage.append(make('img', 'vv-room-photo vv-layer'), box, rings);
  figure.append(stage, make('figcaption', 'vv-small', words));
  return { figure, plate: new Plate(stage) };
}
