// Numbers in sentences, as Python's formats and vit_viz/sentences.py write them: to so many digits, a tie to the even one, no "-0".

/** So many digits behind the point. @param {number} value @param {number} digits */
export function fixed(value, digits) {
  const isTie = Number.isInteger(value * 2 ** (digits + 1)) && (value * 2 * 10 ** digits) % 2 !== 0;
  const low = Math.floor(value * 10 ** digits);
  const text = isTie ? ((low % 2 ? low + 1 : low) / 10 ** digits).toFixed(digits) : value.toFixed(digits);
  return Number(text) === 0 ? text.replace('-', '') : text;
}

/** So many digits that count, as ".3g" writes them. @param {number} value @param {number} digits */
export function general(value, digits) {
  const [mantissa, power] = value.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  const short = (/** @type {string} */ text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  if (exponent >= -4 && exponent < digits) return short(fixed(value, digits - 1 - exponent));
  return `${short(mantissa)}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** A probability for people, with a decimal where it is small or almost certain: 96%, 2.5%, <0.1%. */
export function percent(/** @type {number} */ share) {
  if (share > 0 && share < 0.0005) return '<0.1%';
  return `${fixed(100 * share, share >= 0.0995 && share <= 0.99 ? 0 : 1)}%`;
}

/** Whether numbers are the same but for rounding, as `is_even` of vit_viz/results.py has it. @param {ArrayLike<number>} values */
export function isEven(values) {
  let [least, most] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++)
    [least, most] = [Math.min(least, values[i]), Math.max(most, values[i])];
  return most - least <= 2 ** -20 * Math.max(Math.abs(least), Math.abs(most));
}
