// The second scene: one patch asks, all tokens answer. A query meets every key, scores become shares, and values are gathered by them.

import { clamp } from '../../../explorer/geometry.js';
import { percent } from '../../../ui/kit/numbers.js';
import { largestOf, signed } from '../../kit/signed.js';
import { beatsOf, between, ease, mix, rowOf, said, sayToken, shapeOf, told } from '../timeline.js';
import { GLOW } from '../pen.js';
/** @import { Area, Pen } from '../pen.js' */
/** @import { Answer, Numbers, Scene, Times } from '../timeline.js' */

const ROWS = 6; // tokens that stand for all of them
const LINES = 6; // drawn on the photo
const FLYING = 40; // patches that are seen to be gathered

/** @typedef {ReturnType<typeof headOf>} Head */

/** One head, as it is drawn: order: who gets most first; few: the tokens that stand for all. @param {Numbers} n */
function headOf(n) {
  const { arrays, facts } = /** @type {Answer} */ (n.attention);
  const weights = arrays.weights.data;
  const me = facts.token;
  const order = /** @type {number[]} */ ([...weights.keys()].sort((a, b) => weights[b] - weights[a]));
  const open = order.filter((token) => Number.isFinite(arrays.scores.data[token])); // edits may forbid the others
  const few = new Set(
    [open[0], open[1], me, 0, open[open.length - 1]].filter((token) => open.includes(token)),
  );
  for (let i = 2; few.size < Math.min(ROWS, open.length); i++) few.add(open[i]);
  return {
    ...{ arrays, facts, me, order, few: [...few].sort((a, b) => a - b), most: weights[order[0]] },
    highest: largestOf(arrays.products.data.filter(Number.isFinite)) || 1,
  };
}

const wide = (/** @type {Numbers} */ n) => headOf(n).arrays.query.data.length;

/** What is done to scores before they are compared. @param {Numbers} n */
function scaling(n) {
  const [{ scale, has_bias: hasBias }, d] = [headOf(n).facts, wide(n)];
  const isRoot = Math.abs(scale * Math.sqrt(d) - 1) < 1e-3;
  const how = isRoot
    ? `divided by √${d} = ${Math.sqrt(d).toFixed(2)}`
    : `multiplied by ${Number(scale.toPrecision(3))}`;
  const bias = hasBias
    ? ' Then the model adds what it has learned for the way from our patch to that token.'
    : '';
  return told`Each score is ${how}, since a sum of ${d} products grows large, and the next step would give nearly all to one token.${bias}`;
}

/** Where the lesson stops: one head of one block. @param {Numbers} n */
function stop({ trace: { layers, heads, prefix, grid }, layer, head }) {
  const all = prefix.length + grid[0] * grid[1];
  const blocks = layers === 1 ? told`one *block*. There` : told`${layers} *blocks*. In each`;
  const ways =
    heads === 1 ? told`one way that is called a *head*` : told`${heads} ways that are called *heads*`;
  const last = layer === layers - 1 && layers > 1 ? ', the last' : '';
  return told`All ${all} tokens go through ${blocks} every token first looks at all tokens, in ${ways}, then works alone. We stop at head ${head} of block ${layer}${last}.`;
}

