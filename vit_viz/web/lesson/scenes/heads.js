// Scene (c): the heads of a block side by side, then put together; what they and the MLP add to the token.

import { clamp } from '../../../explorer/geometry.js';
import { percent, short } from '../../../ui/kit/numbers.js';
import { beatsOf, between, ease, mix, rowOf, said, shapeOf, told } from '../timeline.js';
/** @import { Area, Pen } from '../pen.js' */
/** @import { Answer, Numbers, Scene, Times } from '../timeline.js' */

const NEAR = 0.1; // lengths that differ by less than this share are called about the same

export const lengthOf = (/** @type {ArrayLike<number>} */ vector) => Math.hypot(...Array.from(vector));
/** Where the colours of a vector are full: twice its usual size, since a few numbers are far larger. @param {ArrayLike<number>} vector */
export const usual = (vector) => (2 * lengthOf(vector)) / Math.sqrt(vector.length);
const arraysOf = (/** @type {Numbers} */ n) => /** @type {Answer} */ (n.block).arrays;

/** The share of numbers above 0 in the MLP. @param {Numbers} n */
function active(n) {
  const { data } = arraysOf(n).hidden;
  return data.filter((/** @type {number} */ one) => one > 0).length / data.length;
}

/** Which head brings most, by the length of its part. @param {Numbers} n */
function strongest(n) {
  const { contributions } = arraysOf(n);
  const lengths = Array.from({ length: contributions.shape[0] }, (_, i) => lengthOf(rowOf(contributions, i)));
  const length = Math.max(...lengths);
  return { head: lengths.indexOf(length), length };
}

/** What attention and the MLP add, as lengths. @param {Numbers} n */
const added = (n) => ['attended', 'thought'].map((name) => lengthOf(arraysOf(n)[name].data));

/** Where the heads look. @param {Numbers} n */
const allHeads = ({ trace: { heads }, layer, patch }) =>
  heads === 1
    ? told`That was the one head of block ${layer}: here is where our patch ${{ patch }} looks in it.`
    : told`That was one head; block ${layer} has ${heads}. Each makes queries, keys and values with tables of its own, so each looks elsewhere: here is where our patch ${{ patch }} looks in each.`;

/** @type {Times} */
const TIMES = {
  ...{ all: [6, 'attn'], gather: [4, 'attn'], join: [5, 'attn'], parts: [7, 'attn'], length: [8, 'attn'] },
  ...{ add: [8, 'attn'], mlp: [9, 'mlp'], after: [9, 'mlp'] },
};
const SAID = {
  all: allHeads,
  gather: said`What each head brings back is the sum of the values it took: ${(n) => arraysOf(n).outputs.shape[1]} numbers.`,
  join: said`Side by side they are one list again: ${(n) => arraysOf(n).outputs.shape.join(' × ')} = ${(n) => arraysOf(n).outputs.data.length} numbers.${(n) => (shapeOf(n).attn_norm ? ' They are brought to one scale.' : '')}`,
  parts: said`One more learned table, the *output projection*, turns that list into ${(n) => arraysOf(n).before.data.length} numbers, as many as a token has.${(n) => (shapeOf(n).layer_scale ? ' A learned factor makes each of these larger or smaller.' : '')} Each head has a part of the table to itself, so we can see what each gives: a row for each.`,
  length: said`How much is that? A list of numbers is measured by its *length*: square each number, add the squares up and take the root, as for the diagonal of a rectangle. Head ${(n) => strongest(n).head} gives most: ${(n) => short(strongest(n).length)}.`,
  add: said`Nothing is replaced: the rows${(n) => (arraysOf(n).rest.data.some(Boolean) ? ' and a constant list' : '')} are ${{ strong: 'added' }} to what the token was, which stays. That is a *residual connection*; what grows from block to block is the *residual stream*, the band below the blocks.`,
  mlp: said`Now the token works alone. A copy of it, brought to one scale again, goes through a small network, the *MLP*: a table makes ${(n) => arraysOf(n).hidden.data.length} numbers of it, and those below zero become almost nothing, so that ${(n) => percent(active(n))} of them ${(n) => (shapeOf(n).mlp.startsWith('swiglu') ? told`let through what a second table makes: a *gate*` : 'go on')}.`,
  after: said`One more table makes ${(n) => arraysOf(n).before.data.length} numbers of these${(n) => (shapeOf(n).mlp_norm ? ', brought to one scale before' : '')},${(n) => (shapeOf(n).layer_scale ? ' a learned factor scales each,' : '')} and they are added, too: our token came with length ${(n) => short(lengthOf(arraysOf(n).before.data))} and goes on with ${(n) => short(lengthOf(arraysOf(n).after.data))}. All other tokens do the same at the same time, with their own numbers and the same tables.`,
};

