// The figure of an answer, drawn from its numbers as the page draws: maps in the style of the link over their photo, tables as cells,
// lines, bars. Words and lines stay words and lines; whatever has no drawing of its own is drawn part by part.

import { KINDS_OF_SINKS } from '../browser/answers/names.js';
import { leavesOf, kindOf, isArray, wholeOf } from '../browser/files.js';
import { Picture } from '../explorer/paint.js';
import { PhotoScreen } from '../explorer/screen.js';
import { barPixels, suited } from '../explorer/styles.js';
import { patchRect } from '../explorer/geometry.js';
import { endsOf, lookOf, mapIn, showMap } from '../web/kit/map.js';
import { heightOf } from '../web/kit/plot.js';
import { coloursOf } from '../web/tokens/colours.js';
import { short } from '../ui/kit/numbers.js';
/** @import { Answer, Numbers } from '../browser/answers/form.js' */
/** @import { Drawing, PatchMap } from '../web/kit/map.js' */

/**
 * @typedef {object} Scene what stands around the numbers
 * @property {string} title @property {string} caption photo and model, a sentence each
 * @property {HTMLImageElement | null} photo as it is looked at; null: the question is about a model
 * @property {any} [crop_box] where its patches lie on it
 * @property {string} [unlit] why it cannot be lit
 * @property {Drawing & {scale: string}} drawing @property {Record<string, Uint32Array>} tables of colours
 * @property {number} width in points, as all sizes here @property {string} record what the file says of itself
 */

const FONT = 'system-ui, sans-serif';
const MARGIN = 12;
const TEXT = 9;
const SMALL = 7.5;
const [INK, MUTED, LINE, ACCENT] = ['#16181d', '#5b6475', '#c9c9c4', '#b86e00'];
const SHARP = 3; // pixels for a point of pictures
const ACROSS = 4; // small maps beside each other
const MOST_BARS = 24;
const MOST_CELLS = 4096; // of a table whose numbers are written
const GROUPS = ['#3b82c4', '#d55e00', '#009e73', '#c96a9c', '#b07d00', '#7a6fd0', '#56b4e9', '#f0e442', '#8c8c8c', '#8c4628', '#005a5a', '#be1e2d']; // prettier-ignore

const escaped = (/** @type {string} */ text) =>
  text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** What lies on a figure, from the top down. */
class Sheet {
  /** @type {string[]} */ marks = [];
  y = MARGIN;

  /** @param {Scene} scene */
  constructor(scene) {
    this.scene = scene;
    this.inner = scene.width - 2 * MARGIN;
    this.pen = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  }

  /** @param {string} text @param {number} size */
  widthOf(text, size) {
    this.pen.font = `${size}px ${FONT}`;
    return this.pen.measureText(text).width;
  }

  /** @param {string} text @param {number} x @param {number} y of its foot @param {{size?: number, ink?: string, end?: 'start' | 'middle' | 'end', bold?: boolean}} [how] */
  put(text, x, y, { size = TEXT, ink = INK, end = 'start', bold = false } = {}) {
    const weight = bold ? ' font-weight="600"' : '';
    this.marks.push(
      `<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" font-size="${size}" fill="${ink}" text-anchor="${end}"${weight}>${escaped(text)}</text>`,
    );
  }

  /** Words as lines as wide as the figure. @param {string} words @param {{size?: number, ink?: string, bold?: boolean}} [how] */
  write(words, how = {}) {
    const { size = TEXT } = how;
    for (const paragraph of words.split('\n').filter(Boolean)) {
      let line = '';
      for (const word of paragraph.split(' ')) {
        const longer = line ? `${line} ${word}` : word;
        if (line && this.widthOf(longer, size) > this.inner) {
          this.put(line, MARGIN, (this.y += 1.35 * size), how);
          line = word;
        } else line = longer;
      }
      this.put(line, MARGIN, (this.y += 1.35 * size), how);
    }
    this.y += size / 2;
  }

