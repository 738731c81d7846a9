// The right end of the header: whether the attention was verified, with the model's facts behind it; the link; where to start; help.

import { routeUrl } from '../../explorer/source.js';
import { START as WHAT } from '../../ui/help/help.js';
import { finder, opens } from '../../ui/kit/elements.js';
import { START, isSeen } from '../../ui/tour/tour.js';
import { wholeAddress } from '../../ui/visit/link.js';
import { effect } from '../kit/preact.js';
import { theHeader } from './header.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

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
 * @param {Proof} proof @param {(proof: Proof) => void} show
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

const COPIED = 'Link copied';
const COPIED_WITHOUT = 'Copied, without your photo';
const COPIED_WITHOUT_MORE = 'Your photo stays here: the link opens this view, and asks for the picture.';

/** @type {Mount<{}>} */
export function mount(element) {
  showFacts(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showFacts(element, { facts, turn }) {
  const find = finder(element);
  const isOwn = () => facts.value.value?.own ?? false;
  find('share').addEventListener('click', () => copyLink(find('share'), isOwn()));
  if (isSeen()) find('start').textContent = 'Tour';
  find('start').addEventListener('click', () => begin(START));
  find('what').addEventListener('click', () => begin(WHAT));
  opens(find('proof'), () => find('details'));
  opens(find('help'), () => find('help-words'));
  effect(() => {
    const { state, value } = facts.value;
    element.classList.toggle('vv-busy', state === 'pending');
    if (state !== 'done' && state !== 'failed') return;
    const { card = '', proof = UNKNOWN } = (state === 'done' && value) || {};
    find('model-facts').textContent = card;
    find('proof').hidden = !card;
    const show = (/** @type {Proof} */ { text, title, state: outcome }) => {
      find('proof').textContent = text;
      find('proof').dataset.state = outcome;
      find('proof-words').textContent = title;
    };
    const asking = new AbortController();
    void follow(proof, show, () => void (turn.value += 1), asking.signal);
    return () => asking.abort();
  });
}

/** Begins what an event of the window begins; on a phone the button is in the menu, which closes. @param {string} event */
function begin(event) {
  const menu = document.querySelector('#vv-menu [aria-expanded=true]');
  if (menu instanceof HTMLElement) menu.click();
  window.dispatchEvent(new window.CustomEvent(event));
}

/** Copies the link of the page, and says on the button what it holds. */
export async function copyLink(/** @type {HTMLElement} */ button, /** @type {boolean} */ isOwn) {
  try {
    await navigator.clipboard.writeText(wholeAddress());
    button.textContent = isOwn ? COPIED_WITHOUT : COPIED;
    if (isOwn) button.title = COPIED_WITHOUT_MORE;
  } catch {
    button.textContent = 'See the address bar';
  }
  window.setTimeout(() => (button.textContent = 'Copy link'), isOwn ? 6000 : 2500);
}
