// Scene (d): the patch that is followed, and what the answer is read from, through all blocks, with the answer after each.

import { classTokens, clamp } from '../../../explorer/geometry.js';
import { percent, short } from '../../../ui/kit/numbers.js';
import { largestOf } from '../../kit/signed.js';
import { beatsOf, capital, ease, mix, rowOf, said, shapeOf, told } from '../timeline.js';
import { lengthOf, usual } from './heads.js';
/** @import { Pen } from '../pen.js' */
/** @import { Answer, Beat, Numbers, Say, Scene, Times } from '../timeline.js' */

const LONGEST = 36; // seconds that all blocks together take
const SHOWN = 3; // names, one below the other
const SMALLEST = 72; // pixels across a photo
const ALIKE = 0.9; // cosine of an embedding that is nearly the last

/** What the answer is read from, in words: "the class token". @param {Numbers} n */
export const reader = (n) => shapeOf(n).read;

/** Who reads the answer and what they do: "the class token looks"; of a model without class tokens the patches. @param {Numbers} n @param {string} one @param {string} many */
function readers({ trace }, one, many) {
  const isClass = trace.pooling === 'class';
  if (isClass && classTokens(trace).length === 1) return `the class token ${one}`;
  return `the ${isClass ? 'class tokens' : 'patches'} ${many}`;
}

const depthOf = (/** @type {Numbers} */ n) => /** @type {Answer} */ (n.depth);

/** Of our token in a state. @param {Numbers} n @param {number} state */
const lengthAt = (n, state) => lengthOf(rowOf(depthOf(n).arrays.stream, state));

/** What a name gets, as it is written. @param {Numbers} n @param {number} value */
export const amount = (n, value) =>
  depthOf(n).facts.kind === 'probability' ? percent(value) : short(value).replace('-', '−');

/**
 * What is said after so many blocks: each name with what it gets, the first one first; of an embedding how like the last it is.
 * @param {Numbers} n @param {number} state @returns {{index: number, name: string, value: number}[]}
 */
export function saidAfter(n, state) {
  const { arrays, facts } = depthOf(n);
  if (!facts.words.length) return [{ index: 0, name: 'cosine', value: arrays.agreement.data[state] }];
  const values = rowOf(arrays.tops, state);
  return facts.words
    .map((/** @type {string} */ name, /** @type {number} */ index) => ({ index, name, value: values[index] }))
    .sort((/** @type {any} */ a, /** @type {any} */ b) => b.value - a.value);
}

const isNamed = (/** @type {Numbers} */ n) => depthOf(n).facts.words.length > 1;

/** After how many blocks the first name is the one that it stays; without several names, from where on it is nearly the last. @param {Numbers} n */
export function settled(n) {
  const { layers } = n.trace;
  const agreement = depthOf(n).arrays.agreement.data;
  const last = saidAfter(n, layers)[0].index;
  const holds = (/** @type {number} */ state) =>
    isNamed(n) ? saidAfter(n, state)[0].index === last : agreement[state] > ALIKE;
  let first = layers;
  while (first > 0 && holds(first - 1)) first -= 1;
  return first;
}

/** Thirds of the blocks: the first and the last of each. @param {number} layers */
function thirds(layers) {
  const ends = [0, 1, 2, 3].map((third) => Math.round((third * layers) / 3));
  return ends.slice(1).flatMap((end, i) => (end > ends[i] ? [[ends[i], end - 1]] : []));
}

