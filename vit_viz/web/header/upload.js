// What brings pictures: files that are chosen, dropped or pasted anywhere on the page, and the camera. They become pictures of this
// visit, of which the first is looked at.

import {
  listenToButton,
  listenToDrops,
  listenToPastes,
  makeDropHere,
  picturesIn,
} from '../../ui/kit/carried.js';
import { finder, make, showText } from '../../ui/kit/elements.js';
import { Refused, bring } from '../kit/server.js';
import { listenToCamera } from './camera.js';
import { theHeader } from './header.js';
/** @import { Carried } from '../../ui/kit/carried.js' */
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

const READING_TIME = 8_000; // milliseconds for which a sentence stays
const QUICK = 300; // milliseconds in which nothing needs to be said of an upload
const MOST = 24; // pictures at once
const UNREACHED = 'The picture could not be sent; please try again.';

/** @type {Mount<{}>} */
export function mount(element) {
  takePictures(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function takePictures(element, header) {
  const find = finder(element);
  const place = document.querySelector('.gradio-container') ?? document.body;
  const note = make('p', 'vv-bring-note');
  note.setAttribute('role', 'status');
  note.hidden = true;
  const drop = makeDropHere();
  place.append(note, drop);
  const bringer = new Bringer(header, note);
  listenToPastes(bringer);
  listenToDrops(bringer, drop);
  listenToButton(bringer, find('paste'));
  const files = /** @type {HTMLInputElement} */ (find('files'));
  find('choose-file').addEventListener('click', () => files.click());
  files.addEventListener('change', () => {
    const chosen = [...(files.files ?? [])]; // the box is empty again for the next ones
    files.value = '';
    if (chosen.length) void bringer.take({ files: chosen });
  });
  listenToCamera(find, bringer);
}

/** Sends the pictures of one gesture: a newer one ends what is left of the one before. */
export class Bringer {
  upload = new AbortController();
  timer = 0;

  /** @param {Pick<Header, 'lookAt' | 'renewTray'>} header @param {HTMLElement} note */
  constructor(header, note) {
    this.header = header;
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
    this.upload.abort();
    const { signal } = (this.upload = new AbortController());
    const [images, refused] = [/** @type {string[]} */ ([]), [...problems]];
    let kept = images;
    if (files.length > MOST) refused.push(`The first ${MOST} of ${files.length} pictures were brought.`);
    for (const [place, file] of files.slice(0, MOST).entries()) {
      const one = file.name || 'your picture';
      const words = files.length > 1 ? `${one}, ${place + 1} of ${files.length}` : one;
      this.say(`Bringing ${words} …`, QUICK);
      try {
        const brought = await bring(file, signal);
        images.push(brought.image);
        kept = brought.kept;
      } catch (error) {
        const said = error instanceof Refused ? error.message : UNREACHED;
        refused.unshift(files.length > 1 ? `${one}: ${said}` : said);
      }
      if (signal.aborted) break;
    }
    if (images.length) this.header.renewTray();
    if (signal.aborted) return;
    const first = images.find((image) => kept.includes(image));
    if (first) this.header.lookAt(first);
    this.say(refused.join(' '));
  }

  /** Shows a sentence for a while, after a pause of milliseconds; "" takes it away. */
  say(/** @type {string} */ words, pause = 0) {
    clearTimeout(this.timer);
    showText(this.note, pause ? '' : words);
    const next = pause ? () => this.say(words) : () => showText(this.note, '');
    if (words) this.timer = window.setTimeout(next, pause || READING_TIME);
  }
}
