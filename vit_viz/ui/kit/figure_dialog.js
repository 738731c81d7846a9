// The dialog that saves a figure: its format and size, the lines that make it again, and the link that opens it. Whatever on the page
// shows a figure asks for it by the event 'vv-figure', which bubbles; where nobody takes it, as outside this page, it saves what it
// can by itself. Ctrl+S presses the first button of what is on the screen that saves (data-save).

import { offerFile } from '../../explorer/elements.js';
import { openDialog, wholeAddress } from '../visit/link.js';
import { fetched, finder, showText } from './elements.js';
import { showError } from './notes.js';

/**
 * @typedef {{address: string, formats?: string[], page?: string}}
 *   Asked where the figure is served, with the view that it shows; its formats; where it is served as a page of its own
 */

/** What each format holds. @type {Record<string, string>} */
const WORDS = {
  png: 'Pixels, with caption and scale.',
  svg: 'Scale, axes and letters as outlines; the photo embedded.',
  pdf: 'Scale and axes as lines, words as text in an embedded typeface; the photo embedded.',
  csv: 'The numbers as a table, in full precision.',
  npz: 'The numbers for NumPy, in full precision.',
  json: 'Numbers, facts and what was asked, as text for any program.',
  gif: 'An animation through the layers.',
  webp: 'An animation through the layers, in all colours.',
  html: 'One file with this photo and every layer and head, live; it opens without a network.',
};
const MOVING = ['gif', 'webp'];
const STILL = ['png', 'svg', 'pdf', 'csv', 'npz'];
const UNWRITTEN = ['json', 'html']; // no lines of code make them
const SIZED = ['png', 'svg', 'pdf', ...MOVING];
const LINKED = 'Link copied. It opens this view; a photo of your own stays with you.';
const UNSAID = 'No command says this: the method has options of its own here. The lines of Python do.';
const FAILED = 'This figure could not be fetched; please try again.';

/** @param {HTMLElement} element */
export function mount(element) {
  const dialog = new FigureDialog(element);
  const listen = (/** @type {Event} */ event) => {
    if (!element.isConnected) return window.removeEventListener('vv-figure', listen);
    event.preventDefault();
    dialog.open(/** @type {CustomEvent<Asked>} */ (event).detail);
  };
  window.addEventListener('vv-figure', listen);
  window.addEventListener('keydown', function save(event) {
    if (!element.isConnected) return window.removeEventListener('keydown', save);
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (event.key.toLowerCase() !== 's') return;
    const button = savingButton();
    if (!button) return;
    event.preventDefault();
    button.click();
  });
}

/** The button that saves what somebody looks at: in the dialog that is open, else on the page. */
function savingButton() {
  const open = document.querySelector('dialog[open]') ?? document;
  const buttons = /** @type {HTMLElement[]} */ ([...open.querySelectorAll('[data-save]')]);
  return buttons.find((button) => button.checkVisibility());
}

class FigureDialog {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.find = finder(element);
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('figure'));
    this.address = '';
    this.page = '';
    this.dialog.addEventListener('change', () => this.describe());
    this.find('figure-close').addEventListener('click', () => this.dialog.close());
    this.find('figure-save').addEventListener('click', () => this.save());
    this.find('figure-python').addEventListener('click', () => this.copy('python'));
    this.find('figure-command').addEventListener('click', () => this.copy('command'));
    this.find('figure-link').addEventListener('click', () => void this.copyText(wholeAddress(), LINKED));
  }

  open(/** @type {Asked} */ { address, formats, page = '' }) {
    this.address = address;
    this.page = page;
    const drawn = formats ?? [...STILL, ...(address.includes('kind=map') ? MOVING : [])];
    const there = page ? [...drawn, 'html'] : drawn;
    for (const input of this.inputs('format')) {
      input.disabled = !there.includes(input.value);
      if (UNWRITTEN.includes(input.value) && input.parentElement) input.parentElement.hidden = input.disabled;
    }
    if (!there.includes(this.chosen('format'))) this.choose('format', there[0]);
    this.say('');
    this.describe();
    openDialog(this.dialog);
  }

  /** @param {string} name */
  chosen(name) {
    return this.inputs(name).find((input) => input.checked)?.value ?? '';
  }

  /** @param {string} name @param {string} value */
  choose(name, value) {
    for (const input of this.inputs(name)) input.checked = input.value === value;
  }

  /** @param {string} name */
  inputs(name) {
    const inputs = this.element.querySelectorAll(`input[name="vv-figure-${name}"]`);
    return /** @type {HTMLInputElement[]} */ ([...inputs]);
  }

  /** Says what is chosen; lines that were copied before are of another choice. */
  describe() {
    const format = this.chosen('format');
    this.find('figure-words').textContent = WORDS[format];
    this.find('figure-size').hidden = !SIZED.includes(format);
    for (const name of ['figure-python', 'figure-command'])
      /** @type {HTMLButtonElement} */ (this.find(name)).disabled = UNWRITTEN.includes(format);
    showText(this.find('figure-code'), '');
  }

  /** @param {string} words @param {string} [error] */
  say(words, error = '') {
    this.find('figure-status').textContent = words;
    showError(this.find('figure-error'), error);
  }

  /** Where the figure is, or with "recipe" the lines that make it. */
  fetch(/** @type {'figure' | 'recipe'} */ what) {
    if (this.chosen('format') === 'html') return fetched(this.page, undefined, Infinity);
    const size = `width_cm=${this.chosen('width')}&dpi=${this.chosen('dpi')}`;
    const address = this.address.replace('/figure/', `/${what}/`);
    return fetched(`${address}&format=${this.chosen('format')}&${size}`, undefined, Infinity);
  }

  async save() {
    const button = this.find('figure-save');
    if (button.getAttribute('aria-disabled') === 'true') return;
    button.setAttribute('aria-disabled', 'true'); // the focus stays on it
    this.say('Drawing …');
    try {
      const answer = await this.fetch('figure');
      const name = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '')?.[1];
      offerFile(await answer.blob(), name ?? 'figure');
      this.say(`Saved ${name ?? ''}.`);
    } catch (error) {
      this.say('', error instanceof TypeError ? FAILED : /** @type {Error} */ (error).message);
    }
    button.setAttribute('aria-disabled', 'false');
  }

  /** Copies lines, and shows them: not every page may write to the clipboard. @param {'python' | 'command'} which */
  async copy(which) {
    try {
      const lines = (await (await this.fetch('recipe')).json())[which];
      if (lines) await this.copyText(lines, 'Copied.');
      else this.say('', UNSAID);
    } catch (error) {
      this.say('', error instanceof TypeError ? FAILED : /** @type {Error} */ (error).message);
    }
  }

  /** @param {string} text @param {string} done what is said where the page may write to the clipboard */
  async copyText(text, done) {
    showText(this.find('figure-code'), text);
    await navigator.clipboard.writeText(text).then(
      () => this.say(done),
      () => this.say('Please select this text to copy it.'),
    );
  }
}