/** @type {Scene} */
export const DEPTH = {
  id: 'depth',
  title: (n) =>
    n.trace.pooling === 'class'
      ? `${capital(readers(n, 'collects', 'collect'))} the answer`
      : 'Block by block, the answer forms',
  needs: ['tokens', 'depth'],
  beats,
  draw,
  guess: {
    isFor: ({ depth }) => depth?.facts.kind === 'embedding' || depth?.facts.words.length > 1, // one number is always like itself
    before: 'depth-0',
    shown: 'depth-end',
    question: (n) =>
      isNamed(n)
        ? told`Guess: after which block does the answer become ${{ strong: saidAfter(n, n.trace.layers)[0].name }}, to stay so?`
        : ['Guess: after which block is the answer nearly what it is at the end?'],
    choices: ({ trace }) =>
      thirds(trace.layers).map(([first, last]) => [
        first === last ? `block ${first}` : `blocks ${first} to ${last}`,
      ]),
    truth: (n) => thirds(n.trace.layers).findIndex(([, last]) => settled(n) - 1 <= last),
    verdict(n) {
      const state = settled(n);
      const [there, end] = [state, n.trace.layers].map((one) => saidAfter(n, one)[0]);
      const where = state ? `after block ${state - 1}` : 'before the first block';
      const values = [there, end].map(({ value }) => amount(n, value));
      return told`It is so from ${where} on: ${{ strong: end.name }} ${values[0]} there, and ${values[1]} at the end.`;
    },
  },
  whatIf: [
    {
      change: 'cut',
      label: 'the class token could not see the patches',
      controls: [],
      isFor: ({ trace }) => trace.pooling === 'class',
    },
  ],
  fold: {
    build: ['model'],
    shapes({ trace, depth }) {
      if (!depth) return [];
      const { stream, answer_looks: looks, tops } = depth.arrays;
      const states = trace.layers + 1;
      return [
        ['stream', `[${states}, ${looks.shape[1]}, ${stream.shape[1]}]`, 'all tokens, after each block'],
        ['read', `[${states}, ${stream.shape[1]}]`, 'what the classifier gets of them'],
        ['said', `[${states}, ${tops.shape[1]}]`, 'of the names that come first'],
      ];
    },
  },
};

/** @type {Times} */
const TIMES = { alike: [9, 'tokens'], read: [8, 'head'], end: [7, 'mlp'] };
const SAID = {
  alike: said`Back to the start: what becomes of our patch ${({ patch }) => ({ patch })}? Picture tokens as arrows: the *cosine* of the angle between two is 1 where they point the same way, 0 at a right angle, −1 where they are opposed. Lit: the patches most like ours.`,
  read: saidOfReading,
  end: said`Our patch ${({ patch }) => ({ patch })} went the same way: its length was ${(n) => short(lengthAt(n, 0))} and is ${(n) => short(lengthAt(n, n.trace.layers))}. Lit: the patches that are most like it now, when each has taken in what it looked at.`,
};

/** Those of all blocks stand before the last. @param {Numbers} n @returns {Beat[]} */
function beats({ trace: { layers } }) {
  const [alike, read, end] = beatsOf('depth', TIMES, SAID);
  const blocks = Array.from({ length: layers }, (_, layer) => ({
    ...{ id: `depth-${layer}`, seconds: layer ? clamp(LONGEST / layers, 5, 1.6) : 8 },
    part: (/** @type {number} */ u) => `${u < 0.5 ? 'attn' : 'mlp'}${layer}`,
    say: (/** @type {Numbers} */ n) => saidOfBlock(n, layer),
  }));
  return [alike, read, ...blocks, { ...end, part: `mlp${layers - 1}` }];
}

/** @param {Numbers} n */
function saidOfReading(n) {
  const { kind } = depthOf(n).facts;
  if (kind === 'embedding')
    return told`This model names nothing: ${reader(n)} becomes a list of numbers that describes the photo. After each block we ask how like the last it is.`;
  const made =
    kind === 'value'
      ? 'the values that it returns'
      : 'one score, and from that one share, for each name it knows';
  return told`At the end a last learned table, the *classifier*, turns ${reader(n)} into ${made}. It was trained for the end only, but we ask it early, after each block, to see the answer grow.`;
}

/** @param {Numbers} n @param {number} layer @returns {Say} */
function saidOfBlock(n, layer) {
  const [is] = saidAfter(n, layer + 1);
  const asks = readers(n, 'asks and gathers', 'ask and gather');
  const first =
    n.trace.pooling === 'class'
      ? `${capital(asks)} as our patch did: each block adds what its heads bring and what the MLP makes of it. `
      : 'Each block adds to every token what its heads bring and what the MLP makes of it. ';
  const value = amount(n, is.value);
  if (!isNamed(n)) return told`${layer ? '' : first}After block ${layer}: ${is.name} ${{ strong: value }}.`;
  const how = layer > 0 && saidAfter(n, layer)[0].index === is.index ? 'still' : 'now';
  return told`${layer ? '' : first}After block ${layer} it would ${how} say ${{ strong: is.name }}, ${value}.`;
}

