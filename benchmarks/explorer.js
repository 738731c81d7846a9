// Processor time of one hover of the explorer: numbers of all layers and heads, mosaic and big map. Run: node benchmarks/explorer.js
//
// The arithmetic alone, without a browser, in processor time, so that other work on the machine does not count.

import { readFileSync } from 'node:fs';

import { Frame } from '../vit_viz/explorer/frame.js';
import { paintBigMap, paintMosaic } from '../vit_viz/explorer/paint.js';
import { initialView } from '../vit_viz/explorer/state.js';

/** As the server declares them. */
const OPTIONS = JSON.parse(readFileSync(new URL('../tests/js/options.json', import.meta.url), 'utf8'));

const CASES = [
  { name: 'N = 197, 12 x 3 heads', layers: 12, heads: 3, side: 14, here: 12 },
  { name: 'N = 197, 12 x 12 heads', layers: 12, heads: 12, side: 14, here: 12 },
  { name: 'N = 785, 12 x 12 heads', layers: 12, heads: 12, side: 28, here: 12 },
  { name: 'N = 3601, one layer of 6 heads', layers: 12, heads: 6, side: 60, here: 1 },
];
const CHANGES = [{}, { direction: 'column' }, { scale: 'own' }, { mask: 0.6 }];

/** Stands for a canvas: holds pixels and shows nothing. */
function picture() {
  const resize = (/** @type {number} */ width, /** @type {number} */ height) => {
    if (made.pixels.length !== width * height) made.pixels = new Uint32Array(width * height);
  };
  const made = { pixels: new Uint32Array(0), resize, show() {} };
  return /** @type {import('../vit_viz/explorer/paint.js').Picture} */ (/** @type {unknown} */ (made));
}

/**
 * @param {number} heads
 * @param {number} tokens
 * @param {number} headDim
 * @returns {import('../vit_viz/explorer/attention.js').Layer}
 */
function randomLayer(heads, tokens, headDim) {
  const numbers = (/** @type {number} */ count) =>
    Float32Array.from({ length: count }, () => 3 * Math.random() - 1.5);
  const size = heads * tokens * headDim;
  const q = numbers(size).map((v) => v / 8);
  return {
    kind: 'qk',
    heads,
    tokens,
    headDim,
    q,
    k: numbers(size),
    lse: new Float32Array(heads * tokens).fill(9),
    norms: null,
  };
}

/** @param {typeof CASES[number]} size @param {object} change */
function measure({ layers, heads, side, here }, change) {
  const tokens = side * side + 1;
  const shape = {
    layers,
    heads,
    tokens,
    grid: [side, side],
    prefix: ['class'],
    suffix: [],
    pooling: 'class',
    default_query: 'class',
    opening: { layer: 0, head: 'mean', tour: [] },
    options: OPTIONS,
  };
  const trace = /** @type {import('../vit_viz/explorer/geometry.js').Trace} */ (
    /** @type {unknown} */ (shape)
  );
  const data = Array.from({ length: here }, () => randomLayer(heads, tokens, 64));
  const frame = new Frame(trace);
  const [mosaic, map, table] = [picture(), picture(), new Uint32Array(256)];
  const times = [];
  for (let round = 0; round < 80; round++) {
    const query = `${Math.floor(Math.random() * side)},${Math.floor(Math.random() * side)}`;
    const view = { ...initialView(trace), layer: 0, ...change, query };
    const start = process.cpuUsage();
    frame.compute(
      view,
      (l) => data[l] ?? null,
      () => null,
    );
    paintMosaic(mosaic, frame, view, table);
    paintBigMap(map, frame, view, table);
    const { user, system } = process.cpuUsage(start);
    if (round >= 20) times.push((user + system) / 1000);
  }
  times.sort((a, b) => a - b);
  return [times[times.length >> 1], times[Math.floor(times.length * 0.95)]];
}

for (const one of CASES) {
  for (const change of CHANGES) {
    const [median, p95] = measure(one, change);
    const what = Object.entries(change).map(([key, value]) => `${key} ${value}`);
    console.log(
      `${one.name}, ${what[0] ?? 'row, shared scale'}: median ${median.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`,
    );
  }
}
