// The model: a button that says which one is shown and opens the list of those that are offered, found by a few letters. Also a Hub id
// can be typed; where it would have to be downloaded the visitor is asked first.

import { openDialog } from '../../ui/visit/link.js';
import { useListbox } from '../kit/listbox.js';
import { closeBeside, usePopover } from '../kit/parts.js';
import { html, useLayoutEffect, useRef, useState } from '../kit/preact.js';
import { search } from '../palette/palette.js';
/** @import { Header } from './header.js' */

/**
 * @typedef {{name: string, title: string, hub: string, about: string, facts: string[], here: boolean}}
 *   Offer hub: its id there, '' where it has none; facts: sizes and licence, as far as they are known; here: on this disk
 * @typedef {{offered: Offer[], own_ids?: boolean}} Models own_ids: whether other ids of the Hub are taken
 * @typedef {{title: string, hub: string, size: string, licence: string, answer: (isAgreed: boolean) => void}} Question
 * @typedef {{label: string, offers: Offer[]}} Group
 */

const HUB_ID = /^[a-z0-9][\w.-]*\/[a-z0-9][\w.-]*(@[\w./-]+)?$/i;
/** @type {Models} */
const UNKNOWN = { offered: [] };
const WEIGHTS = '.safetensors';
const OWN_FILE =
  'A safetensors file of timm’s ViT, DINO, DINOv2 or DeiT, with config.json and preprocessor_config.json where they lie beside it; ' +
  'they stay on your machine.';
const LISTED_ONLY = 'This app fetches no other models of the Hub: choose one of the list.';

/** @param {{header: Header}} props */
export function Model({ header: { source, known: facts, offered, renew, model, choose } }) {
  const popover = usePopover();
  const [text, setText] = useState('');
  const [question, setQuestion] = useState(/** @type {Question | null} */ (null));
  const models = offered.value.models ?? UNKNOWN;
  const chosen = model.value;
  const title = models.offered.find(({ name }) => name === chosen)?.title ?? chosen;
  const { short } = facts.value ?? {};
  const takesIds = models.own_ids;
  const { groups, place } = popover.isOpen ? groupsOf(text, models, chosen) : { groups: [], place: 0 };
  const shown = groups.flatMap(({ offers }) => offers);

  const openFile = () => {
    popover.leave();
    /** @type {HTMLElement | null} */ (document.querySelector('.vv-files'))?.click();
  };
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** Before a download its visitor is asked. @returns {Promise<boolean>} */
  const agreed = (/** @type {Omit<Question, 'answer'>} */ wanted) =>
    new Promise((answer) => setQuestion({ ...wanted, answer }));
  const box = useListbox('vv-model-list', shown.length, (at) => {
    if (!shown[at]) return;
    popover.leave();
    void choose(shown[at].name, agreed);
  });
  useLayoutEffect(() => {
    if (!popover.isOpen) return;
    renew(); // which models are on this disk may have changed
    setText('');
    // on a screen that is touched the keyboard would cover the list
    if (!globalThis.matchMedia('(pointer: coarse)').matches) input.current?.focus();
  }, [popover.isOpen]);
  const before = useRef(shown);
  useLayoutEffect(() => box.activate(place), [popover.isOpen, text, chosen]);
  useLayoutEffect(() => {
    const reached = before.current[box.active]?.name; // by the keys: it stays the one where the list comes anew
    const now = shown.findIndex(({ name }) => name === reached);
    box.activate(now < 0 ? place : now);
  }, [models]);
  useLayoutEffect(() => void (before.current = shown));

  return html`<div id="vv-model" class="vv-anchor">
    <button
      type="button"
      class="vv-model-open"
      aria-haspopup="listbox"
      title=${`${[title, short].filter(Boolean).join(', ')}: choose another model`}
      data-model=${chosen}
      ...${popover.button}
    >
      <span class="vv-unseen">Model:</span>
      <b class="vv-model-name vv-class">${title}</b>
      <span class="vv-model-short vv-class vv-quiet">${short}</span>
    </button>
    <div class="vv-popover vv-model-panel" role="group" aria-label="Choose a model" ...${popover.panel}>
      <div class="vv-model-top">
        <input
          class="vv-control vv-model-text"
          aria-label="Find a model"
          autocapitalize="off"
          placeholder=${takesIds ? 'Name, or a Hub id: owner/name' : 'Name'}
          ref=${input}
          value=${text}
          onInput=${(/** @type {any} */ { target }) => setText(target.value)}
          ...${box.field}
        />
        <button type="button" class="vv-button vv-plain vv-model-close" onClick=${popover.leave}>
          Close
        </button>
      </div>
      <p class="vv-model-words vv-small" role="status">
        ${popover.isOpen && countWords(text.trim(), shown.length, takesIds)}
      </p>
      <div class="vv-model-list" aria-label="Models" ...${box.list}>
        ${groups.map(
          ({ label, offers }) =>
            html`<div key=${label} role="group" aria-label=${label}>
              <p class="vv-model-group" aria-hidden="true">${label}</p>
              ${offers.map(
                (offer) =>
                  html`<${Option}
                    key=${offer.name}
                    offer=${offer}
                    isShown=${offer.name === chosen}
                    listed=${box.option(shown.indexOf(offer))}
                  />`,
              )}
            </div>`,
        )}
      </div>
      ${
        source.accepts.includes(WEIGHTS) &&
        html`<button type="button" class="vv-button vv-model-file" title=${OWN_FILE} onClick=${openFile}>
          Open a model of yours
        </button>`
      }
    </div>
    <${Download} question=${question} />
  </div>`;
}