/** @type {Times} */
const TIMES = {
  ...{ stop: [6, 'attn'], query: [4, 'attn'], keys: [5, 'attn'], fit: [4, 'attn'], score: [9, 'attn'] },
  ...{ scale: [5, 'attn'], soft: [7, 'attn'], look: [7, 'attn'], take: [8, 'attn'] },
};
const SAID = {
  stop,
  query: said`To look, a copy of our token is brought to one scale (a *norm*: its numbers get the usual size 1), and a learned table makes ${wide} numbers of it, its *query*: what it seeks.${(n) => (shapeOf(n).qk_norm ? ' These are brought to one scale, too.' : '')}${(n) => (shapeOf(n).rotary ? ' Its place turns them.' : '')}`,
  keys: said`Every token also makes a *key*, by another table: ${wide} numbers for what it has.${(n) => (shapeOf(n).qk_norm ? ' These are brought to one scale, too.' : '')}${(n) => (shapeOf(n).rotary ? ' The place of each patch turns them.' : '')} Here are ${(n) => headOf(n).few.length} of them.`,
  fit: said`The better a key fits the query, the more our patch will look at that token.`,
  score: said`How well? Query and key are multiplied, number by number, and the products are added up: that is the *score* of that token.`,
  scale: scaling,
  soft: said`*Softmax* makes shares of the scores: e (2.718) to the power of each, divided by the sum of all of these. High scores get most, no share is below 0, and together they are 100%.`,
  look: said`These shares are the *attention* of our patch. Most goes to ${(n) => sayToken(n, headOf(n).order[0])}: ${(n) => percent(headOf(n).most)}.`,
  take: said`Every token also makes a *value*, by a third table: ${wide} numbers for what it gives. Our patch takes from each value its share; the sum of all is what this head brings back.`,
};

/** @type {Scene['draw']} */
function draw(pen, v, n) {
  const head = headOf(n);
  const [asks, looks] = [ease(v['ask-query'] * 3), ease(v['ask-look'])];
  pen.lit(head.arrays.weights.data, pen.photo, 1, looks);
  if (looks > 0) drawLines(pen, head, n, looks, 1 - ease(v['ask-take'] * 4));
  pen.frame(pen.at(n.patch), looks > 0.5 ? 'white' : 'accent');
  drawRow(pen, head, v);
  pen.within(ease(v['ask-stop'] * 2) - asks, () => drawBlock(pen, n));
  if (asks > 0) drawMeeting(pen, head, n, v);
}

/** All tokens, and above each its score, then its share. @param {Pen} pen @param {Head} head @param {Record<string, number>} v */
function drawRow(pen, { me, few, arrays, facts, most, highest }, v) {
  const [near, scored] = [12 * ease(v['ask-keys']), v['ask-score']];
  const [scaled, soft] = [ease(v['ask-scale']), ease(v['ask-soft'])];
  const bars = arrays.weights.data.map((/** @type {number} */ weight, /** @type {number} */ token) => {
    const last = arrays.scores.data[token];
    const score = Number.isFinite(last) ? mix(arrays.products.data[token], last, scaled) : 0; // forbidden by edits
    const comes = ease(scored * 8 - (7 * token) / arrays.weights.data.length);
    return comes * mix(clamp(score / highest, 1, -1), weight / most, soft);
  });
  const score = `score${scaled > 0.5 ? `, × ${Number(facts.scale.toPrecision(3))}` : ''}`;
  const what = soft > 0.5 ? `share of its attention, up to ${percent(most)}` : score;
  pen.tokens(me, bars, scored > 0 ? what : '', {
    focus: few.map((token) => [token, near, 0.9]),
    ...{ most: 1, zero: mix(0.5, 0, soft) },
  });
}

/** What a block does, and the head in it that is told of. @param {Pen} pen @param {Numbers} n */
function drawBlock(pen, { trace: { heads }, head }) {
  const { work, wide: isWide, unit: u } = pen;
  const [y, h, w] = [work.y + 24 * u, Math.min(72 * u, work.h / 4), work.w / heads];
  pen.text('Every token looks at all tokens, in each head:', work.x, work.y + 12 * u);
  for (let i = 0; i < heads; i++) {
    const box = { x: work.x + i * w, y, w: w - 4, h };
    pen.box(box, i === head ? 'accent' : 'soft', 1, 6);
    const how = /** @type {const} */ ({ align: 'center', fill: i === head ? 'ground' : 'text' });
    pen.text(isWide && w > 60 ? `head ${i}` : String(i), box.x + box.w / 2, y + h / 2 + 5 * u, how);
  }
  pen.text('then each token works alone:', work.x, y + h + 36 * u);
  const alone = { x: work.x, y: y + h + 48 * u, w: work.w - 4, h: h / 2 };
  pen.box(alone, 'soft', 1, 6);
  pen.text('a small network', work.x + work.w / 2, alone.y + h / 4 + 5 * u, {
    align: 'center',
    fill: 'text',
  });
}

