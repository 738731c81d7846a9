// Predict, then see: a scene's one question, answered from the numbers of this photo. Nothing is counted.

import { html } from '../kit/preact.js';
import { Said } from './say.js';
/** @import { Guess, Numbers } from './timeline.js' */

/**
 * The question, until somebody guesses; then the guess, and what is true once that was seen.
 * @param {{guess: Guess, n: Numbers, chosen: number | null, isTold: boolean, choose: (place: number) => void}} props chosen: the guess;
 *     isTold: whether the truth is told
 */
export function GuessCard({ guess, n, chosen, isTold, choose }) {
  const { trace } = n;
  const truth = guess.truth(n);
  const choices = guess.choices(n);
  const look = (/** @type {number} */ place) => {
    if (!isTold || chosen === null) return undefined;
    return place === truth ? 'true' : place === chosen ? 'false' : undefined;
  };
  const verdict = chosen === truth ? 'Right. ' : 'Not this time. ';
  return html`<section class="vv-lesson-guess vv-card vv-stack" aria-label="A guess">
    <p class="vv-lesson-question"><${Said} ...${{ say: guess.question(n), trace }} /></p>
    <div class="vv-row" role="group" aria-label="Guesses">
      ${choices.map(
        (say, place) =>
          html`<button
            type="button"
            class="vv-chip"
            aria-pressed=${String(place === chosen)}
            data-guess=${place}
            data-true=${look(place)}
            disabled=${isTold && chosen !== null}
            onClick=${() => choose(place)}
          >
            <${Said} ...${{ say, trace }} />
          </button>`,
      )}
    </div>
    <p class="vv-lesson-verdict" aria-live="polite">
      ${chosen !== null && (isTold ? [verdict, html`<${Said} ...${{ say: guess.verdict(n), trace }} />`] : 'Now watch.')}
    </p>
  </section>`;
}
