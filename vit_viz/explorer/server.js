// What the explorer asks its source: at once, and while the hand moves on, when it rests. Nothing here runs while hovering.

/** @import { LayerStore } from './layers.js' */
/** @import { View } from './state.js' */

/**
 * Numbers of one map as Python computes them, in fp32.
 * @typedef {{max: number, peak: [number, number] | null, patches: number, prefix: Record<string, number>,
 *   suffix: Record<string, number>}} Numbers suffix: by kind; peak:
 *   null where the map is the same everywhere
 */

/** The parts of a view that numbers depend on. */
export function exactKey(/** @type {View} */ { layer, head, query, direction, norm }) {
  return JSON.stringify([layer, head, query, direction, norm]);
}

/** How long the hand rests before what it chose in a row is asked, in milliseconds. */
const REST = 40;

/** Asks the source for what the browser cannot compute, and for numbers in full precision; a newer question wins. */
export class Asker {
  /** @param {{answered: () => void, numbers: (view: View, numbers: Numbers) => void, failed: (error: Error) => void}} listener */
  constructor(listener) {
    this.listener = listener;
    this.abort = new AbortController();
    this.timer = 0;
  }

  cancel() {
    this.abort.abort();
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** A choice after a rest is asked at once; of those that follow closely, the last one. @param {LayerStore} store @param {View} view */
  ask(store, view) {
    const follows = this.timer !== 0;
    this.cancel();
    const { signal } = (this.abort = new AbortController());
    if (!follows) this.run(store, view, signal);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      if (follows) this.run(store, view, signal);
    }, REST);
  }

  /** @param {LayerStore} store @param {View} view @param {AbortSignal} signal */
  async run(store, view, signal) {
    try {
      const layers = store.unanswered(view);
      const shown = layers[0] === view.layer ? layers.splice(0, 1) : [];
      await this.rows(store, view, shown, signal);
      const numbers = await store.numbers(view, signal);
      if (numbers && !signal.aborted) this.listener.numbers(view, numbers);
      await this.rows(store, view, layers, signal);
    } catch (error) {
      if (!signal.aborted) this.listener.failed(/** @type {Error} */ (error));
    }
  }

  /** @param {LayerStore} store @param {View} view @param {number[]} layers @param {AbortSignal} signal */
  async rows(store, view, layers, signal) {
    for (const layer of layers) {
      await store.ask(layer, view, signal);
      this.listener.answered();
    }
  }
}

/** Plays something step by step; where motion is unwelcome, one step per press. */
export class Player {
  /** @param {() => void} step @param {(playing: boolean) => void} changed @param {number} [pause] in milliseconds */
  constructor(step, changed, pause = 700) {
    this.step = step;
    this.changed = changed;
    this.pause = pause;
    this.timer = 0;
  }

  get playing() {
    return this.timer !== 0;
  }

  toggle() {
    if (this.playing) return this.stop();
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return this.step();
    this.timer = window.setInterval(this.step, this.pause);
    return this.changed(true);
  }

  stop() {
    if (!this.playing) return;
    window.clearInterval(this.timer);
    this.timer = 0;
    this.changed(false);
  }
}
