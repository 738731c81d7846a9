// The scenes: what they say, what they ask to guess, and the numbers that they draw.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ANSWER, givenBy } from '../../vit_viz/web/lesson/scenes/answer.js';
import { CUT } from '../../vit_viz/web/lesson/scenes/cut.js';
import { DEPTH, saidAfter, settled } from '../../vit_viz/web/lesson/scenes/depth.js';
import { HEADS as SCENE } from '../../vit_viz/web/lesson/scenes/heads.js';
import { SCENES } from '../../vit_viz/web/lesson/room.js';
import { endOf, placed, rowOf, told, values, wordsOf } from '../../vit_viz/web/lesson/timeline.js';
import { HEADS, LAYERS, TOKENS, array, numbers } from './lesson_numbers.js';
/** @import { Numbers, Scene } from '../../vit_viz/web/lesson/timeline.js' */

/** A pen that keeps the numbers which it draws, and refuses what a canvas would. @param {boolean} wide @param {Numbers} [n] */
function penOf(wide, { trace } = numbers()) {
  /** @type {Map<string, number>} */
  const drawn = new Map();
  const finite = (/** @type {string} */ name, /** @type {any[]} */ all) =>
    assert.ok(
      all.flatMap((one) => Object.values(one)).every(Number.isFinite),
      `${name}(${JSON.stringify(all)})`,
    );
  const checked =
    (/** @type {string} */ name) =>
    (/** @type {any[]} */ ...args) => {
      const isArea = (/** @type {any} */ one) => typeof one?.x === 'number';
      finite(name, args.map((one) => (typeof one === 'number' ? [one] : isArea(one) ? one : []))); // prettier-ignore
      for (const one of args) if (typeof one === 'string') assert.doesNotMatch(one, /undefined|NaN|\[object/);
    };
  const own = {
    ...{ wide, unit: 1, photo: { x: 0, y: 0, w: 300, h: 200 }, work: { x: 340, y: 140, w: 800, h: 300 } },
    row: { x: 0, y: 400, w: 1100, h: 30, bar: 70 },
    at: () => ({ x: 10, y: 10, w: 20, h: 20 }),
    ...{ trace, context: {}, scale: 1 },
    spots: () => Array.from({ length: TOKENS }, (_, i) => ({ x: 40 * i, y: 400, w: 40, h: 30 })),
    within: (/** @type {number} */ a, /** @type {() => void} */ draw) => void (a > 0 && draw()),
    number(
      /** @type {string} */ id,
      /** @type {number} */ value,
      /** @type {any[]} */ ...[words, x, y, how]
    ) {
      checked('number')(value, words, x, y);
      if ((how?.a ?? 1) > 0.5) drawn.set(id, value);
    },
    tokens(/** @type {any[]} */ ...[token, bars, words, how]) {
      checked('tokens')(token, words);
      finite('tokens', [...bars, how?.zero ?? 0, how?.most ?? 1].map((one) => [one])); // prettier-ignore
    },
    vector(/** @type {any[]} */ ...[cells, area, how]) {
      checked('vector')(area, how.max);
      assert.ok((how.shown ?? 1) <= 1, 'no more of a vector is drawn than there is');
      assert.ok(cells.length);
    },
  };
  const pen = new Proxy(own, { get: (of, name) => /** @type {any} */ (of)[name] ?? checked(String(name)) });
  return { pen: /** @type {any} */ (pen), drawn };
}

/** The numbers that stand at the end of a beat. @param {Scene} scene @param {string} id @param {Numbers} n */
function drawnAt(scene, id, n, wide = true) {
  const beats = placed(SCENES, n);
  const beat = beats.find((one) => one.id === id);
  assert.ok(beat, id);
  const { pen, drawn } = penOf(wide, n);
  scene.draw(pen, values(beats, endOf(beat)), n, id);
  return drawn;
}
const near = (/** @type {number | undefined} */ a, /** @type {number} */ b) =>
  assert.ok(Math.abs(Number(a) - b) <= 1e-6 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

const EMBEDDING = {
  depth: { tops: array([LAYERS + 1, 0]) },
  facts: { kind: 'embedding', words: [], classes: [] },
};
/** @type {Record<string, any>} */
const MODELS = {
  classes: {},
  embedding: EMBEDDING,
  value: { depth: { tops: array([LAYERS + 1, 1]) }, facts: { kind: 'value', words: ['age'], classes: [0] } },
  mean: { trace: { pooling: 'mean' } },
  gate: { shape: { mlp: 'swiglu' } },
  pool: {
    trace: { pooling: 'attention' },
    parts: {
      arrays: { terms: array([1, 5, 26]), heads: array([1, 5]), mlps: array([1]), rest: array([1]) },
      facts: { total: 2, about: '', unit: 'similarity', layers: ['pool'] },
    },
  },
};

test('a template is said with its terms, its numbers and its pieces', () => {
  const say = told`A *norm* of ${3} numbers, ${{ patch: 7 }}: ${['a ', { strong: 'b' }]}.`;
  assert.deepEqual(say, [
    'A ',
    { term: 'norm' },
    ' of ',
    '3',
    ' numbers, ',
    { patch: 7 },
    ': ',
    'a ',
    { strong: 'b' },
    '.',
  ]);
});

for (const [kind, how] of Object.entries(MODELS))
  test(`every beat of a model with ${kind} says a sentence, and draws at any time`, () => {
    const n = numbers(how);
    const beats = placed(SCENES, n);
    assert.equal(new Set(beats.map(({ id }) => id)).size, beats.length);
    for (const beat of beats) {
      const words = wordsOf(beat.say(n), n.trace.grid[1]);
      assert.match(words, /^[A-Z0-9].*[.?]$/s);
      assert.doesNotMatch(words, /undefined|NaN|\[object|\*/);
      assert.match(beat.id, new RegExp(`^${beat.scene.id}-[a-z0-9]+$`));
      for (const wide of [true, false])
        for (const share of [0, 0.2, 0.5, 0.69, 0.999])
          beat.scene.draw(penOf(wide, n).pen, values(beats, beat.start + share * beat.seconds), n, beat.id);
    }
  });

for (const [kind, how] of Object.entries(MODELS))
  test(`every guess of a model with ${kind} has its truth among its choices, and waits before a beat of its scene`, () => {
    const n = numbers(how);
    for (const { guess, beats } of SCENES) {
      assert.ok(guess);
      const ids = beats(n).map(({ id }) => id);
      assert.ok(ids.indexOf(guess.before) > 0, guess.before);
      assert.ok(ids.indexOf(guess.shown ?? guess.before) >= ids.indexOf(guess.before));
      const choices = guess.choices(n);
      assert.ok(choices.length >= 2 && choices.length <= 4);
      assert.ok(choices[guess.truth(n)], `${guess.before}: ${guess.truth(n)}`);
      for (const say of [guess.question(n), guess.verdict(n), ...choices])
        assert.doesNotMatch(wordsOf(say, 6), /undefined|NaN|\[object/);
    }
  });

test('what adds more to a token is told by lengths, which may be about the same', () => {
  const of = (/** @type {number} */ attended, /** @type {number} */ thought) => {
    const n = /** @type {any} */ (numbers());
    n.block.arrays.attended = array([4], () => attended);
    n.block.arrays.thought = array([4], () => thought);
    return SCENE.guess?.truth(n);
  };
  assert.deepEqual([of(2, 1), of(-1, 2), of(1, 1.09), of(1.09, -1), of(1, 1.2)], [0, 1, 2, 2, 1]);
});

test('an answer is settled from the block on after which it stays what it is', () => {
  const n = numbers();
  assert.deepEqual([0, 1, 2, 3].map((state) => saidAfter(n, state)[0].index), [4, 4, 0, 0]); // prettier-ignore
  assert.equal(settled(n), 2);
  assert.equal(DEPTH.guess?.truth(n), 1); // block 1, the second third of three
  assert.match(
    wordsOf(DEPTH.guess?.verdict(n) ?? [], 6),
    /after block 1 on: class 0 30% there, and 60% at the end/,
  );
  assert.equal(settled(numbers(EMBEDDING)), 2); // the first whose cosine is above 0.9
});

test('blocks to guess are named once each, however many there are', () => {
  for (const layers of [1, 2, 3, 4, 12, 24]) {
    const choices = DEPTH.guess?.choices(numbers({ trace: { layers } })).map((say) => wordsOf(say, 6)) ?? [];
    const ends = choices.map((words) => words.match(/\d+/g)?.map(Number) ?? []);
    assert.equal(ends[0][0], 0);
    assert.equal(ends.at(-1)?.at(-1), layers - 1);
    for (const [i, [first]] of ends.entries()) if (i) assert.equal(first, (ends[i - 1].at(-1) ?? 0) + 1);
  }
});

test('what gave most to a score is heads, MLPs, all else, or heads and MLPs alike', () => {
  const of = (/** @type {number[]} */ [heads, mlps, rest], total = 10) => {
    const n = /** @type {any} */ (numbers());
    for (const [name, value] of Object.entries({ heads, mlps, rest }))
      n.parts.arrays[name] = array([1], () => value);
    n.parts.facts.total = total;
    return ANSWER.guess?.truth(n);
  };
  assert.deepEqual(
    [of([6, 3, 1]), of([3, 6, 1]), of([1, 2, 7]), of([4.8, 5, 0.2]), of([1, 1.2, 7.8])],
    [0, 1, 2, 3, 2],
  );
});

test('the lengths beside the lines are those of the vectors', () => {
  const n = numbers();
  const drawn = drawnAt(SCENE, 'heads-after', n);
  const { arrays } = /** @type {any} */ (n.block);
  for (let head = 0; head < HEADS; head++)
    near(drawn.get(`heads-part-${head}`), Math.hypot(...rowOf(arrays.contributions, head)));
  for (const name of ['before', 'thought', 'after'])
    near(drawn.get(`heads-${name}`), Math.hypot(...arrays[name].data));
  assert.equal(drawn.has('heads-middle'), false);
  near(drawnAt(SCENE, 'heads-mlp', n).get('heads-middle'), Math.hypot(...arrays.middle.data));
});

test('what is said after a block is what the head makes of that state', () => {
  const n = numbers();
  for (let layer = 0; layer < LAYERS; layer++) {
    const drawn = drawnAt(DEPTH, `depth-${layer}`, n);
    const { arrays } = /** @type {any} */ (n.depth);
    const row = rowOf(arrays.tops, layer + 1);
    for (const { index, value } of saidAfter(n, layer + 1).slice(0, 3)) {
      assert.equal(value, row[index]);
      near(drawn.get(`depth-said-${index}`), row[index]);
    }
    near(drawn.get(`depth-first-${layer}`), Math.max(...row));
    near(drawn.get('depth-length'), Math.hypot(...rowOf(arrays.stream, layer + 1)));
    assert.equal(drawn.has(`depth-first-${layer + 1}`), false);
  }
});

test('the sum that is drawn has the parts of the answer, and its total', () => {
  const n = numbers();
  const { heads, mlps } = /** @type {any} */ (n.parts).arrays;
  const sum = drawnAt(ANSWER, 'answer-sum', n);
  for (let row = 0; row < LAYERS; row++) {
    near(sum.get(`answer-heads-${row}`), rowOf(heads, row).reduce((a, b) => a + b, 0)); // prettier-ignore
    near(sum.get(`answer-mlp-${row}`), mlps.data[row]);
  }
  assert.equal(sum.get('answer-total'), 4.25);
  near(givenBy(n)[2], 0.1);
  const each = drawnAt(ANSWER, 'answer-heads', n);
  near(each.get('answer-head-1-2'), 2);
  assert.match(
    wordsOf(
      placed(SCENES, n)
        .find(({ id }) => id === 'answer-heads')
        ?.say(n) ?? [],
      6,
    ),
    /Head 2 of block 1 gave most: \+2.00/,
  );
  near(drawnAt(ANSWER, 'answer-top', n).get('answer-top-0'), 0.6);
});

test('a token that edits forbid has no score to be drawn, and is none of the few', () => {
  const n = numbers();
  const { scores, weights } = /** @type {any} */ (n.attention).arrays;
  [scores.data[3], weights.data[3]] = [-Infinity, 0];
  for (const beat of placed(SCENES, n).filter(({ id }) => /^ask-(?!take)/.test(id))) {
    const drawn = [...drawnAt(beat.scene, beat.id, n).keys()];
    assert.ok(!drawn.some((id) => /^(score|weight|product) 3$/.test(id)), beat.id);
  }
});

test('a score below 0 is the score of its class, and one number is not asked about', () => {
  const n = numbers();
  Object.assign(/** @type {any} */ (n.parts).facts, { total: -2, about: 'what speaks against lion' });
  const said = ANSWER.beats(n).map((beat) => wordsOf(beat.say(n), 6));
  assert.ok(!said.some((words) => words.includes('speaks against')), 'orange is for the class');
  assert.ok(said.some((words) => words.includes(`score of ${saidAfter(n, LAYERS)[0].name}, `)));
  const asks = (/** @type {string} */ kind) => DEPTH.guess?.isFor?.(numbers(MODELS[kind]));
  assert.deepEqual(['classes', 'embedding', 'value'].map(asks), [true, true, false]);
});

test('what a model does not have is not changed, nor told', () => {
  const possible = (/** @type {Scene} */ scene, /** @type {Numbers} */ n) =>
    scene.whatIf?.filter(({ isFor }) => isFor?.(n) !== false).map(({ change }) => change);
  const [all, pool] = [numbers(), numbers(MODELS.pool)];
  assert.deepEqual(
    [DEPTH, ANSWER].map((scene) => possible(scene, all)),
    [['cut'], ['head']],
  );
  assert.deepEqual(
    [DEPTH, ANSWER].map((scene) => possible(scene, pool)),
    [[], []],
  );
  const changes = [{}, { rotary: true }, { relative: true }].map((more) =>
    possible(CUT, numbers({ shape: { position: 'none', ...more } })),
  );
  assert.deepEqual(changes[0], ['patch', 'shuffle']);
  for (const some of changes.slice(1)) assert.deepEqual(some, ['patch', 'shuffle', 'positions']);
  const ids = (/** @type {any} */ shape) => placed([ANSWER], numbers({ shape })).map(({ id }) => id);
  assert.deepEqual(
    [ids({ final_norm: true })[0], ids({ final_norm: false })[0]],
    ['answer-norm', 'answer-top'],
  );
});

/** What a beat says of a model. @param {string} id @param {any} how */
function saidAt(id, how) {
  const n = numbers(how);
  return wordsOf(
    placed(SCENES, n)
      .find((one) => one.id === id)
      ?.say(n) ?? [],
    n.trace.grid[1],
  );
}

/** Parts that not every model has: what says so, in which beats. @type {[string, any, RegExp, string[]][]} */
const UNUSUAL = [
  [
    'a norm of patches',
    { shape: { patch_norm: true } },
    /one patch\. Then they are brought to one/,
    ['cut-embed'],
  ],
  [
    'a norm before the blocks',
    { shape: { pre_norm: true } },
    /Before the first block .* one scale/,
    ['cut-place'],
  ],
  [
    'norms of queries and keys',
    { shape: { qk_norm: true } },
    /brought to one scale, too/,
    ['ask-query', 'ask-keys'],
  ],
  [
    'a norm of what heads bring',
    { shape: { attn_norm: true } },
    /They are brought to one scale/,
    ['heads-join'],
  ],
  ['LayerScale', { shape: { layer_scale: true } }, /learned factor/, ['heads-parts', 'heads-after']],
  ['a norm inside the MLP', { shape: { mlp_norm: true } }, /brought to one scale before/, ['heads-after']],
  [
    'rotary positions beside a table',
    { shape: { rotary: true } },
    /are added\. Later, .* hand of a clock/,
    ['cut-place'],
  ],
  [
    'rotary positions alone',
    { shape: { rotary: true, position: 'none' } },
    /nothing is added for that: .* clock/,
    ['cut-place'],
  ],
  [
    'a bias for offsets',
    { shape: { relative: true, position: 'none' } },
    /that: how far apart/,
    ['cut-place'],
  ],
  ['no positions', { shape: { position: 'none' } }, /does not tell it: nothing is added\.$/, ['cut-place']],
  [
    'one block',
    { trace: { layers: 1 }, layer: 0 },
    /one block\. There .* head 2 of block 0\.$/,
    ['ask-stop'],
  ],
  [
    'one head',
    { trace: { heads: 1 } },
    /in one way that is called a head, |That was the one head/,
    ['ask-stop', 'heads-all'],
  ],
  ['no last norm', { shape: { final_norm: false } }, /is a sum, too: here/, ['answer-sum']],
];
for (const [name, how, words, beats] of UNUSUAL)
  test(`of a model with ${name} it is said, and of no other`, () => {
    for (const id of beats) {
      assert.match(saidAt(id, how), words);
      assert.doesNotMatch(saidAt(id, {}), words);
    }
  });

test('the scale of a last norm is held wherever there is one, be it behind the pool', () => {
  const held = /norm held/;
  assert.match(saidAt('answer-sum', {}), held);
  assert.match(saidAt('answer-sum', { shape: { final_norm: false, fc_norm: true } }), held);
});

test('whatever is asked of a scene before its answers are there does without them', () => {
  const answers = ['tokens', 'attention', 'block', 'depth', 'parts'];
  const n = numbers(Object.fromEntries(answers.map((name) => [name, null])));
  for (const scene of SCENES) {
    assert.ok(scene.title(n));
    assert.ok(placed([scene], n).length);
    assert.equal(typeof (scene.guess?.isFor?.(n) ?? true), 'boolean');
    for (const { isFor } of scene.whatIf ?? []) assert.equal(typeof (isFor?.(n) ?? true), 'boolean');
    assert.ok(scene.fold?.shapes(n));
  }
});
