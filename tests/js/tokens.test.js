// The arithmetic and the words of the Tokens tab, without a browser.

import assert from 'node:assert/strict';
import test from 'node:test';

import { boxText, readBox } from '../../vit_viz/web/tokens/listen.js';
import { histogram, cellWords, ticksOf, pairsOf } from '../../vit_viz/web/tokens/panels.js';
import {
  changeWords,
  commonest,
  componentWords,
  lensWords,
  outlierWords,
  registerWords,
  segmentWords,
  spotSegment,
} from '../../vit_viz/web/tokens/measures.js';
import { decodeTable } from '../../vit_viz/explorer/paint.js';
import {
  alikeFinding,
  alikeWords,
  changeFinding,
  degrees,
  lensFinding,
  normFinding,
  standOut,
  surestWords,
  timesMedian,
  tokenName,
  whose,
} from '../../vit_viz/web/tokens/findings.js';
import { LIFT, lightness } from '../../vit_viz/web/tokens/plate.js';
import { segmentColour, segmentPixels } from '../../vit_viz/web/tokens/segments.js';
import { MOST_BYTES, Store } from '../../vit_viz/web/tokens/fetched.js';
import { cosine, cosines, percent, rangeOf, readVectors, short } from '../../vit_viz/ui/kit/numbers.js';

const ONE = 0x3c00; // 1 in fp16
const HALF = 0x3800;
const MINUS = 0xb800; // -0.5

/** Three tokens of two numbers: (1, 0), (0.5, -0.5), (0, 1). */
function threeTokens() {
  return readVectors(Uint16Array.of(ONE, 0, HALF, MINUS, 0, ONE).buffer, 3);
}

test('vectors are read token by token', () => {
  const vectors = threeTokens();
  assert.equal(vectors.dim, 2);
  assert.deepEqual([...vectors.data], [1, 0, 0.5, -0.5, 0, 1]);
  assert.throws(() => readVectors(new ArrayBuffer(10), 3), /do not fit/);
  assert.throws(() => readVectors(new ArrayBuffer(0), 3), /do not fit/);
});

test('a token is compared with the patches, which come after the prefix', () => {
  const vectors = threeTokens();
  assert.deepEqual([...cosines(vectors, 1, 1, new Float32Array(2))], [0.5, -0.5]);
  assert.deepEqual([...cosines(vectors, 0, 1, new Float32Array(2))], [0.5, 0]);
  assert.equal(cosine(vectors, 1, 2), -0.5);
});

test('the range is over all maps, and of none from 0 to 1', () => {
  assert.deepEqual(rangeOf([Float32Array.of(3, 1), Float32Array.of(-2, 0)]), [-2, 3]);
  assert.deepEqual(rangeOf([]), [0, 1]);
});

test('colours become pixels of one opacity', () => {
  const pixels = decodeTable(Buffer.from([1, 2, 3, 255, 0, 128]).toString('base64'), 9);
  assert.deepEqual([...new Uint8Array(pixels.buffer)], [1, 2, 3, 9, 255, 0, 128, 9]);
});

test('numbers are short', () => {
  assert.deepEqual([0, 0.28349, -0.0123, 0.0004, 12345.6, 45.678].map(short), [
    '0',
    '0.283',
    '-0.0123',
    '4e-4',
    '12346',
    '45.7',
  ]);
  assert.deepEqual([0, 0.004, 0.5].map(percent), ['0%', '< 1%', '50%']);
});

const NORMS = {
  values: [
    [2, 4, 60],
    [2, 4, 6],
  ],
  others: { class: [100, 3], 'register 0': [30, 2] },
  thresholds: [20, 20],
  outliers: [[2], []],
  named: [['class', 'register 0'], []],
  received: [0.34],
  fair: [0.02],
};

test('outliers are told with the attention that they get, and a length beside the median', () => {
  assert.equal(
    outlierWords(NORMS, 0, 5),
    "Longer than 5 medians: 1 patch and the class token and register 0, which get 34% of the next layer's attention (an even share would be 2%).",
  );
  assert.equal(outlierWords(NORMS, 1, 2.5), 'No token is longer than 2.5 medians.');
  assert.equal(timesMedian(NORMS, 0, 60, 5), 15);
  assert.equal(timesMedian(NORMS, 0, undefined, 5), null);
  assert.equal(timesMedian({ ...NORMS, thresholds: [0, 0] }, 0, 60, 5), null);
  assert.equal(normFinding('It', NORMS, 0, 60, 5), 'It: an outlier, 15 times as long as the median');
  assert.equal(normFinding('It', NORMS, 0, 3.13, 5), 'It: 0.78 times as long as the median');
  assert.equal(normFinding('It', NORMS, 0, undefined, 5), 'It: how long the tokens are');
});

