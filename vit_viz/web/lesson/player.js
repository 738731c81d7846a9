// The clock of the lesson: plays, stops, steps and goes elsewhere. There is one moment, `t`, and one frame that is waited for.

import { clamp } from '../../explorer/geometry.js';
import { signal } from '../kit/preact.js';
import { beatAt, endOf } from './timeline.js';
/** @import { Placed } from './timeline.js' */

const LONGEST = 0.1; // seconds that a frame may take; what is longer was a pause of the browser
/** How fast it may run, the usual first. */
export const SPEEDS = [1, 2, 0.5];

export class Player {
  t = signal(0);
  isPlaying = signal(false);
  speed = signal(SPEEDS[0]);
  #until = Infinity;
  #last = 0;
  #frame = 0;

  /**
   * @param {() => Placed[]} beats
   * @param {(from: number, to: number) => {at: number, stops: boolean} | null} hold where time must wait between two moments, if it
   *     must, and whether it stops there
   */
  constructor(beats, hold) {
    this.beats = beats;
    this.hold = hold;
  }

  get end() {
    const beats = this.beats();
    return endOf(beats[beats.length - 1]);
  }

  /** @param {number} [until] a moment at which it stops by itself */
  play(until = Infinity) {
    if (this.t.peek() >= this.end - 0.01) this.t.value = 0;
    this.#until = until;
    this.#last = performance.now();
    this.isPlaying.value = true;
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#tick());
  }

  pause() {
    cancelAnimationFrame(this.#frame);
    this.isPlaying.value = false;
  }

  seek(/** @type {number} */ t) {
    this.pause();
    this.t.value = clamp(t, this.end);
  }

  /** Goes to a beat and plays on from there; isStill: shows its end. @param {Placed} beat @param {boolean} isStill @param {number} [until] */
  go(beat, isStill, until) {
    this.seek(isStill ? endOf(beat) : beat.start);
    if (!isStill) this.play(until);
  }

  /** Plays the next beat, or the one before, and stops at its end. @param {number} by @param {boolean} isStill */
  step(by, isStill) {
    const beats = this.beats();
    const beat = beats[clamp(beats.indexOf(beatAt(beats, this.t.peek())) + by, beats.length - 1)];
    this.go(beat, isStill, endOf(beat));
  }

  #tick() {
    const now = performance.now();
    const from = this.t.peek();
    const passed = Math.min(LONGEST, (now - this.#last) / 1000) * this.speed.peek();
    this.#last = now;
    const to = Math.min(from + passed, this.#until, this.end);
    const held = this.hold(from, to);
    if (held?.stops || (!held && (to >= this.#until || to >= this.end))) this.isPlaying.value = false;
    this.t.value = held ? held.at : to;
    if (this.isPlaying.peek()) this.#frame = requestAnimationFrame(() => this.#tick());
  }
}
