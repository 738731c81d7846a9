// The right end of the header: whether the attention was verified, with the model's facts behind it; the link; where to start; help.

import { KEY_WORDS } from '../../ui/kit/elements.js';
import { START as WHAT } from '../../ui/help/help.js';
import { START, isSeen } from '../../ui/tour/tour.js';
import { wholeAddress } from '../../ui/visit/link.js';
import { Refused } from '../kit/ask.js';
import { html, useMemo, useSignal, useSignalEffect } from '../kit/preact.js';
import { Popover } from './opener.js';
/** @import { Source } from '../kit/ask.js' */
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
 * @param {Pick<Source, 'proof'>} source @param {Proof} proof @param {(proof: Proof) => void} show
 * @param {() => void} refused called where it turns out that the pictures mislead
 * @param {AbortSignal} signal
 */
export async function follow(source, proof, show, refused, signal) {
  show(proof);
  if (!proof.trace || proof.state !== 'checking') return;
  for (let failed = 0; failed < TRIES;) {
    await new Promise((done) => window.setTimeout(done, PAUSE));
    if (signal.aborted) return;
    const now = await source.proof(proof.trace, signal).catch((error) => error instanceof Refused && error);
    if (signal.aborted) return;
    if (now instanceof Refused) return refused();
    if (now && now.state !== 'checking') return show(now);
    failed = now ? 0 : failed + 1;
  }
  show(UNKNOWN);
}

const COPIED = 'Link copied';
const COPIED_WITHOUT = 'Copied, without your photo';
const COPIED_WITHOUT_MORE = 'Your photo stays here: the link opens this view, and asks for the picture.';

const WHETHER = "Whether what is drawn is what the model computed with, and the model's facts.";
const NOT_SAID =
  'What it does not say: attention shows where a head looks, not what the answer depends on. For that, see Explain.';
const HELP = { 'aria-label': 'Help', title: 'How to begin, and all keys.' };

/** @param {{header: Header, leave: () => void}} props leave: closes the menu in which this is folded on a phone */
export function Facts({ header: { source, facts, known, turn }, leave }) {
  const proof = useSignal(UNKNOWN);
  const isNew = useMemo(() => !isSeen(), []);
  useSignalEffect(() => {
    if (facts.value.state === 'pending') return;
    const asking = new AbortController();
    const show = (/** @type {Proof} */ now) => void (proof.value = now);
    void follow(source, known.value?.badge ?? UNKNOWN, show, () => void (turn.value += 1), asking.signal);
    return () => asking.abort();
  });
  const { card = '', own = false } = known.value ?? {};
  const { text, title, state } = proof.value;
  const begin = (/** @type {string} */ event) => () => {
    leave();
    window.dispatchEvent(new window.CustomEvent(event));
  };
  return html`<div id="vv-facts" class=${`vv-facts ${facts.value.state === 'pending' ? 'vv-busy' : ''}`}>
    <${Popover}
      look="vv-plain vv-quiet vv-proof"
      button=${{ title: WHETHER, 'data-state': state, hidden: !card }}
      words=${text}
      panel="vv-details"
      label="About this model and what is shown of it"
    >
      <p class="vv-proof-words">${title}</p>
      <p class="vv-model-facts vv-quiet">${card}</p>
      <p class="vv-small">${NOT_SAID}</p>
    <//>
    <button
      type="button"
      class="vv-button vv-share"
      title="Copies the address of exactly this view."
      onClick=${(/** @type {any} */ { currentTarget }) => copyLink(currentTarget, own)}
    >
      Copy link
    </button>
    <button
      type="button"
      class="vv-button vv-start"
      title="A tour of the page; it can be left at any time."
      onClick=${begin(START)}
    >
      ${isNew ? html`New here? <b>Start</b>` : 'Tour'}
    </button>
    <${Popover} look="vv-help" button=${HELP} words="?" panel="vv-help-words" label="Help">
      <p>
        <span class="vv-to-point"
          ><b>Point at the photo</b> to see where the model looks from there; click to keep it.</span
        ><span class="vv-to-tap"><b>Tap the photo</b> to see where the model looks from there.</span> Each
        small picture is one head of one layer.
      </p>
      <p>
        <b>Bring your own</b> with +<span class="vv-to-point">, by dropping a picture, or with Ctrl+V</span
        ><span class="vv-to-tap">: a file or the camera</span>. Nobody else sees it, and it is deleted soon
        after you leave.
      </p>
      <p>
        <button type="button" class="vv-button vv-what" onClick=${begin(WHAT)}>What’s this?</button> Then
        <span class="vv-to-point"> point at</span><span class="vv-to-tap"> tap</span> anything to read what it
        does.
      </p>
      <p class="vv-to-point">
        <b>Keys</b> on photos and tables: ${KEY_WORDS} Anywhere: Ctrl+K finds a question, Ctrl+S saves what is
        seen, ? says what a control does.
      </p>
    <//>
  </div>`;
}

/** Copies the link of the page, and says below the button what it holds. */
export async function copyLink(/** @type {HTMLElement} */ button, /** @type {boolean} */ isOwn) {
  try {
    await navigator.clipboard.writeText(wholeAddress());
    button.dataset.said = isOwn ? COPIED_WITHOUT : COPIED;
    if (isOwn) button.title = COPIED_WITHOUT_MORE;
  } catch {
    button.dataset.said = 'See the address bar';
  }
  window.setTimeout(() => delete button.dataset.said, isOwn ? 6000 : 2500);
}
