// The second scene: one patch asks, all tokens answer. A query meets every key, scores become shares, and values are gathered by them.

import { clamp } from '../../../explorer/geometry.js';
import { counted, percent } from '../../../ui/kit/numbers.js';
import { largestOf, signed } from '../../kit/signed.js';
import { beatsOf, said, ease, mix, rowOf, sayToken, shapeOf, told } from '../timeline.js';
/** @import { Area, Pen } from '../pen.js' */
/** @import { Answer, Numbers, Scene, Times } from '../timeline.js' */

const ROWS = 6; // tokens that stand for all of them
const LINES = 6; // drawn on the photo
const FLYING = 40; // patches that are seen to be gathered

/**
 * One head, as it is drawn: which tokens get most, and what is gathered when they come one after the other.
 * @typedef {{arrays: Record<string, {shape: number[], data: any}>, facts: any, me: number, order: number[], few: number[], most: number,
 *   highest: number, size: {keys: number, values: number, output: number}, gathered: (count: number) => Float32Array}} Head
 */

/** @type {WeakMap<Answer, Head>} worked out once for each answer */
const HEADS = new WeakMap();

/** @param {Numbers} n @returns {Head} */
function headOf(n) {
  const answer = /** @type {Answer} */ (n.attention);
  const known = HEADS.get(answer);
  if (known) return known;
  const { arrays, facts } = answer;
  const weights = arrays.weights.data;
  const me = facts.token;
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
  const open = order.filter((token) => Number.isFinite(arrays.scores.data[token])); // edits may forbid the others
  const few = new Set(
    [open[0], open[1], me, 0, open[open.length - 1]].filter((token) => open.includes(token)),
  );
  for (let i = 2; few.size < Math.min(ROWS, open.length); i++) few.add(open[i]);
  const sums = [new Float32Array(arrays.output.data.length)];
  for (const token of order) {
    const value = rowOf(arrays.values, token);
    sums.push(sums[sums.length - 1].map((sum, d) => sum + weights[token] * value[d]));
  }
  const finite = (/** @type {Float32Array} */ numbers) => largestOf(numbers.filter(Number.isFinite)) || 1;
  const made = {
    ...{ arrays, facts, me, order, few: [...few].sort((a, b) => a - b), most: weights[order[0]] },
    highest: finite(arrays.products.data),
    size: {
      keys: 0.7 * largestOf(arrays.keys.data),
      values: 0.5 * largestOf(arrays.values.data),
      output: largestOf(arrays.output.data),
    },
    gathered: (/** @type {number} */ count) => sums[count],
  };
  HEADS.set(answer, made);
  return made;
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
  const { photo } = pen;
  const looks = ease(v['ask-look']);
  pen.lit(head.arrays.weights.data, photo.x, photo.y, photo.w, photo.h, 1, looks);
  if (looks > 0) drawLines(pen, head, n, looks, 1 - ease(v['ask-take'] * 4));
  pen.frame(pen.at(n.patch), looks > 0.5 ? 'white' : 'accent');
  drawRow(pen, head, v);
  drawMeeting(pen, head, n, v);
}

/** All tokens, and above each its score, then its share. @param {Pen} pen @param {Head} head @param {Record<string, number>} v */
function drawRow(pen, { me, few, arrays, facts, most, highest }, v) {
  const { row, wide: isWide, unit } = pen;
  const near = ease(v['ask-keys']);
  const focus = few.map((token) => /** @type {[number, number, number]} */ ([token, 12 * near, 0.9]));
  const spots = pen.standing(pen.spots([[me, 12, 5], ...focus]));
  spots.forEach(({ x, y, w, h }, token) => pen.face(token, x, y, w, h));
  pen.frame(spots[me], 'accent');
  const all = `${counted(spots.length, 'token')} in one row`;
  pen.text(all, row.x + row.w, row.y + row.h + 25 * unit, { align: 'right' });
  if (v['ask-score'] <= 0) return;
  const [scaled, soft] = [ease(v['ask-scale']), ease(v['ask-soft'])];
  const foot = row.y - 6;
  const zero = mix(foot - row.bar / 2, foot, soft);
  spots.forEach(({ x, w }, token) => {
    const last = arrays.scores.data[token];
    const score = Number.isFinite(last) ? mix(arrays.products.data[token], last, scaled) : 0; // forbidden by edits
    const share = mix(
      (clamp(score / highest, 1, -1) * row.bar) / 2,
      (arrays.weights.data[token] / most) * row.bar,
      soft,
    );
    const tall = share * ease(v['ask-score'] * 8 - (7 * token) / spots.length);
    const bar = Math.max(Math.min(w - 0.6, isWide ? 14 : 8), 0.8);
    const a = few.includes(token) || soft > 0.5 ? 1 : 0.6;
    pen.box(
      x + (w - bar) / 2,
      Math.min(zero, zero - tall),
      bar,
      Math.abs(tall),
      tall < 0 ? 'minus' : 'plus',
      a,
    );
  });
  const what =
    soft > 0.5
      ? `share of its attention, up to ${percent(most)}`
      : `score${scaled > 0.5 ? `, × ${Number(facts.scale.toPrecision(3))}` : ''}`;
  pen.text(what, row.x, row.y + row.h + 25 * unit, { a: v['ask-score'] * 4 });
}

