// What a model's outputs are, which decides how they are shown; as vit_viz.outputs has it for Python.

/** @typedef {'softmax' | 'sigmoid' | 'value'} Output */

/** @type {readonly Output[]} */
export const OUTPUTS = ['softmax', 'sigmoid', 'value'];

/** What each of so many outputs is; where no file says it, one output is a value and several are a softmax. @returns {Output} */
export function outputKind(/** @type {Output | null} */ output, /** @type {number} */ count) {
  return output ?? (count === 1 ? 'value' : 'softmax');
}

/** What people are told of a model's outputs. @param {ArrayLike<number>} outputs @param {Output | null} output @returns {number[]} */
export function shown(outputs, output) {
  const values = Array.from(outputs);
  const kind = outputKind(output, values.length);
  if (kind === 'value') return values;
  if (kind === 'sigmoid') return values.map((score) => 1 / (1 + Math.exp(-score)));
  const most = Math.max(...values);
  const powers = values.map((score) => Math.exp(score - most));
  const sum = powers.reduce((all, power) => all + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * The likeliest classes, or the largest values; none where a model of several classes has no names for them.
 * @param {ArrayLike<number>} outputs @param {string[] | null} labels @param {Output | null} output @param {number} count
 * @returns {{name: string, probability?: number, value?: number}[]}
 */
export function highest(outputs, labels, output, count) {
  const kind = outputKind(output, outputs.length);
  if (!labels && kind === 'softmax') return [];
  const answers = shown(outputs, kind);
  const order = answers.map((_, index) => index).sort((a, b) => answers[b] - answers[a]);
  const [noun, amount] = kind === 'value' ? ['output', 'value'] : ['class', 'probability'];
  return order
    .slice(0, count)
    .map((index) => ({ name: labels?.[index] ?? `${noun} ${index}`, [amount]: answers[index] }));
}
