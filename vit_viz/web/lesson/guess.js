// Predict, then see: a scene's one question, answered from the numbers of this photo. Nothing is counted.

import { html, useComputed } from '../kit/preact.js';
import { Said } from './say.js';
/** @import { Playing } from './room.js' */
/** @import { Guess, Numbers, Placed } from './timeline.js' */

const SEEN = 0.7; // of the beat that shows the truth, after which it is told

/**
 * The question, from the beat on before the one that waits for a guess; then the guess, and the truth once that was seen. A guess plays on.
 * @param {{lesson: Pick<Playing, 'beats' | 'guesses' | 'player'>, n: Numbers, now: Placed}} props
 */
export function Guessing({ lesson: { beats, guesses, player }, n, now }) {
  const { id, guess } = now.scene;
  const all = beats();
  const placeOf = (/** @type {string | undefined} */ one) => all.findIndex((beat) => beat.id === one);
  const [waits, shows] = [all[placeOf(guess?.before)], all[placeOf(guess?.shown ?? guess?.before)]];
  const isSeen = useComputed(() => shows && player.t.value >= shows.start + SEEN * shows.seconds);
  const early = placeOf(guess?.before) - all.indexOf(now); // how many beats before the one that waits
  if (!guess || !waits || early > 1 || waits.needs?.some((name) => !n[name])) return null;
  if (guess.isFor?.(n) === false) return null;
  const chosen = guesses.value[id] ?? null;
  const choose = (/** @type {number} */ place) => {
    guesses.value = { ...guesses.value, [id]: place };
    if (chosen === null && now !== shows) player.play();
  };
  const at = { isEarly: early > 0, isSeen: isSeen.value, isShown: now === shows };
  return html`<${Card} ...${{ guess, n, chosen, choose, ...at }} />`;
}

/**
 * @param {{guess: Guess, n: Numbers, chosen: number | null, choose: (place: number) => void, isEarly: boolean, isSeen: boolean, isShown:
 *   boolean}} props whether time waits for a guess, the truth was seen, and is on the stage; what waits or is just told stays in sight
 */
function Card({ guess, n, chosen, choose, isEarly, isSeen, isShown }) {
  const isTold = isSeen && chosen !== null;
  const isOpen = isEarly && chosen === null;
  const { trace } = n;
  const truth = guess.truth(n);
  const verdict = [
    chosen === truth ? 'Right. ' : 'No. ',
    html`<${Said} ...${{ say: guess.verdict(n), trace }} />`,
  ];
  return html`<section
    class="vv-lesson-guess vv-card vv-stack"
    data-open=${isOpen ? '' : undefined}
    data-kept=${isOpen || (isTold && isShown) ? '' : undefined}
  >
    <p class="vv-strong"><${Said} ...${{ say: guess.question(n), trace }} /></p>
    <div class="vv-row" role="group" aria-label="Guesses">
      ${guess.choices(n).map(
        (say, place) =>
          html`<button
            type="button"
            class="vv-chip"
            aria-pressed=${String(place === chosen)}
            data-true=${isTold && place === truth ? '' : undefined}
            disabled=${isTold}
            onClick=${() => choose(place)}
          >
            <${Said} ...${{ say, trace }} />
          </button>`,
      )}
    </div>
    <p class="vv-lesson-verdict" aria-live="polite">
      ${chosen !== null && (isTold ? verdict : 'Now watch.')}
    </p>
  </section>`;
}
