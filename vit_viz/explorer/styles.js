// Light, tint, heat: the three ways in which a map can be drawn over its photo; the formulas of vit_viz/figures/styles.py.
//
// With p a pixel of the photo, w the value of its patch on the chosen scale, in [0, 1], and s the strength, in [0, 1]:
//
//     light   d = FLOOR * luma(p) * (1 - w) + p * w
//     tint    d = p + TINT * w * (ACCENT - p)
//     heat    d = table[round(255 w)]
//     drawn   p + s * (d - p)
//
// Each is p + a * (c - p): a layer over the photo of colour c and opacity a. Light has the dimmed photo for c and a = s (1 - w),
// tint has ACCENT and a = s * TINT * w, heat has the table's colour and a = s. That layer is what the explorer paints.

/** @typedef {'light' | 'tint' | 'heat'} Style */

/** How bright the gray photo is where nothing falls. */
export const FLOOR = 0.2;

/** Rec. 709, on the encoded values. */
export const LUMA = [0.2126, 0.7152, 0.0722];

/** The colour of tint. */
export const ACCENT = [255, 213, 74];

/** Opacity of tint at the top of the scale. */
export const TINT = 0.75;

/** The strength that each style starts with. @type {Record<string, number>} */
export const STRENGTHS = { light: 1, tint: 1, heat: 0.55 };

/** The pixel on which a scale bar shows light and tint. */
export const LIT = [255, 224, 178];

/**
 * The style in which a map is drawn: a photo that cannot be lit gets tint.
 * @param {Style} style
 * @param {string | undefined} unlit why the photo cannot be lit, as the server found; "" where it can
 * @returns {Style}
 */
export function suited(style, unlit) {
  return style === 'light' && unlit ? 'tint' : style;
}

/**
 * What lies over the photo for each of 256 values, as pixels ready to be written: colour and opacity. For light the colour is
 * black, and stands for the dimmed photo that is put in its place.
 * @param {Style} style @param {number} strength
 * @param {Uint32Array} table colours of heat
 */
export function layerTable(style, strength, table) {
  const bytes = new Uint8ClampedArray(1024);
  const colours = new Uint8ClampedArray(table.buffer, table.byteOffset, 1024);
  for (let i = 0; i < 256; i++) {
    const share = i / 255;
    if (style === 'heat') bytes.set(colours.subarray(4 * i, 4 * i + 3), 4 * i);
    else if (style === 'tint') bytes.set(ACCENT, 4 * i);
    bytes[4 * i + 3] = 255 * opacity(style, share, strength);
  }
  return new Uint32Array(bytes.buffer);
}

/** @param {Style} style @param {number} share @param {number} strength */
function opacity(style, share, strength) {
  if (style === 'light') return strength * (1 - share);
  return style === 'tint' ? strength * TINT * share : strength;
}

/**
 * A photo where nothing falls: FLOOR times its luma, at its own opacity.
 * @param {Uint8ClampedArray} pixels RGBA
 * @returns {Uint8ClampedArray<ArrayBuffer>} RGBA
 */
export function dimmed(pixels) {
  const [red, green, blue] = LUMA.map((weight) => FLOOR * weight);
  const out = new Uint8ClampedArray(pixels.length);
  for (let i = 0; i < pixels.length; i += 4) {
    const gray = red * pixels[i] + green * pixels[i + 1] + blue * pixels[i + 2];
    out[i] = out[i + 1] = out[i + 2] = gray;
    out[i + 3] = pixels[i + 3];
  }
  return out;
}

/**
 * Photo pixels in a style, as the layer over them shows them.
 * @param {Uint8ClampedArray} pixels RGBA, opaque
 * @param {ArrayLike<number>} places per pixel, its place in the table, 0 to 255
 * @param {Style} style
 * @param {Uint32Array} layer as `layerTable` makes it
 * @returns {Uint8ClampedArray<ArrayBuffer>} RGBA
 */
export function drawn(pixels, places, style, layer) {
  const over = new Uint8ClampedArray(layer.buffer, layer.byteOffset, 1024);
  const dark = style === 'light' ? dimmed(pixels) : null;
  const out = new Uint8ClampedArray(pixels.length);
  for (let i = 0; i < pixels.length; i += 4) {
    const at = 4 * places[i / 4];
    const share = over[at + 3] / 255;
    for (let channel = 0; channel < 3; channel++) {
      const colour = dark ? dark[i + channel] : over[at + channel];
      out[i + channel] = pixels[i + channel] + share * (colour - pixels[i + channel]);
    }
    out[i + 3] = 255;
  }
  return out;
}

/**
 * The scale from its low to its high end: light and tint as they look on one pale pixel, heat as its table.
 * @param {Style} style @param {Uint32Array} table
 */
export function barPixels(style, table) {
  const pixel = new Uint8ClampedArray(1024);
  for (let i = 0; i < 1024; i += 4) pixel.set([...LIT, 255], i);
  const places = Array.from({ length: 256 }, (_, i) => i);
  return new Uint32Array(drawn(pixel, places, style, layerTable(style, 1, table)).buffer);
}

/** Colours of a matrix, from dark to light, as those of light. */
export const LIGHT = barPixels('light', new Uint32Array(256));