/** @type {Scene} */
export const HEADS = {
  id: 'heads',
  title: () => 'All heads answer; what they bring is added',
  needs: ['tokens', 'block'],
  beats: (n) => beatsOf('heads', TIMES, SAID, n.layer),
  draw,
  guess: {
    before: 'heads-mlp',
    shown: 'heads-after',
    question: ({ patch, layer }) =>
      told`Guess: what will add more to our patch ${{ patch }} in block ${layer}?`,
    choices: ({ trace }) => [
      [trace.heads === 1 ? 'the head' : `the ${trace.heads} heads together`],
      ['the network that comes next'],
      ['both about the same'],
    ],
    truth(n) {
      const [attended, thought] = added(n);
      if (Math.abs(attended - thought) <= NEAR * Math.max(attended, thought)) return 2;
      return attended > thought ? 0 : 1;
    },
    verdict(n) {
      const [attended, thought] = added(n).map(short);
      return told`All heads together add a list of length ${attended}, the network one of length ${thought}. Lengths do not simply add up: lists of numbers can point against each other.`;
    },
  },
  whatIf: [{ change: 'head', label: 'a head were switched off', controls: ['layer', 'head'] }],
  fold: {
    build: ['heads', 'block'],
    shapes({ trace, block }) {
      if (!block) return [];
      const { weights, outputs, before, hidden } = block.arrays;
      const [[count, tokens], dim] = [weights.shape, before.shape[0]];
      return [
        ['shares', `[${count}, ${tokens}, ${tokens}]`, 'of each head and token, for each token'],
        ['gathered', `[${tokens}, ${trace.heads} × ${outputs.shape[1]}]`, 'all heads side by side'],
        ['added', `[${tokens}, ${dim}]`, 'by attention'],
        ['hidden', `[${tokens}, ${hidden.shape[0]}]`, 'inside the MLP'],
        ['added', `[${tokens}, ${dim}]`, 'by the MLP'],
      ];
    },
  },
};

/**
 * The lines of a token and of what is added to it: one for the token before, one for each head, in two columns where they are many, one
 * for the MLP, and one for the sum.
 * @param {Pen} pen @param {number} count of heads
 */
function linesOf({ work, wide, unit: u }, count) {
  const cols = count > 8 ? 2 : 1;
  const heads = Math.ceil(count / cols);
  const pitch = Math.min((wide ? 46 : 30) * u, work.h / (heads + 3));
  const h = Math.min((wide ? 18 : 12) * u, pitch - 4);
  const [name, number] = wide ? [104 * u, 56 * u] : [70, 40];
  /** Of a line, where its vector lies. @param {number} line @returns {Area} */
  const at = (line) => ({
    ...{ x: work.x + name, y: work.y + line * pitch + (pitch - h) / 2, w: work.w - name - number, h },
  });
  return { heads, pitch, name, number, step: work.w / cols, at };
}

/** @type {Scene['draw']} */
function draw(pen, v, n) {
  const { weights, outputs } = arraysOf(n);
  pen.lit(rowOf(weights, n.head), pen.photo);
  pen.frame(pen.at(n.patch), 'accent');
  pen.caption(`where it looks in head ${n.head}`);
  const [lines, tile] = [linesOf(pen, weights.shape[0]), tiles(pen, weights.shape[0])];
  for (let head = 0; head < weights.shape[0]; head++) drawHead(pen, v, n, { lines, tile, head });
  const a = Math.min(ease(v['heads-join'] * 2 - 1), 1 - v['heads-parts'] * 3);
  pen.text(`${outputs.data.length} numbers in one list`, pen.work.x, tile.list - 8, { a });
  drawToken(pen, v, n, lines);
  const words = `share of its attention in head ${n.head}`;
  pen.tokens(n.trace.prefix.length + n.patch, rowOf(weights, n.head), words);
}

