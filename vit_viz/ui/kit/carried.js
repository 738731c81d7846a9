// Pictures that are carried to the page: dropped or pasted anywhere on it, or read from the clipboard by a button.

import { byPointer } from '../../explorer/elements.js';

/**
 * @typedef {{files: Iterable<File>}} Carried what a paste or a drop carries
 * @typedef {object} Taker
 * @property {(carried: Carried) => unknown} take
 * @property {(words: string) => void} say
 */

const FORMATS = 'Pictures are JPEG, PNG, WebP, GIF, BMP, TIFF and AVIF files.';
const NOTHING = 'There is no picture in the clipboard. Copy a picture first, or choose a file.';
const NOT_ALLOWED = 'The browser does not let this page read the clipboard;';

/**
 * The pictures of what was carried here, and a sentence for each file that is none, or one where nothing was carried.
 * @param {Carried} carried @param {string} [formats] which pictures are read
 */
export function picturesIn({ files }, formats = FORMATS) {
  const all = [...files];
  // of a type that the browser does not know, the server will say what it is
  const pictures = all.filter(({ type }) => !type || type.startsWith('image/'));
  const problems = all.filter((file) => !pictures.includes(file)).map(({ name }) => `${name} is no picture.`);
  if (problems.length) problems.push(formats);
  return { pictures, problems: all.length ? problems : [NOTHING] };
}

/** Whether somebody types there: their paste is text, and theirs. */
function isTyping(/** @type {EventTarget | null} */ target) {
  if (!(target instanceof HTMLElement)) return false;
  const kinds = ['checkbox', 'radio', 'range', 'button', 'submit', 'file'];
  if (target instanceof HTMLInputElement) return !kinds.includes(target.type);
  return target.isContentEditable || target.tagName === 'TEXTAREA';
}

/** Takes what is pasted, unless somebody writes. */
export function listenToPastes(/** @type {Taker} */ taker) {
  document.addEventListener('paste', (event) => {
    if (!event.clipboardData || isTyping(event.target)) return;
    event.preventDefault();
    void taker.take(event.clipboardData);
  });
}

/**
 * Listens before anything else on the page, so that a file means the same wherever it falls.
 * @param {Taker} taker @param {HTMLElement} drop what lies over the page while files are dragged on it
 */
export function listenToDrops(taker, drop) {
  let isOurs = false; // a part of the page is dragged
  const listen = (/** @type {string} */ name, /** @type {(event: DragEvent) => void} */ then) =>
    window.addEventListener(name, (event) => then(/** @type {DragEvent} */ (event)), true);
  const files = (/** @type {DragEvent} */ event) => {
    if (isOurs || !event.dataTransfer?.types.includes('Files')) return null;
    event.preventDefault();
    event.stopPropagation();
    return event.dataTransfer;
  };
  const over = (/** @type {DragEvent} */ event) => {
    const carried = files(event);
    if (!carried) return;
    carried.dropEffect = 'copy';
    drop.hidden = false;
  };
  listen('dragstart', () => (isOurs = true));
  listen('dragend', () => (isOurs = false));
  listen('dragenter', over);
  listen('dragover', over);
  listen('dragleave', (event) => (drop.hidden ||= event.relatedTarget === null));
  listen('drop', (event) => {
    const carried = files(event);
    drop.hidden = true;
    if (carried) void taker.take(carried);
  });
}

/** The clipboard for those who have no Ctrl+V. */
export function listenToButton(/** @type {Taker} */ taker, /** @type {HTMLElement} */ button) {
  button.hidden = !navigator.clipboard?.read;
  button.addEventListener('click', async () => {
    try {
      await taker.take({ files: await copied() });
    } catch {
      taker.say(`${NOT_ALLOWED} ${byPointer('press Ctrl+V', 'choose a file')} instead.`);
    }
  });
}

/** The pictures in the clipboard, as files. */
async function copied() {
  const files = [];
  for (const item of await navigator.clipboard.read()) {
    const type = item.types.find((one) => one.startsWith('image/'));
    if (type) files.push(new File([await item.getType(type)], `pasted.${type.slice(6)}`, { type }));
  }
  return files;
}
