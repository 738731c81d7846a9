// The large photo: the chosen cell of the table over it, the scale of that, rings; and a second photo that shares its colours.

import { Picture } from '../../explorer/paint.js';
import { sharpness } from '../../explorer/screen.js';
import { barPixels, layerTable } from '../../explorer/styles.js';
import { showBar, short } from '../../ui/kit/numbers.js';
import { Stage } from '../../ui/kit/stage.js';
import { readBox } from './listen.js';
import { Plate } from './plate.js';
/** @import { Style } from '../../explorer/styles.js' */
/** @import { Room } from './room.js' */
/** @import { Drawing } from './views.js' */

/** A photo of the page, and the canvas over the part of it that the model received. */
class Sheet extends Stage {
  plate = new Plate();

  /** @param {HTMLElement} element @param {() => void} loaded */
  constructor(element, loaded) {
    super(element);
    this.canvas = /** @type {HTMLCanvasElement} */ (element.querySelector('canvas'));
    this.image.addEventListener('load', loaded);
  }

  /** Pixels of the canvas, as large as it is on the screen. */
  get size() {
    const box = { width: this.box.offsetWidth, height: this.box.offsetHeight }; // also while it is shown smaller
    const scale = sharpness(box, window.devicePixelRatio || 1);
    return { width: Math.round(box.width * scale), height: Math.round(box.height * scale) };
  }

  /** Whether a map can be drawn on the photo. */
  prepare() {
    const { photo, plate, canvas, size } = this;
    if (!photo || !plate.prepare(this.image, photo.crop, size)) return false;
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    return true;
  }

  clear() {
    const { canvas } = this;
    canvas.getContext('2d')?.clearRect(0, 0, canvas.width, canvas.height);
  }
}

export class Large {
  map = new Picture(); // one pixel per patch, of whatever is being drawn
  drawn = ''; // what is shown
  /** @type {Style} */ style = 'light';

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
    const again = () => {
      this.drawn = '';
      room.repaint();
    };
    this.sheet = new Sheet(room.find('room-main-stage'), again);
    this.second = new Sheet(room.find('room-second-stage'), again);
    this.layer = new Uint32Array(256);
  }

  /** How maps are drawn from here on. @param {Style} style @param {number} strength */
  dress(style, strength) {
    this.style = style;
    this.layer = layerTable(style, strength, this.room.colours);
  }

  /**
   * Draws one photo of the table at any size.
   * @param {HTMLCanvasElement} canvas @param {Plate} plate @param {Drawing} drawing
   */
  drawOn(canvas, plate, drawing) {
    const { smooth } = this.room.options;
    if ('pixels' in drawing) {
      this.map.set(drawing.pixels);
      plate.draw(canvas, this.map.canvas, drawing.how, smooth && drawing.how === 'colours');
    } else {
      this.map.paint(drawing.values, this.layer, drawing.range);
      plate.draw(canvas, this.map.canvas, this.style, smooth);
    }
  }

  /** The chosen photo, where something else is shown. */
  draw() {
    const { room, sheet } = this;
    const { token_measure: chosen } = room.options;
    const key = room.keyOf(chosen, room.state);
    const lit = chosen === 'segments' && (room.lit ?? room.hovered);
    const full = key && [key, lit, sheet.size.width, room.view.unit?.(room)].join('|');
    if (full && full === this.drawn) return;
    this.drawn = '';
    if (!key) sheet.clear();
    const drawing = key ? room.view.draw(room, room.state, true) : null;
    this.bar(drawing);
    if (!drawing || !sheet.prepare()) return;
    this.drawOn(sheet.canvas, sheet.plate, drawing);
    this.drawn = full;
  }

  /** The photo that shares the colours. @param {Uint32Array} pixels one for each of its patches */
  drawSecond(pixels) {
    const { second } = this;
    if (!second.photo || !second.prepare()) return;
    const map = new Picture(undefined, second.photo.grid[1], second.photo.grid[0]);
    map.set(pixels);
    second.plate.draw(second.canvas, map.canvas, 'colours', this.room.options.smooth);
  }

  /** The scale; none where there is none. @param {Drawing | null} drawing */
  bar(drawing) {
    const { room } = this;
    const range = drawing && 'range' in drawing ? drawing.range : null;
    room.find('room-bar').toggleAttribute('data-none', !range); // its place stays, so that nothing jumps
    if (!range) return;
    const ends = /** @type {[string, string]} */ (range.map(short));
    showBar(room.find, ends, room.view.unit?.(room) ?? '', barPixels(this.style, room.colours));
  }

  /** The ring of the patch that is looked at, of the outliers, and the box. */
  ring() {
    const { patch, options, view, drawing } = this.room;
    const outliers = view.rings?.(this.room) ?? [];
    /** @type {[number, string][]} */
    const marks = outliers.map((outlier) => [outlier, 'vv-ring vv-outlier']);
    if (patch !== undefined) marks.push([patch, 'vv-ring']);
    const box = options.token_measure === 'segments' ? readBox(drawing || options.token_box) : null;
    this.sheet.ring(marks, box ? [[box, 'vv-ring vv-object']] : []);
  }
}