/** The length of a line, behind it. @param {Pen} pen @param {string} id @param {Float32Array} vector @param {number} x @param {Area} line @param {number} a */
function drawMeasure(pen, id, vector, x, { y, h }, a) {
  const length = lengthOf(vector);
  pen.number(`heads-${id}`, length, short(length), x - 4, y + h - 3, { align: 'right', fill: 'text', a });
}

/**
 * A head: a tile with its numbers below; these go into one list, and of it becomes a line, which falls into the sum.
 * @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n
 * @param {{lines: ReturnType<typeof linesOf>, tile: ReturnType<typeof tiles>, head: number}} of
 */
function drawHead(pen, v, n, { lines, tile, head }) {
  const { work, wide } = pen;
  const { weights, outputs, contributions, before } = arraysOf(n);
  const [count] = weights.shape;
  const [gathered, joined, apart] = ['gather', 'join', 'parts'].map((id) => ease(v[`heads-${id}`]));
  const [line, right] = [1 + (head % lines.heads), Math.floor(head / lines.heads) * lines.step];
  const a = ease(v['heads-all'] * 2 - head / count);
  const from = tile.at(head);
  const small = Math.min((lines.pitch - 4) / from.h, (lines.name - (wide ? 56 * pen.unit : 6)) / from.w);
  const end = { x: work.x + right, y: work.y + line * lines.pitch, w: from.w * small, h: from.h * small };
  const area = between(from, end, apart);
  pen.lit(rowOf(weights, head), area, a);
  if (head === n.head) pen.frame(area, 'accent', a, 2);
  const x = mix(area.x + 6, area.x + area.w + 8, apart);
  pen.text(wide ? `head ${head}` : String(head), x, mix(area.y + 18, area.y + area.h / 2 + 5, apart), {
    ...{ size: 12, fill: apart > 0.5 ? 'muted' : '#fff' },
    a: wide ? a * Math.abs(1 - 2 * apart) : 1 - apart,
  });
  const slot = work.w / count;
  const lies = { ...lines.at(line), x: from.x, y: from.y + from.h + 6, w: from.w };
  const list = { ...lies, x: work.x + head * slot, y: tile.list, w: slot - 2 };
  const how = { max: usual(outputs.data), shown: gathered, a: 1 - apart * 2 };
  pen.vector(rowOf(outputs, head), between(lies, list, joined), how);
  const part = rowOf(contributions, head);
  const own = {
    ...lines.at(line),
    x: work.x + right + lines.name,
    w: lines.step - lines.name - lines.number,
  };
  const max = usual(before.data);
  const shown = clamp(v['heads-parts'] * 2.4 - 1.2 - head / count / 5);
  pen.vector(part, own, { max, shown, a: apart });
  drawMeasure(pen, `part-${head}`, part, work.x + right + lines.step, own, ease(v['heads-length']));
  const falls = v['heads-add'] * 1.6 - (0.6 * head) / count;
  drawFall(pen, part, { ...own, w: lines.at(0).w }, lines.at(lines.heads + 2), falls, max);
}

/** A line on its way into the sum. @param {Pen} pen @param {Float32Array} vector @param {Area} from @param {Area} to @param {number} share of the way @param {number} max */
function drawFall(pen, vector, from, to, share, max) {
  const p = ease(share);
  if (p > 0 && p < 1) pen.vector(vector, between(from, to, p), { max, a: 1 - p * 0.6 });
}

