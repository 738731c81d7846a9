// Answers as files of numbers: CSV and NPZ, with the columns and arrays that the app's files have (vit_viz/figures/export.py).

/** @import { Answer, Numbers } from './answers/form.js' */

/**
 * @typedef {{columns: string[], rows: Iterable<any[]>}} Table
 * @typedef {any} Part of an answer: its facts, and its arrays in their places
 */

const MOST_LINES = 2 ** 21; // of a table

/** The type of the answer to a question, as Python calls it; of others a `PatchMap`. @type {Record<string, string>} */
const KINDS = {
  ...{ ablation: 'HeadTable', classes: 'Ranking', decomposition: 'Decomposition', head_names: 'HeadNames' },
  ...{ comparison: 'Explanations', own_part: 'OwnParts' },
  ...{ filter_components: 'FilterComponents', head_tables: 'HeadTables', heads: 'HeadTable', links: 'Links' },
  ...{ layer_similarity: 'StateMatrix', ledger: 'StateMatrix', logit_lens: 'Lens', mosaic: 'HeadMaps' },
  ...{ lesson_attention: 'LessonAttention', lesson_block: 'LessonBlock', lesson_depth: 'LessonDepth' },
  ...{ lesson_tokens: 'LessonTokens', lesson_what_if: 'WhatIf' },
  ...{ patches: 'PatchPlaces', position_components: 'PositionComponents', position_distance: 'Curve' },
  ...{ positions: 'TokenMatrix', resampling: 'Resampling', rotary_similarity: 'RotarySimilarity' },
  ...{ segments: 'Segments', sequence: 'ReceivedImage', sink_kinds: 'SinkKinds', token_change: 'TokenMaps' },
  ...{ token_components: 'TokenComponents', token_norms: 'TokenNorms', token_similarity: 'TokenMaps' },
  ...{ trust: 'Trust', without_patches: 'WithoutPatches' },
};

/** The same axes for several arrays. @param {string[]} names @param {string[]} axes */
function axesOf(names, ...axes) {
  return Object.fromEntries(names.map((name) => [name, axes]));
}

/** What the axes of arrays count. @type {Record<string, Record<string, string[]>>} */
const AXES = {
  FilterComponents: { values: ['component', 'channel', 'pixel row', 'pixel col'], shares: ['component'] },
  HeadMaps: { values: ['layer', 'head', 'row', 'col'] },
  HeadTable: { values: ['layer', 'head'] },
  LessonAttention: {
    ...axesOf(['query', 'output'], 'number'),
    ...axesOf(['keys', 'values'], 'token', 'number'),
    ...axesOf(['products', 'scores', 'weights'], 'token'),
  },
  LessonBlock: {
    weights: ['head', 'token'],
    ...axesOf(['outputs', 'contributions'], 'head', 'number'),
    ...axesOf(['rest', 'before', 'attended', 'middle', 'thought', 'after', 'hidden', 'activated'], 'number'),
  },
  LessonDepth: {
    ...{ stream: ['state', 'number'], alike: ['state', 'row', 'col'], tops: ['state', 'class'] },
    ...{ answer_looks: ['layer', 'token'], agreement: ['state'] },
  },
  LessonTokens: {
    ...{ pixels: ['channel', 'pixel row', 'pixel col'], flat: ['pixel'], places: ['row', 'col'] },
    ...axesOf(['embedded', 'position', 'token'], 'number'),
    prefix: ['token', 'number'],
  },
  Lens: { top: ['state', 'row', 'col'], top_probability: ['state', 'row', 'col'] },
  OwnParts: { mean: ['row', 'col'] },
  PatchMap: { values: ['row', 'col'] },
  PositionComponents: { shares: ['component'] },
  RandomOrders: { fractions: ['step'], deletion: ['order', 'step'], insertion: ['order', 'step'] },
  Resampling: { overall: ['variant'] },
  RotarySimilarity: {
    periods: ['period'],
    rows: ['period', 'rows apart'],
    cols: ['period', 'columns apart'],
  },
  Segments: { labels: ['row', 'col'], strength: ['row', 'col'], overlap: ['segment'] },
  TokenComponents: { explained: ['state', 'component'], overall: ['component'] },
  TokenNorms: { thresholds: ['state'], received: ['layer'], fair: ['layer'] },
};

