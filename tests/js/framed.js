// Three layers of a made-up model, and what a view of them shows.

import { Frame } from '../../vit_viz/explorer/frame.js';
import { initialView } from '../../vit_viz/explorer/state.js';
import { makeLayer, makeTrace } from './oracle.js';

export const trace = makeTrace();
export const made = [1, 2, 3].map((seed) => makeLayer({ heads: 5, tokens: 26, headDim: 8, seed }));

export function frameOf(
  /** @type {any} */ change,
  of = trace,
  /** @type {(l: number) => any} */ layerOf = (l) => made[l].layer,
) {
  const view = /** @type {any} */ ({ ...initialView(of), clip: false, ...change });
  const frame = new Frame(of);
  frame.compute(view, layerOf, () => null);
  return { frame, view };
}