/** @type {Scene['draw']} */
function draw(pen, v, n) {
  const { work, wide, unit: u } = pen;
  const { layers, prefix } = n.trace;
  const { stream } = depthOf(n).arrays;
  const done = Array.from({ length: layers }, (_, l) => ease(v[`depth-${l}`])).reduce((a, b) => a + b, 0);
  const low = Math.min(layers - 1, Math.floor(done));
  const f = done - low;
  drawPhoto(pen, v, n, done);

  // our token as it grows
  const tall = (wide ? 24 : 18) * u;
  const [from, to] = [rowOf(stream, low), rowOf(stream, low + 1)];
  pen.face(prefix.length + n.patch, { ...work, w: tall, h: tall });
  const now = from.map((one, i) => mix(one, to[i], f));
  const width = work.w - tall - 8 - (wide ? 110 * u : 84);
  pen.vector(now, { x: work.x + tall + 8, y: work.y, w: width, h: tall }, { max: usual(from) });
  const length = lengthAt(n, Math.round(done));
  const words = `length ${short(length)}`;
  pen.number('depth-length', length, words, work.x + work.w, work.y + tall * 0.7, { align: 'right' });

  // what a cosine is, then what would be said after so many blocks
  const top = work.y + tall + (wide ? 18 : 14) * u;
  const pitch = (wide ? 28 : 24) * u;
  pen.within(ease(v['depth-alike'] * 2 - 0.6) - v['depth-read'] * 4, () => drawCosines(pen, n));
  pen.within(ease(v['depth-read'] * 2 - 0.5), () =>
    drawSaid(pen, n, { id: 'depth-said', low, f, top, pitch, shown: SHOWN }),
  );
  drawBlocks(pen, v, n, top + SHOWN * pitch + (wide ? 18 * u : 6));
}

/** The patches like ours at the start, what is looked at in the block, and the patches like ours at the end. @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n @param {number} done how many blocks */
function drawPhoto(pen, v, n, done) {
  const { layers, prefix } = n.trace;
  const block = clamp(Math.ceil(done) - 1, layers - 1);
  const end = v['depth-end'] > 0.5;
  const isLooking = done && !end;
  const weights = isLooking ? rowOf(depthOf(n).arrays.answer_looks, block) : alikeOf(n, end ? layers : 0);
  pen.lit(weights, pen.photo, 1, isLooking ? 1 : ease(v['depth-alike']));
  pen.frame(pen.at(n.patch), 'accent');
  const looks = `what ${readers(n, 'looks', 'look')} at in block ${block}`;
  pen.tokens(
    prefix.length + n.patch,
    weights,
    isLooking ? looks : 'how like our patch, above the mean of all',
  );
  pen.caption(isLooking ? looks : 'most like our patch');
}

/** Each block: where it looked, what was said after it, and which patches were like ours. @param {Pen} pen @param {Record<string, number>} v @param {Numbers} n @param {number} y */
function drawBlocks(pen, v, n, y) {
  const { work, wide, photo, unit: u } = pen;
  const { layers } = n.trace;
  const [gap, caption] = wide ? [10 * u, 42 * u] : [4, 18];
  const across = (work.w - gap * (layers - 1)) / layers;
  const rest = ((work.y + work.h - y - caption) * photo.w) / photo.h;
  const isOne = rest / 2 < SMALLEST; // no room for both
  const w = Math.min(across, isOne ? rest : rest / 2);
  const h = (w * photo.h) / photo.w;
  for (let l = 0; l < layers; l++) {
    const [x, a] = [work.x + l * (across + gap), ease(v[`depth-${l}`] * 1.5)];
    const below = y + h + caption;
    pen.frame({ x, y, w, h }, 'line', (1 - a) * v['depth-read'], 1);
    pen.lit(rowOf(depthOf(n).arrays.answer_looks, l), { x, y, w, h }, a);
    if (!isOne) pen.lit(alikeOf(n, l + 1), { x, y: below, w, h }, a);
    if (!a || across < 34) continue;
    const [{ name, value }] = saidAfter(n, l + 1);
    pen.text(w > 64 ? `block ${l}` : String(l), x + 5, y + 16 * u, { size: 12, fill: '#fff', a });
    if (wide) pen.text(fitted(name, across, 12 * u), x, below - 26 * u, { size: 12, fill: 'text', a });
    pen.number(`depth-first-${l}`, value, amount(n, value), x, below - (wide ? 10 : 6) * u, { size: 12, a });
  }
  if (!wide || isOne) return;
  const words = 'above: what it looks at; below: most like our patch';
  pen.text(words, work.x + work.w, y - 8 * u, { align: 'right', size: 12, a: v['depth-0'] });
}