/** Types that answers have within answers, by a field that no other has. */
const WITHIN = {
  ...{ x_label: 'Curve', scores: 'Ranking', named: 'TokenMaps' },
  ...{ deletion_auc: 'Faithfulness', fractions: 'RandomOrders' },
};
const WITH_SINGLE_NUMBERS = ['Trust', 'Faithfulness'];
/** Types of which one single number stands in their table. @type {Record<string, string>} */
const SINGLE_NUMBER = { LessonAttention: 'scale' };

/** The type of a part. @param {Part} part @param {string} [question] whose answer it is */
export function kindOf(part, question) {
  // also of one place of "positions"
  if ('class_blind' in part) return 'names' in part ? 'ClassDifference' : 'PatchMap';
  if ('left_out' in part) return 'OtherPatches';
  if (question) return KINDS[question] ?? 'PatchMap';
  const found = Object.entries(WITHIN).find(([field]) => field in part);
  return found ? found[1] : 'unit' in part ? 'HeadTable' : '';
}

/** An answer as one part. @param {Answer} answer @returns {Part} */
export function wholeOf({ facts, arrays, fields }) {
  const whole = structuredClone(facts);
  for (const [name, array] of Object.entries(arrays)) {
    const path = name.split('.');
    const last = /** @type {string} */ (path.pop());
    let at = whole;
    for (const step of path) at = at[step] ??= {};
    at[last] = array;
  }
  return Object.fromEntries(fields.map((name) => [name, whole[name]]));
}

/** @param {any} part @returns {part is Numbers} */
export const isArray = (part) => ArrayBuffer.isView(part?.data);

/** The numbers of an array, each behind its places. @param {Numbers} array @returns {Iterable<any[]>} */
function* placed({ shape, data, isFlags }) {
  const place = shape.map(() => 0);
  for (const value of data) {
    yield [...place, isFlags ? (value ? 'True' : 'False') : value];
    for (let axis = shape.length - 1; axis >= 0 && ++place[axis] === shape[axis]; axis--) place[axis] = 0;
  }
}

/** Lines for every head. @param {number[]} shape @param {(at: number, layer: number, head: number) => any[]} lineOf */
const ofHeads = ([layers, heads], lineOf) =>
  Array.from({ length: layers * heads }, (_, at) => {
    const place = [Math.floor(at / heads), at % heads];
    return [...place, ...lineOf(at, place[0], place[1])];
  });

