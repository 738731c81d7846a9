// "What's this?": while it is on, pointing at a control, or moving the focus to it, says what it does, in the words of its own
// declaration; nothing is pressed meanwhile. It begins with the key "?" or the event of the window, and Escape ends it.

import { fetched, finder, giveFocus } from '../kit/elements.js';

export const START = 'vv-what';
const CONTROLS =
  'button, select, input, textarea, summary, a[href], label, [role=application], [role=slider], [tabindex="0"]';
const PRESSES = ['click', 'pointerdown', 'pointerup', 'mousedown', 'mouseup', 'dblclick', 'input', 'change'];
const WHOLE = 'Point at a control';
const SAVE = 'Saves what is seen: as a picture, as numbers, as a page, as lines of Python, as a link.';
const FIRST = 'What it does is said here.';

/**
 * @typedef {Record<string, [label: string, sentence: string]>} Options what each option is called and does, by its name
 * @typedef {{tabs: Record<string, string>, controls: Record<string, string>}} Known
 *   tabs: what each is for; controls: of one of Gradio, by its id: the name of the option that it chooses, or a sentence
 */

/** @type {import('../kit/elements.js').Mount<{value: Known, listing: string}>} */
export function mount(element, props) {
  const help = new Help(element, props);
  const begin = () => void help.begin();
  const asked = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === '?' && !isWriting(event.target)) begin();
  };
  window.addEventListener(START, begin);
  document.addEventListener('keydown', asked);
}

/** Whether a key pressed there writes. */
function isWriting(/** @type {EventTarget | null} */ target) {
  const { tagName = '', type = '' } = /** @type {HTMLInputElement} */ (target ?? {});
  return tagName === 'TEXTAREA' || (tagName === 'INPUT' && !/^(radio|checkbox|range|button)$/.test(type));
}

class Help {
  /** @param {HTMLElement} element @param {{value: Known, listing: string}} props */
  constructor(element, props) {
    this.find = finder(element);
    this.props = props;
    this.card = this.find('help-card');
    this.ring = this.find('help-ring');
    /** @type {Options} */ this.options = {};
    /** @type {AbortController | null} */ this.on = null;
    this.find('help-end').addEventListener('click', () => this.end());
  }

  async begin() {
    if (this.on) return;
    this.before = /** @type {HTMLElement | null} */ (document.activeElement);
    this.on = new AbortController();
    const { signal } = this.on;
    document.body.classList.add('vv-asks-help');
    this.say(WHOLE, FIRST);
    this.card.hidden = false;
    const how = { capture: true, signal };
    for (const press of PRESSES) document.addEventListener(press, (event) => this.pressed(event), how);
    document.addEventListener('pointermove', (event) => this.pointed(event), how);
    document.addEventListener('focusin', ({ target }) => this.show(/** @type {Element} */ (target)), how);
    document.addEventListener('keydown', (event) => this.typed(event), how);
    if (!Object.keys(this.options).length)
      this.options = await fetched(this.props.listing, signal).then(
        (answer) => answer.json(),
        () => ({}), // the titles of the controls are here all the same
      );
    this.card.dataset.known = 'all';
  }

  /** Keeps what is pressed from its control, and says what that is for. @param {Event} event */
  pressed(event) {
    const target = /** @type {Element} */ (event.target);
    if (this.card.contains(target)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.type === 'pointerdown') this.show(target);
  }

  pointed(/** @type {PointerEvent} */ event) {
    event.stopImmediatePropagation();
    this.show(document.elementFromPoint(event.clientX, event.clientY));
  }

  typed(/** @type {KeyboardEvent} */ event) {
    const isOurs = event.key === 'Tab' || this.card.contains(/** @type {Element} */ (event.target));
    if (isOurs && event.key !== 'Escape') return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key === 'Escape') this.end();
  }

  show(/** @type {Element | null} */ place) {
    const control = controlAt(place);
    if (!control || this.card.contains(control)) return;
    const { title, words } = about(control, this.options, this.props.value);
    this.say(title, words);
    const box = control.getBoundingClientRect();
    Object.assign(this.ring.style, {
      left: `${box.left}px`,
      top: `${box.top}px`,
      width: `${box.width}px`,
      height: `${box.height}px`,
    });
    this.ring.hidden = false;
    this.card.dataset.side = box.left + box.width / 2 > window.innerWidth / 2 ? 'left' : 'right';
  }

  say(/** @type {string} */ title, /** @type {string} */ words) {
    this.find('help-title').textContent = title;
    this.find('help-said').textContent = words;
  }

  end() {
    this.on?.abort();
    this.on = null;
    document.body.classList.remove('vv-asks-help');
    this.card.hidden = true;
    this.ring.hidden = true;
    giveFocus(this.before);
  }
}

/** The control of a place: that of a label is what it labels. */
function controlAt(/** @type {Element | null} */ place) {
  const found = place?.closest(CONTROLS);
  return found?.tagName === 'LABEL' ? (/** @type {HTMLLabelElement} */ (found).control ?? null) : found;
}

/**
 * What a control is called, and what it does: in the words of the option that it chooses, of its own title, of the group in which
 * it stands.
 * @param {Element} control @param {Options} options @param {Known} known
 */
export function about(control, options, known) {
  const asked = askedFor(control, options, known);
  const [label, sentence] = options[asked] ?? ['', asked];
  const tab = /^vv-tab-(.+)-button$/.exec(control.id)?.[1] ?? '';
  const own = control.matches('[data-save]')
    ? SAVE
    : (control.closest('[title]')?.getAttribute('title') ?? '');
  const group = control.closest('[role=group], fieldset');
  const ofGroup = group?.getAttribute('aria-label') ?? group?.querySelector('legend')?.textContent ?? '';
  const name = nameOf(control);
  const said = [known.tabs[tab], own, sentence || ofGroup, name].map((words) => (words ?? '').trim());
  const words = said.filter((one, place) => one && said.indexOf(one) === place && (place < 3 || !said[1]));
  return { title: (name || label || own).split(/[:;.] /)[0], words: sentences(words) };
}

/** The name of the option that a control chooses, or a sentence on it; '' where none is known. @param {Element} control @param {Options} options @param {Known} known */
function askedFor(control, options, known) {
  const { name = '' } = /** @type {HTMLInputElement} */ (control);
  const said = control.closest('[data-option]')?.getAttribute('data-option');
  const named = [said, name.split('-').at(-1)].find((one) => one && one in options);
  if (named) return named;
  for (let place = /** @type {Element | null} */ (control); place; place = place.parentElement)
    if (place.id in known.controls) return known.controls[place.id];
  return '';
}

/** What is read on a control or heard of it. */
function nameOf(/** @type {Element} */ control) {
  const label = /** @type {HTMLInputElement} */ (control).labels?.[0];
  const written = label ? [...label.childNodes].find((node) => node.textContent?.trim()) : control;
  const named = control.getAttribute('aria-label') || written?.textContent || '';
  return named.replaceAll(/\s+/g, ' ').trim();
}

/** Some texts as sentences, one after the other. @param {string[]} texts */
function sentences(texts) {
  return texts.map((text) => (/[.!?…]$/.test(text) ? text : `${text}.`)).join(' ');
}
