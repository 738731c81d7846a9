// The first scene: the photo is cut into patches, which fly into a row, and one of them becomes a token.

import { clamp, placeWords } from '../../../explorer/geometry.js';
import { counted } from '../../../ui/kit/numbers.js';
import { largestOf } from '../../kit/signed.js';
import {
  beatsOf,
  between,
  capital,
  ease,
  kindsInWords,
  mix,
  rowOf,
  said,
  shapeOf,
  told,
} from '../timeline.js';
/** @import { Pen } from '../pen.js' */
/** @import { Answer, Numbers, Scene, Times } from '../timeline.js' */

/** A size in words: "128 × 128 pixels", "60 pixels high and 100 wide". @param {number} tall @param {number} wide */
const sizeInWords = (tall, wide) =>
  tall === wide ? `${tall} × ${wide} pixels` : `${tall} pixels high and ${wide} wide`;

/** @param {Numbers} n */
function sizesOf({ trace: { crop, grid, prefix }, tokens }) {
  const [rows, cols] = grid;
  const [channels, tall, wide] = tokens?.arrays.pixels.shape ?? [
    ...[3, Math.round(crop.input[0] / rows), Math.round(crop.input[1] / cols)],
  ];
  const count = rows * cols;
  return { rows, cols, tall, wide, channels, count, all: count + prefix.length };
}

/** The sides of a patch, and its channels where there are several. @param {Numbers} n */
function productOf(n) {
  const { tall, wide, channels } = sizesOf(n);
  return [tall, wide, ...(channels > 1 ? [channels] : [])];
}

const numbersIn = (/** @type {Numbers} */ n) => productOf(n).reduce((all, one) => all * one, 1);

/** How many numbers a pixel is, in words. @param {Numbers} n */
function pixelInWords(n) {
  const { channels } = sizesOf(n);
  if (channels === 3) return 'three numbers: how red, how green and how blue it is';
  return channels === 1 ? 'one number: how bright it is' : `${channels} numbers`;
}

/** Whether anything says where a patch was cut. @param {any} shape */
const tellsPlaces = ({ position, rotary, relative }) =>
  !['none', 'rotary'].includes(position) || rotary || relative;

/** Where the patch was cut. @param {Numbers} n */
const rowAndColumn = ({ patch, trace: { grid } }) =>
  `row ${Math.floor(patch / grid[1])} and column ${patch % grid[1]}`;

/** What tells the model where a patch was cut. @param {Numbers} n */
function placeInWords(n) {
  const [shape, where] = [shapeOf(n), rowAndColumn(n)];
  const later = [
    shape.rotary && 'its place will turn its numbers, like the hand of a clock, wherever tokens are compared',
    shape.relative && 'how far apart two patches are will count when they are compared',
  ].filter(Boolean);
  const also = later.length ? ` Later, ${later.join(', and ')}.` : '';
  if (shape.position === 'learned')
    return `, so the learned numbers of its place, ${where}, are added.${also}`;
  if (shape.position.startsWith('sinusoidal'))
    return `, so numbers that stand for its place, ${where}, are added: waves of many lengths.${also}`;
  if (!tellsPlaces(shape)) return ', and this model does not tell it: nothing is added.';
  return `. In this model nothing is added for that: ${later.join(', and ')}.`;
}

/** Which tokens come before the patches, and what for. @param {Numbers} n */
function othersJoin(n) {
  const { prefix, pooling } = n.trace;
  const many = prefix.length === 1 ? 'One more token joins' : `${prefix.length} more tokens join`;
  const read = ` ${capital(shapeOf(n).read)} will gather from all others, and at the end the answer is read there.`;
  const role = pooling === 'class' ? read : '';
  const notes = prefix.some((one) => /^register/.test(one)) ? ' Registers are room for notes.' : '';
  return told`${many} in front, not cut from the photo but learned, the same for every photo: ${{ term: kindsInWords(prefix) }}.${role}${notes}`;
}