/** How types with a table of their own are one, as `to_table` of theirs. @type {Record<string, (part: Part) => Table>} */
const TABLES = {
  PatchMap: ({ values }) => ({ columns: ['row', 'col', 'value'], rows: placed(values) }),
  ClassDifference: (part) => TABLES.PatchMap(part),
  Curve: ({ x, y, band }) => {
    const columns = { x, y, ...band };
    const rows = Array.from(x.data, (_, i) => Object.values(columns).map(({ data }) => data[i]));
    return { columns: Object.keys(columns), rows };
  },
  Ranking: ({ names, indices, scores }) => ({
    columns: ['name', 'index', 'score'],
    rows: names.map((/** @type {string} */ name, /** @type {number} */ i) => [
      name,
      indices?.[i] ?? '',
      scores.data[i],
    ]),
  }),
  Links: (part) => TABLES.Ranking(part),
  StateMatrix: ({ values, names, others }) => ({
    columns: ['state', 'other', 'value'],
    rows: Array.from(placed(values), ([row, col, value]) => [names[row], others[col], value]),
  }),
  TokenMatrix: ({ values, extra = {} }) => ({
    columns: ['position', 'other', 'value'],
    rows: chained(
      placed(values),
      Object.entries(extra).flatMap(([name, { data }]) =>
        Array.from(data, (value, key) => [name, key, value]),
      ),
    ),
  }),
  TokenMaps: ({ values, named }) => ({
    columns: [...['state', 'row', 'col', 'channel'].slice(0, values.shape.length), 'value'],
    rows: chained(
      placed(values),
      Object.entries(named).flatMap(([name, array]) =>
        Array.from(placed(/** @type {Numbers} */ (array)), ([state, ...rest]) => [state, name, '', ...rest]),
      ),
    ),
  }),
  WithoutPatches: ({ top: { names, indices, scores }, before }) => ({
    columns: ['name', 'index', 'before', 'now'],
    rows: names.map((/** @type {string} */ name, /** @type {number} */ i) => [
      ...[name, indices?.[i] ?? '', before.data[i], scores.data[i]],
    ]),
  }),
  WhatIf: ({ words, before, after }) => ({
    columns: ['name', 'before', 'after'],
    rows: words.map((/** @type {string} */ name, /** @type {number} */ i) => [
      ...[name, before.data[i], after.data[i]],
    ]),
  }),
  OtherPatches: ({ grid, tokens, left_out: left, pairs }) => ({
    columns: ['rows', 'cols', 'tokens', 'left out', 'pairs'],
    rows: [[...grid, tokens, left, pairs]],
  }),
  PatchPlaces: ({ values }) => {
    const { shape: [, cols], data } = values; // prettier-ignore
    const rows = Array.from({ length: data.length / 4 }, (_, i) => [
      ...[Math.floor(i / cols), i % cols, ...data.slice(4 * i, 4 * i + 4)],
    ]);
    return { columns: ['row', 'col', 'top', 'left', 'bottom', 'right'], rows };
  },
  ReceivedImage: ({ values }) => ({
    columns: [...['pixel_row', 'pixel_col', 'channel'].slice(0, values.shape.length), 'value'],
    rows: placed(values),
  }),
  Decomposition: ({ terms, heads, mlps, rest, ...facts }) => {
    const { rest_names: names, layers, prefix, grid: [, cols] } = facts; // prettier-ignore
    const isByHead = terms.shape[1] === heads.shape[1];
    const placeOf = (/** @type {number} */ token) => {
      const patch = token - prefix.length;
      return patch < 0 ? [prefix[token], ''] : [Math.floor(patch / cols), patch % cols];
    };
    const rows = chained(
      names.map((/** @type {string} */ name, /** @type {number} */ i) => [
        name,
        '',
        '',
        '',
        '',
        rest.data[i],
      ]),
      layers.map((/** @type {string} */ name, /** @type {number} */ i) => [
        'MLP',
        name,
        '',
        '',
        '',
        mlps.data[i],
      ]),
      Array.from(placed(heads), ([layer, head, value]) => ['head', layers[layer], head, '', '', value]),
      Array.from(placed(terms), ([layer, head, token, value]) => [
        ...[`from a token by ${isByHead ? 'head' : 'heads'}`, layers[layer], isByHead ? head : ''],
        ...[...placeOf(token), value],
      ]),
    );
    return { columns: ['part', 'layer', 'head', 'row', 'col', 'value'], rows };
  },
  HeadNames: ({ heads, numbers }) => {
    const lists = Object.entries(numbers);
    const lineOf = (/** @type {number} */ at) => [
      ...[heads[at].name, heads[at].side, ...lists.map(([, { data }]) => data[at])],
    ];
    const columns = ['layer', 'head', 'name', 'side', ...lists.map(([name]) => name)];
    return { columns, rows: ofHeads(lists[0][1].shape, lineOf) };
  },
  SinkKinds: ({ kinds, tokens, ...numbers }) => {
    const lists = Object.entries(numbers).filter(([, one]) => isArray(one));
    const columns = ['layer', 'head', 'kind', 'token', ...lists.map(([name]) => name)];
    const rows = ofHeads(lists[0][1].shape, (at, layer, head) => [
      ...[kinds[layer][head], tokens[layer][head], ...lists.map(([, { data }]) => data[at])],
    ]);
    return { columns, rows };
  },
};

