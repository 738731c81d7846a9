// The photo that is open in the app among the surveyed ones: two of its numbers, by the questions that other tabs ask, and their places.

import { short } from '../../ui/kit/numbers.js';
import { asked } from '../kit/ask.js';
import { opened } from '../kit/page.js';
import { columnWords, many } from './words.js';
/** @import { Page } from '../kit/page.js' */

/** @typedef {{across: string, up: string, layer?: number, head?: number, read: any}} Wanted read: model, mode, size and edits of the survey */

/** @type {Record<string, (scores: number[]) => number>} */
const OF_ANSWER = {
  confidence: ([first]) => first,
  value: ([first]) => first,
  margin: ([first, second]) => first - second,
};

/**
 * The numbers of the open photo, read as the survey reads photos; NaN where only surveyed photos have such a number.
 * @param {Page} page @param {() => Wanted | null} wanted
 */
export function numbersOf(page, wanted) {
  const photo = opened(page, 'survey');
  /** @param {string} _name @param {Wanted & {about: any}} body @param {AbortSignal} stop */
  const ask = (_name, { across, up, layer = 0, head = 0, read, about }, stop) =>
    Promise.all(
      [across, up].map(async (name) => {
        const [, over, measure] = /^(mean|head)_(entropy|distance|prefix_mass)$/.exec(name) ?? [];
        if (!measure && !OF_ANSWER[name]) return NaN;
        const body = { ...about, ...read, ...(measure ? { measure } : { count: 2 }) };
        const { arrays } = await page.ask(measure ? 'heads' : 'classes', body, stop);
        if (!measure) return OF_ANSWER[name](arrays.scores.data);
        const { data, shape } = arrays.values;
        if (over === 'head') return data[layer * shape[1] + head];
        return (
          data.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0) / data.length
        );
      }),
    );
  return asked(ask, () => {
    const [now, about] = [wanted(), photo.value.value?.about];
    return now && about ? ['place', { ...now, about }] : null;
  });
}

/**
 * Where numbers of the open photo lie among those of the surveyed ones, in a sentence.
 * @param {string[]} names of both @param {number[]} mine @param {Float32Array[]} theirs NaN where a photo has no such number
 */
export function placeWords(names, mine, theirs) {
  const places = [...new Set(names)].map((name) => {
    const [at, words] = [names.indexOf(name), columnWords(name)];
    if (Number.isNaN(mine[at])) return `its ${words} is not known: only photos of a survey have one`;
    const all = theirs[at].filter((value) => !Number.isNaN(value));
    const below = all.filter((value) => value < Math.fround(mine[at])).length;
    return `${words} ${short(mine[at])}, more than ${many(below)} of ${many(all.length)}`;
  });
  const marked = mine.some(Number.isNaN) ? '' : ', marked';
  return `The open photo${marked}: ${places.join('; ')}.`;
}