test('after the last layer there is no attention to get', () => {
  const last = { ...NORMS, outliers: [[], [0, 1]], named: [[], []] };
  assert.equal(outlierWords(last, 1, 5), 'Longer than 5 medians: 2 patches.');
});

test('components say how much they hold', () => {
  const told = {
    colours: [],
    second: null,
    note: '',
    explained: [[0.25, 0.11, 0.034]],
    overall: [0.3, 0.1, 0.1],
  };
  assert.equal(
    componentWords(told, 0),
    "Red 25%, green 11%, blue 3% of what differs here; in all layers together 50%. Brightness is the photo's own",
  );
});

const LENS = {
  values: [[0.1, 0.7, 0.2]],
  unit: 'probability',
  target: 'lion',
  note: '',
  top: [[4, 7, 4]],
  top_probability: [[0.5, 0.7, 0.4]],
  words: { 4: 'nail', 7: 'lion' },
};

test('the lens says what comes first, and the class of the maps where that is another', () => {
  const spot = { state: 0, patch: 0, cols: 3, name: 'input' };
  assert.equal(lensWords(LENS, spot), 'patch (0, 0): nail 50%, lion 10%');
  assert.equal(lensWords(LENS, { ...spot, patch: 1 }), 'patch (0, 1): lion 70%');
  assert.equal(commonest(LENS, 0), 'nail');
});

test('without classes the lens says a cosine', () => {
  const bare = { ...LENS, top: undefined, top_probability: undefined, words: undefined };
  const spot = { state: 0, patch: 2, cols: 3, name: 'input' };
  assert.equal(lensWords({ ...bare, unit: 'cosine' }, spot), 'patch (0, 2): 0.2, cosine');
  assert.equal(lensFinding('It', bare, 0, 2), "It: cosine 0.2 with the photo's own embedding");
  assert.equal(surestWords(bare, 0, 3), '');
});

test('a change is a cosine, of the patch and of the tokens that are none', () => {
  const told = { values: [[0.5, 0.75, 0.25]], others: { class: [0.9], 'register 1': [0.123] }, unit: '' };
  const spot = { state: 0, patch: 1, cols: 2, name: 'layer 0' };
  const others = 'class token 0.9; register 1 0.123';
  const start = 'Cosine with itself before the layer (1: only the length changed): ';
  assert.equal(changeWords(told, 0, spot), `${start}patch (0, 1) 0.75; ${others}`);
  assert.equal(changeWords(told, 0, null), start + others);
});

const SEGMENTS = {
  labels: [0, 1, 0, 2],
  shares: [0.5, 0.25, 0.25],
  overlap: null,
  method: 'k-means of keys',
};

test('a patch is told with its segment, and with the overlap where there is a box', () => {
  const spot = { state: 0, patch: 3, cols: 2, name: 'layer 0' };
  assert.equal(segmentWords(SEGMENTS, spot), 'patch (1, 1): segment 2, 25% of the patches');
  const boxed = { ...SEGMENTS, overlap: [0.1, 0.2, 0.3456] };
  assert.match(segmentWords(boxed, spot), /; overlap with the box 0\.346$/);
  assert.equal(spotSegment(SEGMENTS, 1), 1);
  assert.equal(spotSegment(SEGMENTS, null), null);
});

test('segments have colours of their own, and each its opacity', () => {
  const colours = Array.from({ length: 24 }, (_, segment) => segmentColour(segment).join());
  assert.equal(new Set(colours).size, 24);
  for (const channel of colours.flatMap((colour) => colour.split(',').map(Number)))
    assert.ok(channel >= 0 && channel <= 255 && Number.isInteger(channel));
  const bytes = new Uint8Array(segmentPixels([1, 0], (segment) => 100 + segment).buffer);
  assert.deepEqual([...bytes], [...segmentColour(1), 101, ...segmentColour(0), 100]);
});

test('a box is written from any two corners, within the photo, and read again', () => {
  assert.equal(boxText([90.4, 120], [-5, 20.2], [80, 200]), '20,0,120,80');
  assert.equal(boxText([10, 10], [10.3, 90], [80, 200]), ''); // no height
  assert.deepEqual(readBox('20,0,120,80'), [0, 20, 80, 120]);
  for (const text of ['', '1,2,3', '5,0,5,9', '0,9,5,9', '-1,0,5,9', 'a,b,c,d'])
    assert.equal(readBox(text), null);
});