/** @param {Iterable<any[]>[]} parts @returns {Iterable<any[]>} */
function* chained(...parts) {
  for (const part of parts) yield* part;
}

/**
 * The parts that stand for themselves, as `leaves_of` of vit_viz/answer.py has them: each with its name and its table.
 * @param {Part} part @param {string} name @param {string} [question] whose answer it is @param {Record<string, string[]>} [fields] those that
 *     are wanted of types, where not all are @returns {[string, Part, string][]} the last: its type; '' of an array or a number
 */
export function leavesOf(part, name, question, fields = {}) {
  const kind = kindOf(part, question);
  if (TABLES[kind]) return [[name, part, kind]];
  return Object.entries(part).flatMap(([key, inner]) => {
    if (fields[kind]?.includes(key) === false) return [];
    const whole = name ? `${name}.${key}` : key;
    if (isArray(inner)) return [[whole, { ...inner, axes: AXES[kind]?.[key] }, '']];
    if (typeof inner === 'number')
      return WITH_SINGLE_NUMBERS.includes(kind) || SINGLE_NUMBER[kind] === key ? [[whole, inner, '']] : [];
    return inner && typeof inner === 'object' ? leavesOf(inner, whole, undefined, fields) : [];
  });
}

/** An answer as lines of numbers, each behind its places; of several arrays the first column names each. @param {Answer} answer @returns {Table} */
export function tableOf(answer) {
  const tables = leavesOf(wholeOf(answer), '', answer.question).map(([name, part, kind]) => {
    if (kind) return { name, ...TABLES[kind](part) };
    if (typeof part === 'number') return { name, columns: ['value'], rows: [[part]] };
    const axes =
      part.axes ?? part.shape.map((/** @type {number} */ _, /** @type {number} */ i) => `axis ${i}`);
    return { name, columns: [...axes, 'value'], rows: placed(part) };
  });
  if (tables.length === 1) return tables[0];
  const columns = [...new Set(tables.flatMap((one) => one.columns))];
  const lines = tables.map(({ name, columns: own, rows }) => {
    const places = columns.map((column) => own.indexOf(column));
    return Array.from(rows, (row) => [name, ...places.map((at) => (at < 0 ? '' : row[at]))]);
  });
  return { columns: ['numbers', ...columns], rows: chained(...lines) };
}

/** What is said of an answer's numbers, a line each. @param {any} facts */
function* factLines(facts) {
  for (const name of ['method', 'caption', 'unit', 'x_label', 'y_label', 'note'])
    if (facts[name]) yield `${name}: ${String(facts[name]).split(/\s+/).join(' ').trim()}`;
  for (const name of ['prefix', 'suffix']) {
    const beside = facts[name];
    if ('class_blind' in facts && beside && Object.keys(beside).length)
      yield `${name}: ${JSON.stringify(beside)}`;
  }
}

/** A number as few digits say it exactly, in the precision that it has. @param {number | bigint | string} value */
function written(value) {
  if (typeof value !== 'number' || Number.isInteger(value) || Math.fround(value) !== value)
    return String(value);
  let digits = 6;
  while (Math.fround(Number(value.toPrecision(digits))) !== value) digits += 1;
  return String(Number(value.toPrecision(digits)));
}

const quoted = (/** @type {string} */ text) =>
  /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** An answer as a table of one number a line. @param {Answer} answer @param {string} record what it says of itself @returns {string} */
export function csvOf(answer, record) {
  const count = Object.values(answer.arrays).reduce((sum, { data }) => sum + data.length, 0);
  if (count > MOST_LINES)
    throw new Error(`As a table this would have ${count} lines; please save it as NPZ.`);
  const { columns, rows } = tableOf(answer);
  const lines = [...factLines(answer.facts), `vit_viz: ${record}`].map((line) => `# ${line}`);
  for (const row of chained([columns], rows))
    lines.push(row.map((/** @type {any} */ cell) => quoted(written(cell))).join(','));
  return `${lines.join('\n')}\n`;
}

