// Maps as shares, so that maps of different units can be subtracted: two classes of one method, and one method of all; and the maps of several
// methods side by side. vit_viz/analyses/share_maps.py and explain.py.

import { mapWords } from './attention.js';
import { numbers } from './form.js';
import { hasClasses, outputName, targetOf } from './targets.js';
import { fixed } from './words.js';
/** @import { Context } from './form.js' */
/** @import { About, MapOf } from './index.js' */

/** Methods that share passes. */
const QUICK = [
  ...['relevance', 'gradient_rollout', 'legrad', 'gradcam', 'hirescam', 'layercam', 'xgradcam', 'grad_eclip'],
  ...['rollout', 'value_rollout', 'attention'],
];
/** Methods of many passes, by what they are called. */
export const SLOW = new Map([['occlusion', 'Occlusion']]);

/** Whose map is meant. */
export const OF_METHOD = {
  method: { usual: 'relevance', pattern: /^[a-z][a-z0-9_]*$/, sentence: "The map's method." },
};

/** The class that is explained and the one that it is set against: the strongest of the rest where none is named. @param {Context} context @param {string | null} target @returns {[number, number]} */
export function twoClasses(context, target) {
  const { logits } = context.traced;
  if (!hasClasses(context) || logits.length < 2)
    throw new Error('This model has no two classes that could be set against each other.');
  const { index, other } = targetOf(context, target);
  const rest = [...logits.keys()].filter((one) => one !== index);
  return [index, other ?? rest.reduce((best, one) => (logits[one] > logits[best] ? one : best))];
}

/** What sums to 1 in magnitudes. @param {Float32Array} values */
function sharesOf(values) {
  const total = values.reduce((sum, value) => sum + Math.abs(value), 0);
  return total > 0 ? Float64Array.from(values, (value) => value / total) : Float64Array.from(values);
}

/** The shares of a map less other shares. @param {any} map @param {Float64Array} others @param {{unit: string, caption: string}} about */
function less(map, others, about) {
  const { data, shape } = map.values;
  const range = map.signed ? 2 : 1;
  return {
    ...{
      ...map,
      values: numbers(
        shape,
        sharesOf(data).map((share, i) => share - others[i]),
      ),
    },
    ...{ value_range: [-range, range], signed: true, class_blind: false, prefix: {}, suffix: {} },
    ...about,
  };
}

/** @param {string} method */
function checkQuick(method) {
  if (SLOW.has(method))
    throw new Error(
      `${SLOW.get(method)} takes long; only maps of methods that share one pass are set against each other.`,
    );
}

/** @param {Context} context @param {{method: string}} options @param {About} about @param {MapOf} mapOf */
async function classDifference(context, { method }, about, mapOf) {
  const pair = twoClasses(context, about.target);
  checkQuick(method);
  const maps = [];
  for (const index of pair) maps.push(await mapOf(method, { ...about, target: String(index) }, context));
  const [one, other] = maps;
  if (one.class_blind)
    throw new Error(
      `${one.method[0].toUpperCase()}${one.method.slice(1)} gives the same map for every class: there is nothing to subtract.`,
    );
  const names = pair.map((index) => outputName(context, index));
  const subtracted = less(one, sharesOf(other.values.data), {
    unit: 'share of the map, subtracted',
    caption: `${one.method}: share of the map for ${names[0]} less share of the map for ${names[1]}`,
  });
  return { ...subtracted, names };
}

/** @param {Awaited<ReturnType<typeof classDifference>>} map */
function differenceWords({ values: { data, shape }, names: [one, other] }) {
  const apart =
    data.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + Math.abs(value), 0) / 2;
  if (apart < 0.0005)
    return 'The two maps are alike: less than 0.1% of a map would have to move to turn one into the other.';
  const place = (/** @type {number} */ value) => {
    const patch = data.indexOf(value);
    return `(${Math.floor(patch / shape[1])}, ${patch % shape[1]})`;
  };
  const [most, least] = [Math.max(...data), Math.min(...data)].map(place);
  return (
    `Most for ${one} on patch ${most}; most for ${other} on patch ${least}. ` +
    `${fixed(100 * apart, 1)}% of the map lies elsewhere.`
  );
}

/**
 * The maps of methods, and why others give none; what the last one says is raised where none gives any.
 * @param {Context} context @param {string[]} names @param {About} about its options are by the names of methods @param {MapOf} mapOf
 */
async function mapsOf(context, names, about, mapOf) {
  targetOf(context, about.target); // what cannot be a target is none for maps that are the same for every class, too
  const [maps, missing] = [
    /** @type {Record<string, any>} */ ({}),
    /** @type {Record<string, string>} */ ({}),
  ];
  for (const [i, name] of names.entries()) {
    await context.step(i / names.length);
    try {
      const own = { ...about, query: null, options: about.options[name] ?? {} };
      maps[name] = await mapOf(name, own, { ...context, step: async () => {} });
    } catch (error) {
      if (i + 1 === names.length && !Object.keys(maps).length) throw error;
      missing[name] = /** @type {Error} */ (error).message;
    }
  }
  return { maps, missing };
}

/** @param {Context} context @param {{method: string}} options @param {About} about @param {MapOf} mapOf */
async function ownPart(context, { method }, about, mapOf) {
  const { maps } = await mapsOf(context, QUICK, { ...about, options: {} }, mapOf);
  checkQuick(method);
  const all = Object.values(maps).map(({ values }) => sharesOf(values.data));
  const mean = all[0].map((_, i) => all.reduce((sum, shares) => sum + shares[i], 0) / all.length);
  const map =
    Object.keys(about.options).length || !maps[method] ? await mapOf(method, about, context) : maps[method];
  return less(map, mean, {
    unit: 'share of the map, less the mean of all',
    caption: `${map.method}: what only this method says, its shares less the mean of ${all.length} methods`,
  });
}

/** @param {Context} context @param {{methods: string}} options @param {About} about @param {MapOf} mapOf */
function comparison(context, { methods }, about, mapOf) {
  const words = /** @type {Record<string, string[]>} */ ({
    '': QUICK,
    quick: QUICK,
    all: [...QUICK, ...SLOW.keys()],
  });
  const names = new Set(methods.split(',').flatMap((word) => words[word] ?? [word]));
  return mapsOf(context, [...names], about, mapOf);
}

/** @type {import('./index.js').Table} */
export const SHARES = {
  class_difference: {
    ...{ needs: 'pass', takesTarget: true, takesOptions: true, options: OF_METHOD },
    ...{ answer: classDifference, says: differenceWords },
  },
  own_part: {
    ...{ needs: 'pass', takesTarget: true, takesOptions: true, options: OF_METHOD },
    ...{ answer: ownPart, says: mapWords },
  },
  comparison: {
    ...{ needs: 'pass', takesTarget: true, takesOptions: true },
    options: {
      methods: {
        usual: 'quick',
        pattern: /^([a-z0-9_]+(,[a-z0-9_]+)*)?$/,
        sentence:
          'quick: those that share one pass; all: every method with a card, which takes minutes; or names with commas between.',
      },
    },
    answer: comparison,
  },
};