/** Query, keys, scores and values of a few tokens. @param {Pen} pen @param {Head} head @param {Numbers} n @param {Record<string, number>} v */
function drawMeeting(pen, head, n, v) {
  const { work, wide: isWide, unit: u } = pen;
  const { arrays, few, me, size, most } = head;
  const face = isWide ? Math.min(28 * u, work.h / (few.length + 3)) : 20;
  const [cell, many] = [isWide ? 17 * u : 12, few.length];
  const vx = work.x + face + (isWide ? 74 * u : 52);
  const vw = (work.x + work.w - vx) * (isWide ? 0.44 : 0.4);
  const nx = vx + vw + (isWide ? 84 * u : 50);
  const bars = { x: nx + (isWide ? 18 * u : 6), w: work.x + work.w - nx - (isWide ? 66 * u : 10) };
  const rows = work.y + face + (isWide ? 34 * u : 26);
  const pitch = Math.min(44 * u, (work.y + work.h - rows) / many);
  const inset = (face - cell) / 2;
  const [take, scaled, soft] = [ease(v['ask-take'] * 4), ease(v['ask-scale']), ease(v['ask-soft'])];
  const [from, q] = [pen.at(n.patch), ease(v['ask-query'] * 1.6)];
  const line = (/** @type {number} */ y) => y + face / 2 + 5 * u;

  if (q > 0) {
    const mine = {
      x: mix(from.x, work.x, q),
      y: mix(from.y, work.y, q),
      w: mix(from.w, face, q),
      h: mix(from.h, face, q),
    };
    pen.piece(n.patch, mine.x, mine.y, mine.w, mine.h);
    pen.frame(mine, 'accent', q, 2);
    const word = { fill: 'ink', weight: 600, a: q * Math.abs(2 * take - 1) };
    pen.text(take > 0.5 ? 'sum' : 'query', work.x + face + (isWide ? 8 : 4), line(work.y), word);
    const shown = clamp(v['ask-query'] * 2 - 0.8);
    pen.vector(arrays.query.data, vx, work.y + inset, vw, cell, {
      max: size.keys,
      shown,
      a: q * (1 - take * 3),
    });
  }
  few.forEach((token, place) => {
    const a = ease(v['ask-keys'] * 3 - (2 * place) / many);
    if (a <= 0) return;
    const top = rows + place * pitch;
    const patch = token - n.trace.prefix.length;
    const start = patch >= 0 ? pen.at(patch) : { x: -30, y: work.y, w: face, h: face };
    pen.face(
      token,
      mix(start.x, work.x, a),
      mix(start.y, top, a),
      mix(start.w, face, a),
      mix(start.h, face, a),
      a,
    );
    if (token === me) pen.frame({ x: work.x, y: top, w: face, h: face }, 'accent', a, 2);
    const name = token === me ? 'its own' : (n.trace.prefix[token]?.replace(/ \d+$/, '') ?? '');
    pen.text(name, work.x + face + 6, line(top), { size: 12, a: ease(v['ask-keys'] * 3 - 2) });
    const key = rowOf(arrays.keys, token);
    const met = clamp(v['ask-score'] * (many + 0.6) - place);
    const on = met > 0 && met < 1 ? Math.sin(Math.PI * met) : 0;
    const cells = (
      /** @type {ArrayLike<number>} */ numbers,
      /** @type {number} */ y,
      /** @type {number} */ b,
      max = size.keys,
    ) => pen.vector(numbers, vx, y + inset, vw, cell, { max, a: b });
    cells(key, top, a * (1 - on) * (1 - take * 3));
    if (on) {
      cells(
        key.map((k, i) => k * arrays.query.data[i]),
        top,
        on,
      );
      if (met < 0.5) cells(arrays.query.data, mix(work.y, top, ease(met * 2)), 0.8);
    }
    const weight = arrays.weights.data[token];
    if (take > 0)
      cells(
        rowOf(arrays.values, token),
        top,
        clamp(take * 3 - 1) * (0.12 + (0.88 * weight) / most),
        size.values,
      );
    if (met > 0)
      drawAmount(
        pen,
        head,
        token,
        { scaled, soft, met: ease(met) },
        { ...bars, y: top + inset, h: cell, nx, line: line(top) },
      );
  });
  const above = rows - 8;
  pen.text(take > 0.5 ? 'values' : 'keys', vx, above, { a: v['ask-keys'] * 2 * Math.abs(2 * take - 1) });
  const what = soft > 0.5 ? 'share' : scaled > 0.5 ? 'scaled score' : 'score';
  pen.text(what, nx, above, { align: 'right', a: v['ask-score'] * 4 });
  if (take > 0) drawGathering(pen, head, v, take, { x: vx, y: work.y + inset, w: vw, h: cell }, nx);
}

