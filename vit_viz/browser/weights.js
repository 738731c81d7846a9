// Weights of a model, read from a safetensors file by ranges: float32, float16, bfloat16, or int8 with a scale for each row.
//
// A file begins with the length of its header (8 bytes, little-endian), then the header, JSON: for each tensor its type, its shape and
// where its bytes lie behind the header. Whatever is wrong with a file is said in one sentence, before anything is made of its numbers.
// Source: https://github.com/huggingface/safetensors, "Format".

import { unpackHalf } from '../explorer/attention.js';

/**
 * @typedef {(start: number, end: number) => Promise<ArrayBuffer>} Read the bytes of a file from `start` up to, not including, `end`;
 *     fewer where the file ends before
 * @typedef {{packed: string | Uint8Array<ArrayBuffer>, bytes: number}} Packed a file that was compressed with zlib: its address or its
 *     bytes, and how many these are
 * @typedef {{name: string, type: string, shape: number[], start: number, end: number}} Entry start and end: in bytes of the file
 */

const MOST_HEADER_BYTES = 16 * 2 ** 20;
const CHUNK_BYTES = 4 * 2 ** 20; // neighbours that are read together, so that small tensors do not cost a request each
const READ = ['F32', 'F16', 'BF16', 'I8'];

/** Ends the name of the scales of an int8 tensor, one for each row. */
const SCALES = '.scale';

/** The file is not what it has to be. */
export class BadFile extends Error {}

/**
 * How a browser reads a file by ranges.
 * @param {string | ArrayBuffer | Blob} file its address, or its bytes where they are there, or a file of the visitor @param {typeof fetch} [request]
 * @returns {Read}
 */
export function reader(file, request = (...about) => fetch(...about)) {
  if (file instanceof Blob) return (start, end) => partOf(file, start, end);
  if (typeof file !== 'string') return async (start, end) => file.slice(start, end);
  /** @type {ArrayBuffer | null} */
  let whole = null;
  return async (start, end) => {
    if (whole) return whole.slice(start, end);
    const range = { headers: { Range: `bytes=${start}-${end - 1}` } };
    const answer = await request(file, range).catch(() => {
      throw new Error('The weights could not be fetched: the server cannot be reached.');
    });
    if (!answer.ok)
      throw new Error(`The weights could not be fetched: the server answered ${answer.status}.`);
    const bytes = await answer.arrayBuffer();
    if (answer.status === 206) return bytes;
    whole = bytes; // this server knows no ranges and has sent all of it
    return bytes.slice(start, end);
  };
}

/**
 * What a file was before it was compressed.
 * @param {Packed} file @param {(read: number, all: number) => void} progress of bytes @returns {Promise<ArrayBuffer>}
 */
export async function unpacked({ packed, bytes }, progress) {
  const body = typeof packed === 'string' ? await bodyOf(packed) : new Blob([packed]).stream();
  const inflating = new DecompressionStream('deflate');
  const whole = new Response(inflating.readable).arrayBuffer();
  const damaged = () => {
    throw new BadFile('The file of this model is damaged or cut short; please reload the page.');
  };
  whole.catch(() => {}); // what goes wrong is said of the part with which it does
  const [reading, writing] = [body.getReader(), inflating.writable.getWriter()];
  const next = () => reading.read().catch(damaged);
  let count = 0;
  try {
    for (let part = await next(); !part.done; part = await next()) {
      await writing.write(part.value).catch(damaged);
      progress((count += part.value.length), bytes);
    }
    await writing.close().catch(damaged);
    return await whole.catch(damaged);
  } catch (error) {
    reading.cancel().catch(() => {}); // nobody waits for the rest
    throw error;
  }
}

/** @param {string} address @returns {Promise<ReadableStream<Uint8Array<ArrayBuffer>>>} */
async function bodyOf(address) {
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok || !answer.body)
    throw new Error(
      `The model could not be fetched: ${answer ? `the server answered ${answer.status}` : 'the server cannot be reached'}.`,
    );
  return answer.body;
}

