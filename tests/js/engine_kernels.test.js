// The engine's arithmetic: what is committed is what its source compiles to, and every function is right where rows do not fill lanes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { Machine } from '../../vit_viz/browser/machine.js';

const ROOT = new URL('../../', import.meta.url);
const [PLAIN, RELAXED] = ['kernels.wasm', 'kernels-relaxed.wasm'].map((name) =>
  readFileSync(new URL(`vit_viz/browser/${name}`, ROOT)),
);
const execute = promisify(execFile);
setFlagsFromString('--experimental-wasm-relaxed-simd'); // which Node.js 20 knows, but not yet by itself
const machines = () => Promise.all([Machine.from(PLAIN), Machine.from({ plain: PLAIN, relaxed: RELAXED })]);

/** A test of both kernels, one after the other. @param {string} name @param {(engine: Machine) => void} work */
function kernels(name, work) {
  test(name, async () => {
    for (const engine of await machines()) work(engine);
  });
}

/** Numbers that repeat themselves in every run. */
function numbers(/** @type {number} */ count, seed = 1) {
  return Float32Array.from({ length: count }, (_, i) => 2 * Math.sin(12.9898 * i + seed));
}

/** The largest difference, relative to the largest of what is expected. */
function difference(/** @type {Float32Array} */ got, /** @type {number[]} */ wanted) {
  assert.equal(got.length, wanted.length);
  const largest = Math.max(...wanted.map(Math.abs));
  return Math.max(...wanted.map((value, i) => Math.abs(got[i] - value))) / largest;
}