const KNOWN = { needs: [] }; // which waits for no answer
/** @type {Times} */
const TIMES = {
  ...{ see: [3, 'photo', KNOWN], grid: [4, 'patches', KNOWN], row: [6, 'patches', KNOWN] },
  ...{ patch: [5, 'embed'], list: [5, 'embed'], embed: [6, 'embed'], place: [6, 'tokens'] },
  ...{ join: [6, 'tokens', { isFor: (n) => n.trace.prefix.length > 0 }] },
};
const SAID = {
  see: said`This is the photo as the model gets it: ${(n) => sizeInWords(...n.trace.crop.input)}.`,
  grid: said`It is cut into ${(n) => n.trace.grid.join(' × ')} pieces, each ${(n) => sizeInWords(sizesOf(n).tall, sizesOf(n).wide)}. They are called *patches*.`,
  row: said`The patches are laid in one row, line by line, like the words of a page: ${(n) => sizesOf(n).count} of them.`,
  patch: said`We follow this one, ${({ patch }) => ({ patch })}. Each of its ${(n) => sizesOf(n).tall * sizesOf(n).wide} pixels is ${pixelInWords}.`,
  list: said`Written as one list, the patch is ${(n) => productOf(n).join(' × ')} = ${numbersIn} numbers.`,
  embed: said`The *embedding* makes a *token* of the list: ${(n) => n.tokens?.arrays.token.data.length} numbers that stand for the patch from here on. Each is a sum of the list's numbers, times weights of a learned table that is the same for every patch: a convolution in steps of one patch.${(n) => (shapeOf(n).patch_norm ? ' Then they are brought to one scale.' : '')}`,
  place: said`A token does not know where it was cut${placeInWords}${(n) => (shapeOf(n).pre_norm ? ' Before the first block each token is brought to one scale.' : '')}`,
  join: othersJoin,
};

/** How far the tokens that are no patches have come. @param {Record<string, number>} v */
const joined = (v) => ease(v['cut-join'] ?? 0);

/** @type {Scene['draw']} */
function draw(pen, v, n) {
  const { rows, cols, tall, wide, count, all } = sizesOf(n);
  const { photo, row, work, unit, wide: isWide } = pen;
  const { prefix, crop } = n.trace;
  const pick = ease(v['cut-patch']);
  const join = joined(v);
  const me = prefix.length + n.patch;
  const spots = pen.spots([[me, 12 * pick, 5]], join);

  // the photo: whole, in pieces, and what stays of them when they have flown
  const gap = ease(v['cut-grid']) * 0.09;
  const flown = (/** @type {number} */ patch) => ease(v['cut-row'] * 4 - (3 * patch) / count);
  if (gap < 0.001) pen.lit(null, photo);
  else
    for (let patch = 0; patch < count; patch++) {
      const { x, y, w, h } = pen.at(patch);
      const piece = { x: x + gap * w, y: y + gap * h, w: w - 2 * gap * w, h: h - 2 * gap * h };
      pen.piece(patch, piece, 1 - 0.75 * clamp(flown(patch) * 5));
    }
  pen.frame(pen.at(n.patch), 'accent', pick);

  // the row: each patch flies as it is, and is squeezed where it lands
  for (let token = 0; token < all; token++) {
    const to = { ...spots[token], h: row.h };
    if (token < prefix.length) {
      const p = ease(v['cut-join'] * 2 - token * 0.2);
      pen.face(token, { ...to, x: mix(row.x - 60, to.x, p) }, p);
      continue;
    }
    const p = flown(token - prefix.length);
    if (p <= 0) continue;
    const from = pen.at(token - prefix.length);
    const { w, h } = between({ ...from, w: from.w * 0.9, h: from.h * 0.9 }, spots[token], ease(p * 3 - 2));
    pen.face(token, { x: mix(from.x, to.x, p ** 0.8), y: mix(from.y, to.y, p ** 1.6), w, h });
  }
  pen.frame(spots[me], 'accent', pick);
  const many = join < 0.5 ? counted(count, 'patch', 'patches') : counted(all, 'token');
  pen.below(`${many} in one row`, { align: 'right', a: ease(v['cut-row'] * 2 - 1) });

  // beside it: how many there are, then what becomes of one
  const landed = String(Math.round(clamp((v['cut-row'] * 4 - 1) / 3) * count));
  const cut = `patches of ${tall} × ${wide} pixels`;
  /** @type {[string, string, number][]} */
  const large = [
    [`${crop.input[0]} × ${crop.input[1]}`, 'pixels, rows × columns', 1 - v['cut-grid'] * 4],
    [`${rows} × ${cols}`, cut, Math.min(v['cut-grid'] * 4 - 1, 1 - v['cut-row'] * 4)],
    [landed, 'patches in the row', Math.min(v['cut-row'] * 8 - 1, 1 - v['cut-patch'] * 4)],
  ];
  for (const [number, what, a] of large) {
    const how = { size: isWide ? 52 : 40, weight: 600, fill: 'text', a };
    pen.text(number, work.x, work.y + (isWide ? 60 : 44) * unit, how);
    pen.text(what, work.x, work.y + (isWide ? 92 : 70) * unit, { size: 17, a });
  }
  if (pick > 0 && n.tokens) drawToken(pen, v, n);
}

