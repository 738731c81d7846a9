// The small photos of the grid: every head's map on the photo, in one canvas under the cells.

import { cellSize } from '../../explorer/layout.js';
import { Picture, paintMap } from '../../explorer/paint.js';
import { MosaicScreen } from '../../explorer/screen.js';
import { STRENGTHS, layerTable, suited } from '../../explorer/styles.js';
/** @import { Subject } from './room.js' */
/** @import { Lit } from './lit.js' */
/** @import { Place } from './words.js' */

/** Width of the numbers of the layers, and height of the bar and number under each photo. */
const LABEL = 32;
const FOOT = 16;

/** Width of the grid where it is not seen, and only single photos of it are. */
const USUAL = 600;

export class Tiles {
  atlas = new Picture();
  size = { width: 0, height: 0 };

  /** @param {HTMLElement} box @param {HTMLCanvasElement} canvas @param {Uint32Array} table */
  constructor(box, canvas, table) {
    this.box = box;
    this.screen = new MosaicScreen(canvas);
    this.screen.smooth = true; // as the large photo beside it
    this.table = table;
  }

  /** Takes as much of its place as the shape of the photo and of the model allow. */
  fit(/** @type {Subject} */ { layers, heads, crop }) {
    const place = /** @type {HTMLElement} */ (this.box.parentElement);
    const cell = cellSize({
      width: (place.clientWidth || USUAL) - LABEL,
      height: Math.max(320, window.innerHeight * 0.64) - layers * FOOT,
      layers,
      columns: heads,
      aspect: crop.region[3] / crop.region[2],
    });
    cell.height += FOOT;
    const { style } = this.box;
    style.setProperty('--vv-cell-width', `${cell.width}px`);
    style.setProperty('--vv-grid-width', `${LABEL + cell.width * heads}px`);
    style.setProperty('--vv-cell-height', `${cell.height}px`);
    this.screen.fit({ ...cell, foot: FOOT }, { layers, columns: heads }, window.devicePixelRatio || 1);
    const { canvas } = this.screen;
    Object.assign(canvas.style, { width: `${cell.width * heads}px`, height: `${cell.height * layers}px` });
  }

  /**
   * Paints what is known of the maps.
   * @param {Lit} lit @param {number[][]} orders heads by layer and place in the row
   */
  paint(lit, orders) {
    const { subject } = lit;
    if (!subject || orders.length !== subject.layers) return;
    const [rows, cols] = subject.grid;
    const style = suited('light', subject.unlit);
    const table = layerTable(style, STRENGTHS[style], this.table);
    const stride = subject.heads * cols;
    this.atlas.resize(stride, subject.layers * rows);
    this.atlas.pixels.fill(table[0]);
    const fresh = new Uint8Array(subject.layers);
    orders.forEach((heads, layer) =>
      heads.forEach((head, place) => {
        const map = lit.mapOf({ layer, head });
        if (!map) return;
        fresh[layer] = 1;
        const at = layer * rows * stride + place * cols;
        paintMap(this.atlas.pixels, { at, stride, rows, cols }, map.values, table, [0, map.lit, map.most]);
      }),
    );
    this.atlas.show();
    const frame = /** @type {any} */ ({ trace: subject, fresh });
    this.screen.show(this.atlas.canvas, lit.stage.image, frame, style);
  }

  /** Copies the small photo of a head. @param {HTMLCanvasElement} canvas @param {Place} place @param {number[][]} orders */
  copy(canvas, { layer, head }, orders) {
    const { cell, across, down } = this.screen;
    const { width, height } = cell;
    Object.assign(canvas, { width: Math.max(1, width), height: Math.max(1, height) });
    const from = [across[orders[layer]?.indexOf(head)] ?? 0, down[layer] ?? 0];
    if (width < 1 || height < 1) return;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.drawImage(this.screen.canvas, from[0], from[1], width, height, 0, 0, width, height);
  }
}
