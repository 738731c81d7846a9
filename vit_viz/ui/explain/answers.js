// What the model answers, as lines: the name, a bar with a tick where it stood with all patches, and the numbers.

import { make } from '../kit/elements.js';

/**
 * @typedef {object} AnswerLine
 * @property {string} name
 * @property {number} now share of the bar, from 0 to 1
 * @property {number} [before] with all patches; absent where all are there
 * @property {string} text
 * @property {boolean} [target] whether it is what the maps explain
 */

/** The lines of an answer. */
export function answerLines(/** @type {AnswerLine[]} */ top) {
  return top.map(({ name, now, before, text, target }) => {
    const line = make('li', target ? 'vv-answer vv-target-answer' : 'vv-answer');
    const words = make('span', 'vv-class', name);
    words.title = name;
    const track = make('span', 'vv-answer-track');
    const bar = make('span', 'vv-answer-bar');
    bar.style.width = percent(now);
    track.append(bar);
    if (before !== undefined) {
      const tick = make('span', 'vv-answer-tick');
      tick.style.left = percent(before);
      track.append(tick);
    }
    line.append(words, track, make('span', 'vv-number', text));
    return line;
  });
}

/** A share as a length, inside the track whatever it is. */
function percent(/** @type {number} */ share) {
  return `${100 * Math.min(1, Math.max(0, share))}%`;
}
