// The photo as heads see it, lit where the query looks: rows that come layer by layer from the server, and the canvases that they light.

import { topOf } from '../../explorer/frame.js';
import { cellSize } from '../../explorer/layout.js';
import { Picture, paintMap } from '../../explorer/paint.js';
import { MosaicScreen, PhotoScreen } from '../../explorer/screen.js';
import { Gone, routeUrl } from '../../explorer/source.js';
import { LIGHT, STRENGTHS, layerTable, suited } from '../../explorer/styles.js';
import { placeOfRect } from '../kit/parts.js';
import { html, signal, useLayoutEffect, useMemo, useRef, useState } from '../kit/preact.js';
import { paintSigned } from '../kit/signed.js';
/** @import { Source } from '../kit/ask.js' */
/** @import { Cell } from '../../explorer/layout.js' */
/** @import { Subject } from './room.js' */
/** @import { Place } from './words.js' */

/** What a head gives each patch; lit: from where on it is fully lit. @typedef {{values: Float32Array, most: number, lit: number, sum: number}} HeadMap */

/** Rows of all layers are fetched ahead where they are no more bytes than this. */
const AHEAD_BYTES = 16e6;

/** The rows of one query. */
export class Rows {
  arrived = signal(0); // how often something came, or went wrong
  /** @type {Map<number, Float32Array>} */ rows = new Map();
  /** @type {Map<string, HeadMap>} */ maps = new Map();
  stop = new AbortController();
  wanted = 0;
  isFetching = false;
  isGone = false; // whether the server is asked to have it again
  error = '';

  /**
   * @param {Pick<Source, 'rows'>} source @param {Subject} subject
   * @param {(trace: string) => boolean} gone tries to get back what the server no longer keeps; says whether that is tried
   */
  constructor(source, subject, gone) {
    this.source = source;
    this.subject = subject;
    this.gone = gone;
  }

  /** Fetches the rows of a layer, then those of all others where they are few. */
  async want(/** @type {number} */ layer) {
    this.wanted = layer;
    if (this.isFetching || this.isGone || this.error) return;
    this.isFetching = true;
    const { source, subject, stop, rows } = this;
    const view = /** @type {any} */ ({ query: subject.query, direction: 'row' });
    try {
      for (let next = this.next(); next !== null; next = this.next()) {
        rows.set(next, await source.rows(subject, next, view, stop.signal));
        if (stop.signal.aborted) return;
        this.arrived.value += 1;
      }
    } catch (error) {
      if (stop.signal.aborted) return;
      this.isGone = error instanceof Gone && this.gone(subject.trace);
      if (!this.isGone) this.error = /** @type {Error} */ (error).message;
      this.arrived.value += 1;
    } finally {
      this.isFetching = false;
    }
  }

  /** @returns {number | null} the layer to fetch next */
  next() {
    const { layers, heads, tokens } = this.subject;
    if (!this.rows.has(this.wanted)) return this.wanted;
    if (4 * layers * heads * tokens > AHEAD_BYTES) return null;
    return Array.from({ length: layers }, (_, layer) => layer).find((layer) => !this.rows.has(layer)) ?? null;
  }

  /** What a head gives each patch, and all patches together; null while it is on its way. @returns {HeadMap | null} */
  mapOf(/** @type {Place} */ { layer, head }) {
    const [rows, key] = [this.rows.get(layer), `${layer}.${head}`];
    if (!rows) return null;
    if (!this.maps.has(key)) {
      const { tokens, prefix, grid } = this.subject;
      const first = head * tokens + prefix.length;
      const values = rows.subarray(first, first + grid[0] * grid[1]);
      const sorted = values.slice().sort();
      const sum = values.reduce((all, value) => all + value, 0);
      this.maps.set(key, { values, most: sorted[sorted.length - 1], lit: topOf(sorted), sum });
    }
    return this.maps.get(key) ?? null;
  }
}

