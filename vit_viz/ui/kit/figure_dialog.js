// The dialog that saves a figure: its format and size, and the lines that make it again. Whatever on the page shows a figure asks for
// it by the event 'vv-figure', which bubbles; where nobody takes it, as outside this page, it saves what it can by itself.

import { routeUrl } from '../../explorer/source.js';
import { finder, showText } from './elements.js';

/** @typedef {{address: string}} Asked where the figure is served, with the view that it shows */

/** What each format holds. @type {Record<string, string>} */
const WORDS = {
  png: 'Pixels, with caption and scale.',
  svg: 'Scale, axes and letters as outlines; the photo embedded.',
  pdf: 'Scale and axes as lines, words as text in an embedded typeface; the photo embedded.',
  csv: 'The numbers as a table, in full precision.',
  npz: 'The numbers for NumPy, in full precision.',
  gif: 'An animation through the layers.',
  webp: 'An animation through the layers, in all colours.',
};
const MOVING = ['gif', 'webp'];
const SIZED = ['png', 'svg', 'pdf', ...MOVING];
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
}

class FigureDialog {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.find = finder(element);
    this.dialog = /** @type {HTMLDialogElement} */ (this.find('figure'));
    this.address = '';
    this.dialog.addEventListener('change', () => this.describe());
    this.find('figure-close').addEventListener('click', () => this.dialog.close());
    this.find('figure-save').addEventListener('click', () => this.save());
    this.find('figure-python').addEventListener('click', () => this.copy('python'));
    this.find('figure-command').addEventListener('click', () => this.copy('command'));
  }

  open(/** @type {Asked} */ { address }) {
    this.address = address;
    const moves = address.includes('kind=map');
    for (const input of this.inputs('format')) input.disabled = !moves && MOVING.includes(input.value);
    if (!moves && MOVING.includes(this.chosen('format'))) this.choose('format', 'png');
    this.say('');
    this.describe();
    this.dialog.showModal();
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
    showText(this.find('figure-code'), '');
  }

  /** @param {string} words */
  say(words) {
    this.find('figure-status').textContent = words;
  }

  /** Where the figure is, or with "recipe" the lines that make it. */
  place(what = 'figure') {
    const size = `width_cm=${this.chosen('width')}&dpi=${this.chosen('dpi')}`;
    const address = this.address.replace('/figure/', `/${what}/`);
    return routeUrl(`${address}&format=${this.chosen('format')}&${size}`);
  }

  async save() {
    const button = /** @type {HTMLButtonElement} */ (this.find('figure-save'));
    button.disabled = true;
    this.say('Drawing …');
    try {
      const answer = await fetched(this.place());
      const name = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '')?.[1];
      offer(await answer.blob(), name ?? 'figure');
      this.say(`Saved ${name ?? ''}.`);
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
    button.disabled = false;
  }

  /** Copies lines, and shows them: not every page may write to the clipboard. @param {'python' | 'command'} which */
  async copy(which) {
    try {
      const lines = (await (await fetched(this.place('recipe'))).json())[which];
      showText(this.find('figure-code'), lines);
      await navigator.clipboard.writeText(lines).then(
        () => this.say('Copied.'),
        () => this.say('Please select these lines to copy them.'),
      );
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
  }
}

/** @param {string} address */
async function fetched(address) {
  let answer;
  try {
    answer = await fetch(address, { credentials: 'same-origin' });
  } catch {
    throw new Error(FAILED);
  }
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

/** Offers bytes as a download. @param {Blob} blob @param {string} name */
function offer(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
