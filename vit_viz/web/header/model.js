// The model: a button that says which one is shown and opens the list of those that are offered, found by a few letters. Also a Hub id
// can be typed; where it would have to be downloaded the visitor is asked first.

import { closes, finder, having, make, opens } from '../../ui/kit/elements.js';
import { openDialog } from '../../ui/visit/link.js';
import { asked } from '../kit/ask.js';
import { Listbox } from '../kit/listbox.js';
import { effect, signal } from '../kit/preact.js';
import { search } from '../palette/palette.js';
import { theHeader } from './header.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

/**
 * @typedef {{name: string, title: string, hub: string, about: string, facts: string[], here: boolean}}
 *   Offer hub: its id there, '' where it has none; facts: sizes and licence, as far as they are known; here: on this disk
 * @typedef {{chosen: string, title: string, short?: string, offered: Offer[], own_ids?: boolean}} Models short: its shape in a few words
 * @typedef {{title: string, hub: string, size: string, licence: string}} Question
 * @typedef {{label: string, offers: Offer[]}} Group
 */

const HUB_ID = /^[a-z0-9][\w.-]*\/[a-z0-9][\w.-]*(@[\w./-]+)?$/i;
const LISTED_ONLY = 'This app fetches no other models of the Hub: choose one of the list.';

/** @type {Mount<{}>} */
export function mount(element) {
  showModel(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function showModel(element, { store, ask, facts, choose }) {
  const picker = new Picker(element, (name) => void choose(name, (question) => picker.ask(question)));
  const models = asked(ask, () => ['models', { view: store.linkOf(['model']) }], picker.opened);
  effect(() => {
    const chosen = store.view.model.value || store.fields.get('model')?.usual;
    const { value = { offered: [], title: chosen } } = models.value;
    const { title } = value.offered.find((/** @type {Offer} */ { name }) => name === chosen) ?? {
      title: chosen,
    };
    const known = facts.value.state === 'done' ? { short: facts.value.value.short ?? '' } : {};
    picker.show({ ...value, title, chosen, ...known });
  });
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
 * @param {string} text @param {Models} models
 * @returns {{groups: Group[], place: number}}
 */
export function groupsOf(text, { offered, chosen, own_ids: takesIds }) {
  const offers = /** @type {Offer[]} */ (search(text, offered.map(found)));
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

class Picker {
  /** @type {Models | null} */ value = null;
  opened = signal(0); // how often: which models are on this disk may have changed
  /** @type {Offer[]} */ shown = [];
  /** @type {(isAgreed: boolean) => void} to the question that was asked last */ answered = () => {};

  /** @param {HTMLElement} element @param {(name: string) => void} choose */
  constructor(element, choose) {
    this.tell = choose;
    this.find = finder(element);
    this.button = this.find('model-open');
    this.input = /** @type {HTMLInputElement} */ (this.find('model-text'));
    this.list = this.find('model-list');
    this.box = new Listbox(this.input, this.list, (place) => this.choose(place));
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('model-question'));
    this.close = opens(
      this.button,
      () => this.find('model-panel'),
      (panel, isOpen) => {
        panel.hidden = !isOpen;
        if (isOpen) {
          this.opened.value += 1;
          this.start();
        }
      },
    );
    this.input.addEventListener('input', () => this.draw());
    this.find('model-panel').addEventListener('keydown', (event) => this.key(event));
    this.find('model-close').addEventListener('click', () => this.leave());
    closes(this.find('model-cancel'), this.dialog);
    this.find('model-download').addEventListener('click', () => {
      this.answered(true);
      this.dialog.close();
    });
    this.dialog.addEventListener('close', () => this.answered(false));
    this.dialog.addEventListener('keydown', (event) => event.stopPropagation()); // Escape is its own
  }

  /** Shows which model the page is on. @param {Models} value */
  show(value) {
    this.value = value;
    this.find('model-name').textContent = value.title;
    if (value.short !== undefined) this.find('model-short').textContent = value.short;
    this.button.dataset.model = value.chosen;
    this.button.title = `${value.title}: choose another model`;
    const how = value.own_ids ? 'Name, or a Hub id: owner/name' : 'Name';
    this.input.placeholder = how;
    if (this.button.getAttribute('aria-expanded') === 'true') this.draw();
  }

  /** Shows the list as it opens. */
  start() {
    this.input.value = '';
    this.draw();
    // on a screen that is touched the keyboard would cover the list
    if (!window.matchMedia('(pointer: coarse)').matches) this.input.focus();
  }

  leave() {
    this.close();
    this.button.focus();
  }

  draw() {
    if (!this.value) return;
    const { groups, place } = groupsOf(this.input.value, this.value);
    this.shown = groups.flatMap(({ offers }) => offers);
    const sorted = groups.map(({ label, offers }) => {
      const heading = having(make('p', 'vv-model-group', label), { 'aria-hidden': 'true' });
      const options = offers.map((offer) => this.option(offer));
      return {
        options,
        group: having(make('div', '', heading, ...options), { role: 'group', 'aria-label': label }),
      };
    });
    this.list.replaceChildren(...sorted.map(({ group }) => group));
    this.find('model-words').textContent = this.words();
    this.box.take(
      sorted.flatMap(({ options }) => options),
      place,
    );
  }

  /** What is said above the list. */
  words() {
    const typed = this.input.value.trim();
    const takesIds = this.value?.own_ids;
    if (!takesIds && HUB_ID.test(typed) && !this.shown.length) return LISTED_ONLY;
    const how = takesIds ? ' Any other model of the Hub is found by its id, owner/name.' : '';
    if (!this.shown.length) return `No model here is found by “${typed}”.${how}`;
    return `${this.shown.length} ${this.shown.length === 1 ? 'model' : 'models'}`;
  }

  /** @param {Offer} offer */
  option({ name, title, hub, about, facts, here }) {
    const isShown = name === this.value?.chosen;
    const where = here ? ['on this disk'] : hub ? ['to download'] : [];
    const facts_ = make(
      'span',
      'vv-small',
      [...(isShown ? ['shown now'] : []), ...facts, ...where].join(' · '),
    );
    const line = make('span', 'vv-model-line', make('b', '', title), facts_);
    const more = [line, ...(about ? [make('span', 'vv-small', about)] : [])];
    const id = hub ? [make('span', 'vv-small vv-model-hub', hub)] : [];
    return having(make('div', 'vv-model-option', ...more, ...id), { 'data-name': name });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === 'Escape') {
      this.leave();
      event.preventDefault();
    } else if (event.target === this.input) this.box.key(event);
    if (event.defaultPrevented) event.stopPropagation(); // Escape would also close the menu around it
  }

  /** @param {number} place */
  choose(place) {
    const offer = this.shown[place];
    if (!offer) return;
    this.leave();
    this.tell(offer.name);
  }

  /** Asks before a download; answers whether it may be. @param {Question} question @returns {Promise<boolean>} */
  ask({ title, hub, size, licence }) {
    this.answered(false);
    this.find('model-question-title').textContent = `Download ${title}?`;
    const facts = [
      ['From the Hub', hub],
      ['Size', size],
      ['Licence', licence],
    ].filter(([, words]) => words);
    this.find('model-question-facts').replaceChildren(
      ...facts.flatMap(([name, words]) => [make('dt', '', name), make('dd', '', words)]),
    );
    openDialog(this.dialog);
    this.find('model-download').focus();
    return new Promise((answer) => (this.answered = answer));
  }
}