/** @param {Blob} file @param {number} start @param {number} end */
async function partOf(file, start, end) {
  try {
    return await file.slice(start, end).arrayBuffer();
  } catch {
    throw new BadFile('The file can no longer be read: it was changed or taken away; please open it again.');
  }
}

/** The tensors of a file and what it says of itself. */
export class Weights {
  /** @param {Read} read @param {Map<string, Entry>} entries @param {Record<string, string>} metadata */
  constructor(read, entries, metadata) {
    this.read = read;
    this.entries = entries;
    this.metadata = metadata;
  }

  /** Reads the header alone. @param {Read} read @returns {Promise<Weights>} */
  static async open(read) {
    const first = await read(0, 8);
    if (first.byteLength < 8) throw new BadFile('This is no safetensors file: it ends before its header.');
    const length = Number(new DataView(first).getBigUint64(0, true));
    if (length < 2 || length > MOST_HEADER_BYTES)
      throw new BadFile(`This is no safetensors file: its header would have ${length} bytes.`);
    const header = parsed(await exactly(read, 8, 8 + length));
    const { __metadata__: metadata = {}, ...rest } = header;
    if (!isObject(metadata) || Object.values(metadata).some((value) => typeof value !== 'string'))
      throw new BadFile('This safetensors file has metadata that are no texts.');
    const entries = Object.entries(rest).map(([name, about]) => entry(name, about, 8 + length));
    checkPlaces(entries, 8 + length);
    const file = new Weights(read, new Map(entries.map((one) => [one.name, one])), metadata);
    file.checkScales();
    return file;
  }

  /** Names and shapes of the tensors, scales left out. */
  shapes() {
    const own = [...this.entries.values()].filter(({ name }) => !this.isScale(name));
    return new Map(own.map(({ name, shape }) => [name, shape]));
  }

  isScale(/** @type {string} */ name) {
    return name.endsWith(SCALES) && this.entries.get(name.slice(0, -SCALES.length))?.type === 'I8';
  }

  checkScales() {
    for (const { name, type, shape } of this.entries.values()) {
      if (type !== 'I8') continue;
      const scales = this.entries.get(name + SCALES);
      if (!scales || scales.type !== 'F32' || scales.shape.length !== 1 || scales.shape[0] !== shape[0])
        throw new BadFile(`The int8 tensor "${name}" of this safetensors file has no scale for each row.`);
    }
  }

  /**
   * All tensors as float32, in the order of the file, scales applied.
   * @param {(read: number, all: number) => void} [progress] told of bytes
   * @returns {AsyncGenerator<{name: string, shape: number[], numbers: Float32Array}>}
   */
  async *tensors(progress = () => {}) {
    const ordered = [...this.entries.values()].sort((a, b) => a.start - b.start || a.end - b.end);
    const other = ordered.find(({ type }) => !READ.includes(type));
    if (other)
      throw new BadFile(
        `The tensor "${other.name}" is of type ${other.type}, but the engine reads F32, F16, BF16 and I8.`,
      );
    const scales = new Map();
    for await (const { one, bytes } of this.chunks(ordered.filter(({ name }) => this.isScale(name))))
      scales.set(one.name, new Float32Array(bytes));
    const all = ordered.reduce((sum, { start, end }) => sum + end - start, 0);
    let read = scales.size ? [...scales.values()].reduce((sum, { byteLength }) => sum + byteLength, 0) : 0;
    for await (const { one, bytes } of this.chunks(ordered.filter(({ name }) => !this.isScale(name)))) {
      const numbers = floats(one, bytes, scales.get(one.name + SCALES));
      progress((read += bytes.byteLength), all);
      yield { name: one.name, shape: one.shape, numbers };
    }
  }