test('a histogram counts every value, the largest in the last bin', () => {
  assert.deepEqual(histogram([0, 1, 2, 3.9, 4], 4), { counts: [1, 1, 1, 2], top: 4 });
  assert.deepEqual(histogram([0, 0], 3), { counts: [2, 0, 0], top: 0 });
});

test('a cell of the matrix names both layers', () => {
  const told = {
    matrix: [
      [1, 0.25],
      [0.25, 1],
    ],
    names: ['input', 'after layer 0'],
    unit: '',
    note: '',
  };
  assert.equal(cellWords(told, 1), 'input with after layer 0: 0.25');
  assert.equal(cellWords(told, 3), 'after layer 0 with itself: 1');
});

/** @type {import('../../vit_viz/web/tokens/fetched.js').Register} */
const REGISTER = {
  norms: [
    { ...NORMS, outliers: [[], [1, 2]] },
    { ...NORMS, outliers: [[], []], values: [NORMS.values[0], [2, 1, 3]] },
  ],
  attention: [
    [0.5, 0.25, 0.25],
    [0.2, 0.4, 0.4],
  ],
  patches: [2, 1],
  state: 1,
  name: 'register 0',
  neurons: [
    [1, 7],
    [0, 5],
    [1, 9],
  ],
};

test('a register is told by what it took over, and drawn beside what was there before', () => {
  assert.equal(
    registerWords(REGISTER),
    'After layer 0, 2 patches were outliers; with register 0 added there is 1. It took over 3 neurons of layers 0, 1, without training.',
  );
  const [norms, attention] = pairsOf(REGISTER, 1, 'after layer 0');
  assert.equal(norms.words, 'Norms, after layer 0');
  assert.deepEqual(
    norms.maps.map((map) => [...map]),
    [
      [2, 4, 6],
      [2, 1, 3],
    ],
  );
  assert.deepEqual(norms.outliers, [[1, 2], []]);
  assert.deepEqual([...attention.maps[0]], [0.5, 0.25, 0.25]);
});

/** @type {import('../../vit_viz/web/tokens/fetched.js').Of} */
const OF = {
  trace: 'abc',
  prefix: [],
  suffix: [],
  grid: [1, 4],
  about: { model: 'mini' },
  view: 'image=lion',
};

test('numbers are asked for with what is chosen, and empty choices are left out', async () => {
  /** @type {any[]} */
  const asked = [];
  const store = new Store(OF, async (name, body) => {
    asked.push([name, body]);
    return {
      arrays: { labels: { shape: [1, 2], data: BigInt64Array.of(0n, 1n) } },
      facts: { method: 'cut' },
    };
  });
  const told = await store.fetchNumbers('segments', { layer: 3, box: '', method: 'cut' });
  assert.deepEqual(told, { labels: [0, 1], shares: [0.5, 0.5], overlap: null, method: 'cut' });
  assert.equal(store.known('segments', { layer: 3, box: '', method: 'cut' }), told);
  await store.fetchNumbers('components', { foreground: true, second: 'x y' });
  assert.deepEqual(asked, [
    ['segments', { model: 'mini', layer: 3, method: 'cut' }],
    ['colours', { view: 'image=lion', foreground: true, second: 'x y' }],
  ]);
});

test('the sides of the square name the first layer and every k-th, in the middle of their cells', () => {
  assert.deepEqual(ticksOf(['input', 'after layer 0']), [
    { words: 'input', at: 0.25 },
    { words: '0', at: 0.75 },
  ]);
  const names = ['input', ...Array.from({ length: 12 }, (_, layer) => `after layer ${layer}`)];
  assert.deepEqual(
    ticksOf(names).map(({ words }) => words),
    ['input', '1', '3', '5', '7', '9', '11'],
  );
});

test('a vector is named with its place in the model', () => {
  const subject = {
    prefix: ['class'],
    suffix: ['detection 3'],
    grid: /** @type {[number, number]} */ ([2, 3]),
  };
  assert.deepEqual([0, 1, 6, 7].map((token) => tokenName(subject, token)), [
    'class token',
    'patch (0, 0)',
    'patch (1, 2)',
    'detection 3',
  ]); // prettier-ignore
  assert.equal(whose('patch (1, 2)', 'tokens', 'after layer 4'), 'Patch (1, 2) after layer 4');
  assert.equal(whose('class token', 'tokens', 'input'), 'The class token before the first layer');
  assert.equal(whose('patch (1, 2)', 'keys', 'layer 4'), 'Patch (1, 2), by the keys of layer 4');
});