/** The rows of the chosen query, made anew where the server had to open the photo again. @param {Rows['source']} source @param {Subject} subject @param {Rows['gone']} gone */
export function useRows(source, subject, gone) {
  const known = useRef(/** @type {Rows | null} */ (null));
  const before = known.current;
  const isSame = before?.subject.trace === subject.trace && before.subject.query === subject.query;
  const isOpenedAgain = before?.isGone && before.subject.opened !== subject.opened;
  if (!isSame || isOpenedAgain) {
    before?.stop.abort();
    known.current = new Rows(source, subject, gone);
  }
  return /** @type {Rows} */ (known.current);
}

/**
 * The photo to paint with; null until it is there. (Not an image that loads meanwhile: what has a state is not drawn again for a property
 * that changed inside.)
 * @param {string} address
 */
export function usePhoto(address) {
  const [known, setKnown] = useState(/** @type {{address: string, image: HTMLImageElement} | null} */ (null));
  useLayoutEffect(() => {
    const image = document.createElement('img');
    image.onload = () => setKnown({ address, image });
    image.src = routeUrl(address);
    return () => void (image.onload = null);
  }, [address]);
  return known?.address === address ? known.image : null;
}

/**
 * The size of an element inside of its borders; with another one the component is drawn again. It is read when the browser has laid out the
 * page: earlier, that would have to be done for it.
 * @param {{current: Element | null}} element @returns {{width: number, height: number} | null} null: not known yet
 */
export function useSize(element) {
  const [size, setSize] = useState(/** @type {{width: number, height: number} | null} */ (null));
  useLayoutEffect(() => {
    const box = /** @type {Element} */ (element.current);
    const fit = new ResizeObserver(() => setSize({ width: box.clientWidth, height: box.clientHeight })); // also while it is shown smaller
    fit.observe(box);
    return () => fit.disconnect();
  }, []);
  return size;
}

/**
 * A canvas over what the model sees of a photo: lit by a number per patch, fully from `top` on, or tinted by what changed, at most `top`.
 * What was painted stays until there is something else to paint.
 * @param {object} props
 * @param {Subject} props.subject
 * @param {HTMLImageElement | null} props.photo
 * @param {Float32Array | null} props.values
 * @param {number} props.top
 * @param {boolean} [props.isChange]
 * @param {boolean} [props.isAlone] whether it has the photo in it, too
 * @param {string} [props.look]
 */
export function Lit({ subject, photo, values, top, isChange = false, isAlone = false, look = 'vv-layer' }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const size = useSize(canvas);
  const painted = useMemo(
    () => ({ map: new Picture(), screen: /** @type {PhotoScreen | null} */ (null) }),
    [],
  );
  useLayoutEffect(() => {
    const sheet = /** @type {HTMLCanvasElement} */ (canvas.current);
    if (!values || !size || size.width < 1) return;
    const { map } = painted;
    const screen = (painted.screen ??= new PhotoScreen(sheet));
    const style = isChange ? 'tint' : suited('light', subject.unlit);
    map.resize(subject.grid[1], subject.grid[0]);
    if (isChange) paintSigned(map, values, top);
    else map.paint(values, layerTable(style, STRENGTHS[style], LIGHT), [0, top]);
    screen.fit(size, window.devicePixelRatio || 1);
    screen.show(map.canvas, photo, subject, { style, smooth: true });
    if (!isAlone || !screen.tile.prepare(photo, subject.crop, screen.size)) return;
    screen.context.globalCompositeOperation = 'destination-over';
    screen.context.drawImage(screen.tile.plain.canvas, 0, 0);
    screen.context.globalCompositeOperation = 'source-over';
  }, [values, top, size, photo]);
  const aspect = String(subject.crop.region[3] / subject.crop.region[2]);
  return html`<canvas class=${look} ref=${canvas} style=${{ aspectRatio: aspect }}></canvas>`;
}

/** The same, where the model sees the photo of a stage. @param {Parameters<typeof Lit>[0]} props */
export function LitBox(props) {
  const { crop } = props.subject;
  const [top, left, height, width] = crop.region;
  return html`<div class="vv-box" style=${placeOfRect(crop, [top, left, top + height, left + width])}>
    <${Lit} ...${props} />
  </div>`;
}

// --- the grid

