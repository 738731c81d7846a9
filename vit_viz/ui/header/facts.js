// The right end of the header: whether the attention was verified, with the model's facts behind it; the link; where to start; help.

import { finder } from '../components/elements.js';
import { opens } from '../components/popover.js';
import { wholeAddress } from '../visit/address_bar.js';

const COPIED = 'Link copied';
const COPIED_WITHOUT = 'Copied, without your photo';
const COPIED_WITHOUT_MORE = 'Your photo stays here: the link opens this view, and asks for the picture.';

/**
 * @typedef {object} Facts
 * @property {string} [busy] what is being done
 * @property {string} [error]
 * @property {string} [card]
 * @property {boolean} [own] whether the picture is the visitor's own, which no link shows
 * @property {{text: string, title: string, state: string} | null} [proof]
 */

/**
 * @param {HTMLElement} element
 * @param {import('../components/elements.js').Trigger} _trigger
 * @param {{value: Facts | null}} props
 * @param {import('../components/elements.js').Watch} watch
 */
export function mount(element, _trigger, props, watch) {
  const find = finder(element);
  find('share').addEventListener('click', () => copyLink(find('share'), props.value?.own ?? false));
  find('start').addEventListener('click', () =>
    document.getElementById('vv-tab-walkthrough-button')?.click(),
  );
  opens(find('proof'), () => find('details'));
  opens(find('help'), () => find('help-words'));
  watch('value', () => draw(element, props.value));
  draw(element, props.value);
}

/** @param {HTMLElement} element @param {Facts | null} value */
function draw(element, value) {
  if (!value) return;
  const find = finder(element);
  element.classList.toggle('vv-busy', Boolean(value.busy));
  if (value.busy) return;
  find('model-facts').textContent = value.card || '';
  const proof = find('proof');
  proof.hidden = !value.card;
  proof.textContent = value.proof?.text ?? 'not verified';
  proof.dataset.state = value.proof?.state ?? 'open';
  find('proof-words').textContent =
    value.proof?.title ?? 'Whether the model computed with what is drawn here could not be checked.';
}

async function copyLink(/** @type {HTMLElement} */ button, /** @type {boolean} */ isOwn) {
  try {
    await navigator.clipboard.writeText(wholeAddress());
    button.textContent = isOwn ? COPIED_WITHOUT : COPIED;
    button.title = isOwn ? COPIED_WITHOUT_MORE : '';
  } catch {
    button.textContent = 'See the address bar';
  }
  window.setTimeout(() => (button.textContent = 'Copy link'), isOwn ? 6000 : 2500);
}