/** Query, keys, scores and values of a few tokens. @param {Pen} pen @param {Head} head @param {Numbers} n @param {Record<string, number>} v */
function drawMeeting(pen, head, n, v) {
  const { work, wide: isWide, unit: u } = pen;
  const { arrays, few, me, most } = head;
  const [keys, values] = [0.7 * largestOf(arrays.keys.data), 0.5 * largestOf(arrays.values.data)];
  const many = few.length;
  const face = isWide ? Math.min(28 * u, work.h / (many + 3)) : 20;
  const cell = isWide ? 17 * u : 12;
  const x = work.x + face + (isWide ? 74 * u : 52);
  const w = (work.x + work.w - x) * (isWide ? 0.44 : 0.4);
  const nx = x + w + (isWide ? 84 * u : 50);
  const bars = { x: nx + (isWide ? 18 * u : 6), w: work.x + work.w - nx - (isWide ? 66 * u : 10) };
  const rows = work.y + face + (isWide ? 34 * u : 26);
  const pitch = Math.min(44 * u, (work.y + work.h - rows) / many);
  const [take, q] = [ease(v['ask-take'] * 4), ease(v['ask-query'] * 1.6)];
  const inLine = (/** @type {number} */ y) => ({ x, y: y + (face - cell) / 2, w, h: cell });
  const faceAt = (/** @type {number} */ y) => ({ x: work.x, y, w: face, h: face });
  const line = (/** @type {number} */ y) => y + face / 2 + 5 * u;
  const query = arrays.query.data;

  const mine = between(pen.at(n.patch), faceAt(work.y), q);
  pen.piece(n.patch, mine);
  pen.frame(mine, 'accent', q, 2);
  const word = { fill: 'text', weight: 600, a: q * Math.abs(2 * take - 1) };
  pen.text(take > 0.5 ? 'sum' : 'query', work.x + face + (isWide ? 8 : 4), line(work.y), word);
  const shown = clamp(v['ask-query'] * 2 - 0.8);
  pen.vector(query, inLine(work.y), { max: keys, shown, a: q * (1 - take * 3) });
  few.forEach((token, place) => {
    const a = ease(v['ask-keys'] * 3 - (2 * place) / many);
    if (a <= 0) return;
    const [patch, top] = [token - n.trace.prefix.length, faceAt(rows + place * pitch)];
    const lies = inLine(top.y);
    pen.face(token, between(patch < 0 ? { ...faceAt(work.y), x: -30 } : pen.at(patch), top, a), a);
    if (token === me) pen.frame(top, 'accent', a, 2);
    const name = token === me ? 'its own' : (n.trace.prefix[token]?.replace(/ \d+$/, '') ?? '');
    pen.text(name, work.x + face + 6, line(top.y), { size: 12, a: ease(v['ask-keys'] * 3 - 2) });
    const key = rowOf(arrays.keys, token);
    const met = clamp(v['ask-score'] * (many + 0.6) - place);
    const on = met > 0 && met < 1 ? Math.sin(Math.PI * met) : 0;
    pen.vector(key, lies, { max: keys, a: a * (1 - on) * (1 - take * 3) });
    pen.within(on, () => {
      pen.vector(key.map((k, i) => k * query[i]), lies, { max: keys }); // prettier-ignore
      const way = between(inLine(work.y), lies, ease(met * 2));
      if (met < 0.5) pen.vector(query, way, { max: keys, a: 0.8 });
    });
    const given = clamp(take * 3 - 1) * (0.12 + (0.88 * arrays.weights.data[token]) / most);
    if (take > 0) pen.vector(rowOf(arrays.values, token), lies, { max: values, a: given });
    if (met > 0) drawAmount(pen, head, token, v, ease(met), { ...lies, ...bars }, [nx, line(top.y)]);
  });
  const [scaled, soft] = ['scale', 'soft'].map((id) => v[`ask-${id}`] > 0.5);
  pen.text(take > 0.5 ? 'values' : 'keys', x, rows - 8, { a: v['ask-keys'] * 2 * Math.abs(2 * take - 1) });
  const what = soft ? 'share' : scaled ? 'scaled score' : 'score';
  pen.text(what, nx, rows - 8, { align: 'right', a: v['ask-score'] * 4 });
  if (take > 0) drawGathering(pen, head, v['ask-take'], take, inLine(work.y), nx);
}