/** Width of the numbers of the layers: on a screen that is touched they are as wide as a finger. */
export const LABEL = globalThis.matchMedia?.('(pointer: coarse)').matches ? 44 : 32;
const FOOT = 16; // height of the bar and number under each photo
const BETWEEN = 12; // from one band of layers to the numbers of the next
const MOST_BANDS = 4;
const TALL = 0.76; // of the window
const WORTH_A_BAND = 1.15; // by how much photos must grow for one more band

/**
 * How the grid takes as much of its place as the shapes of the photo and of the model allow: layers of few heads in bands beside each other.
 * @param {Subject} subject @param {number} width
 * @returns {{cell: Cell, rows: number, bands: number, shift: number}} rows: layers of a band; shift: from one band to the next
 */
export function layoutOf({ layers, heads, crop }, width) {
  const height = Math.max(320, window.innerHeight * TALL);
  const aspect = crop.region[3] / crop.region[2];
  const inBands = (/** @type {number} */ bands) => {
    const rows = Math.ceil(layers / bands);
    const room = { width: width - bands * LABEL - (bands - 1) * BETWEEN, height: height - rows * FOOT };
    const cell = cellSize({ ...room, layers: rows, columns: heads * bands, aspect });
    const shift = heads * cell.width + LABEL + BETWEEN;
    return { cell: { ...cell, height: cell.height + FOOT, foot: FOOT }, rows, bands, shift };
  };
  const photoOf = (/** @type {Cell} */ { width: wide, inset }) => wide - 2 * inset[0];
  let best = inBands(1);
  for (let bands = 2; bands <= Math.min(MOST_BANDS, layers); bands++) {
    const next = inBands(bands);
    const fits = bands * next.shift - BETWEEN <= width && next.rows * (bands - 1) < layers;
    if (fits && photoOf(next.cell) >= WORTH_A_BAND * photoOf(best.cell)) best = next;
  }
  return best;
}

/**
 * The small photos of the grid: every head's map on the photo, in one canvas under the cells.
 * @param {object} props
 * @param {Rows} props.rows
 * @param {Place[][]} props.orders heads by row and place in it
 * @param {ReturnType<typeof layoutOf>} props.layout
 * @param {HTMLImageElement | null} props.photo
 */
export function Tiles({ rows, orders, layout, photo }) {
  const { subject } = rows;
  const { cell, bands, shift } = layout;
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const painted = useMemo(
    () => ({ atlas: new Picture(), screen: /** @type {MosaicScreen | null} */ (null) }),
    [],
  );
  const { layers, heads, grid } = subject;
  useLayoutEffect(() => {
    const { atlas } = painted;
    const screen = (painted.screen ??= new MosaicScreen(/** @type {HTMLCanvasElement} */ (canvas.current)));
    screen.smooth = true; // as the large photo beside it
    screen.fit(cell, { layers, columns: heads, rows: layout.rows, shift }, window.devicePixelRatio || 1);
    const style = suited('light', subject.unlit);
    const table = layerTable(style, STRENGTHS[style], LIGHT);
    const stride = heads * grid[1];
    atlas.resize(stride, layers * grid[0]);
    atlas.pixels.fill(table[0]);
    const fresh = new Uint8Array(layers);
    orders.forEach((order, row) =>
      order.forEach((head, place) => {
        const map = rows.mapOf(head);
        if (!map) return;
        fresh[row] = 1;
        const at = { at: row * grid[0] * stride + place * grid[1], stride, rows: grid[0], cols: grid[1] };
        paintMap(atlas.pixels, at, map.values, table, [0, map.lit, map.most]);
      }),
    );
    atlas.show();
    screen.show(atlas.canvas, photo, /** @type {any} */ ({ trace: subject, fresh }), style);
  }, [rows, rows.arrived.value, orders, layout, photo]);
  const size = {
    width: `${(bands - 1) * shift + cell.width * heads}px`,
    height: `${cell.height * layout.rows}px`,
  };
  return html`<canvas class="vv-heads-tiles" ref=${canvas} style=${size} aria-hidden="true"></canvas>`;
}