test('what is alike is counted within 45 degrees, without the patch itself', () => {
  const finding = (/** @type {number[]} */ values, /** @type {number | undefined} */ self) =>
    alikeFinding('It', Float32Array.from(values), self);
  assert.equal(finding([1, 0.5, 0.7, 0.2], 0), 'It: no other patch carries the same direction');
  assert.equal(finding([0.1, 0.5, 0.7, 0.2], undefined), 'It: no patch carries the same direction');
  assert.equal(finding([1, 0.71, 0.7, 0.2, 0], 0), 'It: 1 patch carries the same direction');
  assert.equal(finding([0.9, 0.1, 1, 0.8, 0, 0], 2), 'It: 2 patches carry the same direction');
  assert.equal(finding([0.9, 0.8, 1, 0.1], 2), 'It: most patches carry the same direction, 2 of 3');
  assert.equal(finding([0.9, 0.8, 1], 2), 'It: all patches carry the same direction');
});

test('what is lit goes from the average of the others to the most alike of them', () => {
  assert.deepEqual(standOut(Float32Array.of(1, 0.5, 0.25, 0), 0), [0.25, 0.5]);
  assert.deepEqual(standOut(Float32Array.of(1, 0.5, 0.25, 0)), [0.4375, 1]);
  assert.deepEqual(standOut(Float32Array.of(1), 0), [1, 1]);
  assert.equal(alikeWords(Float32Array.of(1, 0.5, 0.25, 0), 2, 0), 'Most alike is patch (0, 1), cosine 0.5; the average patch 0.25'); // prettier-ignore
  assert.equal(alikeWords(Float32Array.of(1), 1, 0), 'There is one patch alone');
});

test('the head says something clear from a tenth on, and where it is surest', () => {
  assert.equal(lensFinding('It', LENS, 0, 1), 'It: the head would say lion, 70%');
  const unsure = { ...LENS, top_probability: [[0.099, 0.1, 0.02]] };
  assert.equal(lensFinding('It', unsure, 0, 0), 'It: the head would say nothing clear (nail, 10%)');
  assert.equal(lensFinding('It', unsure, 0, 1), 'It: the head would say lion, 10%');
  assert.equal(lensFinding('It', LENS, 0, undefined), 'It: of the patches most would be called nail');
  assert.equal(surestWords(LENS, 0, 2), 'It is surest of patch (0, 1): lion, 70%');
});

test('a change is told as an angle, beside that of the average patch', () => {
  assert.deepEqual(
    [1, 0, -1, 1.0001, 0.5].map((value) => Math.round(degrees(value))),
    [0, 90, 180, 0, 60],
  );
  assert.equal(changeFinding('Layer 3', [10, 20.4, 60], 2, 2), 'Layer 3 turned patch (1, 0) by 60°, the average patch by 30°'); // prettier-ignore
  assert.equal(changeFinding('Layer 3', [10, 20, 60], 2), 'Layer 3 turned the patches by 30° on average');
});

test('colours keep the lightness of the photo, and are seen where it is black', () => {
  const gray = [...lightness(Uint8ClampedArray.of(0, 0, 0, 255, 255, 255, 255, 90, 255, 0, 0, 255))];
  const low = Math.round(255 * LIFT);
  const red = Math.round(255 * (LIFT + (1 - LIFT) * 0.2126));
  assert.deepEqual(gray, [low, low, low, 255, 255, 255, 255, 90, red, red, red, 255]);
});

test('vectors are kept as long as there is room for them, those that are wanted first', async (context) => {
  const large = new Uint16Array(MOST_BYTES / 8); // two of them fill the room
  /** @type {string[]} */
  const asked = [];
  context.mock.method(globalThis, 'fetch', async (/** @type {string} */ path) => {
    asked.push(path.replace(/.*[/]/, ''));
    return { ok: true, arrayBuffer: async () => large.buffer };
  });
  Object.assign(globalThis, { window: { gradio_config: {} } });
  context.after(() => Reflect.deleteProperty(globalThis, 'window'));
  const store = new Store(OF, async () => null);
  const here = () => [...store.vectors.keys()];
  await store.fetchVectors('tokens', [3, 0, 1, 2], () => true);
  assert.deepEqual(here(), ['tokens/3', 'tokens/0']);
  await store.fetchVectors('tokens', [1, 3], () => true);
  assert.deepEqual(here(), ['tokens/3', 'tokens/1']); // 0 made room
  await store.fetchVectors('keys', [0, 1], () => false); // nobody waits any more
  assert.deepEqual(here(), ['tokens/1', 'keys/0']);
  assert.deepEqual(asked, ['3', '0', '1'].map((state) => `${state}?role=tokens`).concat('0?role=keys'));
});