  /** @param {HTMLCanvasElement} canvas @param {number} x @param {number} y @param {number} width @param {number} height */
  picture(canvas, x, y, width, height) {
    this.marks.push(
      `<image x="${x}" y="${y.toFixed(2)}" width="${width}" height="${height.toFixed(2)}" preserveAspectRatio="none" href="${canvas.toDataURL()}"/>`,
    );
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} fill */
  box(x, y, width, height, fill) {
    const [at, size] = [
      `x="${x.toFixed(2)}" y="${y.toFixed(2)}"`,
      `width="${width.toFixed(2)}" height="${height.toFixed(2)}"`,
    ];
    this.marks.push(`<rect ${at} ${size} fill="${fill}"/>`);
  }

  /** A scale with its ends. @param {Uint32Array} pixels @param {[number, number]} ends @param {string} unit */
  bar(pixels, [low, high], unit) {
    const picture = new Picture(undefined, pixels.length, 1);
    picture.set(pixels);
    const width = Math.min(this.inner, 240);
    this.picture(picture.canvas, MARGIN, this.y, width, 7);
    this.y += 7 + 1.2 * SMALL;
    this.put(short(low), MARGIN, this.y, { size: SMALL });
    this.put(short(high), MARGIN + width, this.y, { size: SMALL, end: 'end' });
    this.put(unit, MARGIN + width / 2, this.y, { size: SMALL, ink: MUTED, end: 'middle' });
    this.y += SMALL;
  }

  toString() {
    const { width, record } = this.scene;
    const height = (this.y + MARGIN).toFixed(2);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}pt" height="${height}pt" viewBox="0 0 ${width} ${height}" font-family="${FONT}"><title>${escaped(this.scene.title)}</title><metadata>${escaped(record)}</metadata><rect width="100%" height="100%" fill="#fff"/>${this.marks.join('')}</svg>`;
  }
}

/** The fields that are drawn of types, where not all are, as `Answer.DRAWN` of vit_viz/answer.py. @type {Record<string, string[]>} */
const FIELDS = {
  Faithfulness: ['deletion', 'reverse', 'insertion', 'removal'],
  Lens: ['maps'],
  TokenComponents: ['maps', 'explained'],
};

/** @param {Answer} answer @param {Scene} scene @returns {string} an SVG */
export function figureOf(answer, scene) {
  const sheet = new Sheet(scene);
  sheet.write(scene.title, { size: 12, bold: true });
  const whole = wholeOf(answer);
  const own = DRAWN[kindOf(whole, answer.question)];
  if (own) own(sheet, whole, answer);
  else {
    const leaves = leavesOf(whole, '', answer.question, FIELDS);
    for (const [name, part, kind] of leaves) {
      const isDrawn = typeof part === 'number' || !isArray(part) || part.shape.length <= 2;
      if (!isDrawn) continue;
      if (typeof part === 'number') {
        sheet.write(`${wordsOf(name)}: ${short(part)}`);
        continue;
      }
      if (leaves.length > 1) sheet.write(capital(part.method ?? '') || wordsOf(name), { bold: true });
      if (kind) DRAWN[kind](sheet, part, answer);
      else drawArray(sheet, part);
    }
  }
  const { facts, words } = answer;
  for (const said of [words, facts.caption ?? '', facts.note ?? '', scene.caption])
    if (said) sheet.write(said, { size: SMALL, ink: MUTED });
  return String(sheet);
}

/** A figure as pixels. @param {string} svg @param {number} width of the picture, in pixels @returns {Promise<Blob>} */
export async function pixelsOf(svg, width) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = canvasOf(width, Math.round((width * image.naturalHeight) / image.naturalWidth));
  contextOf(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((made, failed) =>
    canvas.toBlob((blob) =>
      blob ? made(blob) : failed(new Error('This figure is too large for this browser.')),
    ),
  );
}

const wordsOf = (/** @type {string} */ name) =>
  capital(name.split('.').filter((part) => !/^(maps|tables|values|\d+)$/.test(part)).join(', ').replaceAll('_', ' ')); // prettier-ignore