/**
 * The score of a token, which becomes its share, as a number and as a bar. @param {Pen} pen @param {Head} head @param {number} token
 * @param {{scaled: number, soft: number, met: number}} far @param {Area & {nx: number, line: number}} at of the bar, and of the number
 */
function drawAmount(pen, { arrays, most, highest }, token, { scaled, soft, met }, { x, y, w, h, nx, line }) {
  const weight = arrays.weights.data[token];
  const score = mix(arrays.products.data[token], arrays.scores.data[token], scaled);
  const zero = mix(x + w / 2, x, soft);
  const long = met * mix((clamp(score / highest, 1, -1) * w) / 2, (weight / most) * w, soft);
  pen.box(Math.min(zero, zero + long), y, Math.max(Math.abs(long), 1.5), h, long < 0 ? 'minus' : 'plus');
  const lettering = { size: 15, align: /** @type {const} */ ('right'), fill: 'ink' };
  if (soft > 0.5)
    return pen.number(`weight ${token}`, weight, percent(weight), nx, line, { ...lettering, weight: 600 });
  const name = scaled > 0.5 ? `score ${token}` : `product ${token}`;
  pen.number(name, score * met, signed(score * met, scaled > 0.5 ? 2 : 1), nx, line, lettering);
}

/** Each patch flies in, as large as its share, and the sum fills. @param {Pen} pen @param {Head} head @param {Record<string, number>} v @param {number} take @param {Area} to @param {number} nx */
function drawGathering(pen, { order, arrays, most, gathered, size }, v, take, to, nx) {
  const { trace, wide: isWide, unit: u } = pen;
  const count = Math.round(clamp(v['ask-take'] * 1.5 - 0.5) * order.length);
  order.slice(0, FLYING).forEach((token, place) => {
    const f = ease(v['ask-take'] * 3.6 - (2.4 * place) / FLYING - 0.2);
    const patch = token - trace.prefix.length;
    if (patch < 0 || f <= 0 || f >= 1) return;
    const from = pen.at(patch);
    const end = 5 + 22 * Math.sqrt(arrays.weights.data[token] / most);
    const w = mix(from.w, end, f);
    pen.piece(
      patch,
      mix(from.x, to.x + to.w / 2, f),
      mix(from.y, to.y, f),
      w,
      (w * from.h) / from.w,
      1 - 0.5 * f,
    );
  });
  pen.vector(gathered(count), to.x, to.y - 3, to.w, to.h + 6, { max: size.output, a: take });
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
      pen.piece(token - first, to.x, to.y, to.w, to.h);
      pen.frame(to, 'glow', 1, 2);
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
    const lettering = {
      fill: 'white',
      weight: 600,
      align: /** @type {const} */ ('center'),
      a: (looks * 5 - 4) * a,
    };
    Object.assign(context, { shadowColor: '#000', shadowBlur: 6 });
    pen.number(`weight ${token}`, weight, percent(weight), spot.x + w / 2, spot.y + 12 * unit, lettering);
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
