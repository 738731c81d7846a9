// Processor time of one hover of the explorer: numbers of all layers and heads, mosaic and big map. Run: node benchmarks/explorer.js
//
// The arithmetic alone, without a browser, in processor time, so that other work on the machine does not count.

import { Frame } from '../vit_viz/ui/explorer/frame.js';
import { paintBigMap, paintMosaic } from '../vit_viz/ui/explorer/paint.js';
import { initialView } from '../vit_viz/ui/explorer/state.js';

const CASES = [
  { name: 'N = 197, 12 x 3 heads', layers: 12, heads: 3, side: 14, here: 12 },
  { name: 'N = 197, 12 x 12 heads', layers: 12, heads: 12, side: 14, here: 12 },
  { name: 'N = 785, 12 x 12 heads', layers: 12, heads: 12, side: 28, here: 12 },
  { name: 'N = 3601, one layer of 6 heads', layers: 12, heads: 6, side: 60, here: 1 },
];
const CHANGES = [{}, { direction: 'column' }, { scale: 'own' }, { mask: 0.6 }];

function picture() {
  const resize = (width, height) => {
    if (made.pixels?.length !== width * height) made.pixels = new Uint32Array(width * height);
  };
  const made = { pixels: null, resize, show() {} };
  return made;
}

function randomLayer(heads, tokens, headDim) {
  const numbers = (count) => Float32Array.from({ length: count }, () => 3 * Math.random() - 1.5);
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

function measure({ layers, heads, side, here }, change) {
  const tokens = side * side + 1;
  const trace = {
    layers,
    heads,
    tokens,
    grid: [side, side],
    prefix: ['class'],
    suffix: [],
    pooling: 'class',
    default_query: 'class',
  };
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
