// The model: a button that says which one is shown and opens the list of those that are offered, found by a few letters. Also a Hub id
// can be typed. The server is told what is chosen ('choose'), and asks first ('question') where it would have to be downloaded.

import { openDialog } from '../visit/link.js';
import { dataAt, drawValue, finder, having, make, onPress, opens } from '../kit/elements.js';
import { search } from '../palette/palette.js';
/** @import { Mount, Trigger } from '../kit/elements.js' */

/**
 * @typedef {{name: string, title: string, hub: string, about: string, facts: string[], here: boolean}}
 *   Offer hub: its id there, '' where it has none; facts: sizes and licence, as far as they are known; here: on this disk
 * @typedef {{chosen: string, title: string, short?: string, offered: Offer[], own_ids?: boolean}} Models
 * @typedef {{seq: number, title: string, hub: string, size: string, licence: string}} Question
 * @typedef {{value: Models | null, question: Question | null}} Props
 * @typedef {{label: string, offers: Offer[]}} Group
 */

const HUB_ID = /^[a-z0-9][\w.-]*\/[a-z0-9][\w.-]*(@[\w./-]+)?$/i;
const LISTED_ONLY = 'This app fetches no other models of the Hub: choose one of the list.';

/** @type {Mount<Props>} */
export function mount(element, trigger, props, watch) {
  const picker = new Picker(element, trigger, props);
  drawValue(watch, () => picker.show());
  watch('question', () => picker.ask());
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
  seq = 0; // of the choice that was told last
  name = ''; // which was chosen then
  /** @type {Offer[]} */ shown = [];
  active = 0;

  /** @param {HTMLElement} element @param {Trigger} trigger @param {Props} props */
  constructor(element, trigger, props) {
    this.trigger = trigger;
    this.props = props;
    this.find = finder(element);
    this.button = this.find('model-open');
    this.input = /** @type {HTMLInputElement} */ (this.find('model-text'));
    this.list = this.find('model-list');
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('model-question'));
    this.close = opens(
      this.button,
      () => this.find('model-panel'),
      (panel, isOpen) => {
        panel.hidden = !isOpen;
        if (isOpen) this.start();
      },
    );
    this.input.addEventListener('input', () => this.draw());
    this.find('model-panel').addEventListener('keydown', (event) => this.key(event));
    this.find('model-close').addEventListener('click', () => this.leave());
    onPress(this.list, 'place', (place) => this.choose(Number(place)));
    this.list.addEventListener('pointermove', (event) => this.activate(Number(dataAt(event, 'place') ?? -1)));
    this.find('model-cancel').addEventListener('click', () => this.dialog.close());
    this.find('model-download').addEventListener('click', () => {
      this.dialog.close();
      this.trigger('choose', { name: this.name, seq: this.seq, agreed: true });
    });
    this.dialog.addEventListener('keydown', (event) => event.stopPropagation()); // Escape is its own
    this.dialog.addEventListener('click', ({ target }) => {
      if (target === this.dialog) this.dialog.close();
    });
  }

  /** Shows which model the page is on. */
  show() {
    const value = this.props.value;
    if (!value) return;
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
    if (!this.props.value) return;
    const { groups, place } = groupsOf(this.input.value, this.props.value);
    this.shown = groups.flatMap(({ offers }) => offers);
    let next = 0;
    this.list.replaceChildren(
      ...groups.map(({ label, offers }) => {
        const heading = having(make('p', 'vv-model-group', label), { 'aria-hidden': 'true' });
        const options = offers.map((offer) => this.option(offer, next++));
        return having(make('div', '', heading, ...options), { role: 'group', 'aria-label': label });
      }),
    );
    this.find('model-words').textContent = this.words();
    this.activate(place);
  }

  /** What is said above the list. */
  words() {
    const typed = this.input.value.trim();
    const takesIds = this.props.value?.own_ids;
    if (!takesIds && HUB_ID.test(typed) && !this.shown.length) return LISTED_ONLY;
    const how = takesIds ? ' Any other model of the Hub is found by its id, owner/name.' : '';
    if (!this.shown.length) return `No model here is found by “${typed}”.${how}`;
    return `${this.shown.length} ${this.shown.length === 1 ? 'model' : 'models'}`;
  }

  /** @param {Offer} offer @param {number} place */
  option({ name, title, hub, about, facts, here }, place) {
    const isShown = name === this.props.value?.chosen;
    const where = here ? ['on this disk'] : hub ? ['to download'] : [];
    const facts_ = make(
      'span',
      'vv-small',
      [...(isShown ? ['shown now'] : []), ...facts, ...where].join(' · '),
    );
    const line = make('span', 'vv-model-line', make('b', '', title), facts_);
    const more = [line, ...(about ? [make('span', 'vv-small', about)] : [])];
    const id = hub ? [make('span', 'vv-small vv-model-hub', hub)] : [];
    return having(make('div', 'vv-model-option', ...more, ...id), {
      id: `vv-model-${place}`,
      'data-place': place,
      'data-name': name,
      role: 'option',
    });
  }

  /** Makes an option the one that Enter chooses; of a place where there is none, nothing changes. @param {number} place */
  activate(place) {
    if (!this.shown.length) this.input.removeAttribute('aria-activedescendant');
    if (!this.shown[place]) return;
    this.active = place;
    this.input.setAttribute('aria-activedescendant', `vv-model-${place}`);
    for (const option of this.list.querySelectorAll('[role=option]'))
      option.setAttribute('aria-selected', String(option.id === `vv-model-${place}`));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === 'Escape') this.leave();
    else if (event.target !== this.input) return;
    else if (event.key === 'Enter') this.choose(this.active);
    else if (!this.move(event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // Escape would also close the menu around it
    this.list.querySelector('[aria-selected=true]')?.scrollIntoView?.({ block: 'nearest' });
  }

  /** Goes to another option; returns whether the key does that. @param {string} key */
  move(key) {
    const { length } = this.shown;
    const steps = /** @type {Record<string, number>} */ ({
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 5,
      PageUp: -5,
    });
    const step = steps[key];
    if (!step) return false;
    const next = this.active + step;
    const isOne = Math.abs(step) === 1; // only then from the last to the first
    this.activate(isOne ? (next + length) % (length || 1) : Math.min(Math.max(next, 0), length - 1));
    return true;
  }

  /** @param {number} place */
  choose(place) {
    const offer = this.shown[place];
    if (!offer) return;
    this.leave();
    this.name = offer.name;
    this.seq += 1;
    this.trigger('choose', { name: offer.name, seq: this.seq });
  }

  /** Asks before a download, unless something else was chosen meanwhile. */
  ask() {
    const question = this.props.question;
    if (!question || question.seq !== this.seq) return;
    this.find('model-question-title').textContent = `Download ${question.title}?`;
    const facts = [
      ['From the Hub', question.hub],
      ['Size', question.size],
      ['Licence', question.licence],
    ].filter(([, words]) => words);
    this.find('model-question-facts').replaceChildren(
      ...facts.flatMap(([name, words]) => [make('dt', '', name), make('dd', '', words)]),
    );
    openDialog(this.dialog);
    this.find('model-download').focus();
  }
}
