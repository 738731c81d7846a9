// The matrix of a head, computed here from q and k, a few rows between two frames of the screen.

import { LAYER_BUDGET } from '../../explorer/layers.js';
import { Axis, Filling } from '../../explorer/matrix.js';
import { useLayoutEffect, useMemo, useState } from '../kit/preact.js';
import { tooLargeWords } from './matrix_words.js';
/** @import { LayerStore } from '../../explorer/layers.js' */

const BUDGET = 8; // milliseconds of a frame in which rows are computed

/** Links that are kept of a head or a query. */
export const MOST_LINKS = 100;

/** A layer, fetched once. @param {LayerStore} store @param {number} layer */
async function layerOf(store, layer) {
  const known = store.get(layer);
  if (known) return known;
  if (store.trace.source[layer] === 'rows' || !store.fits(layer))
    throw new Error(tooLargeWords(store.bytes(layer), LAYER_BUDGET));
  store.wanted = layer;
  const fetched = await store.fetchLayer(layer);
  store.keep(layer, fetched);
  return fetched;
}

/**
 * The matrix as far as it is computed, which draws the component again with each frame; null before its layer is there.
 * @param {LayerStore} layers @param {number} layer @param {number | string} head @param {number} most links that are kept
 */
export function useFilling(layers, layer, head, most) {
  const [, draw] = useState(0);
  const [tries, setTries] = useState(0);
  const axis = useMemo(() => new Axis(layers.trace), [layers]);
  const known = useMemo(
    () => ({ filling: /** @type {Filling | null} */ (null), error: '' }),
    [axis, layer, head, tries],
  );
  useLayoutEffect(() => {
    let [frame, isLeft] = [0, false];
    const again = () => draw((count) => count + 1);
    const fill = () => {
      const { filling } = known;
      if (!filling) return;
      const end = performance.now() + BUDGET;
      while (!filling.isDone && performance.now() < end) filling.step();
      if (!filling.isDone) frame = requestAnimationFrame(fill);
      again();
    };
    layerOf(layers, layer).then(
      (found) => {
        if (isLeft) return;
        known.filling = new Filling(found, head, axis, most);
        frame = requestAnimationFrame(fill);
        again();
      },
      (error) => {
        if (isLeft || layers.abort.signal.aborted) return;
        known.error = error.message;
        again();
      },
    );
    return () => {
      isLeft = true;
      cancelAnimationFrame(frame);
    };
  }, [known]);
  return { ...known, axis, retry: () => setTries((count) => count + 1) };
}