/** The score of a token, which becomes its share, as a bar and as a number. @param {Pen} pen @param {Head} head @param {number} token @param {Record<string, number>} v @param {number} met @param {Area} bar @param {number[]} at of the number */
function drawAmount(pen, { arrays, most, highest }, token, v, met, { x, y, w, h }, [nx, line]) {
  const [scaled, soft] = [ease(v['ask-scale']), ease(v['ask-soft'])];
  const weight = arrays.weights.data[token];
  const score = mix(arrays.products.data[token], arrays.scores.data[token], scaled);
  const zero = mix(x + w / 2, x, soft);
  const long = met * mix((clamp(score / highest, 1, -1) * w) / 2, (weight / most) * w, soft);
  const bar = { x: Math.min(zero, zero + long), y, w: Math.max(Math.abs(long), 1.5), h };
  pen.box(bar, long < 0 ? 'against' : 'for');
  const lettering = { size: 15, align: /** @type {const} */ ('right'), fill: 'text' };
  if (soft > 0.5)
    return pen.number(`weight ${token}`, weight, percent(weight), nx, line, { ...lettering, weight: 600 });
  const name = scaled > 0.5 ? `score ${token}` : `product ${token}`;
  pen.number(name, score * met, signed(score * met, scaled > 0.5 ? 2 : 1), nx, line, lettering);
}

/** Each patch flies in, as large as its share, and the sum fills. @param {Pen} pen @param {Head} head @param {number} v how far it is @param {number} take @param {Area} to @param {number} nx */
function drawGathering(pen, { order, arrays, most }, v, take, to, nx) {
  const { trace, wide: isWide, unit: u } = pen;
  const count = Math.round(clamp(v * 1.5 - 0.5) * order.length);
  order.slice(0, FLYING).forEach((token, place) => {
    const f = ease(v * 3.6 - (2.4 * place) / FLYING - 0.2);
    const patch = token - trace.prefix.length;
    if (patch < 0 || f <= 0 || f >= 1) return;
    const from = pen.at(patch);
    const w = 5 + 22 * Math.sqrt(arrays.weights.data[token] / most);
    const end = { x: to.x + to.w / 2, y: to.y, w, h: (w * from.h) / from.w };
    pen.piece(patch, between(from, end, f), 1 - 0.5 * f);
  });
  const sum = new Float32Array(arrays.output.data.length);
  for (const token of order.slice(0, count))
    rowOf(arrays.values, token).forEach((value, d) => (sum[d] += arrays.weights.data[token] * value));
  const how = { max: largestOf(arrays.output.data), a: take };
  pen.vector(sum, { ...to, y: to.y - 3, h: to.h + 6 }, how);
  const words = `${count} of ${order.length} tokens`;
  pen.text(words, isWide ? nx + 18 * u : nx - 34, to.y + to.h - 3, { a: take });
}

