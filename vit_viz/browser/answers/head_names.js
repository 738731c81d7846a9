// A name for each head, with the numbers that gave it: vit_viz/analyses/head_names.py.

import { numbers } from './form.js';
import { headTables } from './heads.js';
import { round } from '../preprocess.js';
/** @import { Context } from './form.js' */

const BESIDE = {
  left_neighbour: 'left',
  right_neighbour: 'right',
  upper_neighbour: 'upper',
  lower_neighbour: 'lower',
};

/** In the order in which they are tried. @type {{name: string, sentence: string, number: string, bound: number, isMost?: boolean}[]} */
const RULES = [
  {
    name: 'class-token reader',
    sentence: 'Patches look mostly at the class token.',
    number: 'class token',
    bound: 0.5,
  },
  {
    name: 'register or sink',
    sentence: 'Attention drains into registers or tokens with an outlying norm.',
    number: 'registers and sinks',
    bound: 0.25,
  },
  {
    name: 'neighbour',
    sentence: 'Patches look at the patch beside them, always on the same side.',
    number: 'neighbour',
    bound: 0.2,
  },
  {
    name: 'local',
    sentence: 'Patches look at what is near them.',
    number: 'distance',
    bound: 0.2,
    isMost: true,
  },
  {
    name: 'global',
    sentence: 'Patches look at nearly everything alike.',
    number: 'unevenness',
    bound: 0.13,
    isMost: true,
  },
  {
    name: 'content',
    sentence: 'Patches look at patches whose tokens are like their own, wherever these are.',
    number: 'content',
    bound: 0.16,
  },
  {
    name: 'positional',
    sentence: 'Where patches look depends on the offset, and little on the photo.',
    number: 'positional',
    bound: 0.5,
  },
];
const MARGIN = 0.1; // where thresholds moved by this share give another name, the evidence is thin
const DECIMALS = ['content', 'unevenness']; // what is written as a number, all else as a share

/** @param {Record<string, number>} values @param {number} slack */
function firstRule(values, slack) {
  return RULES.find(({ number, bound, isMost }) =>
    isMost ? values[number] <= bound * (1 + slack) : values[number] >= bound * (1 - slack),
  );
}

/** @param {string} number @param {number} value */
function written(number, value) {
  return DECIMALS.includes(number) ? value.toFixed(2) : `${round(100 * value)}%`;
}

/** @param {(typeof RULES)[number] | undefined} rule @param {Record<string, number>} values */
function sentenceOf(rule, values) {
  if (!rule) return 'Nothing stands out: no measure passes its threshold.';
  const { sentence, number, bound, isMost } = rule;
  const measured = `${number[0].toUpperCase()}${number.slice(1)} ${written(number, values[number])}`;
  return `${sentence} ${measured} (${isMost ? 'at most' : 'at least'} ${written(number, bound)}).`;
}

/** @param {Context} context */
async function headNames(context) {
  const tables = await headTables(context);
  const { shape } = tables.entropy.values;
  const of = (/** @type {string} */ measure, /** @type {number} */ at) => tables[measure].values.data[at];
  const heads = Array.from({ length: shape[0] * shape[1] }, (_, at) => {
    const beside = Object.keys(BESIDE).map((measure) => of(measure, at));
    const values = {
      'class token': of('class_mass', at),
      'registers and sinks': Math.max(of('prefix_mass', at) - of('class_mass', at), of('sink_share', at)),
      neighbour: Math.max(...beside),
      distance: of('distance', at) / tables.distance.value_range[1],
      content: of('content_correlation', at),
      positional: of('positional_share', at),
      unevenness: 1 - of('entropy', at),
    };
    const [rule, strict, lax] = [0, -MARGIN, MARGIN].map((slack) => firstRule(values, slack));
    const [name, ...others] = [rule, strict, lax].map((one) => one?.name ?? 'mixed');
    return {
      layer: Math.floor(at / shape[1]),
      head: at % shape[1],
      name,
      side: name === 'neighbour' ? Object.values(BESIDE)[beside.indexOf(values.neighbour)] : '',
      sentence: sentenceOf(rule, values),
      numbers: values,
      could_be: [...new Set(others.filter((other) => other !== name))],
    };
  });
  const names = /** @type {(keyof typeof heads[0]['numbers'])[]} */ (Object.keys(heads[0].numbers));
  const found = names.map((name) => [
    name,
    numbers(
      shape,
      heads.map((one) => one.numbers[name]),
    ),
  ]);
  return { heads, numbers: Object.fromEntries(found) };
}

/** @type {import('./index.js').Table} */
export const HEAD_NAMES = { head_names: { needs: 'pass', answer: headNames } };