export const capital = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {number} width @param {number} height */
function canvasOf(width, height) {
  return Object.assign(document.createElement('canvas'), { width, height });
}

const contextOf = (/** @type {HTMLCanvasElement} */ canvas) =>
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));

/** Pixels of cells as a larger picture. @param {HTMLCanvasElement} small @param {number} width */
function enlarged(small, width) {
  const factor = Math.max(1, Math.round(width / small.width));
  const canvas = canvasOf(small.width * factor, small.height * factor);
  const context = contextOf(canvas);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** @param {ArrayLike<number>} values @param {number} rows @param {number} cols @param {Uint32Array} table @param {[number, number]} ends */
function cells(values, rows, cols, table, ends) {
  const picture = new Picture(undefined, cols, rows);
  picture.paint(Float32Array.from(values), table, ends);
  return picture.canvas;
}

/** The photo with a map over it, as wide as told. @param {Scene} scene @param {PatchMap} map @param {[number, number]} ends @param {number} width in pixels */
function overPhoto({ photo, unlit, drawing, tables }, map, ends, width) {
  const image = /** @type {HTMLImageElement} */ (photo);
  const [tall, wide] = map.crop.original;
  const canvas = canvasOf(Math.round(width), Math.round((width * tall) / wide));
  const context = contextOf(canvas);
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const [top, left, height, across] = map.crop.region.map((edge) => (edge * canvas.width) / wide);
  const screen = new PhotoScreen(canvasOf(1, 1));
  screen.fit({ width: across, height });
  const look = lookOf(map, unlit, drawing, tables);
  showMap(screen, map, image, look, drawing, ends);
  if (look.isTwoSided) {
    Object.assign(context, {
      globalCompositeOperation: 'saturation',
      globalAlpha: drawing.alpha,
      fillStyle: '#808080',
    });
    context.fillRect(left, top, across, height);
    Object.assign(context, { globalCompositeOperation: 'source-over', globalAlpha: 1 });
  }
  context.drawImage(screen.canvas, left, top, across, height);
  return canvas;
}

/** The colours of a scale over a photo. @param {Scene} scene @param {boolean} signed */
function barOf({ unlit, drawing, tables }, signed) {
  return signed ? tables.diverging : barPixels(suited(drawing.style, unlit), tables[drawing.colors]);
}

/** Small pictures beside each other, each under its name. @param {Sheet} sheet @param {string[]} names @param {(place: number, width: number) => HTMLCanvasElement} pictureOf @param {number} [most] beside each other */
function tiles(sheet, names, pictureOf, most = ACROSS) {
  const across = Math.min(names.length, most);
  const width = (sheet.inner - 6 * (across - 1)) / across;
  for (let start = 0; start < names.length; start += across) {
    let tallest = 0;
    sheet.y += SMALL * 1.2;
    for (let place = start; place < Math.min(start + across, names.length); place++) {
      const canvas = pictureOf(place, width * SHARP);
      const [x, height] = [MARGIN + (place - start) * (width + 6), (width * canvas.height) / canvas.width];
      sheet.put(names[place], x, sheet.y - 2, { size: SMALL });
      sheet.picture(canvas, x, sheet.y, width, height);
      tallest = Math.max(tallest, height);
    }
    sheet.y += tallest + 4;
  }
}

/** A table of numbers as cells, with the names of its rows and columns. @param {Sheet} sheet @param {Numbers} array @param {{rows?: string[], cols?: string[], signed?: boolean, unit?: string, axes?: string[]}} [how] */
function drawCells(
  sheet,
  { shape: [rows, cols], data },
  { rows: left, cols: above, signed = false, unit = '', axes } = {},
) {
  const values = Float32Array.from(data, Number);
  const ends = endsOf(values, signed, false);
  const table = sheet.scene.tables[signed ? 'diverging' : 'viridis'];
  const sides = left ?? Array.from({ length: rows }, (_, row) => String(row));
  const tops = above ?? Array.from({ length: cols }, (_, col) => String(col));
  const margin = Math.min(sheet.inner / 3, Math.max(...sides.map((name) => sheet.widthOf(name, SMALL))) + 5);
  const width = (sheet.inner - margin) / cols;
  const height = Math.min(width, Math.max(12, (0.75 * sheet.inner) / rows));
  if (axes) sheet.write(`${axes[0]} down, ${axes[1]} across`, { size: SMALL, ink: MUTED });
  const isTurned = Math.max(...tops.map((name) => sheet.widthOf(name, SMALL))) > width - 2;
  const shown = isTurned ? tops.map((name, i) => (above ? String(i + 1) : name)) : tops;
  const every = Math.ceil((sheet.widthOf('000', SMALL) + 2) / width);
  sheet.y += SMALL * 1.3;
  shown.forEach((name, col) => {
    if (col % every === 0)
      sheet.put(name, MARGIN + margin + (col + 0.5) * width, sheet.y - 2, { size: SMALL, end: 'middle' });
  });
  const top = sheet.y;
  sheet.picture(
    enlarged(cells(values, rows, cols, table, ends), sheet.inner * SHARP),
    MARGIN + margin,
    top,
    width * cols,
    height * rows,
  );
  const down = Math.ceil((SMALL + 2) / height);
  sides.forEach((name, row) => {
    if (row % down === 0)
      sheet.put(name, MARGIN + margin - 3, top + (row + 0.5) * height + SMALL / 3, {
        size: SMALL,
        end: 'end',
      });
  });
  if (rows * cols <= MOST_CELLS && width > 17 && height > 8)
    values.forEach((value, i) => {
      const share = heightOf(value, ends);
      const isPale = signed ? Math.abs(share - 0.5) < 0.35 : share > 0.6;
      const [x, y] = [
        MARGIN + margin + ((i % cols) + 0.5) * width,
        top + (Math.floor(i / cols) + 0.5) * height,
      ];
      sheet.put(short(value), x, y + 2, {
        size: Math.min(6.5, width / 4),
        ink: isPale ? INK : '#fff',
        end: 'middle',
      });
    });
  sheet.y = top + height * rows + 6;
  if (isTurned && above)
    sheet.write(tops.map((name, i) => `${i + 1}: ${name}`).join('; '), { size: SMALL, ink: MUTED });
  sheet.bar(table, ends, unit);
}

/** Groups of heads by their colours, with a key. @param {Sheet} sheet @param {string[][]} names of each head @param {string[]} [kinds] all groups, in their order */
function drawGroups(sheet, names, kinds = [...new Set(names.flat())].sort()) {
  sheet.write('layer down, head across', { size: SMALL, ink: MUTED });
  const size = sheet.inner / names[0].length;
  const height = Math.min(size, 24);
  names.forEach((row, i) =>
    row.forEach((name, j) => {
      const at = [MARGIN + j * size, sheet.y + i * height];
      sheet.box(at[0] + 0.5, at[1] + 0.5, size - 1, height - 1, GROUPS[kinds.indexOf(name) % GROUPS.length]);
    }),
  );
  sheet.y += names.length * height + 6;
  keyOf(sheet, kinds, kinds.map((kind) => names.flat().filter((name) => name === kind).length), ['head', 'heads']); // prettier-ignore
}

/** What colours of groups stand for, of those that have members. @param {Sheet} sheet @param {string[]} names @param {number[]} counts @param {[string, string]} nouns of one member, and of several */
function keyOf(sheet, names, counts, [one, several]) {
  counts.forEach((count, i) => {
    if (!count) return;
    sheet.box(MARGIN, sheet.y + 1, 8, 8, GROUPS[i % GROUPS.length]);
    sheet.put(
      `${names[i]}: ${count} ${count === 1 ? one : several}`,
      MARGIN + 12,
      (sheet.y += 1.2 * TEXT) - 2,
      { size: SMALL },
    );
  });
  sheet.y += 4;
}

/** @param {Sheet} sheet @param {string[]} names @param {ArrayLike<number>} values @param {string} [unit] */
function drawBars(sheet, names, values, unit = '') {
  const most = Math.max(...Array.from(values, Math.abs), 1e-30);
  const isSigned = Array.from(values).some((value) => value < 0);
  const left = Math.min(sheet.inner / 2, Math.max(...names.map((name) => sheet.widthOf(name, SMALL))) + 8);
  const wide = sheet.inner - left - 50;
  const zero = MARGIN + left + (isSigned ? wide / 2 : 0);
  names.slice(0, MOST_BARS).forEach((name, i) => {
    const length = ((isSigned ? wide / 2 : wide) * Math.abs(values[i])) / most;
    sheet.box(
      values[i] < 0 ? zero - length : zero,
      sheet.y + 2,
      Math.max(length, 0.5),
      8,
      values[i] < 0 ? '#2c60c8' : ACCENT,
    );
    sheet.put(name, MARGIN, sheet.y + 9, { size: SMALL });
    sheet.put(short(values[i]), MARGIN + sheet.inner, sheet.y + 9, { size: SMALL, end: 'end' });
    sheet.y += 13;
  });
  if (names.length > MOST_BARS)
    sheet.write(`${names.length - MOST_BARS} more are in the numbers.`, { size: SMALL, ink: MUTED });
  if (unit) sheet.write(unit, { size: SMALL, ink: MUTED });
}

/** A line, with a band around it. @param {Sheet} sheet @param {{x: ArrayLike<number>, y: ArrayLike<number>, band?: [ArrayLike<number>, ArrayLike<number>], across?: string, up?: string}} curve */
function drawLine(sheet, { x, y, band, across = '', up = '' }) {
  const [left, height] = [MARGIN + 40, 0.5 * sheet.inner];
  const wide = sheet.inner - 44;
  const spread = (/** @type {ArrayLike<number>[]} */ lists) =>
    /** @type {[number, number]} */ ([Math.min, Math.max].map((end) => lists.flatMap((list) => [...Array.from(list)]).reduce((a, b) => end(a, b)))); // prettier-ignore
  const [ends, heights] = [spread([x]), spread([y, ...(band ?? [])])];
  if (up) sheet.put(up, MARGIN, (sheet.y += SMALL), { size: SMALL, ink: MUTED });
  const top = (sheet.y += 4);
  const point = (/** @type {number} */ i, /** @type {ArrayLike<number>} */ list) =>
    `${(left + wide * heightOf(x[i], ends)).toFixed(2)} ${(top + height * (1 - heightOf(list[i], heights))).toFixed(2)}`;
  const path = (/** @type {ArrayLike<number>} */ list) => Array.from(list, (_, i) => point(i, list));
  sheet.marks.push(`<path d="M${left} ${top}V${top + height}H${left + wide}" fill="none" stroke="${LINE}"/>`);
  if (band)
    sheet.marks.push(
      `<path d="M${[...path(band[0]), ...path(band[1]).reverse()].join('L')}Z" fill="#8884" />`,
    );
  sheet.marks.push(`<path d="M${path(y).join('L')}" fill="none" stroke="${ACCENT}" stroke-width="1.5"/>`);
  sheet.put(short(heights[1]), left - 3, top + SMALL, { size: SMALL, end: 'end' });
  sheet.put(short(heights[0]), left - 3, top + height, { size: SMALL, end: 'end' });
  sheet.y = top + height + 1.2 * SMALL;
  sheet.put(short(ends[0]), left, sheet.y, { size: SMALL });
  sheet.put(across, left + wide / 2, sheet.y, { size: SMALL, ink: MUTED, end: 'middle' });
  sheet.put(short(ends[1]), left + wide, sheet.y, { size: SMALL, end: 'end' });
  sheet.y += 6;
}

/** An array by itself. @param {Sheet} sheet @param {Numbers & {axes?: string[]}} array */
function drawArray(sheet, array) {
  const { shape, data, axes } = array;
  const values = Array.from(data, Number);
  if (shape.length === 2) drawCells(sheet, array, { axes, signed: values.some((value) => value < 0) });
  else if (values.length > MOST_BARS) drawLine(sheet, { x: values.map((_, i) => i), y: values, across: axes?.[0] });
  else drawBars(sheet, values.map((_, i) => `${axes?.[0] ?? ''} ${i}`.trim()), values); // prettier-ignore
}

/** Maps that share a scale, over the photo where they lie on one. @param {Sheet} sheet @param {string[]} names @param {(place: number) => Float32Array} valuesOf @param {[number, number]} grid @param {any} facts */
function drawMaps(
  sheet,
  names,
  valuesOf,
  grid,
  { signed = false, unit = '', crop_box: place, across = ACROSS },
) {
  const { scene } = sheet;
  const all = Float32Array.from(names.flatMap((_, i) => [...valuesOf(i)]));
  const ends = endsOf(all, signed, scene.drawing.clip);
  if (!place || !scene.photo) {
    const table = scene.tables[signed ? 'diverging' : 'viridis'];
    tiles(sheet, names, (i, width) => enlarged(cells(valuesOf(i), ...grid, table, ends), width));
    return sheet.bar(table, ends, unit);
  }
  const { original_size: original, input_size: input, region } = place;
  const crop = { original, input, region };
  tiles(
    sheet,
    names,
    (i, width) => overPhoto(scene, { values: valuesOf(i), grid, signed, unit, crop }, ends, width),
    across,
  );
  sheet.bar(barOf(scene, signed), ends, unit);
}

/** How each type of answers is drawn. @type {Record<string, (sheet: Sheet, part: any, answer: Answer) => void>} */
const DRAWN = {
  PatchMap(sheet, { values, ...facts }) {
    const { scene } = sheet;
    if (!scene.photo || !facts.crop_box) return drawCells(sheet, values, { ...facts, axes: ['row', 'col'] });
    const map = mapIn({ arrays: { values }, facts });
    const ends = endsOf(map.values, map.signed, scene.drawing.clip);
    const canvas = overPhoto(scene, map, ends, Math.min(2400, sheet.inner * SHARP));
    const height = (sheet.inner * canvas.height) / canvas.width;
    sheet.picture(canvas, MARGIN, sheet.y, sheet.inner, height);
    const query = /(?:^| )(?:patch )?\((\d+), (\d+)\)/.exec(facts.caption ?? '');
    if (query) {
      const [top, left, bottom, right] = patchRect(map.crop, Number(query[1]), Number(query[2]), map.grid);
      const scale = sheet.inner / map.crop.original[1];
      const at = `x="${MARGIN + left * scale}" y="${sheet.y + top * scale}" width="${(right - left) * scale}" height="${(bottom - top) * scale}"`;
      sheet.marks.push(
        `<rect ${at} fill="none" stroke="#fff" stroke-width="2"/><rect ${at} fill="none" stroke="${INK}" stroke-width="0.7"/>`,
      );
    }
    sheet.y += height + 5;
    sheet.bar(barOf(scene, map.signed), ends, map.unit);
  },
  ClassDifference: (sheet, part, answer) => DRAWN.PatchMap(sheet, part, answer),
  HeadMaps(
    sheet,
    {
      values: {
        shape: [layers, heads, rows, cols],
        data,
      },
    },
  ) {
    const names = Array.from({ length: layers * heads }, (_, i) => `${Math.floor(i / heads)}.${i % heads}`);
    const size = rows * cols;
    const facts = { unit: 'attention weight', crop_box: sheet.scene.crop_box, across: heads };
    drawMaps(sheet, names, (i) => data.slice(i * size, (i + 1) * size), [rows, cols], facts);
  },
  TokenMaps(sheet, { values: { shape, data }, names, ...facts }, answer) {
    const [, rows, cols, channels] = shape;
    if (channels === 3) {
      const [name] = Object.entries(answer.arrays).find(([, one]) => one.data === data) ?? [''];
      const colours = answer.arrays['maps.0.values']
        ? coloursOf(/** @type {any} */ (answer))[Number(name.split('.')[1])]
        : coloursOf(/** @type {any} */ ({ arrays: { 'maps.0.values': { shape, data } }, facts: {} }))[0];
      return tiles(sheet, names, (i, width) => {
        const picture = new Picture(undefined, cols, rows);
        picture.set(colours[i]);
        return enlarged(picture.canvas, width);
      });
    }
    if (channels) return sheet.write(`${channels} numbers for each patch: they are in the numbers.`);
    const size = rows * cols;
    drawMaps(sheet, names, (i) => data.slice(i * size, (i + 1) * size), [rows, cols], facts);
  },
  TokenMatrix(sheet, { values, grid: [rows, cols], signed, unit }) {
    const table = sheet.scene.tables[signed ? 'diverging' : 'viridis'];
    const ends = endsOf(Float32Array.from(values.data), signed, false);
    const [wide, size] = [cols * (cols + 1), rows * cols];
    const whole = new Picture(undefined, wide, rows * (rows + 1));
    const one = new Picture(undefined, cols, rows);
    const context = contextOf(whole.canvas);
    for (let place = 0; place < size; place++) {
      one.paint(values.data.slice(place * size, (place + 1) * size), table, ends);
      context.drawImage(one.canvas, (place % cols) * (cols + 1), Math.floor(place / cols) * (rows + 1));
    }
    const height = (sheet.inner * rows) / cols;
    sheet.picture(enlarged(whole.canvas, 1600), MARGIN, sheet.y, sheet.inner, height);
    sheet.y += height + 6;
    sheet.bar(table, ends, unit);
  },
  StateMatrix: (sheet, { values, names, others, unit }) =>
    drawCells(sheet, values, { rows: names, cols: others, unit }),
  Curve(sheet, { x, y, band, x_label: across, y_label: up }) {
    drawLine(sheet, { x: x.data, y: y.data, band: band && [band.low.data, band.high.data], across, up });
  },
  Ranking: (sheet, { names, scores, unit }) => drawBars(sheet, names, scores.data, unit),
  Links: (sheet, part, answer) => DRAWN.Ranking(sheet, part, answer),
  WithoutPatches: (sheet, { top }, answer) => DRAWN.Ranking(sheet, top, answer),
  HeadNames(sheet, { heads, numbers }) {
    const across = /** @type {any} */ (Object.values(numbers)[0]).shape[1];
    const names = heads.map((/** @type {any} */ one) => one.name);
    drawGroups(sheet, Array.from({ length: names.length / across }, (_, i) => names.slice(i * across, (i + 1) * across))); // prettier-ignore
  },
  SinkKinds(sheet, { kinds, queries }) {
    drawCells(sheet, queries, { axes: ['layer', 'head'], unit: 'share of queries with half on one token' });
    drawGroups(sheet, kinds, KINDS_OF_SINKS);
  },
  Decomposition(sheet, { heads, mlps, rest, rest_names: names, layers, unit }) {
    drawCells(sheet, heads, { rows: layers, signed: true, unit, axes: ['layer', 'head'] });
    drawBars(sheet, [...names, ...layers.map((/** @type {string} */ name) => `MLP ${name}`)], [...rest.data, ...mlps.data]); // prettier-ignore
  },
  Segments(sheet, { labels, crop_box: place }) {
    const { shape: [rows, cols], data } = labels; // prettier-ignore
    const groups = Array.from(data, Number);
    const { photo } = sheet.scene;
    const [tall, wide] = place.original_size;
    const canvas = canvasOf(1200, Math.round((1200 * tall) / wide));
    const context = contextOf(canvas);
    context.drawImage(/** @type {HTMLImageElement} */ (photo), 0, 0, canvas.width, canvas.height);
    const [top, left, height, across] = place.region.map(
      (/** @type {number} */ edge) => (edge * 1200) / wide,
    );
    context.globalAlpha = 0.55;
    groups.forEach((group, i) => {
      context.fillStyle = GROUPS[group % GROUPS.length];
      const [x, y] = [left + ((i % cols) * across) / cols, top + (Math.floor(i / cols) * height) / rows];
      context.fillRect(x, y, across / cols + 0.5, height / rows + 0.5);
    });
    sheet.picture(canvas, MARGIN, sheet.y, sheet.inner, (sheet.inner * canvas.height) / canvas.width);
    sheet.y += (sheet.inner * canvas.height) / canvas.width + 6;
    const sizes = groups.reduce(
      (all, group) => ((all[group] = (all[group] ?? 0) + 1), all),
      /** @type {number[]} */ ([]),
    );
    keyOf(sheet, sizes.map((_, group) => `segment ${group}`), sizes, ['patch', 'patches']); // prettier-ignore
  },
  PatchPlaces(sheet, { values }) {
    const { photo } = sheet.scene;
    const { naturalWidth: width, naturalHeight: height } = /** @type {HTMLImageElement} */ (photo);
    const canvas = canvasOf(Math.min(width, 1600), Math.round((Math.min(width, 1600) * height) / width));
    contextOf(canvas).drawImage(/** @type {HTMLImageElement} */ (photo), 0, 0, canvas.width, canvas.height);
    const scale = sheet.inner / width;
    sheet.picture(canvas, MARGIN, sheet.y, sheet.inner, height * scale);
    for (let at = 0; at < values.data.length; at += 4) {
      const [top, left, bottom, right] = values.data.subarray(at, at + 4);
      sheet.marks.push(
        `<rect x="${MARGIN + left * scale}" y="${sheet.y + top * scale}" width="${(right - left) * scale}" height="${(bottom - top) * scale}" fill="none" stroke="#fff" stroke-width="0.6"/>`,
      );
    }
    sheet.y += height * scale + 6;
  },
  ReceivedImage(
    sheet,
    {
      values: {
        shape: [height, width, channels = 1],
        data,
      },
    },
  ) {
    const picture = new Picture(undefined, width, height);
    const pixel = (/** @type {number} */ i) =>
      [0, 1, 2].map((part) => data[i * channels + Math.min(part, channels - 1)]);
    const bytes = Uint8ClampedArray.from({ length: height * width * 4 }, (_, at) => (at % 4 === 3 ? 255 : pixel(at >> 2)[at % 4])); // prettier-ignore
    picture.set(new Uint32Array(bytes.buffer));
    const size = Math.min(sheet.inner, (sheet.inner * width) / height);
    sheet.picture(enlarged(picture.canvas, 1200), MARGIN, sheet.y, size, (size * height) / width);
    sheet.y += (size * height) / width + 6;
  },
  FilterComponents(
    sheet,
    {
      values: {
        shape: [count, channels, height, width],
        data,
      },
      shares,
    },
  ) {
    const size = channels * height * width;
    const names = Array.from({ length: count }, (_, i) => `${i}: ${(100 * shares.data[i]).toFixed(1)}%`);
    tiles(sheet, names, (place) => {
      const values = data.subarray(place * size, (place + 1) * size);
      const most = values.reduce(
        (/** @type {number} */ top, /** @type {number} */ value) => Math.max(top, Math.abs(value)),
        1e-30,
      );
      const at = (/** @type {number} */ pixel, /** @type {number} */ part) =>
        128 + (127 * values[Math.min(part, channels - 1) * height * width + pixel]) / most;
      const bytes = Uint8ClampedArray.from({ length: height * width * 4 }, (_, i) => (i % 4 === 3 ? 255 : at(i >> 2, i % 4))); // prettier-ignore
      const picture = new Picture(undefined, width, height);
      picture.set(new Uint32Array(bytes.buffer));
      return enlarged(picture.canvas, 200);
    });
  },
};
