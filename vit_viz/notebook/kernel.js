// The line to a notebook's kernel (vit_viz/notebook/widget.py): layers, each asked for once it is needed, and numbers in fp32.

/**
 * What anywidget gives to a widget: its traits and its line to the kernel.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: unknown) => void} set
 * @property {() => void} save_changes
 * @property {(name: string, hear: (...args: any[]) => void) => void} on
 * @property {(name: string, hear: (...args: any[]) => void) => void} off
 * @property {(content: unknown) => void} send
 *
 * @typedef {DataView<ArrayBuffer>} Bytes
 * @typedef {{name: string, shape: number[], dtype: string}} Described
 * @typedef {{facts: any, arrays: Record<string, {shape: number[], values: Float32Array}>}} Answer
 */

export class Kernel {
  /** @type {Map<number, ((bytes: Uint8Array<ArrayBuffer>) => void)[]>} */ layers = new Map();
  /** @type {Map<number, (content: any, views: Bytes[]) => void>} */ questions = new Map();
  asked = 0;

  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.hear = (/** @type {any} */ content, /** @type {Bytes[]} */ views = []) => {
      if ('layer' in content) this.hearLayer(content.layer, views[0]);
      this.questions.get(content.ask)?.(content, views);
      this.questions.delete(content.ask);
    };
    model.on('msg:custom', this.hear);
  }

  /** @param {number} layer @param {Bytes} view */
  hearLayer(layer, view) {
    const waiting = this.layers.get(layer) ?? [];
    this.layers.delete(layer);
    for (const take of waiting) take(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  }

  /** The bytes of a layer. @param {number} layer @returns {Promise<Uint8Array<ArrayBuffer>>} */
  layer(layer) {
    return new Promise((take) => {
      this.layers.set(layer, [...(this.layers.get(layer) ?? []), take]);
      this.model.send({ layer });
    });
  }

  /**
   * The answer to a question by its name, as Python gives it.
   * @param {string} question
   * @param {Record<string, unknown>} asked
   * @returns {Promise<Answer>}
   */
  ask(question, asked) {
    this.asked += 1;
    const ask = this.asked;
    return new Promise((take, refuse) => {
      this.questions.set(ask, ({ error, facts, arrays }, views) =>
        error ? refuse(new Error(error)) : take({ facts, arrays: read(arrays, views) }),
      );
      this.model.send({ ask, question, asked });
    });
  }

  /**
   * The numbers of one map in fp32; null where the kernel cannot say them.
   * @param {import('../explorer/geometry.js').Trace} _trace
   * @param {import('../explorer/state.js').View} view
   * @returns {Promise<import('../explorer/server.js').Numbers | null>}
   */
  exact = (_trace, { layer, head, query, direction, norm }) =>
    this.ask('look', { layer, head: String(head), query, direction, norm }).then(numbersOf, () => null);

  close() {
    this.model.off('msg:custom', this.hear);
    this.layers.clear();
    this.questions.clear();
  }
}

/** Every array of fp32 by its name. @param {Described[]} described @param {Bytes[]} views */
function read(described, views) {
  const floats = described.map(({ name, shape }, i) => {
    const { buffer, byteOffset, byteLength } = views[i];
    return [name, { shape, values: new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength)) }];
  });
  return Object.fromEntries(floats.filter((_, i) => described[i].dtype === '<f4'));
}

/** What the explorer says of a map. @param {Answer} answer */
function numbersOf({ facts, arrays }) {
  const { values, shape } = arrays.values;
  let best = 0;
  let patches = 0;
  values.forEach((value, i) => {
    patches += value;
    if (value > values[best]) best = i;
  });
  /** @type {[number, number]} */
  const peak = [Math.floor(best / shape[1]), best % shape[1]];
  return { max: values[best], peak, patches, prefix: facts.prefix, suffix: facts.suffix_kinds };
}