/** One patch: its pixels, these as a list, the token, and its place. @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n */
function drawToken(pen, v, n) {
  const { work, unit: u, wide: isWide } = pen;
  const { tall, wide, channels } = sizesOf(n);
  const { arrays } = /** @type {Answer} */ (n.tokens);
  const [from, p, join] = [pen.at(n.patch), ease(v['cut-patch']), joined(v)];
  const sizes = isWide ? [150, 36, 16, 48, 24, 60] : [84, 14, 11, 30, 16, 38];
  const [side, gap, cell, under, high, pitch] = sizes.map((one) => one * u);
  const [w, h] = from.w > from.h ? [side, (side * from.h) / from.w] : [(side * from.w) / from.h, side];
  const patch = between(from, { x: work.x, y: work.y, w, h }, p);
  const [cw, ch] = [patch.w / wide, patch.h / tall];
  const size = tall * wide;
  const level = (/** @type {number} */ pixel, /** @type {number} */ channel) =>
    Math.round(255 * clamp(arrays.pixels.data[channel * size + pixel]));
  /** Where a pixel is in the enlarged patch. @param {number} i */
  const at = (i) => ({ x: patch.x + (i % wide) * cw, y: patch.y + Math.floor(i / wide) * ch, w: cw, h: ch });
  pen.piece(n.patch, patch);
  for (let i = 0; i < size; i++) {
    const rgb = [0, 1, 2].map((k) => level(i, channels === 3 ? k : 0));
    pen.box({ ...at(i), w: cw * 0.95, h: ch * 0.95 }, `rgb(${rgb})`, p, 0);
  }
  const caption = isWide ? rowAndColumn(n) : placeWords(n.patch, n.trace.grid[1]);
  pen.text(caption, work.x, work.y + h + 20 * u, { a: p - join });

  const x = work.x + side + gap;
  const [width, lines] = [work.x + work.w - x, Math.min(channels, 4)];
  const step = width / size;
  for (let k = 0; k < lines; k++)
    for (let i = 0; i < size; i++) {
      const q = ease(v['cut-list'] * 2.4 - (1.4 * (i + (k * size) / 3)) / (size * 1.67));
      if (q <= 0) continue;
      const rgb = [0, 1, 2].map((one) => (channels !== 3 || one === k ? level(i, k) * 0.85 + 20 : 20));
      const end = { x: x + i * step, y: work.y + k * (cell + 4), w: step * 0.92, h: cell };
      pen.box(between(at(i), end, q), `rgb(${rgb.map(Math.round)})`, 1, 0);
    }
  const kinds = channels === 3 ? ': red, green, blue' : '';
  const above = work.y - (isWide ? 8 : 4);
  pen.text(`${size * channels} numbers${kinds}`, x, above, { a: ease(v['cut-list'] * 2 - 1) });

  const lies = { x, y: work.y + lines * (cell + 4) + under, w: width, h: high, pitch };
  pen.within(1 - join, () => drawSum(pen, v, n, lies));
  if (isWide) pen.within(1 - join, () => drawAlike(pen, v, n, work.y + h + 56 * u, side));
  if (join > 0) drawOthers(pen, n, lies, join);
}

/** @typedef {import('../pen.js').Area & {pitch: number}} Lies where the first vector lies, and how far below it the next one does */