/** What a cosine is: our token and another as two arrows, for the patch most like ours, one between, and the least. @param {Pen} pen @param {Numbers} n */
function drawCosines(pen, n) {
  const { work, wide, unit: u } = pen;
  const { prefix, grid } = n.trace;
  const alike = rowOf(depthOf(n).arrays.alike, 0);
  const others = [...alike.keys()].filter((patch) => patch !== n.patch).sort((a, b) => alike[b] - alike[a]);
  const [step, side] = [work.w / 3, (wide ? 30 : 20) * u];
  const back = Math.max(0, -alike[others[others.length - 1]]);
  const long = Math.min((step - 2 * side) / (1 + back), (wide ? 150 : 64) * u);
  const spot = (/** @type {number} */ x, /** @type {number} */ y) => ({ x, y, w: 0, h: 0 });
  [0, Math.floor(others.length / 2), others.length - 1].forEach((rank, i) => {
    const [patch, angle] = [others[rank], Math.acos(clamp(alike[others[rank]], 1, -1))];
    const x = work.x + i * step + Math.max(0, -long * Math.cos(angle)) + 4;
    const y = work.y + long + (wide ? 90 : 60) * u;
    for (const one of [n.patch, patch]) {
      const turn = one === patch ? angle : 0;
      const [tx, ty] = [x + long * Math.cos(turn), y - long * Math.sin(turn)];
      pen.line(spot(x, y), spot(tx, ty), 2.5, 1, 1, 0);
      const h = (side * pen.photo.h * grid[1]) / (pen.photo.w * grid[0]);
      pen.face(prefix.length + one, { x: tx + 4, y: ty - (turn ? h : h / 2), w: side, h });
    }
    const words = `cosine ${short(alike[patch]).replace('-', '−')}`;
    pen.number(`depth-cosine-${i}`, alike[patch], words, x, y + side, { fill: 'text' });
  });
}

/** So much of a name as has room. @param {string} name @param {number} width @param {number} size of its letters */
function fitted(name, width, size) {
  const most = Math.max(2, Math.floor(width / (size * 0.56)));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

/** How like ours each patch is, as weights of all tokens: none below the mean. @param {Numbers} n @param {number} state */
function alikeOf(n, state) {
  const row = rowOf(depthOf(n).arrays.alike, state);
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  return [...n.trace.prefix.map(() => 0), ...row.map((one) => Math.max(0, one - mean))];
}

/**
 * The first names between two states, which change places as they grow.
 * @param {Pen} pen @param {Numbers} n @param {{id: string, low: number, f: number, top: number, pitch: number, shown: number}} at low: the
 *   earlier state; f: how far it is to the next; shown: how many names
 */
export function drawSaid(pen, n, { id, low, f, top, pitch, shown }) {
  const { work, wide, unit: u } = pen;
  const [before, after] = [saidAfter(n, low), saidAfter(n, low + 1)];
  const last = saidAfter(n, n.trace.layers)[0].index;
  const { arrays, facts } = depthOf(n);
  const most = facts.kind === 'value' ? largestOf(arrays.tops.data) : 1;
  const left = work.x + (wide ? 170 : 104) * u;
  for (const [rank, one] of before.entries()) {
    const to = after.findIndex(({ index }) => index === one.index);
    const place = mix(rank, to, f);
    const a = clamp((shown - 0.4 - place) * 2.5);
    const value = mix(one.value, after[to].value, f);
    const h = Math.min(pitch * 0.5, 26 * u);
    const w = Math.max(2, ((work.x + work.w - left - 60 * u) * Math.abs(value)) / most);
    const [y, weight] = [top + place * pitch, place < 0.5 ? 600 : 400];
    const line = y + h * 0.85;
    const name = fitted(one.name, left - work.x - 12, (wide ? 15 : 13) * u);
    pen.text(name, left - 12, line, { size: 15, fill: 'text', align: 'right', weight, a });
    const [fill, faint] = one.index === last ? ['accent', a] : ['muted', a / 2];
    pen.box({ x: left, y, w, h }, value < 0 ? 'against' : fill, faint, 5);
    const words = amount(n, f === 1 ? after[to].value : value);
    pen.number(`${id}-${one.index}`, value, words, left + w + 8, line, { size: 14, fill: 'text', a });
  }
}
