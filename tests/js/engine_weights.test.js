// Weights from a safetensors file: read by ranges, in three types, and refused in a sentence where the file is not what it has to be.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadFile, reader, Weights } from '../../vit_viz/browser/weights.js';

/** @param {unknown} header @param {Uint8Array} numbers @param {number} [length] that the file claims its header to have */
function file(header, numbers = new Uint8Array(0), length) {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const first = Buffer.alloc(8);
  first.writeBigUInt64LE(BigInt(length ?? text.length));
  const all = Buffer.concat([first, text, numbers]);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}

const F32 = { dtype: 'F32', shape: [3], data_offsets: [0, 12] };
const F16 = { dtype: 'F16', shape: [1, 2], data_offsets: [12, 16] };
const I8 = { dtype: 'I8', shape: [2, 3], data_offsets: [16, 22] };
const SCALES = { dtype: 'F32', shape: [2], data_offsets: [22, 30] };
const NUMBERS = new Uint8Array([
  ...new Uint8Array(Float32Array.of(1.5, -2, 1e-20).buffer),
  ...new Uint8Array(Uint16Array.of(0x3c00, 0xc500).buffer), // 1 and -5
  ...new Uint8Array(Int8Array.of(-127, 0, 127, 1, 2, 3).buffer),
  ...new Uint8Array(Float32Array.of(0.5, 2).buffer),
]);
const GOOD = { b: F16, a: F32, w: I8, 'w.scale': SCALES, __metadata__: { config: '{}' } };

/** @param {ArrayBuffer} bytes */
async function contents(bytes) {
  /** @type {Record<string, number[]>} */
  const all = {};
  for await (const { name, numbers } of (await Weights.open(reader(bytes))).tensors())
    all[name] = [...numbers];
  return all;
}

test('three types of numbers, scales applied to their rows', async () => {
  assert.deepEqual(await contents(file(GOOD, NUMBERS)), {
    a: [1.5, -2, Math.fround(1e-20)],
    b: [1, -5],
    w: [-63.5, 0, 63.5, 2, 4, 6],
  });
  const weights = await Weights.open(reader(file(GOOD, NUMBERS)));
  assert.deepEqual([...weights.shapes()].map(([name, shape]) => `${name} ${shape}`).sort(), [
    'a 3',
    'b 1,2',
    'w 2,3',
  ]);
  assert.deepEqual(weights.metadata, { config: '{}' });
  /** @type {number[][]} */
  const told = [];
  for await (const one of weights.tensors((...progress) => told.push(progress)))
    assert.ok(one.numbers.length);
  assert.deepEqual(told, [
    [20, 30],
    [24, 30],
    [30, 30],
  ]);
});

test('a tensor of its own called scale is no scale, and one without numbers is read', async () => {
  const header = { 'ls.scale': F32, empty: { dtype: 'F32', shape: [0, 4], data_offsets: [12, 12] } };
  assert.deepEqual(await contents(file(header, NUMBERS.subarray(0, 12))), {
    'ls.scale': [1.5, -2, Math.fround(1e-20)],
    empty: [],
  });
});

test('a tensor of a type that is not read is listed: whoever needs it hears of it', async () => {
  const ids = { dtype: 'I64', shape: [1, 2], data_offsets: [12, 28] };
  const bytes = file({ a: F32, position_ids: ids }, NUMBERS.subarray(0, 28));
  assert.deepEqual([...(await Weights.open(reader(bytes))).shapes().keys()], ['a', 'position_ids']);
  await assert.rejects(contents(bytes), /"position_ids" is of type I64, but the engine reads/);
});

const change = (/** @type {string} */ name, /** @type {object} */ fields) =>
  file({ ...GOOD, [name]: { .../** @type {any} */ (GOOD)[name], ...fields } }, NUMBERS);