  /** The bytes of some entries, those that lie side by side read together. @param {Entry[]} entries ordered by their start */
  async *chunks(entries) {
    for (let i = 0; i < entries.length;) {
      const { start } = entries[i];
      let next = i + 1;
      while (
        next < entries.length &&
        entries[next].start === entries[next - 1].end &&
        entries[next].end - start <= CHUNK_BYTES
      )
        next++;
      const bytes = await exactly(this.read, start, entries[next - 1].end);
      for (; i < next; i++)
        yield { one: entries[i], bytes: bytes.slice(entries[i].start - start, entries[i].end - start) };
    }
  }
}

/** @param {Read} read @param {number} start @param {number} end */
async function exactly(read, start, end) {
  if (start === end) return new ArrayBuffer(0);
  const bytes = await read(start, end);
  if (bytes.byteLength !== end - start)
    throw new BadFile(`This safetensors file is cut short: it has no bytes from ${start} to ${end}.`);
  return bytes;
}

function isObject(/** @type {unknown} */ value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns {Record<string, any>} */
function parsed(/** @type {ArrayBuffer} */ bytes) {
  let header;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new BadFile('This is no safetensors file: its header is no JSON.');
  }
  if (!isObject(header)) throw new BadFile('This is no safetensors file: its header is no JSON object.');
  return header;
}

/** @param {string} name @param {any} about @param {number} base where the numbers begin @returns {Entry} */
function entry(name, about, base) {
  const { dtype: type, shape, data_offsets: places } = isObject(about) ? about : /** @type {any} */ ({});
  const isCount = (/** @type {unknown} */ value) => Number.isSafeInteger(value) && Number(value) >= 0;
  if (!Array.isArray(shape) || !shape.every(isCount) || !Array.isArray(places) || places.length !== 2)
    throw new BadFile(`The entry "${name}" of this safetensors file has no shape or no place.`);
  const [start, end] = places;
  const count = shape.reduce((product, side) => product * side, 1);
  const bits = type === 'BOOL' ? 8 : Number(/^[A-Z]+(\d+)/.exec(String(type))?.[1]); // F8_E4M3 has 8, like I8 and U8
  if (!isCount(start) || !isCount(end) || end - start !== Math.ceil((count * bits) / 8))
    throw new BadFile(
      `The tensor "${name}" of this safetensors file has not as many bytes as its shape [${shape}] needs.`,
    );
  return { name, type, shape, start: base + start, end: base + end };
}

/** Tensors lie side by side, without holes and without bytes in common. @param {Entry[]} entries @param {number} base */
function checkPlaces(entries, base) {
  let at = base;
  for (const { name, start, end } of [...entries].sort((a, b) => a.start - b.start || a.end - b.end)) {
    if (start !== at)
      throw new BadFile(
        `The tensor "${name}" of this safetensors file does not begin where the one before ends.`,
      );
    at = end;
  }
}

/** @param {Entry} entry @param {ArrayBuffer} bytes @param {Float32Array | undefined} scales of the rows, for int8 */
function floats({ type, shape }, bytes, scales) {
  if (type === 'F32') return new Float32Array(bytes);
  if (type === 'F16') return unpackHalf(bytes, 0, bytes.byteLength / 2);
  if (type === 'BF16') return fromBfloat(new Uint16Array(bytes));
  const steps = new Int8Array(bytes);
  const numbers = new Float32Array(steps.length);
  const width = steps.length / (shape[0] || 1);
  for (let row = 0, i = 0; row < shape[0]; row++) {
    const scale = /** @type {Float32Array} */ (scales)[row];
    for (const end = i + width; i < end; i++) numbers[i] = steps[i] * scale;
  }
  return numbers;
}

/** Numbers of which each is the upper half of a float32. @param {Uint16Array} halves */
function fromBfloat(halves) {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

/** JSON of a file's metadata; undefined where there is none. */
export function jsonOf(/** @type {string | undefined} */ text) {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    throw new BadFile('What this file says of its model is no JSON.');
  }
}
