// An answer on its way from Python (vit_viz/session/serialization.py): raw numbers behind a header of JSON.

/** Types of numbers as safetensors calls them. @type {Record<string, any>} */
const ARRAYS = {
  BOOL: Uint8Array,
  U8: Uint8Array,
  I8: Int8Array,
  I16: Int16Array,
  U16: Uint16Array,
  I32: Int32Array,
  U32: Uint32Array,
  I64: BigInt64Array,
  F32: Float32Array,
  F64: Float64Array,
};

/**
 * Reads an answer: its arrays, and beside them what it says of itself.
 * @param {ArrayBuffer} buffer of the form safetensors
 * @returns {{arrays: Record<string, {shape: number[], data: any}>} & Record<string, any>}
 */
export function unpacked(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__: beside, ...found } = JSON.parse(
    new TextDecoder().decode(new Uint8Array(buffer, 8, length)),
  );
  const arrays = Object.entries(found).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [from, to],
      },
    ]) => {
      const bytes = buffer.slice(8 + length + from, 8 + length + to); // a copy begins where its numbers may begin
      return [name, { shape, data: new ARRAYS[dtype](bytes) }];
    },
  );
  return { ...JSON.parse(beside.vit_viz), arrays: Object.fromEntries(arrays) };
}
