// A map on its photo, drawn from the numbers of an answer as Look draws: a pixel per patch, which screen.js puts on the photo.

import { massMask } from '../../explorer/frame.js';
import { Picture } from '../../explorer/paint.js';
import { PhotoScreen } from '../../explorer/screen.js';
import { layerTable, suited } from '../../explorer/styles.js';
import { routeUrl } from '../../explorer/source.js';
import { signedTable } from './signed.js';
import { placeOfRect } from './parts.js';
import { html, useLayoutEffect, useMemo, useRef } from './preact.js';
/** @import { Style } from '../../explorer/styles.js' */

/**
 * Numbers of patches, and where these lie: of the answer to a question whose answer is a map.
 * @typedef {{values: Float32Array, grid: [number, number], signed: boolean, unit: string, crop: import('../../explorer/geometry.js')
 *   .Trace['crop']}} PatchMap
 *
 * A photo for the screen; unlit: why it cannot be lit.
 * @typedef {{photo: string, photo_size: [number, number], unlit?: string}} Photo
 *
 * How a map is drawn, as links say it.
 * @typedef {{style: Style, alpha: number, colors: string, smooth: boolean, mask: number, clip: boolean}} Drawing
 */

/** What `Drawing` is called in links. */
export const DRAWING = /** @type {(keyof Drawing)[]} */ ([
  ...['style', 'alpha', 'colors', 'smooth', 'mask', 'clip'],
]);

const CLIPPED = 0.01; // share of the values that a clipped scale shows in its last colour
const FLOAT = new Float32Array(1);
const BITS = new Uint32Array(FLOAT.buffer);

/** A map as an answer to a question has it. @param {{arrays: Record<string, {shape: number[], data: any}>, facts: any}} answer @returns {PatchMap} */
export function mapIn({ arrays: { values }, facts }) {
  const { original_size: original, input_size: input, region } = facts.crop_box;
  const [rows, cols] = values.shape;
  const { signed, unit } = facts;
  return { values: values.data, grid: [rows, cols], signed, unit, crop: { original, input, region } };
}

/**
 * The ends of the scale on which values are drawn, as `clipped` and `limits` of vit_viz/figures/colormaps.py have them.
 * @param {Float32Array} values @param {boolean} signed @param {boolean} clip @returns {[number, number]}
 */
export function endsOf(values, signed, clip) {
  const sizes = (signed ? values.map(Math.abs) : values.slice()).sort();
  const low = signed ? 0 : sizes[0];
  let high = sizes[sizes.length - 1];
  if (clip) high = Math.max(low, Math.min(high, topOf(sizes)));
  return [signed ? -high : low, high];
}

/** The value above which a hundredth lies, rounded up to the edge of its bin. @param {Float32Array} sorted */
function topOf(sorted) {
  const top = sorted[sorted.length - 1 - Math.floor(CLIPPED * sorted.length)];
  if (top < 0) return top;
  FLOAT[0] = top;
  BITS[0] = ((BITS[0] >>> 17) + 1) << 17;
  return FLOAT[0];
}

/** The fewest patches that hold a share of the map; all where nothing is left out. @param {PatchMap} map @param {number} share */
function kept({ values, signed }, share) {
  if (!share || signed) return values;
  const mask = massMask(values, share);
  return values.map((value, i) => (mask[i] ? value : 0));
}

/**
 * The layer that a map lays over its photo; isTwoSided: over a gray one.
 * @param {Pick<PatchMap, 'signed'>} map @param {string | undefined} unlit why the photo cannot be lit @param {Drawing} drawing
 * @param {Record<string, Uint32Array>} tables colours of heat, by name
 */
export function lookOf({ signed }, unlit, { style: chosen, alpha, colors }, tables) {
  if (signed && chosen !== 'heat')
    return { isTwoSided: true, style: /** @type {Style} */ ('heat'), layer: signedTable(alpha) };
  const style = suited(chosen, unlit);
  return { isTwoSided: false, style, layer: layerTable(style, alpha, tables[signed ? 'diverging' : colors]) };
}

/**
 * Draws a map on a screen as large as the box of its photo.
 * @param {PhotoScreen} screen @param {PatchMap} map @param {HTMLImageElement} image @param {ReturnType<typeof lookOf>} look
 * @param {Drawing} drawing @param {[number, number]} ends of the scale
 */
export function showMap(screen, map, image, { style, layer }, { smooth, mask }, ends) {
  const picture = new Picture(undefined, map.grid[1], map.grid[0]);
  picture.paint(kept(map, mask), layer, ends);
  screen.show(picture.canvas, image, /** @type {any} */ ({ crop: map.crop }), { style, smooth });
}

/**
 * @param {object} props
 * @param {PatchMap} props.map
 * @param {Photo} props.photo
 * @param {Drawing} props.drawing
 * @param {[number, number]} props.ends of the scale
 * @param {Record<string, Uint32Array>} props.tables colours of heat, by name
 * @param {string} [props.label] what is seen, in words
 * @param {() => void} [props.lost] the photo could not be fetched
 */
export function MapOnPhoto({ map, photo, drawing, ends, tables, label = '', lost }) {
  const [canvas, image] = [useRef(/** @type {any} */ (null)), useRef(/** @type {any} */ (null))];
  const { style, alpha, colors, smooth, mask } = drawing;
  const { crop, signed } = map;
  const look = useMemo(
    () => lookOf(map, photo.unlit, drawing, tables),
    [signed, photo.unlit, style, alpha, colors],
  );
  const screen = useRef(/** @type {PhotoScreen | null} */ (null));
  const paint = () => {
    const { current: sheet } = canvas;
    const { offsetWidth: width = 0, offsetHeight: height = 0 } = sheet.parentElement;
    if (!width || !height || !image.current.complete || !image.current.naturalWidth) return;
    screen.current ??= new PhotoScreen(sheet);
    screen.current.fit({ width, height }, window.devicePixelRatio || 1);
    showMap(screen.current, map, image.current, look, drawing, ends);
    sheet.dataset.drawn = '';
  };
  const now = useRef(paint);
  now.current = paint;
  useLayoutEffect(paint, [map, look, ...ends, smooth, mask, photo.photo]);
  useLayoutEffect(() => {
    const fit = new ResizeObserver(() => now.current());
    fit.observe(canvas.current.parentElement);
    return () => fit.disconnect();
  }, []);
  const [top, left, height, width] = crop.region;
  const [tall, wide] = photo.photo_size;
  const gray = look.isTwoSided ? { backdropFilter: `grayscale(${alpha})` } : {}; // of the photo below the box alone
  const picture = {
    src: routeUrl(photo.photo),
    alt: '',
    draggable: false,
    onLoad: () => now.current(),
    onError: lost,
  };
  return html`<span
    class="vv-card-image vv-drawn-map"
    ...${label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' }}
    style=${{ aspectRatio: String(wide / tall) }}
  >
    <img class="vv-photo vv-layer" ref=${image} ...${picture} />
    <span class="vv-box" style=${{ ...placeOfRect(crop, [top, left, top + height, left + width]), ...gray }}>
      <canvas class="vv-map vv-layer" ref=${canvas}></canvas>
    </span>
  </span>`;
}
