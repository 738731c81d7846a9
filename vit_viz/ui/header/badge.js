// The badge: whether the attention was verified; while that is being checked, the page asks again until it is known.

import { routeUrl } from '../../explorer/url.js';

/** @typedef {{text: string, title: string, state: string, trace?: string}} Proof */

/** @type {Proof} */
export const UNKNOWN = {
  state: 'open',
  text: 'not verified',
  title: 'Whether the model computed with what is drawn here could not be checked.',
};

const PAUSE = 700; // milliseconds between two questions
const TRIES = 8; // questions in a row that may fail

/**
 * Asks until the badge is known, and shows it; ends when the signal says so.
 * @param {Proof} proof
 * @param {(proof: Proof) => void} show
 * @param {() => void} refused called where it turns out that the pictures mislead
 * @param {AbortSignal} signal
 */
export async function follow(proof, show, refused, signal) {
  show(proof);
  if (!proof.trace || proof.state !== 'checking') return;
  const address = routeUrl(`/vit_viz/proof/${encodeURIComponent(proof.trace)}`);
  for (let failed = 0; failed < TRIES;) {
    await new Promise((done) => window.setTimeout(done, PAUSE));
    if (signal.aborted) return;
    const answer = await fetch(address, { signal, credentials: 'same-origin' }).catch(() => null);
    if (signal.aborted) return;
    if (answer?.status === 400) return refused();
    const now = answer?.ok ? await answer.json() : null;
    if (signal.aborted) return;
    if (now && now.state !== 'checking') return show(now);
    failed = now ? 0 : failed + 1;
  }
  show(UNKNOWN);
}
