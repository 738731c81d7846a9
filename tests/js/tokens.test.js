// The arithmetic and the words of the Tokens tab, without a browser.

import assert from 'node:assert/strict';
import test from 'node:test';

import { boxText, readBox } from '../../vit_viz/ui/tokens/listen.js';
import { histogram, cellWords, ticksOf, pairsOf } from '../../vit_viz/ui/tokens/panels.js';
import {
  changeWords,
  commonest,
  componentWords,
  lensWords,
  normWords,
  outlierWords,
  registerWords,
  segmentWords,
  spotSegment,
  tileWords,
} from '../../vit_viz/ui/tokens/measures.js';
import { segmentColour, segmentPixels } from '../../vit_viz/ui/tokens/views.js';
import { Store } from '../../vit_viz/ui/tokens/store.js';
import {
  colourPixels,
  cosine,
  cosines,
  percent,
  rangeOf,
  readVectors,
  short,
} from '../../vit_viz/ui/kit/numbers.js';

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
  const pixels = colourPixels(Buffer.from([1, 2, 3, 255, 0, 128]).toString('base64'), 9);
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

test('norms are told beside the median, and outliers with the attention that they get', () => {
  const spot = { state: 0, patch: 2, cols: 2, name: 'input' };
  assert.equal(
    normWords(NORMS, spot, 5),
    "patch (1, 0): 60, 15 x the median. Longer than 5 medians: 1 patch and the class token and register 0, which get 34% of the next layer's attention (an even share would be 2%).",
  );
  assert.equal(outlierWords(NORMS, 1, 2.5), 'No token is longer than 2.5 medians.');
  assert.equal(tileWords('norms', NORMS, 0), '3 outliers');
  assert.equal(tileWords('norms', NORMS, 1), 'no outliers');
});

test('after the last layer there is no attention to get', () => {
  const last = { ...NORMS, outliers: [[], [0, 1]], named: [[], []] };
  assert.equal(outlierWords(last, 1, 5), 'Longer than 5 medians: 2 patches.');
});

test('components say how much they hold', () => {
  const told = { colours: [], second: null, explained: [[0.25, 0.11, 0.034]], overall: [0.3, 0.1, 0.1] };
  assert.equal(
    componentWords(told, 0),
    '39% of what differs in this layer: red 25%, green 11%, blue 3%; all layers together: 50%',
  );
  assert.equal(tileWords('components', told, 0), '39% of what differs');
});

const LENS = {
  values: [[0.1, 0.7, 0.2]],
  unit: 'probability',
  title: 'What speaks for lion',
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
  assert.equal(tileWords('lens', LENS, 0), 'mostly nail');
});

test('without classes the lens says a cosine', () => {
  const bare = { ...LENS, top: undefined, top_probability: undefined, words: undefined };
  const spot = { state: 0, patch: 2, cols: 3, name: 'input' };
  assert.equal(lensWords({ ...bare, unit: 'cosine' }, spot), 'patch (0, 2): 0.2, cosine');
  assert.equal(tileWords('lens', bare, 0), '');
});

test('a change is a cosine, of the patch and of the tokens that are none', () => {
  const told = { values: [[0.5, 0.75, 0.25]], others: { class: [0.9], 'register 1': [0.123] }, unit: '' };
  const spot = { state: 0, patch: 1, cols: 2, name: 'layer 0' };
  const others = 'class token 0.9; register 1 0.123';
  const start = 'Cosine with itself before the layer (1: only the length changed): ';
  assert.equal(changeWords(told, 0, spot), `${start}patch (0, 1) 0.75; ${others}`);
  assert.equal(changeWords(told, 0, null), start + others);
  assert.equal(tileWords('layers', told, 0), 'mean 0.5');
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

/** @type {import('../../vit_viz/ui/tokens/store.js').Register} */
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

test('numbers are asked for with what is chosen, and empty choices are left out', () => {
  const store = new Store('abc', 9);
  assert.equal(
    store.pathOf('segments', { layer: 3, box: '', method: 'k-means' }),
    '/vit_viz/token_numbers/abc?kind=segments&layer=3&method=k-means',
  );
  assert.match(store.pathOf('components', { foreground: true, also: 'x y' }), /foreground=true&also=x%20y$/);
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
