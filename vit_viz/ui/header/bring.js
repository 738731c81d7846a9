// Pictures that are dropped or pasted anywhere on the page, or chosen together: uploaded as Gradio uploads, then told to Python
// ('bring'), which opens the first and keeps the others in the tray.

import { routeUrl } from '../../explorer/source.js';
import { listenToButton, listenToDrops, listenToPastes, makeDropHere, picturesIn } from '../kit/carried.js';
import { finder, make, showText } from '../kit/elements.js';
/** @import { Carried } from '../kit/carried.js' */
/** @import { Mount, Trigger } from '../kit/elements.js' */

const PATIENCE = 20_000; // milliseconds after which an answer of Python counts as lost
const READING_TIME = 8_000; // milliseconds for which a sentence stays
const QUICK = 300; // milliseconds in which nothing needs to be said of an upload
const UNREACHED = 'The picture could not be sent; please try again.';

/** @type {Mount<{value: {seq: number} | null}>} */
export function mount(element, trigger, props, watch) {
  const place = document.querySelector('.gradio-container') ?? document.body;
  const note = make('p', 'vv-bring-note');
  note.setAttribute('role', 'status');
  note.hidden = true;
  const drop = makeDropHere();
  place.append(note, drop);
  const bringer = new Bringer(trigger, note);
  listenToPastes(bringer);
  listenToDrops(bringer, drop);
  listenToButton(bringer, finder(element)('paste'));
  listenToBox(bringer);
  nameBox(element.closest('#vv-bring'));
  listenToCamera(bringer);
  watch('value', () => bringer.answered(props.value?.seq ?? 0));
}

/** Sends the pictures of one gesture: a newer one ends the uploads before it, and is told once Python has taken those before. */
export class Bringer {
  seq = 0; // of the pictures that Python was told last
  taken = 0; // of the pictures that Python has taken last
  /** @type {string[]} paths of pictures that wait until Python has taken those before */ waiting = [];
  problem = ''; // what is said of the files that were not sent
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
    const { pictures, problems } = picturesIn(carried);
    if (pictures.length) await this.bring(pictures, problems);
    else this.say(problems.join(' '));
  }

  /** @param {File[]} files @param {string[]} [problems] of those that came with them */
  async bring(files, problems = []) {
    this.upload?.abort();
    this.waiting = [];
    this.problem = '';
    const upload = new AbortController();
    this.upload = upload;
    const [paths, refused] = [/** @type {string[]} */ ([]), [...problems]];
    for (const [place, file] of files.entries()) {
      const one = file.name || 'your picture';
      this.say(
        files.length > 1 ? `Bringing ${one}, ${place + 1} of ${files.length} …` : `Bringing ${one} …`,
        QUICK,
      );
      try {
        paths.push(await send(file, upload.signal));
      } catch (error) {
        if (upload.signal.aborted) return;
        const words = error instanceof Refused ? error.message : UNREACHED;
        refused.unshift(files.length > 1 ? `${one}: ${words}` : words);
      }
      if (this.upload !== upload) return;
    }
    this.upload = null;
    this.waiting = paths;
    this.problem = refused.join(' ');
    if (this.problem) this.say(this.problem);
    this.tell();
  }

  /** Tells Python of the pictures that wait, unless it is still busy with others. */
  tell() {
    if (!this.waiting.length || this.seq > this.taken) return;
    this.seq += 1;
    this.trigger('bring', { uploads: this.waiting, seq: this.seq });
    this.waiting = [];
    clearTimeout(this.patience);
    this.patience = window.setTimeout(() => this.answered(this.seq), PATIENCE);
  }

  /** Python has taken the pictures, or refused them and said why. */
  answered(/** @type {number} */ seq) {
    if (seq <= this.taken) return;
    this.taken = seq;
    clearTimeout(this.patience);
    if (!this.upload && !this.waiting.length && !this.problem) this.say('');
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

/** Lets the box of files take several at once; Gradio's own takes one, and goes on doing so. */
function listenToBox(/** @type {Bringer} */ bringer) {
  const chooser = (/** @type {Event} */ { target }) =>
    target instanceof HTMLInputElement && target.type === 'file' && target.closest('#vv-upload')
      ? target
      : null;
  const allowSeveral = (/** @type {HTMLInputElement | null} */ input) =>
    void (input && (input.multiple = true));
  window.addEventListener('click', (event) => allowSeveral(chooser(event)), true);
  window.addEventListener(
    'change',
    (event) => {
      const files = [...(chooser(event)?.files ?? [])];
      if (files.length < 2) return;
      event.stopPropagation();
      void bringer.take({ files });
    },
    true,
  );
}

/** Lets the box be called what is read on it: Gradio gives it another name, also when it draws it anew. */
function nameBox(/** @type {Element | null} */ place) {
  if (!place) return;
  const name = () => place.querySelector('button[aria-dropeffect]')?.removeAttribute('aria-label');
  new MutationObserver(name).observe(place, { childList: true, subtree: true });
  name();
}

/** Says why there is no camera: Gradio leaves it to the console. */
function listenToCamera(/** @type {Bringer} */ bringer) {
  window.addEventListener('unhandledrejection', (event) => {
    if (!(event.reason instanceof DOMException) || !document.querySelector('#vv-upload video')) return;
    event.preventDefault();
    bringer.say(cameraWords(event.reason.name));
  });
}

/** Why the camera cannot be used, from the name of the browser's error. */
export function cameraWords(/** @type {string} */ name) {
  if (name === 'NotAllowedError')
    return 'The browser does not let this page use the camera; allow it beside the address, and try again.';
  if (name === 'NotFoundError') return 'This machine has no camera; choose a file instead.';
  return 'The camera cannot be used now, perhaps because something else uses it; choose a file instead.';
}