/** @typedef {Offer & {label: string, shows: string, also: string, tab: string, slow: boolean}} Found as `search` looks through it */

/** @returns {Found} */
const found = (/** @type {Offer} */ offer) => ({
  ...offer,
  label: offer.title,
  shows: offer.hub,
  also: `${offer.about} ${offer.facts.join(' ')}`,
  tab: '',
  slow: false,
});

/**
 * What a text finds, in groups: what is on this disk, what the Hub has, and the text itself where it is the id of another model there.
 * The place is that of the option which Enter chooses.
 * @param {string} text @param {Models} models @param {string} chosen
 * @returns {{groups: Group[], place: number}}
 */
export function groupsOf(text, { offered, own_ids: takesIds }, chosen) {
  const offers = /** @type {Offer[]} */ (search(text, offered.map(found), { isStrict: true }));
  const typed = text.trim();
  const isListed = offered.some(({ name, hub }) => name === typed || hub === typed);
  const isOther = Boolean(takesIds) && HUB_ID.test(typed) && !isListed;
  const about = 'The model of this id on the Hub.';
  const other = { name: typed, title: typed, hub: '', about, facts: [], here: false };
  const groups = [
    { label: 'On this disk', offers: offers.filter(({ here }) => here) },
    { label: 'On the Hub', offers: offers.filter(({ here }) => !here) },
    { label: 'By its Hub id', offers: isOther ? [other] : [] },
  ].filter((group) => group.offers.length);
  const all = groups.flatMap((group) => group.offers);
  const owner = `${typed.split('/')[0]}/`;
  const isOfOwner = isOther && offered.some(({ hub }) => hub.startsWith(owner)); // and not "ViT-S/16"
  const wanted = all.findIndex(({ name }) => name === (isOfOwner ? typed : typed ? offers[0]?.name : chosen));
  return { groups, place: Math.max(0, wanted) };
}

/** What is said above the list. @param {string} typed @param {number} count @param {boolean} [takesIds] */
function countWords(typed, count, takesIds) {
  if (!takesIds && HUB_ID.test(typed) && !count) return LISTED_ONLY;
  const how = takesIds ? ' Any other model of the Hub is found by its id, owner/name.' : '';
  if (!count) return `No model here is found by “${typed}”.${how}`;
  return `${count} ${count === 1 ? 'model' : 'models'}`;
}

/** @param {{offer: Offer, isShown: boolean, listed: Record<string, any>}} props listed: attributes of an option */
function Option({ offer: { name, title, hub, about, facts, here }, isShown, listed }) {
  const where = here ? ['on this disk'] : hub ? ['to download'] : [];
  return html`<div class="vv-model-option" data-name=${name} ...${listed}>
    <span class="vv-model-line">
      <b>${title}</b>
      <span class="vv-small">${[...(isShown ? ['shown now'] : []), ...facts, ...where].join(' · ')}</span>
    </span>
    ${about && html`<span class="vv-small">${about}</span>`}
    ${hub && html`<span class="vv-small vv-model-hub">${hub}</span>`}
  </div>`;
}

/** Asks before a download. @param {{question: Question | null}} props */
function Download({ question }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    if (!question) return;
    openDialog(/** @type {HTMLDialogElement} */ (dialog.current));
    button.current?.focus();
    return () => question.answer(false); // to the next one
  }, [question]);
  const { title, hub, size, licence } = question ?? {};
  const facts = [
    ['From the Hub', hub],
    ['Size', size],
    ['Licence', licence],
  ].filter(([, words]) => words);
  const answer = (/** @type {boolean} */ isAgreed) => () => {
    question?.answer(isAgreed);
    dialog.current?.close();
  };
  return html`<dialog
    class="vv-room vv-model-question"
    aria-labelledby="vv-model-question-title"
    ref=${dialog}
    onClick=${closeBeside}
    onClose=${() => question?.answer(false)}
    onKeyDown=${(/** @type {Event} */ event) => event.stopPropagation() /* Escape is its own */}
  >
    <h2 class="vv-title vv-model-question-title" id="vv-model-question-title">
      ${question && `Download ${title}?`}
    </h2>
    <dl class="vv-model-question-facts">
      ${facts.map(
        ([name, words]) =>
          html`<dt>${name}</dt>
            <dd>${words}</dd>`,
      )}
    </dl>
    <div class="vv-row">
      <button type="button" class="vv-button vv-model-download" ref=${button} onClick=${answer(true)}>
        Download
      </button>
      <button type="button" class="vv-button vv-plain vv-model-cancel" onClick=${answer(false)}>
        Cancel
      </button>
    </div>
  </dialog>`;
}
