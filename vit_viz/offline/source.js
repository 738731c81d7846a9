// Packed layers as the source of a page, beside whoever answers questions: a file that has some answers, or the kernel of a notebook.

import { unitVectors } from '../browser/answers/vectors.js';
import { packedSource } from '../explorer/packed.js';
/** @import { Packing } from '../explorer/packed.js' */
/** @import { Source } from '../web/kit/ask.js' */
/** @import { Field } from '../web/kit/store.js' */

/**
 * What Python says at once (`page_facts` of vit_viz/offline/page.py); value: what the view is of.
 * @typedef {{value: any, fields: Field[], packing: Packing}} Facts
 *
 * @typedef {object} Host
 * @property {(layer: number) => Promise<Uint8Array<ArrayBuffer>>} layer its packed bytes
 * @property {(name: string) => boolean} answers
 * @property {Source['answer']} answer
 */

const IN_APP = 'This needs the model, which is in the app.';
const NO_CLASS = { classes: [], words: 'Classes are chosen in the app.', name: '', link: '' };

/** What is asked of the page itself: there is one photo in one model. @type {Record<string, (facts: Facts) => any>} */
const OF_PAGE = { open: ({ value }) => value, target: () => NO_CLASS };

const refuses = async () => {
  throw new Error(IN_APP);
};

/** @param {Facts} facts @param {Host} host @returns {Source} */
export function pageSource(facts, { layer: bytesOf, answers, answer }) {
  const packed = packedSource(bytesOf, facts.packing);
  const [height, width] = facts.value.photo_size;
  /** @type {Record<string, any>} */
  const stated = { fields: facts.fields, samples: { aspects: { '': width / height } } }; // of a link that names no picture
  return {
    ...packed,
    accepts: '',
    answers: (name) => name in OF_PAGE || answers(name),
    keeps: () => true,
    makes: () => false,
    answer: async (name, ...rest) => OF_PAGE[name]?.(facts) ?? answer(name, ...rest),
    stated: (name) => stated[name] ?? null,
    async vectors(_, state, role, tokens, stop) {
      const layer = /** @type {any} */ (await packed.layer(facts.value, state, stop));
      if (role === 'tokens' || layer.kind !== 'qk') return refuses();
      const { heads, headDim } = layer;
      const traced = /** @type {any} */ ({ heads, tokens, headDim, scale: 1, layers: [layer] }); // which no length depends on
      return unitVectors({ traced }, role === 'keys' ? 'keys' : 'queries', 0);
    },
    proof: async () => null,
    received: async () => ({ pictures: [], problems: [] }),
    ...{ at: refuses, file: refuses, bring: refuses, places: refuses },
  };
}