/** @type {Record<string, [ArrayBuffer, RegExp]>} */
const BAD = {
  empty: [new ArrayBuffer(0), /ends before its header/],
  'of seven bytes': [new ArrayBuffer(7), /ends before its header/],
  'with a header of 0 bytes': [file('', NUMBERS), /header would have 0 bytes/],
  'with a header that is too large': [
    file('{}', NUMBERS, 2 ** 50),
    /header would have 1125899906842624 bytes/,
  ],
  'cut short in its header': [file('{}', NUMBERS, 100), /cut short/],
  'whose header is no JSON': [file('{"a":', NUMBERS), /header is no JSON\./],
  'whose header is no text': [file('{"\x80"}', NUMBERS), /header is no JSON/],
  'whose header is a list': [file('[1]', NUMBERS), /no JSON object/],
  'with metadata that are no texts': [file({ __metadata__: { config: 1 } }), /metadata that are no texts/],
  'with an entry that is a number': [file({ a: 1 }, NUMBERS), /"a".* no shape or no place/],
  'with a negative side': [change('a', { shape: [-3] }), /"a".* no shape/],
  'with a side that is no whole number': [change('a', { shape: [1.5] }), /"a".* no shape/],
  'with one place': [change('a', { data_offsets: [0] }), /"a".* no place/],
  'of a type that is not read': [change('a', { dtype: 'U32' }), /"a" is of type U32/],
  'of a type that nobody knows': [change('a', { dtype: 'long' }), /"a".* shape \[3\]/],
  'with too few bytes for a shape': [change('a', { shape: [4] }), /"a".* shape \[4\]/],
  'with places that run backwards': [change('a', { data_offsets: [12, 0] }), /"a".* shape/],
  'with a place before the numbers': [change('a', { data_offsets: [-12, 0] }), /"a".* shape/],
  'with bytes in common': [
    change('b', { data_offsets: [8, 12] }),
    /does not begin where the one before ends/,
  ],
  'with a hole': [file({ a: F32, w: I8, 'w.scale': SCALES }, NUMBERS), /"w".* does not begin/],
  'with int8 without scales': [file({ a: F32, b: F16, w: I8 }, NUMBERS), /"w".* no scale for each row/],
  'with a scale too few': [
    file({ ...GOOD, 'w.scale': { ...SCALES, shape: [1], data_offsets: [22, 26] } }, NUMBERS),
    /"w".* no scale for each row/,
  ],
  'cut short in its numbers': [file(GOOD, NUMBERS.subarray(0, 29)), /cut short/],
};

for (const [kind, [bytes, sentence]] of Object.entries(BAD)) {
  test(`a file ${kind} is refused in a sentence`, async () => {
    await assert.rejects(contents(bytes), (error) => {
      assert.ok(error instanceof BadFile);
      assert.match(error.message, sentence);
      assert.match(error.message, /^[A-Z].*\.$/);
      return true;
    });
  });
}

test('an address is read by ranges; of a server that knows none, once; one that refuses or is away is reported', async () => {
  const bytes = file(GOOD, NUMBERS);
  /** @type {(string | null)[]} */
  const ranges = [];
  /** A server that answers with a status, and with a range where that is 206. */
  const server = (/** @type {number} */ status) =>
    /** @type {typeof fetch} */ (
      async (address, about) => {
        assert.equal(address, '/model');
        const range = new Headers(about?.headers).get('range');
        ranges.push(range);
        const [, first, last] = /^bytes=([0-9]+)-([0-9]+)$/.exec(range ?? '') ?? [];
        return new Response(status === 206 ? bytes.slice(+first, +last + 1) : bytes, { status });
      }
    );
  const part = (/** @type {number} */ start, /** @type {number} */ end) =>
    new Uint8Array(bytes.slice(start, end));
  const read = reader('/model', server(206));
  assert.deepEqual(new Uint8Array(await read(2, 5)), part(2, 5));
  assert.deepEqual(new Uint8Array(await read(7, 8)), part(7, 8));
  assert.deepEqual(ranges.splice(0), ['bytes=2-4', 'bytes=7-7']);
  const once = reader('/model', server(200));
  assert.deepEqual(new Uint8Array(await once(2, 5)), part(2, 5));
  assert.deepEqual(new Uint8Array(await once(4, 9)), part(4, 9));
  assert.equal(ranges.length, 1);
  await assert.rejects(reader('/model', server(404))(0, 8), {
    message: 'The weights could not be fetched: the server answered 404.',
  });
  const away = reader('/model', () => Promise.reject(new TypeError('Failed to fetch')));
  await assert.rejects(away(0, 8), {
    message: 'The weights could not be fetched: the server cannot be reached.',
  });
});
