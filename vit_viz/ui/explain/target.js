// What is explained: a class ('why'), optionally set against another ('unlike'), found among the first or by its name ('search').

import { TargetChooser } from '../../web/kit/target.js';
import { drawValue, finder, onPress, press } from '../kit/elements.js';
/** @import { Hits, Target } from '../../web/kit/target.js' */
/** @import { Mount, Trigger, Watch } from '../kit/elements.js' */

/**
 * @typedef {keyof typeof TITLES} Face
 *
 * @typedef {{seq: number, hits: Hits}} Matches
 */

const TITLES = { why: 'Why', parts: 'What it is made of' };

/** @type {Mount<{value: (Target & {face?: Face}) | null, matches: Matches | null}>} */
export function mount(element, trigger, props, watch) {
  onPress(element, 'face', (face) => trigger('face', { explain_face: face }));
  drawValue(watch, () => {
    const face = props.value?.face ?? 'why';
    press(element, 'face', face);
    finder(element)('why-title').textContent = TITLES[face];
  });
  chooseTarget(element, trigger, watch, { value: () => props.value, matches: () => props.matches });
}

/**
 * @param {HTMLElement} element @param {Trigger} trigger @param {Watch} watch
 * @param {{value: () => Target | null | undefined, matches: () => Matches | null}} now
 */
export function chooseTarget(element, trigger, watch, { value, matches }) {
  /** @type {{seq: number, found: (hits: Hits) => void}} */
  let waiting = { seq: 0, found: () => {} };
  const chooser = new TargetChooser(element, {
    why: (index) => trigger('why', { index }),
    unlike: (index) => trigger('unlike', { index }),
    find: (text) =>
      new Promise((found) => {
        waiting = { seq: waiting.seq + 1, found };
        trigger('search', { text, seq: waiting.seq });
      }),
  });
  watch('matches', () => {
    const answer = matches();
    if (answer?.seq === waiting.seq) waiting.found(answer.hits);
  });
  drawValue(watch, () => {
    const target = value();
    if (target) chooser.show(target);
  });
}
