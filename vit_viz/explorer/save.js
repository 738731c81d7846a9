// The picture on the screen as a PNG: photo, map, caption and colour bar.

import { offerFile } from './elements.js';
import { patchRect } from './geometry.js';
import { caption } from './labels.js';
import { askForFigure } from './source.js';
import { suited } from './styles.js';
/** @import { Trace } from './geometry.js' */
/** @import { View } from './state.js' */

const LONGEST = 2400;

/**
 * @typedef {object} Sheet
 * @property {HTMLImageElement} photo
 * @property {(size: {width: number, height: number}) => HTMLCanvasElement} layer what lies over the part that the model received
 * @property {Trace} trace
 * @property {HTMLCanvasElement} bar the scale from its low to its high end
 * @property {[string, string]} ends numbers at the ends of the scale
 * @property {string} unit
 * @property {string[]} lines the caption
 */

/** Draws a sheet on white: what is saved does not depend on the theme. */
export function drawSheet(/** @type {Sheet} */ sheet) {
  const [height, width] = sheet.trace.photo_size;
  const scale = Math.min(LONGEST / Math.max(height, width), Math.max(1, 900 / Math.max(height, width)));
  const w = Math.round(width * scale);
  const h = Math.round(height * scale);
  const text = Math.max(13, Math.round(w / 56));
  const canvas = document.createElement('canvas');
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const font = `${text}px system-ui, sans-serif`;
  context.font = font;
  const lines = sheet.lines.flatMap((line) => wrap(context, line, w));
  canvas.width = w + 2 * text;
  canvas.height = h + 2 * text + Math.round(text * (5.2 + 1.45 * lines.length));
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(text, text);
  drawPhoto(context, sheet, w, h);
  context.font = font;
  context.textBaseline = 'top';
  const below = h + text;
  drawBar(context, sheet, { top: below, width: Math.min(w, 30 * text), text });
  context.fillStyle = '#1a1a1a';
  lines.forEach((line, i) => context.fillText(line, 0, below + text * (4.4 + 1.45 * i)));
  return canvas;
}

/** @param {CanvasRenderingContext2D} context @param {Sheet} sheet @param {number} w @param {number} h */
function drawPhoto(context, { photo, layer, trace }, w, h) {
  const [top, left, bottom, right] = patchRect(trace.crop, 0, 0, [1, 1]);
  const down = h / trace.crop.original[0];
  const across = w / trace.crop.original[1];
  context.save();
  context.beginPath();
  context.rect(0, 0, w, h);
  context.clip();
  context.imageSmoothingQuality = 'high';
  context.drawImage(photo, 0, 0, w, h);
  const size = { width: (right - left) * across, height: (bottom - top) * down };
  context.drawImage(layer(size), left * across, top * down, size.width, size.height);
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {Sheet} sheet @param {{top: number, width: number, text: number}} place */
function drawBar(context, { bar, ends, unit }, { top, width, text }) {
  context.imageSmoothingEnabled = true;
  context.drawImage(bar, 0, top, width, Math.round(text * 0.8));
  context.fillStyle = '#1a1a1a';
  const under = top + text * 1.1;
  context.fillText(ends[0], 0, under);
  context.textAlign = 'right';
  context.fillText(ends[1], width, under);
  context.textAlign = 'left';
  context.fillText(unit, 0, under + 1.45 * text);
}

/** @param {CanvasRenderingContext2D} context @param {string} line @param {number} width */
function wrap(context, line, width) {
  const lines = [''];
  for (const word of line.split(' ')) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.filter(Boolean);
}

/** A name that says what the picture shows and how it was drawn. @param {Trace} trace @param {View} view */
export function fileName(trace, view) {
  const query = view.query.length > 40 ? 'region' : view.query;
  const how = `${suited(view.style, trace.unlit)}-${view.smooth ? 'smooth' : 'patches'}`;
  const what = `layer${view.layer}-head${view.head}-${query}-${view.direction}`;
  return `vit_viz-${trace.model}-${trace.name ?? trace.image}-${what}-${how}`;
}

/**
 * Asks the host to save the figure, in a format and size to choose; false where it does not.
 * @param {Element} button @param {Trace} trace @param {View} view
 * @param {string} page address of the explorer as a page of its own, with this view; '' where there is none
 */
export function savedByHost(button, trace, view, page) {
  if (!trace.about) return false;
  const { layer, head, query, direction, norm, style, clip, alpha, table, smooth, mask } = view;
  const figure = { style, scale: 'own', clip, alpha, table, smooth, mask };
  const body = { ...trace.about, layer, head: String(head), query, direction, norm, figure };
  return askForFigure(button, ['look', body], undefined, page);
}

/**
 * Offers the big map with its caption and colour bar as a download.
 * @param {Record<string, HTMLElement>} parts @param {import('./pictures.js').Pictures} pictures @param {Trace} trace @param {View} view
 */
export function saveSheet(parts, pictures, trace, view) {
  const text = (/** @type {string} */ part) => parts[part].textContent ?? '';
  const canvas = drawSheet({
    photo: pictures.photo,
    layer: (size) => pictures.layerAt(trace, view, size),
    trace,
    bar: pictures.bar.canvas,
    ends: [text('low'), text('high')],
    unit: text('unit'),
    lines: [
      caption(view, trace),
      `${text('readout')} Photo: ${trace.name ?? trace.image}, ${trace.mode}. vit_viz`,
    ],
  });
  const name = fileName(trace, view).replace(/[^A-Za-z0-9.,_-]+/g, '_');
  canvas.toBlob((blob) => {
    if (blob) offerFile(blob, `${name}.png`);
  });
}