/** The arrays of an answer for NumPy, and all else as JSON in the entry "vit_viz". @param {Answer} answer @param {string} record @returns {Promise<Blob>} */
export function npzOf({ question, facts, arrays }, record) {
  const { original_size: original, input_size: input, region } = facts.crop_box ?? {};
  const said = {
    ...{ kind: kindOf(facts, question), ...facts, provenance: JSON.parse(record) },
    ...(original && { crop_box: { original, input, region } }),
  };
  const text = ascii(JSON.stringify(said));
  const letters = Uint32Array.from(text, (letter) => letter.charCodeAt(0));
  const entries = Object.entries(arrays).map(([name, { shape, data, isFlags }]) => {
    const type = isFlags ? '|b1' : /** @type {Record<string, string>} */ (NUMPY)[data.constructor.name];
    return { name, bytes: npy(type, shape, data) };
  });
  return zipped([{ name: 'vit_viz', bytes: npy(`<U${letters.length}`, [], letters) }, ...entries]);
}

/** Types of arrays as NumPy calls them. */
const NUMPY = { Float32Array: '<f4', Float64Array: '<f8', Uint8Array: '|u1', BigInt64Array: '<i8' };

/** Text of which every letter is one of ASCII. @param {string} json */
const ascii = (json) =>
  json.replace(/[\u0080-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** An array in NumPy's format. @param {string} type @param {number[]} shape @param {ArrayBufferView} data */
function npy(type, shape, data) {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const header = `{'descr': '${type}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const length = Math.ceil((header.length + 11) / 64) * 64 - 10;
  const start = `\x93NUMPY\x01\x00${String.fromCharCode(length & 255, length >> 8)}${header.padEnd(length - 1)}\n`;
  const bytes = new Uint8Array(start.length + data.byteLength);
  bytes.set(Uint8Array.from(start, (letter) => letter.charCodeAt(0)));
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), start.length);
  return bytes;
}

/** Entries of an NPZ as a ZIP file; equal ones give equal bytes. @param {{name: string, bytes: Uint8Array<ArrayBuffer>}[]} entries */
async function zipped(entries) {
  const [parts, directory] = [/** @type {BlobPart[]} */ ([]), /** @type {Uint8Array<ArrayBuffer>[]} */ ([])];
  let at = 0;
  for (const { name, bytes } of entries) {
    const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'));
    const packed = new Uint8Array(await new Response(stream).arrayBuffer());
    const file = new TextEncoder().encode(`${name}.npy`);
    // version 2.0, names in UTF-8, deflated, of the first of January 1980
    const about = [20, 0x800, 8, 0, 33].flatMap((value) => [value & 255, value >> 8]);
    const sizes = new Uint8Array(Uint32Array.of(crcOf(bytes), packed.length, bytes.length).buffer);
    const lengths = [file.length & 255, file.length >> 8, 0, 0];
    const local = Uint8Array.of(0x50, 0x4b, 3, 4, ...about, ...sizes, ...lengths, ...file);
    parts.push(local, packed);
    const place = new Uint8Array(Uint32Array.of(at).buffer);
    const central = [20, 0, ...about, ...sizes, ...lengths, ...Array(10).fill(0), ...place, ...file];
    directory.push(Uint8Array.of(0x50, 0x4b, 1, 2, ...central));
    at += local.length + packed.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const ends = new Uint8Array(Uint32Array.of(size, at).buffer);
  const count = [entries.length & 255, entries.length >> 8];
  const end = Uint8Array.of(0x50, 0x4b, 5, 6, 0, 0, 0, 0, ...count, ...count, ...ends, 0, 0);
  return new Blob([...parts, ...directory, end], { type: 'application/x-npz' });
}

/** The checksum of ZIP files. @param {Uint8Array} bytes */
function crcOf(bytes) {
  let crc = -1;
  for (const byte of bytes) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

const CRC = Int32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  return value;
});