/** The table makes a token of the list, and the place is added. @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n @param {Lies} lies */
function drawSum(pen, v, n, { x, y, w, h, pitch }) {
  const { flat, embedded, position, token } = /** @type {Answer} */ (n.tokens).arrays;
  const max = 0.6 * largestOf(token.data);
  const label = (/** @type {string} */ words, /** @type {number} */ at, /** @type {number} */ a) =>
    pen.text(words, x, at - 8, { a });
  const row = (/** @type {any} */ { data }, /** @type {number} */ at, a = 1, shown = 1) =>
    pen.vector(data, { x, y: at, w, h }, { max, shown, a });
  const [grow, place] = [clamp(v['cut-embed']), v['cut-place']];
  if (grow > 0) row(embedded, y, 1, grow);
  const table = `× one table of ${flat.data.length} × ${token.data.length} learned numbers = the token`;
  label(pen.wide ? table : '× a learned table = the token', y, ease(grow * 3));
  const hasPlace = largestOf(position.data) > 0;
  const sum = y + (hasPlace ? 2 : 1) * pitch;
  const [q, r] = hasPlace ? [clamp(place * 2), clamp(place * 2 - 1)] : [0, ease(place)];
  row(position, y + pitch, q);
  label('+ its place', y + pitch, q);
  if (hasPlace && r > 0)
    [embedded, position].forEach((one, i) => row(one, mix(y + i * pitch, sum, ease(r)), 1 - r));
  row(token, sum, r);
  const goesIn = `${hasPlace ? '= ' : ''}the token that goes in${shapeOf(n).pre_norm ? ', at one scale' : ''}`;
  pen.text(goesIn, x, sum - 8, { fill: 'text', weight: 600, a: r });
}

/** The photo, lit where places are most like that of the patch. @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n @param {number} y @param {number} side */
function drawAlike(pen, v, n, y, side) {
  const { data } = /** @type {Answer} */ (n.tokens).arrays.places;
  const a = ease(v['cut-place'] * 2 - 0.5);
  if (!data.length || a <= 0) return;
  const { work, photo, unit } = pen;
  const w = Math.min(side, ((work.y + work.h - y) * photo.w) / photo.h);
  pen.lit([...n.trace.prefix.map(() => 0), ...data], { x: work.x, y, w, h: (w * photo.h) / photo.w }, a);
  pen.text('lit: places most like its own', work.x, y - 8 * unit, { size: 12, a });
}

/** The tokens that come from no patch, and below them the one that does. @param {Pen} pen @param {Numbers} n @param {Lies} lies @param {number} join */
function drawOthers(pen, n, { x, y, w, h, pitch }, join) {
  const { token, prefix } = /** @type {Answer} */ (n.tokens).arrays;
  const many = Math.min(n.trace.prefix.length, 6);
  const above = y - h - (pen.wide ? 8 : 4);
  pen.text('each on a scale of its own', x + w, above, { size: 12, align: 'right', a: join });
  for (let i = 0; i <= many; i++) {
    const [top, a] = [y - h + i * pitch * 0.6, ease(join * 3 - i * 0.3)];
    const [face, own] = i < many ? [i, rowOf(prefix, i)] : [n.trace.prefix.length + n.patch, token.data];
    pen.face(face, { x: x - h - 8, y: top, w: h, h }, a);
    pen.vector(own, { x, y: top, w, h }, { max: 0.6 * largestOf(own), a });
  }
}

/** @type {Scene} */
export const CUT = {
  id: 'cut',
  title: () => 'A photo becomes a row of tokens',
  needs: ['tokens'],
  beats: () => beatsOf('cut', TIMES, SAID),
  draw,
  guess: {
    before: 'cut-list',
    question: () => told`How many numbers does the model get for this one patch?`,
    choices(n) {
      const { tall, wide, count } = sizesOf(n);
      return [tall + wide, numbersIn(n), count * 10].map((many) => [String(many)]);
    },
    truth: () => 1,
    verdict: (n) => told`${productOf(n).join(' × ')} = ${numbersIn(n)}.`,
  },
  whatIf: [
    { change: 'patch', label: 'the patches had another size', controls: ['patch'] },
    { change: 'shuffle', label: 'the patches came in another order', controls: ['seed'] },
    {
      change: 'positions',
      label: 'nobody told the places',
      controls: ['seed'],
      isFor: (n) => n.tokens !== null && tellsPlaces(shapeOf(n)),
    },
  ],
  fold: {
    build: ['tokens'],
    shapes(n) {
      const { tall, wide, channels, count, all } = sizesOf(n);
      const dim = n.tokens?.arrays.token.data.length ?? '';
      return [
        ['photo', `[${channels}, ${n.trace.crop.input.join(', ')}]`, 'channels, height, width'],
        ['patches', `[${count}, ${tall * wide * channels}]`, 'one list for each'],
        ['tokens', `[${all}, ${dim}]`, `after a table [${tall * wide * channels}, ${dim}], with all tokens`],
      ];
    },
  },
};