for (const kind of ['plain', 'relaxed']) {
  test(`the ${kind} kernels are what \`npm run wasm\` makes of their source, byte for byte`, async () => {
    const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf-8'));
    assert.ok(scripts.wasm.split(' && ').includes(`npm run wasm:${kind}`));
    const folder = mkdtempSync(join(tmpdir(), 'kernels-'));
    const [program, ...options] = scripts[`wasm:${kind}`].split(' ');
    const place = options.indexOf('--outFile') + 1;
    const committed = options[place];
    options[place] = join(folder, 'kernels.wasm');
    assert.equal(program, 'asc');
    const asc = fileURLToPath(new URL('node_modules/assemblyscript/bin/asc.js', ROOT));
    try {
      // in a process of its own: other tests leave a page's globals behind, which would make it think that this is a browser
      const { stderr } = await execute(process.execPath, [asc, ...options], { cwd: fileURLToPath(ROOT) });
      assert.equal(stderr, '');
      assert.ok(
        readFileSync(options[place]).equals(readFileSync(new URL(committed, ROOT))),
        'please run `npm run wasm` and commit its files',
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

for (const [rows, inner, cols] of [
  [1, 1, 1],
  [3, 5, 7],
  [4, 8, 8],
  [9, 3, 17],
  [5, 13, 12],
]) {
  kernels(`a product of ${rows} rows, ${inner} numbers each, with ${cols} rows`, (engine) => {
    const x = numbers(rows * inner);
    const w = numbers(cols * inner, 2);
    const bias = numbers(cols, 3);
    const y = engine.place(new Float32Array(rows * cols + 1).fill(9));
    const { panels } = engine.placeMatrix(w, cols, inner);
    engine.run.product(engine.place(x), inner, panels, engine.place(bias), y, cols, rows, inner, cols);
    const wanted = Array.from({ length: rows * cols }, (_, at) => {
      const [i, j] = [Math.floor(at / cols), at % cols];
      return Array.from({ length: inner }, (__, k) => x[i * inner + k] * w[j * inner + k]).reduce(
        (a, b) => a + b,
        bias[j],
      );
    });
    assert.ok(difference(engine.read(y, rows * cols), wanted) < 1e-6);
    assert.equal(engine.read(y, rows * cols + 1)[rows * cols], 9, 'nothing is written behind the last row');
  });
}

for (const cols of [1, 2, 3, 4, 7, 12]) {
  kernels(`softmax and norms of rows of ${cols} numbers`, (engine) => {
    const rows = 3;
    const x = numbers(rows * cols).map((value) => 10 * value);
    const row = (/** @type {number} */ i) => [...x.subarray(i * cols, (i + 1) * cols)];
    const [at, peaks, sums] = [engine.place(x), engine.room(rows), engine.room(rows)];
    engine.run.softmax(at, rows, cols, peaks, sums);
    const weights = [0, 1, 2].flatMap((i) => {
      const powers = row(i).map((value) => Math.exp(value - Math.max(...row(i))));
      return powers.map((power) => power / powers.reduce((a, b) => a + b));
    });
    assert.ok(difference(engine.read(at, rows * cols), weights) < 1e-6);
    const lse = [0, 1, 2].map((i) => engine.view(peaks, 3)[i] + Math.log(engine.view(sums, 3)[i]));
    const sumExp = [0, 1, 2].map((i) => Math.log(row(i).reduce((sum, value) => sum + Math.exp(value), 0)));
    assert.ok(difference(Float32Array.from(lse), sumExp) < 1e-6);

    const [gain, shift] = [numbers(cols, 4), numbers(cols, 5)];
    for (const centred of [0, 1]) {
      const y = engine.room(rows * cols);
      const [g, s] = [engine.place(gain), centred ? engine.place(shift) : 0];
      engine.run.norm(engine.place(x), y, g, s, rows, cols, 1e-6, centred);
      const wanted = [0, 1, 2].flatMap((i) => {
        const mean = centred ? row(i).reduce((a, b) => a + b) / cols : 0;
        const variance = row(i).reduce((sum, value) => sum + (value - mean) ** 2, 0) / cols;
        return row(i).map(
          (value, j) => ((value - mean) / Math.sqrt(variance + 1e-6)) * gain[j] + (centred ? shift[j] : 0),
        );
      });
      assert.ok(difference(engine.read(y, rows * cols), wanted) < 2e-6);
    }
  });
}

/** @type {[('gelu' | 'geluTanh' | 'quickGelu'), (x: number) => number][]} */
const ACTIVATIONS = [
  ['geluTanh', (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))],
  ['quickGelu', (x) => x / (1 + Math.exp(-1.702 * x))],
  ['gelu', (x) => (x * (1 + erf(x / Math.SQRT2))) / 2],
];

/** The error function by its series, which converges everywhere; in doubles good to 1e-10 up to 5. */
function erf(/** @type {number} */ x) {
  let sum = 0;
  for (let n = 0, term = x; n < 150; n++, term *= -(x * x) / n) sum += term / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * sum;
}

kernels('activations, from where they are 0 to where they are the identity', (engine) => {
  const x = Float32Array.from({ length: 101 }, (_, i) => (i - 50) / 10);
  for (const [name, formula] of ACTIVATIONS) {
    const at = engine.place(x);
    engine.run[name](at, x.length);
    assert.ok(difference(engine.read(at, x.length), [...x].map(formula)) < 5e-7, name);
    const far = engine.place([-300, 300, -1e30, 1e30, 0]);
    engine.run[name](far, 5);
    const limits = [0, 300, 0, Math.fround(1e30), 0];
    assert.ok(
      limits.every((limit, i) => Math.abs(engine.read(far, 5)[i] - limit) < 1e-6),
      name,
    );
  }
});

kernels('a gate, a sum with factors and turned pairs, none of them four numbers wide', (engine) => {
  const [rows, cols] = [2, 5];
  const [a, b, gamma] = [numbers(rows * cols), numbers(rows * cols, 2), numbers(cols, 3)];
  const y = engine.room(rows * cols);
  engine.run.gated(engine.place(a), engine.place(b), cols, y, rows, cols);
  const silu = [...a].map((value, i) => (value / (1 + Math.exp(-value))) * b[i]);
  assert.ok(difference(engine.read(y, rows * cols), silu) < 1e-6);
  const x = engine.place(a);
  engine.run.add(x, engine.place(b), engine.place(gamma), rows, cols);
  assert.ok(
    difference(
      engine.read(x, 10),
      [...a].map((value, i) => value + b[i] * gamma[i % cols]),
    ) < 1e-6,
  );
  for (const [adjacent, turned] of /** @type {[number, number[]][]} */ ([
    [0, [-3, -4, 1, 2]],
    [1, [-2, 1, -4, 3]],
  ])) {
    const pairs = engine.place([1, 2, 3, 4]);
    engine.run.rotate(pairs, engine.place([0, 0]), engine.place([1, 1]), 1, 2, adjacent); // by a quarter of a circle
    assert.deepEqual([...engine.read(pairs, 4)], turned);
  }
});

kernels('room grows with what is placed, is given back, and is refused in a sentence', (engine) => {
  const before = engine.top;
  const big = engine.within(() => engine.read(engine.place(new Float32Array(1 << 20).fill(7)), 1 << 20));
  assert.equal(big[(1 << 20) - 1], 7);
  assert.equal(engine.top, before);
  assert.throws(() => engine.room(2 ** 31), { message: /has not enough memory for this model/ });
  assert.throws(() => engine.within(() => assert.fail('within')), { message: 'within' });
  assert.equal(engine.top, before);
});

kernels('weights of attention are kept as the nearest fp16, a tie as the even one', (engine) => {
  const step = 2 ** -24; // between the smallest numbers of fp16
  const x = [0, 1, 0.5, 1 / 3, 1 + 2 ** -11, 0.3 * step, 0.5 * step, 1.5 * step, 2.5 * step, 2 ** -14, 1e-5];
  const y = engine.room(x.length);
  engine.run.halves(engine.place(x), y, x.length);
  const got = new Uint16Array(engine.memory.buffer, y, x.length);
  const wanted = [0, 0x3c00, 0x3800, 0x3555, 0x3c00, 0, 0, 2, 2, 0x0400, 168];
  assert.deepEqual([...got], wanted);
});

kernels('what tokens say through a head is measured by its square, v G v', (engine) => {
  const [heads, tokens, dim] = [2, 5, 3];
  const v = numbers(tokens * heads * dim);
  const grams = [numbers(dim * dim, 3), numbers(dim * dim, 4)];
  const at = engine.room(heads * 8 * dim);
  grams.forEach((gram, h) => engine.run.pack(engine.place(gram), dim, 1, at + 4 * h * 8 * dim, dim, dim));
  const [turned, squares] = [engine.room(tokens * dim), engine.room(heads * tokens)];
  engine.run.valueSquares(0, heads, turned, engine.place(v), heads * dim, at, squares, tokens, dim);
  const wanted = grams.flatMap((gram, h) =>
    Array.from({ length: tokens }, (_, j) => {
      const own = v.subarray((j * heads + h) * dim, (j * heads + h + 1) * dim);
      return own.reduce(
        (sum, a, row) => sum + own.reduce((part, b, col) => part + a * gram[row * dim + col] * b, 0),
        0,
      );
    }),
  );
  assert.ok(difference(engine.read(squares, heads * tokens), wanted) < 1e-6);
});

/** The gradient of a sum of outputs, each with its weight, by finite differences in doubles. @param {(x: number[]) => number[]} of @param {number[]} x @param {ArrayLike<number>} weights */
function finite(of, x, weights) {
  const sum = (/** @type {number[]} */ at) => of(at).reduce((all, y, i) => all + y * weights[i], 0);
  return x.map((_, i) => {
    const [one, other] = [1e-5, -1e-5].map((by) => sum(x.map((value, j) => (i === j ? value + by : value))));
    return (one - other) / 2e-5;
  });
}

for (const cols of [1, 2, 3, 4, 7, 12]) {
  kernels(`gradients through norms and softmax of rows of ${cols} numbers`, (engine) => {
    const rows = 3;
    const [x, g, gain] = [numbers(rows * cols), numbers(rows * cols, 6), numbers(cols, 4)];
    const byRow = (/** @type {(x: number[]) => number[]} */ of) =>
      [0, 1, 2].flatMap((i) => {
        const [own, weights] = [x, g].map((all) => [...all.subarray(i * cols, (i + 1) * cols)]);
        return finite(of, own, weights);
      });
    for (const centred of [0, 1]) {
      const normed = (/** @type {number[]} */ row) => {
        const mean = centred ? row.reduce((a, b) => a + b) / cols : 0;
        const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / cols;
        return row.map((value, j) => ((value - mean) / Math.sqrt(variance + 0.1)) * gain[j]);
      };
      const at = engine.place(g);
      engine.run.normBack(engine.place(x), at, engine.place(gain), rows, cols, 0.1, centred);
      const [got, wanted] = [engine.read(at, rows * cols), byRow(normed)];
      assert.ok(got.every((value, i) => Math.abs(value - wanted[i]) < 2e-6 * Math.max(...g.map(Math.abs))));
    }
    const softmax = (/** @type {number[]} */ row) => {
      const powers = row.map((value) => Math.exp(value - Math.max(...row)));
      return powers.map((power) => power / powers.reduce((a, b) => a + b));
    };
    const weights = [0, 1, 2].flatMap((i) => softmax([...x.subarray(i * cols, (i + 1) * cols)]));
    const at = engine.place(g);
    engine.run.softmaxBack(engine.place(weights), at, rows, cols);
    const [got, wanted] = [engine.read(at, rows * cols), byRow(softmax)];
    assert.ok(got.every((value, i) => Math.abs(value - wanted[i]) < 1e-6));
  });
}

kernels(
  'gradients through activations and a gate, from where they are 0 to where they are the identity',
  (engine) => {
    const x = Array.from({ length: 101 }, (_, i) => (i - 50) / 10);
    const g = numbers(x.length, 8);
    for (const [name, formula] of ACTIVATIONS) {
      const at = engine.place(g);
      engine.run[/** @type {'geluBack'} */ (`${name}Back`)](engine.place(x), at, x.length);
      const wanted = finite((values) => values.map(formula), x, g);
      assert.ok(difference(engine.read(at, x.length), wanted) < 1e-6, name);
    }
    const [rows, cols, stride] = [2, 5, 7];
    const [a, b, own] = [numbers(rows * stride), numbers(rows * stride, 2), numbers(rows * cols, 3)];
    const [gate, value] = [engine.place(a), engine.place(b)];
    engine.run.gatedBack(gate, value, stride, engine.place(own), rows, cols);
    for (let i = 0; i < rows * stride; i++) {
      const [row, col] = [Math.floor(i / stride), i % stride];
      const [gotA, gotB] = [gate, value].map((at) => engine.view(at, rows * stride)[i]);
      if (col >= cols)
        assert.deepEqual([gotA, gotB], [a[i], b[i]]); // what lies between the rows
      else {
        const silu = (/** @type {number[]} */ [one, other]) => [(one / (1 + Math.exp(-one))) * other];
        const [wantedA, wantedB] = finite(silu, [a[i], b[i]], [own[row * cols + col]]);
        assert.ok(Math.abs(gotA - wantedA) < 4e-6 && Math.abs(gotB - wantedB) < 4e-6);
      }
    }
  },
);

for (const [rows, cols] of [
  [1, 1],
  [3, 5],
  [8, 8],
  [17, 3],
])
  kernels(`a matrix of ${rows} x ${cols} out of its panels, and turned`, (engine) => {
    const w = numbers(rows * cols);
    const at = engine.place(w);
    assert.deepEqual(engine.unpacked(engine.placeMatrix(w, rows, cols)), w);
    const turned = engine.read(engine.transposed(at, rows, cols), rows * cols);
    assert.ok(turned.every((value, i) => value === w[(i % rows) * cols + Math.floor(i / rows)]));
  });

test('relaxed kernels run where the browser knows them, and round a product and its sum once', async () => {
  const [plain, relaxed] = await machines();
  assert.deepEqual([plain.isRelaxed, relaxed.isRelaxed], [false, true]);
  const a = 1 + 2 ** -12; // a a - 1 = 2^-11 + 2^-24, whose last bit does not fit beside 1
  const [once, twice] = [relaxed, plain].map((engine) => {
    const { panels } = engine.placeMatrix(Float32Array.of(a), 1, 1);
    const y = engine.room(1);
    engine.run.product(engine.place([a]), 1, panels, engine.place([-1]), y, 1, 1, 1, 1);
    return engine.read(y, 1)[0];
  });
  assert.equal(twice, 2 ** -11);
  assert.equal(once, 2 ** -11 + 2 ** -24);
});