/** What the token was, what the MLP adds, and what it is now. @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n @param {ReturnType<typeof linesOf>} lines */
function drawToken(pen, v, n, lines) {
  const { work, wide } = pen;
  const { before, thought, hidden, activated, ...arrays } = arraysOf(n);
  const { heads, pitch } = lines;
  const max = usual(before.data);
  const [seen, inside, after] = ['length', 'mlp', 'after'].map((id) => v[`heads-${id}`]);
  const [lands, falls] = [ease(after * 2), ease(after * 2 - 1)];
  const now = falls > 0.5 ? 'after' : 'middle';
  /** @type {[id: string, words: string, line: number, vector: Float32Array, a: number][]} */
  const parts = [
    ['before', 'before', 0, before.data, ease(v['heads-parts'] * 2 - 1)],
    ['thought', '+ MLP', heads + 1, thought.data, lands],
    [now, falls > 0.5 ? '= after' : '= so far', heads + 2, arrays[now].data, ease(v['heads-add'])],
  ];
  for (const [id, words, line, vector, a] of parts) {
    const lies = lines.at(line);
    pen.text(words, work.x, lies.y + lies.h - 3, { fill: 'text', weight: 600, a });
    pen.vector(vector, lies, { max, shown: a, a });
    drawMeasure(pen, id, vector, work.x + work.w, lies, Math.min(a, ease(seen)));
  }
  drawFall(pen, thought.data, lines.at(heads + 1), lines.at(heads + 2), after * 2 - 1, max);
  const [top, foot] = [work.y + (heads + 1) * pitch, work.y + (heads + 3) * pitch - 8];
  pen.within(seen - clamp(v['heads-add'] * 4), () => drawLength(pen, n, top, foot, lines.at(0).x));
  pen.within(clamp(inside * 4) - lands, () => {
    const h = (pitch - 8) / 2;
    pen.text(wide ? `${hidden.data.length} numbers` : 'MLP', work.x, top + h, { size: 12 });
    pen.text(wide ? 'what is left' : '', work.x, top + 2 * h + 2, { size: 12, a: inside * 3 - 1 });
    for (const [i, strip] of [hidden.data, activated.data].entries()) {
      const how = { max: usual(hidden.data), shown: clamp(inside * 2 - i) };
      pen.vector(strip, { ...lines.at(0), y: top + i * (h + 2), h }, how);
    }
  });
}

/** Small photos side by side, as large as they fit with a list below each and one below all. @param {Pen} pen @param {number} count */
function tiles({ work, photo, wide, unit }, count) {
  const [gap, below, list] = (wide ? [12, 34, 60] : [6, 24, 40]).map((size) => size * unit);
  const flat = photo.h / photo.w;
  const fits = (/** @type {number} */ across) =>
    Math.min(
      (work.w - gap * (across - 1)) / across,
      ((work.h - list) / Math.ceil(count / across) - below) / flat,
    );
  const suits = (/** @type {number} */ across) => fits(across) * Math.sqrt(across);
  const full = Array.from({ length: count }, (_, i) => Math.ceil(count / (i + 1)));
  const best = full.reduce((a, b) => (suits(b) > suits(a) ? b : a));
  const [w, down] = [Math.max(8, fits(best)), Math.max(8, fits(best)) * flat + below];
  return {
    list: work.y + Math.ceil(count / best) * down + 24 * unit,
    at: (/** @type {number} */ i) => ({
      ...{ x: work.x + (i % best) * (w + gap), y: work.y + Math.floor(i / best) * down, w, h: w * flat },
    }),
  };
}

/**
 * A length worked out: two numbers of the strongest part as the sides of a rectangle, then all of them.
 * @param {Pen} pen @param {Numbers} n @param {number} top @param {number} foot @param {number} x of the words
 */
function drawLength(pen, n, top, foot, x) {
  const { head, length } = strongest(n);
  const vector = rowOf(arraysOf(n).contributions, head);
  const [p, q] = [...vector].map(Math.abs).sort((a, b) => b - a);
  const scale = Math.min((x - pen.work.x - 20) / p, (foot - top) / q);
  const box = { x: pen.work.x, y: foot - q * scale, w: p * scale, h: q * scale };
  pen.box(box, 'soft', 1, 0);
  const corner = { x: box.x, y: foot, w: 0, h: 0 };
  pen.line(corner, { ...corner, x: box.x + box.w, y: box.y }, 2.5, 1, 1, 0);
  const squares = `√(${short(p)}² + ${short(q)}²`;
  const [two, all] = pen.wide
    ? [': the diagonal for two numbers', ` for all ${vector.length} of head ${head}`]
    : [' for two numbers', ` for all ${vector.length}`];
  const middle = (top + foot) / 2;
  pen.text(`${squares}) = ${short(Math.hypot(p, q))}${two}`, x, middle - 6);
  pen.text(`${squares} + …) = ${short(length)}${all}`, x, middle + 16, { fill: 'text' });
}
