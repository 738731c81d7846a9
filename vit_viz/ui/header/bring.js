// A picture that is dropped or pasted anywhere on the page: uploaded as Gradio uploads, then told to Python ('bring').

import { routeUrl } from '../../explorer/source.js';
import { finder, make, showText } from '../kit/elements.js';

/**
 * @typedef {import('../kit/elements.js').Trigger} Trigger
 * @typedef {{files: Iterable<File>}} Carried what a paste or a drop carries
 */

const PATIENCE = 20_000; // milliseconds after which an answer of Python counts as lost
const READING_TIME = 8_000; // milliseconds for which a sentence stays
const QUICK = 300; // milliseconds in which nothing needs to be said of an upload
const FORMATS = 'Pictures are JPEG, PNG, WebP, GIF, BMP, TIFF and AVIF files.';
const NOTHING = 'There is no picture in the clipboard. Copy a picture, or drop a file anywhere on the page.';
const NOT_ALLOWED = 'The browser does not let this page read the clipboard; press Ctrl+V instead.';
const UNREACHED = 'The picture could not be sent; please try again.';

/** @type {import('../kit/elements.js').Mount<{value: {seq: number} | null}>} */
export function mount(element, trigger, props, watch) {
  const place = document.querySelector('.gradio-container') ?? document.body;
  const note = make('p', 'vv-bring-note');
  note.setAttribute('role', 'status');
  note.hidden = true;
  const drop = make('div', 'vv-drop-here', 'Drop it to look at it');
  drop.hidden = true;
  place.append(note, drop);
  const bringer = new Bringer(trigger, note);
  listenToPastes(bringer);
  listenToDrops(bringer, drop);
  listenToButton(bringer, finder(element)('paste'));
  watch('value', () => bringer.answered(props.value?.seq ?? 0));
}

/** The first picture of what was carried here, or one sentence that says why there is none. */
export function pictureIn(/** @type {Carried} */ { files }) {
  const all = [...files];
  const picture = all.find(({ type }) => type.startsWith('image/')) ?? all.find(({ type }) => !type);
  if (picture) return picture; // of a type that the browser does not know, the server will say what it is
  return all.length ? `${all[0].name} is no picture. ${FORMATS}` : NOTHING;
}

/** Sends one picture at a time: a newer one ends the upload before it, and is told once Python has taken the one before. */
export class Bringer {
  seq = 0; // of the picture that Python was told last
  taken = 0; // of the picture that Python has taken last
  /** @type {string | null} path of a picture that waits until Python has taken the one before */ waiting =
    null;
  /** @type {AbortController | null} of the upload that is under way */ upload = null;
  patience = 0;
  timer = 0;

  /** @param {Trigger} trigger @param {HTMLElement} note */
  constructor(trigger, note) {
    this.trigger = trigger;
    this.note = note;
  }

  /** Takes what a paste or a drop carries. */
  async take(/** @type {Carried} */ carried) {
    const picture = pictureIn(carried);
    if (typeof picture === 'string') this.say(picture);
    else await this.bring(picture);
  }

  async bring(/** @type {File} */ file) {
    this.upload?.abort();
    this.waiting = null;
    const upload = new AbortController();
    this.upload = upload;
    this.say(`Bringing ${file.name || 'your picture'} …`, QUICK);
    try {
      const path = await send(file, upload.signal);
      if (this.upload !== upload) return;
      this.upload = null;
      this.waiting = path;
      this.tell();
    } catch (error) {
      if (!upload.signal.aborted) this.say(error instanceof Refused ? error.message : UNREACHED);
    }
  }

  /** Tells Python of the picture that waits, unless it is still busy with another. */
  tell() {
    if (this.waiting === null || this.seq > this.taken) return;
    this.seq += 1;
    this.trigger('bring', { upload: this.waiting, seq: this.seq });
    this.waiting = null;
    clearTimeout(this.patience);
    this.patience = window.setTimeout(() => this.answered(this.seq), PATIENCE);
  }

  /** Python has taken a picture, or refused it and said why. */
  answered(/** @type {number} */ seq) {
    if (seq <= this.taken) return;
    this.taken = seq;
    clearTimeout(this.patience);
    if (!this.upload && this.waiting === null) this.say('');
    this.tell();
  }

  /** Shows a sentence for a while, after a pause of milliseconds; "" takes it away. */
  say(/** @type {string} */ words, pause = 0) {
    clearTimeout(this.timer);
    showText(this.note, pause ? '' : words);
    const next = pause ? () => this.say(words) : () => showText(this.note, '');
    if (words) this.timer = window.setTimeout(next, pause || READING_TIME);
  }
}

/** What the server says of an upload that it does not take. */
class Refused extends Error {}

/** Uploads a file as Gradio does; returns the path under which the server keeps it. */
async function send(/** @type {File} */ file, /** @type {AbortSignal} */ signal) {
  const body = new FormData();
  body.append('files', file, file.name || 'picture');
  const id = Math.random().toString(36).slice(2, 14);
  const answer = await fetch(routeUrl(`/gradio_api/upload?upload_id=${id}`), {
    method: 'POST',
    body,
    signal,
  });
  if (!answer.ok) throw new Refused((await answer.text()).slice(0, 400) || UNREACHED);
  const paths = /** @type {string[]} */ (await answer.json());
  return paths[0];
}

/** Whether somebody types there: their paste is text, and theirs. */
function isTyping(/** @type {EventTarget | null} */ target) {
  if (!(target instanceof HTMLElement)) return false;
  const kinds = ['checkbox', 'radio', 'range', 'button', 'submit', 'file'];
  if (target instanceof HTMLInputElement) return !kinds.includes(target.type);
  return target.isContentEditable || target.tagName === 'TEXTAREA';
}

function listenToPastes(/** @type {Bringer} */ bringer) {
  document.addEventListener('paste', (event) => {
    if (!event.clipboardData || isTyping(event.target)) return;
    event.preventDefault();
    void bringer.take(event.clipboardData);
  });
}

/** Listens before anything else on the page, so that a file means the same wherever it falls. */
function listenToDrops(/** @type {Bringer} */ bringer, /** @type {HTMLElement} */ drop) {
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
    if (carried) void bringer.take(carried);
  });
}

/** The clipboard for those who have no Ctrl+V. */
function listenToButton(/** @type {Bringer} */ bringer, /** @type {HTMLElement} */ button) {
  button.hidden = !navigator.clipboard?.read;
  button.addEventListener('click', async () => {
    try {
      await bringer.take({ files: await copied() });
    } catch {
      bringer.say(NOT_ALLOWED);
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
