// Edits of a model as the header says them, as vit_viz/ui/header/routes.py has it.

import { headsWith, withHeads, wordsOf } from '../web/kit/edits.js';
/** @import { Edits } from '../web/kit/edits.js' */

const HEADS = { off: 'off', mean: 'at its mean', uniform: 'looks at all tokens alike' };
const STATES = /** @type {const} */ ([
  ['off', '1 head off', 'heads off'],
  ['mean', '1 head at its mean', 'heads at their mean'],
  ['uniform', '1 head uniform', 'heads uniform'],
]);

/** What is changed, in a few words, and each change with the edits that are left without it. @param {Edits} edits */
export function saidOf(edits) {
  const { heads, temperatures, forbidden } = edits;
  const layers = [...temperatures.keys()];
  const words = [
    ...STATES.flatMap(([state, one, many]) => {
      const { length: count } = headsWith(edits, state);
      return count ? [count === 1 ? one : `${count} ${many}`] : [];
    }),
    ...(layers.length
      ? [`temperature of ${layers.length === 1 ? 'layer' : 'layers'} ${layers.join(', ')}`]
      : []),
    ...(forbidden.length
      ? [forbidden.length === 1 ? '1 view forbidden' : `${forbidden.length} views forbidden`]
      : []),
  ].join(', ');
  const each = [
    ...[...heads].map(([place, state]) => ({
      said: `layer ${place.replace('.', ', head ')}: ${HEADS[/** @type {keyof typeof HEADS} */ (state)]}`,
      left: wordsOf(withHeads(edits, [place], 'on')),
    })),
    ...[...temperatures].map(([layer, value]) => ({
      said: `layer ${layer}: temperature ${value}, ${value < 1 ? 'sharper' : 'more even'}`,
      left: wordsOf({ ...edits, temperatures: new Map([...temperatures].filter(([one]) => one !== layer)) }),
    })),
    ...forbidden.map((one) => ({
      said: `forbidden: ${one}`,
      left: wordsOf({ ...edits, forbidden: forbidden.filter((other) => other !== one) }),
    })),
  ];
  return { words, each };
}