/** Lines to the patches that get most, and how much, beside them where there is room. @param {Pen} pen @param {Head} head @param {Numbers} n @param {number} looks @param {number} a of the labels */
function drawLines(pen, { order, me, arrays, most }, n, looks, a) {
  const { trace, photo, context, unit, wide: isWide } = pen;
  const first = trace.prefix.length;
  const shown = order.filter((token) => token !== me && token >= first).slice(0, LINES);
  const from = pen.at(n.patch);
  const taken = [from, ...shown.map((token) => pen.at(token - first))];
  shown.forEach((token, place) => {
    const to = pen.at(token - first);
    const share = arrays.weights.data[token] / most;
    const long = ease(looks * 2 - place * 0.18);
    pen.line(from, to, 1.5 + 7 * share, 0.35 + 0.6 * share, long);
    if (long > 0.9) {
      pen.piece(token - first, to);
      pen.frame(to, GLOW, 1, 2);
    }
    if (looks < 0.8 || a <= 0) return;
    const [w, h] = [isWide ? 46 * unit : 34, 15 * unit];
    const beside = [
      [to.w + 4, to.h / 2 - 8],
      [-w - 2, to.h / 2 - 8],
      [to.w / 2 - w / 2, -18],
      [to.w / 2 - w / 2, to.h + 3],
    ];
    const spot = beside
      .map(([right, down]) => ({ x: to.x + right, y: to.y + down, w, h }))
      .find((one) => isFree(one, photo, taken));
    if (!spot) return;
    taken.push(spot);
    const weight = arrays.weights.data[token];
    const lettering = /** @type {const} */ ({ fill: 'white', weight: 600, align: 'center' });
    Object.assign(context, { shadowColor: '#000', shadowBlur: 6 });
    const how = { ...lettering, a: (looks * 5 - 4) * a };
    pen.number(`weight ${token}`, weight, percent(weight), spot.x + w / 2, spot.y + 12 * unit, how);
    context.shadowBlur = 0;
  });
}

/** Whether an area lies within another and on none of some. @param {Area} one @param {Area} within @param {Area[]} taken */
function isFree({ x, y, w, h }, within, taken) {
  const isIn = x > within.x && x + w < within.x + within.w && y > within.y && y + h < within.y + within.h;
  return isIn && !taken.some((t) => x < t.x + t.w && t.x < x + w && y < t.y + t.h && t.y < y + h);
}

/** The kinds of tokens that a patch can look at: itself, other patches, the rest. @param {Numbers} n */
function kindsOf({ trace, attention }) {
  const weights = /** @type {Answer} */ (attention).arrays.weights.data;
  const me = /** @type {Answer} */ (attention).facts.token;
  const kind = (/** @type {number} */ token) => (token === me ? 0 : token >= trace.prefix.length ? 1 : 2);
  const shares = [0, 0, 0];
  weights.forEach(
    (/** @type {number} */ weight, /** @type {number} */ token) => (shares[kind(token)] += weight),
  );
  return { shares, best: kind(weights.indexOf(Math.max(...weights))) };
}

/** @type {Scene} */
export const ASK = {
  id: 'ask',
  title: () => 'One patch asks, all tokens answer',
  needs: ['tokens', 'attention'],
  beats: (n) => beatsOf('ask', TIMES, SAID, n.layer),
  draw,
  guess: {
    before: 'ask-score',
    shown: 'ask-look',
    question: () => told`Which token will our patch look at most?`,
    choices: ({ trace }) => [
      ['itself'],
      ['another patch'],
      ...(trace.prefix.length ? [['a token that is no patch']] : []),
    ],
    truth: (n) => kindsOf(n).best,
    verdict(n) {
      const { shares } = kindsOf(n);
      const others = n.trace.prefix.length ? `, all tokens that are no patches ${percent(shares[2])}` : '';
      return told`Itself gets ${percent(shares[0])}, all other patches together ${percent(shares[1])}${others}.`;
    },
  },
  whatIf: [
    { change: 'scale', label: 'scores were not scaled', controls: [] },
    { change: 'axis', label: 'softmax ran along the queries', controls: [] },
  ],
  fold: {
    build: ['attention'],
    shapes(n) {
      const [all, d] = n.attention?.arrays.keys.shape ?? [];
      if (!all) return [];
      return [
        ['query', `[${d}]`, 'of our token, in one head'],
        ['keys, values', `[${all}, ${d}]`, 'of all tokens'],
        ['scores, shares', `[${all}]`, 'one for each token'],
        ['output', `[${d}]`, 'values, added up by their shares'],
      ];
    },
  },
};
